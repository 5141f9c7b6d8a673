// ring, line 11: Move (%A) -> (%B)
// sm_90a: grid 4, block 384, dynamic shared memory 32832 bytes

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

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)
ring(
    const __half* __restrict__ A,
    __half* __restrict__ B,
    const __grid_constant__ CUtensorMap in,
    const __grid_constant__ CUtensorMap out) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int c = blockIdx.x / 2;  // line 15
  const int rank = blockIdx.x % 2;  // line 16
  __half* stage = reinterpret_cast<__half*>(smem);  // line 19
  unsigned long long* full = reinterpret_cast<unsigned long long*>(smem + 32768);  // line 20
  unsigned long long* empty = reinterpret_cast<unsigned long long*>(smem + 32800);  // line 21
  // line 22: prefetch
  asm volatile(
      "prefetch.tensormap [%0];\n"
      :
      : "l"(&in)
      : "memory");
  // line 23: prefetch
  asm volatile(
      "prefetch.tensormap [%0];\n"
      :
      : "l"(&out)
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
      // line 24: Spec () -> (%full, %empty)
      // line 25: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(full)), "r"(1)
          : "memory");
      // line 25: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(full, 1)), "r"(1)
          : "memory");
      // line 25: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(full, 2)), "r"(1)
          : "memory");
      // line 25: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(full, 3)), "r"(1)
          : "memory");
      // line 26: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(empty)), "r"(2)
          : "memory");
      // line 26: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(empty, 1)), "r"(2)
          : "memory");
      // line 26: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(empty, 2)), "r"(2)
          : "memory");
      // line 26: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(empty, 3)), "r"(2)
          : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");  // line 27
      asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");  // line 28
    }
  }
  asm volatile("barrier.cluster.arrive.aligned;\n" ::: "memory");  // line 30
  asm volatile("barrier.cluster.wait.aligned;\n" ::: "memory");  // line 31
  if (threadIdx.x < 128) {  // line 32: Spec (%A, %full, %empty) -> (%stage)
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;\n" ::: "memory");  // line 33
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
        // line 34: Spec (%A, %full, %empty) -> (%stage)
        #pragma unroll 1
        for (int k = 0; k < 16; k += 1) {  // line 35
          // line 37: mbarrier.wait
          asm volatile(
              "{\n"
              ".reg .pred complete;\n"
              "again:\n"
              "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
              "@!complete bra again;\n"
              "}\n"
              :
              : "r"(shared_address(empty, k % 4)), "r"((k / 4 + 1) % 2)
              : "memory");
          // line 38: mbarrier.expect
          asm volatile(
              "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n"
              :
              : "r"(shared_address(full, k % 4)), "r"(8192)
              : "memory");
          // line 39: cp.async.bulk.tensor.2d.shared.global.multicast
          asm volatile(
              "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
              "[%0], [%1, {%2, %3}], [%4], %5;\n"
              :
              : "r"(shared_address(stage, k % 4 * 4096 + rank * 2048)), "l"(&in), "r"(k * 64),
                "r"(c * 64 + rank * 32), "r"(shared_address(full, k % 4)), "h"((unsigned short)3)
              : "memory");
        }
      }
    }
  }
  if (threadIdx.x >= 256) {  // line 46: Spec () -> ()
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;\n" ::: "memory");  // line 47
  }
  if (threadIdx.x >= 128 && threadIdx.x < 256) {  // line 49: Spec (%stage, %full, %empty) -> (%B)
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;\n" ::: "memory");  // line 50
    #pragma unroll 1
    for (int k = 0; k < 16; k += 1) {  // line 51
      // line 52: mbarrier.wait
      asm volatile(
          "{\n"
          ".reg .pred complete;\n"
          "again:\n"
          "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
          "@!complete bra again;\n"
          "}\n"
          :
          : "r"(shared_address(full, k % 4)), "r"((k / 4) % 2)
          : "memory");
      if (threadIdx.x == 128) {  // line 53: Spec (%stage, %empty) -> (%B)
        // line 54: cp.async.bulk.tensor.2d.global.shared
        asm volatile(
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n"
            :
            : "l"(&out), "r"(k * 64), "r"(c * 64 + rank * 32),
              "r"(shared_address(stage, k % 4 * 4096 + rank * 2048))
            : "memory");
        asm volatile("cp.async.bulk.commit_group;\n" ::: "memory");  // line 57
        asm volatile("cp.async.bulk.wait_group.read 0;\n" ::: "memory");  // line 58
        #pragma unroll
        for (int r = 0; r < 2; r += 1) {  // line 59
          // line 60: mbarrier.arrive
          asm volatile(
              "{\n"
              ".reg .b32 remote;\n"
              "mapa.shared::cluster.u32 remote, %0, %1;\n"
              "mbarrier.arrive.shared::cluster.b64 _, [remote], %2;\n"
              "}\n"
              :
              : "r"(shared_address(empty, k % 4)), "r"(r), "r"(1)
              : "memory");
        }
      }
    }
    if (threadIdx.x == 128) {  // line 64: Spec () -> ()
      asm volatile("cp.async.bulk.wait_group 0;\n" ::: "memory");  // line 65
    }
  }
  asm volatile("barrier.cluster.arrive.aligned;\n" ::: "memory");  // line 69
  asm volatile("barrier.cluster.wait.aligned;\n" ::: "memory");  // line 70
}
