"""Operations in TEIR, the Tiled Execution IR, and their programs.

>>> from carbyne import teir
>>> operation = teir.Operation('''
... data_type FP32
... prim_first Zero
... prim_main GEMM
... prim_last ReLU
... M shared 4 1024 0 1024
... K seq 2 32 1024 0
... M prim 16 64 0 64
... N prim 32 0 1 1
... K prim 32 1 32 0
... ''')
>>> "MatMul" in operation.lower().text
True
>>> print(operation.lower(level="kernel").text.splitlines()[-3])
Spec @teir (%in0, %in1) -> (%out) tile=(16,32,32) means {

An :class:`Operation` is read from the short text, from JSON or from a dictionary with the fields of the specification, and checked.
Violations of the specification are an :class:`Error`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ._native import Teir
from ._program import Program

__all__ = ["Error", "Operation", "Violation"]


@dataclass(frozen=True)
class Violation:
    """A violation of the specification, or a reason why no kernel is made."""

    #: Such as `TEIR04`; `carbyne explain TEIR04` says more.
    code: str
    #: The axis and the field, or the line.
    place: str
    found: str
    wanted: str
    #: An action that mends it.
    help: str

    def __str__(self) -> str:
        return f"{self.code} {self.place}: found {self.found}, wanted {self.wanted}"


class Error(ValueError):
    """An operation has violations."""

    #: Violations in the order of the specification.
    violations: tuple[Violation, ...]

    def __init__(self, text: str, violations: str) -> None:
        super().__init__(text)
        self.violations = tuple(Violation(**one) for one in json.loads(violations))

    def __reduce__(self) -> Any:
        return type(self), (self.args[0], json.dumps([vars(one) for one in self.violations]))


class Operation:
    """An operation that follows the specification."""

    def __init__(self, source: str | Mapping[str, Any]) -> None:
        """Reads the short text, JSON, or a dictionary of `schedule` and `primitives`.

        Raises:
            Error: The operation violates the specification.
            TypeError: The source is neither a string nor a mapping.
        """
        if not isinstance(source, (str, Mapping)):
            raise TypeError(f"`source` must be a string or a mapping, not {type(source).__name__}")
        self._native = Teir(source if isinstance(source, str) else json.dumps(source, default=_plain))

    @property
    def text(self) -> str:
        """The short text."""
        return self._native.text()

    def to_dict(self) -> dict[str, Any]:
        """The fields of the specification."""
        found: dict[str, Any] = json.loads(self._native.json())
        return found

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of all elements."""
        return np.dtype("f4" if self.to_dict()["primitives"]["data_type"] == "FP32" else "f8")

    @property
    def spans(self) -> tuple[int, int, int]:
        """Numbers of elements of `in0`, `in1` and `out`, from the first to the last, gaps included. A tensor that no primitive
        uses has none."""
        in0, in1, out = self._native.spans()
        return in0, in1, out

    def lower(self, level: Literal["tile", "kernel"] = "tile", *, pins: bool = True) -> Program:
        """A program that computes the operation.

        Args:
            level: `tile` keeps tiles, loops and blocks of the schedule. `kernel` is a spec that says what is computed:
                `decompose` finds loops and blocks.
            pins: Whether a spec asks for the tile of the schedule, where strategies can have it.

        Raises:
            Error: No kernel suits the operation.
        """
        if level not in ("tile", "kernel"):
            raise ValueError(f"level is {level!r}; write 'tile' or 'kernel'")
        text, _ = self._native.lower(level == "kernel", pins)
        return Program(text)

    def execute(self, in0: np.ndarray[Any, Any], in1: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Executes the operation by the words of the specification, and returns the new output.

        Args:
            in0, in1, out: Arrays of one dimension and of `dtype`, with at least as many elements as `spans` says. `out` is read
                where `prim_first` does not set it.

        Raises:
            Error: An array is too short, or the operation too large.
            TypeError: An argument is no array, or a masked one.
        """
        arrays = []
        for name, array in (("in0", in0), ("in1", in1), ("out", out)):
            if isinstance(array, np.ma.MaskedArray):
                raise TypeError(f"`{name}`: a masked array has elements without values")
            if not isinstance(array, np.ndarray):
                raise TypeError(f"`{name}` must be an array of NumPy, not {type(array).__name__}")
            if array.ndim != 1 or array.dtype != self.dtype:
                raise ValueError(f"{name} is {array.dtype} of {array.ndim} dimensions; pass {self.dtype} of one dimension")
            arrays.append(array.tobytes())
        return np.frombuffer(bytearray(self._native.execute(*arrays)), self.dtype)

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, Operation) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> Any:
        return type(self), (self.text,)

    def __repr__(self) -> str:
        return f"<carbyne.teir.Operation {self.to_dict()['primitives']['prim_main']}>"


def _plain(value: object) -> Any:
    """A mapping or a number of NumPy as JSON has it."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.integer):
        return int(value)
    raise TypeError(f"{type(value).__name__} is neither a mapping, a list, a string nor an integer")
