// softmax, line 14: Spec (%X) -> (%Y)
// sm_80: grid 4, block 128, dynamic shared memory 0 bytes

extern "C" __global__ void __launch_bounds__(128)
softmax(const float* __restrict__ X, float* __restrict__ Y) {
  const int tid = threadIdx.x;
  const int i = blockIdx.x;  // line 21
  alignas(16) float x[64];  // line 22
  float max_1[1];  // line 23
  float sum[1];  // line 24
  // line 25: Move (view of %X) -> (%x)
  #pragma unroll
  for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 28
    // line 29
    *reinterpret_cast<uint4*>(&x[i_2 * 4]) =
        *reinterpret_cast<const uint4*>(&X[i * 8192 + tid / 8 * 512 + i_2 * 32 + tid % 8 * 4]);
  }
  {  // line 32: Reduction.max (%x) -> (%max)
    float o[1];  // line 35
    max_1[0] = x[0];  // line 36
    #pragma unroll
    for (int j = 1; j < 64; j += 1) {  // line 37
      max_1[0] = fmaxf(max_1[0], x[j]);  // line 38
    }
    // line 40
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(max_1), 1);
    max_1[0] = fmaxf(max_1[0], o[0]);  // line 41
    // line 42
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(max_1), 2);
    max_1[0] = fmaxf(max_1[0], o[0]);  // line 43
    // line 44
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(max_1), 4);
    max_1[0] = fmaxf(max_1[0], o[0]);  // line 45
  }
  // line 47: BinaryPointwise.sub (%x, %max) -> (%x)
  #pragma unroll
  for (int i_2 = 0; i_2 < 64; i_2 += 1) {  // line 51
    x[i_2] = __fsub_rn(x[i_2], max_1[0]);  // line 52
  }
  // line 55: UnaryPointwise.exp (%x) -> (%x)
  #pragma unroll
  for (int i_2 = 0; i_2 < 64; i_2 += 1) {  // line 58
    x[i_2] = expf(x[i_2]);  // line 59
  }
  {  // line 62: Reduction.sum (%x) -> (%sum)
    float o[1];  // line 65
    sum[0] = x[0];  // line 66
    #pragma unroll
    for (int j = 1; j < 64; j += 1) {  // line 67
      sum[0] = __fadd_rn(sum[0], x[j]);  // line 68
    }
    // line 70
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(sum), 1);
    sum[0] = __fadd_rn(sum[0], o[0]);  // line 71
    // line 72
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(sum), 2);
    sum[0] = __fadd_rn(sum[0], o[0]);  // line 73
    // line 74
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(sum), 4);
    sum[0] = __fadd_rn(sum[0], o[0]);  // line 75
  }
  // line 77: BinaryPointwise.div (%x, %sum) -> (%x)
  #pragma unroll
  for (int i_2 = 0; i_2 < 64; i_2 += 1) {  // line 81
    x[i_2] = __fdiv_rn(x[i_2], sum[0]);  // line 82
  }
  // line 85: Move (%x) -> (view of %Y)
  #pragma unroll
  for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 88
    // line 89
    *reinterpret_cast<uint4*>(&Y[i * 8192 + tid / 8 * 512 + i_2 * 32 + tid % 8 * 4]) =
        *reinterpret_cast<uint4*>(&x[i_2 * 4]);
  }
}
