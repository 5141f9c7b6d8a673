// figures, line 16: Move (%A) -> (%d3)
// sm_80: grid 1, block 32, dynamic shared memory 256 bytes

extern "C" __global__ void __launch_bounds__(32)
figures(const float* __restrict__ A, float* __restrict__ d3) {
  extern __shared__ __align__(1024) unsigned char smem[];
  float* b3 = reinterpret_cast<float*>(smem);  // line 18
  float* c3 = reinterpret_cast<float*>(smem + 128);  // line 20
  const int p = threadIdx.x % 2;  // line 31
  const int q = (threadIdx.x / 2) % 2;  // line 31
  const int i = (threadIdx.x / 4) % 2;  // line 31
  const int j = threadIdx.x / 8;  // line 31
  {  // line 35: Move (%A) -> (%b3)
    float x[1];  // line 37
    x[0] = A[q * 16 + j * 4 + p * 2 + i];  // line 38
    b3[p * 16 + i * 8 + q * 4 + j] = x[0];  // line 39
  }
  __syncthreads();  // line 41
  {  // line 44: Move (%b3) -> (%c3)
    float x[1];  // line 47
    x[0] = b3[i * 16 + p * 8 + q * 4 + j];  // line 48
    c3[q * 16 + j / 2 * 8 + i * 4 + p * 2 + j % 2] = x[0];  // line 49
  }
  __syncthreads();  // line 51
  {  // line 54: Move (%c3) -> (%d3)
    float x[1];  // line 57
    x[0] = c3[j / 2 * 16 + q * 8 + i * 4 + p * 2 + j % 2];  // line 58
    d3[i * 16 + j / 2 * 8 + q * 4 + p * 2 + j % 2] = x[0];  // line 59
  }
}
