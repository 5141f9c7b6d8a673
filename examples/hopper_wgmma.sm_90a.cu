// hopper_wgmma, line 19: MatMul.set (%A, %B) -> (%C)
// sm_90a: grid 4, block 128, dynamic shared memory 24576 bytes

#include <cuda_fp16.h>

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

extern "C" __global__ void __launch_bounds__(128)
hopper_wgmma(const __half* __restrict__ A, const __half* __restrict__ B, __half* __restrict__ C) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  const int bm = blockIdx.x % 2;  // line 20
  const int bn = blockIdx.x / 2;  // line 20
  __half* As = reinterpret_cast<__half*>(smem);  // line 29
  __half* Bs = reinterpret_cast<__half*>(smem + 8192);  // line 30
  alignas(16) float c[64];  // line 33
  // line 34: Init (0) -> (%c)
  #pragma unroll
  for (int i = 0; i < 64; i += 1) {  // line 35
    c[i] = 0.0f;  // line 36
  }
  for (int k = 0; k < 3; k += 1) {  // line 40
    __syncthreads();  // line 42
    {  // line 45: Move (view of %A) -> (%As)
      const int r = threadIdx.x / 8;  // line 47
      const int v = threadIdx.x % 8;  // line 47
      #pragma unroll
      for (int i = 0; i < 4; i += 1) {  // line 48
        // line 51: cp.async.cg.b128
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n"
            :
            : "r"(shared_address(&As[swizzle<3, 3, 3>(i * 1024 + r * 64 + v * 8)])),
              "l"(&A[bm * 12288 + i * 3072 + r * 192 + k * 64 + v * 8])
            : "memory");
      }
    }
    {  // line 56: Move (view of %B) -> (%Bs)
      const int r = threadIdx.x / 16;  // line 58
      const int v = threadIdx.x % 16;  // line 58
      #pragma unroll
      for (int i = 0; i < 8; i += 1) {  // line 59
        // line 62: cp.async.cg.b128
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n"
            :
            : "r"(shared_address(&Bs[swizzle<3, 3, 3>(v / 8 * 4096 + i * 512 + r * 64 +
                              v % 8 * 8)])),
              "l"(&B[k * 16384 + i * 2048 + r * 256 + bn * 128 + v * 8])
            : "memory");
      }
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 65
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 66
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");  // line 67
    __syncthreads();  // line 68
    // line 70: MatMul (%As, %Bs) -> (%c)
    fence_registers<64>(c);
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");  // line 71
    #pragma unroll
    for (int s = 0; s < 4; s += 1) {  // line 72
      // line 73: wgmma.m64n128k16.f32.f16.ss
      asm volatile(
          "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
          "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
          "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
          "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "
          "%56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, 1, 1, 1, 0, 1;\n"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),
            "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]),
            "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]),
            "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]),
            "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]),
            "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35]), "+f"(c[36]), "+f"(c[37]),
            "+f"(c[38]), "+f"(c[39]), "+f"(c[40]), "+f"(c[41]), "+f"(c[42]), "+f"(c[43]),
            "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]), "+f"(c[48]), "+f"(c[49]),
            "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]),
            "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]), "+f"(c[60]), "+f"(c[61]),
            "+f"(c[62]), "+f"(c[63])
          : "l"(matrix_descriptor(shared_address(As), 16, 1024, 1) + s * 2),
            "l"(matrix_descriptor(shared_address(Bs), 8192, 1024, 1) + s * 128)
          : "memory");
    }
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");  // line 77
    asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");  // line 78
    fence_registers<64>(c);
  }
  alignas(16) __half h[64];  // line 83
  // line 85: UnaryPointwise.cast (%c) -> (%h)
  #pragma unroll
  for (int i = 0; i < 32; i += 1) {  // line 86
    // line 87
    *reinterpret_cast<__half2*>(&h[i * 2]) =
        __float22half2_rn(*reinterpret_cast<float2*>(&c[i * 2]));
  }
  // line 92: Move (%h) -> (%Cb)
  #pragma unroll
  for (int i = 0; i < 32; i += 1) {  // line 94
    // line 95
    *reinterpret_cast<unsigned*>(&C[bm * 16384 + tid / 32 * 4096 + i % 2 * 2048 +
                    (tid / 4) % 8 * 256 + bn * 128 + i / 2 * 8 + tid % 4 * 2]) =
        *reinterpret_cast<unsigned*>(&h[i * 2]);
  }
}
