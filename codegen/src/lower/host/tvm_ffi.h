#include <cstdarg>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

// Arguments of a function of tvm-ffi. Each check raises an error and returns false if an argument does not fit.
template <int N>
class FfiArguments {
 public:
  FfiArguments(const TVMFFIAny* args, int count, const char* signature)
      : args(args), count(count), signature(signature) {}

  bool has_count(int wanted) const {
    if (count == wanted) return true;
    return refuse("TypeError", "%d arguments are given, and %d are wanted: %s", count, wanted, signature);
  }

  // Checks a tensor: its elements have one of these types, and it lies on the device of the other tensors. A negative rank allows any.
  bool tensor(int i, const char* name, std::initializer_list<int> codes, int bits, int align, int rank) {
    names[i] = name;
    const TVMFFIAny& arg = args[i];
    if (arg.type_index == kTVMFFIDLTensorPtr) {
      tensors[i] = static_cast<const DLTensor*>(arg.v_ptr);
    } else if (arg.type_index == kTVMFFITensor) {
      tensors[i] = TVMFFITensorGetDLTensorPtr(arg.v_obj);
    }
    if (tensors[i] == nullptr) return refuse("TypeError", "`%s` is no tensor: %s", name, signature);
    const DLTensor& t = *tensors[i];
    bool fits = t.dtype.bits == bits && t.dtype.lanes == 1;
    bool is_known = false;
    for (int code : codes) is_known |= t.dtype.code == code;
    if (!fits || !is_known) {
      return refuse("ValueError", "`%s` has elements of DLPack's type %d of %d bits, and type %d of %d bits is wanted",
                    name, t.dtype.code, t.dtype.bits, *codes.begin(), bits);
    }
    if (t.device.device_type != kDLCUDA && t.device.device_type != kDLCUDAManaged) {
      return refuse("ValueError", "`%s` does not lie on a CUDA device", name);
    }
    if (device < 0) device = t.device.device_id;
    if (t.device.device_id != device) {
      return refuse("ValueError", "`%s` lies on cuda:%d, and another tensor on cuda:%d", name, t.device.device_id, device);
    }
    if (rank >= 0 && t.ndim != rank) {
      return refuse("ValueError", "`%s` has %d modes, and %d are wanted", name, t.ndim, rank);
    }
    // No memory has so large an extent, and the product of two such numbers does not overflow.
    const long long most = 1LL << 40;
    double last = 0;
    for (int mode = 0; mode < t.ndim; ++mode) {
      const long long n = t.shape[mode], step = stride(i, mode);
      if (n < 0 || n > most || (n > 1 && (step < 0 || step > most))) {
        return refuse("ValueError", "`%s` has extent %lld and stride %lld of mode %d", name, n, step, mode);
      }
      last += n > 1 ? static_cast<double>(n - 1) * static_cast<double>(step) : 0;
    }
    if (elements(i) > 0 && last > 1e14) return refuse("ValueError", "`%s` is too large", name);
    if (elements(i) > 0 && (t.data == nullptr || begin(i) % align != 0)) {
      return refuse("ValueError", "`%s` begins at %#llx, and a multiple of %d is wanted", name, begin(i), align);
    }
    return true;
  }

  // Reads a floating-point number.
  template <typename T>
  bool number(int i, const char* name, T* value) const {
    const TVMFFIAny& arg = args[i];
    if (arg.type_index == kTVMFFIFloat) {
      *value = static_cast<T>(arg.v_float64);
    } else if (arg.type_index == kTVMFFIInt) {
      *value = static_cast<T>(static_cast<double>(arg.v_int64));
    } else {
      return refuse("TypeError", "`%s` is no number: %s", name, signature);
    }
    return true;
  }

  // Reads an integer of a range.
  template <typename T>
  bool integer(int i, const char* name, long long least, long long most, T* value) const {
    const TVMFFIAny& arg = args[i];
    if (arg.type_index != kTVMFFIInt && arg.type_index != kTVMFFIBool) {
      return refuse("TypeError", "`%s` is no integer: %s", name, signature);
    }
    if (arg.v_int64 < least || arg.v_int64 > most) {
      return refuse("ValueError", "`%s` is %lld, which is not in %lld..=%lld", name,
                    static_cast<long long>(arg.v_int64), least, most);
    }
    *value = static_cast<T>(arg.v_int64);
    return true;
  }

  long long extent(int i, int mode) const { return tensors[i]->shape[mode]; }

  long long stride(int i, int mode) const {
    if (tensors[i]->strides != nullptr) return tensors[i]->strides[mode];
    double step = 1;
    for (int m = mode + 1; m < tensors[i]->ndim; ++m) step *= static_cast<double>(tensors[i]->shape[m]);
    return step > 1e18 ? 1000000000000000000 : static_cast<long long>(step);
  }

  long long elements(int i) const {
    double n = 1;
    for (int mode = 0; mode < tensors[i]->ndim; ++mode) n *= static_cast<double>(tensors[i]->shape[mode]);
    return n > 1e18 ? 1000000000000000000 : static_cast<long long>(n);
  }

  // Checks the extent and the stride of a mode. An element of the tensor may hold several of the program's, along one mode.
  bool mode(int i, int mode, long long n, long long step, int along = 1, int across = 1) const {
    if (extent(i, mode) * along != n) {
      return refuse("ValueError", "extent %d of `%s` is %lld, and %lld is wanted", mode, names[i],
                    extent(i, mode) * along, n);
    }
    if (extent(i, mode) > 1 && elements(i) > 0 && stride(i, mode) * across != step) {
      return refuse("ValueError", "stride %d of `%s` is %lld, and %lld is wanted", mode, names[i],
                    stride(i, mode) * across, step);
    }
    return true;
  }

  // Checks that a tensor has `n` elements side by side.
  bool flat(int i, long long n, int packed = 1) const {
    if (elements(i) * packed != n) {
      return refuse("ValueError", "`%s` has %lld elements, and %lld are wanted", names[i], elements(i) * packed, n);
    }
    long long step = 1;
    for (int mode = tensors[i]->ndim - 1; mode >= 0 && n > 0; --mode) {
      if (extent(i, mode) > 1 && stride(i, mode) != step) {
        return refuse("ValueError", "`%s` is not contiguous", names[i]);
      }
      step *= extent(i, mode);
    }
    return true;
  }

  // Checks that tensors that are written share no memory with other tensors.
  bool are_apart(std::initializer_list<int> written) const {
    for (int i : written) {
      for (int other = 0; other < N; ++other) {
        if (other == i || tensors[other] == nullptr) continue;
        if (begin(i) < end(other) && begin(other) < end(i)) {
          return refuse("ValueError", "`%s` is written, and shares memory with `%s`", names[i], names[other]);
        }
      }
    }
    return true;
  }

  // Checks that no fact is broken. `sizes` is a format for the values of the sizes, which follow it.
  bool keep(const char* broken, const char* sizes, ...) const {
    if (broken == nullptr) return true;
    char values[512];
    va_list list;
    va_start(list, sizes);
    std::vsnprintf(values, sizeof values, sizes, list);
    va_end(list);
    return refuse("ValueError", "`%s` does not hold where %s", broken, values);
  }

  template <typename T>
  T* address(int i) const {
    return reinterpret_cast<T*>(begin(i));
  }

  // Launches on the tensors' device, on the stream of the environment, with a workspace of `bytes` bytes at a multiple of `align`.
  template <typename Launch>
  int launch(long long bytes, long long align, Launch launch) const {
    int before = 0;
    cudaError_t error = cudaGetDevice(&before);
    if (error == cudaSuccess && before != device) error = cudaSetDevice(device);
    if (error == cudaSuccess) {
      const cudaStream_t stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(kDLCUDA, device));
      void* memory = nullptr;
      if (bytes > 0) error = cudaMallocAsync(&memory, static_cast<size_t>(bytes + align), stream);
      if (error == cudaSuccess) {
        const unsigned long long at = reinterpret_cast<unsigned long long>(memory);
        error = launch(reinterpret_cast<void*>((at + align - 1) / align * align), stream);
        if (bytes > 0) {
          const cudaError_t freed = cudaFreeAsync(memory, stream);
          if (error == cudaSuccess) error = freed;
        }
      }
      if (before != device) cudaSetDevice(before);
    }
    if (error == cudaSuccess) return 0;
    refuse("RuntimeError", "%s", cudaGetErrorString(error));
    return -1;
  }

 private:
  // The address of the first element.
  unsigned long long begin(int i) const {
    return reinterpret_cast<unsigned long long>(tensors[i]->data) + tensors[i]->byte_offset;
  }

  // The address behind the last element.
  unsigned long long end(int i) const {
    if (elements(i) == 0) return begin(i);
    long long last = 0;
    for (int mode = 0; mode < tensors[i]->ndim; ++mode) {
      if (extent(i, mode) > 1) last += (extent(i, mode) - 1) * stride(i, mode);
    }
    return begin(i) + (last + 1) * (tensors[i]->dtype.bits / 8);
  }

  static bool refuse(const char* kind, const char* format, ...) {
    char message[1024];
    va_list list;
    va_start(list, format);
    std::vsnprintf(message, sizeof message, format, list);
    va_end(list);
    TVMFFIErrorSetRaisedFromCStr(kind, message);
    return false;
  }

  const TVMFFIAny* args;
  const int count;
  const char* const signature;
  const DLTensor* tensors[N] = {};
  const char* names[N] = {};
  int device = -1;
};
