// accumulate, line 14: Move.add (%A) -> (%C)
// sm_90a: grid 8, block 128, dynamic shared memory 0 bytes

extern "C" __global__ void __launch_bounds__(128)
accumulate(const float* __restrict__ A, float* __restrict__ C) {
  const int part = blockIdx.x;  // line 15
  const int t = threadIdx.x;  // line 16
  float v[1];  // line 18
  v[0] = A[part * 128 + t];  // line 19
  // line 20: red.global.add.f32
  asm volatile(
      "red.global.add.f32 [%0], %1;\n"
      :
      : "l"(&C[part * 128 + t]), "f"(v[0])
      : "memory");
}
