// gemm, line 11: MatMul (%A, %B) -> (%C)
// sm_70: grid 64, block 256, dynamic shared memory 0 bytes

#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(256)
gemm(const __half* __restrict__ A, const __half* __restrict__ B, __half* __restrict__ C) {
  const int bid_m = blockIdx.x % 8;  // line 12
  const int bid_n = blockIdx.x / 8;  // line 12
  const int tid_m = threadIdx.x % 16;  // line 13
  const int tid_n = threadIdx.x / 16;  // line 13
  #pragma unroll 1
  for (int k = 0; k < 1024; k += 1) {  // line 14
    #pragma unroll
    for (int m = 0; m < 8; m += 1) {  // line 15
      #pragma unroll
      for (int n = 0; n < 8; n += 1) {  // line 16
        // line 20
        C[bid_n * 131072 + tid_n * 8192 + n * 1024 + bid_m * 128 + tid_m * 8 + m] =
            __hfma(A[k * 1024 + bid_m * 128 + tid_m * 8 + m],
                B[bid_n * 131072 + tid_n * 8192 + n * 1024 + k],
                C[bid_n * 131072 + tid_n * 8192 + n * 1024 + bid_m * 128 + tid_m * 8 + m]);
      }
    }
  }
}
