// copy_transposed, line 11: Move (%A) -> (%B)
// sm_80: grid 512, block 32, dynamic shared memory 0 bytes

#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(32)
copy_transposed(const __half* __restrict__ A, __half* __restrict__ B) {
  const int tid = threadIdx.x;
  const int i = blockIdx.x;  // line 12
  alignas(16) __half x[32];  // line 13
  // line 14: Move (view of %A) -> (%x)
  #pragma unroll
  for (int i_1 = 0; i_1 < 16; i_1 += 1) {  // line 17
    // line 18
    *reinterpret_cast<unsigned*>(&x[i_1 * 2]) =
        *reinterpret_cast<const unsigned*>(&A[i_1 * 32768 + tid * 1024 + i * 2]);
  }
  // line 21: Move (%x) -> (view of %B)
  #pragma unroll
  for (int i_1 = 0; i_1 < 32; i_1 += 1) {  // line 25
    B[i * 1024 + i_1 % 2 * 512 + i_1 / 2 * 32 + tid] = x[i_1];  // line 26
  }
}
