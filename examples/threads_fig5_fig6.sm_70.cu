// figures, line 14: Move (%in) -> (%out)
// sm_70: grid 1, block 32, dynamic shared memory 512 bytes

#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(32)
figures(const __half* __restrict__ in, __half* __restrict__ out) {
  extern __shared__ __align__(1024) unsigned char smem[];
  __half* tile = reinterpret_cast<__half*>(smem);  // line 15
  {  // line 29: Move (%in) -> (%tile)
    const int m = threadIdx.x / 16;  // line 30
    const int n = (threadIdx.x / 8) % 2;  // line 30
    const int r = threadIdx.x % 8;  // line 31
    alignas(16) __half x[8];  // line 34
    // line 35
    *reinterpret_cast<uint4*>(x) = *reinterpret_cast<const uint4*>(&in[m * 128 + r * 16 + n * 8]);
    // line 36
    *reinterpret_cast<uint4*>(&tile[m * 128 + r * 16 + n * 8]) = *reinterpret_cast<uint4*>(x);
  }
  __syncthreads();  // line 38
  {  // line 41: Move (%tile) -> (%out)
    const int q = (threadIdx.x / 4) % 4;  // line 42
    const int t = threadIdx.x / 16 * 4 + threadIdx.x % 4;  // line 43
    alignas(16) __half x[8];  // line 46
    // line 47
    *reinterpret_cast<uint4*>(x) =
        *reinterpret_cast<uint4*>(&tile[q * 64 + t % 4 * 16 + t / 4 * 8]);
    // line 48
    *reinterpret_cast<uint4*>(&out[q * 64 + t % 4 * 16 + t / 4 * 8]) = *reinterpret_cast<uint4*>(x);
  }
}
