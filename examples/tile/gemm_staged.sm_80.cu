// gemm, line 15: MatMul.set (%A, %B) -> (%C)
// sm_80: grid 4, block 128, dynamic shared memory 49152 bytes

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
gemm(const __half* __restrict__ A, const __half* __restrict__ B, __half* __restrict__ C) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tid = threadIdx.x;
  const int bm = blockIdx.x % 2;  // line 16
  const int bn = blockIdx.x / 2;  // line 16
  alignas(16) float c[128];  // line 17
  // line 18: Init (0) -> (%c)
  #pragma unroll
  for (int i = 0; i < 128; i += 1) {  // line 20
    c[i] = 0.0f;  // line 21
  }
  __half* a = reinterpret_cast<__half*>(smem);  // line 24
  __half* b = reinterpret_cast<__half*>(smem + 24576);  // line 25
  #pragma unroll
  for (int s = 0; s < 2; s += 1) {  // line 26
    // line 27: Move (view of %A) -> (view of %a)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 30
      // line 31: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&a[swizzle<2, 3, 3>(s * 4096 + i * 1024 + tid * 8)])),
            "l"(&A[bm * 16384 + i * 4096 + tid / 4 * 128 + s * 32 + tid % 4 * 8])
          : "memory");
    }
    // line 34: Move (view of %B) -> (view of %b)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 37
      // line 38: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&b[swizzle<3, 3, 4>(s * 4096 + i / 2 * 2048 + tid / 8 * 128 +
                            i % 2 * 64 + tid % 8 * 8)])),
            "l"(&B[s * 8192 + i / 2 * 4096 + tid / 8 * 256 + bn * 128 + i % 2 * 64 + tid % 8 * 8])
          : "memory");
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 41
  }
  int stage = 0;
  int stage_1 = 2;
  const __half* A_next = &A[bm * 16384 + tid / 4 * 128 + tid % 4 * 8 + 64];
  const __half* B_next = &B[tid / 8 * 256 + bn * 128 + tid % 8 * 8 + 16384];
  for (int k = 0; k < 4; k += 1) {  // line 43
    {  // line 44: MatMul (view of %a, view of %b) -> (%c)
      alignas(16) __half r[64];  // line 45
      unsigned* r_u32 = reinterpret_cast<unsigned*>(r);
      asm volatile("cp.async.wait_group 1;\n" ::: "memory");  // line 46
      __syncthreads();  // line 47
      // line 48: Move (view of %a) -> (%r)
      #pragma unroll
      for (int i = 0; i < 8; i += 1) {  // line 51
        // line 52: ldmatrix.x4.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(r_u32[i * 4]), "=r"(r_u32[i * 4 + 1]), "=r"(r_u32[i * 4 + 2]),
              "=r"(r_u32[i * 4 + 3])
            : "r"(shared_address(&a[stage * 4096 + (tid / 32) % 2 * 2048 + i % 4 * 512 +
                          swizzle<2, 3, 3>(tid % 16 * 32 + i / 4 * 16 + (tid / 16) % 2 * 8)]))
            : "memory");
      }
      alignas(16) __half r_2[64];  // line 55
      unsigned* r_2_u32 = reinterpret_cast<unsigned*>(r_2);
      // line 56: Move (view of %b) -> (%r_2)
      #pragma unroll
      for (int i = 0; i < 8; i += 1) {  // line 59
        // line 60: ldmatrix.x4.trans.b16
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
            : "=r"(r_2_u32[i * 4]), "=r"(r_2_u32[i * 4 + 1]), "=r"(r_2_u32[i * 4 + 2]),
              "=r"(r_2_u32[i * 4 + 3])
            : "r"(shared_address(&b[stage * 4096 + i / 4 * 2048 + swizzle<3, 3, 4>(tid % 16 * 128 +
                              tid / 64 * 64 + i % 4 * 16 + (tid / 16) % 2 * 8)]))
            : "memory");
      }
      // line 63: MatMul (%r, %r_2) -> (%c)
      #pragma unroll
      for (int kk = 0; kk < 2; kk += 1) {  // line 67
        #pragma unroll
        for (int i = 0; i < 4; i += 1) {  // line 68
          #pragma unroll
          for (int j = 0; j < 8; j += 1) {  // line 69
            // line 70: mma.m16n8k16.f32.f16
            asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                : "+f"(c[j * 16 + i * 4]), "+f"(c[j * 16 + i * 4 + 1]), "+f"(c[j * 16 + i * 4 + 2]),
                  "+f"(c[j * 16 + i * 4 + 3])
                : "r"(r_u32[kk * 16 + i * 4]), "r"(r_u32[kk * 16 + i * 4 + 1]),
                  "r"(r_u32[kk * 16 + i * 4 + 2]), "r"(r_u32[kk * 16 + i * 4 + 3]),
                  "r"(r_2_u32[kk * 16 + j * 2]), "r"(r_2_u32[kk * 16 + j * 2 + 1]));
          }
        }
      }
    }
    if (k + 2 < 4) {  // line 78
      // line 79: Move (view of %A) -> (view of %a)
      #pragma unroll
      for (int i = 0; i < 4; i += 1) {  // line 82
        // line 83: cp.async.cg.b128
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n"
            :
            : "r"(shared_address(&a[stage_1 * 4096 + i * 1024 + swizzle<2, 3, 3>(tid * 8)])),
              "l"(&A_next[i * 4096])
            : "memory");
      }
      // line 86: Move (view of %B) -> (view of %b)
      #pragma unroll
      for (int i = 0; i < 4; i += 1) {  // line 90
        // line 91: cp.async.cg.b128
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16;\n"
            :
            : "r"(shared_address(&b[stage_1 * 4096 + i / 2 * 2048 + swizzle<3, 3, 4>(tid / 8 * 128 +
                              i % 2 * 64 + tid % 8 * 8)])), "l"(&B_next[i / 2 * 4096 + i % 2 * 64])
            : "memory");
      }
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 95
    stage += 1;
    if (stage == 3) {
      stage = 0;
    }
    stage_1 += 1;
    if (stage_1 == 3) {
      stage_1 = 0;
    }
    A_next += 32;
    B_next += 8192;
  }
  {  // line 97: UnaryPointwise.cast (%c) -> (view of %C)
    alignas(16) __half r_3[128];  // line 98
    // line 99: UnaryPointwise.cast (%c) -> (%r_3)
    #pragma unroll
    for (int i = 0; i < 64; i += 1) {  // line 102
      // line 103
      *reinterpret_cast<__half2*>(&r_3[i * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&c[i * 2]));
    }
    // line 106: Move (%r_3) -> (view of %C)
    #pragma unroll
    for (int i = 0; i < 64; i += 1) {  // line 110
      // line 111
      *reinterpret_cast<unsigned*>(&C[bm * 32768 + (tid / 32) % 2 * 16384 + i % 8 * 2048 +
                      (tid / 4) % 8 * 256 + bn * 128 + tid / 64 * 64 + i / 8 * 8 + tid % 4 * 2]) =
          *reinterpret_cast<unsigned*>(&r_3[i * 2]);
    }
  }
}
