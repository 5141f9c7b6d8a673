// transpose, line 15: Move (%A) -> (%B)
// sm_80: grid 16, block 128, dynamic shared memory 8192 bytes

#include <cuda_fp16.h>

// Flips the B bits above the lowest M ones by the B bits that lie S higher.
template <int B, int M, int S, typename T>
__device__ __forceinline__ T swizzle(T i) {
  return i ^ ((i >> S) & (((T(1) << B) - 1) << M));
}

extern "C" __global__ void __launch_bounds__(128)
transpose(const __half* __restrict__ A, __half* __restrict__ B) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  const int i = blockIdx.x % 4;  // line 16
  const int j = blockIdx.x / 4;  // line 16
  alignas(16) __half rows[32];  // line 17
  // line 18: Move (view of %A) -> (%rows)
  #pragma unroll
  for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 21
    // line 22
    *reinterpret_cast<uint4*>(&rows[i_2 * 8]) =
        *reinterpret_cast<const uint4*>(&A[i * 16384 + i_2 * 4096 + tid / 8 * 256 + j * 64 +
                        tid % 8 * 8]);
  }
  __half* shared = reinterpret_cast<__half*>(smem);  // line 25
  // line 26: Move (%rows) -> (%shared)
  #pragma unroll
  for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 29
    // line 30
    *reinterpret_cast<uint4*>(&shared[swizzle<3, 3, 6>(i_2 * 1024 + tid * 8)]) =
        *reinterpret_cast<uint4*>(&rows[i_2 * 8]);
  }
  alignas(16) __half columns[32];  // line 33
  __syncthreads();  // line 34
  // line 35: Move (%shared) -> (%columns)
  #pragma unroll
  for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 38
    // line 39
    columns[i_2] = shared[swizzle<3, 3, 6>(tid % 8 * 512 + i_2 % 8 * 64 + i_2 / 8 * 16 + tid / 8)];
  }
  // line 42: Move (%columns) -> (view of %B)
  #pragma unroll
  for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 45
    // line 46
    *reinterpret_cast<uint4*>(&B[j * 16384 + i_2 * 4096 + tid / 8 * 256 + i * 64 + tid % 8 * 8]) =
        *reinterpret_cast<uint4*>(&columns[i_2 * 8]);
  }
}
