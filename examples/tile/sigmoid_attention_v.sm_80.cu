// sigmoid_attention_v, line 18: Spec (%Q, %K, %G, %scale, %bias) -> (%V)
// sm_80: grid 2, block 128, dynamic shared memory 24576 bytes

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
sigmoid_attention_v(
    const __half* __restrict__ Q,
    const __half* __restrict__ K,
    const __half* __restrict__ G,
    const float scale,
    const float bias,
    float* __restrict__ V) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  const int j = blockIdx.x;  // line 28
  alignas(16) __half k[32];  // line 29
  unsigned* k_u32 = reinterpret_cast<unsigned*>(k);
  // line 30: Move (view of %K) -> (%k)
  #pragma unroll
  for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 34
    // line 35
    *reinterpret_cast<unsigned*>(&k[i_2 * 2]) =
        *reinterpret_cast<const unsigned*>(&K[j * 4096 + tid / 32 * 1024 + (i_2 / 2) % 2 * 512 +
                        (tid / 4) % 8 * 64 + i_2 / 4 * 16 + i_2 % 2 * 8 + tid % 4 * 2]);
  }
  alignas(16) float v[32];  // line 38
  // line 39: Init (0) -> (%v)
  #pragma unroll
  for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 41
    v[i_2] = 0.0f;  // line 42
  }
  const __half* Q_next = &Q[tid * 8];
  const __half* G_next = &G[tid * 8];
  for (int i = 0; i < 2; i += 1) {  // line 45
    __half* q = reinterpret_cast<__half*>(smem);  // line 46
    // line 47: Move (view of %Q) -> (%q)
    #pragma unroll
    for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 50
      // line 51: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&q[swizzle<3, 3, 3>(i_2 * 1024 + tid * 8)])),
            "l"(&Q_next[i_2 * 1024])
          : "memory");
    }
    __half* g = reinterpret_cast<__half*>(smem + 8192);  // line 54
    // line 55: Move (view of %G) -> (%g)
    #pragma unroll
    for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 58
      // line 59: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&g[swizzle<3, 3, 3>(i_2 * 1024 + tid * 8)])),
            "l"(&G_next[i_2 * 1024])
          : "memory");
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 62
    alignas(16) float s[32];  // line 63
    // line 64: MatMul.set (%q, %k) -> (%s)
    // line 65: Init (0) -> (%s)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 67
      s[i_2] = 0.0f;  // line 68
    }
    {  // line 71: MatMul (%q, %k) -> (%s)
      alignas(16) __half r[128];  // line 72
      unsigned* r_u32 = reinterpret_cast<unsigned*>(r);
      asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 73
      __syncthreads();  // line 74
      // line 75: Move (%q) -> (%r)
      #pragma unroll
      for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 78
        // line 79: ldmatrix.x4.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(r_u32[i_2 * 4]), "=r"(r_u32[i_2 * 4 + 1]), "=r"(r_u32[i_2 * 4 + 2]),
              "=r"(r_u32[i_2 * 4 + 3])
            : "r"(shared_address(&q[swizzle<3, 3, 3>(i_2 % 4 * 1024 + tid % 16 * 64 + i_2 / 4 * 16 +
                              (tid / 16) % 2 * 8)]))
            : "memory");
      }
      // line 82: MatMul (%r, %k) -> (%s)
      #pragma unroll
      for (int kk = 0; kk < 4; kk += 1) {  // line 86
        #pragma unroll
        for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 87
          #pragma unroll
          for (int j_2 = 0; j_2 < 2; j_2 += 1) {  // line 88
            // line 89: mma.m16n8k16.f32.f16
            asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                : "+f"(s[j_2 * 16 + i_2 * 4]), "+f"(s[j_2 * 16 + i_2 * 4 + 1]),
                  "+f"(s[j_2 * 16 + i_2 * 4 + 2]), "+f"(s[j_2 * 16 + i_2 * 4 + 3])
                : "r"(r_u32[kk * 16 + i_2 * 4]), "r"(r_u32[kk * 16 + i_2 * 4 + 1]),
                  "r"(r_u32[kk * 16 + i_2 * 4 + 2]), "r"(r_u32[kk * 16 + i_2 * 4 + 3]),
                  "r"(k_u32[kk * 4 + j_2 * 2]), "r"(k_u32[kk * 4 + j_2 * 2 + 1]));
          }
        }
      }
    }
    float scale_r[1];  // line 98
    // line 99: Move (%scale) -> (%scale_r)
    scale_r[0] = scale;  // line 100
    // line 102: BinaryPointwise.mul (%s, %scale_r) -> (%s)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 106
      s[i_2] = s[i_2] * scale_r[0];  // line 107
    }
    float bias_r[1];  // line 110
    // line 111: Move (%bias) -> (%bias_r)
    bias_r[0] = bias;  // line 112
    // line 114: BinaryPointwise.add (%s, %bias_r) -> (%s)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 118
      s[i_2] = s[i_2] + bias_r[0];  // line 119
    }
    alignas(16) __half p[32];  // line 122
    alignas(16) float p_4[32];  // line 123
    // line 124: UnaryPointwise.neg (%s) -> (%p_4)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 127
      p_4[i_2] = -s[i_2];  // line 128
    }
    // line 131: UnaryPointwise.exp (%p_4) -> (%p_4)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 134
      // line 135: exp.approx.ftz.f32
      asm volatile(
          "mul.f32 %0, %1, 0f3FB8AA3B; ex2.approx.ftz.f32 %0, %0;\n"
          : "=f"(p_4[i_2])
          : "f"(p_4[i_2]));
    }
    // line 138: BinaryPointwise.add (%p_4, 1) -> (%p_4)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 141
      p_4[i_2] = __fadd_rn(p_4[i_2], 1.0f);  // line 142
    }
    // line 145: UnaryPointwise.rcp (%p_4) -> (%p_4)
    #pragma unroll
    for (int i_2 = 0; i_2 < 32; i_2 += 1) {  // line 148
      // line 149: rcp.approx.f32
      asm volatile(
          "rcp.approx.f32 %0, %1;\n"
          : "=f"(p_4[i_2])
          : "f"(p_4[i_2]));
    }
    // line 152: UnaryPointwise.cast (%p_4) -> (%p)
    #pragma unroll
    for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 155
      // line 156
      *reinterpret_cast<__half2*>(&p[i_2 * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&p_4[i_2 * 2]));
    }
    // line 159: MatMul (view of %p, %g) -> (%v)
    {  // line 160: MatMul (view of %p, %g) -> (%v)
      alignas(16) __half r_2[64];  // line 161
      unsigned* r_2_u32 = reinterpret_cast<unsigned*>(r_2);
      // line 162: Move (%g) -> (%r_2)
      #pragma unroll
      for (int i_2 = 0; i_2 < 8; i_2 += 1) {  // line 165
        // line 166: ldmatrix.x4.trans.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(r_2_u32[i_2 * 4]), "=r"(r_2_u32[i_2 * 4 + 1]), "=r"(r_2_u32[i_2 * 4 + 2]),
              "=r"(r_2_u32[i_2 * 4 + 3])
            : "r"(shared_address(&g[swizzle<3, 3, 3>(i_2 / 2 * 1024 + tid % 16 * 64 +
                              tid / 64 * 32 + i_2 % 2 * 16 + (tid / 16) % 2 * 8)]))
            : "memory");
      }
      __half* p_r_s = reinterpret_cast<__half*>(smem + 16384);  // line 169
      alignas(16) __half p_r_r[64];  // line 170
      unsigned* p_r_r_u32 = reinterpret_cast<unsigned*>(p_r_r);
      // line 171: Move (view of %p) -> (%p_r_s)
      #pragma unroll
      for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 174
        // line 175
        *reinterpret_cast<unsigned*>(&p_r_s[swizzle<3, 3, 3>(i_2 % 8 * 512 + (tid / 4) % 8 * 64 +
                            tid / 32 * 16 + i_2 / 8 * 8 + tid % 4 * 2)]) =
            *reinterpret_cast<unsigned*>(&p[i_2 * 2]);
      }
      __syncthreads();  // line 178
      // line 179: Move (%p_r_s) -> (%p_r_r)
      #pragma unroll
      for (int i_2 = 0; i_2 < 8; i_2 += 1) {  // line 182
        // line 183: ldmatrix.x4.trans.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(p_r_r_u32[i_2 * 4]), "=r"(p_r_r_u32[i_2 * 4 + 1]), "=r"(p_r_r_u32[i_2 * 4 + 2]),
              "=r"(p_r_r_u32[i_2 * 4 + 3])
            : "r"(shared_address(&p_r_s[swizzle<3, 3, 3>(i_2 / 2 * 1024 + (tid / 16) % 2 * 512 +
                              tid % 8 * 64 + (tid / 32) % 2 * 32 + i_2 % 2 * 16 +
                              (tid / 8) % 2 * 8)]))
            : "memory");
      }
      // line 186: MatMul (%p_r_r, %r_2) -> (%v)
      #pragma unroll
      for (int kk = 0; kk < 4; kk += 1) {  // line 190
        #pragma unroll
        for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 191
          #pragma unroll
          for (int j_2 = 0; j_2 < 4; j_2 += 1) {  // line 192
            // line 193: mma.m16n8k16.f32.f16
            asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                : "+f"(v[j_2 * 8 + i_2 * 4]), "+f"(v[j_2 * 8 + i_2 * 4 + 1]),
                  "+f"(v[j_2 * 8 + i_2 * 4 + 2]), "+f"(v[j_2 * 8 + i_2 * 4 + 3])
                : "r"(p_r_r_u32[kk * 8 + i_2 * 4]), "r"(p_r_r_u32[kk * 8 + i_2 * 4 + 1]),
                  "r"(p_r_r_u32[kk * 8 + i_2 * 4 + 2]), "r"(p_r_r_u32[kk * 8 + i_2 * 4 + 3]),
                  "r"(r_2_u32[kk * 8 + j_2 * 2]), "r"(r_2_u32[kk * 8 + j_2 * 2 + 1]));
          }
        }
      }
    }
    Q_next += 4096;
    G_next += 4096;
  }
  // line 203: Move (%v) -> (view of %V)
  #pragma unroll
  for (int i_2 = 0; i_2 < 16; i_2 += 1) {  // line 206
    // line 207
    *reinterpret_cast<uint2*>(&V[j * 4096 + (tid / 32) % 2 * 2048 + i_2 % 4 * 512 +
                    (tid / 4) % 8 * 64 + tid / 64 * 32 + i_2 / 4 * 8 + tid % 4 * 2]) =
        *reinterpret_cast<uint2*>(&v[i_2 * 2]);
  }
}
