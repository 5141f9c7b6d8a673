// wgmma, line 12: MatMul.set (%A, %B) -> (%C)
// sm_90a: grid 1, block 256, dynamic shared memory 2048 bytes

#include <cuda_bf16.h>

// The address of an array element in shared memory, as PTX expects it.
template <typename T>
__device__ __forceinline__ unsigned shared_address(const T* array, int i = 0) {
  return static_cast<unsigned>(__cvta_generic_to_shared(array)) + i * int(sizeof(T));
}

// The wgmma descriptor of a tile in shared memory: start address (bits 0-13), leading byte offset
// (16-29), stride byte offset (32-45), all in units of 16 bytes; swizzle mode (62-63): 0 none, 1
// 128 bytes, 2 64 bytes, 3 32 bytes.
__device__ __forceinline__ unsigned long long matrix_descriptor(
    unsigned start, unsigned leading, unsigned stride, unsigned long long swizzle) {
  return (start & 0x3ffff) >> 4 | leading >> 4 << 16 |
         static_cast<unsigned long long>(stride >> 4) << 32 | swizzle << 62;
}

// Keeps accesses to registers from moving across this point; emits no instruction.
template <int N>
__device__ __forceinline__ void fence_registers(float* r) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(r[i])::"memory");
}
template <int N>
__device__ __forceinline__ void fence_registers(unsigned* r) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+r"(r[i])::"memory");
}

// Flips the B bits above the lowest M ones by the B bits that lie S higher.
template <int B, int M, int S, typename T>
__device__ __forceinline__ T swizzle(T i) {
  return i ^ ((i >> S) & (((T(1) << B) - 1) << M));
}

extern "C" __global__ void __launch_bounds__(256)
wgmma(
    const __nv_bfloat16* __restrict__ A,
    const __nv_bfloat16* __restrict__ B,
    float* __restrict__ C) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  const int k = threadIdx.x % 8;  // line 16
  const int n = threadIdx.x / 8;  // line 16
  __nv_bfloat16* Bs = reinterpret_cast<__nv_bfloat16*>(smem);  // line 18
  #pragma unroll
  for (int s = 0; s < 2; s += 1) {  // line 19
    // line 20: Move (view of %B) -> (view of %Bs)
    // line 21: cp.async.ca.b32
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], 4;\n"
        :
        : "r"(shared_address(&Bs[swizzle<1, 3, 3>(s * 512 + n * 16 + k * 2)])),
          "l"(&B[n * 32 + s * 16 + k * 2])
        : "memory");
  }
  asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 26
  alignas(16) __nv_bfloat16 a[16];  // line 28
  unsigned* a_u32 = reinterpret_cast<unsigned*>(a);
  // line 29: Move (%A) -> (%a)
  #pragma unroll
  for (int i = 0; i < 8; i += 1) {  // line 32
    // line 33
    *reinterpret_cast<unsigned*>(&a[i * 2]) =
        *reinterpret_cast<const unsigned*>(&A[tid / 32 * 512 + i % 2 * 256 + (tid / 4) % 8 * 32 +
                        i / 2 * 8 + tid % 4 * 2]);
  }
  asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 39
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");  // line 40
  __syncthreads();  // line 41
  alignas(16) float c[16];  // line 42
  fence_registers<8>(a_u32);
  fence_registers<16>(c);
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");  // line 44
  // line 45: wgmma.m64n32k16.f32.bf16.rs
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, {%16, %17, %18, "
      "%19}, %20, 0, 1, 1, 0;\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),
        "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]),
        "+f"(c[14]), "+f"(c[15])
      : "r"(a_u32[0]), "r"(a_u32[1]), "r"(a_u32[2]), "r"(a_u32[3]),
        "l"(matrix_descriptor(shared_address(Bs), 16, 256, 3))
      : "memory");
  // line 46: wgmma.m64n32k16.f32.bf16.rs
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, {%16, %17, %18, "
      "%19}, %20, 1, 1, 1, 0;\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),
        "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]),
        "+f"(c[14]), "+f"(c[15])
      : "r"(a_u32[4]), "r"(a_u32[5]), "r"(a_u32[6]), "r"(a_u32[7]),
        "l"(matrix_descriptor(shared_address(Bs, 512), 16, 256, 3))
      : "memory");
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");  // line 47
  asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");  // line 48
  fence_registers<8>(a_u32);
  fence_registers<16>(c);
  // line 50: Move (%c) -> (%C)
  #pragma unroll
  for (int i = 0; i < 8; i += 1) {  // line 52
    // line 53
    *reinterpret_cast<uint2*>(&C[tid / 32 * 512 + i % 2 * 256 + (tid / 4) % 8 * 32 + i / 2 * 8 +
                    tid % 4 * 2]) = *reinterpret_cast<uint2*>(&c[i * 2]);
  }
}
