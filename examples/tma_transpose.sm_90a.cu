// tma_transpose, line 18: Move (%A) -> (%B)
// sm_90a: grid 12, block 256, dynamic shared memory 4104 bytes

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

extern "C" __global__ void __launch_bounds__(256)
tma_transpose(
    const float* __restrict__ A,
    float* __restrict__ B,
    const __grid_constant__ CUtensorMap from) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int i = blockIdx.x % 4;  // line 19
  const int j = blockIdx.x / 4;  // line 19
  const int lane = threadIdx.x % 32;  // line 20
  const int warp = threadIdx.x / 32;  // line 20
  float* tile = reinterpret_cast<float*>(smem);  // line 24
  unsigned long long* full = reinterpret_cast<unsigned long long*>(smem + 4096);  // line 25
  float x[1];  // line 26
  // line 28: prefetch
  asm volatile(
      "prefetch.tensormap [%0];\n"
      :
      : "l"(&from)
      : "memory");
  if (threadIdx.x == 0) {  // line 29: Spec () -> (%full)
    // line 30: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(full)), "r"(1)
        : "memory");
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");  // line 31
  }
  __syncthreads();  // line 33
  if (threadIdx.x == 0) {  // line 34: Spec (%A, %full) -> (%tile)
    // line 35: mbarrier.expect
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n"
        :
        : "r"(shared_address(full)), "r"(4096)
        : "memory");
    // line 36: cp.async.bulk.tensor.2d.shared.global.evict_first
    asm volatile(
        "{\n"
        ".reg .b64 policy;\n"
        "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
        "[%0], [%1, {%2, %3}], [%4], policy;\n"
        "}\n"
        :
        : "r"(shared_address(tile)), "l"(&from), "r"(j * 32), "r"(i * 32), "r"(shared_address(full))
        : "memory");
  }
  // line 41: mbarrier.wait
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
  #pragma unroll
  for (int c = 0; c < 4; c += 1) {  // line 43
    x[0] = tile[swizzle<3, 2, 3>(lane * 32 + c * 8 + warp)];  // line 45
    B[j * 4096 + c * 1024 + warp * 128 + i * 32 + lane] = x[0];  // line 46
  }
}
