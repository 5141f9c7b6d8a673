// multicast_copy, line 20: Move (%A) -> (%B)
// sm_90a: grid 16, block 64, dynamic shared memory 1048 bytes

// The address of an array element in shared memory, as PTX expects it.
template <typename T>
__device__ __forceinline__ unsigned shared_address(const T* array, int i = 0) {
  return static_cast<unsigned>(__cvta_generic_to_shared(array)) + i * int(sizeof(T));
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(64)
multicast_copy(const float* __restrict__ A, float* __restrict__ B) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int t = threadIdx.x;  // line 21
  const int rank = blockIdx.x % 2;  // line 22
  const int row = blockIdx.x / 2;  // line 22
  float* x = reinterpret_cast<float*>(smem);  // line 25
  unsigned long long* full = reinterpret_cast<unsigned long long*>(smem + 1024);  // line 26
  unsigned long long* done = reinterpret_cast<unsigned long long*>(smem + 1040);  // line 27
  alignas(16) float v[4];  // line 28
  if (threadIdx.x == 0) {  // line 30: Spec () -> (%full, %done)
    // line 31: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(full)), "r"(1)
        : "memory");
    // line 32: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(done)), "r"(2)
        : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");  // line 33
  }
  asm volatile("barrier.cluster.arrive.aligned;\n" ::: "memory");  // line 35
  asm volatile("barrier.cluster.wait.aligned;\n" ::: "memory");  // line 36
  if (threadIdx.x == 0) {  // line 38: Spec (%A, %full) -> (%x)
    // line 39: mbarrier.expect
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n"
        :
        : "r"(shared_address(full)), "r"(1024)
        : "memory");
    // line 41: cp.async.bulk.shared.global.multicast
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1], %2, [%3], %4;\n"
        :
        : "r"(shared_address(x, rank * 128)), "l"(&A[row * 256 + rank * 128]), "r"(512),
          "r"(shared_address(full)), "h"((unsigned short)3)
        : "memory");
  }
  // line 45: mbarrier.wait
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
  *reinterpret_cast<uint4*>(v) = *reinterpret_cast<uint4*>(&x[t * 4]);  // line 46
  // line 47
  *reinterpret_cast<uint4*>(&B[row * 512 + rank * 256 + t * 4]) = *reinterpret_cast<uint4*>(v);
  if (threadIdx.x == 0) {  // line 50: Spec (%done) -> ()
    for (int r = 0; r < 2; r += 1) {  // line 51
      // line 52: mbarrier.arrive
      asm volatile(
          "{\n"
          ".reg .b32 remote;\n"
          "mapa.shared::cluster.u32 remote, %0, %1;\n"
          "mbarrier.arrive.shared::cluster.b64 _, [remote], %2;\n"
          "}\n"
          :
          : "r"(shared_address(done)), "r"(r), "r"(1)
          : "memory");
    }
  }
  // line 55: mbarrier.wait
  asm volatile(
      "{\n"
      ".reg .pred complete;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
      "@!complete bra again;\n"
      "}\n"
      :
      : "r"(shared_address(done)), "r"(0)
      : "memory");
}
