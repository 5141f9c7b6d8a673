// attention_causal, line 18: Spec (%Q, %K, %V) -> (%O)
// sm_90a: grid 2048, block 128, dynamic shared memory 32768 bytes

#include <cuda_fp16.h>

// A pointer to shared memory as PTX takes it.
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// A tile in shared memory as wgmma takes it: start address (bits 0-13), leading byte offset (16-29),
// stride byte offset (32-45), all in units of 16 bytes; swizzle mode (62-63): 0 none, 1 of 128 bytes,
// 2 of 64, 3 of 32.
__device__ __forceinline__ unsigned long long matrix_descriptor(
    const void* start, unsigned leading, unsigned stride, unsigned long long swizzle) {
  return (shared_address(start) & 0x3ffff) >> 4 | leading >> 4 << 16 |
         static_cast<unsigned long long>(stride >> 4) << 32 | swizzle << 62;
}

// Keeps accesses to registers on their side of it; no instruction.
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
attention_causal(
    const __half* __restrict__ Q,
    const __half* __restrict__ K,
    const __half* __restrict__ V,
    __half* __restrict__ O) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  const int i = blockIdx.x % 64;  // line 30
  const int h = (blockIdx.x / 64) % 16;  // line 30
  const int b = blockIdx.x / 1024;  // line 30
  alignas(16) __half q[64];  // line 32
  unsigned* q_u32 = reinterpret_cast<unsigned*>(q);
  // line 33: Move (view of %Q) -> (%q)
  #pragma unroll
  for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 37
    // line 38
    *reinterpret_cast<unsigned*>(&q[i_2 * 2]) =
        *reinterpret_cast<const unsigned*>(&Q[b * 8388608 + h * 524288 + i * 8192 +
                        tid / 32 * 2048 + i_2 % 2 * 1024 + (tid / 4) % 8 * 128 + i_2 / 2 * 8 +
                        tid % 4 * 2]);
  }
  alignas(8) float max_1[2];  // line 41
  // line 42: Init (-inf) -> (%max)
  #pragma unroll
  for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 44
    max_1[i_2] = __uint_as_float(0xff800000u);  // line 45
  }
  alignas(8) float sum[2];  // line 48
  // line 49: Init (0) -> (%sum)
  #pragma unroll
  for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 51
    sum[i_2] = 0.0f;  // line 52
  }
  alignas(16) float o[64];  // line 55
  // line 56: Init (0) -> (%o)
  #pragma unroll
  for (int i_2 = 0; i_2 < 64; i_2 += 1) {  // line 58
    o[i_2] = 0.0f;  // line 59
  }
  const __half* K_next = &K[b * 8388608 + h * 524288 + tid * 8];
  const __half* V_next = &V[b * 8388608 + h * 524288 + tid * 8];
  for (int t = 0; t < i + 1; t += 1) {  // line 62
    __half* k = reinterpret_cast<__half*>(smem);  // line 63
    __syncthreads();  // line 64
    // line 65: Move (view of %K) -> (%k)
    #pragma unroll
    for (int i_2 = 0; i_2 < 8; i_2 += 1) {  // line 68
      // line 69: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&k[swizzle<3, 3, 3>((tid / 8) % 2 * 4096 + i_2 * 512 +
                            tid / 16 * 64 + tid % 8 * 8)])), "l"(&K_next[i_2 * 1024])
          : "memory");
    }
    __half* v = reinterpret_cast<__half*>(smem + 16384);  // line 72
    // line 73: Move (view of %V) -> (%v)
    #pragma unroll
    for (int i_2 = 0; i_2 < 8; i_2 += 1) {  // line 76
      // line 77: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&v[swizzle<3, 3, 3>((tid / 8) % 2 * 4096 + i_2 * 512 +
                            tid / 16 * 64 + tid % 8 * 8)])), "l"(&V_next[i_2 * 1024])
          : "memory");
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 80
    alignas(16) float all[32];  // line 82
    // line 83: MatMul.set (%q, view of %k) -> (%all)
    // line 84: Init (0) -> (%all)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 86
      all[i_2] = 0.0f;  // line 87
    }
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 90
    __syncthreads();  // line 91
    // line 92: MatMul (%q, view of %k) -> (%all)
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");  // line 97
    fence_registers<32>(q_u32);
    fence_registers<64>(o);
    fence_registers<32>(all);
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");  // line 98
    #pragma unroll
    for (int kk = 0; kk < 8; kk += 1) {  // line 99
      // line 100: wgmma.m64n64k16.f32.f16.rs
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
            "l"(matrix_descriptor(k, 16, 1024, 1) + (kk / 4 * 512 + kk % 4 * 2))
          : "memory");
    }
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");  // line 102
    asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");  // line 103
    fence_registers<32>(q_u32);
    fence_registers<64>(o);
    fence_registers<32>(all);
    // line 106: BinaryPointwise.div (%all, 11.313708498984761) -> (%all)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 109
      all[i_2] = __fdiv_rn(all[i_2], 11.313708f);  // line 110
    }
    alignas(16) float s[32];  // line 115
    alignas(16) bool s_2[32];  // line 116
    {  // line 117: BinaryPointwise.ge (%query, %key) -> (%s_2)
      alignas(8) int r[2];  // line 118
      // line 119: Move (%query) -> (%r)
      #pragma unroll
      for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 122
        r[i_2] = i * 64 + tid / 32 * 16 + i_2 * 8 + (tid / 4) % 8;  // line 123
      }
      alignas(16) int r_2[16];  // line 126
      // line 127: Move (%key) -> (%r_2)
      #pragma unroll
      for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 130
        r_2[i_2] = t * 64 + i_2 / 2 * 8 + tid % 4 * 2 + i_2 % 2;  // line 131
      }
      // line 134: BinaryPointwise.ge (%r, %r_2) -> (%s_2)
      #pragma unroll
      for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 138
        #pragma unroll
        for (int j = 0; j < 2; j += 1) {  // line 139
          #pragma unroll
          for (int kk = 0; kk < 8; kk += 1) {  // line 140
            s_2[kk * 4 + j * 2 + i_2] = r[j] >= r_2[kk * 2 + i_2];  // line 141
          }
        }
      }
    }
    float s_3[1];  // line 149
    // line 150: Init (-inf) -> (%s_3)
    s_3[0] = __uint_as_float(0xff800000u);  // line 152
    // line 154: Select (%s_2, %all, %s_3) -> (%s)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 159
      // line 160
      *reinterpret_cast<unsigned*>(&s[i_2]) =
          s_2[i_2] ? *reinterpret_cast<unsigned*>(&all[i_2]) : *reinterpret_cast<unsigned*>(s_3);
    }
    alignas(8) float top[2];  // line 163
    {  // line 164: Reduction.max (%s) -> (%top)
      float o_2[1];  // line 167
      #pragma unroll
      for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 168
        top[i_2] = s[i_2 * 2];  // line 169
        #pragma unroll
        for (int j = 1; j < 16; j += 1) {  // line 170
          top[i_2] = fmaxf(top[i_2], s[j / 2 * 4 + i_2 * 2 + j % 2]);  // line 171
        }
        // line 173
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&top[i_2]), 1);
        top[i_2] = fmaxf(top[i_2], o_2[0]);  // line 174
        // line 175
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&top[i_2]), 2);
        top[i_2] = fmaxf(top[i_2], o_2[0]);  // line 176
      }
    }
    // line 179: BinaryPointwise.max (%top, %max) -> (%top)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 183
      top[i_2] = fmaxf(top[i_2], max_1[i_2]);  // line 184
    }
    alignas(16) float p[32];  // line 187
    // line 188: BinaryPointwise.sub (%s, %top) -> (%p)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 192
      #pragma unroll
      for (int j = 0; j < 2; j += 1) {  // line 193
        #pragma unroll
        for (int kk = 0; kk < 8; kk += 1) {  // line 194
          p[kk * 4 + j * 2 + i_2] = __fsub_rn(s[kk * 4 + j * 2 + i_2], top[j]);  // line 195
        }
      }
    }
    // line 202: UnaryPointwise.exp (%p) -> (%p)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 205
      p[i_2] = __expf(p[i_2]);  // line 206
    }
    alignas(8) float old[2];  // line 209
    // line 210: BinaryPointwise.sub (%max, %top) -> (%old)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 214
      old[i_2] = __fsub_rn(max_1[i_2], top[i_2]);  // line 215
    }
    // line 218: UnaryPointwise.exp (%old) -> (%old)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 221
      old[i_2] = expf(old[i_2]);  // line 222
    }
    alignas(8) float sum_1[2];  // line 225
    // line 226: BinaryPointwise.mul (%sum, %old) -> (%sum_1)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 230
      sum_1[i_2] = sum[i_2] * old[i_2];  // line 231
    }
    alignas(8) float sum_2[2];  // line 236
    {  // line 237: Reduction.sum (%p) -> (%sum_2)
      float o_2[1];  // line 240
      #pragma unroll
      for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 241
        sum_2[i_2] = p[i_2 * 2];  // line 242
        #pragma unroll
        for (int j = 1; j < 16; j += 1) {  // line 243
          sum_2[i_2] = __fadd_rn(sum_2[i_2], p[j / 2 * 4 + i_2 * 2 + j % 2]);  // line 244
        }
        // line 246
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&sum_2[i_2]), 1);
        sum_2[i_2] = __fadd_rn(sum_2[i_2], o_2[0]);  // line 247
        // line 248
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&sum_2[i_2]), 2);
        sum_2[i_2] = __fadd_rn(sum_2[i_2], o_2[0]);  // line 249
      }
    }
    // line 252: BinaryPointwise.add (%sum_1, %sum_2) -> (%sum)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 256
      sum[i_2] = sum_1[i_2] + sum_2[i_2];  // line 257
    }
    // line 262: BinaryPointwise.mul (%o, %old) -> (%o)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 266
      #pragma unroll
      for (int j = 0; j < 2; j += 1) {  // line 267
        #pragma unroll
        for (int kk = 0; kk < 16; kk += 1) {  // line 268
          o[kk * 4 + j * 2 + i_2] = __fmul_rn(o[kk * 4 + j * 2 + i_2], old[j]);  // line 269
        }
      }
    }
    alignas(16) __half half_1[32];  // line 276
    unsigned* half_1_u32 = reinterpret_cast<unsigned*>(half_1);
    // line 277: UnaryPointwise.cast (%p) -> (%half)
    #pragma unroll
    for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 280
      // line 281
      *reinterpret_cast<__half2*>(&half_1[i_2 * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&p[i_2 * 2]));
    }
    // line 284: MatMul (%half, %v) -> (%o)
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");  // line 289
    fence_registers<32>(q_u32);
    fence_registers<64>(o);
    fence_registers<32>(all);
    fence_registers<16>(half_1_u32);
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");  // line 290
    #pragma unroll
    for (int kk = 0; kk < 4; kk += 1) {  // line 291
      // line 292: wgmma.m64n128k16.f32.f16.rs
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
            "r"(half_1_u32[kk * 4 + 3]), "l"(matrix_descriptor(v, 8192, 1024, 1) + kk * 128)
          : "memory");
    }
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");  // line 294
    asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");  // line 295
    fence_registers<32>(q_u32);
    fence_registers<64>(o);
    fence_registers<32>(all);
    fence_registers<16>(half_1_u32);
    // line 297: Move (%top) -> (%max)
    *reinterpret_cast<uint2*>(max_1) = *reinterpret_cast<uint2*>(top);  // line 300
    K_next += 8192;
    V_next += 8192;
  }
  alignas(16) float O_3[64];  // line 303
  // line 304: BinaryPointwise.div (%o, %sum) -> (%O_3)
  #pragma unroll
  for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 308
    #pragma unroll
    for (int j = 0; j < 2; j += 1) {  // line 309
      #pragma unroll
      for (int kk = 0; kk < 16; kk += 1) {  // line 310
        // line 311: div.full.f32
        asm volatile(
            "div.full.f32 %0, %1, %2;\n"
            : "=f"(O_3[kk * 4 + j * 2 + i_2])
            : "f"(o[kk * 4 + j * 2 + i_2]), "f"(sum[j]));
      }
    }
  }
  {  // line 318: UnaryPointwise.cast (%O_3) -> (view of %O)
    alignas(16) __half r_3[64];  // line 319
    // line 320: UnaryPointwise.cast (%O_3) -> (%r_3)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 323
      // line 324
      *reinterpret_cast<__half2*>(&r_3[i_2 * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&O_3[i_2 * 2]));
    }
    // line 327: Move (%r_3) -> (view of %O)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 331
      // line 332
      *reinterpret_cast<unsigned*>(&O[b * 8388608 + h * 524288 + i * 8192 + tid / 32 * 2048 +
                      i_2 % 2 * 1024 + (tid / 4) % 8 * 128 + i_2 / 2 * 8 + tid % 4 * 2]) =
          *reinterpret_cast<unsigned*>(&r_3[i_2 * 2]);
    }
  }
}
