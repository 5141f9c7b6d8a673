// The part of CUDA's runtime that printed files use, for a compiler of C++ without CUDA. It records launches.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <tuple>
#include <utility>
#include <vector>

#define __global__
#define __grid_constant__
#define __cluster_dims__(...)
#define __launch_bounds__(...)

struct __half { unsigned short bits; };
struct __nv_bfloat16 { unsigned short bits; };
struct __nv_fp8_e4m3 { unsigned char bits; };
struct __nv_fp8_e5m2 { unsigned char bits; };

enum cudaError_t { cudaSuccess, cudaErrorInvalidValue, cudaErrorInvalidConfiguration = 9, cudaErrorUnknown = 999 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
typedef struct CUstream_st* cudaStream_t;

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  void* attrs = nullptr;
  unsigned numAttrs = 0;
};

struct Launch {
  const void* kernel;
  unsigned grid, block;
  size_t shared;
  cudaStream_t stream;
  // Pointers and numbers; of what is larger, 0.
  std::vector<unsigned long long> args;
};

// The launches, and the kernels that requested more shared memory.
inline std::vector<Launch> launches;
inline std::vector<std::pair<const void*, int>> asked;
// The index of the first launch that fails.
inline size_t first_failure = ~size_t(0);

// There is one device after the other, and memory of any of them is the host's.
inline int current_device = 0;
inline cudaError_t cudaGetDevice(int* device) { return *device = current_device, cudaSuccess; }
inline cudaError_t cudaSetDevice(int device) { return current_device = device, cudaSuccess; }
inline cudaError_t cudaMallocAsync(void** memory, size_t bytes, cudaStream_t) {
  return *memory = std::malloc(bytes), cudaSuccess;
}
inline cudaError_t cudaFreeAsync(void* memory, cudaStream_t) { return std::free(memory), cudaSuccess; }
inline const char* cudaGetErrorString(cudaError_t) { return "an error of CUDA"; }

template <typename T>
unsigned long long word(const T& value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<unsigned long long>(value);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<unsigned long long>(value);
  } else {
    return 0;
  }
}

template <typename T>
cudaError_t cudaFuncSetAttribute(T* kernel, cudaFuncAttribute, int value) {
  asked.push_back({reinterpret_cast<const void*>(kernel), value});
  return cudaSuccess;
}

template <typename... Params, typename... Args>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Params...), Args&&... args) {
  if (launches.size() >= first_failure) return cudaErrorUnknown;
  const std::tuple<Params...> values(std::forward<Args>(args)...);
  Launch launch{reinterpret_cast<const void*>(kernel), config->gridDim.x, config->blockDim.x,
                config->dynamicSmemBytes, config->stream, {}};
  std::apply([&](const Params&... value) { (launch.args.push_back(word(value)), ...); }, values);
  launches.push_back(launch);
  return cudaSuccess;
}
