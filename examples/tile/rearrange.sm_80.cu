// rearrange, line 18: Spec (%A, %B, %C) -> (%O)
// sm_80: grid 4, block 32, dynamic shared memory 0 bytes

extern "C" __global__ void __launch_bounds__(32)
rearrange(
    const double* __restrict__ A,
    const double* __restrict__ B,
    const double* __restrict__ C,
    double* __restrict__ O) {
  const int tid = threadIdx.x;
  const int i = blockIdx.x;  // line 22
  alignas(16) double a[16];  // line 23
  // line 24: Move (view of %A) -> (%a)
  #pragma unroll
  for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 27
    a[i_2] = A[i * 512 + i_2 % 2 * 256 + tid / 4 * 32 + i_2 / 2 * 4 + tid % 4];  // line 28
  }
  alignas(16) double b[32];  // line 31
  // line 32: Move (%B) -> (%b)
  #pragma unroll
  for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 35
    b[i_2] = B[i_2 / 4 * 128 + tid % 4 * 32 + i_2 % 4 * 8 + tid / 4];  // line 36
  }
  alignas(16) double c[32];  // line 39
  // line 40: Move (%C) -> (%c)
  #pragma unroll
  for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 43
    c[i_2] = C[i_2 / 4 * 128 + tid % 4 * 32 + i_2 % 4 * 8 + tid / 4];  // line 44
  }
  alignas(16) double O_2[16];  // line 47
  // line 48: MatMul.set (%a, %b) -> (%O_2)
  // line 49: Init (0) -> (%O_2)
  #pragma unroll
  for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 51
    O_2[i_2] = 0.0;  // line 52
  }
  // line 55: MatMul (%a, %b) -> (%O_2)
  #pragma unroll
  for (int kk = 0; kk < 8; kk += 1) {  // line 59
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 60
      #pragma unroll
      for (int j = 0; j < 4; j += 1) {  // line 61
        // line 62: mma.m8n8k4.f64.f64
        asm volatile(
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};\n"
            : "+d"(O_2[j * 4 + i_2 * 2]), "+d"(O_2[j * 4 + i_2 * 2 + 1])
            : "d"(a[kk * 2 + i_2]), "d"(b[kk * 4 + j]));
      }
    }
  }
  {  // line 70: MatMul.set (%O_2, %c) -> (view of %O)
    alignas(16) double acc[16];  // line 71
    // line 72: Init (0) -> (%acc)
    #pragma unroll
    for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 74
      acc[i_2] = 0.0;  // line 75
    }
    alignas(16) double O_2_r[16];  // line 78
    {  // line 79: Move (%O_2) -> (%O_2_r)
      const int l = threadIdx.x;  // line 80
      alignas(16) double x[16];  // line 83
      double put[1];  // line 84
      double get[1];  // line 85
      #pragma unroll
      for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 86
        x[i_2] = O_2[i_2 / 4 * 4 + i_2 % 2 * 2 + (i_2 / 2) % 2];  // line 87
      }
      #pragma unroll
      for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 89
        #pragma unroll
        for (int j = 0; j < 2; j += 1) {  // line 90
          put[0] = x[i_2 * 4 + j];  // line 91
          if (l % 2 == 0) {  // line 92
            put[0] = x[i_2 * 4 + j + 2];  // line 93
          }
          // line 95
          *reinterpret_cast<unsigned long long*>(get) =
              __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned long long*>(put), 1);
          if (l % 2 == 0) {  // line 96
            x[i_2 * 4 + j + 2] = get[0];  // line 97
          }
          if (l % 2 == 1) {  // line 99
            x[i_2 * 4 + j] = get[0];  // line 100
          }
        }
      }
      #pragma unroll
      for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 104
        #pragma unroll
        for (int j = 0; j < 2; j += 1) {  // line 105
          put[0] = x[i_2 * 4 + j];  // line 106
          if ((l / 2) % 2 == 0) {  // line 107
            put[0] = x[i_2 * 4 + j + 2];  // line 108
          }
          // line 110
          *reinterpret_cast<unsigned long long*>(get) =
              __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned long long*>(put), 2);
          if ((l / 2) % 2 == 0) {  // line 111
            x[i_2 * 4 + j + 2] = get[0];  // line 112
          }
          if ((l / 2) % 2 == 1) {  // line 114
            x[i_2 * 4 + j] = get[0];  // line 115
          }
        }
      }
      #pragma unroll
      for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 119
        O_2_r[i_2] = x[i_2];  // line 120
      }
    }
    // line 123: MatMul (%O_2_r, %c) -> (%acc)
    #pragma unroll
    for (int kk = 0; kk < 8; kk += 1) {  // line 127
      #pragma unroll
      for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 128
        #pragma unroll
        for (int j = 0; j < 4; j += 1) {  // line 129
          // line 130: mma.m8n8k4.f64.f64
          asm volatile(
              "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};\n"
              : "+d"(acc[j * 4 + i_2 * 2]), "+d"(acc[j * 4 + i_2 * 2 + 1])
              : "d"(O_2_r[kk * 2 + i_2]), "d"(c[kk * 4 + j]));
        }
      }
    }
    // line 137: Move (%acc) -> (view of %O)
    #pragma unroll
    for (int i_2 = 0; i_2 < 8; i_2 += 1) {  // line 140
      // line 141
      *reinterpret_cast<uint4*>(&O[i * 512 + i_2 % 2 * 256 + tid / 4 * 32 + i_2 / 2 * 8 +
                      tid % 4 * 2]) = *reinterpret_cast<uint4*>(&acc[i_2 * 2]);
    }
  }
}
