// int4_gemm, line 16: Spec (%A, %B) -> (%C)
// sm_80: grid 4, block 128, dynamic shared memory 12288 bytes

#include <cuda_fp16.h>

// A pointer to shared memory as PTX takes it.
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// Flips the B bits above the lowest M ones by the B bits that lie S higher.
template <int B, int M, int S, typename T>
__device__ __forceinline__ T swizzle(T i) {
  return i ^ ((i >> S) & (((T(1) << B) - 1) << M));
}

extern "C" __global__ void __launch_bounds__(128)
int4_gemm(
    const __half* __restrict__ A,
    const unsigned char* __restrict__ B,
    __half* __restrict__ C) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  const int bm = blockIdx.x % 2;  // line 17
  const int bn = blockIdx.x / 2;  // line 17
  __half* sa = reinterpret_cast<__half*>(smem);  // line 18
  unsigned char* sb = reinterpret_cast<unsigned char*>(smem + 8192);  // line 19
  alignas(16) __half ra[128];  // line 20
  unsigned* ra_u32 = reinterpret_cast<unsigned*>(ra);
  alignas(16) unsigned char packed[32];  // line 21
  alignas(16) __half rb[64];  // line 22
  unsigned* rb_u32 = reinterpret_cast<unsigned*>(rb);
  alignas(16) float rc[64];  // line 23
  alignas(16) __half half_1[64];  // line 24
  // line 25: Init (0) -> (%rc)
  #pragma unroll
  for (int i = 0; i < 64; i += 1) {  // line 27
    rc[i] = 0.0f;  // line 28
  }
  for (int k = 0; k < 2; k += 1) {  // line 31
    __syncthreads();  // line 32
    // line 33: Move (view of %A) -> (%sa)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 36
      // line 37: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&sa[swizzle<3, 3, 3>(i * 1024 + tid * 8)])),
            "l"(&A[bm * 8192 + i * 2048 + tid / 8 * 128 + k * 64 + tid % 8 * 8])
          : "memory");
    }
    // line 40: Move (view of %B) -> (%sb)
    #pragma unroll
    for (int i = 0; i < 2; i += 1) {  // line 43
      // line 44: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&sb[swizzle<1, 4, 3>(i * 2048 + tid * 16)])),
            "l"(&B[bn * 8192 + i * 4096 + tid / 2 * 64 + k * 32 + tid % 2 * 16])
          : "memory");
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 47
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 48
    __syncthreads();  // line 49
    // line 50: Move (%sa) -> (%ra)
    #pragma unroll
    for (int i = 0; i < 16; i += 1) {  // line 53
      // line 54: ldmatrix.x4.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(ra_u32[i * 4]), "=r"(ra_u32[i * 4 + 1]), "=r"(ra_u32[i * 4 + 2]),
            "=r"(ra_u32[i * 4 + 3])
          : "r"(shared_address(&sa[swizzle<3, 3, 3>(i % 4 * 1024 + tid % 16 * 64 + i / 4 * 16 +
                            (tid / 16) % 2 * 8)]))
          : "memory");
    }
    // line 57: Move (%sb) -> (%packed)
    #pragma unroll
    for (int i = 0; i < 32; i += 1) {  // line 60
      // line 61
      *reinterpret_cast<unsigned char*>(&packed[i]) =
          *reinterpret_cast<unsigned char*>(&sb[swizzle<1, 4, 3>(tid / 32 * 1024 +
                              (i / 2) % 4 * 256 + (tid / 4) % 8 * 32 + i / 8 * 8 + i % 2 * 4 +
                              tid % 4)]);
    }
    // line 64: UnaryPointwise.cast (%packed) -> (%rb)
    #pragma unroll
    for (int i = 0; i < 32; i += 1) {  // line 67
      // line 68
      *reinterpret_cast<__half2*>(&rb[i * 2]) =
          __hsub2(__halves2half2(__ushort_as_half(0x6400 | ((*reinterpret_cast<unsigned char*>(&packed[i]) & 0xf) ^ 8)),
              __ushort_as_half(0x6400 | ((*reinterpret_cast<unsigned char*>(&packed[i]) >> 4) ^ 8))),
              __float2half2_rn(1032.0f));
    }
    // line 71: MatMul (%ra, %rb) -> (%rc)
    #pragma unroll
    for (int kk = 0; kk < 4; kk += 1) {  // line 75
      #pragma unroll
      for (int i = 0; i < 4; i += 1) {  // line 76
        #pragma unroll
        for (int j = 0; j < 4; j += 1) {  // line 77
          // line 78: mma.m16n8k16.f32.f16
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
              "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
              : "+f"(rc[j * 16 + i * 4]), "+f"(rc[j * 16 + i * 4 + 1]),
                "+f"(rc[j * 16 + i * 4 + 2]), "+f"(rc[j * 16 + i * 4 + 3])
              : "r"(ra_u32[kk * 16 + i * 4]), "r"(ra_u32[kk * 16 + i * 4 + 1]),
                "r"(ra_u32[kk * 16 + i * 4 + 2]), "r"(ra_u32[kk * 16 + i * 4 + 3]),
                "r"(rb_u32[kk * 8 + j * 2]), "r"(rb_u32[kk * 8 + j * 2 + 1]));
        }
      }
    }
  }
  // line 86: UnaryPointwise.cast (%rc) -> (%half)
  #pragma unroll
  for (int i = 0; i < 32; i += 1) {  // line 89
    // line 90
    *reinterpret_cast<__half2*>(&half_1[i * 2]) =
        __float22half2_rn(*reinterpret_cast<float2*>(&rc[i * 2]));
  }
  // line 93: Move (%half) -> (view of %C)
  #pragma unroll
  for (int i = 0; i < 32; i += 1) {  // line 96
    // line 97
    *reinterpret_cast<unsigned*>(&C[bm * 16384 + i % 8 * 2048 + (tid / 4) % 8 * 256 + bn * 128 +
                    tid / 32 * 32 + i / 8 * 8 + tid % 4 * 2]) =
        *reinterpret_cast<unsigned*>(&half_1[i * 2]);
  }
}
