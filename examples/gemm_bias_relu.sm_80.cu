// gemm_bias_relu, line 16: Spec (%A, %B, %b) -> (%C)
// sm_80: grid 4, block 128, dynamic shared memory 16384 bytes

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
gemm_bias_relu(
    const __half* __restrict__ A,
    const __half* __restrict__ B,
    const float* __restrict__ b,
    __half* __restrict__ C) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  const int i = blockIdx.x % 2;  // line 21
  const int j = blockIdx.x / 2;  // line 21
  alignas(16) float c[128];  // line 22
  // line 23: Init (0) -> (%c)
  #pragma unroll
  for (int i_2 = 0; i_2 < 128; i_2 += 1) {  // line 25
    c[i_2] = 0.0f;  // line 26
  }
  const __half* A_next = &A[i * 16384 + tid / 4 * 128 + tid % 4 * 8];
  const __half* B_next = &B[tid / 16 * 256 + j * 128 + tid % 16 * 8];
  for (int k = 0; k < 4; k += 1) {  // line 29
    __half* sa = reinterpret_cast<__half*>(smem);  // line 30
    __syncthreads();  // line 31
    // line 32: Move (view of %A) -> (%sa)
    #pragma unroll
    for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 35
      // line 36: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&sa[swizzle<2, 3, 3>(i_2 * 1024 + tid * 8)])),
            "l"(&A_next[i_2 * 4096])
          : "memory");
    }
    __half* sb = reinterpret_cast<__half*>(smem + 8192);  // line 39
    // line 40: Move (view of %B) -> (%sb)
    #pragma unroll
    for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 43
      // line 44: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&sb[swizzle<3, 3, 4>(i_2 * 1024 + tid * 8)])),
            "l"(&B_next[i_2 * 2048])
          : "memory");
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 47
    {  // line 48: MatMul (%sa, %sb) -> (%c)
      alignas(16) __half r[64];  // line 49
      unsigned* r_u32 = reinterpret_cast<unsigned*>(r);
      asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 50
      __syncthreads();  // line 51
      // line 52: Move (%sa) -> (%r)
      #pragma unroll
      for (int i_2 = 0; i_2 < 8; i_2 += 1) {  // line 55
        // line 56: ldmatrix.x4.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(r_u32[i_2 * 4]), "=r"(r_u32[i_2 * 4 + 1]), "=r"(r_u32[i_2 * 4 + 2]),
              "=r"(r_u32[i_2 * 4 + 3])
            : "r"(shared_address(&sa[swizzle<2, 3, 3>((tid / 32) % 2 * 2048 + i_2 % 4 * 512 +
                              tid % 16 * 32 + i_2 / 4 * 16 + (tid / 16) % 2 * 8)]))
            : "memory");
      }
      alignas(16) __half r_2[64];  // line 59
      unsigned* r_2_u32 = reinterpret_cast<unsigned*>(r_2);
      // line 60: Move (%sb) -> (%r_2)
      #pragma unroll
      for (int i_2 = 0; i_2 < 8; i_2 += 1) {  // line 63
        // line 64: ldmatrix.x4.trans.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(r_2_u32[i_2 * 4]), "=r"(r_2_u32[i_2 * 4 + 1]), "=r"(r_2_u32[i_2 * 4 + 2]),
              "=r"(r_2_u32[i_2 * 4 + 3])
            : "r"(shared_address(&sb[swizzle<3, 3, 4>(i_2 / 4 * 2048 + tid % 16 * 128 +
                              tid / 64 * 64 + i_2 % 4 * 16 + (tid / 16) % 2 * 8)]))
            : "memory");
      }
      // line 67: MatMul (%r, %r_2) -> (%c)
      #pragma unroll
      for (int kk = 0; kk < 2; kk += 1) {  // line 71
        #pragma unroll
        for (int i_2 = 0; i_2 < 4; i_2 += 1) {  // line 72
          #pragma unroll
          for (int j_2 = 0; j_2 < 8; j_2 += 1) {  // line 73
            // line 74: mma.m16n8k16.f32.f16
            asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                : "+f"(c[j_2 * 16 + i_2 * 4]), "+f"(c[j_2 * 16 + i_2 * 4 + 1]),
                  "+f"(c[j_2 * 16 + i_2 * 4 + 2]), "+f"(c[j_2 * 16 + i_2 * 4 + 3])
                : "r"(r_u32[kk * 16 + i_2 * 4]), "r"(r_u32[kk * 16 + i_2 * 4 + 1]),
                  "r"(r_u32[kk * 16 + i_2 * 4 + 2]), "r"(r_u32[kk * 16 + i_2 * 4 + 3]),
                  "r"(r_2_u32[kk * 16 + j_2 * 2]), "r"(r_2_u32[kk * 16 + j_2 * 2 + 1]));
          }
        }
      }
    }
    A_next += 32;
    B_next += 8192;
  }
  alignas(16) float y[128];  // line 83
  {  // line 84: BinaryPointwise.add (%c, view of %b) -> (%y)
    alignas(16) float r_3[16];  // line 85
    // line 86: Move (view of %b) -> (%r_3)
    #pragma unroll
    for (int i_2 = 0; i_2 < 8; i_2 += 1) {  // line 89
      // line 90
      *reinterpret_cast<uint2*>(&r_3[i_2 * 2]) =
          *reinterpret_cast<const uint2*>(&b[j * 128 + tid / 64 * 64 + i_2 * 8 + tid % 4 * 2]);
    }
    // line 93: BinaryPointwise.add (%c, %r_3) -> (%y)
    #pragma unroll
    for (int i_2 = 0; i_2 < 2; i_2 += 1) {  // line 97
      #pragma unroll
      for (int j_2 = 0; j_2 < 8; j_2 += 1) {  // line 98
        #pragma unroll
        for (int kk = 0; kk < 8; kk += 1) {  // line 99
          // line 100
          y[kk * 16 + j_2 * 2 + i_2] = __fadd_rn(c[kk * 16 + j_2 * 2 + i_2], r_3[kk * 2 + i_2]);
        }
      }
    }
  }
  // line 108: UnaryPointwise.relu (%y) -> (%y)
  #pragma unroll
  for (int i_2 = 0; i_2 < 128; i_2 += 1) {  // line 111
    y[i_2] = fmaxf(y[i_2], 0.0f);  // line 112
  }
  {  // line 115: UnaryPointwise.cast (%y) -> (view of %C)
    alignas(16) __half r_4[128];  // line 116
    // line 117: UnaryPointwise.cast (%y) -> (%r_4)
    #pragma unroll
    for (int i_2 = 0; i_2 < 64; i_2 += 1) {  // line 120
      // line 121
      *reinterpret_cast<__half2*>(&r_4[i_2 * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&y[i_2 * 2]));
    }
    // line 124: Move (%r_4) -> (view of %C)
    #pragma unroll
    for (int i_2 = 0; i_2 < 64; i_2 += 1) {  // line 128
      // line 129
      *reinterpret_cast<unsigned*>(&C[i * 32768 + (tid / 32) % 2 * 16384 + i_2 % 8 * 2048 +
                      (tid / 4) % 8 * 256 + j * 128 + tid / 64 * 64 + i_2 / 8 * 8 + tid % 4 * 2]) =
          *reinterpret_cast<unsigned*>(&r_4[i_2 * 2]);
    }
  }
}
