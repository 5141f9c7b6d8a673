//! Holds the texts of the C++ helper functions that kernels call ([`Helper`]), such as a division
//! that rounds down or the address of an element in shared memory. Only the functions that a kernel
//! needs are printed above it.

/// A helper function that is printed above a kernel that needs it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Helper {
    FloorDivision,
    SharedAddress,
    MatrixDescriptor,
    LoadUnaligned,
    Choose,
    FenceRegisters,
    Swizzle,
    TensorMap,
    Computed,
}

impl Helper {
    pub(super) fn text(self) -> &'static str {
        match self {
            Helper::FloorDivision => {
                "\
// Quotient and remainder, rounded down.
template <typename T>
__device__ __forceinline__ T floor_div(T a, T b) {
  return a / b - (a % b < 0);
}
template <typename T>
__device__ __forceinline__ T floor_mod(T a, T b) {
  return a % b + (a % b < 0 ? b : 0);
}"
            }
            Helper::SharedAddress => {
                "\
// The address of an array element in shared memory, as PTX expects it.
template <typename T>
__device__ __forceinline__ unsigned shared_address(const T* array, int i = 0) {
  return static_cast<unsigned>(__cvta_generic_to_shared(array)) + i * int(sizeof(T));
}"
            }
            Helper::MatrixDescriptor => carbyne_atoms::descriptor::CUDA_FUNCTION,
            Helper::LoadUnaligned => carbyne_atoms::LOAD_UNALIGNED,
            Helper::Choose => carbyne_atoms::CHOOSE,
            Helper::FenceRegisters => {
                "\
// Keeps accesses to registers from moving across this point; emits no instruction.
template <int N>
__device__ __forceinline__ void fence_registers(float* r) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile(\"\" : \"+f\"(r[i])::\"memory\");
}
template <int N>
__device__ __forceinline__ void fence_registers(unsigned* r) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile(\"\" : \"+r\"(r[i])::\"memory\");
}"
            }
            Helper::Computed => {
                "\
// A pointer into global memory that is computed here and not again at each use.
template <typename T>
__device__ __forceinline__ T* computed(T* p) {
  asm volatile(\"\" : \"+l\"(p));
  __builtin_assume(__isGlobal(p));
  return p;
}"
            }
            Helper::TensorMap => {
                "\
// A tensor map as cuTensorMapEncodeTiled writes it.
#ifndef __cuda_cuda_h__
struct alignas(64) CUtensorMap {
  unsigned long long opaque[16];
};
#endif"
            }
            Helper::Swizzle => {
                "\
// Flips the B bits above the lowest M ones by the B bits that lie S higher.
template <int B, int M, int S, typename T>
__device__ __forceinline__ T swizzle(T i) {
  return i ^ ((i >> S) & (((T(1) << B) - 1) << M));
}"
            }
        }
    }
}
