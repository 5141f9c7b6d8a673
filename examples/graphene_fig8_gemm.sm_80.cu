// graphene_kernel, line 16: MatMul (%1, %2) -> (%3)
// sm_80: grid 64, block 256, dynamic shared memory 0 bytes

#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(256)
graphene_kernel(
    const __half* __restrict__ t1,
    const __half* __restrict__ t2,
    __half* __restrict__ t3) {
  const int bid_m = blockIdx.x % 8;  // line 17
  const int bid_n = blockIdx.x / 8;  // line 17
  const int tid_m = threadIdx.x % 16;  // line 18
  const int tid_n = threadIdx.x / 16;  // line 18
  #pragma unroll
  for (int k = 0; k < 1024; k += 1) {  // line 19
    #pragma unroll
    for (int m = 0; m < 8; m += 1) {  // line 20
      #pragma unroll
      for (int n = 0; n < 8; n += 1) {  // line 21
        // line 42
        t3[bid_m * 131072 + tid_m * 8192 + m * 1024 + bid_n * 128 + tid_n * 8 + n] =
            __hfma(t1[bid_m * 131072 + tid_m * 8192 + m * 1024 + k],
                t2[k * 1024 + bid_n * 128 + tid_n * 8 + n],
                t3[bid_m * 131072 + tid_m * 8192 + m * 1024 + bid_n * 128 + tid_n * 8 + n]);
      }
    }
  }
}
