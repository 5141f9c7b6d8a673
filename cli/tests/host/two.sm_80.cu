#ifndef __CUDACC_RTC__
#include <algorithm>
#include <cuda_runtime.h>
#endif

// powers, line 12: UnaryPointwise.exp (%X) -> (%H)
// sm_80: grid (M + 1)/2, block 64, dynamic shared memory 0 bytes

extern "C" __global__ void __launch_bounds__(64)
powers(const float* __restrict__ X, float* __restrict__ H, const int M, const int N) {
  const int tid = threadIdx.x;
  const int i = blockIdx.x % max((M + 1) / 2, 1);  // line 13
  alignas(16) float x[32];  // line 14
  alignas(16) float t[32];  // line 22
  // line 15: Move (view of %X) -> (%x)
  if (i * 2 < M && threadIdx.x * 4 < N) {
    // line 19
    *reinterpret_cast<uint4*>(&x[0]) =
        *reinterpret_cast<const uint4*>(&X[N * i * 2 + N * 0 + tid * 4]);
  } else {
    x[0] = 0.0f;
    x[1] = 0.0f;
    x[2] = 0.0f;
    x[3] = 0.0f;
  }
  #pragma unroll
  for (int part = 0; part < 8; part += 1) {
    if (part + 1 < 8) {
      if (i * 2 + (part + 1) / 4 < M && (part + 1) % 4 * 256 + threadIdx.x * 4 < N) {
        // line 19
        *reinterpret_cast<uint4*>(&x[(part + 1) * 4]) =
            *reinterpret_cast<const uint4*>(&X[N * i * 2 + N * ((part + 1) / 4) + (part +
                            1) % 4 * 256 + tid * 4]);
      } else {
        x[(part + 1) * 4] = 0.0f;
        x[(part + 1) * 4 + 1] = 0.0f;
        x[(part + 1) * 4 + 2] = 0.0f;
        x[(part + 1) * 4 + 3] = 0.0f;
      }
    }
    // line 23: UnaryPointwise.exp (%x) -> (%t)
    #pragma unroll
    for (int i_1 = part * 4; i_1 < part * 4 + 4; i_1 += 1) {  // line 26
      t[i_1] = expf(x[i_1]);  // line 27
    }
    // line 30: Move (%t) -> (view of %H)
    if (i * 2 + part / 4 < M && part % 4 * 256 + threadIdx.x * 4 < N) {
      // line 34
      *reinterpret_cast<uint4*>(&H[N * i * 2 + N * (part / 4) + part % 4 * 256 + tid * 4]) =
          *reinterpret_cast<uint4*>(&t[part * 4]);
    }
  }
}

// rows, line 41: Reduction.sum (%H) -> (%Y)
// sm_80: grid (M + 1)/2, block 32, dynamic shared memory 0 bytes

extern "C" __global__ void __launch_bounds__(32)
rows(const float* __restrict__ H, float* __restrict__ Y, const int M, const int N) {
  const int tid = threadIdx.x;
  const int i_2 = blockIdx.x % max((M + 1) / 2, 1);  // line 42
  alignas(16) float x_2[64];  // line 43
  // line 44: Move (view of %H) -> (%x_2)
  #pragma unroll
  for (int i = 0; i < 16; i += 1) {  // line 47
    if (i_2 * 2 + i / 8 < M && i % 8 * 128 + threadIdx.x * 4 < N) {
      // line 48
      *reinterpret_cast<uint4*>(&x_2[i * 4]) =
          *reinterpret_cast<const uint4*>(&H[N * i_2 * 2 + N * (i / 8) + i % 8 * 128 + tid * 4]);
    } else {
      x_2[i * 4] = 0.0f;
      x_2[i * 4 + 1] = 0.0f;
      x_2[i * 4 + 2] = 0.0f;
      x_2[i * 4 + 3] = 0.0f;
    }
  }
  alignas(8) float t_2[2];  // line 51
  {  // line 52: Reduction.sum (%x_2) -> (%t_2)
    float o[1];  // line 55
    #pragma unroll
    for (int i = 0; i < 2; i += 1) {  // line 56
      t_2[i] = x_2[i * 32];  // line 57
      #pragma unroll
      for (int j = 1; j < 32; j += 1) {  // line 58
        t_2[i] = __fadd_rn(t_2[i], x_2[i * 32 + j]);  // line 59
      }
      // line 61
      *reinterpret_cast<unsigned*>(o) =
          __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&t_2[i]), 1);
      t_2[i] = __fadd_rn(t_2[i], o[0]);  // line 62
      // line 63
      *reinterpret_cast<unsigned*>(o) =
          __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&t_2[i]), 2);
      t_2[i] = __fadd_rn(t_2[i], o[0]);  // line 64
      // line 65
      *reinterpret_cast<unsigned*>(o) =
          __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&t_2[i]), 4);
      t_2[i] = __fadd_rn(t_2[i], o[0]);  // line 66
      // line 67
      *reinterpret_cast<unsigned*>(o) =
          __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&t_2[i]), 8);
      t_2[i] = __fadd_rn(t_2[i], o[0]);  // line 68
      // line 69
      *reinterpret_cast<unsigned*>(o) =
          __shfl_xor_sync(0xffffffffu, *reinterpret_cast<unsigned*>(&t_2[i]), 16);
      t_2[i] = __fadd_rn(t_2[i], o[0]);  // line 70
    }
  }
  // line 73: Move (%t_2) -> (view of %Y)
  if (threadIdx.x == 0) {
    if (i_2 * 2 + 1 < M) {
      *reinterpret_cast<uint2*>(&Y[i_2 * 2]) = *reinterpret_cast<uint2*>(t_2);  // line 77
    } else {
      if (i_2 * 2 < M) {
        Y[i_2 * 2] = t_2[0];
      }
      if (i_2 * 2 + 1 < M) {
        Y[i_2 * 2 + 1] = t_2[1];
      }
    }
  }
}

#ifndef __CUDACC_RTC__

// Launches a kernel with blocks and threads along x, and with `shared` bytes of dynamic shared
// memory. Without blocks, there is no launch. A kernel with clusters declares their size itself.
template <typename... Params, typename... Args>
static cudaError_t launch_kernel(
    void (*kernel)(Params...), long long blocks, int threads, int shared, cudaStream_t stream,
    const Args&... args) {
  if (blocks == 0) return cudaSuccess;
  if (blocks < 0 || blocks > 2147483647) return cudaErrorInvalidConfiguration;
  if (shared > 48 * 1024) {
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (error != cudaSuccess) return error;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<size_t>(shared);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...);
}

// Whether the kernels do not support these sizes.
static bool bad_sizes(long long M, long long N) {
  if (M < 0 || M > 65536) {
    return true;
  }
  if (N < 8 || N > 1024 || N % 8 != 0) {
    return true;
  }
  if (M + N > 65600) {  // M + N <= 65600
    return true;
  }
  return false;
}

// The bytes of the workspace that two_launch needs.
// The result is -1 for unsupported sizes.
extern "C" long long two_workspace_bytes(long long M, long long N) {
  if (bad_sizes(M, N)) {
    return -1;
  }
  return (M * N + 56) / 64 * 256;
}

// Launches the kernels in order on the stream, and does not wait for them.
// The workspace is GPU memory; two_workspace_bytes returns its size in bytes.
// The initial contents of the workspace do not matter.
// For unsupported sizes, the function launches nothing and returns cudaErrorInvalidValue.
extern "C" cudaError_t two_launch(
    const float* X,
    float* Y,
    long long M,
    long long N,
    void* workspace,
    cudaStream_t stream) {
  if (bad_sizes(M, N)) {
    return cudaErrorInvalidValue;
  }
  cudaError_t error = cudaSuccess;
  if ((M * N + 56) / 64 * 256 > 0 && (workspace == nullptr ||
      reinterpret_cast<unsigned long long>(workspace) % 256 != 0)) {
    return cudaErrorInvalidValue;
  }
  float* H = reinterpret_cast<float*>(static_cast<char*>(workspace));
  error = launch_kernel(powers, (M + 1) / 2, 64, 0, stream, X, H, M, N);
  if (error != cudaSuccess) {
    return error;
  }
  error = launch_kernel(rows, (M + 1) / 2, 32, 0, stream, H, Y, M, N);
  return error;
}

#endif  // __CUDACC_RTC__
