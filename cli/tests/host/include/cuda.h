// The part of CUDA's driver interface that printed files use. It records tensor maps.
#pragma once

#include <vector>

typedef unsigned cuuint32_t;
typedef unsigned long long cuuint64_t;

enum CUresult { CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE };
enum CUtensorMapDataType : int {};
enum CUtensorMapInterleave { CU_TENSOR_MAP_INTERLEAVE_NONE };
enum CUtensorMapSwizzle : int {};
enum CUtensorMapL2promotion : int {};
enum CUtensorMapFloatOOBfill { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE };

struct CUtensorMap {
  alignas(64) cuuint64_t opaque[16];
};

struct Encoded {
  CUtensorMap* map;
  int type, swizzle, promotion;
  const void* address;
  std::vector<cuuint64_t> extents, strides;
  std::vector<cuuint32_t> box, steps;
};

inline std::vector<Encoded> encoded;

inline CUresult cuTensorMapEncodeTiled(
    CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address, const cuuint64_t* extents,
    const cuuint64_t* strides, const cuuint32_t* box, const cuuint32_t* steps, CUtensorMapInterleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill) {
  for (cuuint32_t i = 0; i < rank; ++i) {
    if (extents[i] == 0) return CUDA_ERROR_INVALID_VALUE;
  }
  encoded.push_back({map, type, swizzle, promotion, address, {extents, extents + rank},
                     {strides, strides + rank - 1}, {box, box + rank}, {steps, steps + rank}});
  return CUDA_SUCCESS;
}
