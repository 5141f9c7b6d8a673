//! Holds the headers and C++ helper functions that the host functions need, such as a function that
//! encodes a tensor map. Their text depends at most on whether a kernel has tensor maps.

use crate::cpp::ast::Item;
use crate::lower::cuda_kernel::{CudaKernel, Param, Parts};

/// The headers, which only compilers of host code read.
pub(in crate::lower) fn headers(kernels: &[Parts]) -> Item {
    Item::Helper(match kernels.iter().any(|k| has_map(&k.kernel)) {
        true => {
            "\
#ifndef __CUDACC_RTC__
#include <algorithm>
#include <initializer_list>
#include <cuda.h>
#include <cuda_runtime.h>
#endif"
        }
        false => {
            "\
#ifndef __CUDACC_RTC__
#include <algorithm>
#include <cuda_runtime.h>
#endif"
        }
    })
}

fn has_map(kernel: &CudaKernel) -> bool {
    kernel.params.iter().any(|p| matches!(p, Param::TensorMap { .. }))
}

pub(super) const ROUNDING: &str = "\
// Quotient and remainder, rounded down.
static inline long long host_floor_div(long long a, long long b) {
  return a / b - (a % b < 0);
}
static inline long long host_floor_mod(long long a, long long b) {
  return a % b + (a % b < 0 ? b : 0);
}";

pub(super) const ENCODE: &str = "\
// Encodes a tensor map for boxes of a tensor. Modes are listed fastest first; strides are in bytes,
// without that of the first mode. Types, swizzles and promotions are the numbers of the driver's
// enumerations.
static cudaError_t encode_tensor_map(
    CUtensorMap* map, const void* address, int type, int swizzle, int promotion,
    std::initializer_list<long long> extents, std::initializer_list<long long> strides,
    std::initializer_list<long long> box) {
  cuuint64_t sizes[5] = {}, bytes[5] = {};
  cuuint32_t boxes[5] = {}, steps[5] = {1, 1, 1, 1, 1};
  const bool empty = std::min(extents) == 0;
  // Coordinates of boxes have 32 bits.
  if (std::min(extents) < 0 || std::max(extents) > 2147483647) return cudaErrorInvalidValue;
  std::copy(extents.begin(), extents.end(), sizes);
  std::copy(strides.begin(), strides.end(), bytes);
  std::copy(box.begin(), box.end(), boxes);
  // The encoder rejects an extent of 0. Nothing is copied from an empty tensor, so one element
  // represents it.
  if (empty) {
    std::fill(sizes, sizes + 5, 1);
    std::fill(bytes, bytes + 5, 16);
  }
  const CUresult status = cuTensorMapEncodeTiled(
      map, static_cast<CUtensorMapDataType>(type), static_cast<cuuint32_t>(extents.size()),
      const_cast<void*>(address), sizes, bytes, boxes, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      static_cast<CUtensorMapSwizzle>(swizzle), static_cast<CUtensorMapL2promotion>(promotion),
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return status == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}";

pub(super) const LAUNCH: &str = "\
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
}";
