// moe_gemm, line 17: Spec (%A, %rows, %B) -> (%C)
// sm_80: grid 4, block 128, dynamic shared memory 16384 bytes

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
moe_gemm(
    const __half* __restrict__ A,
    const int* __restrict__ rows,
    const __half* __restrict__ B,
    __half* __restrict__ C) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  const int i = blockIdx.x % 2;  // line 20
  const int j = blockIdx.x / 2;  // line 20
  alignas(16) float c[128];  // line 22
  // line 23: Init (0) -> (%c)
  #pragma unroll
  for (int i_2 = 0; i_2 < 128; i_2 += 1) {  // line 25
    c[i_2] = 0.0f;  // line 26
  }
  const __half* B_next = &B[tid / 16 * 256 + j * 128 + tid % 16 * 8];
  for (int k = 0; k < 4; k += 1) {  // line 29
    __half* sa = reinterpret_cast<__half*>(smem);  // line 30
    __syncthreads();  // line 31
    // line 32: Move (view of %A) -> (%sa)
    #pragma unroll
    for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 35
      // line 36: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&sa[swizzle<2, 3, 3>(i_2 * 1024 + tid * 8)])),
            "l"(&A[rows[i * 128 + i_2 * 32 + tid / 4] * 128 + (k * 32 + tid % 4 * 8)])
          : "memory");
    }
    __half* sb = reinterpret_cast<__half*>(smem + 8192);  // line 39
    // line 40: Move (view of %B) -> (%sb)
    #pragma unroll
    for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 43
      // line 44: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&sb[swizzle<3, 3, 4>(i_2 * 1024 + tid * 8)])),
            "l"(&B_next[i_2 * 2048])
          : "memory");
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 47
    {  // line 48: MatMul (%sa, %sb) -> (%c)
      alignas(16) __half r[64];  // line 49
      unsigned* r_u32 = reinterpret_cast<unsigned*>(r);
      asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 50
      __syncthreads();  // line 51
      // line 52: Move (%sa) -> (%r)
      #pragma unroll
      for (int i_2 = 0; i_2 < 8; i_2 += 1) {  // line 55
        // line 56: ldmatrix.x4.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(r_u32[i_2 * 4]), "=r"(r_u32[i_2 * 4 + 1]), "=r"(r_u32[i_2 * 4 + 2]),
              "=r"(r_u32[i_2 * 4 + 3])
            : "r"(shared_address(&sa[swizzle<2, 3, 3>((tid / 32) % 2 * 2048 + i_2 % 4 * 512 +
                              tid % 16 * 32 + i_2 / 4 * 16 + (tid / 16) % 2 * 8)]))
            : "memory");
      }
      alignas(16) __half r_2[64];  // line 59
      unsigned* r_2_u32 = reinterpret_cast<unsigned*>(r_2);
      // line 60: Move (%sb) -> (%r_2)
      #pragma unroll
      for (int i_2 = 0; i_2 < 8; i_2 += 1) {  // line 63
        // line 64: ldmatrix.x4.trans.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(r_2_u32[i_2 * 4]), "=r"(r_2_u32[i_2 * 4 + 1]), "=r"(r_2_u32[i_2 * 4 + 2]),
              "=r"(r_2_u32[i_2 * 4 + 3])
            : "r"(shared_address(&sb[swizzle<3, 3, 4>(i_2 / 4 * 2048 + tid % 16 * 128 +
                              tid / 64 * 64 + i_2 % 4 * 16 + (tid / 16) % 2 * 8)]))
            : "memory");
      }
      // line 67: MatMul (%r, %r_2) -> (%c)
      #pragma unroll
      for (int kk = 0; kk < 2; kk += 1) {  // line 71
        #pragma unroll
        for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 72
          #pragma unroll
          for (int j_2 = 0; j_2 < 8; j_2 += 1) {  // line 73
            // line 74: mma.m16n8k16.f32.f16
            asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                : "+f"(c[j_2 * 16 + i_2 * 4]), "+f"(c[j_2 * 16 + i_2 * 4 + 1]),
                  "+f"(c[j_2 * 16 + i_2 * 4 + 2]), "+f"(c[j_2 * 16 + i_2 * 4 + 3])
                : "r"(r_u32[kk * 16 + i_2 * 4]), "r"(r_u32[kk * 16 + i_2 * 4 + 1]),
                  "r"(r_u32[kk * 16 + i_2 * 4 + 2]), "r"(r_u32[kk * 16 + i_2 * 4 + 3]),
                  "r"(r_2_u32[kk * 16 + j_2 * 2]), "r"(r_2_u32[kk * 16 + j_2 * 2 + 1]));
          }
        }
      }
    }
    B_next += 8192;
  }
  {  // line 83: UnaryPointwise.cast (%c) -> (view of %C)
    alignas(16) __half r_3[128];  // line 84
    // line 85: UnaryPointwise.cast (%c) -> (%r_3)
    #pragma unroll
    for (int i_2 = 0; i_2 < 64; i_2 += 1) {  // line 88
      // line 89
      *reinterpret_cast<__half2*>(&r_3[i_2 * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&c[i_2 * 2]));
    }
    // line 92: Move (%r_3) -> (view of %C)
    #pragma unroll
    for (int i_2 = 0; i_2 < 64; i_2 += 1) {  // line 96
      // line 97
      *reinterpret_cast<unsigned*>(&C[i * 32768 + (tid / 32) % 2 * 16384 + i_2 % 8 * 2048 +
                      (tid / 4) % 8 * 256 + j * 128 + tid / 64 * 64 + i_2 / 8 * 8 + tid % 4 * 2]) =
          *reinterpret_cast<unsigned*>(&r_3[i_2 * 2]);
    }
  }
}
