// gemm, line 16: MatMul.set (%A, %B) -> (%C)
// sm_80: grid 4, block 128, dynamic shared memory 8192 bytes

#include <cuda_fp16.h>

// Flips the B bits above the lowest M ones by the B bits that lie S higher.
template <int B, int M, int S, typename T>
__device__ __forceinline__ T swizzle(T i) {
  return i ^ ((i >> S) & (((T(1) << B) - 1) << M));
}

extern "C" __global__ void __launch_bounds__(128)
gemm(const __half* __restrict__ A, const __half* __restrict__ B, __half* __restrict__ C) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  const int bm = blockIdx.x % 2;  // line 17
  const int bn = blockIdx.x / 2;  // line 17
  alignas(16) float c[32];  // line 18
  // line 19: Init (0) -> (%c)
  #pragma unroll
  for (int i = 0; i < 32; i += 1) {  // line 21
    c[i] = 0.0f;  // line 22
  }
  for (int k = 0; k < 4; k += 1) {  // line 25
    alignas(16) __half a[16];  // line 26
    unsigned* a_u32 = reinterpret_cast<unsigned*>(a);
    // line 27: Move (view of %A) -> (%a)
    #pragma unroll
    for (int i = 0; i < 8; i += 1) {  // line 31
      // line 32
      *reinterpret_cast<unsigned*>(&a[i * 2]) =
          *reinterpret_cast<const unsigned*>(&A[bm * 4096 + (tid / 32) % 2 * 2048 + i / 4 * 1024 +
                          i % 2 * 512 + (tid / 4) % 8 * 64 + k * 16 + (i / 2) % 2 * 8 +
                          tid % 4 * 2]);
    }
    alignas(16) __half b[16];  // line 35
    unsigned* b_u32 = reinterpret_cast<unsigned*>(b);
    // line 36: Move (view of %B) -> (%b)
    #pragma unroll
    for (int i = 0; i < 8; i += 1) {  // line 39
      // line 40
      *reinterpret_cast<unsigned*>(&b[i * 2]) =
          *reinterpret_cast<const unsigned*>(&B[bn * 4096 + tid / 64 * 2048 + i / 2 * 512 +
                          (tid / 4) % 8 * 64 + k * 16 + i % 2 * 8 + tid % 4 * 2]);
    }
    // line 43: MatMul (%a, %b) -> (%c)
    #pragma unroll
    for (int i = 0; i < 2; i += 1) {  // line 47
      #pragma unroll
      for (int j = 0; j < 4; j += 1) {  // line 48
        // line 49: mma.m16n8k16.f32.f16
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
            : "+f"(c[j * 8 + i * 4]), "+f"(c[j * 8 + i * 4 + 1]), "+f"(c[j * 8 + i * 4 + 2]),
              "+f"(c[j * 8 + i * 4 + 3])
            : "r"(a_u32[i * 4]), "r"(a_u32[i * 4 + 1]), "r"(a_u32[i * 4 + 2]),
              "r"(a_u32[i * 4 + 3]), "r"(b_u32[j * 2]), "r"(b_u32[j * 2 + 1]));
      }
    }
  }
  alignas(16) __half half_1[32];  // line 56
  // line 57: UnaryPointwise.cast (%c) -> (%half)
  #pragma unroll
  for (int i = 0; i < 16; i += 1) {  // line 60
    // line 61
    *reinterpret_cast<__half2*>(&half_1[i * 2]) =
        __float22half2_rn(*reinterpret_cast<float2*>(&c[i * 2]));
  }
  __half* shared = reinterpret_cast<__half*>(smem);  // line 64
  // line 65: Move (%half) -> (%shared)
  #pragma unroll
  for (int i = 0; i < 16; i += 1) {  // line 68
    // line 69
    *reinterpret_cast<unsigned*>(&shared[swizzle<3, 3, 3>((tid / 32) % 2 * 2048 + i % 4 * 512 +
                        (tid / 4) % 8 * 64 + tid / 64 * 32 + i / 4 * 8 + tid % 4 * 2)]) =
        *reinterpret_cast<unsigned*>(&half_1[i * 2]);
  }
  alignas(16) __half rows[32];  // line 72
  __syncthreads();  // line 73
  // line 74: Move (%shared) -> (%rows)
  #pragma unroll
  for (int i = 0; i < 4; i += 1) {  // line 77
    // line 78
    *reinterpret_cast<uint4*>(&rows[i * 8]) =
        *reinterpret_cast<uint4*>(&shared[swizzle<3, 3, 3>(i * 1024 + tid * 8)]);
  }
  // line 81: Move (%rows) -> (view of %C)
  #pragma unroll
  for (int i = 0; i < 4; i += 1) {  // line 84
    // line 85
    *reinterpret_cast<uint4*>(&C[bm * 8192 + i * 2048 + tid / 8 * 128 + bn * 64 + tid % 8 * 8]) =
        *reinterpret_cast<uint4*>(&rows[i * 8]);
  }
}
