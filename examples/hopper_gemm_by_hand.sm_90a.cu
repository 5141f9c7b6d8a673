// hopper_gemm_by_hand, line 20: MatMul.set (%A, %B) -> (%C)
// sm_90a: grid 3, block 256, dynamic shared memory 229440 bytes
// Set cudaFuncAttributeMaxDynamicSharedMemorySize before launching.

#include <cuda_fp16.h>

// Quotient and remainder, rounded down.
template <typename T>
__device__ __forceinline__ T floor_div(T a, T b) {
  return a / b - (a % b < 0);
}
template <typename T>
__device__ __forceinline__ T floor_mod(T a, T b) {
  return a % b + (a % b < 0 ? b : 0);
}

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

// A tensor map as cuTensorMapEncodeTiled writes it.
#ifndef __cuda_cuda_h__
struct alignas(64) CUtensorMap {
  unsigned long long opaque[16];
};
#endif

extern "C" __global__ void __launch_bounds__(256)
hopper_gemm_by_hand(
    const __half* __restrict__ A,
    const __half* __restrict__ B,
    __half* __restrict__ C,
    const __grid_constant__ CUtensorMap mA,
    const __grid_constant__ CUtensorMap mB,
    const __grid_constant__ CUtensorMap mC) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int b = blockIdx.x;  // line 21
  const int g = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);  // line 24
  const int w = threadIdx.x / 32;  // line 26
  const int l = threadIdx.x % 32;  // line 27
  __half* As = reinterpret_cast<__half*>(smem);  // line 34
  __half* Bs = reinterpret_cast<__half*>(smem + 65536);  // line 35
  __half* Cs = reinterpret_cast<__half*>(smem + 196608);  // line 36
  unsigned long long* full = reinterpret_cast<unsigned long long*>(smem + 229376);  // line 37
  unsigned long long* empty = reinterpret_cast<unsigned long long*>(smem + 229408);  // line 38
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
      // line 40: Spec (%A, %B) -> (%full, %empty, %As, %Bs)
      // line 41: prefetch
      asm volatile(
          "prefetch.tensormap [%0];\n"
          :
          : "l"(&mA)
          : "memory");
      // line 42: prefetch
      asm volatile(
          "prefetch.tensormap [%0];\n"
          :
          : "l"(&mB)
          : "memory");
      // line 43: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(full)), "r"(1)
          : "memory");
      // line 43: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(full, 1)), "r"(1)
          : "memory");
      // line 43: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(full, 2)), "r"(1)
          : "memory");
      // line 43: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(full, 3)), "r"(1)
          : "memory");
      // line 44: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(empty)), "r"(8)
          : "memory");
      // line 44: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(empty, 1)), "r"(8)
          : "memory");
      // line 44: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(empty, 2)), "r"(8)
          : "memory");
      // line 44: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(empty, 3)), "r"(8)
          : "memory");
      asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");  // line 45
      for (int p = 0; p < 3; p += 1) {  // line 46
        if (b < 8) {  // line 48
          // line 50: mbarrier.expect
          asm volatile(
              "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n"
              :
              : "r"(shared_address(full, p)), "r"(49152)
              : "memory");
          // line 51: cp.async.bulk.tensor.2d.shared.global
          asm volatile(
              "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
              "[%0], [%1, {%2, %3}], [%4];\n"
              :
              : "r"(shared_address(As, p * 8192)), "l"(&mA), "r"(p * 64), "r"(b % 2 * 128),
                "r"(shared_address(full, p))
              : "memory");
          // line 52: cp.async.bulk.tensor.2d.shared.global
          asm volatile(
              "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
              "[%0], [%1, {%2, %3}], [%4];\n"
              :
              : "r"(shared_address(Bs, p * 16384)), "l"(&mB), "r"(p * 64), "r"(b / 2 * 256),
                "r"(shared_address(full, p))
              : "memory");
        }
      }
    }
  }
  __syncthreads();  // line 56
  alignas(16) float c[128];  // line 58
  for (int t = b; t < 8; t += 3) {  // line 59
    // line 61: Init (0) -> (%c)
    #pragma unroll
    for (int i_2 = 0; i_2 < 128; i_2 += 1) {  // line 63
      c[i_2] = 0.0f;  // line 64
    }
    __syncthreads();  // line 68
    for (int k = 0; k < 4; k += 1) {  // line 69
      // line 72: mbarrier.wait
      asm volatile(
          "{\n"
          ".reg .pred complete;\n"
          "again:\n"
          "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
          "@!complete bra again;\n"
          "}\n"
          :
          : "r"(shared_address(full, k)), "r"(floor_mod(floor_div(t - b, 3), 2))
          : "memory");
      fence_registers<128>(c);
      asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");  // line 73
      #pragma unroll
      for (int s = 0; s < 4; s += 1) {  // line 74
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
            "%123, %124, %125, %126, %127}, %128, %129, 1, 1, 1, 0, 0;\n"
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
            : "l"(matrix_descriptor(shared_address(As, k * 8192 + g * 4096), 16, 1024, 1) + s * 2),
              "l"(matrix_descriptor(shared_address(Bs, k * 16384), 16, 1024, 1) + s * 2)
            : "memory");
      }
      asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");  // line 79
      asm volatile("wgmma.wait_group.sync.aligned 1;\n" ::: "memory");  // line 81
      fence_registers<128>(c);
      if (floor_div(t - b, 3) * 4 + k > 0) {  // line 82
        {
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
            // line 83: Spec (%empty) -> ()
            // line 84: mbarrier.arrive
            asm volatile(
                "mbarrier.arrive.shared::cta.b64 _, [%0], %1;\n"
                :
                : "r"(shared_address(empty, (k + 3) % 4)), "r"(1)
                : "memory");
          }
        }
      }
      if ((k + 3) / 4 * 3 + t < 8) {  // line 87
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
            // line 88: Spec (%A, %B, %full, %empty) -> (%As, %Bs)
            // line 91: mbarrier.wait
            asm volatile(
                "{\n"
                ".reg .pred complete;\n"
                "again:\n"
                "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
                "@!complete bra again;\n"
                "}\n"
                :
                : "r"(shared_address(empty, (k + 3) % 4)),
                  "r"((floor_div(t - b, 3) + (k + 3) / 4 + 1) % 2)
                : "memory");
            // line 92: mbarrier.expect
            asm volatile(
                "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n"
                :
                : "r"(shared_address(full, (k + 3) % 4)), "r"(49152)
                : "memory");
            // line 93: cp.async.bulk.tensor.2d.shared.global
            asm volatile(
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                "[%0], [%1, {%2, %3}], [%4];\n"
                :
                : "r"(shared_address(As, (k + 3) % 4 * 8192)), "l"(&mA), "r"((k + 3) % 4 * 64),
                  "r"(((k + 3) / 4 * 3 + t) / 4 * 256 + (t + (k + 3) / 4) % 2 * 128),
                  "r"(shared_address(full, (k + 3) % 4))
                : "memory");
            // line 96: cp.async.bulk.tensor.2d.shared.global
            asm volatile(
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                "[%0], [%1, {%2, %3}], [%4];\n"
                :
                : "r"(shared_address(Bs, (k + 3) % 4 * 16384)), "l"(&mB), "r"((k + 3) % 4 * 64),
                  "r"(((k + 3) / 4 + (t + (k + 3) / 4) / 2) % 2 * 256),
                  "r"(shared_address(full, (k + 3) % 4))
                : "memory");
          }
        }
      }
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");  // line 102
    fence_registers<128>(c);
    alignas(16) __half h[128];  // line 104
    // line 105: UnaryPointwise.cast (%c) -> (%h)
    #pragma unroll
    for (int i_2 = 0; i_2 < 64; i_2 += 1) {  // line 108
      // line 109
      *reinterpret_cast<__half2*>(&h[i_2 * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&c[i_2 * 2]));
    }
    #pragma unroll
    for (int j = 0; j < 4; j += 1) {  // line 113
      {
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
          // line 114: Spec () -> ()
          asm volatile("cp.async.bulk.wait_group.read 1;\n" ::: "memory");  // line 115
        }
      }
      __syncwarp();  // line 117
      #pragma unroll
      for (int i = 0; i < 8; i += 1) {  // line 119
        #pragma unroll
        for (int v = 0; v < 2; v += 1) {  // line 120
          // line 121
          *reinterpret_cast<unsigned*>(&Cs[swizzle<3, 3, 3>(w * 2048 + j % 2 * 1024 + v * 512 +
                              l / 4 * 64 + i * 8 + l % 4 * 2)]) =
              *reinterpret_cast<unsigned*>(&h[j * 32 + i * 4 + v * 2]);
        }
      }
      asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");  // line 126
      __syncwarp();  // line 127
      {
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
          // line 128: Spec (%Cs) -> (%C)
          // line 130: cp.async.bulk.tensor.2d.global.shared
          asm volatile(
              "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n"
              :
              : "l"(&mC), "r"((t / 2) % 2 * 256 + j * 64),
                "r"(t / 4 * 256 + t % 2 * 128 + g * 64 + w % 4 * 16),
                "r"(shared_address(Cs, w * 2048 + j % 2 * 1024))
              : "memory");
          asm volatile("cp.async.bulk.commit_group;\n" ::: "memory");  // line 131
        }
      }
    }
  }
  {
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
      // line 135: Spec () -> ()
      asm volatile("cp.async.bulk.wait_group.read 0;\n" ::: "memory");  // line 136
    }
  }
}
