// row_sum, line 11: Reduction.sum (%X) -> (%Y)
// sm_80: grid 512, block 32, dynamic shared memory 0 bytes

extern "C" __global__ void __launch_bounds__(32)
row_sum(const float* __restrict__ X, float* __restrict__ Y) {
  const int tid = threadIdx.x;
  const int i = blockIdx.x;  // line 12
  alignas(16) float total[32];  // line 13
  // line 14: Init (0) -> (%total)
  #pragma unroll
  for (int i_1 = 0; i_1 < 32; i_1 += 1) {  // line 16
    total[i_1] = 0.0f;  // line 17
  }
  for (int k = 0; k < 1; k += 1) {  // line 20
    alignas(16) float x[32];  // line 21
    // line 22: Move (view of %X) -> (%x)
    #pragma unroll
    for (int i_1 = 0; i_1 < 8; i_1 += 1) {  // line 25
      // line 26
      *reinterpret_cast<uint4*>(&x[i_1 * 4]) =
          *reinterpret_cast<const uint4*>(&X[i * 1024 + i_1 * 128 + tid * 4]);
    }
    // line 29: BinaryPointwise.add (%total, %x) -> (%total)
    #pragma unroll
    for (int i_1 = 0; i_1 < 32; i_1 += 1) {  // line 33
      total[i_1] = __fadd_rn(total[i_1], x[i_1]);  // line 34
    }
  }
  float s[1];  // line 38
  {  // line 39: Reduction.sum (%total) -> (%s)
    float o[1];  // line 42
    s[0] = total[0];  // line 43
    #pragma unroll
    for (int j = 1; j < 32; j += 1) {  // line 44
      s[0] = __fadd_rn(s[0], total[j]);  // line 45
    }
    // line 47
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(s), 1);
    s[0] = __fadd_rn(s[0], o[0]);  // line 48
    // line 49
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(s), 2);
    s[0] = __fadd_rn(s[0], o[0]);  // line 50
    // line 51
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(s), 4);
    s[0] = __fadd_rn(s[0], o[0]);  // line 52
    // line 53
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(s), 8);
    s[0] = __fadd_rn(s[0], o[0]);  // line 54
    // line 55
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(s), 16);
    s[0] = __fadd_rn(s[0], o[0]);  // line 56
  }
  // line 58: Move (%s) -> (view of %Y)
  if (threadIdx.x == 0) {
    Y[i] = s[0];  // line 62
  }
}
