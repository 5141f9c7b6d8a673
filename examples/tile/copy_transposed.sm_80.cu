// copy_transposed, line 11: Move (%A) -> (%B)
// sm_80: grid 128, block 128, dynamic shared memory 8192 bytes

#include <cuda_fp16.h>

// Flips the B bits above the lowest M ones by the B bits that lie S higher.
template <int B, int M, int S, typename T>
__device__ __forceinline__ T swizzle(T i) {
  return i ^ ((i >> S) & (((T(1) << B) - 1) << M));
}

extern "C" __global__ void __launch_bounds__(128)
copy_transposed(const __half* __restrict__ A, __half* __restrict__ B) {
  extern __shared__ __align__(8192) unsigned char smem[];
  const int tid = threadIdx.x;
  const int i = blockIdx.x % 8;  // line 12
  const int j = blockIdx.x / 8;  // line 12
  alignas(16) __half r[32];  // line 13
  __half* s = reinterpret_cast<__half*>(smem);  // line 14
  alignas(16) __half w[32];  // line 15
  // line 16: Move (view of %A) -> (%r)
  #pragma unroll
  for (int i_1 = 0; i_1 < 4; i_1 += 1) {  // line 19
    // line 20
    *reinterpret_cast<uint4*>(&r[i_1 * 8]) =
        *reinterpret_cast<const uint4*>(&A[i * 65536 + i_1 * 16384 + tid / 8 * 1024 + j * 64 +
                        tid % 8 * 8]);
  }
  // line 23: Move (%r) -> (%s)
  #pragma unroll
  for (int i_1 = 0; i_1 < 4; i_1 += 1) {  // line 26
    // line 27
    *reinterpret_cast<uint4*>(&s[swizzle<3, 3, 6>(i_1 * 1024 + tid * 8)]) =
        *reinterpret_cast<uint4*>(&r[i_1 * 8]);
  }
  __syncthreads();  // line 30
  // line 31: Move (%s) -> (%w)
  #pragma unroll
  for (int i_1 = 0; i_1 < 32; i_1 += 1) {  // line 34
    w[i_1] = s[swizzle<3, 3, 6>(tid % 8 * 512 + i_1 % 8 * 64 + i_1 / 8 * 16 + tid / 8)];  // line 35
  }
  // line 38: Move (%w) -> (view of %B)
  #pragma unroll
  for (int i_1 = 0; i_1 < 4; i_1 += 1) {  // line 41
    // line 42
    *reinterpret_cast<uint4*>(&B[j * 32768 + i_1 * 8192 + tid / 8 * 512 + i * 64 + tid % 8 * 8]) =
        *reinterpret_cast<uint4*>(&w[i_1 * 8]);
  }
}
