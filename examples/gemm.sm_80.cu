// gemm, line 13: MatMul.set (%A, %B) -> (%C)
// sm_80: grid 1024, block 128, dynamic shared memory 32768 bytes

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
gemm(const __half* __restrict__ A, const __half* __restrict__ B, __half* __restrict__ C) {
  extern __shared__ __align__(2048) unsigned char smem[];
  const int tid = threadIdx.x;
  const int bm = blockIdx.x % 32;  // line 14
  const int bn = blockIdx.x / 32;  // line 14
  __half* sA = reinterpret_cast<__half*>(smem);  // line 18
  __half* sB = reinterpret_cast<__half*>(smem + 16384);  // line 19
  alignas(16) __half rA[32];  // line 20
  unsigned* rA_u32 = reinterpret_cast<unsigned*>(rA);
  alignas(16) __half rB[32];  // line 21
  unsigned* rB_u32 = reinterpret_cast<unsigned*>(rB);
  alignas(16) float acc[128];  // line 22
  // line 23: Init (0) -> (%acc)
  #pragma unroll
  for (int i = 0; i < 128; i += 1) {  // line 25
    acc[i] = 0.0f;  // line 26
  }
  for (int k = 0; k < 64; k += 1) {  // line 29
    __syncthreads();  // line 30
    // line 31: Move (view of %A) -> (%sA)
    #pragma unroll
    for (int i = 0; i < 8; i += 1) {  // line 34
      // line 35: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&sA[swizzle<3, 3, 3>(i * 1024 + tid * 8)])),
            "l"(&A[bm * 524288 + i * 65536 + tid / 8 * 4096 + k * 64 + tid % 8 * 8])
          : "memory");
    }
    // line 38: Move (view of %B) -> (%sB)
    #pragma unroll
    for (int i = 0; i < 8; i += 1) {  // line 41
      // line 42: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&sB[swizzle<3, 3, 4>(i * 1024 + tid * 8)])),
            "l"(&B[k * 262144 + i * 32768 + tid / 16 * 4096 + bn * 128 + tid % 16 * 8])
          : "memory");
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 45
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 46
    __syncthreads();  // line 47
    #pragma unroll
    for (int j = 0; j < 4; j += 1) {  // line 48
      // line 49: Move (view of %sA) -> (%rA)
      #pragma unroll
      for (int i = 0; i < 4; i += 1) {  // line 52
        // line 53: ldmatrix.x4.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(rA_u32[i * 4]), "=r"(rA_u32[i * 4 + 1]), "=r"(rA_u32[i * 4 + 2]),
              "=r"(rA_u32[i * 4 + 3])
            : "r"(shared_address(&sA[swizzle<3, 3, 3>((tid / 32) % 2 * 4096 + i * 1024 +
                              tid % 16 * 64 + j * 16 + (tid / 16) % 2 * 8)]))
            : "memory");
      }
      // line 56: Move (view of %sB) -> (%rB)
      #pragma unroll
      for (int i = 0; i < 4; i += 1) {  // line 60
        // line 61: ldmatrix.x4.trans.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(rB_u32[i * 4]), "=r"(rB_u32[i * 4 + 1]), "=r"(rB_u32[i * 4 + 2]),
              "=r"(rB_u32[i * 4 + 3])
            : "r"(shared_address(&sB[swizzle<3, 3, 4>(j * 2048 + tid % 16 * 128 + tid / 64 * 64 +
                              i * 16 + (tid / 16) % 2 * 8)]))
            : "memory");
      }
      // line 64: MatMul (%rA, %rB) -> (%acc)
      #pragma unroll
      for (int i = 0; i < 4; i += 1) {  // line 68
        #pragma unroll
        for (int j_2 = 0; j_2 < 8; j_2 += 1) {  // line 69
          // line 70: mma.m16n8k16.f32.f16
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
              "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
              : "+f"(acc[j_2 * 16 + i * 4]), "+f"(acc[j_2 * 16 + i * 4 + 1]),
                "+f"(acc[j_2 * 16 + i * 4 + 2]), "+f"(acc[j_2 * 16 + i * 4 + 3])
              : "r"(rA_u32[i * 4]), "r"(rA_u32[i * 4 + 1]), "r"(rA_u32[i * 4 + 2]),
                "r"(rA_u32[i * 4 + 3]), "r"(rB_u32[j_2 * 2]), "r"(rB_u32[j_2 * 2 + 1]));
        }
      }
    }
  }
  alignas(16) __half rC[128];  // line 78
  // line 79: UnaryPointwise.cast (%acc) -> (%rC)
  #pragma unroll
  for (int i = 0; i < 64; i += 1) {  // line 82
    // line 83
    *reinterpret_cast<__half2*>(&rC[i * 2]) =
        __float22half2_rn(*reinterpret_cast<float2*>(&acc[i * 2]));
  }
  // line 86: Move (%rC) -> (%gC)
  #pragma unroll
  for (int i = 0; i < 64; i += 1) {  // line 89
    // line 90
    *reinterpret_cast<unsigned*>(&C[bm * 524288 + (tid / 32) % 2 * 262144 + i % 8 * 32768 +
                    (tid / 4) % 8 * 4096 + bn * 128 + tid / 64 * 64 + i / 8 * 8 + tid % 4 * 2]) =
        *reinterpret_cast<unsigned*>(&rC[i * 2]);
  }
}
