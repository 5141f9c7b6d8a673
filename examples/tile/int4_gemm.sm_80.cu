// int4_gemm, line 18: Spec (%A, %B) -> (%C)
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
  const int bm = blockIdx.x % 2;  // line 22
  const int bn = blockIdx.x / 2;  // line 22
  __half* sa = reinterpret_cast<__half*>(smem);  // line 23
  unsigned char* sb = reinterpret_cast<unsigned char*>(smem + 8192);  // line 24
  alignas(16) __half ra[64];  // line 25
  unsigned* ra_u32 = reinterpret_cast<unsigned*>(ra);
  alignas(16) unsigned char packed[64];  // line 26
  unsigned* packed_u32 = reinterpret_cast<unsigned*>(packed);
  alignas(16) __half rb[128];  // line 27
  unsigned* rb_u32 = reinterpret_cast<unsigned*>(rb);
  alignas(16) float rc[64];  // line 28
  alignas(16) __half half_1[64];  // line 29
  // line 30: Init (0) -> (%rc)
  #pragma unroll
  for (int i = 0; i < 64; i += 1) {  // line 32
    rc[i] = 0.0f;  // line 33
  }
  for (int k = 0; k < 2; k += 1) {  // line 36
    __syncthreads();  // line 37
    // line 38: Move (view of %A) -> (%sa)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 41
      // line 42: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&sa[swizzle<3, 3, 3>(i * 1024 + tid * 8)])),
            "l"(&A[bm * 8192 + i * 2048 + tid / 8 * 128 + k * 64 + tid % 8 * 8])
          : "memory");
    }
    // line 45: Move (view of %B) -> (%sb)
    #pragma unroll
    for (int i = 0; i < 2; i += 1) {  // line 49
      // line 50: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&sb[swizzle<2, 4, 3>(i * 2048 + tid * 16)])),
            "l"(&B[bn * 8192 + i * 4096 + tid / 4 * 128 + k * 64 + tid % 4 * 16])
          : "memory");
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 53
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 54
    __syncthreads();  // line 55
    // line 56: Move (%sa) -> (%ra)
    #pragma unroll
    for (int i = 0; i < 8; i += 1) {  // line 59
      // line 60: ldmatrix.x4.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(ra_u32[i * 4]), "=r"(ra_u32[i * 4 + 1]), "=r"(ra_u32[i * 4 + 2]),
            "=r"(ra_u32[i * 4 + 3])
          : "r"(shared_address(&sa[swizzle<3, 3, 3>((tid / 32) % 2 * 2048 + i % 2 * 1024 +
                            tid % 16 * 64 + i / 2 * 16 + (tid / 16) % 2 * 8)]))
          : "memory");
    }
    // line 63: Move (%sb) -> (%packed)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 66
      // line 67: ldmatrix.x4.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(packed_u32[i * 4]), "=r"(packed_u32[i * 4 + 1]), "=r"(packed_u32[i * 4 + 2]),
            "=r"(packed_u32[i * 4 + 3])
          : "r"(shared_address(&sb[swizzle<2, 4, 3>(tid / 64 * 2048 + tid % 32 * 64 + i * 16)]))
          : "memory");
    }
    // line 70: UnaryPointwise.cast (%packed) -> (%rb)
    #pragma unroll
    for (int i = 0; i < 64; i += 1) {  // line 73
      // line 74
      *reinterpret_cast<__half2*>(&rb[i * 2]) =
          __hsub2(__halves2half2(__ushort_as_half(0x6400 | ((*reinterpret_cast<unsigned char*>(&packed[i]) & 0xf) ^ 8)),
              __ushort_as_half(0x6400 | ((*reinterpret_cast<unsigned char*>(&packed[i]) >> 4) ^ 8))),
              __float2half2_rn(1032.0f));
    }
    // line 77: MatMul (%ra, %rb) -> (%rc)
    #pragma unroll
    for (int kk = 0; kk < 4; kk += 1) {  // line 81
      #pragma unroll
      for (int i = 0; i < 2; i += 1) {  // line 82
        #pragma unroll
        for (int j = 0; j < 8; j += 1) {  // line 83
          // line 84: mma.m16n8k16.f32.f16
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
              "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
              : "+f"(rc[j * 8 + i * 4]), "+f"(rc[j * 8 + i * 4 + 1]), "+f"(rc[j * 8 + i * 4 + 2]),
                "+f"(rc[j * 8 + i * 4 + 3])
              : "r"(ra_u32[kk * 8 + i * 4]), "r"(ra_u32[kk * 8 + i * 4 + 1]),
                "r"(ra_u32[kk * 8 + i * 4 + 2]), "r"(ra_u32[kk * 8 + i * 4 + 3]),
                "r"(rb_u32[kk * 16 + j * 2]), "r"(rb_u32[kk * 16 + j * 2 + 1]));
        }
      }
    }
  }
  // line 92: UnaryPointwise.cast (%rc) -> (%half)
  #pragma unroll
  for (int i = 0; i < 32; i += 1) {  // line 95
    // line 96
    *reinterpret_cast<__half2*>(&half_1[i * 2]) =
        __float22half2_rn(*reinterpret_cast<float2*>(&rc[i * 2]));
  }
  // line 99: Move (%half) -> (view of %C)
  #pragma unroll
  for (int i = 0; i < 32; i += 1) {  // line 103
    // line 104
    *reinterpret_cast<unsigned*>(&C[bm * 16384 + (tid / 32) % 2 * 8192 + i % 4 * 2048 +
                    (tid / 4) % 8 * 256 + bn * 128 + tid / 64 * 64 + i / 4 * 8 + tid % 4 * 2]) =
        *reinterpret_cast<unsigned*>(&half_1[i * 2]);
  }
}
