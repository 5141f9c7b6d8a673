// rearrange, line 18: Spec (%A, %B, %C) -> (%O)
// sm_80: grid 4, block 32, dynamic shared memory 0 bytes

extern "C" __global__ void __launch_bounds__(32)
rearrange(
    const double* __restrict__ A,
    const double* __restrict__ B,
    const double* __restrict__ C,
    double* __restrict__ O) {
  const int tid = threadIdx.x;
  const int i = blockIdx.x;  // line 19
  alignas(16) double a[16];  // line 20
  alignas(16) double b[32];  // line 21
  alignas(16) double c[32];  // line 22
  alignas(16) double ab[16];  // line 23
  alignas(16) double o[16];  // line 24
  // line 25: Move (view of %A) -> (%a)
  #pragma unroll
  for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 28
    a[i_2] = A[i * 512 + i_2 % 2 * 256 + tid / 4 * 32 + i_2 / 2 * 4 + tid % 4];  // line 29
  }
  // line 32: Move (%B) -> (%b)
  #pragma unroll
  for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 35
    b[i_2] = B[i_2 / 4 * 128 + tid % 4 * 32 + i_2 % 4 * 8 + tid / 4];  // line 36
  }
  // line 39: Move (%C) -> (%c)
  #pragma unroll
  for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 42
    c[i_2] = C[i_2 / 4 * 128 + tid % 4 * 32 + i_2 % 4 * 8 + tid / 4];  // line 43
  }
  // line 46: MatMul.set (%a, %b) -> (%ab)
  // line 47: Init (0) -> (%ab)
  #pragma unroll
  for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 49
    ab[i_2] = 0.0;  // line 50
  }
  // line 53: MatMul (%a, %b) -> (%ab)
  #pragma unroll
  for (int kk = 0; kk < 8; kk += 1) {  // line 57
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 58
      #pragma unroll
      for (int j = 0; j < 4; j += 1) {  // line 59
        // line 60: mma.m8n8k4.f64.f64
        asm volatile(
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};\n"
            : "+d"(ab[j * 4 + i_2 * 2]), "+d"(ab[j * 4 + i_2 * 2 + 1])
            : "d"(a[kk * 2 + i_2]), "d"(b[kk * 4 + j]));
      }
    }
  }
  {  // line 68: MatMul.set (%ab, %c) -> (%o)
    // line 69: Init (0) -> (%o)
    #pragma unroll
    for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 71
      o[i_2] = 0.0;  // line 72
    }
    alignas(16) double ab_r[16];  // line 75
    {  // line 76: Move (%ab) -> (%ab_r)
      const int l = threadIdx.x;  // line 77
      alignas(16) double x[16];  // line 80
      double put[1];  // line 81
      double get[1];  // line 82
      #pragma unroll
      for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 83
        x[i_2] = ab[i_2 / 4 * 4 + i_2 % 2 * 2 + (i_2 / 2) % 2];  // line 84
      }
      #pragma unroll
      for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 86
        #pragma unroll
        for (int j = 0; j < 2; j += 1) {  // line 87
          put[0] = x[i_2 * 4 + j];  // line 88
          if (l % 2 == 0) {  // line 89
            put[0] = x[i_2 * 4 + j + 2];  // line 90
          }
          // line 92
          *reinterpret_cast<unsigned long long*>(get) =
              __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned long long*>(put), 1);
          if (l % 2 == 0) {  // line 93
            x[i_2 * 4 + j + 2] = get[0];  // line 94
          }
          if (l % 2 == 1) {  // line 96
            x[i_2 * 4 + j] = get[0];  // line 97
          }
        }
      }
      #pragma unroll
      for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 101
        #pragma unroll
        for (int j = 0; j < 2; j += 1) {  // line 102
          put[0] = x[i_2 * 4 + j];  // line 103
          if ((l / 2) % 2 == 0) {  // line 104
            put[0] = x[i_2 * 4 + j + 2];  // line 105
          }
          // line 107
          *reinterpret_cast<unsigned long long*>(get) =
              __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned long long*>(put), 2);
          if ((l / 2) % 2 == 0) {  // line 108
            x[i_2 * 4 + j + 2] = get[0];  // line 109
          }
          if ((l / 2) % 2 == 1) {  // line 111
            x[i_2 * 4 + j] = get[0];  // line 112
          }
        }
      }
      #pragma unroll
      for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 116
        ab_r[i_2] = x[i_2];  // line 117
      }
    }
    // line 120: MatMul (%ab_r, %c) -> (%o)
    #pragma unroll
    for (int kk = 0; kk < 8; kk += 1) {  // line 124
      #pragma unroll
      for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 125
        #pragma unroll
        for (int j = 0; j < 4; j += 1) {  // line 126
          // line 127: mma.m8n8k4.f64.f64
          asm volatile(
              "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};\n"
              : "+d"(o[j * 4 + i_2 * 2]), "+d"(o[j * 4 + i_2 * 2 + 1])
              : "d"(ab_r[kk * 2 + i_2]), "d"(c[kk * 4 + j]));
        }
      }
    }
  }
  // line 135: Move (%o) -> (view of %O)
  #pragma unroll
  for (int i_2 = 0; i_2 < 8; i_2 += 1) {  // line 138
    // line 139
    *reinterpret_cast<uint4*>(&O[i * 512 + i_2 % 2 * 256 + tid / 4 * 32 + i_2 / 2 * 8 +
                    tid % 4 * 2]) = *reinterpret_cast<uint4*>(&o[i_2 * 2]);
  }
}
