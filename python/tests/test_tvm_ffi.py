"""Programs as functions of tvm-ffi: in the simulator, and as printed files whose launches are recorded. Neither needs a GPU."""

import ctypes
import gc
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import carbyne
from samples import GEMM_ANY, ROOT, SCALED, Described, aligned, at_once

tvm_ffi = pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed: its functions were not tested")

STUBS = ROOT / "cli/tests/host/include"
TWO = """\
carbyne 2
sym M where M >= 0, M <= 65536
sym N where N >= 8, N <= 1024, N % 8 == 0, M + N <= 65600
%X:[M,N].f32.GL
%H:[M,N].f32.GL
%Y:[M,1].f32.GL
UnaryPointwise.exp @powers (%X) -> (%H)
Reduction.sum @rows (%H) -> (%Y) axis=1
"""


@pytest.fixture(scope="module")
def gemm() -> object:
    return carbyne.Program(GEMM_ANY).jit("simulate").tvm_ffi()


@pytest.fixture(scope="module")
def scaled() -> object:
    return carbyne.Program(SCALED).jit("simulate").tvm_ffi()


def on_gpu(array: np.ndarray, number: int = 0) -> Described:
    """An array that claims to be on a GPU. Its memory must not be accessed."""
    return Described(array, (2, number))


def operands(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    a, b = aligned(m, k), aligned(n, k)
    a[:], b[:] = rng.standard_normal((m, k)), rng.standard_normal((n, k))
    return a, b.T, aligned(m, n)


def test_a_call_takes_all_tensors_and_writes_results(gemm) -> None:
    assert isinstance(gemm, tvm_ffi.Function)
    for m, n, k in ((33, 17, 40), (1, 1, 8)):
        a, b, c = operands(m, n, k)
        assert gemm(a, b, c) is None
        assert np.allclose(c, a.astype(np.float32) @ b.astype(np.float32), atol=0.05)
    a, b, c = (tvm_ffi.from_dlpack(t) for t in operands(4, 5, 8))
    gemm(a, b, c)
    assert np.from_dlpack(c).any()


def test_numbers_are_taken(scaled) -> None:
    a, b = aligned(64, 64, dtype=np.float32), aligned(64, 64, dtype=np.float32)
    a[:] = 3
    for alpha in (0.5, 2):
        scaled(a, alpha, b)
        assert (b == 3 * alpha).all()
    for wrong in ("2", None, True, a):
        with pytest.raises(TypeError, match="`alpha` is .*, and a number is wanted"):
            scaled(a, wrong, b)


def test_sizes_that_no_tensor_states_come_last() -> None:
    text = "carbyne 2\nsym L where L >= 1, L <= 64\n%A:[64].f32.GL\n%B:[64].f32.GL\n"
    text += "Spec @rest (%A) -> (%B) means {\n  %B = %A + L\n}\n"
    rest = carbyne.Program(text).jit("simulate").tvm_ffi()
    a, b = aligned(64, dtype=np.float32), aligned(64, dtype=np.float32)
    rest(a, b, 7)
    assert (b == 7).all()
    with pytest.raises(TypeError, match=re.escape("2 arguments do not fit; call it as `f(A, B, L)`")):
        rest(a, b)
    with pytest.raises(TypeError, match="`L` is a float, and an integer is wanted"):
        rest(a, b, 7.0)
    with pytest.raises(ValueError, match="does not hold"):
        rest(a, b, 65)


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        (lambda a, b, c: (a, b), TypeError, "2 arguments do not fit; call it as `f(A, B, C)`"),
        (lambda a, b, c: (a, b, c, c), TypeError, "4 arguments do not fit"),
        (lambda a, b, c: (), TypeError, "0 arguments do not fit"),
        (lambda a, b, c: (a, b, None), TypeError, "`C` is None, and a tensor is wanted"),
        (lambda a, b, c: (a, "B", c), TypeError, "`B` is a string, and a tensor is wanted"),
        (lambda a, b, c: (a, "a longer string than eight", c), TypeError, "`B` is a string"),
        (lambda a, b, c: (1, b, c), TypeError, "`A` is an integer, and a tensor is wanted"),
        (lambda a, b, c: (1.5, b, c), TypeError, "`A` is a float, and a tensor is wanted"),
        (lambda a, b, c: ([a], b, c), TypeError, "`A` is a value of tvm-ffi's type"),
        (lambda a, b, c: (a.astype(np.float32), b, c), ValueError, "`%A` has elements of float32"),
        (lambda a, b, c: (a[0], b, c), ValueError, "`%A` has the shape [M,K], but the tensor has [40]"),
        (lambda a, b, c: (a, b, aligned(33, 18)), ValueError, "of `%C` is 18, but must be 17"),
        (lambda a, b, c: (a, np.ascontiguousarray(b), c), ValueError, "stride 0 of `%B` is 17, but must be 1"),
        (lambda a, b, c: (aligned(33, 39), aligned(17, 39).T, c), ValueError, "`K % 8 == 0` does not hold"),
        (lambda a, b, c: (a, b, aligned(33 * 17 + 1)[1:].reshape(33, 17)), ValueError, "multiple of 16"),
    ],
)
def test_what_does_not_fit_is_named(gemm, change, kind, said) -> None:
    given = change(*operands(33, 17, 40))
    with pytest.raises(kind) as raised:
        gemm(*given)
    assert said in str(raised.value), raised.value


def test_a_result_shares_no_memory(scaled) -> None:
    a = aligned(64, 64, dtype=np.float32)
    with pytest.raises(ValueError, match="`%B` is written, but shares memory with `%A`"):
        scaled(a, 1.0, a)


def test_tensors_of_another_device_are_refused(scaled) -> None:
    a, b = (aligned(64, 64, dtype=np.float32) for _ in range(2))
    there = on_gpu(a), on_gpu(b)
    with pytest.raises(ValueError, match="`%B` lies on the CPU, but `%A` on cuda:0"):
        scaled(there[0], 1.0, b)
    with pytest.raises(ValueError, match="`%A` lies on cuda:0, but the simulator runs on the CPU"):
        scaled(there[0], 1.0, there[1])


def test_a_function_lives_as_long_as_tvm_ffi_keeps_it() -> None:
    a, b = (aligned(64, 64, dtype=np.float32) for _ in range(2))
    a[:] = 1
    f = carbyne.Program(SCALED).jit("simulate")
    first, second = f.tvm_ffi(), f.tvm_ffi()
    del f
    gc.collect()
    first(a, 2.0, b)
    del first
    gc.collect()
    second(a, 3.0, b)
    assert (b == 3).all()
    tvm_ffi.register_global_func("carbyne.test.scaled", second, override=True)
    del second
    gc.collect()
    tvm_ffi.get_global_func("carbyne.test.scaled")(a, 4.0, b)
    assert (b == 4).all()
    for _ in range(1000):
        carbyne_function = tvm_ffi.get_global_func("carbyne.test.scaled")
        del carbyne_function


def test_a_function_is_an_argument() -> None:
    f = carbyne.Program(SCALED).jit("simulate")
    apply = tvm_ffi.convert(lambda g, *rest: g(*rest))
    a, b = (aligned(64, 64, dtype=np.float32) for _ in range(2))
    a[:] = 1
    apply(f, a, 5.0, b)
    assert (b == 5).all()


def test_many_threads_call_at_once(gemm) -> None:
    wrong = []

    def work(seed: int) -> None:
        for i in range(4):
            a, b, c = operands(8 + seed, 9, 8)
            try:
                gemm(a, b, c)
                if not np.allclose(c, a.astype(np.float32) @ b.astype(np.float32), atol=0.05):
                    wrong.append((seed, i))
                with pytest.raises(ValueError, match="extent"):
                    gemm(a, b, aligned(8 + seed, 10))
            except BaseException as error:
                wrong.append(error)

    at_once(work, range(8))
    assert not wrong


def test_an_error_of_the_simulator_is_one_of_tvm_ffi() -> None:
    text = "carbyne 2\n%A:[64].f32.GL\n%I:[64].i32.GL in 0..64\n%B:[64].f32.GL\n"
    text += "Spec @take (%A, %I) -> (%B) means {\n  %B = move(%A[%I])\n}\n"
    take = carbyne.Program(text).jit("simulate").tvm_ffi()
    a, b = (aligned(64, dtype=np.float32) for _ in range(2))
    i = aligned(64, dtype=np.int32)
    take(a, i, b)
    i[:] = 100
    with pytest.raises((RuntimeError, ValueError), match="100"):
        take(a, i, b)


def test_ctrl_c_ends_a_call_on_the_simulator(gemm) -> None:
    a, b, c = operands(2048, 2048, 2048)
    # A process that was started in the background ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            gemm(a, b, c)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)


def host_of(text: str) -> str:
    """The host part of a printed file, with empty kernels."""
    host, in_host, in_head = [], False, False
    for line in text.splitlines():
        if line == "#ifndef __CUDACC_RTC__":
            in_host = True
        elif line.startswith("#endif") and in_host:
            in_host = False
        elif in_host:
            host.append(line)
        else:
            in_head = in_head or line.startswith('extern "C" __global__')
            if in_head:
                host.append(line + ("}" if line.endswith("{") else ""))
                in_head = not line.endswith("{")
    return "\n".join(host) + "\n"


#: A function that reads a recorded launch.
RECORDED = """
extern "C" unsigned long long recorded(int launch, int what) {
  if (launch < 0) return launches.size();
  const Launch& one = launches.at(launch);
  if (what == -1) return one.grid;
  if (what == -2) return reinterpret_cast<unsigned long long>(one.stream);
  return one.args.at(what);
}
"""


def compiled(text: str, name: str, arch: str, folder: Path) -> Path:
    """The printed file of a program as a library, for CUDA's runtime that records launches."""
    if not (compiler := shutil.which(os.environ.get("CXX", "c++"))):
        pytest.skip("there is no C++ compiler: printed functions of tvm-ffi were not compiled")
    printed = carbyne.Program(text).decompose(arch).cuda(name, tvm_ffi=True)
    source, library = folder / f"{name}.cpp", folder / f"{name}.so"
    source.write_text(host_of(printed) + RECORDED)
    from tvm_ffi import libinfo

    link = Path(libinfo.find_libtvm_ffi()).parent
    command = [compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-shared", "-fPIC"]
    command += ["-I", str(STUBS), "-isystem", libinfo.find_include_path(), "-isystem", libinfo.find_dlpack_include_path()]
    command += [str(source), "-o", str(library), f"-L{link}", "-ltvm_ffi", f"-Wl,-rpath,{link}"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[:4000]
    return library


def launches_of(library: Path) -> Callable[[int, int], int]:
    """A reader of the launches that are recorded from here on. Libraries share the list."""
    recorded = ctypes.CDLL(str(library)).recorded
    recorded.restype = ctypes.c_uint64
    before = recorded(-1, 0)
    return lambda launch, what: recorded(-1, 0) - before if launch < 0 else recorded(before + launch, what)


def test_a_printed_function_checks_and_launches(tmp_path: Path) -> None:
    library = compiled(TWO, "two", "sm_80", tmp_path)
    two = tvm_ffi.load_module(str(library))["two"]
    recorded = launches_of(library)
    x, y = aligned(10, 16, dtype=np.float32), aligned(10, 1, dtype=np.float32)
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:0"), 0x1234):
        two(on_gpu(x), on_gpu(y))
    assert recorded(-1, 0) == 2
    assert recorded(0, -1) == 5 and recorded(0, -2) == 0x1234
    assert recorded(0, 0) == x.ctypes.data and recorded(1, 1) == y.ctypes.data
    assert recorded(0, 1) == recorded(1, 0) != 0 and recorded(0, 1) % 256 == 0
    assert [recorded(0, 2), recorded(0, 3)] == [10, 16]
    for wrong, kind, said in (
        ((on_gpu(x),), TypeError, "1 arguments are given, and 2 are wanted: two(X, Y)"),
        ((on_gpu(x), None), TypeError, "`Y` is no tensor: two(X, Y)"),
        ((on_gpu(x), 1), TypeError, "`Y` is no tensor"),
        ((x, on_gpu(y)), ValueError, "`X` does not lie on a CUDA device"),
        ((on_gpu(x), on_gpu(y, 1)), ValueError, "`Y` lies on cuda:1, and another tensor on cuda:0"),
        ((on_gpu(x.astype(np.float16)), on_gpu(y)), ValueError, "`X` has elements of DLPack's type 2 of 16 bits"),
        ((on_gpu(x[0]), on_gpu(y)), ValueError, "`X` has 1 modes, and 2 are wanted"),
        ((on_gpu(x[:, :15]), on_gpu(y)), ValueError, "does not hold where M = 10, N = 15"),
        ((on_gpu(x), on_gpu(y[:9])), ValueError, "extent 0 of `Y` is 9, and 10 is wanted"),
        ((on_gpu(x[:, ::2]), on_gpu(y)), ValueError, "stride"),
        ((on_gpu(x.ravel()[1:145].reshape(9, 16)), on_gpu(y[:9])), ValueError, "and a multiple of 16 is wanted"),
        ((on_gpu(x), on_gpu(x[:, :1])), ValueError, "stride 0 of `Y`"),
        ((on_gpu(x), on_gpu(x.ravel()[:10].reshape(10, 1))), ValueError, "`Y` is written, and shares memory with `X`"),
    ):
        with pytest.raises(kind) as raised:
            two(*wrong)
        assert said in str(raised.value), raised.value
    assert recorded(-1, 0) == 2
    two(on_gpu(x[:0]), on_gpu(y[:0]))
    assert recorded(-1, 0) == 2


def test_a_printed_function_takes_numbers(tmp_path: Path) -> None:
    library = compiled(SCALED, "scaled", "sm_80", tmp_path)
    scaled = tvm_ffi.load_module(str(library))["scaled"]
    recorded = launches_of(library)
    a, b = (on_gpu(aligned(64, 64, dtype=np.float32)) for _ in range(2))
    scaled(a, 0.5, b), scaled(a, 2, b)
    assert recorded(-1, 0) == 2
    with pytest.raises(TypeError, match="`alpha` is no number"):
        scaled(a, "2", b)


def test_a_printed_function_encodes_tensor_maps(tmp_path: Path) -> None:
    text = (ROOT / "examples/gemm_any.cby").read_text()
    library = compiled(text, "gemm", "sm_90a", tmp_path)
    gemm = tvm_ffi.load_module(str(library))["gemm"]
    recorded = launches_of(library)
    a, b, c = operands(64, 128, 64)
    gemm(on_gpu(a), on_gpu(b), on_gpu(c))
    assert recorded(-1, 0) == 1
