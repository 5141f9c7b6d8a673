// copy, line 9: Move (%1) -> (%2)
// sm_80: grid 1, block 32, dynamic shared memory 512 bytes

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

extern "C" __global__ void __launch_bounds__(32)
copy(const __half* __restrict__ t1, __half* __restrict__ t2) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  __half* s = reinterpret_cast<__half*>(smem);  // line 10
  alignas(16) __half r[8];  // line 11
  unsigned* r_u32 = reinterpret_cast<unsigned*>(r);
  {  // line 13: Move (%1) -> (%s)
    const int row = threadIdx.x / 2;  // line 14
    const int half_1 = threadIdx.x % 2;  // line 14
    // line 15: cp.async.cg.b128
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16;\n"
        :
        : "r"(shared_address(&s[swizzle<1, 3, 3>(row * 16 + half_1 * 8)])),
          "l"(&t1[row * 16 + half_1 * 8])
        : "memory");
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 16
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 17
  }
  __syncthreads();  // line 19
  {  // line 20: Move (%s) -> (%r)
    const int thr_grp_m = threadIdx.x / 16;  // line 22
    const int thr_grp_n = (threadIdx.x / 8) % 2;  // line 22
    const int grp_local = threadIdx.x % 8;  // line 23
    // line 25: ldmatrix.x4.b16
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
        : "=r"(r_u32[0]), "=r"(r_u32[1]), "=r"(r_u32[2]), "=r"(r_u32[3])
        : "r"(shared_address(&s[swizzle<1, 3, 3>(thr_grp_m * 128 + grp_local * 16 +
                          thr_grp_n * 8)]))
        : "memory");
  }
  // line 27: Move (%r) -> (%2)
  #pragma unroll
  for (int i = 0; i < 2; i += 1) {  // line 29
    #pragma unroll
    for (int j = 0; j < 2; j += 1) {  // line 30
      // line 31
      *reinterpret_cast<unsigned*>(&t2[j * 128 + tid / 4 * 16 + i * 8 + tid % 4 * 2]) =
          *reinterpret_cast<unsigned*>(&r[j * 4 + i * 2]);
    }
  }
}
