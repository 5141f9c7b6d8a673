// gemm_roles, line 18: MatMul.set (%A, %B) -> (%C)
// sm_80: grid 4, block 288, dynamic shared memory 147512 bytes
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

extern "C" __global__ void __launch_bounds__(288)
gemm_roles(const __half* __restrict__ A, const __half* __restrict__ B, __half* __restrict__ C) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  const int bm = blockIdx.x % 2;  // line 19
  const int bn = blockIdx.x / 2;  // line 19
  alignas(16) float c[128];  // line 22
  if (threadIdx.x < 256) {  // line 23: Init (0) -> (%c)
    #pragma unroll
    for (int i = 0; i < 128; i += 1) {  // line 25
      c[i] = 0.0f;  // line 26
    }
  }
  __half* a = reinterpret_cast<__half*>(smem);  // line 29
  __half* b = reinterpret_cast<__half*>(smem + 49152);  // line 30
  unsigned long long* full = reinterpret_cast<unsigned long long*>(smem + 147456);  // line 31
  unsigned long long* empty = reinterpret_cast<unsigned long long*>(smem + 147488);  // line 32
  if (threadIdx.x == 0) {  // line 33: Spec () -> (%full, %empty)
    // line 34: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(full)), "r"(32)
        : "memory");
    // line 34: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(full, 1)), "r"(32)
        : "memory");
    // line 34: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(full, 2)), "r"(32)
        : "memory");
    // line 35: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(empty)), "r"(8)
        : "memory");
    // line 35: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(empty, 1)), "r"(8)
        : "memory");
    // line 35: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(empty, 2)), "r"(8)
        : "memory");
  }
  __syncthreads();  // line 37
  if (threadIdx.x >= 256) {  // line 38: Spec (%empty, %A, %B, %full) -> (%a, %b)
    int stage = 0;
    int phase = 1;
    const __half* A_next = &A[bm * 32768 + (tid / 8) % 4 * 256 + tid % 8 * 8];
    const __half* B_next = &B[(tid / 8) % 4 * 512 + bn * 256 + tid % 8 * 8];
    for (int k = 0; k < 4; k += 1) {  // line 39
      // line 40: mbarrier.wait
      asm volatile(
          "{\n"
          ".reg .pred complete;\n"
          "again:\n"
          "mbarrier.test_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
          "@!complete bra again;\n"
          "}\n"
          :
          : "r"(shared_address(empty, stage)), "r"(phase)
          : "memory");
      // line 41: Move (view of %A) -> (view of %a)
      #pragma unroll
      for (int i = 0; i < 32; i += 1) {  // line 44
        // line 45: cp.async.cg.b128
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n"
            :
            : "r"(shared_address(&a[stage * 8192 + swizzle<3, 3, 3>(i * 256 + tid % 32 * 8)])),
              "l"(&A_next[i * 1024])
            : "memory");
      }
      // line 48: Move (view of %B) -> (view of %b)
      #pragma unroll
      for (int i = 0; i < 64; i += 1) {  // line 52
        // line 53: cp.async.cg.b128
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n"
            :
            : "r"(shared_address(&b[stage * 16384 + swizzle<3, 3, 5>(i / 4 * 1024 +
                              (tid / 8) % 4 * 256 + i % 4 * 64 + tid % 8 * 8)])),
              "l"(&B_next[i / 4 * 2048 + i % 4 * 64])
            : "memory");
      }
      // line 56: mbarrier.async_arrive
      asm volatile(
          "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];\n"
          :
          : "r"(shared_address(full, stage))
          : "memory");
      stage += 1;
      if (stage == 3) {
        stage = 0;
        phase ^= 1;
      }
      A_next += 64;
      B_next += 32768;
    }
  }
  if (threadIdx.x < 256) {  // line 59: Spec (%full, %a, %b, %empty) -> (%c)
    int stage = 0;
    int turn = 0;
    for (int k = 0; k < 4; k += 1) {  // line 63
      // line 64: mbarrier.wait
      asm volatile(
          "{\n"
          ".reg .pred complete;\n"
          "again:\n"
          "mbarrier.test_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
          "@!complete bra again;\n"
          "}\n"
          :
          : "r"(shared_address(full, stage)), "r"(turn)
          : "memory");
      #pragma unroll 1
      for (int s = 0; s < 4; s += 1) {  // line 66
        {  // line 67: MatMul (view of %a, view of %b) -> (%c)
          alignas(16) __half r[32];  // line 68
          unsigned* r_u32 = reinterpret_cast<unsigned*>(r);
          // line 69: Move (view of %a) -> (%r)
          #pragma unroll
          for (int i = 0; i < 4; i += 1) {  // line 73
            // line 74: ldmatrix.x4.b16
            asm volatile(
                "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                : "=r"(r_u32[i * 4]), "=r"(r_u32[i * 4 + 1]), "=r"(r_u32[i * 4 + 2]),
                  "=r"(r_u32[i * 4 + 3])
                : "r"(shared_address(&a[stage * 8192 + (tid / 32) % 2 * 4096 + i * 1024 +
                              swizzle<3, 3, 3>(tid % 16 * 64 + s * 16 + (tid / 16) % 2 * 8)]))
                : "memory");
          }
          alignas(16) __half r_2[32];  // line 77
          unsigned* r_2_u32 = reinterpret_cast<unsigned*>(r_2);
          // line 78: Move (view of %b) -> (%r_2)
          #pragma unroll
          for (int i = 0; i < 4; i += 1) {  // line 82
            // line 83: ldmatrix.x4.trans.b16
            asm volatile(
                "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                : "=r"(r_2_u32[i * 4]), "=r"(r_2_u32[i * 4 + 1]), "=r"(r_2_u32[i * 4 + 2]),
                  "=r"(r_2_u32[i * 4 + 3])
                : "r"(shared_address(&b[stage * 16384 + s * 4096 + swizzle<3, 3, 5>(tid % 16 * 256 +
                                  (tid / 64) % 4 * 64 + i * 16 + (tid / 16) % 2 * 8)]))
                : "memory");
          }
          // line 86: MatMul (%r, %r_2) -> (%c)
          #pragma unroll
          for (int i = 0; i < 4; i += 1) {  // line 90
            #pragma unroll
            for (int j = 0; j < 8; j += 1) {  // line 91
              // line 92: mma.m16n8k16.f32.f16
              asm volatile(
                  "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                  "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                  : "+f"(c[j * 16 + i * 4]), "+f"(c[j * 16 + i * 4 + 1]),
                    "+f"(c[j * 16 + i * 4 + 2]), "+f"(c[j * 16 + i * 4 + 3])
                  : "r"(r_u32[i * 4]), "r"(r_u32[i * 4 + 1]), "r"(r_u32[i * 4 + 2]),
                    "r"(r_u32[i * 4 + 3]), "r"(r_2_u32[j * 2]), "r"(r_2_u32[j * 2 + 1]));
            }
          }
        }
      }
      __syncwarp();  // line 100
      if (threadIdx.x % 32 == 0 && threadIdx.x / 256 == 0) {  // line 101: Spec (%empty) -> ()
        // line 102: mbarrier.arrive
        asm volatile(
            "{\n"
            ".reg .b64 state;\n"
            "mbarrier.arrive.shared::cta.b64 state, [%0];\n"
            "}\n"
            :
            : "r"(shared_address(empty, stage))
            : "memory");
      }
      stage += 1;
      if (stage == 3) {
        stage = 0;
        turn += 1;
      }
    }
  }
  if (threadIdx.x < 256) {  // line 106: UnaryPointwise.cast (%c) -> (view of %C)
    alignas(16) __half r_3[128];  // line 107
    // line 108: UnaryPointwise.cast (%c) -> (%r_3)
    #pragma unroll
    for (int i = 0; i < 64; i += 1) {  // line 111
      // line 112
      *reinterpret_cast<__half2*>(&r_3[i * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&c[i * 2]));
    }
    // line 115: Move (%r_3) -> (view of %C)
    #pragma unroll
    for (int i = 0; i < 64; i += 1) {  // line 119
      // line 120
      *reinterpret_cast<unsigned*>(&C[bm * 65536 + (tid / 32) % 2 * 32768 + i % 8 * 4096 +
                      (tid / 4) % 8 * 512 + bn * 256 + (tid / 64) % 4 * 64 + i / 8 * 8 +
                      tid % 4 * 2]) = *reinterpret_cast<unsigned*>(&r_3[i * 2]);
    }
  }
}
