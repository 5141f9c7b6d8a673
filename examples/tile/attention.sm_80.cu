// attention, line 17: Spec (%Q, %K, %V) -> (%O)
// sm_80: grid 2, block 128, dynamic shared memory 16384 bytes

#include <cuda_fp16.h>

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

extern "C" __global__ void __launch_bounds__(128)
attention(
    const __half* __restrict__ Q,
    const __half* __restrict__ K,
    const __half* __restrict__ V,
    __half* __restrict__ O) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  const int i = blockIdx.x;  // line 27
  alignas(16) __half q[32];  // line 28
  unsigned* q_u32 = reinterpret_cast<unsigned*>(q);
  // line 29: Move (view of %Q) -> (%q)
  #pragma unroll
  for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 32
    // line 33
    *reinterpret_cast<unsigned*>(&q[i_2 * 2]) =
        *reinterpret_cast<const unsigned*>(&Q[i * 4096 + tid / 32 * 1024 + i_2 % 2 * 512 +
                        (tid / 4) % 8 * 64 + i_2 / 2 * 8 + tid % 4 * 2]);
  }
  alignas(8) float max_1[2];  // line 37
  // line 38: Init (-inf) -> (%max)
  #pragma unroll
  for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 40
    max_1[i_2] = __uint_as_float(0xff800000u);  // line 41
  }
  alignas(8) float sum[2];  // line 44
  // line 45: Init (0) -> (%sum)
  #pragma unroll
  for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 47
    sum[i_2] = 0.0f;  // line 48
  }
  alignas(16) float o[32];  // line 51
  // line 52: Init (0) -> (%o)
  #pragma unroll
  for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 54
    o[i_2] = 0.0f;  // line 55
  }
  const __half* K_next = &K[tid * 8];
  const __half* V_next = &V[tid * 8];
  for (int t = 0; t < 4; t += 1) {  // line 58
    __half* k = reinterpret_cast<__half*>(smem);  // line 59
    __syncthreads();  // line 60
    // line 61: Move (view of %K) -> (%k)
    #pragma unroll
    for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 64
      // line 65: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&k[swizzle<3, 3, 3>(i_2 * 1024 + tid * 8)])),
            "l"(&K_next[i_2 * 1024])
          : "memory");
    }
    __half* v = reinterpret_cast<__half*>(smem + 8192);  // line 68
    // line 69: Move (view of %V) -> (%v)
    #pragma unroll
    for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 72
      // line 73: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&v[swizzle<3, 3, 3>(i_2 * 1024 + tid * 8)])),
            "l"(&V_next[i_2 * 1024])
          : "memory");
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 76
    alignas(16) float s[32];  // line 77
    // line 78: MatMul.set (%q, %k) -> (%s)
    // line 79: Init (0) -> (%s)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 81
      s[i_2] = 0.0f;  // line 82
    }
    {  // line 85: MatMul (%q, %k) -> (%s)
      alignas(16) __half r_3[128];  // line 86
      unsigned* r_3_u32 = reinterpret_cast<unsigned*>(r_3);
      asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 87
      __syncthreads();  // line 88
      // line 89: Move (%k) -> (%r_3)
      #pragma unroll
      for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 92
        // line 93: ldmatrix.x4.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(r_3_u32[i_2 * 4]), "=r"(r_3_u32[i_2 * 4 + 1]), "=r"(r_3_u32[i_2 * 4 + 2]),
              "=r"(r_3_u32[i_2 * 4 + 3])
            : "r"(shared_address(&k[swizzle<3, 3, 3>(i_2 % 4 * 1024 + (tid / 16) % 2 * 512 +
                              tid % 8 * 64 + i_2 / 4 * 16 + (tid / 8) % 2 * 8)]))
            : "memory");
      }
      // line 96: MatMul (%q, %r_3) -> (%s)
      #pragma unroll
      for (int kk = 0; kk < 4; kk += 1) {  // line 100
        #pragma unroll
        for (int j = 0; j < 8; j += 1) {  // line 101
          // line 102: mma.m16n8k16.f32.f16
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
              "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
              : "+f"(s[j * 4]), "+f"(s[j * 4 + 1]), "+f"(s[j * 4 + 2]), "+f"(s[j * 4 + 3])
              : "r"(q_u32[kk * 4]), "r"(q_u32[kk * 4 + 1]), "r"(q_u32[kk * 4 + 2]),
                "r"(q_u32[kk * 4 + 3]), "r"(r_3_u32[kk * 16 + j * 2]),
                "r"(r_3_u32[kk * 16 + j * 2 + 1]));
        }
      }
    }
    alignas(8) float top[2];  // line 110
    {  // line 111: Reduction.max (%s) -> (%top)
      float o_2[1];  // line 114
      #pragma unroll
      for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 115
        top[i_2] = s[i_2 * 2];  // line 116
        #pragma unroll
        for (int j = 1; j < 16; j += 1) {  // line 117
          top[i_2] = fmaxf(top[i_2], s[j / 2 * 4 + i_2 * 2 + j % 2]);  // line 118
        }
        // line 120
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&top[i_2]), 1);
        top[i_2] = fmaxf(top[i_2], o_2[0]);  // line 121
        // line 122
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&top[i_2]), 2);
        top[i_2] = fmaxf(top[i_2], o_2[0]);  // line 123
      }
    }
    // line 126: BinaryPointwise.div (%top, 8) -> (%top)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 129
      top[i_2] = __fmul_rn(top[i_2], 0.125f);  // line 130
    }
    // line 133: BinaryPointwise.max (%top, %max) -> (%top)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 137
      top[i_2] = fmaxf(top[i_2], max_1[i_2]);  // line 138
    }
    alignas(16) float p[32];  // line 141
    alignas(8) float top_log2[2];  // line 143
    // line 144: BinaryPointwise.mul (%top, 1.4426950408889634) -> (%top_log2)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 147
      top_log2[i_2] = __fmul_rn(top[i_2], 1.442695f);  // line 148
    }
    // line 153: BinaryPointwise.mul (%s, 0.18033688011112042) -> (%p)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 156
      p[i_2] = s[i_2] * 0.18033688f;  // line 157
    }
    // line 162: BinaryPointwise.sub (%p, %top_log2) -> (%p)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 166
      #pragma unroll
      for (int j = 0; j < 2; j += 1) {  // line 167
        #pragma unroll
        for (int kk = 0; kk < 8; kk += 1) {  // line 168
          p[kk * 4 + j * 2 + i_2] = p[kk * 4 + j * 2 + i_2] - top_log2[j];  // line 169
        }
      }
    }
    // line 176: UnaryPointwise.exp2 (%p) -> (%p)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 179
      // line 180: exp2.approx.ftz.f32
      asm volatile(
          "ex2.approx.ftz.f32 %0, %1;\n"
          : "=f"(p[i_2])
          : "f"(p[i_2]));
    }
    alignas(8) float old[2];  // line 183
    // line 184: BinaryPointwise.sub (%max, %top) -> (%old)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 188
      old[i_2] = __fsub_rn(max_1[i_2], top[i_2]);  // line 189
    }
    // line 192: UnaryPointwise.exp (%old) -> (%old)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 195
      old[i_2] = expf(old[i_2]);  // line 196
    }
    alignas(8) float sum_1[2];  // line 199
    // line 200: BinaryPointwise.mul (%sum, %old) -> (%sum_1)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 204
      sum_1[i_2] = sum[i_2] * old[i_2];  // line 205
    }
    alignas(8) float sum_2[2];  // line 210
    {  // line 211: Reduction.sum (%p) -> (%sum_2)
      float o_2[1];  // line 214
      #pragma unroll
      for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 215
        sum_2[i_2] = p[i_2 * 2];  // line 216
        #pragma unroll
        for (int j = 1; j < 16; j += 1) {  // line 217
          sum_2[i_2] = __fadd_rn(sum_2[i_2], p[j / 2 * 4 + i_2 * 2 + j % 2]);  // line 218
        }
        // line 220
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&sum_2[i_2]), 1);
        sum_2[i_2] = __fadd_rn(sum_2[i_2], o_2[0]);  // line 221
        // line 222
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&sum_2[i_2]), 2);
        sum_2[i_2] = __fadd_rn(sum_2[i_2], o_2[0]);  // line 223
      }
    }
    // line 226: BinaryPointwise.add (%sum_1, %sum_2) -> (%sum)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 230
      sum[i_2] = sum_1[i_2] + sum_2[i_2];  // line 231
    }
    // line 236: BinaryPointwise.mul (%o, %old) -> (%o)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 240
      #pragma unroll
      for (int j = 0; j < 2; j += 1) {  // line 241
        #pragma unroll
        for (int kk = 0; kk < 8; kk += 1) {  // line 242
          o[kk * 4 + j * 2 + i_2] = __fmul_rn(o[kk * 4 + j * 2 + i_2], old[j]);  // line 243
        }
      }
    }
    alignas(16) __half half_1[32];  // line 250
    unsigned* half_1_u32 = reinterpret_cast<unsigned*>(half_1);
    // line 251: UnaryPointwise.cast (%p) -> (%half)
    #pragma unroll
    for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 254
      // line 255
      *reinterpret_cast<__half2*>(&half_1[i_2 * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&p[i_2 * 2]));
    }
    {  // line 258: MatMul (%half, %v) -> (%o)
      alignas(16) __half r[128];  // line 259
      unsigned* r_u32 = reinterpret_cast<unsigned*>(r);
      // line 260: Move (%v) -> (%r)
      #pragma unroll
      for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 263
        // line 264: ldmatrix.x4.trans.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(r_u32[i_2 * 4]), "=r"(r_u32[i_2 * 4 + 1]), "=r"(r_u32[i_2 * 4 + 2]),
              "=r"(r_u32[i_2 * 4 + 3])
            : "r"(shared_address(&v[swizzle<3, 3, 3>(i_2 / 4 * 1024 + tid % 16 * 64 + i_2 % 4 * 16 +
                              (tid / 16) % 2 * 8)]))
            : "memory");
      }
      // line 267: MatMul (%half, %r) -> (%o)
      #pragma unroll
      for (int kk = 0; kk < 4; kk += 1) {  // line 271
        #pragma unroll
        for (int j = 0; j < 8; j += 1) {  // line 272
          // line 273: mma.m16n8k16.f32.f16
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
              "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
              : "+f"(o[j * 4]), "+f"(o[j * 4 + 1]), "+f"(o[j * 4 + 2]), "+f"(o[j * 4 + 3])
              : "r"(half_1_u32[kk * 4]), "r"(half_1_u32[kk * 4 + 1]), "r"(half_1_u32[kk * 4 + 2]),
                "r"(half_1_u32[kk * 4 + 3]), "r"(r_u32[kk * 16 + j * 2]),
                "r"(r_u32[kk * 16 + j * 2 + 1]));
        }
      }
    }
    // line 280: Move (%top) -> (%max)
    *reinterpret_cast<uint2*>(max_1) = *reinterpret_cast<uint2*>(top);  // line 283
    K_next += 4096;
    V_next += 4096;
  }
  alignas(16) float O_3[32];  // line 286
  alignas(8) float sum_rcp[2];  // line 288
  // line 289: UnaryPointwise.rcp (%sum) -> (%sum_rcp)
  #pragma unroll
  for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 292
    // line 293: rcp.approx.f32
    asm volatile(
        "rcp.approx.f32 %0, %1;\n"
        : "=f"(sum_rcp[i_2])
        : "f"(sum[i_2]));
  }
  // line 296: BinaryPointwise.mul (%o, %sum_rcp) -> (%O_3)
  #pragma unroll
  for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 300
    #pragma unroll
    for (int j = 0; j < 2; j += 1) {  // line 301
      #pragma unroll
      for (int kk = 0; kk < 8; kk += 1) {  // line 302
        O_3[kk * 4 + j * 2 + i_2] = __fmul_rn(o[kk * 4 + j * 2 + i_2], sum_rcp[j]);  // line 303
      }
    }
  }
  {  // line 310: UnaryPointwise.cast (%O_3) -> (view of %O)
    alignas(16) __half r_2[32];  // line 311
    // line 312: UnaryPointwise.cast (%O_3) -> (%r_2)
    #pragma unroll
    for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 315
      // line 316
      *reinterpret_cast<__half2*>(&r_2[i_2 * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&O_3[i_2 * 2]));
    }
    // line 319: Move (%r_2) -> (view of %O)
    #pragma unroll
    for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 322
      // line 323
      *reinterpret_cast<unsigned*>(&O[i * 4096 + tid / 32 * 1024 + i_2 % 2 * 512 +
                      (tid / 4) % 8 * 64 + i_2 / 2 * 8 + tid % 4 * 2]) =
          *reinterpret_cast<unsigned*>(&r_2[i_2 * 2]);
    }
  }
}
