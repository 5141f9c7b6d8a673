// gemm_roles, line 18: MatMul.set (%A, %B) -> (%C)
// sm_90a: grid 4, block 288, dynamic shared memory 147512 bytes
// Set cudaFuncAttributeMaxDynamicSharedMemorySize before launching.

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

extern "C" __global__ void __launch_bounds__(288)
gemm_roles(const __half* __restrict__ A, const __half* __restrict__ B, __half* __restrict__ C) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  const int bm = blockIdx.x % 2;  // line 19
  const int bn = blockIdx.x / 2;  // line 19
  alignas(16) float c[128];  // line 22
  if (threadIdx.x < 256) {  // line 23: Init (0) -> (%c)
    #pragma unroll
    for (int i = 0; i < 128; i += 1) {  // line 25
      c[i] = 0.0f;  // line 26
    }
  }
  __half* a = reinterpret_cast<__half*>(smem);  // line 29
  __half* b = reinterpret_cast<__half*>(smem + 49152);  // line 30
  unsigned long long* full = reinterpret_cast<unsigned long long*>(smem + 147456);  // line 31
  unsigned long long* empty = reinterpret_cast<unsigned long long*>(smem + 147488);  // line 32
  if (threadIdx.x == 0) {  // line 33: Spec () -> (%full, %empty)
    // line 34: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(full)), "r"(32)
        : "memory");
    // line 34: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(full, 1)), "r"(32)
        : "memory");
    // line 34: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(full, 2)), "r"(32)
        : "memory");
    // line 35: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(empty)), "r"(8)
        : "memory");
    // line 35: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(empty, 1)), "r"(8)
        : "memory");
    // line 35: mbarrier.init
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        :
        : "r"(shared_address(empty, 2)), "r"(8)
        : "memory");
  }
  __syncthreads();  // line 37
  if (threadIdx.x >= 256) {  // line 38: Spec (%empty, %A, %B, %full) -> (%a, %b)
    int stage = 0;
    int phase = 1;
    const __half* A_next = &A[bm * 32768 + (tid / 8) % 4 * 256 + tid % 8 * 8];
    const __half* B_next = &B[(tid / 8) % 4 * 512 + bn * 256 + tid % 8 * 8];
    for (int k = 0; k < 4; k += 1) {  // line 39
      // line 40: mbarrier.wait
      asm volatile(
          "{\n"
          ".reg .pred complete;\n"
          "again:\n"
          "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
          "@!complete bra again;\n"
          "}\n"
          :
          : "r"(shared_address(empty, stage)), "r"(phase)
          : "memory");
      // line 41: Move (view of %A) -> (view of %a)
      #pragma unroll
      for (int i = 0; i < 32; i += 1) {  // line 44
        // line 45: cp.async.cg.b128
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n"
            :
            : "r"(shared_address(&a[stage * 8192 + swizzle<3, 3, 3>(i * 256 + tid % 32 * 8)])),
              "l"(&A_next[i * 1024])
            : "memory");
      }
      // line 48: Move (view of %B) -> (view of %b)
      #pragma unroll
      for (int i = 0; i < 64; i += 1) {  // line 52
        // line 53: cp.async.cg.b128
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n"
            :
            : "r"(shared_address(&b[stage * 16384 + i % 4 * 4096 + swizzle<3, 3, 3>(i / 4 * 256 +
                              tid % 32 * 8)])), "l"(&B_next[i / 4 * 2048 + i % 4 * 64])
            : "memory");
      }
      // line 56: mbarrier.async_arrive
      asm volatile(
          "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];\n"
          :
          : "r"(shared_address(full, stage))
          : "memory");
      stage += 1;
      if (stage == 3) {
        stage = 0;
        phase ^= 1;
      }
      A_next += 64;
      B_next += 32768;
    }
  }
  if (threadIdx.x < 256) {  // line 59: Spec (%full, %a, %b, %empty) -> (%c)
    int stage = 0;
    int turn = 0;
    for (int k = 0; k < 4; k += 1) {  // line 63
      // line 64: mbarrier.wait
      asm volatile(
          "{\n"
          ".reg .pred complete;\n"
          "again:\n"
          "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
          "@!complete bra again;\n"
          "}\n"
          :
          : "r"(shared_address(full, stage)), "r"(turn)
          : "memory");
      #pragma unroll 1
      for (int s = 0; s < 4; s += 1) {  // line 66
        {  // line 67: MatMul (view of %a, view of %b) -> (%c)
          const int g = threadIdx.x / 128;  // line 69
          asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");  // line 73
          fence_registers<128>(c);
          asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");  // line 74
          // line 75: wgmma.m64n256k16.f32.f16.ss
          asm volatile(
              "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
              "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
              "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
              "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "
              "%56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, "
              "%74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, "
              "%92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, "
              "%108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, "
              "%123, %124, %125, %126, %127}, %128, %129, 1, 1, 1, 0, 1;\n"
              : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),
                "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]),
                "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]),
                "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]),
                "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]),
                "+f"(c[31]), "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35]), "+f"(c[36]),
                "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]), "+f"(c[41]), "+f"(c[42]),
                "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]), "+f"(c[48]),
                "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]),
                "+f"(c[55]), "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]), "+f"(c[60]),
                "+f"(c[61]), "+f"(c[62]), "+f"(c[63]), "+f"(c[64]), "+f"(c[65]), "+f"(c[66]),
                "+f"(c[67]), "+f"(c[68]), "+f"(c[69]), "+f"(c[70]), "+f"(c[71]), "+f"(c[72]),
                "+f"(c[73]), "+f"(c[74]), "+f"(c[75]), "+f"(c[76]), "+f"(c[77]), "+f"(c[78]),
                "+f"(c[79]), "+f"(c[80]), "+f"(c[81]), "+f"(c[82]), "+f"(c[83]), "+f"(c[84]),
                "+f"(c[85]), "+f"(c[86]), "+f"(c[87]), "+f"(c[88]), "+f"(c[89]), "+f"(c[90]),
                "+f"(c[91]), "+f"(c[92]), "+f"(c[93]), "+f"(c[94]), "+f"(c[95]), "+f"(c[96]),
                "+f"(c[97]), "+f"(c[98]), "+f"(c[99]), "+f"(c[100]), "+f"(c[101]), "+f"(c[102]),
                "+f"(c[103]), "+f"(c[104]), "+f"(c[105]), "+f"(c[106]), "+f"(c[107]), "+f"(c[108]),
                "+f"(c[109]), "+f"(c[110]), "+f"(c[111]), "+f"(c[112]), "+f"(c[113]), "+f"(c[114]),
                "+f"(c[115]), "+f"(c[116]), "+f"(c[117]), "+f"(c[118]), "+f"(c[119]), "+f"(c[120]),
                "+f"(c[121]), "+f"(c[122]), "+f"(c[123]), "+f"(c[124]), "+f"(c[125]), "+f"(c[126]),
                "+f"(c[127])
              : "l"(matrix_descriptor(shared_address(a, stage * 8192 + g * 4096 + s * 16), 16, 1024,
                        1)),
                "l"(matrix_descriptor(shared_address(b, stage * 16384 + s * 1024), 8192, 1024, 1))
              : "memory");
          asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");  // line 76
          asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");  // line 77
          fence_registers<128>(c);
        }
      }
      __syncwarp();  // line 80
      if (threadIdx.x % 32 == 0 && threadIdx.x / 256 == 0) {  // line 81: Spec (%empty) -> ()
        // line 82: mbarrier.arrive
        asm volatile(
            "mbarrier.arrive.shared::cta.b64 _, [%0], %1;\n"
            :
            : "r"(shared_address(empty, stage)), "r"(1)
            : "memory");
      }
      stage += 1;
      if (stage == 3) {
        stage = 0;
        turn += 1;
      }
    }
  }
  if (threadIdx.x < 256) {  // line 86: UnaryPointwise.cast (%c) -> (view of %C)
    alignas(16) __half r[128];  // line 87
    // line 88: UnaryPointwise.cast (%c) -> (%r)
    #pragma unroll
    for (int i = 0; i < 64; i += 1) {  // line 91
      // line 92
      *reinterpret_cast<__half2*>(&r[i * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&c[i * 2]));
    }
    // line 95: Move (%r) -> (view of %C)
    #pragma unroll
    for (int i = 0; i < 64; i += 1) {  // line 99
      // line 100
      *reinterpret_cast<unsigned*>(&C[bm * 65536 + (tid / 32) % 8 * 8192 + i % 2 * 4096 +
                      (tid / 4) % 8 * 512 + bn * 256 + i / 2 * 8 + tid % 4 * 2]) =
          *reinterpret_cast<unsigned*>(&r[i * 2]);
    }
  }
}
