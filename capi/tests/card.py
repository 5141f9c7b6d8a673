"""Calls a kernel through the C interface on a machine with a GPU and PyTorch.

    cargo build --release -p carbyne-capi --features gpu
    python3 capi/tests/card.py target/release/libcarbyne_c.so
"""

import ctypes
import sys
import threading

import torch

TEXT = b"""carbyne 2
sym M, N, K where M >= 1, M <= 8192, N >= 1, N <= 8192, K >= 1, K <= 8192, K % 8 == 0, N % 8 == 0
%A:[M,K].f16.GL
%B:[(K,N):(1,K)].f16.GL
%C:[M,N].f16.GL
MatMul.set @gemm (%A, %B) -> (%C) acc=f32
"""


class Tensor(ctypes.Structure):
    """`DLTensor` of DLPack."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]

    def __init__(self, tensor: torch.Tensor, device: int = 0) -> None:
        numbers = ctypes.c_int64 * tensor.dim()
        self.kept = (numbers(*tensor.shape), numbers(*tensor.stride()))
        super().__init__(tensor.data_ptr(), (2, device), tensor.dim(), 2, 16, 1, *self.kept, 0)


def main() -> None:
    lib = ctypes.CDLL(sys.argv[1])
    lib.carbyne_diagnostics_rendered.restype = ctypes.c_char_p
    lib.carbyne_diagnostics_rendered.argtypes = [ctypes.c_void_p]

    def done(status: int, said: ctypes.c_void_p) -> str | None:
        text = lib.carbyne_diagnostics_rendered(said).decode() if said else ""
        if said:
            lib.carbyne_diagnostics_free(said)
        return None if status == 0 else f"status {status}: {text}"

    def must(status: int, said: ctypes.c_void_p) -> None:
        wrong = done(status, said)
        assert wrong is None, wrong

    program, decomposed, said = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    status = lib.carbyne_program_new(TEXT, ctypes.c_size_t(len(TEXT)), None, ctypes.byref(program), ctypes.byref(said))
    must(status, said)
    arguments = (program, b"sm_90a", None, None, ctypes.byref(decomposed), ctypes.byref(said))
    must(lib.carbyne_decompose(*arguments), said)
    function = ctypes.c_void_p()
    new = (decomposed, 0, None, ctypes.c_size_t(0), ctypes.byref(function), ctypes.byref(said))
    must(lib.carbyne_function_new(*new), said)

    def call(tensors: list[Tensor], stream: int) -> str | None:
        said = ctypes.c_void_p()
        pointers = (ctypes.POINTER(Tensor) * len(tensors))(*map(ctypes.pointer, tensors))
        count, none = ctypes.c_size_t(len(tensors)), ctypes.c_size_t(0)
        stream = ctypes.c_void_p(stream)
        return done(
            lib.carbyne_function_call(function, pointers, count, None, none, stream, None, ctypes.byref(said)), said
        )

    def product(m: int, n: int, k: int) -> None:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            a = torch.randint(-4, 5, (m, k), device="cuda").half()
            b = torch.randint(-4, 5, (n, k), device="cuda").half().t()
            c = torch.full((m, n), float("nan"), device="cuda", dtype=torch.float16)
            assert (wrong := call([Tensor(a), Tensor(b), Tensor(c)], stream.cuda_stream)) is None, wrong
            stream.synchronize()
            assert torch.equal(c, (a.float() @ b.float()).half())

    product(131, 72, 64)
    failures: list[str] = []

    def many(m: int) -> None:
        try:
            for k in (8, 64, 200):
                product(m, 72, k)
        except Exception as e:
            failures.append(repr(e))

    threads = [threading.Thread(target=many, args=(m,)) for m in (64, 65, 500, 1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    a = torch.zeros((64, 64), device="cuda", dtype=torch.float16)
    c = torch.zeros((64, 64), device="cuda", dtype=torch.float16)
    wrong = {
        "two tensors": call([Tensor(a), Tensor(a)], 0),
        "rank": call([Tensor(a), Tensor(a.t()), Tensor(c.view(8, 8, 64))], 0),
        "device": call([Tensor(a), Tensor(a.t()), Tensor(c, device=1)], 0),
        "overlap": call([Tensor(a), Tensor(a.t()), Tensor(a)], 0),
    }
    for what, said_of_it in wrong.items():
        assert said_of_it is not None, f"{what}: taken"
        print(f"{what}: {said_of_it.strip().splitlines()[0]}")
    torch.cuda.synchronize()
    lib.carbyne_function_free(function)
    lib.carbyne_decomposed_free(decomposed)
    lib.carbyne_program_free(program)
    print(f"{torch.cuda.get_device_name()}: calls by C give what PyTorch gives")


main()
