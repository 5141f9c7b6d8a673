// copy_transposed, line 11: Move (%A) -> (%B)
// sm_80: grid 512, block 64, dynamic shared memory 2048 bytes

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

extern "C" __global__ void __launch_bounds__(64)
copy_transposed(const __half* __restrict__ A, __half* __restrict__ B) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  const int i = blockIdx.x % 16;  // line 12
  const int j = blockIdx.x / 16;  // line 12
  alignas(16) __half x[16];  // line 13
  // line 14: Move (view of %A) -> (%x)
  #pragma unroll
  for (int i_1 = 0; i_1 < 2; i_1 += 1) {  // line 17
    // line 18
    *reinterpret_cast<uint4*>(&x[i_1 * 8]) =
        *reinterpret_cast<const uint4*>(&A[i * 32768 + i_1 * 16384 + tid / 4 * 1024 + j * 32 +
                        tid % 4 * 8]);
  }
  __half* s = reinterpret_cast<__half*>(smem);  // line 21
  // line 22: Move (%x) -> (%s)
  #pragma unroll
  for (int i_1 = 0; i_1 < 2; i_1 += 1) {  // line 25
    // line 26
    *reinterpret_cast<uint4*>(&s[swizzle<2, 3, 5>(i_1 * 512 + tid * 8)]) =
        *reinterpret_cast<uint4*>(&x[i_1 * 8]);
  }
  alignas(16) __half r[16];  // line 29
  unsigned* r_u32 = reinterpret_cast<unsigned*>(r);
  __syncthreads();  // line 30
  // line 31: Move (%s) -> (%r)
  #pragma unroll
  for (int i_1 = 0; i_1 < 2; i_1 += 1) {  // line 34
    // line 35: ldmatrix.x4.trans.b16
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
        : "=r"(r_u32[i_1 * 4]), "=r"(r_u32[i_1 * 4 + 1]), "=r"(r_u32[i_1 * 4 + 2]),
          "=r"(r_u32[i_1 * 4 + 3])
        : "r"(shared_address(&s[swizzle<2, 3, 5>((tid / 2) % 4 * 256 + (tid / 8) % 4 * 64 +
                          tid % 2 * 32 + i_1 * 16 + tid / 32 * 8)]))
        : "memory");
  }
  // line 38: Move (%r) -> (view of %B)
  #pragma unroll
  for (int i_1 = 0; i_1 < 2; i_1 += 1) {  // line 41
    // line 42
    *reinterpret_cast<uint4*>(&B[j * 16384 + i_1 * 8192 + tid / 4 * 512 + i * 32 + tid % 4 * 8]) =
        *reinterpret_cast<uint4*>(&r[i_1 * 8]);
  }
}
