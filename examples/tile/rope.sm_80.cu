// rope, line 18: Spec (%X, %cos, %sin) -> (%Y0, %Y1)
// sm_80: grid 4, block 128, dynamic shared memory 0 bytes

#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(128)
rope(
    const __half* __restrict__ X,
    const float* __restrict__ cos_1,
    const float* __restrict__ sin_1,
    __half* __restrict__ Y) {
  const int tid = threadIdx.x;
  const int t = blockIdx.x;  // line 28
  alignas(16) float x[32];  // line 29
  {  // line 30: UnaryPointwise.cast (view of %X) -> (%x)
    alignas(16) __half r[32];  // line 31
    // line 32: Move (view of %X) -> (%r)
    #pragma unroll
    for (int i = 0; i < 8; i += 1) {  // line 35
      // line 36
      *reinterpret_cast<uint2*>(&r[i * 4]) =
          *reinterpret_cast<const uint2*>(&X[t * 4096 + i / 4 * 2048 + tid / 8 * 128 + i % 4 * 32 +
                          tid % 8 * 4]);
    }
    // line 39: UnaryPointwise.cast (%r) -> (%x)
    #pragma unroll
    for (int i = 0; i < 16; i += 1) {  // line 42
      // line 43
      *reinterpret_cast<float2*>(&x[i * 2]) =
          __half22float2(*reinterpret_cast<__half2*>(&r[i * 2]));
    }
  }
  alignas(16) float c[16];  // line 49
  // line 50: Move (view of %cos) -> (%c)
  #pragma unroll
  for (int i = 0; i < 4; i += 1) {  // line 53
    // line 54
    *reinterpret_cast<uint4*>(&c[i * 4]) =
        *reinterpret_cast<const uint4*>(&cos_1[t * 2048 + i / 2 * 1024 + tid / 8 * 64 + i % 2 * 32 +
                        tid % 8 * 4]);
  }
  alignas(16) float s[16];  // line 57
  // line 58: Move (view of %sin) -> (%s)
  #pragma unroll
  for (int i = 0; i < 4; i += 1) {  // line 61
    // line 62
    *reinterpret_cast<uint4*>(&s[i * 4]) =
        *reinterpret_cast<const uint4*>(&sin_1[t * 2048 + i / 2 * 1024 + tid / 8 * 64 + i % 2 * 32 +
                        tid % 8 * 4]);
  }
  alignas(16) float Y0_3[16];  // line 65
  // line 66: BinaryPointwise.mul (%x0, %c) -> (%Y0_3)
  #pragma unroll
  for (int i = 0; i < 16; i += 1) {  // line 70
    Y0_3[i] = x[i / 8 * 16 + i % 8] * c[i];  // line 71
  }
  alignas(16) float Y0_4[16];  // line 74
  // line 75: BinaryPointwise.mul (%x1, %s) -> (%Y0_4)
  #pragma unroll
  for (int i = 0; i < 16; i += 1) {  // line 79
    Y0_4[i] = x[i / 8 * 16 + i % 8 + 8] * s[i];  // line 80
  }
  // line 83: BinaryPointwise.sub (%Y0_3, %Y0_4) -> (%Y0_3)
  #pragma unroll
  for (int i = 0; i < 16; i += 1) {  // line 87
    Y0_3[i] = Y0_3[i] - Y0_4[i];  // line 88
  }
  {  // line 91: UnaryPointwise.cast (%Y0_3) -> (view of %Y)
    alignas(16) __half r_2[16];  // line 92
    // line 93: UnaryPointwise.cast (%Y0_3) -> (%r_2)
    #pragma unroll
    for (int i = 0; i < 8; i += 1) {  // line 96
      // line 97
      *reinterpret_cast<__half2*>(&r_2[i * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&Y0_3[i * 2]));
    }
    // line 100: Move (%r_2) -> (view of %Y)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 103
      // line 104
      *reinterpret_cast<uint2*>(&Y[t * 4096 + i / 2 * 2048 + tid / 8 * 128 + i % 2 * 32 +
                      tid % 8 * 4]) = *reinterpret_cast<uint2*>(&r_2[i * 4]);
    }
  }
  alignas(16) float Y1_3[16];  // line 108
  // line 109: BinaryPointwise.mul (%x1, %c) -> (%Y1_3)
  #pragma unroll
  for (int i = 0; i < 16; i += 1) {  // line 113
    Y1_3[i] = x[i / 8 * 16 + i % 8 + 8] * c[i];  // line 114
  }
  alignas(16) float Y1_4[16];  // line 117
  // line 118: BinaryPointwise.mul (%x0, %s) -> (%Y1_4)
  #pragma unroll
  for (int i = 0; i < 16; i += 1) {  // line 122
    Y1_4[i] = x[i / 8 * 16 + i % 8] * s[i];  // line 123
  }
  // line 126: BinaryPointwise.add (%Y1_3, %Y1_4) -> (%Y1_3)
  #pragma unroll
  for (int i = 0; i < 16; i += 1) {  // line 130
    Y1_3[i] = Y1_3[i] + Y1_4[i];  // line 131
  }
  {  // line 134: UnaryPointwise.cast (%Y1_3) -> (view of %Y)
    alignas(16) __half r_3[16];  // line 135
    // line 136: UnaryPointwise.cast (%Y1_3) -> (%r_3)
    #pragma unroll
    for (int i = 0; i < 8; i += 1) {  // line 139
      // line 140
      *reinterpret_cast<__half2*>(&r_3[i * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&Y1_3[i * 2]));
    }
    // line 143: Move (%r_3) -> (view of %Y)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 146
      // line 147
      *reinterpret_cast<uint2*>(&Y[t * 4096 + i / 2 * 2048 + tid / 8 * 128 + i % 2 * 32 +
                      tid % 8 * 4 + 64]) = *reinterpret_cast<uint2*>(&r_3[i * 4]);
    }
  }
}
