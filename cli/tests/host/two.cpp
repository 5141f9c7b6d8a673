// Checks what `two_launch` launches, and what it refuses.
#include "printed.h"

#include "check.h"

int main() {
  float *X = at<float>(0x1000), *Y = at<float>(0x2000);
  void* workspace = at<void>(0x10000);
  cudaStream_t stream = at<CUstream_st>(0x77);

  // Ranges, the divisor, and the fact that M + N <= 65600.
  const long long bad[][2] = {{-1, 8}, {65537, 8}, {9, 0}, {9, -8}, {2048, 1032}, {9, 4}, {65536, 72}, {1LL << 32, 8}};
  for (auto [m, n] : bad) {
    CHECK(two_workspace_bytes(m, n) == -1);
    CHECK(two_launch(X, Y, m, n, workspace, stream) == cudaErrorInvalidValue);
  }
  CHECK(two_launch(X, Y, 9, 8, nullptr, stream) == cudaErrorInvalidValue);
  CHECK(two_launch(X, Y, 9, 8, at<void>(0x10010), stream) == cudaErrorInvalidValue);
  // Without rows there is neither a workspace nor a launch.
  CHECK(two_workspace_bytes(0, 8) == 0 && two_launch(X, Y, 0, 8, nullptr, stream) == cudaSuccess);
  CHECK(launches.empty());

  // A multiple of 256 bytes that holds the tensor of floats between the kernels.
  CHECK(two_workspace_bytes(9, 8) == 512);
  CHECK(two_workspace_bytes(60000, 1024) == 4LL * 60000 * 1024);
  CHECK(two_launch(X, Y, 9, 8, workspace, stream) == cudaSuccess);
  CHECK(launches.size() == 2);
  const Launch &first = launches[0], &second = launches[1];
  CHECK(first.kernel == reinterpret_cast<const void*>(powers));
  CHECK(second.kernel == reinterpret_cast<const void*>(rows));
  CHECK(first.grid == 5 && first.block == 64 && first.shared == 0 && first.stream == stream);
  CHECK(second.grid == 5 && second.block == 32 && second.shared == 0 && second.stream == stream);
  CHECK((first.args == std::vector<unsigned long long>{0x1000, 0x10000, 9, 8}));
  CHECK((second.args == std::vector<unsigned long long>{0x10000, 0x2000, 9, 8}));
  CHECK(asked.empty());

  // Nothing is launched behind a launch that fails.
  launches.clear();
  first_failure = 0;
  CHECK(two_launch(X, Y, 9, 8, workspace, stream) == cudaErrorUnknown && launches.empty());
  first_failure = 1;
  CHECK(two_launch(X, Y, 9, 8, workspace, stream) == cudaErrorUnknown && launches.size() == 1);
}
