// gemm, line 13: MatMul.set (%A, %B) -> (%C)
// sm_80: grid 512, block 256, dynamic shared memory 147456 bytes
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

extern "C" __global__ void __launch_bounds__(256)
gemm(const __half* __restrict__ A, const __half* __restrict__ B, __half* __restrict__ C) {
  extern __shared__ __align__(4096) unsigned char smem[];
  const int tid = threadIdx.x;
  const int bm = blockIdx.x / 256 * 16 + blockIdx.x % 16;  // line 14
  const int bn = (blockIdx.x / 16) % 16;  // line 14
  alignas(16) float acc[128];  // line 18
  // line 19: Init (0) -> (%acc)
  #pragma unroll
  for (int i = 0; i < 128; i += 1) {  // line 21
    acc[i] = 0.0f;  // line 22
  }
  __half* sA = reinterpret_cast<__half*>(smem);  // line 25
  __half* sB = reinterpret_cast<__half*>(smem + 49152);  // line 26
  #pragma unroll
  for (int s = 0; s < 3; s += 1) {  // line 27
    // line 28: Move (view of %A) -> (view of %sA)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 31
      // line 32: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&sA[swizzle<3, 3, 3>(s * 8192 + i * 2048 + tid * 8)])),
            "l"(&A[bm * 524288 + i * 131072 + tid / 8 * 4096 + s * 64 + tid % 8 * 8])
          : "memory");
    }
    // line 35: Move (view of %B) -> (view of %sB)
    #pragma unroll
    for (int i = 0; i < 8; i += 1) {  // line 38
      // line 39: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&sB[swizzle<3, 3, 5>(s * 16384 + i / 4 * 8192 + tid / 8 * 256 +
                            i % 4 * 64 + tid % 8 * 8)])),
            "l"(&B[s * 262144 + i / 4 * 131072 + tid / 8 * 4096 + bn * 256 + i % 4 * 64 +
                    tid % 8 * 8])
          : "memory");
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 42
  }
  alignas(16) __half rA_2[32];  // line 44
  unsigned* rA_2_u32 = reinterpret_cast<unsigned*>(rA_2);
  alignas(16) __half rB_2[32];  // line 45
  unsigned* rB_2_u32 = reinterpret_cast<unsigned*>(rB_2);
  alignas(16) __half rA_3[32];  // line 46
  unsigned* rA_3_u32 = reinterpret_cast<unsigned*>(rA_3);
  alignas(16) __half rB_3[32];  // line 47
  unsigned* rB_3_u32 = reinterpret_cast<unsigned*>(rB_3);
  asm volatile("cp.async.wait_group 2;\n" ::: "memory");  // line 48
  __syncthreads();  // line 49
  // line 50: Move (view of %sA) -> (%rA_2)
  #pragma unroll
  for (int i = 0; i < 4; i += 1) {  // line 53
    // line 54: ldmatrix.x4.b16
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
        : "=r"(rA_2_u32[i * 4]), "=r"(rA_2_u32[i * 4 + 1]), "=r"(rA_2_u32[i * 4 + 2]),
          "=r"(rA_2_u32[i * 4 + 3])
        : "r"(shared_address(&sA[swizzle<3, 3, 3>((tid / 32) % 2 * 4096 + i * 1024 + tid % 16 * 64 +
                          (tid / 16) % 2 * 8)]))
        : "memory");
  }
  // line 57: Move (view of %sB) -> (%rB_2)
  #pragma unroll
  for (int i = 0; i < 4; i += 1) {  // line 61
    // line 62: ldmatrix.x4.trans.b16
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
        : "=r"(rB_2_u32[i * 4]), "=r"(rB_2_u32[i * 4 + 1]), "=r"(rB_2_u32[i * 4 + 2]),
          "=r"(rB_2_u32[i * 4 + 3])
        : "r"(shared_address(&sB[swizzle<3, 3, 5>(tid % 16 * 256 + tid / 64 * 64 + i * 16 +
                          (tid / 16) % 2 * 8)]))
        : "memory");
  }
  int stage = 0;
  int stage_1 = 1;
  const __half* A_next = &A[bm * 524288 + tid / 8 * 4096 + tid % 8 * 8 + 192];
  const __half* B_next = &B[tid / 8 * 4096 + bn * 256 + tid % 8 * 8 + 786432];
  for (int k = 0; k < 64; k += 1) {  // line 65
    // line 66: Move (view of %sA) -> (%rA_3)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 70
      // line 71: ldmatrix.x4.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(rA_3_u32[i * 4]), "=r"(rA_3_u32[i * 4 + 1]), "=r"(rA_3_u32[i * 4 + 2]),
            "=r"(rA_3_u32[i * 4 + 3])
          : "r"(shared_address(&sA[stage * 8192 + (tid / 32) % 2 * 4096 + i * 1024 +
                        swizzle<3, 3, 3>(tid % 16 * 64 + (tid / 16) % 2 * 8 + 16)]))
          : "memory");
    }
    // line 74: Move (view of %sB) -> (%rB_3)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 78
      // line 79: ldmatrix.x4.trans.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(rB_3_u32[i * 4]), "=r"(rB_3_u32[i * 4 + 1]), "=r"(rB_3_u32[i * 4 + 2]),
            "=r"(rB_3_u32[i * 4 + 3])
          : "r"(shared_address(&sB[stage * 16384 + 4096 + swizzle<3, 3, 5>(tid % 16 * 256 +
                            tid / 64 * 64 + i * 16 + (tid / 16) % 2 * 8)]))
          : "memory");
    }
    // line 82: MatMul (%rA_2, %rB_2) -> (%acc)
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
            : "r"(rA_2_u32[i * 4]), "r"(rA_2_u32[i * 4 + 1]), "r"(rA_2_u32[i * 4 + 2]),
              "r"(rA_2_u32[i * 4 + 3]), "r"(rB_2_u32[j_2 * 2]), "r"(rB_2_u32[j_2 * 2 + 1]));
      }
    }
    // line 94: Move (view of %sA) -> (%rA_2)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 98
      // line 99: ldmatrix.x4.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(rA_2_u32[i * 4]), "=r"(rA_2_u32[i * 4 + 1]), "=r"(rA_2_u32[i * 4 + 2]),
            "=r"(rA_2_u32[i * 4 + 3])
          : "r"(shared_address(&sA[stage * 8192 + (tid / 32) % 2 * 4096 + i * 1024 +
                        swizzle<3, 3, 3>(tid % 16 * 64 + (tid / 16) % 2 * 8 + 32)]))
          : "memory");
    }
    // line 102: Move (view of %sB) -> (%rB_2)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 106
      // line 107: ldmatrix.x4.trans.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(rB_2_u32[i * 4]), "=r"(rB_2_u32[i * 4 + 1]), "=r"(rB_2_u32[i * 4 + 2]),
            "=r"(rB_2_u32[i * 4 + 3])
          : "r"(shared_address(&sB[stage * 16384 + 8192 + swizzle<3, 3, 5>(tid % 16 * 256 +
                            tid / 64 * 64 + i * 16 + (tid / 16) % 2 * 8)]))
          : "memory");
    }
    // line 110: MatMul (%rA_3, %rB_3) -> (%acc)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 114
      #pragma unroll
      for (int j_2 = 0; j_2 < 8; j_2 += 1) {  // line 115
        // line 116: mma.m16n8k16.f32.f16
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
            : "+f"(acc[j_2 * 16 + i * 4]), "+f"(acc[j_2 * 16 + i * 4 + 1]),
              "+f"(acc[j_2 * 16 + i * 4 + 2]), "+f"(acc[j_2 * 16 + i * 4 + 3])
            : "r"(rA_3_u32[i * 4]), "r"(rA_3_u32[i * 4 + 1]), "r"(rA_3_u32[i * 4 + 2]),
              "r"(rA_3_u32[i * 4 + 3]), "r"(rB_3_u32[j_2 * 2]), "r"(rB_3_u32[j_2 * 2 + 1]));
      }
    }
    // line 122: Move (view of %sA) -> (%rA_3)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 126
      // line 127: ldmatrix.x4.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(rA_3_u32[i * 4]), "=r"(rA_3_u32[i * 4 + 1]), "=r"(rA_3_u32[i * 4 + 2]),
            "=r"(rA_3_u32[i * 4 + 3])
          : "r"(shared_address(&sA[stage * 8192 + (tid / 32) % 2 * 4096 + i * 1024 +
                        swizzle<3, 3, 3>(tid % 16 * 64 + (tid / 16) % 2 * 8 + 48)]))
          : "memory");
    }
    // line 130: Move (view of %sB) -> (%rB_3)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 134
      // line 135: ldmatrix.x4.trans.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(rB_3_u32[i * 4]), "=r"(rB_3_u32[i * 4 + 1]), "=r"(rB_3_u32[i * 4 + 2]),
            "=r"(rB_3_u32[i * 4 + 3])
          : "r"(shared_address(&sB[stage * 16384 + 12288 + swizzle<3, 3, 5>(tid % 16 * 256 +
                            tid / 64 * 64 + i * 16 + (tid / 16) % 2 * 8)]))
          : "memory");
    }
    // line 138: MatMul (%rA_2, %rB_2) -> (%acc)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 142
      #pragma unroll
      for (int j_2 = 0; j_2 < 8; j_2 += 1) {  // line 143
        // line 144: mma.m16n8k16.f32.f16
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
            : "+f"(acc[j_2 * 16 + i * 4]), "+f"(acc[j_2 * 16 + i * 4 + 1]),
              "+f"(acc[j_2 * 16 + i * 4 + 2]), "+f"(acc[j_2 * 16 + i * 4 + 3])
            : "r"(rA_2_u32[i * 4]), "r"(rA_2_u32[i * 4 + 1]), "r"(rA_2_u32[i * 4 + 2]),
              "r"(rA_2_u32[i * 4 + 3]), "r"(rB_2_u32[j_2 * 2]), "r"(rB_2_u32[j_2 * 2 + 1]));
      }
    }
    asm volatile("cp.async.wait_group 1;\n" ::: "memory");  // line 150
    __syncthreads();  // line 151
    // line 152: Move (view of %sA) -> (%rA_2)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 156
      // line 157: ldmatrix.x4.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(rA_2_u32[i * 4]), "=r"(rA_2_u32[i * 4 + 1]), "=r"(rA_2_u32[i * 4 + 2]),
            "=r"(rA_2_u32[i * 4 + 3])
          : "r"(shared_address(&sA[stage_1 * 8192 + (tid / 32) % 2 * 4096 + i * 1024 +
                        swizzle<3, 3, 3>(tid % 16 * 64 + (tid / 16) % 2 * 8)]))
          : "memory");
    }
    // line 160: Move (view of %sB) -> (%rB_2)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 164
      // line 165: ldmatrix.x4.trans.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(rB_2_u32[i * 4]), "=r"(rB_2_u32[i * 4 + 1]), "=r"(rB_2_u32[i * 4 + 2]),
            "=r"(rB_2_u32[i * 4 + 3])
          : "r"(shared_address(&sB[stage_1 * 16384 + swizzle<3, 3, 5>(tid % 16 * 256 +
                            tid / 64 * 64 + i * 16 + (tid / 16) % 2 * 8)]))
          : "memory");
    }
    // line 168: MatMul (%rA_3, %rB_3) -> (%acc)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 172
      #pragma unroll
      for (int j_2 = 0; j_2 < 8; j_2 += 1) {  // line 173
        // line 174: mma.m16n8k16.f32.f16
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
            : "+f"(acc[j_2 * 16 + i * 4]), "+f"(acc[j_2 * 16 + i * 4 + 1]),
              "+f"(acc[j_2 * 16 + i * 4 + 2]), "+f"(acc[j_2 * 16 + i * 4 + 3])
            : "r"(rA_3_u32[i * 4]), "r"(rA_3_u32[i * 4 + 1]), "r"(rA_3_u32[i * 4 + 2]),
              "r"(rA_3_u32[i * 4 + 3]), "r"(rB_3_u32[j_2 * 2]), "r"(rB_3_u32[j_2 * 2 + 1]));
      }
    }
    if (k + 3 < 64) {  // line 180
      // line 181: Move (view of %A) -> (view of %sA)
      #pragma unroll
      for (int i = 0; i < 4; i += 1) {  // line 184
        // line 185: cp.async.cg.b128
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n"
            :
            : "r"(shared_address(&sA[stage * 8192 + i * 2048 + swizzle<3, 3, 3>(tid * 8)])),
              "l"(&A_next[i * 131072])
            : "memory");
      }
      // line 188: Move (view of %B) -> (view of %sB)
      #pragma unroll
      for (int i = 0; i < 8; i += 1) {  // line 191
        // line 192: cp.async.cg.b128
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n"
            :
            : "r"(shared_address(&sB[stage * 16384 + i / 4 * 8192 + swizzle<3, 3, 5>(tid / 8 * 256 +
                              i % 4 * 64 + tid % 8 * 8)])),
              "l"(&B_next[i / 4 * 131072 + i % 4 * 64])
            : "memory");
      }
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 196
    stage += 1;
    if (stage == 3) {
      stage = 0;
    }
    stage_1 += 1;
    if (stage_1 == 3) {
      stage_1 = 0;
    }
    A_next += 64;
    B_next += 262144;
  }
  alignas(16) __half rC[128];  // line 198
  // line 199: UnaryPointwise.cast (%acc) -> (%rC)
  #pragma unroll
  for (int i = 0; i < 64; i += 1) {  // line 202
    // line 203
    *reinterpret_cast<__half2*>(&rC[i * 2]) =
        __float22half2_rn(*reinterpret_cast<float2*>(&acc[i * 2]));
  }
  __half* sC = reinterpret_cast<__half*>(smem + 49152);  // line 206
  __syncthreads();  // line 207
  // line 208: Move (%rC) -> (%sC)
  #pragma unroll
  for (int i = 0; i < 64; i += 1) {  // line 211
    // line 212
    *reinterpret_cast<unsigned*>(&sC[swizzle<3, 3, 5>((tid / 32) % 2 * 16384 + i % 8 * 2048 +
                        (tid / 4) % 8 * 256 + tid / 64 * 64 + i / 8 * 8 + tid % 4 * 2)]) =
        *reinterpret_cast<unsigned*>(&rC[i * 2]);
  }
  {  // line 215: Move (%sC) -> (%gC)
    alignas(16) __half r[128];  // line 216
    __syncthreads();  // line 217
    // line 218: Move (%sC) -> (%r)
    #pragma unroll
    for (int i = 0; i < 16; i += 1) {  // line 221
      // line 222
      *reinterpret_cast<uint4*>(&r[i * 8]) =
          *reinterpret_cast<uint4*>(&sC[swizzle<3, 3, 5>(i * 2048 + tid * 8)]);
    }
    // line 225: Move (%r) -> (%gC)
    #pragma unroll
    for (int i = 0; i < 16; i += 1) {  // line 228
      // line 229
      *reinterpret_cast<uint4*>(&C[bm * 524288 + i * 32768 + tid / 32 * 4096 + bn * 256 +
                      tid % 32 * 8]) = *reinterpret_cast<uint4*>(&r[i * 8]);
    }
  }
}
