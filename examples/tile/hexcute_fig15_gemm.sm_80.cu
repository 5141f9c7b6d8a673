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
  alignas(16) __half ra[16];  // line 18
  unsigned* ra_u32 = reinterpret_cast<unsigned*>(ra);
  alignas(16) __half rb[16];  // line 19
  unsigned* rb_u32 = reinterpret_cast<unsigned*>(rb);
  alignas(16) float rc[32];  // line 20
  alignas(16) __half half_1[32];  // line 21
  __half* sc = reinterpret_cast<__half*>(smem);  // line 22
  alignas(16) __half rows[32];  // line 23
  // line 24: Init (0) -> (%rc)
  #pragma unroll
  for (int i = 0; i < 32; i += 1) {  // line 26
    rc[i] = 0.0f;  // line 27
  }
  for (int k = 0; k < 4; k += 1) {  // line 30
    // line 31: Move (view of %A) -> (%ra)
    #pragma unroll
    for (int i = 0; i < 8; i += 1) {  // line 35
      // line 36
      *reinterpret_cast<unsigned*>(&ra[i * 2]) =
          *reinterpret_cast<const unsigned*>(&A[bm * 4096 + (tid / 32) % 2 * 2048 + i / 4 * 1024 +
                          i % 2 * 512 + (tid / 4) % 8 * 64 + k * 16 + (i / 2) % 2 * 8 +
                          tid % 4 * 2]);
    }
    // line 39: Move (view of %B) -> (%rb)
    #pragma unroll
    for (int i = 0; i < 8; i += 1) {  // line 42
      // line 43
      *reinterpret_cast<unsigned*>(&rb[i * 2]) =
          *reinterpret_cast<const unsigned*>(&B[bn * 4096 + tid / 64 * 2048 + i / 2 * 512 +
                          (tid / 4) % 8 * 64 + k * 16 + i % 2 * 8 + tid % 4 * 2]);
    }
    // line 46: MatMul (%ra, %rb) -> (%rc)
    #pragma unroll
    for (int i = 0; i < 2; i += 1) {  // line 50
      #pragma unroll
      for (int j = 0; j < 4; j += 1) {  // line 51
        // line 52: mma.m16n8k16.f32.f16
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
            : "+f"(rc[j * 8 + i * 4]), "+f"(rc[j * 8 + i * 4 + 1]), "+f"(rc[j * 8 + i * 4 + 2]),
              "+f"(rc[j * 8 + i * 4 + 3])
            : "r"(ra_u32[i * 4]), "r"(ra_u32[i * 4 + 1]), "r"(ra_u32[i * 4 + 2]),
              "r"(ra_u32[i * 4 + 3]), "r"(rb_u32[j * 2]), "r"(rb_u32[j * 2 + 1]));
      }
    }
  }
  // line 59: UnaryPointwise.cast (%rc) -> (%half)
  #pragma unroll
  for (int i = 0; i < 16; i += 1) {  // line 62
    // line 63
    *reinterpret_cast<__half2*>(&half_1[i * 2]) =
        __float22half2_rn(*reinterpret_cast<float2*>(&rc[i * 2]));
  }
  // line 66: Move (%half) -> (%sc)
  #pragma unroll
  for (int i = 0; i < 16; i += 1) {  // line 69
    // line 70
    *reinterpret_cast<unsigned*>(&sc[swizzle<3, 3, 3>((tid / 32) % 2 * 2048 + i % 4 * 512 +
                        (tid / 4) % 8 * 64 + tid / 64 * 32 + i / 4 * 8 + tid % 4 * 2)]) =
        *reinterpret_cast<unsigned*>(&half_1[i * 2]);
  }
  __syncthreads();  // line 73
  // line 74: Move (%sc) -> (%rows)
  #pragma unroll
  for (int i = 0; i < 4; i += 1) {  // line 77
    // line 78
    *reinterpret_cast<uint4*>(&rows[i * 8]) =
        *reinterpret_cast<uint4*>(&sc[swizzle<3, 3, 3>(i * 1024 + tid * 8)]);
  }
  // line 81: Move (%rows) -> (view of %C)
  #pragma unroll
  for (int i = 0; i < 4; i += 1) {  // line 84
    // line 85
    *reinterpret_cast<uint4*>(&C[bm * 8192 + i * 2048 + tid / 8 * 128 + bn * 64 + tid % 8 * 8]) =
        *reinterpret_cast<uint4*>(&rows[i * 8]);
  }
}
