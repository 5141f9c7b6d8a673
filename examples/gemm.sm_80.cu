// gemm, line 13: MatMul.set (%A, %B) -> (%C)
// sm_80: grid 1024, block 128, dynamic shared memory 65536 bytes
// Set cudaFuncAttributeMaxDynamicSharedMemorySize before launching.

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
  const int bm = blockIdx.x / 512 * 16 + blockIdx.x % 16;  // line 14
  const int bn = (blockIdx.x / 16) % 32;  // line 14
  alignas(16) __half rA[32];  // line 18
  unsigned* rA_u32 = reinterpret_cast<unsigned*>(rA);
  alignas(16) __half rB[32];  // line 19
  unsigned* rB_u32 = reinterpret_cast<unsigned*>(rB);
  alignas(16) float acc[128];  // line 20
  // line 21: Init (0) -> (%acc)
  #pragma unroll
  for (int i = 0; i < 128; i += 1) {  // line 23
    acc[i] = 0.0f;  // line 24
  }
  __half* sA = reinterpret_cast<__half*>(smem);  // line 27
  __half* sB = reinterpret_cast<__half*>(smem + 32768);  // line 28
  // line 29: Move (view of %A) -> (view of %sA)
  #pragma unroll
  for (int i = 0; i < 8; i += 1) {  // line 32
    // line 33: cp.async.cg.b128
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16;\n"
        :
        : "r"(shared_address(&sA[i * 1024 + swizzle<3, 3, 3>(tid * 8)])),
          "l"(&A[bm * 524288 + i * 65536 + tid / 8 * 4096 + tid % 8 * 8])
        : "memory");
  }
  // line 36: Move (view of %B) -> (view of %sB)
  #pragma unroll
  for (int i = 0; i < 8; i += 1) {  // line 39
    // line 40: cp.async.cg.b128
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16;\n"
        :
        : "r"(shared_address(&sB[i * 1024 + swizzle<3, 3, 4>(tid * 8)])),
          "l"(&B[i * 32768 + tid / 16 * 4096 + bn * 128 + tid % 16 * 8])
        : "memory");
  }
  asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 43
  for (int k = 0; k < 64; k += 1) {  // line 44
    __syncthreads();  // line 45
    if (k + 1 < 64) {  // line 46
      // line 47: Move (view of %A) -> (view of %sA)
      #pragma unroll
      for (int i = 0; i < 8; i += 1) {  // line 50
        // line 51: cp.async.cg.b128
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n"
            :
            : "r"(shared_address(&sA[(k + 1) % 2 * 8192 + i * 1024 + swizzle<3, 3, 3>(tid * 8)])),
              "l"(&A[bm * 524288 + i * 65536 + tid / 8 * 4096 + k * 64 + tid % 8 * 8 + 64])
            : "memory");
      }
      // line 54: Move (view of %B) -> (view of %sB)
      #pragma unroll
      for (int i = 0; i < 8; i += 1) {  // line 57
        // line 58: cp.async.cg.b128
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n"
            :
            : "r"(shared_address(&sB[(k + 1) % 2 * 8192 + i * 1024 + swizzle<3, 3, 4>(tid * 8)])),
              "l"(&B[k * 262144 + i * 32768 + tid / 16 * 4096 + bn * 128 + tid % 16 * 8 + 262144])
            : "memory");
      }
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 62
    asm volatile("cp.async.wait_group 1;\n" ::: "memory");  // line 63
    __syncthreads();  // line 64
    #pragma unroll
    for (int j = 0; j < 4; j += 1) {  // line 65
      // line 66: Move (view of %sA) -> (%rA)
      #pragma unroll
      for (int i = 0; i < 4; i += 1) {  // line 70
        // line 71: ldmatrix.x4.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(rA_u32[i * 4]), "=r"(rA_u32[i * 4 + 1]), "=r"(rA_u32[i * 4 + 2]),
              "=r"(rA_u32[i * 4 + 3])
            : "r"(shared_address(&sA[k % 2 * 8192 + (tid / 32) % 2 * 4096 + i * 1024 +
                          swizzle<3, 3, 3>(tid % 16 * 64 + j * 16 + (tid / 16) % 2 * 8)]))
            : "memory");
      }
      // line 74: Move (view of %sB) -> (%rB)
      #pragma unroll
      for (int i = 0; i < 4; i += 1) {  // line 78
        // line 79: ldmatrix.x4.trans.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(rB_u32[i * 4]), "=r"(rB_u32[i * 4 + 1]), "=r"(rB_u32[i * 4 + 2]),
              "=r"(rB_u32[i * 4 + 3])
            : "r"(shared_address(&sB[k % 2 * 8192 + j * 2048 + swizzle<3, 3, 4>(tid % 16 * 128 +
                              tid / 64 * 64 + i * 16 + (tid / 16) % 2 * 8)]))
            : "memory");
      }
      // line 82: MatMul (%rA, %rB) -> (%acc)
      #pragma unroll
      for (int i = 0; i < 4; i += 1) {  // line 86
        #pragma unroll
        for (int j_2 = 0; j_2 < 8; j_2 += 1) {  // line 87
          // line 88: mma.m16n8k16.f32.f16
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
  alignas(16) __half rC[128];  // line 96
  // line 97: UnaryPointwise.cast (%acc) -> (%rC)
  #pragma unroll
  for (int i = 0; i < 64; i += 1) {  // line 100
    // line 101
    *reinterpret_cast<__half2*>(&rC[i * 2]) =
        __float22half2_rn(*reinterpret_cast<float2*>(&acc[i * 2]));
  }
  __half* sC = reinterpret_cast<__half*>(smem + 32768);  // line 104
  asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 105
  __syncthreads();  // line 106
  // line 107: Move (%rC) -> (%sC)
  #pragma unroll
  for (int i = 0; i < 64; i += 1) {  // line 110
    // line 111
    *reinterpret_cast<unsigned*>(&sC[(tid / 32) % 2 * 8192 + i % 8 * 1024 +
                    swizzle<3, 3, 4>((tid / 4) % 8 * 128 + tid / 64 * 64 + i / 8 * 8 +
                        tid % 4 * 2)]) = *reinterpret_cast<unsigned*>(&rC[i * 2]);
  }
  {  // line 114: Move (%sC) -> (%gC)
    alignas(16) __half r[128];  // line 115
    __syncthreads();  // line 116
    // line 117: Move (%sC) -> (%r)
    #pragma unroll
    for (int i = 0; i < 16; i += 1) {  // line 120
      // line 121
      *reinterpret_cast<uint4*>(&r[i * 8]) =
          *reinterpret_cast<uint4*>(&sC[i * 1024 + swizzle<3, 3, 4>(tid * 8)]);
    }
    // line 124: Move (%r) -> (%gC)
    #pragma unroll
    for (int i = 0; i < 16; i += 1) {  // line 127
      // line 128
      *reinterpret_cast<uint4*>(&C[bm * 524288 + i * 32768 + tid / 16 * 4096 + bn * 128 +
                      tid % 16 * 8]) = *reinterpret_cast<uint4*>(&r[i * 8]);
    }
  }
}
