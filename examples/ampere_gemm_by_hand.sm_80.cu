// ampere_gemm, line 19: MatMul.set (%A, %B) -> (%C)
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
ampere_gemm(const __half* __restrict__ A, const __half* __restrict__ B, __half* __restrict__ C) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  const int bm = blockIdx.x % 2;  // line 20
  const int bn = blockIdx.x / 2;  // line 20
  const int wm = (threadIdx.x / 32) % 2;  // line 22
  const int wn = threadIdx.x / 64;  // line 22
  __half* As = reinterpret_cast<__half*>(smem);  // line 31
  __half* Bs = reinterpret_cast<__half*>(smem + 8192);  // line 32
  alignas(16) __half a[32];  // line 35
  unsigned* a_u32 = reinterpret_cast<unsigned*>(a);
  alignas(16) __half b[32];  // line 36
  unsigned* b_u32 = reinterpret_cast<unsigned*>(b);
  alignas(16) float c[128];  // line 37
  // line 44: Init (0) -> (%c)
  #pragma unroll
  for (int i = 0; i < 128; i += 1) {  // line 45
    c[i] = 0.0f;  // line 46
  }
  for (int k = 0; k < 4; k += 1) {  // line 50
    __syncthreads();  // line 52
    {  // line 55: Move (view of %A) -> (%As)
      const int r = threadIdx.x / 4;  // line 57
      const int v = threadIdx.x % 4;  // line 57
      #pragma unroll
      for (int i = 0; i < 4; i += 1) {  // line 58
        // line 61: cp.async.cg.b128
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n"
            :
            : "r"(shared_address(&As[swizzle<2, 3, 3>(i * 1024 + r * 32 + v * 8)])),
              "l"(&A[bm * 16384 + i * 4096 + r * 128 + k * 32 + v * 8])
            : "memory");
      }
    }
    {  // line 66: Move (view of %B) -> (%Bs)
      const int r = threadIdx.x / 16;  // line 68
      const int v = threadIdx.x % 16;  // line 68
      #pragma unroll
      for (int i = 0; i < 4; i += 1) {  // line 69
        // line 72: cp.async.cg.b128
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n"
            :
            : "r"(shared_address(&Bs[swizzle<3, 3, 4>(i * 1024 + r * 128 + v * 8)])),
              "l"(&B[k * 8192 + i * 2048 + r * 256 + bn * 128 + v * 8])
            : "memory");
      }
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 75
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 76
    __syncthreads();  // line 77
    #pragma unroll
    for (int s = 0; s < 2; s += 1) {  // line 79
      {  // line 81: Move (view of %As) -> (%a)
        const int half_1 = (threadIdx.x / 16) % 2;  // line 83
        const int row = threadIdx.x % 16;  // line 83
        #pragma unroll
        for (int i = 0; i < 4; i += 1) {  // line 84
          // line 86: ldmatrix.x4.b16
          asm volatile(
              "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
              : "=r"(a_u32[i * 4]), "=r"(a_u32[i * 4 + 1]), "=r"(a_u32[i * 4 + 2]),
                "=r"(a_u32[i * 4 + 3])
              : "r"(shared_address(&As[swizzle<2, 3, 3>(wm * 2048 + i * 512 + row * 32 + s * 16 +
                                half_1 * 8)]))
              : "memory");
        }
      }
      {  // line 91: Move (view of %Bs) -> (%b)
        const int half_1 = (threadIdx.x / 16) % 2;  // line 93
        const int row = threadIdx.x % 16;  // line 93
        #pragma unroll
        for (int j = 0; j < 4; j += 1) {  // line 94
          // line 97: ldmatrix.x4.trans.b16
          asm volatile(
              "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
              : "=r"(b_u32[j * 4]), "=r"(b_u32[j * 4 + 1]), "=r"(b_u32[j * 4 + 2]),
                "=r"(b_u32[j * 4 + 3])
              : "r"(shared_address(&Bs[swizzle<3, 3, 4>(s * 2048 + row * 128 + wn * 64 + j * 16 +
                                half_1 * 8)]))
              : "memory");
        }
      }
      // line 101: MatMul (%a, %b) -> (%c)
      #pragma unroll
      for (int i = 0; i < 4; i += 1) {  // line 102
        #pragma unroll
        for (int j = 0; j < 8; j += 1) {  // line 103
          // line 104: mma.m16n8k16.f32.f16
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
  }
  alignas(16) __half h[128];  // line 112
  // line 114: UnaryPointwise.cast (%c) -> (%h)
  #pragma unroll
  for (int i = 0; i < 64; i += 1) {  // line 115
    // line 116
    *reinterpret_cast<__half2*>(&h[i * 2]) =
        __float22half2_rn(*reinterpret_cast<float2*>(&c[i * 2]));
  }
  // line 121: Move (%h) -> (%Cb)
  #pragma unroll
  for (int i = 0; i < 64; i += 1) {  // line 124
    // line 125
    *reinterpret_cast<unsigned*>(&C[bm * 32768 + (tid / 32) % 2 * 16384 + i % 8 * 2048 +
                    (tid / 4) % 8 * 256 + bn * 128 + tid / 64 * 64 + i / 8 * 8 + tid % 4 * 2]) =
        *reinterpret_cast<unsigned*>(&h[i * 2]);
  }
}
