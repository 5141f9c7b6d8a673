// bulk_copy, line 19: UnaryPointwise.neg (%A) -> (%B)
// sm_90a: grid 4, block 128, dynamic shared memory 6168 bytes

// The address of an array element in shared memory, as PTX expects it.
template <typename T>
__device__ __forceinline__ unsigned shared_address(const T* array, int i = 0) {
  return static_cast<unsigned>(__cvta_generic_to_shared(array)) + i * int(sizeof(T));
}

extern "C" __global__ void __launch_bounds__(128)
bulk_copy(const float* __restrict__ A, float* __restrict__ B) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int b = blockIdx.x;  // line 20
  const int t = threadIdx.x;  // line 21
  float* stage = reinterpret_cast<float*>(smem);  // line 26
  unsigned long long* full = reinterpret_cast<unsigned long long*>(smem + 6144);  // line 27
  alignas(16) float x[4];  // line 28
  if (threadIdx.x == 0) {  // line 30: Spec (%A) -> (%full, %stage)
    // line 31: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(full)), "r"(1)
        : "memory");
    // line 31: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(full, 1)), "r"(1)
        : "memory");
    // line 31: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(full, 2)), "r"(1)
        : "memory");
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");  // line 32
    for (int k = 0; k < 2; k += 1) {  // line 33
      // line 34: mbarrier.expect
      asm volatile(
          "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n"
          :
          : "r"(shared_address(full, k)), "r"(2048)
          : "memory");
      // line 35: cp.async.bulk.shared.global
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
          "[%0], [%1], %2, [%3];\n"
          :
          : "r"(shared_address(stage, k * 512)), "l"(&A[b * 4096 + k * 512]), "r"(2048),
            "r"(shared_address(full, k))
          : "memory");
    }
  }
  __syncthreads();  // line 38
  int stage_1 = 2;
  int stage_2 = 0;
  int phase = 0;
  for (int k = 0; k < 8; k += 1) {  // line 40
    if (k + 2 < 8) {  // line 41
      if (threadIdx.x == 0) {  // line 42: Spec (%A, %full) -> (%stage)
        asm volatile("cp.async.bulk.wait_group.read 0;\n" ::: "memory");  // line 43
        // line 44: mbarrier.expect
        asm volatile(
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n"
            :
            : "r"(shared_address(full, stage_1)), "r"(2048)
            : "memory");
        // line 45: cp.async.bulk.shared.global
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
            "[%0], [%1], %2, [%3];\n"
            :
            : "r"(shared_address(stage, stage_1 * 512)), "l"(&A[b * 4096 + min(k + 2, 7) * 512]),
              "r"(2048), "r"(shared_address(full, stage_1))
            : "memory");
      }
    }
    // line 51: mbarrier.wait
    asm volatile(
        "{\n"
        ".reg .pred complete;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
        "@!complete bra again;\n"
        "}\n"
        :
        : "r"(shared_address(full, stage_2)), "r"(phase)
        : "memory");
    // line 53
    *reinterpret_cast<uint4*>(x) = *reinterpret_cast<uint4*>(&stage[stage_2 * 512 + t * 4]);
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 54
      x[i] = -x[i];  // line 55
    }
    // line 57
    *reinterpret_cast<uint4*>(&stage[stage_2 * 512 + t * 4]) = *reinterpret_cast<uint4*>(x);
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");  // line 58
    __syncthreads();  // line 59
    if (threadIdx.x == 0) {  // line 60: Spec (%stage) -> (%B)
      // line 61: cp.async.bulk.global.shared
      asm volatile(
          "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
          :
          : "l"(&B[b * 4096 + k * 512]), "r"(shared_address(stage, stage_2 * 512)), "r"(2048)
          : "memory");
      asm volatile("cp.async.bulk.commit_group;\n" ::: "memory");  // line 62
    }
    stage_1 += 1;
    if (stage_1 == 3) {
      stage_1 = 0;
    }
    stage_2 += 1;
    if (stage_2 == 3) {
      stage_2 = 0;
      phase ^= 1;
    }
  }
  if (threadIdx.x == 0) {  // line 65: Spec () -> ()
    asm volatile("cp.async.bulk.wait_group 0;\n" ::: "memory");  // line 66
  }
}
