// volta_quad_pairs, line 18: MatMul.set (%A, %B) -> (%C)
// sm_70: grid 4, block 32, dynamic shared memory 0 bytes

#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(32)
volta_quad_pairs(
    const __half* __restrict__ A,
    const __half* __restrict__ B,
    float* __restrict__ C) {
  const int tid = threadIdx.x;
  const int bm = blockIdx.x % 2;  // line 19
  const int bn = blockIdx.x / 2;  // line 19
  const int qm = (threadIdx.x / 4) % 2;  // line 24
  const int qn = (threadIdx.x / 8) % 2;  // line 24
  const int t = threadIdx.x / 16 * 4 + threadIdx.x % 4;  // line 27
  alignas(8) __half a[4];  // line 35
  unsigned* a_u32 = reinterpret_cast<unsigned*>(a);
  alignas(8) __half b[4];  // line 36
  unsigned* b_u32 = reinterpret_cast<unsigned*>(b);
  alignas(16) float c[8];  // line 37
  // line 39: Init (0) -> (%c)
  #pragma unroll
  for (int i = 0; i < 8; i += 1) {  // line 40
    c[i] = 0.0f;  // line 41
  }
  for (int k = 0; k < 8; k += 1) {  // line 44
    // line 45: Move (view of %A) -> (%a)
    // line 47
    *reinterpret_cast<uint2*>(a) =
        *reinterpret_cast<const uint2*>(&A[bm * 512 + qm * 256 + t * 32 + k * 4]);
    // line 49: Move (view of %B) -> (%b)
    // line 51
    *reinterpret_cast<uint2*>(b) =
        *reinterpret_cast<const uint2*>(&B[k * 128 + t % 4 * 32 + bn * 16 + qn * 8 + t / 4 * 4]);
    // line 53: MatMul (%a, %b) -> (%c)
    // line 54: mma.m8n8k4.row.row.f32.f16
    asm volatile(
        "mma.sync.aligned.m8n8k4.row.row.f32.f16.f16.f32 "
        "{%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9}, {%10, %11}, {%0, %1, %2, %3, %4, %5, %6, %7};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),
          "+f"(c[7])
        : "r"(a_u32[0]), "r"(a_u32[1]), "r"(b_u32[0]), "r"(b_u32[1]));
  }
  // line 59: Move (%c) -> (%Cb)
  #pragma unroll
  for (int i = 0; i < 4; i += 1) {  // line 61
    // line 62
    *reinterpret_cast<uint2*>(&C[bm * 512 + (tid / 4) % 2 * 256 + tid / 16 * 128 + i % 2 * 64 +
                    tid % 2 * 32 + bn * 16 + (tid / 8) % 2 * 8 + i / 2 * 4 + (tid / 2) % 2 * 2]) =
        *reinterpret_cast<uint2*>(&c[i * 2]);
  }
}
