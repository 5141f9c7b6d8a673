// attention_causal, line 18: Spec (%Q, %K, %V) -> (%O)
// sm_90a: grid 2048, block 128, dynamic shared memory 81952 bytes
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

// Selects one of two values after reading both. For `first ? a : b` compilers select one of two
// addresses, which keeps arrays in local memory.
template <typename T>
__device__ __forceinline__ T choose(bool first, T a, T b) {
  return first ? a : b;
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

extern "C" __global__ void __launch_bounds__(128)
attention_causal(
    const __half* __restrict__ Q,
    const __half* __restrict__ K,
    const __half* __restrict__ V,
    __half* __restrict__ O,
    const __grid_constant__ CUtensorMap mK,
    const __grid_constant__ CUtensorMap mV) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  const int i = blockIdx.x % 64;  // line 30
  const int h = (blockIdx.x / 64) % 16;  // line 30
  const int b = blockIdx.x / 1024;  // line 30
  alignas(16) __half q[64];  // line 32
  unsigned* q_u32 = reinterpret_cast<unsigned*>(q);
  // line 33: Move (view of %Q) -> (%q)
  #pragma unroll
  for (int i_4 = 0; i_4 < 32; i_4 += 1) {  // line 37
    // line 38
    *reinterpret_cast<unsigned*>(&q[i_4 * 2]) =
        *reinterpret_cast<const unsigned*>(&Q[b * 8388608 + h * 524288 + i * 8192 +
                        tid / 32 * 2048 + i_4 % 2 * 1024 + (tid / 4) % 8 * 128 + i_4 / 2 * 8 +
                        tid % 4 * 2]);
  }
  alignas(8) float max_1[2];  // line 41
  // line 42: Init (-inf) -> (%max)
  #pragma unroll
  for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 44
    max_1[i_4] = __uint_as_float(0xff800000u);  // line 45
  }
  alignas(8) float sum[2];  // line 48
  // line 49: Init (0) -> (%sum)
  #pragma unroll
  for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 51
    sum[i_4] = 0.0f;  // line 52
  }
  alignas(16) float o[64];  // line 55
  // line 56: Init (0) -> (%o)
  #pragma unroll
  for (int i_4 = 0; i_4 < 64; i_4 += 1) {  // line 58
    o[i_4] = 0.0f;  // line 59
  }
  __half* k_2 = reinterpret_cast<__half*>(smem);  // line 62
  // line 63: Move (view of %K) -> (%k_2)
  #pragma unroll
  for (int i_4 = 0; i_4 < 8; i_4 += 1) {  // line 66
    // line 67: cp.async.cg.b128
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16;\n"
        :
        : "r"(shared_address(&k_2[swizzle<3, 3, 3>((tid / 8) % 2 * 4096 + i_4 * 512 +
                          tid / 16 * 64 + tid % 8 * 8)])),
          "l"(&K[b * 8388608 + h * 524288 + i_4 * 1024 + tid * 8])
        : "memory");
  }
  asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 70
  __half* k = reinterpret_cast<__half*>(smem + 16384);  // line 71
  __half* v = reinterpret_cast<__half*>(smem + 49152);  // line 72
  unsigned long long* full = reinterpret_cast<unsigned long long*>(smem + 81920);  // line 73
  unsigned long long* empty = reinterpret_cast<unsigned long long*>(smem + 81936);  // line 74
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
      // line 80: Spec (%K, %V) -> (%full, %empty, %k, %v)
      // line 81: prefetch
      asm volatile(
          "prefetch.tensormap [%0];\n"
          :
          : "l"(&mK)
          : "memory");
      // line 82: prefetch
      asm volatile(
          "prefetch.tensormap [%0];\n"
          :
          : "l"(&mV)
          : "memory");
      // line 83: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(full)), "r"(1)
          : "memory");
      // line 83: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(full, 1)), "r"(1)
          : "memory");
      // line 84: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(empty)), "r"(4)
          : "memory");
      // line 84: mbarrier.init
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], %1;\n"
          :
          : "r"(shared_address(empty, 1)), "r"(4)
          : "memory");
      asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");  // line 85
      for (int s_4 = 0; s_4 < 2; s_4 += 1) {  // line 86
        if (s_4 < i + 1) {  // line 87
          // line 88: mbarrier.expect
          asm volatile(
              "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n"
              :
              : "r"(shared_address(full, s_4)), "r"(32768)
              : "memory");
          #pragma unroll
          for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 89
            // line 90: cp.async.bulk.tensor.4d.shared.global
            asm volatile(
                "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                "[%0], [%1, {%2, %3, %4, %5}], [%6];\n"
                :
                : "r"(shared_address(k, s_4 * 8192 + i_2 * 4096)), "l"(&mK), "r"(i_2 * 64),
                  "r"(min(i, s_4 + 1) * 64), "r"(h), "r"(b), "r"(shared_address(full, s_4))
                : "memory");
          }
          #pragma unroll
          for (int i_3 = 0; i_3 < 2; i_3 += 1) {  // line 95
            // line 96: cp.async.bulk.tensor.4d.shared.global
            asm volatile(
                "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                "[%0], [%1, {%2, %3, %4, %5}], [%6];\n"
                :
                : "r"(shared_address(v, s_4 * 8192 + i_3 * 4096)), "l"(&mV), "r"(i_3 * 64),
                  "r"(s_4 * 64), "r"(h), "r"(b), "r"(shared_address(full, s_4))
                : "memory");
          }
        }
      }
    }
  }
  asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 104
  __syncthreads();  // line 105
  alignas(16) float all[32];  // line 106
  alignas(16) float s[32];  // line 107
  alignas(16) bool s_2[32];  // line 108
  float s_3[1];  // line 109
  alignas(8) float top[2];  // line 110
  alignas(16) float p[32];  // line 111
  // line 112: Init (0) -> (%all)
  #pragma unroll
  for (int i_4 = 0; i_4 < 32; i_4 += 1) {  // line 114
    all[i_4] = 0.0f;  // line 115
  }
  // line 118: MatMul (%q, view of %k_2) -> (%all)
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");  // line 123
  fence_registers<32>(q_u32);
  fence_registers<64>(o);
  fence_registers<32>(all);
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");  // line 124
  #pragma unroll
  for (int kk = 0; kk < 8; kk += 1) {  // line 125
    // line 126: wgmma.m64n64k16.f32.f16.rs
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
        "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, 1, "
        "1, 1, 0;\n"
        : "+f"(all[0]), "+f"(all[1]), "+f"(all[2]), "+f"(all[3]), "+f"(all[4]), "+f"(all[5]),
          "+f"(all[6]), "+f"(all[7]), "+f"(all[8]), "+f"(all[9]), "+f"(all[10]), "+f"(all[11]),
          "+f"(all[12]), "+f"(all[13]), "+f"(all[14]), "+f"(all[15]), "+f"(all[16]), "+f"(all[17]),
          "+f"(all[18]), "+f"(all[19]), "+f"(all[20]), "+f"(all[21]), "+f"(all[22]), "+f"(all[23]),
          "+f"(all[24]), "+f"(all[25]), "+f"(all[26]), "+f"(all[27]), "+f"(all[28]), "+f"(all[29]),
          "+f"(all[30]), "+f"(all[31])
        : "r"(q_u32[kk * 4]), "r"(q_u32[kk * 4 + 1]), "r"(q_u32[kk * 4 + 2]),
          "r"(q_u32[kk * 4 + 3]),
          "l"(matrix_descriptor(shared_address(k_2, kk / 4 * 4096 + kk % 4 * 16), 16, 1024, 1))
        : "memory");
  }
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");  // line 128
  // line 130: Init (-inf) -> (%s_3)
  s_3[0] = __uint_as_float(0xff800000u);  // line 132
  {  // line 135: BinaryPointwise.ge (%query, %key_2) -> (%s_2)
    alignas(8) int r[2];  // line 136
    // line 137: Move (%query) -> (%r)
    #pragma unroll
    for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 140
      r[i_4] = i * 64 + tid / 32 * 16 + i_4 * 8 + (tid / 4) % 8;  // line 141
    }
    alignas(16) int r_2[16];  // line 144
    // line 145: Move (%key_2) -> (%r_2)
    #pragma unroll
    for (int i_4 = 0; i_4 < 16; i_4 += 1) {  // line 148
      r_2[i_4] = i_4 / 2 * 8 + tid % 4 * 2 + i_4 % 2;  // line 149
    }
    // line 152: BinaryPointwise.ge (%r, %r_2) -> (%s_2)
    #pragma unroll
    for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 156
      #pragma unroll
      for (int j = 0; j < 2; j += 1) {  // line 157
        #pragma unroll
        for (int kk = 0; kk < 8; kk += 1) {  // line 158
          s_2[kk * 4 + j * 2 + i_4] = r[j] >= r_2[kk * 2 + i_4];  // line 159
        }
      }
    }
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");  // line 167
  fence_registers<32>(q_u32);
  fence_registers<64>(o);
  fence_registers<32>(all);
  // line 168: Select (%s_2, %all, %s_3) -> (%s)
  #pragma unroll
  for (int i_4 = 0; i_4 < 32; i_4 += 1) {  // line 173
    // line 174
    *reinterpret_cast<unsigned*>(&s[i_4]) =
        choose(s_2[i_4], *reinterpret_cast<unsigned*>(&all[i_4]),
            *reinterpret_cast<unsigned*>(s_3));
  }
  {  // line 177: Reduction.max (%s) -> (%top)
    float o_2[1];  // line 180
    #pragma unroll
    for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 181
      top[i_4] = s[i_4 * 2];  // line 182
      #pragma unroll
      for (int j = 1; j < 16; j += 1) {  // line 183
        top[i_4] = fmaxf(top[i_4], s[j / 2 * 4 + i_4 * 2 + j % 2]);  // line 184
      }
      // line 186
      *reinterpret_cast<unsigned*>(o_2) =
          __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&top[i_4]), 1);
      top[i_4] = fmaxf(top[i_4], o_2[0]);  // line 187
      // line 188
      *reinterpret_cast<unsigned*>(o_2) =
          __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&top[i_4]), 2);
      top[i_4] = fmaxf(top[i_4], o_2[0]);  // line 189
    }
  }
  // line 192: BinaryPointwise.mul (%s, 0.12751743082459868) -> (%p)
  #pragma unroll
  for (int i_4 = 0; i_4 < 32; i_4 += 1) {  // line 195
    p[i_4] = __fmul_rn(s[i_4], 0.12751743f);  // line 196
  }
  // line 201: BinaryPointwise.div (%top, 11.313708498984761) -> (%top)
  #pragma unroll
  for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 204
    top[i_4] = __fmul_rn(top[i_4], 0.088388346f);  // line 205
  }
  for (int t = 0; t < i + 1; t += 1) {  // line 210
    // line 212: mbarrier.wait
    asm volatile(
        "{\n"
        ".reg .pred complete;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
        "@!complete bra again;\n"
        "}\n"
        :
        : "r"(shared_address(full, t % 2)), "r"((t / 2) % 2)
        : "memory");
    // line 213: Init (0) -> (%all)
    #pragma unroll
    for (int i_4 = 0; i_4 < 32; i_4 += 1) {  // line 215
      all[i_4] = 0.0f;  // line 216
    }
    // line 219: MatMul (%q, view of %k) -> (%all)
    fence_registers<32>(q_u32);
    fence_registers<64>(o);
    fence_registers<32>(all);
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");  // line 224
    #pragma unroll
    for (int kk = 0; kk < 8; kk += 1) {  // line 225
      // line 226: wgmma.m64n64k16.f32.f16.rs
      asm volatile(
          "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
          "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
          "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, 1, "
          "1, 1, 0;\n"
          : "+f"(all[0]), "+f"(all[1]), "+f"(all[2]), "+f"(all[3]), "+f"(all[4]), "+f"(all[5]),
            "+f"(all[6]), "+f"(all[7]), "+f"(all[8]), "+f"(all[9]), "+f"(all[10]), "+f"(all[11]),
            "+f"(all[12]), "+f"(all[13]), "+f"(all[14]), "+f"(all[15]), "+f"(all[16]),
            "+f"(all[17]), "+f"(all[18]), "+f"(all[19]), "+f"(all[20]), "+f"(all[21]),
            "+f"(all[22]), "+f"(all[23]), "+f"(all[24]), "+f"(all[25]), "+f"(all[26]),
            "+f"(all[27]), "+f"(all[28]), "+f"(all[29]), "+f"(all[30]), "+f"(all[31])
          : "r"(q_u32[kk * 4]), "r"(q_u32[kk * 4 + 1]), "r"(q_u32[kk * 4 + 2]),
            "r"(q_u32[kk * 4 + 3]),
            "l"(matrix_descriptor(shared_address(k, t % 2 * 8192), 16, 1024, 1) + (kk / 4 * 512 +
                kk % 4 * 2))
          : "memory");
    }
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");  // line 228
    // line 230: BinaryPointwise.max (%top, %max) -> (%top)
    #pragma unroll
    for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 234
      top[i_4] = fmaxf(top[i_4], max_1[i_4]);  // line 235
    }
    alignas(8) float top_log2[2];  // line 239
    // line 240: BinaryPointwise.mul (%top, 1.4426950408889634) -> (%top_log2)
    #pragma unroll
    for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 243
      top_log2[i_4] = __fmul_rn(top[i_4], 1.442695f);  // line 244
    }
    alignas(8) float old[2];  // line 250
    // line 251: BinaryPointwise.sub (%max, %top) -> (%old)
    #pragma unroll
    for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 255
      old[i_4] = __fsub_rn(max_1[i_4], top[i_4]);  // line 256
    }
    // line 259: Move (%top) -> (%max)
    *reinterpret_cast<uint2*>(max_1) = *reinterpret_cast<uint2*>(top);  // line 262
    // line 264: BinaryPointwise.sub (%p, %top_log2) -> (%p)
    #pragma unroll
    for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 268
      #pragma unroll
      for (int j = 0; j < 2; j += 1) {  // line 269
        #pragma unroll
        for (int kk = 0; kk < 8; kk += 1) {  // line 270
          p[kk * 4 + j * 2 + i_4] = __fsub_rn(p[kk * 4 + j * 2 + i_4], top_log2[j]);  // line 271
        }
      }
    }
    // line 278: UnaryPointwise.exp (%old) -> (%old)
    #pragma unroll
    for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 281
      // line 282: exp.approx.ftz.f32
      asm volatile(
          "mul.f32 %0, %1, 0f3FB8AA3B; ex2.approx.ftz.f32 %0, %0;\n"
          : "=f"(old[i_4])
          : "f"(old[i_4]));
    }
    // line 285: UnaryPointwise.exp2 (%p) -> (%p)
    #pragma unroll
    for (int i_4 = 0; i_4 < 32; i_4 += 1) {  // line 288
      // line 289: exp2.approx.ftz.f32
      asm volatile(
          "ex2.approx.ftz.f32 %0, %1;\n"
          : "=f"(p[i_4])
          : "f"(p[i_4]));
    }
    // line 292: BinaryPointwise.mul (%o, %old) -> (%o)
    #pragma unroll
    for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 296
      #pragma unroll
      for (int j = 0; j < 2; j += 1) {  // line 297
        #pragma unroll
        for (int kk = 0; kk < 16; kk += 1) {  // line 298
          o[kk * 4 + j * 2 + i_4] = __fmul_rn(o[kk * 4 + j * 2 + i_4], old[j]);  // line 299
        }
      }
    }
    alignas(16) __half half_1[32];  // line 306
    unsigned* half_1_u32 = reinterpret_cast<unsigned*>(half_1);
    // line 307: UnaryPointwise.cast (%p) -> (%half)
    #pragma unroll
    for (int i_4 = 0; i_4 < 16; i_4 += 1) {  // line 310
      // line 311
      *reinterpret_cast<__half2*>(&half_1[i_4 * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&p[i_4 * 2]));
    }
    // line 314: MatMul (%half, view of %v) -> (%o)
    fence_registers<32>(q_u32);
    fence_registers<64>(o);
    fence_registers<32>(all);
    fence_registers<16>(half_1_u32);
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");  // line 319
    #pragma unroll
    for (int kk = 0; kk < 4; kk += 1) {  // line 320
      // line 321: wgmma.m64n128k16.f32.f16.rs
      asm volatile(
          "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
          "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
          "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
          "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "
          "%56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;\n"
          : "+f"(o[0]), "+f"(o[1]), "+f"(o[2]), "+f"(o[3]), "+f"(o[4]), "+f"(o[5]), "+f"(o[6]),
            "+f"(o[7]), "+f"(o[8]), "+f"(o[9]), "+f"(o[10]), "+f"(o[11]), "+f"(o[12]), "+f"(o[13]),
            "+f"(o[14]), "+f"(o[15]), "+f"(o[16]), "+f"(o[17]), "+f"(o[18]), "+f"(o[19]),
            "+f"(o[20]), "+f"(o[21]), "+f"(o[22]), "+f"(o[23]), "+f"(o[24]), "+f"(o[25]),
            "+f"(o[26]), "+f"(o[27]), "+f"(o[28]), "+f"(o[29]), "+f"(o[30]), "+f"(o[31]),
            "+f"(o[32]), "+f"(o[33]), "+f"(o[34]), "+f"(o[35]), "+f"(o[36]), "+f"(o[37]),
            "+f"(o[38]), "+f"(o[39]), "+f"(o[40]), "+f"(o[41]), "+f"(o[42]), "+f"(o[43]),
            "+f"(o[44]), "+f"(o[45]), "+f"(o[46]), "+f"(o[47]), "+f"(o[48]), "+f"(o[49]),
            "+f"(o[50]), "+f"(o[51]), "+f"(o[52]), "+f"(o[53]), "+f"(o[54]), "+f"(o[55]),
            "+f"(o[56]), "+f"(o[57]), "+f"(o[58]), "+f"(o[59]), "+f"(o[60]), "+f"(o[61]),
            "+f"(o[62]), "+f"(o[63])
          : "r"(half_1_u32[kk * 4]), "r"(half_1_u32[kk * 4 + 1]), "r"(half_1_u32[kk * 4 + 2]),
            "r"(half_1_u32[kk * 4 + 3]),
            "l"(matrix_descriptor(shared_address(v, t % 2 * 8192), 8192, 1024, 1) + kk * 128)
          : "memory");
    }
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");  // line 323
    alignas(8) float sum_1[2];  // line 325
    // line 326: BinaryPointwise.mul (%sum, %old) -> (%sum_1)
    #pragma unroll
    for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 330
      sum_1[i_4] = sum[i_4] * old[i_4];  // line 331
    }
    // line 336: Init (-inf) -> (%s_3)
    s_3[0] = __uint_as_float(0xff800000u);  // line 338
    {  // line 342: BinaryPointwise.ge (%query, %key_3) -> (%s_2)
      alignas(8) int r_3[2];  // line 343
      // line 344: Move (%query) -> (%r_3)
      #pragma unroll
      for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 347
        r_3[i_4] = i * 64 + tid / 32 * 16 + i_4 * 8 + (tid / 4) % 8;  // line 348
      }
      alignas(16) int r_4[16];  // line 351
      // line 352: Move (%key_3) -> (%r_4)
      #pragma unroll
      for (int i_4 = 0; i_4 < 16; i_4 += 1) {  // line 355
        r_4[i_4] = min(i, t + 1) * 64 + i_4 / 2 * 8 + tid % 4 * 2 + i_4 % 2;  // line 356
      }
      // line 359: BinaryPointwise.ge (%r_3, %r_4) -> (%s_2)
      #pragma unroll
      for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 363
        #pragma unroll
        for (int j = 0; j < 2; j += 1) {  // line 364
          #pragma unroll
          for (int kk = 0; kk < 8; kk += 1) {  // line 365
            s_2[kk * 4 + j * 2 + i_4] = r_3[j] >= r_4[kk * 2 + i_4];  // line 366
          }
        }
      }
    }
    asm volatile("wgmma.wait_group.sync.aligned 1;\n" ::: "memory");  // line 374
    fence_registers<32>(q_u32);
    fence_registers<64>(o);
    fence_registers<32>(all);
    fence_registers<16>(half_1_u32);
    // line 375: Select (%s_2, %all, %s_3) -> (%s)
    #pragma unroll
    for (int i_4 = 0; i_4 < 32; i_4 += 1) {  // line 380
      // line 381
      *reinterpret_cast<unsigned*>(&s[i_4]) =
          choose(s_2[i_4], *reinterpret_cast<unsigned*>(&all[i_4]),
              *reinterpret_cast<unsigned*>(s_3));
    }
    {  // line 384: Reduction.max (%s) -> (%top)
      float o_2[1];  // line 387
      #pragma unroll
      for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 388
        top[i_4] = s[i_4 * 2];  // line 389
        #pragma unroll
        for (int j = 1; j < 16; j += 1) {  // line 390
          top[i_4] = fmaxf(top[i_4], s[j / 2 * 4 + i_4 * 2 + j % 2]);  // line 391
        }
        // line 393
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&top[i_4]), 1);
        top[i_4] = fmaxf(top[i_4], o_2[0]);  // line 394
        // line 395
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&top[i_4]), 2);
        top[i_4] = fmaxf(top[i_4], o_2[0]);  // line 396
      }
    }
    alignas(8) float sum_2[2];  // line 399
    {  // line 400: Reduction.sum (%p) -> (%sum_2)
      float o_2[1];  // line 403
      #pragma unroll
      for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 404
        sum_2[i_4] = p[i_4 * 2];  // line 405
        #pragma unroll
        for (int j = 1; j < 16; j += 1) {  // line 406
          sum_2[i_4] = __fadd_rn(sum_2[i_4], p[j / 2 * 4 + i_4 * 2 + j % 2]);  // line 407
        }
        // line 409
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&sum_2[i_4]), 1);
        sum_2[i_4] = __fadd_rn(sum_2[i_4], o_2[0]);  // line 410
        // line 411
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&sum_2[i_4]), 2);
        sum_2[i_4] = __fadd_rn(sum_2[i_4], o_2[0]);  // line 412
      }
    }
    // line 415: BinaryPointwise.mul (%s, 0.12751743082459868) -> (%p)
    #pragma unroll
    for (int i_4 = 0; i_4 < 32; i_4 += 1) {  // line 418
      p[i_4] = __fmul_rn(s[i_4], 0.12751743f);  // line 419
    }
    // line 424: BinaryPointwise.div (%top, 11.313708498984761) -> (%top)
    #pragma unroll
    for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 427
      top[i_4] = __fmul_rn(top[i_4], 0.088388346f);  // line 428
    }
    // line 433: BinaryPointwise.add (%sum_1, %sum_2) -> (%sum)
    #pragma unroll
    for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 437
      sum[i_4] = sum_1[i_4] + sum_2[i_4];  // line 438
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");  // line 443
    fence_registers<32>(q_u32);
    fence_registers<64>(o);
    fence_registers<32>(all);
    fence_registers<16>(half_1_u32);
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
        // line 444: Spec (%empty) -> ()
        // line 445: mbarrier.arrive
        asm volatile(
            "mbarrier.arrive.shared::cta.b64 _, [%0], %1;\n"
            :
            : "r"(shared_address(empty, t % 2)), "r"(1)
            : "memory");
      }
    }
    if (t + 2 < i + 1) {  // line 447
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
          // line 448: Spec (%K, %V, %full, %empty) -> (%k, %v)
          // line 449: mbarrier.wait
          asm volatile(
              "{\n"
              ".reg .pred complete;\n"
              "again:\n"
              "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
              "@!complete bra again;\n"
              "}\n"
              :
              : "r"(shared_address(empty, t % 2)), "r"((t / 2) % 2)
              : "memory");
          // line 450: mbarrier.expect
          asm volatile(
              "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n"
              :
              : "r"(shared_address(full, t % 2)), "r"(32768)
              : "memory");
          #pragma unroll
          for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 451
            // line 452: cp.async.bulk.tensor.4d.shared.global
            asm volatile(
                "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                "[%0], [%1, {%2, %3, %4, %5}], [%6];\n"
                :
                : "r"(shared_address(k, t % 2 * 8192 + i_2 * 4096)), "l"(&mK), "r"(i_2 * 64),
                  "r"(min(i, t + 3) * 64), "r"(h), "r"(b), "r"(shared_address(full, t % 2))
                : "memory");
          }
          #pragma unroll
          for (int i_3 = 0; i_3 < 2; i_3 += 1) {  // line 457
            // line 458: cp.async.bulk.tensor.4d.shared.global
            asm volatile(
                "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                "[%0], [%1, {%2, %3, %4, %5}], [%6];\n"
                :
                : "r"(shared_address(v, t % 2 * 8192 + i_3 * 4096)), "l"(&mV), "r"(i_3 * 64),
                  "r"(t * 64 + 128), "r"(h), "r"(b), "r"(shared_address(full, t % 2))
                : "memory");
          }
        }
      }
    }
  }
  alignas(16) float O_3[64];  // line 466
  alignas(8) float sum_rcp[2];  // line 468
  // line 469: UnaryPointwise.rcp (%sum) -> (%sum_rcp)
  #pragma unroll
  for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 472
    // line 473: rcp.approx.f32
    asm volatile(
        "rcp.approx.f32 %0, %1;\n"
        : "=f"(sum_rcp[i_4])
        : "f"(sum[i_4]));
  }
  // line 476: BinaryPointwise.mul (%o, %sum_rcp) -> (%O_3)
  #pragma unroll
  for (int i_4 = 0; i_4 < 2; i_4 += 1) {  // line 480
    #pragma unroll
    for (int j = 0; j < 2; j += 1) {  // line 481
      #pragma unroll
      for (int kk = 0; kk < 16; kk += 1) {  // line 482
        O_3[kk * 4 + j * 2 + i_4] = __fmul_rn(o[kk * 4 + j * 2 + i_4], sum_rcp[j]);  // line 483
      }
    }
  }
  {  // line 490: UnaryPointwise.cast (%O_3) -> (view of %O)
    alignas(16) __half r_5[64];  // line 491
    // line 492: UnaryPointwise.cast (%O_3) -> (%r_5)
    #pragma unroll
    for (int i_4 = 0; i_4 < 32; i_4 += 1) {  // line 495
      // line 496
      *reinterpret_cast<__half2*>(&r_5[i_4 * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&O_3[i_4 * 2]));
    }
    // line 499: Move (%r_5) -> (view of %O)
    #pragma unroll
    for (int i_4 = 0; i_4 < 32; i_4 += 1) {  // line 503
      // line 504
      *reinterpret_cast<unsigned*>(&O[b * 8388608 + h * 524288 + i * 8192 + tid / 32 * 2048 +
                      i_4 % 2 * 1024 + (tid / 4) % 8 * 128 + i_4 / 2 * 8 + tid % 4 * 2]) =
          *reinterpret_cast<unsigned*>(&r_5[i_4 * 2]);
    }
  }
}
