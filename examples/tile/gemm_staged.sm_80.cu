// gemm, line 15: MatMul.set (%A, %B) -> (%C)
// sm_80: grid 4, block 128, dynamic shared memory 16384 bytes

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
gemm(const __half* __restrict__ A, const __half* __restrict__ B, __half* __restrict__ C) {
  extern __shared__ __align__(2048) unsigned char smem[];
  const int tid = threadIdx.x;
  const int bm = blockIdx.x % 2;  // line 16
  const int bn = blockIdx.x / 2;  // line 16
  __half* sa = reinterpret_cast<__half*>(smem);  // line 17
  __half* sb = reinterpret_cast<__half*>(smem + 8192);  // line 18
  alignas(16) __half ra[64];  // line 19
  unsigned* ra_u32 = reinterpret_cast<unsigned*>(ra);
  alignas(16) __half rb[64];  // line 20
  unsigned* rb_u32 = reinterpret_cast<unsigned*>(rb);
  alignas(16) float rc[128];  // line 21
  alignas(16) __half half_1[128];  // line 22
  // line 23: Init (0) -> (%rc)
  #pragma unroll
  for (int i = 0; i < 128; i += 1) {  // line 25
    rc[i] = 0.0f;  // line 26
  }
  for (int k = 0; k < 4; k += 1) {  // line 29
    __syncthreads();  // line 30
    // line 31: Move (view of %A) -> (%sa)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 34
      // line 35: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&sa[swizzle<2, 3, 3>(i * 1024 + tid * 8)])),
            "l"(&A[bm * 16384 + i * 4096 + tid / 4 * 128 + k * 32 + tid % 4 * 8])
          : "memory");
    }
    // line 38: Move (view of %B) -> (%sb)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 41
      // line 42: cp.async.cg.b128
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\n"
          :
          : "r"(shared_address(&sb[swizzle<3, 3, 4>(i * 1024 + tid * 8)])),
            "l"(&B[k * 8192 + i * 2048 + tid / 16 * 256 + bn * 128 + tid % 16 * 8])
          : "memory");
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");  // line 45
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");  // line 46
    __syncthreads();  // line 47
    // line 48: Move (%sa) -> (%ra)
    #pragma unroll
    for (int i = 0; i < 8; i += 1) {  // line 51
      // line 52: ldmatrix.x4.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(ra_u32[i * 4]), "=r"(ra_u32[i * 4 + 1]), "=r"(ra_u32[i * 4 + 2]),
            "=r"(ra_u32[i * 4 + 3])
          : "r"(shared_address(&sa[swizzle<2, 3, 3>((tid / 32) % 2 * 2048 + i % 4 * 512 +
                            tid % 16 * 32 + i / 4 * 16 + (tid / 16) % 2 * 8)]))
          : "memory");
    }
    // line 55: Move (%sb) -> (%rb)
    #pragma unroll
    for (int i = 0; i < 8; i += 1) {  // line 58
      // line 59: ldmatrix.x4.trans.b16
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(rb_u32[i * 4]), "=r"(rb_u32[i * 4 + 1]), "=r"(rb_u32[i * 4 + 2]),
            "=r"(rb_u32[i * 4 + 3])
          : "r"(shared_address(&sb[swizzle<3, 3, 4>(i / 4 * 2048 + tid % 16 * 128 + tid / 64 * 64 +
                            i % 4 * 16 + (tid / 16) % 2 * 8)]))
          : "memory");
    }
    // line 62: MatMul (%ra, %rb) -> (%rc)
    #pragma unroll
    for (int kk = 0; kk < 2; kk += 1) {  // line 66
      #pragma unroll
      for (int i = 0; i < 4; i += 1) {  // line 67
        #pragma unroll
        for (int j = 0; j < 8; j += 1) {  // line 68
          // line 69: mma.m16n8k16.f32.f16
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
              "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
              : "+f"(rc[j * 16 + i * 4]), "+f"(rc[j * 16 + i * 4 + 1]),
                "+f"(rc[j * 16 + i * 4 + 2]), "+f"(rc[j * 16 + i * 4 + 3])
              : "r"(ra_u32[kk * 16 + i * 4]), "r"(ra_u32[kk * 16 + i * 4 + 1]),
                "r"(ra_u32[kk * 16 + i * 4 + 2]), "r"(ra_u32[kk * 16 + i * 4 + 3]),
                "r"(rb_u32[kk * 16 + j * 2]), "r"(rb_u32[kk * 16 + j * 2 + 1]));
        }
      }
    }
  }
  // line 77: UnaryPointwise.cast (%rc) -> (%half)
  #pragma unroll
  for (int i = 0; i < 64; i += 1) {  // line 80
    // line 81
    *reinterpret_cast<__half2*>(&half_1[i * 2]) =
        __float22half2_rn(*reinterpret_cast<float2*>(&rc[i * 2]));
  }
  // line 84: Move (%half) -> (view of %C)
  #pragma unroll
  for (int i = 0; i < 64; i += 1) {  // line 88
    // line 89
    *reinterpret_cast<unsigned*>(&C[bm * 32768 + (tid / 32) % 2 * 16384 + i % 8 * 2048 +
                    (tid / 4) % 8 * 256 + bn * 128 + tid / 64 * 64 + i / 8 * 8 + tid % 4 * 2]) =
        *reinterpret_cast<unsigned*>(&half_1[i * 2]);
  }
}
