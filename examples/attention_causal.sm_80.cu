// attention_causal, line 18: Spec (%Q, %K, %V) -> (%O)
// sm_80: grid 2048, block 128, dynamic shared memory 65536 bytes
// Set cudaFuncAttributeMaxDynamicSharedMemorySize before launching.

#include <cuda_fp16.h>

// The address of an array element in shared memory, as PTX expects it.
template <typename T>
__device__ __forceinline__ unsigned shared_address(const T* array, int i = 0) {
  return static_cast<unsigned>(__cvta_generic_to_shared(array)) + i * int(sizeof(T));
}

// Selects one of two values after reading both. For `first ? a : b` compilers select one of two
// addresses, which keeps arrays in local memory.
template <typename T>
__device__ __forceinline__ T choose(bool first, T a, T b) {
  return first ? a : b;
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
  __half* k = reinterpret_cast<__half*>(smem);  // line 62
  __half* v = reinterpret_cast<__half*>(smem + 32768);  // line 63
  #pragma unroll
  for (int s_4 = 0; s_4 < 1; s_4 += 1) {  // line 64
    if (s_4 < i + 1) {  // line 65
      // line 66: Move (view of %K) -> (view of %k)
      #pragma unroll
      for (int i_2 = 0; i_2 < 8; i_2 += 1) {  // line 69
        // line 70: cp.async.cg.b128
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n"
            :
            : "r"(shared_address(&k[swizzle<3, 3, 4>(s_4 * 8192 + i_2 * 1024 + tid * 8)])),
              "l"(&K[b * 8388608 + h * 524288 + s_4 * 8192 + i_2 * 1024 + tid * 8])
            : "memory");
      }
      // line 73: Move (view of %V) -> (view of %v)
      #pragma unroll
      for (int i_2 = 0; i_2 < 8; i_2 += 1) {  // line 76
        // line 77: cp.async.cg.b128
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n"
            :
            : "r"(shared_address(&v[swizzle<3, 3, 4>(s_4 * 8192 + i_2 * 1024 + tid * 8)])),
              "l"(&V[b * 8388608 + h * 524288 + s_4 * 8192 + i_2 * 1024 + tid * 8])
            : "memory");
      }
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 81
  }
  const __half* K_next = &K[b * 8388608 + h * 524288 + tid * 8 + 8192];
  const __half* V_next = &V[b * 8388608 + h * 524288 + tid * 8 + 8192];
  for (int t = 0; t < i + 1; t += 1) {  // line 83
    if (t + 1 < i + 1) {  // line 84
      // line 85: Move (view of %K) -> (view of %k)
      #pragma unroll
      for (int i_2 = 0; i_2 < 8; i_2 += 1) {  // line 88
        // line 89: cp.async.cg.b128
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n"
            :
            : "r"(shared_address(&k[(t + 1) % 2 * 8192 + i_2 * 1024 + swizzle<3, 3, 4>(tid * 8)])),
              "l"(&K_next[i_2 * 1024])
            : "memory");
      }
      // line 92: Move (view of %V) -> (view of %v)
      #pragma unroll
      for (int i_2 = 0; i_2 < 8; i_2 += 1) {  // line 95
        // line 96: cp.async.cg.b128
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n"
            :
            : "r"(shared_address(&v[(t + 1) % 2 * 8192 + i_2 * 1024 + swizzle<3, 3, 4>(tid * 8)])),
              "l"(&V_next[i_2 * 1024])
            : "memory");
      }
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 100
    alignas(16) float all[32];  // line 102
    asm volatile("cp.async.wait_group 1;\n" ::: "memory");  // line 103
    __syncthreads();  // line 104
    // line 105: MatMul.set (%q, view of %k) -> (%all)
    // line 106: Init (0) -> (%all)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 108
      all[i_2] = 0.0f;  // line 109
    }
    {  // line 112: MatMul (%q, view of %k) -> (%all)
      alignas(16) __half r_5[256];  // line 113
      unsigned* r_5_u32 = reinterpret_cast<unsigned*>(r_5);
      // line 114: Move (view of %k) -> (%r_5)
      #pragma unroll
      for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 118
        // line 119: ldmatrix.x4.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(r_5_u32[i_2 * 4]), "=r"(r_5_u32[i_2 * 4 + 1]), "=r"(r_5_u32[i_2 * 4 + 2]),
              "=r"(r_5_u32[i_2 * 4 + 3])
            : "r"(shared_address(&k[t % 2 * 8192 + i_2 % 4 * 2048 + (tid / 16) % 2 * 1024 +
                          swizzle<3, 3, 4>(tid % 8 * 128 + i_2 / 4 * 16 + (tid / 8) % 2 * 8)]))
            : "memory");
      }
      // line 122: MatMul (%q, %r_5) -> (%all)
      #pragma unroll
      for (int kk = 0; kk < 8; kk += 1) {  // line 126
        #pragma unroll
        for (int j = 0; j < 8; j += 1) {  // line 127
          // line 128: mma.m16n8k16.f32.f16
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
              "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
              : "+f"(all[j * 4]), "+f"(all[j * 4 + 1]), "+f"(all[j * 4 + 2]), "+f"(all[j * 4 + 3])
              : "r"(q_u32[kk * 4]), "r"(q_u32[kk * 4 + 1]), "r"(q_u32[kk * 4 + 2]),
                "r"(q_u32[kk * 4 + 3]), "r"(r_5_u32[kk * 16 + j * 2]),
                "r"(r_5_u32[kk * 16 + j * 2 + 1]));
        }
      }
    }
    alignas(16) float s[32];  // line 136
    alignas(16) bool s_2[32];  // line 137
    {  // line 138: BinaryPointwise.ge (%query, %key) -> (%s_2)
      alignas(8) int r[2];  // line 139
      // line 140: Move (%query) -> (%r)
      #pragma unroll
      for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 143
        r[i_2] = i * 64 + tid / 32 * 16 + i_2 * 8 + (tid / 4) % 8;  // line 144
      }
      alignas(16) int r_2[16];  // line 147
      // line 148: Move (%key) -> (%r_2)
      #pragma unroll
      for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 151
        r_2[i_2] = t * 64 + i_2 / 2 * 8 + tid % 4 * 2 + i_2 % 2;  // line 152
      }
      // line 155: BinaryPointwise.ge (%r, %r_2) -> (%s_2)
      #pragma unroll
      for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 159
        #pragma unroll
        for (int j = 0; j < 2; j += 1) {  // line 160
          #pragma unroll
          for (int kk = 0; kk < 8; kk += 1) {  // line 161
            s_2[kk * 4 + j * 2 + i_2] = r[j] >= r_2[kk * 2 + i_2];  // line 162
          }
        }
      }
    }
    float s_3[1];  // line 170
    // line 171: Init (-inf) -> (%s_3)
    s_3[0] = __uint_as_float(0xff800000u);  // line 173
    // line 175: Select (%s_2, %all, %s_3) -> (%s)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 180
      // line 181
      *reinterpret_cast<unsigned*>(&s[i_2]) =
          choose(s_2[i_2], *reinterpret_cast<unsigned*>(&all[i_2]),
              *reinterpret_cast<unsigned*>(s_3));
    }
    alignas(8) float top[2];  // line 184
    {  // line 185: Reduction.max (%s) -> (%top)
      float o_2[1];  // line 188
      #pragma unroll
      for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 189
        top[i_2] = s[i_2 * 2];  // line 190
        #pragma unroll
        for (int j = 1; j < 16; j += 1) {  // line 191
          top[i_2] = fmaxf(top[i_2], s[j / 2 * 4 + i_2 * 2 + j % 2]);  // line 192
        }
        // line 194
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&top[i_2]), 1);
        top[i_2] = fmaxf(top[i_2], o_2[0]);  // line 195
        // line 196
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&top[i_2]), 2);
        top[i_2] = fmaxf(top[i_2], o_2[0]);  // line 197
      }
    }
    // line 200: BinaryPointwise.div (%top, 11.313708498984761) -> (%top)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 203
      top[i_2] = __fmul_rn(top[i_2], 0.088388346f);  // line 204
    }
    // line 209: BinaryPointwise.max (%top, %max) -> (%top)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 213
      top[i_2] = fmaxf(top[i_2], max_1[i_2]);  // line 214
    }
    alignas(8) float old[2];  // line 218
    // line 219: BinaryPointwise.sub (%max, %top) -> (%old)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 223
      old[i_2] = __fsub_rn(max_1[i_2], top[i_2]);  // line 224
    }
    // line 227: UnaryPointwise.exp (%old) -> (%old)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 230
      // line 231: exp.approx.ftz.f32
      asm volatile(
          "mul.f32 %0, %1, 0f3FB8AA3B; ex2.approx.ftz.f32 %0, %0;\n"
          : "=f"(old[i_2])
          : "f"(old[i_2]));
    }
    // line 234: BinaryPointwise.mul (%o, %old) -> (%o)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 238
      #pragma unroll
      for (int j = 0; j < 2; j += 1) {  // line 239
        #pragma unroll
        for (int kk = 0; kk < 16; kk += 1) {  // line 240
          o[kk * 4 + j * 2 + i_2] = __fmul_rn(o[kk * 4 + j * 2 + i_2], old[j]);  // line 241
        }
      }
    }
    alignas(16) float p[32];  // line 248
    alignas(8) float top_log2[2];  // line 250
    // line 251: BinaryPointwise.mul (%top, 1.4426950408889634) -> (%top_log2)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 254
      top_log2[i_2] = __fmul_rn(top[i_2], 1.442695f);  // line 255
    }
    // line 260: BinaryPointwise.mul (%s, 0.12751743082459868) -> (%p)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 263
      p[i_2] = s[i_2] * 0.12751743f;  // line 264
    }
    // line 269: BinaryPointwise.sub (%p, %top_log2) -> (%p)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 273
      #pragma unroll
      for (int j = 0; j < 2; j += 1) {  // line 274
        #pragma unroll
        for (int kk = 0; kk < 8; kk += 1) {  // line 275
          p[kk * 4 + j * 2 + i_2] = p[kk * 4 + j * 2 + i_2] - top_log2[j];  // line 276
        }
      }
    }
    // line 283: UnaryPointwise.exp2 (%p) -> (%p)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 286
      // line 287: exp2.approx.ftz.f32
      asm volatile(
          "ex2.approx.ftz.f32 %0, %1;\n"
          : "=f"(p[i_2])
          : "f"(p[i_2]));
    }
    alignas(8) float sum_1[2];  // line 290
    // line 291: BinaryPointwise.mul (%sum, %old) -> (%sum_1)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 295
      sum_1[i_2] = sum[i_2] * old[i_2];  // line 296
    }
    alignas(8) float sum_2[2];  // line 301
    {  // line 302: Reduction.sum (%p) -> (%sum_2)
      float o_2[1];  // line 305
      #pragma unroll
      for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 306
        sum_2[i_2] = p[i_2 * 2];  // line 307
        #pragma unroll
        for (int j = 1; j < 16; j += 1) {  // line 308
          sum_2[i_2] = __fadd_rn(sum_2[i_2], p[j / 2 * 4 + i_2 * 2 + j % 2]);  // line 309
        }
        // line 311
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&sum_2[i_2]), 1);
        sum_2[i_2] = __fadd_rn(sum_2[i_2], o_2[0]);  // line 312
        // line 313
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&sum_2[i_2]), 2);
        sum_2[i_2] = __fadd_rn(sum_2[i_2], o_2[0]);  // line 314
      }
    }
    // line 317: BinaryPointwise.add (%sum_1, %sum_2) -> (%sum)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 321
      sum[i_2] = sum_1[i_2] + sum_2[i_2];  // line 322
    }
    alignas(16) __half half_1[32];  // line 327
    unsigned* half_1_u32 = reinterpret_cast<unsigned*>(half_1);
    // line 328: UnaryPointwise.cast (%p) -> (%half)
    #pragma unroll
    for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 331
      // line 332
      *reinterpret_cast<__half2*>(&half_1[i_2 * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&p[i_2 * 2]));
    }
    {  // line 335: MatMul (%half, view of %v) -> (%o)
      alignas(16) __half r_3[256];  // line 336
      unsigned* r_3_u32 = reinterpret_cast<unsigned*>(r_3);
      // line 337: Move (view of %v) -> (%r_3)
      #pragma unroll
      for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 340
        // line 341: ldmatrix.x4.trans.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(r_3_u32[i_2 * 4]), "=r"(r_3_u32[i_2 * 4 + 1]), "=r"(r_3_u32[i_2 * 4 + 2]),
              "=r"(r_3_u32[i_2 * 4 + 3])
            : "r"(shared_address(&v[t % 2 * 8192 + i_2 / 8 * 2048 +
                          swizzle<3, 3, 4>(tid % 16 * 128 + i_2 % 8 * 16 + (tid / 16) % 2 * 8)]))
            : "memory");
      }
      // line 344: MatMul (%half, %r_3) -> (%o)
      #pragma unroll
      for (int kk = 0; kk < 4; kk += 1) {  // line 348
        #pragma unroll
        for (int j = 0; j < 16; j += 1) {  // line 349
          // line 350: mma.m16n8k16.f32.f16
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
              "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
              : "+f"(o[j * 4]), "+f"(o[j * 4 + 1]), "+f"(o[j * 4 + 2]), "+f"(o[j * 4 + 3])
              : "r"(half_1_u32[kk * 4]), "r"(half_1_u32[kk * 4 + 1]), "r"(half_1_u32[kk * 4 + 2]),
                "r"(half_1_u32[kk * 4 + 3]), "r"(r_3_u32[kk * 32 + j * 2]),
                "r"(r_3_u32[kk * 32 + j * 2 + 1]));
        }
      }
    }
    __syncthreads();  // line 357
    // line 358: Move (%top) -> (%max)
    *reinterpret_cast<uint2*>(max_1) = *reinterpret_cast<uint2*>(top);  // line 361
    K_next += 8192;
    V_next += 8192;
  }
  alignas(16) float O_3[64];  // line 364
  alignas(8) float sum_rcp[2];  // line 366
  // line 367: UnaryPointwise.rcp (%sum) -> (%sum_rcp)
  #pragma unroll
  for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 370
    // line 371: rcp.approx.f32
    asm volatile(
        "rcp.approx.f32 %0, %1;\n"
        : "=f"(sum_rcp[i_2])
        : "f"(sum[i_2]));
  }
  // line 374: BinaryPointwise.mul (%o, %sum_rcp) -> (%O_3)
  #pragma unroll
  for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 378
    #pragma unroll
    for (int j = 0; j < 2; j += 1) {  // line 379
      #pragma unroll
      for (int kk = 0; kk < 16; kk += 1) {  // line 380
        O_3[kk * 4 + j * 2 + i_2] = __fmul_rn(o[kk * 4 + j * 2 + i_2], sum_rcp[j]);  // line 381
      }
    }
  }
  {  // line 388: UnaryPointwise.cast (%O_3) -> (view of %O)
    alignas(16) __half r_4[64];  // line 389
    // line 390: UnaryPointwise.cast (%O_3) -> (%r_4)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 393
      // line 394
      *reinterpret_cast<__half2*>(&r_4[i_2 * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&O_3[i_2 * 2]));
    }
    // line 397: Move (%r_4) -> (view of %O)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 401
      // line 402
      *reinterpret_cast<unsigned*>(&O[b * 8388608 + h * 524288 + i * 8192 + tid / 32 * 2048 +
                      i_2 % 2 * 1024 + (tid / 4) % 8 * 128 + i_2 / 2 * 8 + tid % 4 * 2]) =
          *reinterpret_cast<unsigned*>(&r_4[i_2 * 2]);
    }
  }
  asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 406
}
