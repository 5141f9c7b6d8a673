// softmax, line 13: Spec (%X) -> (%Y)
// sm_80: grid 4, block 128, dynamic shared memory 0 bytes

extern "C" __global__ void __launch_bounds__(128)
softmax(const float* __restrict__ X, float* __restrict__ Y) {
  const int tid = threadIdx.x;
  const int i = blockIdx.x;  // line 20
  alignas(16) float x[64];  // line 21
  // line 22: Move (view of %X) -> (%x)
  #pragma unroll
  for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 25
    // line 26
    *reinterpret_cast<uint4*>(&x[i_2 * 4]) =
        *reinterpret_cast<const uint4*>(&X[i * 8192 + tid / 8 * 512 + i_2 * 32 + tid % 8 * 4]);
  }
  alignas(16) float e[64];  // line 29
  float e_3[1];  // line 30
  {  // line 31: Reduction.max (%x) -> (%e_3)
    float o[1];  // line 34
    e_3[0] = x[0];  // line 35
    #pragma unroll
    for (int j = 1; j < 64; j += 1) {  // line 36
      e_3[0] = fmaxf(e_3[0], x[j]);  // line 37
    }
    // line 39
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(e_3), 1);
    e_3[0] = fmaxf(e_3[0], o[0]);  // line 40
    // line 41
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(e_3), 2);
    e_3[0] = fmaxf(e_3[0], o[0]);  // line 42
    // line 43
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(e_3), 4);
    e_3[0] = fmaxf(e_3[0], o[0]);  // line 44
  }
  // line 46: BinaryPointwise.sub (%x, %e_3) -> (%e)
  #pragma unroll
  for (int i_2 = 0; i_2 < 64; i_2 += 1) {  // line 50
    e[i_2] = __fsub_rn(x[i_2], e_3[0]);  // line 51
  }
  // line 54: UnaryPointwise.exp (%e) -> (%e)
  #pragma unroll
  for (int i_2 = 0; i_2 < 64; i_2 += 1) {  // line 57
    e[i_2] = expf(e[i_2]);  // line 58
  }
  float Y_2[1];  // line 61
  {  // line 62: Reduction.sum (%e) -> (%Y_2)
    float o[1];  // line 65
    Y_2[0] = e[0];  // line 66
    #pragma unroll
    for (int j = 1; j < 64; j += 1) {  // line 67
      Y_2[0] = __fadd_rn(Y_2[0], e[j]);  // line 68
    }
    // line 70
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(Y_2), 1);
    Y_2[0] = __fadd_rn(Y_2[0], o[0]);  // line 71
    // line 72
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(Y_2), 2);
    Y_2[0] = __fadd_rn(Y_2[0], o[0]);  // line 73
    // line 74
    *reinterpret_cast<unsigned*>(o) =
        __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(Y_2), 4);
    Y_2[0] = __fadd_rn(Y_2[0], o[0]);  // line 75
  }
  {  // line 77: BinaryPointwise.div (%e, %Y_2) -> (view of %Y)
    alignas(16) float r[64];  // line 78
    // line 79: BinaryPointwise.div (%e, %Y_2) -> (%r)
    #pragma unroll
    for (int i_2 = 0; i_2 < 64; i_2 += 1) {  // line 83
      r[i_2] = __fdiv_rn(e[i_2], Y_2[0]);  // line 84
    }
    // line 87: Move (%r) -> (view of %Y)
    #pragma unroll
    for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 90
      // line 91
      *reinterpret_cast<uint4*>(&Y[i * 8192 + tid / 8 * 512 + i_2 * 32 + tid % 8 * 4]) =
          *reinterpret_cast<uint4*>(&r[i_2 * 4]);
    }
  }
}
