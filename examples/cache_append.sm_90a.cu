// cache_append, line 19: Spec (%k, %v, %slots, %keys, %values) -> (%keys, %values)
// sm_90a: grid B, block 128, dynamic shared memory 0 bytes

#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(128)
cache_append(
    const __half* __restrict__ k,
    const __half* __restrict__ v,
    const int* __restrict__ slots,
    __half* __restrict__ keys,
    __half* __restrict__ values,
    const int B,
    const int P) {
  const int tid = threadIdx.x;
  const int b = blockIdx.x % max(B, 1);  // line 20
  const int slot = slots[b];  // line 21
  {  // line 22: Move (view of %k) -> (view of %keys)
    alignas(16) __half r[8];  // line 23
    // line 24: Move (view of %k) -> (%r)
    // line 27
    *reinterpret_cast<uint4*>(r) = *reinterpret_cast<const uint4*>(&k[b * 1024 + tid * 8]);
    // line 29: Move (%r) -> (view of %keys)
    // line 32
    *reinterpret_cast<uint4*>(&keys[slot * 1024 + tid * 8]) = *reinterpret_cast<uint4*>(r);
  }
  {  // line 35: Move (view of %v) -> (view of %values)
    alignas(16) __half r_2[8];  // line 36
    // line 37: Move (view of %v) -> (%r_2)
    // line 40
    *reinterpret_cast<uint4*>(r_2) = *reinterpret_cast<const uint4*>(&v[b * 1024 + tid * 8]);
    // line 42: Move (%r_2) -> (view of %values)
    // line 45
    *reinterpret_cast<uint4*>(&values[slot * 1024 + tid * 8]) = *reinterpret_cast<uint4*>(r_2);
  }
}
