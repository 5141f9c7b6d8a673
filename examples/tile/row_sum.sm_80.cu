// row_sum, line 11: Reduction.sum (%X) -> (%Y)
// sm_80: grid 512, block 32, dynamic shared memory 0 bytes

extern "C" __global__ void __launch_bounds__(32)
row_sum(const float* __restrict__ X, float* __restrict__ Y) {
  const int tid = threadIdx.x;
  const int i = blockIdx.x;  // line 12
  alignas(16) float x[32];  // line 13
  // line 14: Move (view of %X) -> (%x)
  #pragma unroll
  for (int i_1 = 0; i_1 < 8; i_1 += 1) {  // line 17
    // line 18
    *reinterpret_cast<uint4*>(&x[i_1 * 4]) =
        *reinterpret_cast<const uint4*>(&X[i * 1024 + i_1 * 128 + tid * 4]);
  }
  float t[1];  // line 21
  {  // line 22: Reduction.sum (%x) -> (%t)
    float o[1];  // line 25
    t[0] = x[0];  // line 26
    #pragma unroll
    for (int j = 1; j < 32; j += 1) {  // line 27
      t[0] = __fadd_rn(t[0], x[j]);  // line 28
    }
    // line 30
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(t), 1);
    t[0] = __fadd_rn(t[0], o[0]);  // line 31
    // line 32
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(t), 2);
    t[0] = __fadd_rn(t[0], o[0]);  // line 33
    // line 34
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(t), 4);
    t[0] = __fadd_rn(t[0], o[0]);  // line 35
    // line 36
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(t), 8);
    t[0] = __fadd_rn(t[0], o[0]);  // line 37
    // line 38
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(t), 16);
    t[0] = __fadd_rn(t[0], o[0]);  // line 39
  }
  // line 41: Move (%t) -> (view of %Y)
  if (threadIdx.x == 0) {
    Y[i] = t[0];  // line 45
  }
}
