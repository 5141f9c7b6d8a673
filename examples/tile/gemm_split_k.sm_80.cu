// gemm_split_k, line 12: MatMul (%A, %B) -> (%C)
// sm_80: grid 1, block 128, dynamic shared memory 4096 bytes

#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(128)
gemm_split_k(const __half* __restrict__ A, const __half* __restrict__ B, float* __restrict__ C) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  alignas(16) __half a[32];  // line 13
  unsigned* a_u32 = reinterpret_cast<unsigned*>(a);
  // line 14: Move (%A) -> (%a)
  #pragma unroll
  for (int i = 0; i < 16; i += 1) {  // line 17
    // line 18
    *reinterpret_cast<unsigned*>(&a[i * 2]) =
        *reinterpret_cast<const unsigned*>(&A[i % 2 * 2048 + (tid / 4) % 8 * 256 + tid / 32 * 64 +
                        i / 2 * 8 + tid % 4 * 2]);
  }
  alignas(16) __half b[32];  // line 21
  unsigned* b_u32 = reinterpret_cast<unsigned*>(b);
  // line 22: Move (%B) -> (%b)
  #pragma unroll
  for (int i = 0; i < 32; i += 1) {  // line 25
    // line 26
    b[i] =
        B[tid / 32 * 1024 + i / 8 * 256 + (i / 2) % 2 * 128 + tid % 4 * 32 + i % 2 * 16 +
                    (i / 4) % 2 * 8 + (tid / 4) % 8];
  }
  alignas(16) float c[8];  // line 29
  // line 30: Move (%C) -> (%c)
  #pragma unroll
  for (int i = 0; i < 4; i += 1) {  // line 33
    // line 34
    *reinterpret_cast<uint2*>(&c[i * 2]) =
        *reinterpret_cast<uint2*>(&C[i % 2 * 128 + (tid / 4) % 8 * 16 + i / 2 * 8 + tid % 4 * 2]);
  }
  {  // line 37: MatMul (%a, %b) -> (%c)
    alignas(16) float sums[8];  // line 38
    float o[1];  // line 39
    #pragma unroll
    for (int i = 0; i < 8; i += 1) {  // line 44
      sums[i] = 0.0f;  // line 45
    }
    #pragma unroll
    for (int kk = 0; kk < 4; kk += 1) {  // line 47
      #pragma unroll
      for (int j = 0; j < 2; j += 1) {  // line 48
        // line 49: mma.m16n8k16.f32.f16
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
            : "+f"(sums[j * 4]), "+f"(sums[j * 4 + 1]), "+f"(sums[j * 4 + 2]), "+f"(sums[j * 4 + 3])
            : "r"(a_u32[kk * 4]), "r"(a_u32[kk * 4 + 1]), "r"(a_u32[kk * 4 + 2]),
              "r"(a_u32[kk * 4 + 3]), "r"(b_u32[kk * 4 + j * 2]), "r"(b_u32[kk * 4 + j * 2 + 1]));
      }
    }
    float* x = reinterpret_cast<float*>(smem);  // line 54
    #pragma unroll
    for (int i = 0; i < 8; i += 1) {  // line 57
      x[i * 128 + tid] = sums[i];  // line 58
    }
    __syncthreads();  // line 60
    #pragma unroll
    for (int i = 0; i < 8; i += 1) {  // line 61
      sums[i] = x[i * 128 + tid % 32];  // line 62
      #pragma unroll
      for (int j = 1; j < 4; j += 1) {  // line 63
        o[0] = x[i * 128 + j * 32 + tid % 32];  // line 64
        sums[i] = __fadd_rn(sums[i], o[0]);  // line 65
      }
    }
    #pragma unroll
    for (int i = 0; i < 8; i += 1) {  // line 68
      c[i] = __fadd_rn(c[i], sums[i]);  // line 69
    }
  }
  // line 72: Move (%c) -> (%C)
  #pragma unroll
  for (int i = 0; i < 4; i += 1) {  // line 76
    if (threadIdx.x < 32) {
      // line 77
      *reinterpret_cast<uint2*>(&C[i % 2 * 128 + (tid / 4) % 8 * 16 + i / 2 * 8 + tid % 4 * 2]) =
          *reinterpret_cast<uint2*>(&c[i * 2]);
    }
  }
}
