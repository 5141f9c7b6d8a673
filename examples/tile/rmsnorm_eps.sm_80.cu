// rmsnorm, line 15: Spec (%X, %W, %eps) -> (%Y)
// sm_80: grid 8, block 128, dynamic shared memory 0 bytes

#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(128)
rmsnorm(
    const __half* __restrict__ X,
    const __half* __restrict__ W,
    const float eps,
    __half* __restrict__ Y) {
  const int tid = threadIdx.x;
  const int m = blockIdx.x;  // line 24
  alignas(16) float x[32];  // line 25
  {  // line 26: UnaryPointwise.cast (view of %X) -> (%x)
    alignas(16) __half r[32];  // line 27
    // line 28: Move (view of %X) -> (%r)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 31
      // line 32
      *reinterpret_cast<uint4*>(&r[i * 8]) =
          *reinterpret_cast<const uint4*>(&X[m * 4096 + i / 2 * 2048 + tid / 32 * 512 +
                          i % 2 * 256 + tid % 32 * 8]);
    }
    // line 35: UnaryPointwise.cast (%r) -> (%x)
    #pragma unroll
    for (int i = 0; i < 16; i += 1) {  // line 38
      // line 39
      *reinterpret_cast<float2*>(&x[i * 2]) =
          __half22float2(*reinterpret_cast<__half2*>(&r[i * 2]));
    }
  }
  alignas(8) float scale[2];  // line 43
  alignas(16) float scale_1[32];  // line 44
  // line 45: BinaryPointwise.mul (%x, %x) -> (%scale_1)
  #pragma unroll
  for (int i = 0; i < 32; i += 1) {  // line 49
    scale_1[i] = __fmul_rn(x[i], x[i]);  // line 50
  }
  {  // line 53: Reduction.sum (%scale_1) -> (%scale)
    float o[1];  // line 56
    #pragma unroll
    for (int i = 0; i < 2; i += 1) {  // line 57
      scale[i] = scale_1[i * 16];  // line 58
      #pragma unroll
      for (int j = 1; j < 16; j += 1) {  // line 59
        scale[i] = __fadd_rn(scale[i], scale_1[i * 16 + j]);  // line 60
      }
      // line 62
      *reinterpret_cast<unsigned*>(o) =
          __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&scale[i]), 1);
      scale[i] = __fadd_rn(scale[i], o[0]);  // line 63
      // line 64
      *reinterpret_cast<unsigned*>(o) =
          __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&scale[i]), 2);
      scale[i] = __fadd_rn(scale[i], o[0]);  // line 65
      // line 66
      *reinterpret_cast<unsigned*>(o) =
          __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&scale[i]), 4);
      scale[i] = __fadd_rn(scale[i], o[0]);  // line 67
      // line 68
      *reinterpret_cast<unsigned*>(o) =
          __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&scale[i]), 8);
      scale[i] = __fadd_rn(scale[i], o[0]);  // line 69
      // line 70
      *reinterpret_cast<unsigned*>(o) =
          __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&scale[i]), 16);
      scale[i] = __fadd_rn(scale[i], o[0]);  // line 71
    }
  }
  // line 74: BinaryPointwise.mul (%scale, 0.001953125) -> (%scale)
  #pragma unroll
  for (int i = 0; i < 2; i += 1) {  // line 77
    scale[i] = scale[i] * 0.001953125f;  // line 78
  }
  float eps_r[1];  // line 81
  // line 82: Move (%eps) -> (%eps_r)
  eps_r[0] = eps;  // line 83
  // line 85: BinaryPointwise.add (%scale, %eps_r) -> (%scale)
  #pragma unroll
  for (int i = 0; i < 2; i += 1) {  // line 89
    scale[i] = scale[i] + eps_r[0];  // line 90
  }
  // line 93: UnaryPointwise.rsqrt (%scale) -> (%scale)
  #pragma unroll
  for (int i = 0; i < 2; i += 1) {  // line 96
    // line 97: rsqrt.approx.f32
    asm volatile(
        "rsqrt.approx.f32 %0, %1;\n"
        : "=f"(scale[i])
        : "f"(scale[i]));
  }
  alignas(16) float Y_5[32];  // line 100
  // line 101: BinaryPointwise.mul (%x, %scale) -> (%Y_5)
  #pragma unroll
  for (int i = 0; i < 16; i += 1) {  // line 105
    #pragma unroll
    for (int j = 0; j < 2; j += 1) {  // line 106
      Y_5[j * 16 + i] = __fmul_rn(x[j * 16 + i], scale[j]);  // line 107
    }
  }
  alignas(16) float Y_6[16];  // line 111
  {  // line 112: UnaryPointwise.cast (%W) -> (%Y_6)
    alignas(16) __half r_2[16];  // line 113
    // line 114: Move (%W) -> (%r_2)
    #pragma unroll
    for (int i = 0; i < 2; i += 1) {  // line 117
      // line 118
      *reinterpret_cast<uint4*>(&r_2[i * 8]) =
          *reinterpret_cast<const uint4*>(&W[i * 256 + tid % 32 * 8]);
    }
    // line 121: UnaryPointwise.cast (%r_2) -> (%Y_6)
    #pragma unroll
    for (int i = 0; i < 8; i += 1) {  // line 124
      // line 125
      *reinterpret_cast<float2*>(&Y_6[i * 2]) =
          __half22float2(*reinterpret_cast<__half2*>(&r_2[i * 2]));
    }
  }
  // line 129: BinaryPointwise.mul (%Y_5, %Y_6) -> (%Y_5)
  #pragma unroll
  for (int i = 0; i < 16; i += 1) {  // line 133
    #pragma unroll
    for (int j = 0; j < 2; j += 1) {  // line 134
      Y_5[j * 16 + i] = __fmul_rn(Y_5[j * 16 + i], Y_6[i]);  // line 135
    }
  }
  {  // line 139: UnaryPointwise.cast (%Y_5) -> (view of %Y)
    alignas(16) __half r_3[32];  // line 140
    // line 141: UnaryPointwise.cast (%Y_5) -> (%r_3)
    #pragma unroll
    for (int i = 0; i < 16; i += 1) {  // line 144
      // line 145
      *reinterpret_cast<__half2*>(&r_3[i * 2]) =
          __float22half2_rn(*reinterpret_cast<float2*>(&Y_5[i * 2]));
    }
    // line 148: Move (%r_3) -> (view of %Y)
    #pragma unroll
    for (int i = 0; i < 4; i += 1) {  // line 151
      // line 152
      *reinterpret_cast<uint4*>(&Y[m * 4096 + i / 2 * 2048 + tid / 32 * 512 + i % 2 * 256 +
                      tid % 32 * 8]) = *reinterpret_cast<uint4*>(&r_3[i * 8]);
    }
  }
}
