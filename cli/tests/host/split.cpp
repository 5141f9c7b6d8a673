// Checks the order of launches and the places of two tensors in the workspace.
#include "printed.h"

#include "check.h"

int main() {
  const unsigned long long begin = 0x10000, M = 100;
  CHECK(split_launch(at<__half>(0x1000), at<__half>(0x2000), at<__half>(0x3000), at<float>(0x4000), at<float>(0x5000),
                     M, at<void>(begin), nullptr) == cudaSuccess);
  const void* order[] = {
      reinterpret_cast<const void*>(powers),       reinterpret_cast<const void*>(gemm_zero),
      reinterpret_cast<const void*>(gemm_partial), reinterpret_cast<const void*>(gemm_rest),
      reinterpret_cast<const void*>(rows)};
  CHECK(launches.size() == 5);
  for (int i = 0; i < 5; ++i) CHECK(launches[i].kernel == order[i]);

  const unsigned long long H = launches[0].args[1], w = launches[1].args[0];
  CHECK(launches[4].args[0] == H && launches[2].args[2] == w && launches[3].args[1] == w);
  // Both are aligned, lie in the workspace, and do not overlap.
  const unsigned long long end = begin + split_workspace_bytes(M), n_H = M * 64 * 4, n_w = 64 * 64 * 4;
  CHECK(H % 256 == 0 && w % 256 == 0);
  CHECK(H >= begin && H + n_H <= end && w >= begin && w + n_w <= end);
  CHECK(H + n_H <= w || w + n_w <= H);
  CHECK(launches[2].shared == 30720 && asked.empty());
}
