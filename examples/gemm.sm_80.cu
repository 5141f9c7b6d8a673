// gemm, line 13: MatMul.set (%A, %B) -> (%C)
// sm_80: grid 512, block 256, dynamic shared memory 163840 bytes
// Set cudaFuncAttributeMaxDynamicSharedMemorySize before launching.

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

extern "C" __global__ void __launch_bounds__(256)
gemm(const __half* __restrict__ A, const __half* __restrict__ B, __half* __restrict__ C) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  const int b = blockIdx.x;  // line 16
  alignas(16) float acc[128];  // line 21
  // line 22: Init (0) -> (%acc)
  #pragma unroll
  for (int i_2 = 0; i_2 < 128; i_2 += 1) {  // line 24
    acc[i_2] = 0.0f;  // line 25
  }
  {  // line 30: Spec (%row, %column) -> (%acc)
    __half* sA = reinterpret_cast<__half*>(smem);  // line 34
    __half* sB = reinterpret_cast<__half*>(smem + 32768);  // line 35
    #pragma unroll
    for (int s_2 = 0; s_2 < 2; s_2 += 1) {  // line 36
      // line 37: Move (view of %A) -> (view of %sA)
      #pragma unroll
      for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 40
        // line 41: cp.async.cg.b128
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n"
            :
            : "r"(shared_address(&sA[swizzle<3, 3, 3>(s_2 * 8192 + i_2 * 2048 + tid * 8)])),
              "l"(&A[b / 256 * 8388608 + b % 16 * 524288 + i_2 * 131072 + tid / 8 * 4096 +
                      s_2 * 64 + tid % 8 * 8])
            : "memory");
      }
      // line 44: Move (view of %B) -> (view of %sB)
      #pragma unroll
      for (int i_2 = 0; i_2 < 8; i_2 += 1) {  // line 48
        // line 49: cp.async.cg.b128
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n"
            :
            : "r"(shared_address(&sB[swizzle<3, 3, 5>(s_2 * 16384 + i_2 / 4 * 8192 + tid / 8 * 256 +
                              i_2 % 4 * 64 + tid % 8 * 8)])),
              "l"(&B[s_2 * 262144 + i_2 / 4 * 131072 + tid / 8 * 4096 + (b / 16) % 16 * 256 +
                      i_2 % 4 * 64 + tid % 8 * 8])
            : "memory");
      }
      asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 52
    }
    alignas(16) __half rA_2[32];  // line 54
    unsigned* rA_2_u32 = reinterpret_cast<unsigned*>(rA_2);
    alignas(16) __half rB_2[32];  // line 55
    unsigned* rB_2_u32 = reinterpret_cast<unsigned*>(rB_2);
    alignas(16) __half rA_3[32];  // line 56
    unsigned* rA_3_u32 = reinterpret_cast<unsigned*>(rA_3);
    alignas(16) __half rB_3[32];  // line 57
    unsigned* rB_3_u32 = reinterpret_cast<unsigned*>(rB_3);
    asm volatile("cp.async.wait_group 1;\n" ::: "memory");  // line 58
    __syncthreads();  // line 59
    // line 60: Move (view of %sA) -> (%rA_2)
    #pragma unroll
    for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 64
      // line 65: ldmatrix.x4.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(rA_2_u32[i_2 * 4]), "=r"(rA_2_u32[i_2 * 4 + 1]), "=r"(rA_2_u32[i_2 * 4 + 2]),
            "=r"(rA_2_u32[i_2 * 4 + 3])
          : "r"(shared_address(&sA[swizzle<3, 3, 3>((tid / 32) % 2 * 4096 + i_2 * 1024 +
                            tid % 16 * 64 + (tid / 16) % 2 * 8)]))
          : "memory");
    }
    // line 68: Move (view of %sB) -> (%rB_2)
    #pragma unroll
    for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 72
      // line 73: ldmatrix.x4.trans.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(rB_2_u32[i_2 * 4]), "=r"(rB_2_u32[i_2 * 4 + 1]), "=r"(rB_2_u32[i_2 * 4 + 2]),
            "=r"(rB_2_u32[i_2 * 4 + 3])
          : "r"(shared_address(&sB[swizzle<3, 3, 5>(tid % 16 * 256 + tid / 64 * 64 + i_2 * 16 +
                            (tid / 16) % 2 * 8)]))
          : "memory");
    }
    const __half* A_next = &A[b / 256 * 8388608 + b % 16 * 524288 + tid / 8 * 4096 + tid % 8 * 8 +
            128];
    const __half* B_next = &B[tid / 8 * 4096 + (b / 16) % 16 * 256 + tid % 8 * 8 + 524288];
    for (int k = 0; k < 64; k += 1) {  // line 76
      // line 77: Move (view of %sA) -> (%rA_3)
      #pragma unroll
      for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 81
        // line 82: ldmatrix.x4.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(rA_3_u32[i_2 * 4]), "=r"(rA_3_u32[i_2 * 4 + 1]), "=r"(rA_3_u32[i_2 * 4 + 2]),
              "=r"(rA_3_u32[i_2 * 4 + 3])
            : "r"(shared_address(&sA[k % 2 * 8192 + (tid / 32) % 2 * 4096 + i_2 * 1024 +
                          swizzle<3, 3, 3>(tid % 16 * 64 + (tid / 16) % 2 * 8 + 16)]))
            : "memory");
      }
      // line 85: Move (view of %sB) -> (%rB_3)
      #pragma unroll
      for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 89
        // line 90: ldmatrix.x4.trans.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(rB_3_u32[i_2 * 4]), "=r"(rB_3_u32[i_2 * 4 + 1]), "=r"(rB_3_u32[i_2 * 4 + 2]),
              "=r"(rB_3_u32[i_2 * 4 + 3])
            : "r"(shared_address(&sB[k % 2 * 16384 + 4096 + swizzle<3, 3, 5>(tid % 16 * 256 +
                              tid / 64 * 64 + i_2 * 16 + (tid / 16) % 2 * 8)]))
            : "memory");
      }
      // line 93: MatMul (%rA_2, %rB_2) -> (%acc)
      #pragma unroll
      for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 97
        #pragma unroll
        for (int j_2 = 0; j_2 < 8; j_2 += 1) {  // line 98
          // line 99: mma.m16n8k16.f32.f16
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
              "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
              : "+f"(acc[j_2 * 16 + i_2 * 4]), "+f"(acc[j_2 * 16 + i_2 * 4 + 1]),
                "+f"(acc[j_2 * 16 + i_2 * 4 + 2]), "+f"(acc[j_2 * 16 + i_2 * 4 + 3])
              : "r"(rA_2_u32[i_2 * 4]), "r"(rA_2_u32[i_2 * 4 + 1]), "r"(rA_2_u32[i_2 * 4 + 2]),
                "r"(rA_2_u32[i_2 * 4 + 3]), "r"(rB_2_u32[j_2 * 2]), "r"(rB_2_u32[j_2 * 2 + 1]));
        }
      }
      // line 105: Move (view of %sA) -> (%rA_2)
      #pragma unroll
      for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 109
        // line 110: ldmatrix.x4.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(rA_2_u32[i_2 * 4]), "=r"(rA_2_u32[i_2 * 4 + 1]), "=r"(rA_2_u32[i_2 * 4 + 2]),
              "=r"(rA_2_u32[i_2 * 4 + 3])
            : "r"(shared_address(&sA[k % 2 * 8192 + (tid / 32) % 2 * 4096 + i_2 * 1024 +
                          swizzle<3, 3, 3>(tid % 16 * 64 + (tid / 16) % 2 * 8 + 32)]))
            : "memory");
      }
      // line 113: Move (view of %sB) -> (%rB_2)
      #pragma unroll
      for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 117
        // line 118: ldmatrix.x4.trans.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(rB_2_u32[i_2 * 4]), "=r"(rB_2_u32[i_2 * 4 + 1]), "=r"(rB_2_u32[i_2 * 4 + 2]),
              "=r"(rB_2_u32[i_2 * 4 + 3])
            : "r"(shared_address(&sB[k % 2 * 16384 + 8192 + swizzle<3, 3, 5>(tid % 16 * 256 +
                              tid / 64 * 64 + i_2 * 16 + (tid / 16) % 2 * 8)]))
            : "memory");
      }
      // line 121: MatMul (%rA_3, %rB_3) -> (%acc)
      #pragma unroll
      for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 125
        #pragma unroll
        for (int j_2 = 0; j_2 < 8; j_2 += 1) {  // line 126
          // line 127: mma.m16n8k16.f32.f16
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
              "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
              : "+f"(acc[j_2 * 16 + i_2 * 4]), "+f"(acc[j_2 * 16 + i_2 * 4 + 1]),
                "+f"(acc[j_2 * 16 + i_2 * 4 + 2]), "+f"(acc[j_2 * 16 + i_2 * 4 + 3])
              : "r"(rA_3_u32[i_2 * 4]), "r"(rA_3_u32[i_2 * 4 + 1]), "r"(rA_3_u32[i_2 * 4 + 2]),
                "r"(rA_3_u32[i_2 * 4 + 3]), "r"(rB_3_u32[j_2 * 2]), "r"(rB_3_u32[j_2 * 2 + 1]));
        }
      }
      // line 133: Move (view of %sA) -> (%rA_3)
      #pragma unroll
      for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 137
        // line 138: ldmatrix.x4.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(rA_3_u32[i_2 * 4]), "=r"(rA_3_u32[i_2 * 4 + 1]), "=r"(rA_3_u32[i_2 * 4 + 2]),
              "=r"(rA_3_u32[i_2 * 4 + 3])
            : "r"(shared_address(&sA[k % 2 * 8192 + (tid / 32) % 2 * 4096 + i_2 * 1024 +
                          swizzle<3, 3, 3>(tid % 16 * 64 + (tid / 16) % 2 * 8 + 48)]))
            : "memory");
      }
      // line 141: Move (view of %sB) -> (%rB_3)
      #pragma unroll
      for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 145
        // line 146: ldmatrix.x4.trans.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(rB_3_u32[i_2 * 4]), "=r"(rB_3_u32[i_2 * 4 + 1]), "=r"(rB_3_u32[i_2 * 4 + 2]),
              "=r"(rB_3_u32[i_2 * 4 + 3])
            : "r"(shared_address(&sB[k % 2 * 16384 + 12288 + swizzle<3, 3, 5>(tid % 16 * 256 +
                              tid / 64 * 64 + i_2 * 16 + (tid / 16) % 2 * 8)]))
            : "memory");
      }
      // line 149: MatMul (%rA_2, %rB_2) -> (%acc)
      #pragma unroll
      for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 153
        #pragma unroll
        for (int j_2 = 0; j_2 < 8; j_2 += 1) {  // line 154
          // line 155: mma.m16n8k16.f32.f16
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
              "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
              : "+f"(acc[j_2 * 16 + i_2 * 4]), "+f"(acc[j_2 * 16 + i_2 * 4 + 1]),
                "+f"(acc[j_2 * 16 + i_2 * 4 + 2]), "+f"(acc[j_2 * 16 + i_2 * 4 + 3])
              : "r"(rA_2_u32[i_2 * 4]), "r"(rA_2_u32[i_2 * 4 + 1]), "r"(rA_2_u32[i_2 * 4 + 2]),
                "r"(rA_2_u32[i_2 * 4 + 3]), "r"(rB_2_u32[j_2 * 2]), "r"(rB_2_u32[j_2 * 2 + 1]));
        }
      }
      asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 161
      __syncthreads();  // line 162
      // line 163: Move (view of %sA) -> (%rA_2)
      #pragma unroll
      for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 167
        // line 168: ldmatrix.x4.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(rA_2_u32[i_2 * 4]), "=r"(rA_2_u32[i_2 * 4 + 1]), "=r"(rA_2_u32[i_2 * 4 + 2]),
              "=r"(rA_2_u32[i_2 * 4 + 3])
            : "r"(shared_address(&sA[(k + 1) % 2 * 8192 + (tid / 32) % 2 * 4096 + i_2 * 1024 +
                          swizzle<3, 3, 3>(tid % 16 * 64 + (tid / 16) % 2 * 8)]))
            : "memory");
      }
      // line 171: Move (view of %sB) -> (%rB_2)
      #pragma unroll
      for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 175
        // line 176: ldmatrix.x4.trans.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(rB_2_u32[i_2 * 4]), "=r"(rB_2_u32[i_2 * 4 + 1]), "=r"(rB_2_u32[i_2 * 4 + 2]),
              "=r"(rB_2_u32[i_2 * 4 + 3])
            : "r"(shared_address(&sB[(k + 1) % 2 * 16384 + swizzle<3, 3, 5>(tid % 16 * 256 +
                              tid / 64 * 64 + i_2 * 16 + (tid / 16) % 2 * 8)]))
            : "memory");
      }
      // line 179: MatMul (%rA_3, %rB_3) -> (%acc)
      #pragma unroll
      for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 183
        #pragma unroll
        for (int j_2 = 0; j_2 < 8; j_2 += 1) {  // line 184
          // line 185: mma.m16n8k16.f32.f16
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
              "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
              : "+f"(acc[j_2 * 16 + i_2 * 4]), "+f"(acc[j_2 * 16 + i_2 * 4 + 1]),
                "+f"(acc[j_2 * 16 + i_2 * 4 + 2]), "+f"(acc[j_2 * 16 + i_2 * 4 + 3])
              : "r"(rA_3_u32[i_2 * 4]), "r"(rA_3_u32[i_2 * 4 + 1]), "r"(rA_3_u32[i_2 * 4 + 2]),
                "r"(rA_3_u32[i_2 * 4 + 3]), "r"(rB_3_u32[j_2 * 2]), "r"(rB_3_u32[j_2 * 2 + 1]));
        }
      }
      if (k + 2 < 64) {  // line 191
        // line 192: Move (view of %A) -> (view of %sA)
        #pragma unroll
        for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 195
          // line 196: cp.async.cg.b128
          asm volatile(
              "cp.async.cg.shared.global [%0], [%1], 16;\n"
              :
              : "r"(shared_address(&sA[k % 2 * 8192 + i_2 * 2048 + swizzle<3, 3, 3>(tid * 8)])),
                "l"(&A_next[i_2 * 131072])
              : "memory");
        }
        // line 199: Move (view of %B) -> (view of %sB)
        #pragma unroll
        for (int i_2 = 0; i_2 < 8; i_2 += 1) {  // line 203
          // line 204: cp.async.cg.b128
          asm volatile(
              "cp.async.cg.shared.global [%0], [%1], 16;\n"
              :
              : "r"(shared_address(&sB[k % 2 * 16384 + i_2 / 4 * 8192 +
                            swizzle<3, 3, 5>(tid / 8 * 256 + i_2 % 4 * 64 + tid % 8 * 8)])),
                "l"(&B_next[i_2 / 4 * 131072 + i_2 % 4 * 64])
              : "memory");
        }
      }
      asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 208
      A_next += 64;
      B_next += 262144;
    }
  }
  alignas(16) __half result[128];  // line 211
  // line 212: UnaryPointwise.cast (%acc) -> (%result)
  #pragma unroll
  for (int i_2 = 0; i_2 < 64; i_2 += 1) {  // line 215
    // line 216
    *reinterpret_cast<__half2*>(&result[i_2 * 2]) =
        __float22half2_rn(*reinterpret_cast<float2*>(&acc[i_2 * 2]));
  }
  __half* staged = reinterpret_cast<__half*>(smem + 98304);  // line 219
  // line 220: Move (%result) -> (%staged)
  #pragma unroll
  for (int i_2 = 0; i_2 < 64; i_2 += 1) {  // line 223
    // line 224
    *reinterpret_cast<unsigned*>(&staged[swizzle<3, 3, 5>((tid / 32) % 2 * 16384 + i_2 % 8 * 2048 +
                        (tid / 4) % 8 * 256 + tid / 64 * 64 + i_2 / 8 * 8 + tid % 4 * 2)]) =
        *reinterpret_cast<unsigned*>(&result[i_2 * 2]);
  }
  {  // line 227: Move (%staged) -> (view of %C)
    alignas(16) __half r_2[128];  // line 228
    __syncthreads();  // line 229
    // line 230: Move (%staged) -> (%r_2)
    #pragma unroll
    for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 233
      // line 234
      *reinterpret_cast<uint4*>(&r_2[i_2 * 8]) =
          *reinterpret_cast<uint4*>(&staged[swizzle<3, 3, 5>(i_2 * 2048 + tid * 8)]);
    }
    // line 237: Move (%r_2) -> (view of %C)
    #pragma unroll
    for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 240
      // line 241
      *reinterpret_cast<uint4*>(&C[b / 256 * 8388608 + b % 16 * 524288 + i_2 * 32768 +
                      tid / 32 * 4096 + (b / 16) % 16 * 256 + tid % 32 * 8]) =
          *reinterpret_cast<uint4*>(&r_2[i_2 * 8]);
    }
  }
}
