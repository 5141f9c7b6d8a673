"""Programs, and what they are decomposed to."""

from __future__ import annotations

import html
import importlib.util
import io
import json
import operator
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from . import _native, cache
from ._native import Function
from ._diagnostics import Diagnostic, diagnostics


#: Types of NumPy by those of carbyne, as far as NumPy has them.
_TYPES = {
    "f64": "f8", "f32": "f4", "tf32": "f4", "f16": "f2", "bool": "?",
    "i64": "i8", "i32": "i4", "i16": "i2", "i8": "i1", "u64": "u8", "u32": "u4", "u16": "u2", "u8": "u1",
}  # fmt: skip

#: Bytes of a text that is not refused for its length.
_MAX_BYTES = 1 << 21


@dataclass(frozen=True)
class Tensor:
    """A tensor of the caller. A number has no extents."""

    #: Without `%`.
    name: str
    #: Such as `f16`.
    scalar: str
    #: Extents as texts: numbers, or expressions of the program's symbols.
    extents: tuple[str, ...]
    #: Whether a kernel writes it.
    is_output: bool


class Run(Mapping[str, np.ndarray]):
    """Tensors after a simulation, by name: outputs and inputs. `kernels` has the report.

    A tensor is missing if some of its elements are undefined, as where only some blocks ran. Arrays of `bf16` hold its bits as
    `uint16`, arrays of 8-bit floats theirs as `uint8`.
    """

    #: What each kernel did, as `carbyne simulate --message-format json` prints it: blocks, differences, bank conflicts.
    kernels: list[dict[str, Any]]

    def __init__(self, outputs: Mapping[str, bytes], report: str) -> None:
        self._arrays = {name: _from_npy(data) for name, data in outputs.items()}
        self.kernels = json.loads(report)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}: {a.dtype}{list(a.shape)}" for name, a in self._arrays.items())
        return f"<Run {shapes}>"


class Program:
    """A text that is well formed. An :class:`Error` says what is wrong with one that is not.

    >>> import carbyne, numpy as np
    >>> double = carbyne.Program('''
    ... carbyne 2
    ... %A:[1024].f32.GL
    ... %B:[1024].f32.GL
    ... BinaryPointwise.add @double (%A, %A) -> (%B)
    ... ''')
    >>> double.kernels
    ['double']
    >>> run = double.simulate(A=np.arange(1024, dtype=np.float32))
    >>> run["B"][:4].tolist()
    [0.0, 2.0, 4.0, 6.0]
    """

    def __init__(self, text: str, path: str | PathLike[str] | None = None) -> None:
        """Reads a text. `path` is the file that it comes from: it may import files of that folder and below."""
        self._native = _native.Program(text, path)
        self._path = path

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Program:
        """Reads a file."""
        return cls(_read(path), path)

    @property
    def text(self) -> str:
        """The text as it was given."""
        return self._native.text

    @property
    def kernels(self) -> list[str]:
        """Names of kernels in the order of the text; empty for one without a name."""
        return self._native.kernels

    @property
    def symbols(self) -> list[str]:
        """Names of sizes that are known at launch."""
        return self._native.symbols

    @property
    def tensors(self) -> list[Tensor]:
        """The caller's tensors, in the order of the text."""
        return [
            Tensor(t["name"], t["scalar"], tuple(t["extents"]), t["is_output"])
            for t in json.loads(self._native.tensors)
        ]

    def fmt(self) -> str:
        """The text in its canonical form, as `carbyne fmt` writes it."""
        return self._native.formatted()

    def check(self, arch: str | None = None) -> list[dict[str, Any]]:
        """Proves the order of accesses of kernels that name their instructions, for all sizes.

        Returns the pairs of accesses of each kernel and what orders them, as `carbyne check --pairs --message-format json`
        prints them. Without `arch` the oldest architecture is taken that has all instructions. Accesses that are not ordered are an
        :class:`Error`; :attr:`warnings` of the result are what could not be decided.
        """
        pairs, warnings = self._native.check(arch)
        return Pairs(map(json.loads, pairs), diagnostics(warnings))

    def decompose(
        self,
        arch: str,
        *,
        forbid: str | Sequence[str] = (),
        strategies: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
        top: int | None = None,
        budget: int | None = None,
        sms: int | None = None,
        exhaustive: bool = False,
    ) -> Decomposed:
        """Finds layouts, instructions and synchronization for an architecture, and proves the order of accesses.

        :param arch: such as `sm_80`, `sm_90a`; :func:`architectures` lists all.
        :param forbid: names of instructions that may not be used; `*` stands for any characters.
        :param strategies: files of strategies that are tried beside carbyne's own.
        :param top: how many of the best solutions to keep.
        :param budget: how many nodes of a search are looked at.
        :param sms: multiprocessors of the card, if it is not the usual one of the architecture.
        :param exhaustive: looks at every solution.
        """
        files = [strategies] if isinstance(strategies, (str, bytes, PathLike)) else strategies
        texts = [(str(path), _read(path)) for path in files]
        names = [forbid] if isinstance(forbid, str) else list(forbid)
        numbers = (_count("top", top, 1), _count("budget", budget, 0), _count("sms", sms, 1))
        found = self._native.decompose(arch, names, texts, *numbers, exhaustive)
        return Decomposed(found)

    def jit(
        self, device: str = "cuda", *, arch: str | None = None, sms: int | None = None, **options: Any
    ) -> Function:
        """The kernels as a function of tensors. They are decomposed, compiled by NVRTC and loaded here, not at the first call.

        Machine code is kept on disk: see :mod:`carbyne.cache`.

        >>> import carbyne, numpy as np
        >>> twice = carbyne.Program('''
        ... carbyne 2
        ... sym N where N >= 1
        ... %A:[N].f32.GL
        ... %B:[N].f32.GL
        ... BinaryPointwise.add @twice (%A, %A) -> (%B)
        ... ''').jit("simulate")
        >>> twice
        <Function f(A, [B]) on simulate>
        >>> twice(np.ones(3, np.float32))
        array([2., 2., 2.], dtype=float32)

        :param device: `cuda`, or `cuda:1` and so on; `simulate` for the simulator, which takes tensors of the CPU and finds races.
        :param arch: the GPU's own architecture if none is given, for the simulator `sm_80`.
        :param sms: the GPU's own number of multiprocessors if none is given.
        :param options: those of :meth:`decompose`.
        """
        if (number := _gpu(device)) is not None:
            name, own, multiprocessors = _native.gpu(number)
            if (arch := arch or own) is None:
                raise ValueError(f"no architecture is known whose code {name} runs")
            sms = sms or multiprocessors
        return self.decompose(arch or "sm_80", sms=sms, **options).jit(device)

    def simulate(
        self,
        arrays: Mapping[str, Any] | None = None,
        /,
        *,
        arch: str | None = None,
        symbols: Mapping[str, int] | None = None,
        blocks: int | None = None,
        schedule: int | None = None,
        seed: int = 0,
        budget: int | None = None,
        **named: Any,
    ) -> Run:
        """Executes the program on the CPU, and compares its outputs with its meaning.

        A kernel whose body is open (D0305) is decomposed first: see :meth:`Decomposed.simulate`.

        Arrays are given by the names of tensors, in one mapping or as keywords; other tensors are drawn by `seed`. A race, a read
        of undefined elements or a difference that rounding does not explain is an :class:`Error`.

        :param symbols: values of sizes that are known at launch.
        :param blocks: how many blocks of each kernel run, one at least; all of them if none is given.
        :param schedule: draws another order of warps and asynchronous copies.
        :param budget: steps of a kernel, some eight nanoseconds each, and fewer than 2^31.
        """
        given = dict(arrays or {})
        if twice := given.keys() & named.keys():
            raise TypeError(f"`%{min(twice)}` is given twice")
        given.update(named)
        tensors = {tensor.name: tensor for tensor in self.tensors}
        data = {name: _to_npy(name, array, tensors.get(name)) for name, array in given.items()}
        sizes = {name: _number(f"symbols[{name!r}]", n) for name, n in (symbols or {}).items()}
        if unknown := sizes.keys() - set(self.symbols):
            known = ", ".join(self.symbols) or "none"
            raise ValueError(f"the program has no symbol `{min(unknown)}`; its symbols: {known}")
        numbers = (
            _count("blocks", blocks, 1),
            _count("schedule", schedule, 0),
            _count("seed", seed, 0),
            _count("budget", budget, 0),
        )
        return Run(*self._native.simulate(arch, data, sizes, *numbers))

    def __reduce__(self) -> tuple[object, ...]:
        return Program, (self.text, self._path)

    def __deepcopy__(self, memo: object) -> Program:
        return self  # It does not change.

    def __repr__(self) -> str:
        return f"<Program of {', '.join(f'@{k}' for k in self.kernels) or 'no kernel'}>"

    def _repr_html_(self) -> str:
        return _pre(self.text)


class Pairs(list):  # type: ignore[type-arg]
    """Pairs of accesses of each kernel."""

    #: What could not be decided.
    warnings: tuple[Diagnostic, ...]

    def __init__(self, pairs: Iterator[dict[str, Any]], warnings: tuple[Diagnostic, ...]) -> None:
        super().__init__(pairs)
        self.warnings = warnings


class Decomposed:
    """A program in which every statement names its instruction. The order of its accesses is proved."""

    def __init__(self, found: _native.Decomposed) -> None:
        self._native = found

    @property
    def text(self) -> str:
        """The decomposed program: read it, edit it, and read it again by :class:`Program`."""
        return self._native.text

    @property
    def arch(self) -> str:
        """The architecture that it is for."""
        return self._native.arch

    @property
    def kernels(self) -> list[str]:
        """Names of kernels in the order in which they are launched."""
        return self._native.kernels

    @cached_property
    def document(self) -> dict[str, Any]:
        """The choices and why they are right, as `carbyne decompose --emit json` prints them."""
        return json.loads(self._native.document())

    @property
    def certificates(self) -> list[dict[str, Any]]:
        """For each operation the instruction, and the relation of layouts that makes it right."""
        return self.document["certificates"]

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What may not be as wanted. Places are those of the text that was decomposed."""
        return diagnostics(self._native.warnings)

    @property
    def program(self) -> Program:
        """The decomposed text as a program."""
        return Program(self.text)

    def cuda(self, name: str = "carbyne", *, tvm_ffi: bool = False) -> str:
        """A file of CUDA C++ for nvcc or NVRTC: all kernels, and functions of the host.

        `{name}_launch` launches the kernels in their order, `{name}_workspace_bytes` says how large its workspace is.

        :param tvm_ffi: adds a function of tvm-ffi, `__tvm_ffi_{name}`, which checks tensors and launches the kernels on them.
        """
        return self._native.cuda(name, tvm_ffi)

    def abi(self) -> dict[str, Any]:
        """Tensors, parameters, grids and workspace for a launcher, as `carbyne compile --emit abi` prints it."""
        return json.loads(self._native.abi())

    def compile(self, emit: str = "cubin") -> bytes:
        """Compiles the kernels by NVRTC, to `cubin` or `ptx`.

        NVRTC is looked for where `CARBYNE_NVRTC` says, in NVIDIA's packages of Python, and in CUDA toolkits.
        """
        if emit not in ("cubin", "ptx"):
            raise ValueError(f"emit is `cubin` or `ptx`, not {emit!r}")
        _find_nvrtc()
        return self._native.compile(emit)

    def jit(self, device: str = "cuda") -> Function:
        """The kernels as a function of tensors: see :meth:`Program.jit`."""
        number = _gpu(device)
        if number is None:
            return self._native.function(self, None)
        _find_nvrtc()
        version = _native.nvrtc_version()
        parts = (_native.__version__, self.arch, repr(version), self._native.source())
        code = cache.fetch(parts, lambda: self._native.compile("cubin"))
        return self._native.function(self, (code, number))

    def simulate(self, arrays: Mapping[str, Any] | None = None, /, **options: Any) -> Run:
        """Executes the decomposed program: see :meth:`Program.simulate`."""
        return self.program.simulate(arrays, arch=self.arch, **options)

    def __deepcopy__(self, memo: object) -> Decomposed:
        return self  # It does not change.

    def __repr__(self) -> str:
        return f"<Decomposed {', '.join(f'@{k}' for k in self.kernels)} for {self.arch}>"

    def _repr_html_(self) -> str:
        return _pre(self.text)


def _gpu(device: str) -> int | None:
    """The number of a GPU; none for the simulator."""
    if device == "simulate":
        return None
    if found := re.fullmatch(r"cuda(?::(\d{1,9}))?", str(device)):
        return int(found[1] or 0)
    raise ValueError(f"device is `cuda`, `cuda:NUMBER` or `simulate`, not {device!r}")


def _read(path: str | PathLike[str]) -> str:
    """A file's text; of one that is too long, enough to be refused."""
    with open(os.fspath(path), "rb") as file:
        return file.read(_MAX_BYTES + 1).decode()


def _number(name: str, value: Any) -> int:
    """A number of 64 bits."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"`{name}` is no integer: {value!r}") from None
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"`{name}` does not fit 64 bits: {number}")
    return number


def _count(name: str, value: Any, least: int) -> int | None:
    """A number that may be left out."""
    if value is None:
        return None
    number = _number(name, value)
    if not least <= number < 1 << 31:
        raise ValueError(f"`{name}` is {number}, and is to be from {least} to {(1 << 31) - 1}")
    return number


def _to_npy(name: str, array: Any, tensor: Tensor | None) -> bytes:
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"`%{name}`: a masked array has elements without values")
    # A number of Python has no type of its own.
    has_type = tensor is None or isinstance(array, np.generic) or not isinstance(array, (int, float))
    data = np.asarray(array, dtype=None if has_type else _TYPES.get(tensor.scalar))
    if data.dtype.hasobject or data.dtype.kind in "SU" or data.dtype.fields:
        raise TypeError(f"`%{name}`: an array of {data.dtype} holds no numbers")
    # An array that does not fit is not copied.
    extents = tensor.extents if tensor is not None else ()
    if tensor is None or (
        all(e.isdecimal() for e in extents) and data.shape != tuple(map(int, extents))
    ):
        what = f"has the extents {list(map(int, extents))}" if tensor else "is no tensor of the program"
        raise ValueError(f"`%{name}` {what}, the array has the shape {data.shape}")
    # Types that NumPy does not have itself, such as ml_dtypes.bfloat16, are given by their bits.
    if data.dtype.kind == "V" and data.dtype.itemsize in (1, 2):
        data = data.view(np.uint8 if data.dtype.itemsize == 1 else np.uint16)
    out = io.BytesIO()
    np.save(out, data.astype(data.dtype.newbyteorder("<"), copy=False), allow_pickle=False)
    return out.getvalue()


def _from_npy(data: bytes) -> np.ndarray:
    return np.load(io.BytesIO(data), allow_pickle=False)


def _find_nvrtc() -> None:
    """Names the NVRTC of NVIDIA's packages of Python, unless another one is named."""
    package = importlib.util.find_spec("nvidia")
    if "CARBYNE_NVRTC" in os.environ or package is None:
        return
    folders = [Path(folder) for folder in package.submodule_search_locations or ()]
    found = sorted(path for folder in folders for path in folder.glob("*/lib/libnvrtc.so.*"))
    if found:
        os.environ["CARBYNE_NVRTC"] = str(found[-1])


def _pre(text: str) -> str:
    return f"<pre>{html.escape(text)}</pre>"
