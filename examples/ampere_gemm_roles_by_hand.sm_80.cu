// ampere_gemm_roles, line 21: MatMul.set (%A, %B) -> (%C)
// sm_80: grid 4, block 288, dynamic shared memory 164864 bytes
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
ampere_gemm_roles(
    const __half* __restrict__ A,
    const __half* __restrict__ B,
    __half* __restrict__ C) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  const int bm = blockIdx.x % 2;  // line 22
  const int bn = blockIdx.x / 2;  // line 22
  __half* As = reinterpret_cast<__half*>(smem);  // line 32
  __half* Bs = reinterpret_cast<__half*>(smem + 49152);  // line 33
  unsigned long long* full = reinterpret_cast<unsigned long long*>(smem + 147456);  // line 34
  unsigned long long* empty = reinterpret_cast<unsigned long long*>(smem + 147488);  // line 35
  if (threadIdx.x == 0) {  // line 36: Spec () -> (%full, %empty)
    // line 37: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(full)), "r"(32)
        : "memory");
    // line 37: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(full, 1)), "r"(32)
        : "memory");
    // line 37: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(full, 2)), "r"(32)
        : "memory");
    // line 38: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(empty)), "r"(8)
        : "memory");
    // line 38: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(empty, 1)), "r"(8)
        : "memory");
    // line 38: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(empty, 2)), "r"(8)
        : "memory");
  }
  __syncthreads();  // line 40
  if (threadIdx.x >= 256) {  // line 42: Spec (%A, %B, %full, %empty) -> (%As, %Bs)
    int stage = 0;
    int phase = 1;
    for (int k = 0; k < 4; k += 1) {  // line 43
      // line 45: mbarrier.wait
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
      {  // line 48: Move (view of %A) -> (view of %As)
        const int r = tid / 8 - 32;  // line 50
        const int v = threadIdx.x % 8;  // line 50
        #pragma unroll
        for (int i = 0; i < 32; i += 1) {  // line 51
          // line 54: cp.async.cg.b128
          asm volatile(
              "cp.async.cg.shared.global [%0], [%1], 16;\n"
              :
              : "r"(shared_address(&As[stage * 8192 + swizzle<3, 3, 3>(i * 256 + r * 64 + v * 8)])),
                "l"(&A[bm * 32768 + i * 1024 + r * 256 + k * 64 + v * 8])
              : "memory");
        }
      }
      {  // line 57: Move (view of %B) -> (view of %Bs)
        const int v = tid - 256;  // line 58
        #pragma unroll
        for (int i = 0; i < 64; i += 1) {  // line 59
          // line 62: cp.async.cg.b128
          asm volatile(
              "cp.async.cg.shared.global [%0], [%1], 16;\n"
              :
              : "r"(shared_address(&Bs[stage * 16384 + swizzle<3, 3, 5>(i * 256 + v * 8)])),
                "l"(&B[k * 32768 + i * 512 + bn * 256 + v * 8])
              : "memory");
        }
      }
      // line 65: mbarrier.async_arrive
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
    }
  }
  if (threadIdx.x < 256) {  // line 69: Spec (%As, %Bs, %full, %empty) -> (%C)
    const int wn = (threadIdx.x / 32) % 4;  // line 71
    const int wm = threadIdx.x / 128;  // line 71
    alignas(16) __half a[32];  // line 76
    unsigned* a_u32 = reinterpret_cast<unsigned*>(a);
    alignas(16) __half b[32];  // line 77
    unsigned* b_u32 = reinterpret_cast<unsigned*>(b);
    alignas(16) float c[128];  // line 78
    // line 83: Init (0) -> (%c)
    #pragma unroll
    for (int i = 0; i < 128; i += 1) {  // line 84
      c[i] = 0.0f;  // line 85
    }
    int stage = 0;
    int turn = 0;
    for (int k = 0; k < 4; k += 1) {  // line 89
      // line 90: mbarrier.wait
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
      for (int s = 0; s < 4; s += 1) {  // line 92
        const int half_1 = (threadIdx.x / 16) % 2;  // line 94
        const int row = threadIdx.x % 16;  // line 94
        // line 97: Move (view of %As) -> (%a)
        #pragma unroll
        for (int i = 0; i < 4; i += 1) {  // line 98
          // line 100: ldmatrix.x4.b16
          asm volatile(
              "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
              : "=r"(a_u32[i * 4]), "=r"(a_u32[i * 4 + 1]), "=r"(a_u32[i * 4 + 2]),
                "=r"(a_u32[i * 4 + 3])
              : "r"(shared_address(&As[stage * 8192 + wm * 4096 + i * 1024 +
                            swizzle<3, 3, 3>(row * 64 + s * 16 + half_1 * 8)]))
              : "memory");
        }
        // line 105: Move (view of %Bs) -> (%b)
        #pragma unroll
        for (int j = 0; j < 4; j += 1) {  // line 106
          // line 109: ldmatrix.x4.trans.b16
          asm volatile(
              "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
              : "=r"(b_u32[j * 4]), "=r"(b_u32[j * 4 + 1]), "=r"(b_u32[j * 4 + 2]),
                "=r"(b_u32[j * 4 + 3])
              : "r"(shared_address(&Bs[stage * 16384 + s * 4096 + swizzle<3, 3, 5>(row * 256 +
                                wn * 64 + j * 16 + half_1 * 8)]))
              : "memory");
        }
        // line 113: MatMul (%a, %b) -> (%c)
        #pragma unroll
        for (int i = 0; i < 4; i += 1) {  // line 114
          #pragma unroll
          for (int j = 0; j < 8; j += 1) {  // line 115
            // line 116: mma.m16n8k16.f32.f16
            asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                : "+f"(c[j * 16 + i * 4]), "+f"(c[j * 16 + i * 4 + 1]), "+f"(c[j * 16 + i * 4 + 2]),
                  "+f"(c[j * 16 + i * 4 + 3])
                : "r"(a_u32[i * 4]), "r"(a_u32[i * 4 + 1]), "r"(a_u32[i * 4 + 2]),
                  "r"(a_u32[i * 4 + 3]), "r"(b_u32[j * 2]), "r"(b_u32[j * 2 + 1]));
          }
        }
      }
      __syncwarp();  // line 123
      if (threadIdx.x % 32 == 0 && threadIdx.x / 256 == 0) {  // line 124: Spec (%empty) -> ()
        // line 125: mbarrier.arrive
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
    alignas(16) __half h[128];  // line 130
    // line 131: UnaryPointwise.cast (%c) -> (%h)
    #pragma unroll
    for (int i = 0; i < 64; i += 1) {  // line 132
      // line 133
      *reinterpret_cast<__half2*>(&h[i * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&c[i * 2]));
    }
    __half* Cs = reinterpret_cast<__half*>(smem + 148480);  // line 138
    alignas(16) __half v[8];  // line 139
    const int pair = threadIdx.x % 4;  // line 141
    const int line = (threadIdx.x / 4) % 8;  // line 141
    const int part = threadIdx.x % 8;  // line 143
    const int quarter = (threadIdx.x / 8) % 4;  // line 143
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 144
      #pragma unroll
      for (int j = 0; j < 8; j += 1) {  // line 145
        #pragma unroll
        for (int p = 0; p < 2; p += 1) {  // line 146
          // line 147
          *reinterpret_cast<unsigned*>(&Cs[swizzle<3, 3, 3>(wn * 2048 + wm * 1024 + p * 512 +
                              line * 64 + j * 8 + pair * 2)]) =
              *reinterpret_cast<unsigned*>(&h[j * 16 + i * 4 + p * 2]);
        }
      }
      __syncwarp();  // line 152
      #pragma unroll
      for (int q = 0; q < 4; q += 1) {  // line 153
        // line 154
        *reinterpret_cast<uint4*>(v) =
            *reinterpret_cast<uint4*>(&Cs[swizzle<3, 3, 3>(wn * 2048 + wm * 1024 + q * 256 +
                                quarter * 64 + part * 8)]);
        // line 158
        *reinterpret_cast<uint4*>(&C[bm * 65536 + wm * 32768 + i * 8192 + q * 2048 + quarter * 512 +
                        bn * 256 + wn * 64 + part * 8]) = *reinterpret_cast<uint4*>(v);
      }
      __syncwarp();  // line 160
    }
  }
}
