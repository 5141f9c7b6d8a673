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
  const int i = blockIdx.x;  // line 27
  __half* sk = reinterpret_cast<__half*>(smem);  // line 28
  __half* sv = reinterpret_cast<__half*>(smem + 8192);  // line 29
  alignas(16) __half q[32];  // line 30
  unsigned* q_u32 = reinterpret_cast<unsigned*>(q);
  alignas(16) __half k[128];  // line 31
  unsigned* k_u32 = reinterpret_cast<unsigned*>(k);
  alignas(16) __half v[128];  // line 32
  unsigned* v_u32 = reinterpret_cast<unsigned*>(v);
  alignas(16) float s[32];  // line 33
  alignas(16) __half p[32];  // line 34
  unsigned* p_u32 = reinterpret_cast<unsigned*>(p);
  alignas(16) float o[32];  // line 35
  alignas(16) __half half_1[32];  // line 36
  alignas(8) float max_1[2];  // line 39
  alignas(8) float sum[2];  // line 40
  alignas(8) float top[2];  // line 41
  alignas(8) float part[2];  // line 42
  alignas(8) float old[2];  // line 43
  // line 45: Move (view of %Q) -> (%q)
  #pragma unroll
  for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 48
    // line 49
    *reinterpret_cast<unsigned*>(&q[i_2 * 2]) =
        *reinterpret_cast<const unsigned*>(&Q[i * 4096 + tid / 32 * 1024 + i_2 % 2 * 512 +
                        (tid / 4) % 8 * 64 + i_2 / 2 * 8 + tid % 4 * 2]);
  }
  // line 52: Init (-1000000000000000000000000000000) -> (%max)
  #pragma unroll
  for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 54
    max_1[i_2] = -1e30f;  // line 55
  }
  // line 58: Init (0) -> (%sum)
  #pragma unroll
  for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 60
    sum[i_2] = 0.0f;  // line 61
  }
  // line 64: Init (0) -> (%o)
  #pragma unroll
  for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 66
    o[i_2] = 0.0f;  // line 67
  }
  for (int t = 0; t < 4; t += 1) {  // line 70
    __syncthreads();  // line 71
    // line 72: Move (view of %K) -> (%sk)
    #pragma unroll
    for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 75
      // line 76: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&sk[swizzle<3, 3, 3>(i_2 * 1024 + tid * 8)])),
            "l"(&K[t * 4096 + i_2 * 1024 + tid * 8])
          : "memory");
    }
    // line 79: Move (view of %V) -> (%sv)
    #pragma unroll
    for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 82
      // line 83: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&sv[swizzle<3, 3, 3>(i_2 * 1024 + tid * 8)])),
            "l"(&V[t * 4096 + i_2 * 1024 + tid * 8])
          : "memory");
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 86
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 87
    __syncthreads();  // line 88
    // line 89: Move (%sk) -> (%k)
    #pragma unroll
    for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 92
      // line 93: ldmatrix.x4.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(k_u32[i_2 * 4]), "=r"(k_u32[i_2 * 4 + 1]), "=r"(k_u32[i_2 * 4 + 2]),
            "=r"(k_u32[i_2 * 4 + 3])
          : "r"(shared_address(&sk[swizzle<3, 3, 3>(i_2 % 4 * 1024 + (tid / 16) % 2 * 512 +
                            tid % 8 * 64 + i_2 / 4 * 16 + (tid / 8) % 2 * 8)]))
          : "memory");
    }
    // line 96: Move (%sv) -> (%v)
    #pragma unroll
    for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 99
      // line 100: ldmatrix.x4.trans.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(v_u32[i_2 * 4]), "=r"(v_u32[i_2 * 4 + 1]), "=r"(v_u32[i_2 * 4 + 2]),
            "=r"(v_u32[i_2 * 4 + 3])
          : "r"(shared_address(&sv[swizzle<3, 3, 3>(i_2 / 4 * 1024 + tid % 16 * 64 + i_2 % 4 * 16 +
                            (tid / 16) % 2 * 8)]))
          : "memory");
    }
    // line 103: MatMul.set (%q, %k) -> (%s)
    // line 104: Init (0) -> (%s)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 106
      s[i_2] = 0.0f;  // line 107
    }
    // line 110: MatMul (%q, %k) -> (%s)
    #pragma unroll
    for (int kk = 0; kk < 4; kk += 1) {  // line 114
      #pragma unroll
      for (int j = 0; j < 8; j += 1) {  // line 115
        // line 116: mma.m16n8k16.f32.f16
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
            : "+f"(s[j * 4]), "+f"(s[j * 4 + 1]), "+f"(s[j * 4 + 2]), "+f"(s[j * 4 + 3])
            : "r"(q_u32[kk * 4]), "r"(q_u32[kk * 4 + 1]), "r"(q_u32[kk * 4 + 2]),
              "r"(q_u32[kk * 4 + 3]), "r"(k_u32[kk * 16 + j * 2]), "r"(k_u32[kk * 16 + j * 2 + 1]));
      }
    }
    // line 123: BinaryPointwise.mul (%s, 0.125) -> (%s)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 126
      s[i_2] = __fmul_rn(s[i_2], 0.125f);  // line 127
    }
    {  // line 131: Reduction.max (%s) -> (%top)
      float o_2[1];  // line 134
      #pragma unroll
      for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 135
        top[i_2] = s[i_2 * 2];  // line 136
        #pragma unroll
        for (int j = 1; j < 16; j += 1) {  // line 137
          top[i_2] = fmaxf(top[i_2], s[j / 2 * 4 + i_2 * 2 + j % 2]);  // line 138
        }
        // line 142
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&top[i_2]), 1);
        top[i_2] = fmaxf(top[i_2], o_2[0]);  // line 143
        // line 144
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&top[i_2]), 2);
        top[i_2] = fmaxf(top[i_2], o_2[0]);  // line 145
      }
    }
    // line 148: BinaryPointwise.max (%top, %max) -> (%top)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 152
      top[i_2] = fmaxf(top[i_2], max_1[i_2]);  // line 153
    }
    // line 156: BinaryPointwise.sub (%max, %top) -> (%old)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 160
      old[i_2] = __fsub_rn(max_1[i_2], top[i_2]);  // line 161
    }
    // line 164: UnaryPointwise.exp (%old) -> (%old)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 167
      old[i_2] = expf(old[i_2]);  // line 168
    }
    // line 171: Move (%top) -> (%max)
    *reinterpret_cast<uint2*>(max_1) = *reinterpret_cast<uint2*>(top);  // line 174
    // line 177: BinaryPointwise.sub (%s, %max) -> (%s)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 181
      #pragma unroll
      for (int j = 0; j < 2; j += 1) {  // line 182
        #pragma unroll
        for (int kk = 0; kk < 8; kk += 1) {  // line 183
          s[kk * 4 + j * 2 + i_2] = __fsub_rn(s[kk * 4 + j * 2 + i_2], max_1[j]);  // line 184
        }
      }
    }
    // line 191: UnaryPointwise.exp (%s) -> (%s)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 194
      s[i_2] = expf(s[i_2]);  // line 195
    }
    {  // line 198: Reduction.sum (%s) -> (%part)
      float o_2[1];  // line 201
      #pragma unroll
      for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 202
        part[i_2] = s[i_2 * 2];  // line 203
        #pragma unroll
        for (int j = 1; j < 16; j += 1) {  // line 204
          part[i_2] = __fadd_rn(part[i_2], s[j / 2 * 4 + i_2 * 2 + j % 2]);  // line 205
        }
        // line 209
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&part[i_2]), 1);
        part[i_2] = __fadd_rn(part[i_2], o_2[0]);  // line 210
        // line 211
        *reinterpret_cast<unsigned*>(o_2) =
            __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&part[i_2]), 2);
        part[i_2] = __fadd_rn(part[i_2], o_2[0]);  // line 212
      }
    }
    // line 215: BinaryPointwise.mul (%sum, %old) -> (%sum)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 219
      sum[i_2] = __fmul_rn(sum[i_2], old[i_2]);  // line 220
    }
    // line 223: BinaryPointwise.add (%sum, %part) -> (%sum)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 227
      sum[i_2] = __fadd_rn(sum[i_2], part[i_2]);  // line 228
    }
    // line 232: BinaryPointwise.mul (%o, %old) -> (%o)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 236
      #pragma unroll
      for (int j = 0; j < 2; j += 1) {  // line 237
        #pragma unroll
        for (int kk = 0; kk < 8; kk += 1) {  // line 238
          o[kk * 4 + j * 2 + i_2] = __fmul_rn(o[kk * 4 + j * 2 + i_2], old[j]);  // line 239
        }
      }
    }
    // line 246: UnaryPointwise.cast (%s) -> (%p)
    #pragma unroll
    for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 249
      // line 250
      *reinterpret_cast<__half2*>(&p[i_2 * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&s[i_2 * 2]));
    }
    // line 255: MatMul (%p, %v) -> (%o)
    #pragma unroll
    for (int kk = 0; kk < 4; kk += 1) {  // line 259
      #pragma unroll
      for (int j = 0; j < 8; j += 1) {  // line 260
        // line 261: mma.m16n8k16.f32.f16
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
            : "+f"(o[j * 4]), "+f"(o[j * 4 + 1]), "+f"(o[j * 4 + 2]), "+f"(o[j * 4 + 3])
            : "r"(p_u32[kk * 4]), "r"(p_u32[kk * 4 + 1]), "r"(p_u32[kk * 4 + 2]),
              "r"(p_u32[kk * 4 + 3]), "r"(v_u32[kk * 16 + j * 2]), "r"(v_u32[kk * 16 + j * 2 + 1]));
      }
    }
  }
  // line 268: BinaryPointwise.div (%o, %sum) -> (%o)
  #pragma unroll
  for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 272
    #pragma unroll
    for (int j = 0; j < 2; j += 1) {  // line 273
      #pragma unroll
      for (int kk = 0; kk < 8; kk += 1) {  // line 274
        o[kk * 4 + j * 2 + i_2] = __fdiv_rn(o[kk * 4 + j * 2 + i_2], sum[j]);  // line 275
      }
    }
  }
  // line 282: UnaryPointwise.cast (%o) -> (%half)
  #pragma unroll
  for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 285
    // line 286
    *reinterpret_cast<__half2*>(&half_1[i_2 * 2]) =
        __float22half2_rn(*reinterpret_cast<float2*>(&o[i_2 * 2]));
  }
  // line 291: Move (%half) -> (view of %O)
  #pragma unroll
  for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 294
    // line 295
    *reinterpret_cast<unsigned*>(&O[i * 4096 + tid / 32 * 1024 + i_2 % 2 * 512 +
                    (tid / 4) % 8 * 64 + i_2 / 2 * 8 + tid % 4 * 2]) =
        *reinterpret_cast<unsigned*>(&half_1[i_2 * 2]);
  }
}
