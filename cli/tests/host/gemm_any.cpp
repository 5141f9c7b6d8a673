// Checks the tensor maps of a kernel that copies by TMA, and that it asks for its shared memory.
#include "printed.h"

#include "check.h"

typedef std::vector<cuuint64_t> Modes;
typedef std::vector<cuuint32_t> Box;

int main() {
  const __half *A = at<const __half>(0x1000), *B = at<const __half>(0x2000);
  __half* C = at<__half>(0x3000);
  CHECK(gemm_any_workspace_bytes(100, 200, 48) == 0);
  CHECK(gemm_any_launch(A, B, C, 100, 200, 48, nullptr, nullptr) == cudaSuccess);

  CHECK(encoded.size() == 2);
  for (const Encoded& map : encoded) {
    // f16, rows of 128 bytes that are swizzled, 256 bytes fetched together.
    CHECK(map.type == 6 && map.swizzle == 3 && map.promotion == 3);
    CHECK((map.strides == Modes{96} && map.box[0] == 64 && map.steps == Box{1, 1}));
    CHECK(reinterpret_cast<unsigned long long>(map.map) % 64 == 0);
  }
  CHECK(encoded[0].address == A && (encoded[0].extents == Modes{48, 100}));
  CHECK(encoded[1].address == B && (encoded[1].extents == Modes{48, 200}));

  CHECK(launches.size() == 1);
  const Launch& launch = launches[0];
  CHECK(launch.shared > 48 * 1024 && launch.grid > 0 && launch.block % 128 == 0);
  CHECK(asked.size() == 1 && asked[0].first == launch.kernel && size_t(asked[0].second) == launch.shared);
  CHECK((std::vector<unsigned long long>(launch.args.begin(), launch.args.begin() + 6) ==
         std::vector<unsigned long long>{0x1000, 0x2000, 0x3000, 100, 200, 48}));

  // A tensor without elements gets a map of one element, because the encoder accepts no extent of 0.
  encoded.clear();
  CHECK(gemm_any_launch(A, B, C, 0, 200, 48, nullptr, nullptr) == cudaSuccess);
  CHECK((encoded[0].extents == Modes{1, 1} && encoded[0].strides == Modes{16}));
  // K that is no multiple of 8.
  CHECK(gemm_any_launch(A, B, C, 100, 200, 49, nullptr, nullptr) == cudaErrorInvalidValue);
  CHECK(launches.size() == 2);
}
