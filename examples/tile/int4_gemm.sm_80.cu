// int4_gemm, line 18: Spec (%A, %B) -> (%C)
// sm_80: grid 4, block 128, dynamic shared memory 12288 bytes

#include <cuda_fp16.h>

// The address of an array element in shared memory, as PTX expects it.
template <typename T>
__device__ __forceinline__ unsigned shared_address(const T* array, int i = 0) {
  return static_cast<unsigned>(__cvta_generic_to_shared(array)) + i * int(sizeof(T));
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
  alignas(16) float c[64];  // line 23
  // line 24: Init (0) -> (%c)
  #pragma unroll
  for (int i = 0; i < 64; i += 1) {  // line 26
    c[i] = 0.0f;  // line 27
  }
  const __half* A_next = &A[bm * 8192 + tid / 8 * 128 + tid % 8 * 8];
  const unsigned char* B_next = &B[bn * 8192 + tid / 4 * 128 + tid % 4 * 16];
  for (int k = 0; k < 2; k += 1) {  // line 30
    __half* a = reinterpret_cast<__half*>(smem);  // line 31
    __syncthreads();  // line 32
    // line 33: Move (view of %A) -> (%a)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 36
      // line 37: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&a[swizzle<3, 3, 3>(i * 1024 + tid * 8)])), "l"(&A_next[i * 2048])
          : "memory");
    }
    unsigned char* packed = reinterpret_cast<unsigned char*>(smem + 8192);  // line 40
    // line 41: Move (view of %B) -> (%packed)
    #pragma unroll
    for (int i = 0; i < 2; i += 1) {  // line 45
      // line 46: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&packed[swizzle<2, 4, 3>(i * 2048 + tid * 16)])),
            "l"(&B_next[i * 4096])
          : "memory");
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 49
    alignas(16) __half b[64];  // line 50
    unsigned* b_u32 = reinterpret_cast<unsigned*>(b);
    {  // line 51: UnaryPointwise.cast (%packed) -> (%b)
      alignas(16) unsigned char r[32];  // line 52
      unsigned* r_u32 = reinterpret_cast<unsigned*>(r);
      asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 53
      __syncthreads();  // line 54
      // line 55: Move (%packed) -> (%r)
      #pragma unroll
      for (int i = 0; i < 2; i += 1) {  // line 58
        // line 59: ldmatrix.x4.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(r_u32[i * 4]), "=r"(r_u32[i * 4 + 1]), "=r"(r_u32[i * 4 + 2]),
              "=r"(r_u32[i * 4 + 3])
            : "r"(shared_address(&packed[swizzle<2, 4, 3>(tid / 32 * 1024 + tid % 16 * 64 + i * 32 +
                              (tid / 16) % 2 * 16)]))
            : "memory");
      }
      // line 62: UnaryPointwise.cast (%r) -> (%b)
      #pragma unroll
      for (int i = 0; i < 32; i += 1) {  // line 65
        // line 66
        *reinterpret_cast<__half2*>(&b[i * 2]) =
            __hsub2(__halves2half2(__ushort_as_half(0x6400 | ((*reinterpret_cast<unsigned char*>(&r[i]) & 0xf) ^ 8)),
                __ushort_as_half(0x6400 | ((*reinterpret_cast<unsigned char*>(&r[i]) >> 4) ^ 8))),
                __float2half2_rn(1032.0f));
      }
    }
    {  // line 70: MatMul (%a, %b) -> (%c)
      alignas(16) __half r_2[128];  // line 71
      unsigned* r_2_u32 = reinterpret_cast<unsigned*>(r_2);
      // line 72: Move (%a) -> (%r_2)
      #pragma unroll
      for (int i = 0; i < 16; i += 1) {  // line 75
        // line 76: ldmatrix.x4.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(r_2_u32[i * 4]), "=r"(r_2_u32[i * 4 + 1]), "=r"(r_2_u32[i * 4 + 2]),
              "=r"(r_2_u32[i * 4 + 3])
            : "r"(shared_address(&a[swizzle<3, 3, 3>(i % 4 * 1024 + tid % 16 * 64 + i / 4 * 16 +
                              (tid / 16) % 2 * 8)]))
            : "memory");
      }
      // line 79: MatMul (%r_2, %b) -> (%c)
      #pragma unroll
      for (int kk = 0; kk < 4; kk += 1) {  // line 83
        #pragma unroll
        for (int i = 0; i < 4; i += 1) {  // line 84
          #pragma unroll
          for (int j = 0; j < 4; j += 1) {  // line 85
            // line 86: mma.m16n8k16.f32.f16
            asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                : "+f"(c[j * 16 + i * 4]), "+f"(c[j * 16 + i * 4 + 1]), "+f"(c[j * 16 + i * 4 + 2]),
                  "+f"(c[j * 16 + i * 4 + 3])
                : "r"(r_2_u32[kk * 16 + i * 4]), "r"(r_2_u32[kk * 16 + i * 4 + 1]),
                  "r"(r_2_u32[kk * 16 + i * 4 + 2]), "r"(r_2_u32[kk * 16 + i * 4 + 3]),
                  "r"(b_u32[kk * 8 + j * 2]), "r"(b_u32[kk * 8 + j * 2 + 1]));
          }
        }
      }
    }
    A_next += 64;
    B_next += 64;
  }
  {  // line 95: UnaryPointwise.cast (%c) -> (view of %C)
    alignas(16) __half r_3[64];  // line 96
    // line 97: UnaryPointwise.cast (%c) -> (%r_3)
    #pragma unroll
    for (int i = 0; i < 32; i += 1) {  // line 100
      // line 101
      *reinterpret_cast<__half2*>(&r_3[i * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&c[i * 2]));
    }
    // line 104: Move (%r_3) -> (view of %C)
    #pragma unroll
    for (int i = 0; i < 32; i += 1) {  // line 107
      // line 108
      *reinterpret_cast<unsigned*>(&C[bm * 16384 + i % 8 * 2048 + (tid / 4) % 8 * 256 + bn * 128 +
                      tid / 32 * 32 + i / 8 * 8 + tid % 4 * 2]) =
          *reinterpret_cast<unsigned*>(&r_3[i * 2]);
    }
  }
}
