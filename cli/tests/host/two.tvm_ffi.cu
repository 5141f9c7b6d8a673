// two(X, Y) as a function of tvm-ffi: tensors that the kernels write are given, too.
// It checks its arguments, and calls two_launch on the stream of the environment.
extern "C" TVM_FFI_DLL_EXPORT int __tvm_ffi_two(
    void* self,
    const TVMFFIAny* args,
    int num_args,
    TVMFFIAny* result) {
  FfiArguments<2> given(args, num_args, "two(X, Y)");
  if (!given.has_count(2)) {
    return -1;
  }
  if (!given.tensor(0, "X", {kDLFloat}, 32, 16, 2) || !given.tensor(1, "Y", {kDLFloat}, 32, 16,
          2)) {
    return -1;
  }
  const long long M = given.extent(0, 0);
  const long long N = given.extent(0, 1);
  if (!given.keep(broken_fact(M, N), "M = %lld, N = %lld", M, N)) {
    return -1;
  }
  if (!given.mode(0, 0, M, N) || !given.mode(0, 1, N, 1) || !given.mode(1, 0, M, 1) ||
      !given.mode(1, 1, 1, 0) || !given.are_apart({1})) {
    return -1;
  }
  return given.launch(two_workspace_bytes(M, N), 256, [&](void* workspace,
      cudaStream_t stream) { return two_launch(given.address<float>(0), given.address<float>(1), M,
              N, workspace, stream); });
}

#endif  // __CUDACC_RTC__
