// softmax, line 14: Spec (%X) -> (%Y)
// sm_80: grid 4, block 128, dynamic shared memory 0 bytes

extern "C" __global__ void __launch_bounds__(128)
softmax(const float* __restrict__ X, float* __restrict__ Y) {
  const int tid = threadIdx.x;
  const int i = blockIdx.x;  // line 15
  alignas(16) float x[64];  // line 16
  float max_1[1];  // line 17
  float sum[1];  // line 18
  // line 19: Move (view of %X) -> (%x)
  #pragma unroll
  for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 22
    // line 23
    *reinterpret_cast<uint4*>(&x[i_2 * 4]) =
        *reinterpret_cast<const uint4*>(&X[i * 8192 + tid / 8 * 512 + i_2 * 32 + tid % 8 * 4]);
  }
  {  // line 26: Reduction.max (%x) -> (%max)
    float o[1];  // line 29
    max_1[0] = x[0];  // line 30
    #pragma unroll
    for (int j = 1; j < 64; j += 1) {  // line 31
      max_1[0] = fmaxf(max_1[0], x[j]);  // line 32
    }
    // line 34
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(max_1), 1);
    max_1[0] = fmaxf(max_1[0], o[0]);  // line 35
    // line 36
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(max_1), 2);
    max_1[0] = fmaxf(max_1[0], o[0]);  // line 37
    // line 38
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(max_1), 4);
    max_1[0] = fmaxf(max_1[0], o[0]);  // line 39
  }
  // line 41: BinaryPointwise.sub (%x, %max) -> (%x)
  #pragma unroll
  for (int i_2 = 0; i_2 < 64; i_2 += 1) {  // line 45
    x[i_2] = __fsub_rn(x[i_2], max_1[0]);  // line 46
  }
  // line 49: UnaryPointwise.exp (%x) -> (%x)
  #pragma unroll
  for (int i_2 = 0; i_2 < 64; i_2 += 1) {  // line 52
    x[i_2] = expf(x[i_2]);  // line 53
  }
  {  // line 56: Reduction.sum (%x) -> (%sum)
    float o[1];  // line 59
    sum[0] = x[0];  // line 60
    #pragma unroll
    for (int j = 1; j < 64; j += 1) {  // line 61
      sum[0] = __fadd_rn(sum[0], x[j]);  // line 62
    }
    // line 64
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(sum), 1);
    sum[0] = __fadd_rn(sum[0], o[0]);  // line 65
    // line 66
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(sum), 2);
    sum[0] = __fadd_rn(sum[0], o[0]);  // line 67
    // line 68
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(sum), 4);
    sum[0] = __fadd_rn(sum[0], o[0]);  // line 69
  }
  // line 71: BinaryPointwise.div (%x, %sum) -> (%x)
  #pragma unroll
  for (int i_2 = 0; i_2 < 64; i_2 += 1) {  // line 75
    x[i_2] = __fdiv_rn(x[i_2], sum[0]);  // line 76
  }
  // line 79: Move (%x) -> (view of %Y)
  #pragma unroll
  for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 82
    // line 83
    *reinterpret_cast<uint4*>(&Y[i * 8192 + tid / 8 * 512 + i_2 * 32 + tid % 8 * 4]) =
        *reinterpret_cast<uint4*>(&x[i_2 * 4]);
  }
}
