"""Kernels as Python functions."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, overload

import numpy as np

from .._program import Decomposed, Program
from .._native import Function
from ._trace import (
    Trace,
    Writer,
    check_reads,
    is_tracing,
    line_of,
    needed,
    of_caller,
    parameters,
    place_of,
    text_name,
    traced,
    tracing,
    whole,
)
from ._types import word
from ._values import Value


class Runs:
    """A kernel that is written in Python: a program, and a function of tensors."""

    _function: Callable[..., Any]

    def text(self, *, loc: bool = True) -> str:
        """The kernel in the language of carbyne."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<kernel {self._function.__qualname__}>"

    def __get__(self, instance: object, owner: object = None) -> Any:
        raise TypeError("a kernel is a function, not a method: write it outside of the class")

    @cached_property
    def program(self) -> Program:
        """The kernel as a program. Operations have `loc=` with their line of the Python source, which errors show."""
        return Program(self.text())

    def decompose(self, arch: str, **options: Any) -> Decomposed:
        """Decomposes the program: :meth:`carbyne.Program.decompose`."""
        return self.program.decompose(arch, **options)

    def jit(self, device: str = "cuda", **options: Any) -> Function:
        """The kernel as a function of tensors: :meth:`carbyne.Program.jit`."""
        return self.program.jit(device, **options)

    def as_op(self, name: str, **options: Any) -> Any:
        """The kernel as an operator of PyTorch: :meth:`carbyne.Program.as_op`."""
        return self.program.as_op(name, **options)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Runs the kernel on tensors: in the simulator if the first one is a NumPy or CPU tensor, otherwise on its GPU."""
        given = (*arguments, *keywords.values())
        first = next((x for x in given if hasattr(x, "__dlpack__") or isinstance(x, np.ndarray)), None)
        if first is None:
            raise TypeError(f"`{self._function.__name__}` is called with tensors, and none is given")
        device = "simulate" if _is_on_cpu(first) else _name_of_gpu(first)
        calls: dict[str, Function] = self.__dict__.setdefault("_calls", {})
        if device not in calls:
            calls[device] = self.jit(device)
        return calls[device](*arguments, **{text_name(name): value for name, value in keywords.items()})


class Kernel(Runs):
    """A kernel whose meaning a Python function computes; :func:`kernel` creates it."""

    def __init__(self, function: Callable[..., Any], pins: Mapping[str, str], around: Mapping[str, Any]) -> None:
        check_function(function)
        functools.update_wrapper(self, function)
        self._function = function
        self._inputs, self._outputs = parameters(function, around)
        self._pins = dict(pins)

    def text(self, *, loc: bool = True) -> str:
        """The kernel in the language of carbyne, as `carbyne fmt` prints it. `loc=False` omits the lines of the Python
        source."""
        inputs, outputs, name = self._inputs, self._outputs, self._function.__name__
        with tracing() as trace:
            arguments = {n: of_caller(trace, n, of) for n, of in inputs.items()}
            lines = self.meaning(trace, arguments, loc)
            check_arguments(name, arguments, lines)
        head = f"Spec @{name} ({_names(inputs)}) -> ({_names(outputs)}){pins(self._pins)} means {{"
        return whole(trace, {**inputs, **outputs}, [], [head, *lines, "}"], place_of(self._function))

    def meaning(self, trace: Trace, arguments: Mapping[str, Value], loc: bool) -> list[str]:
        """The statements of the `means` block."""
        outputs = list(self._outputs)
        trace.results = {n: of_caller(trace, n, of) for n, of in self._outputs.items()}
        result, variables = traced(self._function, list(arguments.values()))
        results = _results(self._function.__name__, result, outputs)
        check_reads(trace, arguments, results)
        # A computed tensor takes the name of the first result that returns it; further results are copies.
        own = {id(v): output for output, v in reversed([*zip(outputs, results)]) if v.function}
        writer = Writer(trace, variables, own, {*arguments, *outputs}, loc)
        writer.block(trace.items, needed(results))
        for value, output in zip(results, outputs):
            if value is arguments.get(output):
                raise TypeError(f"`{self._function.__name__}` returns `{output}` as it is: leave it out of the results")
            if own.get(id(value)) != output:
                writer.lines.append(line_of(f"%{output} = move({writer.called(value)})", value.place))
                writer.replaced.add(output)
        return writer.lines

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Runs the kernel on tensors: in the simulator if the first one is a NumPy or CPU tensor, otherwise on its GPU."""
        if is_tracing() and any(isinstance(x, Value) for x in (*arguments, *keywords.values())):
            name = self._function.__name__
            raise TypeError(
                f"`{name}` is a kernel and has sizes of its own: write what kernels share as a function without "
                "`@carbyne.kernel`"
            )
        return super().__call__(*arguments, **keywords)


@overload
def kernel(function: Callable[..., Any], /) -> Kernel: ...
@overload
def kernel(**pins: str) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(function: Any = None, /, **pins: Any) -> Any:
    """Creates a kernel from a function that computes tensors from tensors.

    The function runs once, with traced tensors. Its operations on them are the meaning of the kernel, for which
    `decompose` finds tiles, threads and instructions. Annotations are types of tensors. Keywords are pins, such as
    `by="@ring[BM=128]"`.

    >>> import carbyne, numpy as np
    >>> from carbyne.language import assume, exp, f32, symbols
    >>> M, N = symbols("M N", M=4096, N=1024)
    >>> @carbyne.kernel
    ... def softmax(X: f32[M, N]) -> f32[M, N]:
    ...     assume(N > 0, N <= 4096)
    ...     e = exp(X - X.max(axis=1))
    ...     return e / e.sum(axis=1)
    >>> print(softmax.text(loc=False))
    carbyne 2
    <BLANKLINE>
    sym M, N where N > 0, N <= 4096 typical M=4096, N=1024
    <BLANKLINE>
    %X:[M,N].f32.GL
    %out:[M,N].f32.GL
    <BLANKLINE>
    Spec @softmax (%X) -> (%out) means {
      %e = exp(%X - max(%X, axis=1))
      %out = %e / sum(%e, axis=1)
    }
    <BLANKLINE>
    >>> softmax(np.zeros((2, 4), np.float32))[0].tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    around = sys._getframe(1).f_locals
    return Kernel(function, pins, around) if function is not None else lambda of: Kernel(of, pins, around)


def check_arguments(name: str, arguments: Iterable[str], meaning: Iterable[str]) -> None:
    """Refuses arguments that the meaning does not read, because a decomposed kernel may be called without them."""
    read = set(re.findall(r"%(\w+)", "\n".join(line.partition(" = ")[2] for line in meaning)))
    for argument in arguments:
        if argument not in read:
            raise TypeError(f"`{name}` does not read `{argument}`: leave it out of the arguments")


def pins(values: Mapping[str, object]) -> str:
    """Attributes of a kernel."""
    return "".join(f" {key}={word(value)}" for key, value in values.items())


def check_function(function: Any) -> None:
    """Refuses a function that cannot be traced, or whose name is not valid in a text."""
    if not hasattr(function, "__code__"):
        raise TypeError(f"a kernel is made of a function, not of {function!r}")
    name = function.__name__
    if not (name.isascii() and name.isidentifier()):
        raise ValueError(f"`{name}` cannot name a kernel: give the function a name of letters, digits and `_`")


def _results(name: str, result: Any, outputs: list[str]) -> list[Value]:
    if isinstance(result, Mapping):
        if set(result) != set(outputs):
            raise TypeError(f"`{name}` returns {', '.join(map(str, result))}; its results are {', '.join(outputs)}")
        all = [result[output] for output in outputs]
    else:
        all = list(result) if isinstance(result, tuple) else [result]
    if len(all) != len(outputs):
        raise TypeError(f"`{name}` returns {len(all)} results, and {len(outputs)} types of results are given")
    for value in all:
        if not isinstance(value, Value):
            raise TypeError(f"`{name}` returns {value!r}, which is no traced tensor")
    return all


def _names(tensors: Mapping[str, Any]) -> str:
    return ", ".join(f"%{name}" for name in tensors)


def _name_of_gpu(tensor: Any) -> str:
    """The name of a tensor's GPU in PyTorch."""
    number = getattr(tensor, "__dlpack_device__", lambda: (0, 0))()[1]
    return f"cuda:{number}"


def _is_on_cpu(tensor: Any) -> bool:
    device = getattr(tensor, "device", None)
    return isinstance(tensor, np.ndarray) or getattr(device, "type", device) == "cpu"
