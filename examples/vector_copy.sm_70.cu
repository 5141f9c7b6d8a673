// vector_copy, line 14: Move (%in) -> (%out)
// sm_70: grid 16, block 128, dynamic shared memory 2048 bytes

extern "C" __global__ void __launch_bounds__(128)
vector_copy(const float* __restrict__ in, float* __restrict__ out) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int b = blockIdx.x;  // line 15
  const int t = threadIdx.x;  // line 16
  float* stage = reinterpret_cast<float*>(smem);  // line 20
  alignas(16) float x[4];  // line 21
  alignas(16) float y[4];  // line 22
  *reinterpret_cast<uint4*>(x) = *reinterpret_cast<const uint4*>(&in[b * 512 + t * 4]);  // line 24
  *reinterpret_cast<uint4*>(&stage[t * 4]) = *reinterpret_cast<uint4*>(x);  // line 25
  __syncthreads();  // line 26
  *reinterpret_cast<uint4*>(y) = *reinterpret_cast<uint4*>(&stage[(t + 64) % 128 * 4]);  // line 28
  // line 29
  *reinterpret_cast<uint4*>(&out[b * 512 + (t + 64) % 128 * 4]) = *reinterpret_cast<uint4*>(y);
}
