// gemm_scaled, line 17: Spec (%alpha, %beta, %A, %B, %C) -> (%C)
// sm_80: grid 4, block 128, dynamic shared memory 8192 bytes

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
gemm_scaled(
    const float alpha,
    const float beta,
    const __half* __restrict__ A,
    const __half* __restrict__ B,
    float* __restrict__ C) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  const int m = blockIdx.x % 2;  // line 23
  const int n = blockIdx.x / 2;  // line 23
  alignas(16) float sum[32];  // line 24
  // line 25: Init (0) -> (%sum)
  #pragma unroll
  for (int i = 0; i < 32; i += 1) {  // line 27
    sum[i] = 0.0f;  // line 28
  }
  const __half* A_next = &A[m * 8192 + tid / 4 * 128 + tid % 4 * 8];
  const __half* B_next = &B[tid / 8 * 128 + n * 64 + tid % 8 * 8];
  for (int k = 0; k < 4; k += 1) {  // line 31
    __half* a = reinterpret_cast<__half*>(smem);  // line 32
    __syncthreads();  // line 33
    // line 34: Move (view of %A) -> (%a)
    #pragma unroll
    for (int i = 0; i < 2; i += 1) {  // line 37
      // line 38: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&a[swizzle<2, 3, 3>(i * 1024 + tid * 8)])), "l"(&A_next[i * 4096])
          : "memory");
    }
    __half* b = reinterpret_cast<__half*>(smem + 4096);  // line 41
    // line 42: Move (view of %B) -> (%b)
    #pragma unroll
    for (int i = 0; i < 2; i += 1) {  // line 45
      // line 46: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&b[swizzle<3, 3, 3>(i * 1024 + tid * 8)])), "l"(&B_next[i * 2048])
          : "memory");
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 49
    {  // line 50: MatMul (%a, %b) -> (%sum)
      alignas(16) __half r[32];  // line 51
      unsigned* r_u32 = reinterpret_cast<unsigned*>(r);
      asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 52
      __syncthreads();  // line 53
      // line 54: Move (%a) -> (%r)
      #pragma unroll
      for (int i = 0; i < 4; i += 1) {  // line 57
        // line 58: ldmatrix.x4.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(r_u32[i * 4]), "=r"(r_u32[i * 4 + 1]), "=r"(r_u32[i * 4 + 2]),
              "=r"(r_u32[i * 4 + 3])
            : "r"(shared_address(&a[swizzle<2, 3, 3>((tid / 32) % 2 * 1024 + i % 2 * 512 +
                              tid % 16 * 32 + i / 2 * 16 + (tid / 16) % 2 * 8)]))
            : "memory");
      }
      alignas(16) __half r_2[32];  // line 61
      unsigned* r_2_u32 = reinterpret_cast<unsigned*>(r_2);
      // line 62: Move (%b) -> (%r_2)
      #pragma unroll
      for (int i = 0; i < 4; i += 1) {  // line 65
        // line 66: ldmatrix.x4.trans.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(r_2_u32[i * 4]), "=r"(r_2_u32[i * 4 + 1]), "=r"(r_2_u32[i * 4 + 2]),
              "=r"(r_2_u32[i * 4 + 3])
            : "r"(shared_address(&b[swizzle<3, 3, 3>(i / 2 * 1024 + tid % 16 * 64 + tid / 64 * 32 +
                              i % 2 * 16 + (tid / 16) % 2 * 8)]))
            : "memory");
      }
      // line 69: MatMul (%r, %r_2) -> (%sum)
      #pragma unroll
      for (int kk = 0; kk < 2; kk += 1) {  // line 73
        #pragma unroll
        for (int i = 0; i < 2; i += 1) {  // line 74
          #pragma unroll
          for (int j = 0; j < 4; j += 1) {  // line 75
            // line 76: mma.m16n8k16.f32.f16
            asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                : "+f"(sum[j * 8 + i * 4]), "+f"(sum[j * 8 + i * 4 + 1]),
                  "+f"(sum[j * 8 + i * 4 + 2]), "+f"(sum[j * 8 + i * 4 + 3])
                : "r"(r_u32[kk * 8 + i * 4]), "r"(r_u32[kk * 8 + i * 4 + 1]),
                  "r"(r_u32[kk * 8 + i * 4 + 2]), "r"(r_u32[kk * 8 + i * 4 + 3]),
                  "r"(r_2_u32[kk * 8 + j * 2]), "r"(r_2_u32[kk * 8 + j * 2 + 1]));
          }
        }
      }
    }
    A_next += 32;
    B_next += 4096;
  }
  alignas(16) float c[32];  // line 85
  // line 86: Move (view of %C) -> (%c)
  #pragma unroll
  for (int i = 0; i < 16; i += 1) {  // line 89
    // line 90
    *reinterpret_cast<uint2*>(&c[i * 2]) =
        *reinterpret_cast<uint2*>(&C[m * 8192 + (tid / 32) % 2 * 4096 + i % 4 * 1024 +
                        (tid / 4) % 8 * 128 + n * 64 + tid / 64 * 32 + i / 4 * 8 + tid % 4 * 2]);
  }
  alignas(16) float C_3[32];  // line 93
  float alpha_r[1];  // line 94
  // line 95: Move (%alpha) -> (%alpha_r)
  alpha_r[0] = alpha;  // line 96
  // line 98: BinaryPointwise.mul (%sum, %alpha_r) -> (%C_3)
  #pragma unroll
  for (int i = 0; i < 32; i += 1) {  // line 102
    C_3[i] = sum[i] * alpha_r[0];  // line 103
  }
  alignas(16) float C_4[32];  // line 106
  float beta_r[1];  // line 107
  // line 108: Move (%beta) -> (%beta_r)
  beta_r[0] = beta;  // line 109
  // line 111: BinaryPointwise.mul (%c, %beta_r) -> (%C_4)
  #pragma unroll
  for (int i = 0; i < 32; i += 1) {  // line 115
    C_4[i] = c[i] * beta_r[0];  // line 116
  }
  {  // line 119: BinaryPointwise.add (%C_3, %C_4) -> (view of %C)
    alignas(16) float r_3[32];  // line 120
    // line 121: BinaryPointwise.add (%C_3, %C_4) -> (%r_3)
    #pragma unroll
    for (int i = 0; i < 32; i += 1) {  // line 125
      r_3[i] = C_3[i] + C_4[i];  // line 126
    }
    // line 129: Move (%r_3) -> (view of %C)
    #pragma unroll
    for (int i = 0; i < 16; i += 1) {  // line 133
      // line 134
      *reinterpret_cast<uint2*>(&C[m * 8192 + (tid / 32) % 2 * 4096 + i % 4 * 1024 +
                      (tid / 4) % 8 * 128 + n * 64 + tid / 64 * 32 + i / 4 * 8 + tid % 4 * 2]) =
          *reinterpret_cast<uint2*>(&r_3[i * 2]);
    }
  }
}
