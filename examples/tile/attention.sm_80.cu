// attention, line 17: Spec (%Q, %K, %V) -> (%O)
// sm_80: grid 2, block 128, dynamic shared memory 16384 bytes

#include <cuda_fp16.h>

// A pointer to shared memory as PTX takes it.
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
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
  const int i = blockIdx.x;  // line 18
  __half* sk = reinterpret_cast<__half*>(smem);  // line 19
  __half* sv = reinterpret_cast<__half*>(smem + 8192);  // line 20
  alignas(16) __half q[32];  // line 21
  unsigned* q_u32 = reinterpret_cast<unsigned*>(q);
  alignas(16) __half k[128];  // line 22
  unsigned* k_u32 = reinterpret_cast<unsigned*>(k);
  alignas(16) __half v[128];  // line 23
  unsigned* v_u32 = reinterpret_cast<unsigned*>(v);
  alignas(16) float s[32];  // line 24
  alignas(16) __half p[32];  // line 25
  unsigned* p_u32 = reinterpret_cast<unsigned*>(p);
  alignas(16) float o[32];  // line 26
  alignas(16) __half half_1[32];  // line 27
  alignas(8) float max_1[2];  // line 30
  alignas(8) float sum[2];  // line 31
  alignas(8) float top[2];  // line 32
  alignas(8) float part[2];  // line 33
  alignas(8) float old[2];  // line 34
  // line 36: Move (view of %Q) -> (%q)
  #pragma unroll
  for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 39
    // line 40
    *reinterpret_cast<unsigned*>(&q[i_2 * 2]) =
        *reinterpret_cast<const unsigned*>(&Q[i * 4096 + tid / 32 * 1024 + i_2 % 2 * 512 +
                        (tid / 4) % 8 * 64 + i_2 / 2 * 8 + tid % 4 * 2]);
  }
  // line 43: Init (-1000000000000000000000000000000) -> (%max)
  #pragma unroll
  for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 45
    max_1[i_2] = -1e30f;  // line 46
  }
  // line 49: Init (0) -> (%sum)
  #pragma unroll
  for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 51
    sum[i_2] = 0.0f;  // line 52
  }
  // line 55: Init (0) -> (%o)
  #pragma unroll
  for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 57
    o[i_2] = 0.0f;  // line 58
  }
  for (int t = 0; t < 4; t += 1) {  // line 61
    __syncthreads();  // line 62
    // line 63: Move (view of %K) -> (%sk)
    #pragma unroll
    for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 66
      // line 67: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&sk[swizzle<3, 3, 3>(i_2 * 1024 + tid * 8)])),
            "l"(&K[t * 4096 + i_2 * 1024 + tid * 8])
          : "memory");
    }
    // line 70: Move (view of %V) -> (%sv)
    #pragma unroll
    for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 73
      // line 74: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&sv[swizzle<3, 3, 3>(i_2 * 1024 + tid * 8)])),
            "l"(&V[t * 4096 + i_2 * 1024 + tid * 8])
          : "memory");
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 77
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 78
    __syncthreads();  // line 79
    // line 80: Move (%sk) -> (%k)
    #pragma unroll
    for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 83
      // line 84: ldmatrix.x4.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(k_u32[i_2 * 4]), "=r"(k_u32[i_2 * 4 + 1]), "=r"(k_u32[i_2 * 4 + 2]),
            "=r"(k_u32[i_2 * 4 + 3])
          : "r"(shared_address(&sk[swizzle<3, 3, 3>(i_2 % 4 * 1024 + (tid / 16) % 2 * 512 +
                            tid % 8 * 64 + i_2 / 4 * 16 + (tid / 8) % 2 * 8)]))
          : "memory");
    }
    // line 87: Move (%sv) -> (%v)
    #pragma unroll
    for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 90
      // line 91: ldmatrix.x4.trans.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(v_u32[i_2 * 4]), "=r"(v_u32[i_2 * 4 + 1]), "=r"(v_u32[i_2 * 4 + 2]),
            "=r"(v_u32[i_2 * 4 + 3])
          : "r"(shared_address(&sv[swizzle<3, 3, 3>(i_2 / 4 * 1024 + tid % 16 * 64 + i_2 % 4 * 16 +
                            (tid / 16) % 2 * 8)]))
          : "memory");
    }
    // line 94: MatMul.set (%q, %k) -> (%s)
    // line 95: Init (0) -> (%s)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 97
      s[i_2] = 0.0f;  // line 98
    }
    // line 101: MatMul (%q, %k) -> (%s)
    #pragma unroll
    for (int kk = 0; kk < 4; kk += 1) {  // line 105
      #pragma unroll
      for (int j = 0; j < 8; j += 1) {  // line 106
        // line 107: mma.m16n8k16.f32.f16
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
            : "+f"(s[j * 4]), "+f"(s[j * 4 + 1]), "+f"(s[j * 4 + 2]), "+f"(s[j * 4 + 3])
            : "r"(q_u32[kk * 4]), "r"(q_u32[kk * 4 + 1]), "r"(q_u32[kk * 4 + 2]),
              "r"(q_u32[kk * 4 + 3]), "r"(k_u32[kk * 16 + j * 2]), "r"(k_u32[kk * 16 + j * 2 + 1]));
      }
    }
    // line 114: BinaryPointwise.mul (%s, 0.125) -> (%s)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 117
      s[i_2] = __fmul_rn(s[i_2], 0.125f);  // line 118
    }
    {  // line 122: Reduction.max (%s) -> (%top)
      float o_2[1];  // line 125
      #pragma unroll
      for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 126
        top[i_2] = s[i_2 * 2];  // line 127
        #pragma unroll
        for (int j = 1; j < 16; j += 1) {  // line 128
          top[i_2] = fmaxf(top[i_2], s[j / 2 * 4 + i_2 * 2 + j % 2]);  // line 129
        }
        // line 133
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&top[i_2]), 1);
        top[i_2] = fmaxf(top[i_2], o_2[0]);  // line 134
        // line 135
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&top[i_2]), 2);
        top[i_2] = fmaxf(top[i_2], o_2[0]);  // line 136
      }
    }
    // line 139: BinaryPointwise.max (%top, %max) -> (%top)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 143
      top[i_2] = fmaxf(top[i_2], max_1[i_2]);  // line 144
    }
    // line 147: BinaryPointwise.sub (%max, %top) -> (%old)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 151
      old[i_2] = __fsub_rn(max_1[i_2], top[i_2]);  // line 152
    }
    // line 155: UnaryPointwise.exp (%old) -> (%old)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 158
      old[i_2] = expf(old[i_2]);  // line 159
    }
    // line 162: Move (%top) -> (%max)
    *reinterpret_cast<uint2*>(max_1) = *reinterpret_cast<uint2*>(top);  // line 165
    // line 168: BinaryPointwise.sub (%s, %max) -> (%s)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 172
      #pragma unroll
      for (int j = 0; j < 2; j += 1) {  // line 173
        #pragma unroll
        for (int kk = 0; kk < 8; kk += 1) {  // line 174
          s[kk * 4 + j * 2 + i_2] = __fsub_rn(s[kk * 4 + j * 2 + i_2], max_1[j]);  // line 175
        }
      }
    }
    // line 182: UnaryPointwise.exp (%s) -> (%s)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 185
      s[i_2] = expf(s[i_2]);  // line 186
    }
    {  // line 189: Reduction.sum (%s) -> (%part)
      float o_2[1];  // line 192
      #pragma unroll
      for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 193
        part[i_2] = s[i_2 * 2];  // line 194
        #pragma unroll
        for (int j = 1; j < 16; j += 1) {  // line 195
          part[i_2] = __fadd_rn(part[i_2], s[j / 2 * 4 + i_2 * 2 + j % 2]);  // line 196
        }
        // line 200
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&part[i_2]), 1);
        part[i_2] = __fadd_rn(part[i_2], o_2[0]);  // line 201
        // line 202
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&part[i_2]), 2);
        part[i_2] = __fadd_rn(part[i_2], o_2[0]);  // line 203
      }
    }
    // line 206: BinaryPointwise.mul (%sum, %old) -> (%sum)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 210
      sum[i_2] = __fmul_rn(sum[i_2], old[i_2]);  // line 211
    }
    // line 214: BinaryPointwise.add (%sum, %part) -> (%sum)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 218
      sum[i_2] = __fadd_rn(sum[i_2], part[i_2]);  // line 219
    }
    // line 223: BinaryPointwise.mul (%o, %old) -> (%o)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 227
      #pragma unroll
      for (int j = 0; j < 2; j += 1) {  // line 228
        #pragma unroll
        for (int kk = 0; kk < 8; kk += 1) {  // line 229
          o[kk * 4 + j * 2 + i_2] = __fmul_rn(o[kk * 4 + j * 2 + i_2], old[j]);  // line 230
        }
      }
    }
    // line 237: UnaryPointwise.cast (%s) -> (%p)
    #pragma unroll
    for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 240
      // line 241
      *reinterpret_cast<__half2*>(&p[i_2 * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&s[i_2 * 2]));
    }
    // line 246: MatMul (%p, %v) -> (%o)
    #pragma unroll
    for (int kk = 0; kk < 4; kk += 1) {  // line 250
      #pragma unroll
      for (int j = 0; j < 8; j += 1) {  // line 251
        // line 252: mma.m16n8k16.f32.f16
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
            : "+f"(o[j * 4]), "+f"(o[j * 4 + 1]), "+f"(o[j * 4 + 2]), "+f"(o[j * 4 + 3])
            : "r"(p_u32[kk * 4]), "r"(p_u32[kk * 4 + 1]), "r"(p_u32[kk * 4 + 2]),
              "r"(p_u32[kk * 4 + 3]), "r"(v_u32[kk * 16 + j * 2]), "r"(v_u32[kk * 16 + j * 2 + 1]));
      }
    }
  }
  // line 259: BinaryPointwise.div (%o, %sum) -> (%o)
  #pragma unroll
  for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 263
    #pragma unroll
    for (int j = 0; j < 2; j += 1) {  // line 264
      #pragma unroll
      for (int kk = 0; kk < 8; kk += 1) {  // line 265
        o[kk * 4 + j * 2 + i_2] = __fdiv_rn(o[kk * 4 + j * 2 + i_2], sum[j]);  // line 266
      }
    }
  }
  // line 273: UnaryPointwise.cast (%o) -> (%half)
  #pragma unroll
  for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 276
    // line 277
    *reinterpret_cast<__half2*>(&half_1[i_2 * 2]) =
        __float22half2_rn(*reinterpret_cast<float2*>(&o[i_2 * 2]));
  }
  // line 282: Move (%half) -> (view of %O)
  #pragma unroll
  for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 285
    // line 286
    *reinterpret_cast<unsigned*>(&O[i * 4096 + tid / 32 * 1024 + i_2 % 2 * 512 +
                    (tid / 4) % 8 * 64 + i_2 / 2 * 8 + tid % 4 * 2]) =
        *reinterpret_cast<unsigned*>(&half_1[i_2 * 2]);
  }
}
