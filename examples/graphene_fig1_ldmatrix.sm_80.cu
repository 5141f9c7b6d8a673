// ldmatrix, line 14: Move (%in) -> (%out)
// sm_80: grid 1, block 32, dynamic shared memory 512 bytes

#include <cuda_fp16.h>

// The address of an array element in shared memory, as PTX expects it.
template <typename T>
__device__ __forceinline__ unsigned shared_address(const T* array, int i = 0) {
  return static_cast<unsigned>(__cvta_generic_to_shared(array)) + i * int(sizeof(T));
}

extern "C" __global__ void __launch_bounds__(32)
ldmatrix(const __half* __restrict__ in, __half* __restrict__ out) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  __half* t1 = reinterpret_cast<__half*>(smem);  // line 15
  alignas(16) __half t2[8];  // line 16
  unsigned* t2_u32 = reinterpret_cast<unsigned*>(t2);
  {  // line 19: Move (%in) -> (%1)
    const int r = threadIdx.x / 2;  // line 21
    const int h = threadIdx.x % 2;  // line 21
    alignas(16) __half v[8];  // line 22
    *reinterpret_cast<uint4*>(v) = *reinterpret_cast<const uint4*>(&in[r * 16 + h * 8]);  // line 23
    *reinterpret_cast<uint4*>(&t1[r * 16 + h * 8]) = *reinterpret_cast<uint4*>(v);  // line 24
  }
  __syncthreads();  // line 26
  {  // line 28: Move (%1) -> (%2)
    const int grp_m = threadIdx.x / 16;  // line 32
    const int grp_n = (threadIdx.x / 8) % 2;  // line 32
    const int row = threadIdx.x % 8;  // line 39
    // line 41: ldmatrix.x4.b16
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
        : "=r"(t2_u32[0]), "=r"(t2_u32[1]), "=r"(t2_u32[2]), "=r"(t2_u32[3])
        : "r"(shared_address(&t1[grp_m * 128 + row * 16 + grp_n * 8]))
        : "memory");
  }
  // line 45: Move (%2) -> (%out)
  #pragma unroll
  for (int i = 0; i < 4; i += 1) {  // line 48
    // line 49
    *reinterpret_cast<unsigned*>(&out[i / 2 * 128 + tid / 4 * 16 + i % 2 * 8 + tid % 4 * 2]) =
        *reinterpret_cast<unsigned*>(&t2[i * 2]);
  }
}
