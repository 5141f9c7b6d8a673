"""Tensor libraries: how to create their tensors, and their current stream.

The Rust part of the package reads tensors through DLPack. DLPack does not define how to create tensors, and before version 1.3 it does
not define the current stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Library:
    """A library with tensors that can only be read and written."""

    #: Whether the tensors are immutable.
    is_read_only = False
    #: Whether the library cannot wait for a stream of another library.
    waits = False

    def stream(self, tensor: Any) -> int:
        """The current stream on a CUDA tensor's device; 0 is the legacy default stream."""
        return 0

    def empty(self, like: Any, kind: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """Creates a tensor on the device of another one. Strides are in elements."""
        name = f"{type(like).__module__}.{type(like).__qualname__}"
        raise TypeError(f"results cannot be made as {name}: give tensors for them")


class _NumPy(Library):
    def empty(self, like: Any, kind: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        # NumPy has no DLPack for types that it does not define itself.
        bits = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
        return _strided(_Aligned, np.dtype(bits.get(kind, kind)), shape, strides)


class _Torch(Library):
    def stream(self, tensor: Any) -> int:
        import torch

        return torch.cuda.current_stream(tensor.device).cuda_stream

    def empty(self, like: Any, kind: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        import torch

        return torch.empty_strided(shape, strides, dtype=getattr(torch, kind), device=like.device)


class _CuPy(Library):
    def stream(self, tensor: Any) -> int:
        import cupy

        return cupy.cuda.get_current_stream(tensor.device.id).ptr

    def empty(self, like: Any, kind: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        import cupy

        with like.device:
            return _strided(cupy, _numpy_type(kind), shape, strides)


class _Jax(Library):
    is_read_only = True
    waits = True

    def empty(self, like: Any, kind: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        import jax

        if strides != _row_major(shape):
            raise TypeError("arrays of JAX are contiguous, and the program states other strides")
        # No other code has seen the array.
        made = jax.numpy.empty(shape, dtype=kind, device=like.device)
        return made.block_until_ready()


_KNOWN: dict[str, type[Library]] = {"cupy": _CuPy, "jaxlib": _Jax, "numpy": _NumPy, "torch": _Torch}


def library(kind: type) -> Library:
    """The library of a tensor type."""
    if issubclass(kind, np.ma.MaskedArray):
        raise TypeError("a masked array has elements without values")
    for base in kind.__mro__:
        if found := _KNOWN.get(base.__module__.partition(".")[0]):
            return found()
    return Library()


def _numpy_type(kind: str) -> np.dtype[Any]:
    try:
        return np.dtype(kind)
    except TypeError:
        pass
    try:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, kind))
    except ImportError:
        # The type of the bits.
        return np.dtype(np.uint16 if kind == "bfloat16" else np.uint8)


class _Aligned:
    """NumPy arrays with an alignment that any program accepts."""

    lib = np.lib

    @staticmethod
    def empty(shape: int | tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        unit = 256
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        memory = np.empty(size + unit, np.uint8)
        begin = -memory.ctypes.data % unit
        return memory[begin : begin + size].view(dtype).reshape(shape)


def _row_major(shape: Sequence[int]) -> tuple[int, ...]:
    strides = [1] * len(shape)
    for i in reversed(range(len(shape) - 1)):
        strides[i] = strides[i + 1] * shape[i + 1]
    return tuple(strides)


def _strided(module: Any, dtype: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    if strides == _row_major(shape):
        return module.empty(shape, dtype)
    last = sum((n - 1) * s for n, s in zip(shape, strides)) if all(shape) else -1
    memory = module.empty(last + 1, dtype)
    steps = tuple(s * dtype.itemsize for s in strides)
    return module.lib.stride_tricks.as_strided(memory, shape, steps)
