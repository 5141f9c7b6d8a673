// tma_copy, line 19: Move (%A) -> (%B)
// sm_90a: grid 12, block 128, dynamic shared memory 8200 bytes

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

// A tensor map as cuTensorMapEncodeTiled writes it.
#ifndef __cuda_cuda_h__
struct alignas(64) CUtensorMap {
  unsigned long long opaque[16];
};
#endif

extern "C" __global__ void __launch_bounds__(128)
tma_copy(
    const __half* __restrict__ A,
    __half* __restrict__ B,
    const __grid_constant__ CUtensorMap from,
    const __grid_constant__ CUtensorMap to) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int i = blockIdx.x % 4;  // line 20
  const int j = blockIdx.x / 4;  // line 20
  __half* tile = reinterpret_cast<__half*>(smem);  // line 24
  unsigned long long* full = reinterpret_cast<unsigned long long*>(smem + 8192);  // line 25
  if (threadIdx.x < 32) {
    int elected;
    asm volatile(
        "{\n"
        ".reg .pred one;\n"
        "elect.sync _|one, 0xffffffff;\n"
        "selp.b32 %0, 1, 0, one;\n"
        "}\n"
        : "=r"(elected)
        :
        : "memory");
    if (elected) {
      // line 27: Spec () -> (%full)
      // line 28: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(full)), "r"(1)
          : "memory");
      asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");  // line 29
    }
  }
  __syncthreads();  // line 31
  if (threadIdx.x < 32) {
    int elected;
    asm volatile(
        "{\n"
        ".reg .pred one;\n"
        "elect.sync _|one, 0xffffffff;\n"
        "selp.b32 %0, 1, 0, one;\n"
        "}\n"
        : "=r"(elected)
        :
        : "memory");
    if (elected) {
      // line 33: Spec (%A, %full) -> (%tile)
      // line 35: mbarrier.expect
      asm volatile(
          "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n"
          :
          : "r"(shared_address(full)), "r"(8192)
          : "memory");
      // line 36: cp.async.bulk.tensor.2d.shared.global
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
          "[%0], [%1, {%2, %3}], [%4];\n"
          :
          : "r"(shared_address(tile)), "l"(&from), "r"(j * 64), "r"(i * 64),
            "r"(shared_address(full))
          : "memory");
    }
  }
  // line 38: mbarrier.wait
  asm volatile(
      "{\n"
      ".reg .pred complete;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
      "@!complete bra again;\n"
      "}\n"
      :
      : "r"(shared_address(full)), "r"(0)
      : "memory");
  if (threadIdx.x < 32) {
    int elected;
    asm volatile(
        "{\n"
        ".reg .pred one;\n"
        "elect.sync _|one, 0xffffffff;\n"
        "selp.b32 %0, 1, 0, one;\n"
        "}\n"
        : "=r"(elected)
        :
        : "memory");
    if (elected) {
      // line 40: Spec (%tile) -> (%B)
      // line 41: cp.async.bulk.tensor.2d.global.shared
      asm volatile(
          "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n"
          :
          : "l"(&to), "r"(j * 64), "r"(i * 64), "r"(shared_address(tile))
          : "memory");
      asm volatile("cp.async.bulk.commit_group;\n" ::: "memory");  // line 42
      asm volatile("cp.async.bulk.wait_group 0;\n" ::: "memory");  // line 43
    }
  }
}
