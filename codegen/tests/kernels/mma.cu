// gemm_mma, line 11: MatMul.set (%A, %B) -> (%C)
// sm_80: grid 4, block 128, dynamic shared memory 1536 bytes

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
gemm_mma(const __half* __restrict__ A, const __half* __restrict__ B, float* __restrict__ C) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  const int bm = blockIdx.x % 2;  // line 16
  const int bn = blockIdx.x / 2;  // line 16
  const int wm = (threadIdx.x / 32) % 2;  // line 17
  const int wn = threadIdx.x / 64;  // line 17
  __half* As = reinterpret_cast<__half*>(smem);  // line 19
  __half* Bs = reinterpret_cast<__half*>(smem + 1024);  // line 20
  alignas(16) float acc[4];  // line 21
  // line 22: Init (0) -> (%acc)
  #pragma unroll
  for (int i = 0; i < 2; i += 1) {  // line 23
    #pragma unroll
    for (int j = 0; j < 2; j += 1) {  // line 24
      acc[i * 2 + j] = 0.0f;  // line 25
    }
  }
  #pragma unroll 1
  for (int k = 0; k < 4; k += 1) {  // line 29
    if (threadIdx.x < 64) {  // line 32: Move (%Ag) -> (%As)
      const int row = threadIdx.x / 2;  // line 33
      const int part = threadIdx.x % 2;  // line 33
      // line 34: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&As[swizzle<1, 3, 3>(row * 16 + part * 8)])),
            "l"(&A[bm * 2048 + row * 64 + k * 16 + part * 8])
          : "memory");
    }
    if (threadIdx.x >= 64 && threadIdx.x < 96) {  // line 36: Move (%Bg) -> (%Bs)
      const int col = tid / 2 - 32;  // line 37
      const int part = threadIdx.x % 2;  // line 37
      // line 38: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&Bs[swizzle<1, 3, 3>(col * 16 + part * 8)])),
            "l"(&B[bn * 1024 + col * 64 + k * 16 + part * 8])
          : "memory");
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 40
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 41
    __syncthreads();  // line 42
    {  // line 43: MatMul (%As, %Bs) -> (%acc)
      alignas(16) __half a[8];  // line 44
      unsigned* a_u32 = reinterpret_cast<unsigned*>(a);
      alignas(8) __half b[4];  // line 45
      unsigned* b_u32 = reinterpret_cast<unsigned*>(b);
      const int q = (threadIdx.x / 8) % 4;  // line 46
      const int r = threadIdx.x % 8;  // line 46
      // line 48: ldmatrix.x4.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(a_u32[0]), "=r"(a_u32[1]), "=r"(a_u32[2]), "=r"(a_u32[3])
          : "r"(shared_address(&As[swizzle<1, 3, 3>(wm * 256 + q % 2 * 128 + r * 16 + q / 2 * 8)]))
          : "memory");
      // line 50: ldmatrix.x2.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];\n"
          : "=r"(b_u32[0]), "=r"(b_u32[1])
          : "r"(shared_address(&Bs[swizzle<1, 3, 3>(wn * 128 + r * 16 + q % 2 * 8)]))
          : "memory");
      // line 51: mma.m16n8k16.f32.f16
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
          : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
          : "r"(a_u32[0]), "r"(a_u32[1]), "r"(a_u32[2]), "r"(a_u32[3]), "r"(b_u32[0]),
            "r"(b_u32[1]));
    }
    __syncthreads();  // line 53
  }
  #pragma unroll
  for (int i = 0; i < 2; i += 1) {  // line 57
    // line 58
    *reinterpret_cast<uint2*>(&C[bm * 1024 + wm * 512 + i * 256 + (tid / 4) % 8 * 32 + bn * 16 +
                    wn * 8 + tid % 4 * 2]) = *reinterpret_cast<uint2*>(&acc[i * 2]);
  }
}
