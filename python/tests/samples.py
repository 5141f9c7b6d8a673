"""Programs, arrays and DLPack tensors that several tests use."""

import contextlib
import ctypes
import io
import os
import re
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
GEMM = """\
carbyne 2
%A:[64,32].f16.GL
%B:[32,64].f16.GL
%C:[64,64].f16.GL
MatMul.set @gemm (%A, %B) -> (%C) acc=f32
"""
GEMM_ANY = """\
carbyne 2
sym M, N, K where M >= 0, M <= 4096, N >= 0, N <= 4096, K >= 0, K <= 4096, K % 8 == 0
%A:[M,K].f16.GL
%B:[(K,N):(1,K)].f16.GL
%C:[M,N].f16.GL
MatMul.set @gemm (%A, %B) -> (%C) acc=f32
"""
TWICE = """\
carbyne 2
sym N where N >= 1
%A:[N].f32.GL
%B:[N].f32.GL
BinaryPointwise.add @twice (%A, %A) -> (%B)
"""
SCALED = """\
carbyne 2
%A:[64,64].f32.GL
%alpha:[].f32
%B:[64,64].f32.GL
Spec @scaled (%A, %alpha) -> (%B) means {
  %B = %A * %alpha
}
"""


def run_page(page: str) -> dict[str, Any]:
    """Runs the examples of a page in one namespace, and returns it. A text block directly after an example is its output.

    `BLESS=1` writes the outputs.
    """
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "page"}

    def run(example: re.Match[str]) -> str:
        code, output = example.groups()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), names)
        return example[0] if output is None else f"```python\n{code}```\n\n```text\n{printed.getvalue()}```"

    fresh = re.sub(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", run, text, flags=re.DOTALL)
    assert len(names) > 1
    if os.environ.get("BLESS") == "1":
        path.write_text(fresh, encoding="utf-8")
    else:
        assert fresh.splitlines() == text.splitlines(), f"`BLESS=1 cargo xtask ci python` writes the outputs of {page}"
    return names


def at_once(call: Callable[[Any], object], arguments: Iterable[Any]) -> None:
    """Calls a function with each argument in parallel threads."""
    threads = [threading.Thread(target=call, args=(one,)) for one in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def aligned(*shape: int, dtype: type = np.float16) -> np.ndarray:
    """An array of zeros at a multiple of 64 bytes."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 64, np.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin : begin + size].view(dtype).reshape(shape)


class Managed(ctypes.Structure):
    """`DLManagedTensor`"""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


class Described:
    """A float tensor for DLPack: an array that claims any device, with replaced fields of its description."""

    def __init__(self, array: np.ndarray, device: tuple[int, int] = (1, 0), **fields: object) -> None:
        self.array, self.device = array, device
        numbers = ctypes.c_int64 * array.ndim
        strides = numbers(*(s // array.itemsize for s in array.strides))
        self.tensor = Managed(
            array.ctypes.data, device, array.ndim, 2, array.itemsize * 8, 1, numbers(*array.shape), strides, 0, None, None
        )
        for name, value in fields.items():
            setattr(self.tensor, name, value)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **_: object) -> object:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)
