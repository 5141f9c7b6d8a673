// copy_transposed, line 11: Move (%A) -> (%B)
// sm_80: grid 512, block 32, dynamic shared memory 0 bytes

#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(32)
copy_transposed(const __half* __restrict__ A, __half* __restrict__ B) {
  const int tid = threadIdx.x;
  const int i = blockIdx.x % 16;  // line 12
  const int j = blockIdx.x / 16;  // line 12
  alignas(16) __half x[32];  // line 13
  // line 14: Move (view of %A) -> (%x)
  #pragma unroll
  for (int i_1 = 0; i_1 < 4; i_1 += 1) {  // line 17
    // line 18
    *reinterpret_cast<uint4*>(&x[i_1 * 8]) =
        *reinterpret_cast<const uint4*>(&A[i * 32768 + i_1 * 8192 + tid / 4 * 1024 + j * 32 +
                        tid % 4 * 8]);
  }
  // line 21: Move (%x) -> (view of %B)
  #pragma unroll
  for (int i_1 = 0; i_1 < 32; i_1 += 1) {  // line 24
    // line 25
    B[j * 16384 + tid % 4 * 4096 + i_1 % 8 * 512 + i * 32 + i_1 / 8 * 8 + tid / 4] = x[i_1];
  }
}
