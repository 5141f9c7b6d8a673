"""Compares the host time of a call with three and with eight tensors: carbyne, Triton, PyTorch and tvm-ffi, in one run.

    python python/bench/call.py

Each calls a kernel of one block that adds a few numbers, so that the GPU is never the bottleneck. Times are medians of rounds in turns, with
the ratio to carbyne's time. Libraries that are not installed are skipped, with a message.
"""

import statistics
import sys
import time

import torch

import carbyne

CALLS, ROUNDS = 1000, 15
EXTENT = 128


def program(n: int) -> str:
    names = [chr(ord("A") + i) for i in range(n)]
    tensors = "\n".join(f"%{name}:[{EXTENT}].f32.GL" for name in names)
    inputs = ", ".join(f"%{name}" for name in names[:-1])
    value = " + ".join(f"%{name}" for name in names[:-1])
    out = names[-1]
    return f"carbyne 2\n{tensors}\nSpec @add ({inputs}) -> (%{out}) means {{\n  %{out} = {value}\n}}\n"


def triton_call(n: int):
    import importlib.util
    import tempfile

    import triton  # noqa: F401

    names = ", ".join(f"p{i}" for i in range(n))
    loads = " + ".join(f"tl.load(p{i} + i)" for i in range(n - 1))
    source = (
        "import triton\nimport triton.language as tl\n\n@triton.jit\n"
        f"def add({names}, N: tl.constexpr):\n    i = tl.arange(0, N)\n    tl.store(p{n - 1} + i, {loads})\n"
    )
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(source)
    spec = importlib.util.spec_from_file_location(f"added_{n}", file.name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = module.add[(1,)]
    return lambda *tensors: kernel(*tensors, EXTENT)


def tvm_ffi_call(n: int):
    import tvm_ffi.cpp

    params = ", ".join(f"tvm::ffi::TensorView p{i}" for i in range(n))
    pointers = ", ".join(f"float* p{i}" for i in range(n))
    given = ", ".join(f"static_cast<float*>(p{i}.data_ptr())" for i in range(n))
    loads = " + ".join(f"p{i}[threadIdx.x]" for i in range(n - 1))
    checks = "\n".join(
        f'  TVM_FFI_ICHECK(p{i}.ndim() == 1 && p{i}.size(0) == {EXTENT}) << "p{i}";' for i in range(n)
    )
    source = f"""
__global__ void kernel({pointers}) {{ p{n - 1}[threadIdx.x] = {loads}; }}
void add({params}) {{
{checks}
  cudaStream_t stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(p0.device().device_type, p0.device().device_id));
  kernel<<<1, {EXTENT}, 0, stream>>>({given});
}}
"""
    module = tvm_ffi.cpp.load_inline(name=f"add_{n}", cuda_sources=source, functions="add")
    return module.add


def torch_call(n: int):
    if n != 3:
        return None
    return lambda a, b, c: torch.add(a, b, out=c)


def timed(call, tensors) -> float:
    begin = time.perf_counter_ns()
    for _ in range(CALLS):
        call(*tensors)
    end = time.perf_counter_ns()
    torch.cuda.synchronize()
    return (end - begin) / CALLS / 1000


def main() -> None:
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, Python {sys.version.split()[0]}")
    print("| tensors | peer | µs | ratio |\n| ---: | --- | ---: | ---: |")
    for n in (3, 8):
        tensors = [torch.rand(EXTENT, device="cuda") for _ in range(n)]
        calls = {"carbyne": carbyne.Program(program(n)).jit()}
        try:
            calls["carbyne by tvm-ffi"] = calls["carbyne"].tvm_ffi()
        except ImportError as error:
            print(f"carbyne by tvm-ffi is left out: {error}", file=sys.stderr)
        for name, make in (("tvm-ffi", tvm_ffi_call), ("PyTorch", torch_call), ("Triton", triton_call)):
            try:
                if (call := make(n)) is not None:
                    calls[name] = call
            except Exception as error:  # The library is not installed, or does not compile here.
                print(f"{name} is left out: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
        wanted = sum(tensors[:-1])
        for name, call in calls.items():
            tensors[-1].zero_()
            call(*tensors)
            torch.testing.assert_close(tensors[-1], wanted, msg=name)
            timed(call, tensors)
        times = {name: [] for name in calls}
        for _ in range(ROUNDS):
            for name, call in calls.items():
                times[name].append(timed(call, tensors))
        own = statistics.median(times["carbyne"])
        for name, all_times in times.items():
            median = statistics.median(all_times)
            print(f"| {n} | {name} | {median:.2f} | {median / own:.2f} |")


if __name__ == "__main__":
    main()
