"""Bodies of kernels that are written in Python: tiles, loops, threads and statements of the language."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Union

from ._kernel import Kernel, Runs, check_function
from ._sizes import Condition, Extent, Size, Symbols, check_name, literal, symbols_of, text_of
from ._trace import Statement, Trace, Writer, named, needed, of_caller, parameters, traced, tracing, whole
from ._types import Scalar, TensorType
from ._values import Value, index_of


class Threads:
    """Threads of a block, or blocks of a grid. Indices and ranges choose some: `threads[0:32]`."""

    __slots__ = ("text", "sizes")

    def __init__(self, text: str, sizes: Sequence[Extent] = ()) -> None:
        #: The threads as the language writes them.
        self.text = text
        #: Sizes in the text.
        self.sizes = tuple(sizes)

    def __repr__(self) -> str:
        return f"Threads({self.text!r})"

    def __getitem__(self, index: Any) -> Threads:
        sizes: list[Extent] = []
        picks = [index_of(pick, sizes) for pick in (index if isinstance(index, tuple) else (index,))]
        return self._view(f"[{', '.join(picks)}]", sizes)

    def tile(self, sizes: Sequence[Extent]) -> Threads:
        """Groups of so many threads, such as warps: `threads.tile([32])`."""
        return self._view(f".tile([{','.join(map(text_of, sizes))}])", sizes)

    def scalar(self) -> Threads:
        """Each thread for itself."""
        return self._view(".scalar()", ())

    def elect(self) -> Threads:
        """One thread of them."""
        return self._view(".elect()", ())

    def reshape(self, shape: Sequence[Extent], steps: Sequence[Extent]) -> Threads:
        """The same threads under other coordinates."""
        text = f".reshape([{','.join(map(text_of, shape))}]:[{','.join(map(text_of, steps))}])"
        return self._view(text, (*shape, *steps))

    def _view(self, text: str, sizes: Sequence[Extent]) -> Threads:
        return Threads(self.text + text, (*self.sizes, *sizes))


class New:
    """A tensor that a statement declares. Parts of its type that are left out follow from the statement."""

    def __init__(self, type: TensorType | None = None, memory: str = "", **attributes: object) -> None:
        self.type = type
        self.memory = memory
        self.attributes = attributes

    @property
    def symbols(self) -> Symbols:
        """Symbols in its type."""
        return {} if self.type is None else self.type.symbols

    def text(self) -> str:
        """What stands behind the name."""
        if self.type is None and not self.memory:
            return ""
        attributes = [_attribute(key, value) for key, value in self.attributes.items() if value is not False]
        of = self.memory if self.type is None else self.type.text(self.memory)
        return f":{of}" + (f"{{{', '.join(attributes)}}}" if attributes else "")


#: The memory of a tensor that is declared, its type, or more of it.
Declared = Union[str, TensorType, New, None]

#: Where a statement writes: a view, or a tensor that it declares.
Output = Union[Value, Declared]


class Builder:
    """Writes the body of a kernel: each method is a statement of the language, in the order of calls.

    `b[name]` is a tensor of the kernel's results. `view[...] = value` and `view[i, j] = value` store.
    """

    def __init__(self, trace: Trace, results: Mapping[str, Value], at: Sequence[Size]) -> None:
        self._trace = trace
        self._results = results
        #: The coordinates of the block, in the order of `grid`, and those of the thread if `threads` names them.
        self.at = tuple(at)
        #: All threads of a block.
        self.threads = Threads("#cta")
        #: All blocks of the grid.
        self.blocks = Threads("#grid")

    def __getitem__(self, name: str) -> Value:
        if name not in self._results:
            raise KeyError(f"there is no result `{name}`; there are {', '.join(self._results)}")
        return self._results[name]

    # ---- Tensors

    def tensor(self, type: TensorType, value: float, memory: str = "") -> Value:
        """A tensor whose elements are all a number: `%c:[64,64].f32 = 0`."""
        if not isinstance(type, TensorType):
            raise TypeError(f"a tensor has a type such as `f32[64, 64]`, not {type!r}")
        new = New(type, memory)
        (out,) = self._outputs([new])
        self._write([out, new.text(), f" = {literal(value)}"], [out])
        return out

    def allocate(self, type: TensorType, memory: str, **attributes: object) -> Value:
        """A tensor that nothing is written to yet. Attributes are those of types: `swizzle=(3, 4, 3)`, `align=128`, `open=True`."""
        if not isinstance(type, TensorType):
            raise TypeError(f"a tensor has a type such as `f32[64, 64]`, not {type!r}")
        new = New(type, memory, **attributes)
        (out,) = self._outputs([new])
        self._write(["Allocate ", out, new.text()], [out])
        return out

    def let(self, **values: Extent) -> Any:
        """Names for numbers: `i, j = b.let(i=t // N, j=t % N)`. Returns one size, or a tuple of several."""
        text = ", ".join(f"{check_name(name, 'a number')} = {text_of(value)}" for name, value in values.items())
        self._write([f"let {text}"], sizes=list(values.values()))
        sizes = tuple(map(self._trace.local, values))
        return sizes[0] if len(sizes) == 1 else sizes

    def number(self, name: str, element: Value) -> Size:
        """An element of a tensor of integers as a number, of indices and bounds."""
        self._write([f"@{check_name(name, 'a number')} = ", element])
        return self._trace.local(f"@{name}")

    # ---- Specs

    def spec(
        self, kind: str, inputs: Sequence[Any], outputs: Sequence[Output], *, on: Threads | None = None, **attributes: Any
    ) -> Any:
        """A spec of any kind, such as `Reduction.sum`. Returns the tensor that it declares, or a tuple of several, or None."""
        head, declared = self._head(kind, inputs, outputs, on, attributes)
        self._write(head, declared)
        return declared[0] if len(declared) == 1 else tuple(declared) or None

    @contextmanager
    def body(
        self, inputs: Sequence[Any], outputs: Sequence[Output], *, kind: str = "Spec", on: Threads | None = None, **attributes: Any
    ) -> Iterator[Any]:
        """A spec with statements of its own."""
        head, declared = self._head(kind, inputs, outputs, on, attributes)
        with self._block(head, declared):
            yield declared[0] if len(declared) == 1 else tuple(declared) or None

    def move(self, source: Value, to: Output = None, *, on: Threads | None = None, **attributes: Any) -> Any:
        """Copies a tensor into a view, or into a new tensor: in registers, in a memory such as `"SH"`, or of a type."""
        return self.spec("Move", [source], [to], on=on, **attributes)

    def matmul(self, a: Value, b: Value, c: Output, *, on: Threads | None = None, **attributes: Any) -> Any:
        """Adds a product of matrices to `c`."""
        return self.spec("MatMul", [a, b], [c], on=on, **attributes)

    # ---- Control

    @contextmanager
    def loop(
        self, name: str, end: Extent, *, start: Extent = 0, step: Extent = 1, stages: int | None = None, unroll: bool | None = None
    ) -> Iterator[Size]:
        """A loop. So many iterations as `stages` says may be under way."""
        check_name(name, "a loop's variable")
        sizes = (start, end, step)
        begins, ends, steps = map(text_of, sizes)
        head = f"for ({name} = {begins}; {name} < {ends}; {name} += {steps})"
        head += "" if unroll is None else " unroll" if unroll else " nounroll"
        head += "" if stages is None else f" stages={stages}"
        with self._block([head], [], sizes=sizes):
            yield self._trace.local(name)

    @contextmanager
    def when(self, *conditions: Condition) -> Iterator[None]:
        """Statements that are executed if all conditions hold."""
        for condition in conditions:
            if not isinstance(condition, Condition):
                raise TypeError(f"`when` compares sizes, such as `k < 4`; found {condition!r}: elements are chosen by `where`")
            self._trace.uses(condition.symbols)
        if not conditions:
            raise TypeError("`when` needs a condition, such as `k < 4`")
        text = " && ".join(condition.text for condition in conditions)
        with self._block([f"if ({text})"], []):
            yield

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """Statements that are executed if the conditions of the `when` before do not hold."""
        before = next((item for item in reversed(self._trace.items) if isinstance(item, Statement)), None)
        if before is None or before.body is None or not str(before.parts[0]).startswith("if ("):
            raise RuntimeError("`otherwise` stands behind a `when`")
        with self._block(["else"], []):
            yield

    # ---- Threads

    def group(self, name: str, threads: Threads) -> Threads:
        """A name for threads: `#warps = #cta.tile([32])`."""
        check_name(name, "a group")
        self._write([f"#{name} = {_threads(threads).text}"], sizes=threads.sizes)
        return Threads(f"#{name}")

    def indices(self, names: str, threads: Threads) -> Any:
        """The coordinates of the thread that executes the statement: one, or a tuple of several."""
        all = [check_name(name, "a coordinate") for name in names.replace(",", " ").split()]
        text = f"{', '.join(f'@{name}' for name in all)} = {_threads(threads).text}.indices()"
        self._write([text], sizes=threads.sizes)
        sizes = tuple(self._trace.local(f"@{name}") for name in all)
        return sizes[0] if len(sizes) == 1 else sizes

    def barrier(self, threads: Threads | None = None) -> None:
        """All threads wait for each other, those of the block or of a group."""
        if threads is None:
            self._write(["barrier"])
        else:
            self._write([f"barrier({_threads(threads).text})"], sizes=threads.sizes)

    def sync(self, operation: str, *arguments: Value | Extent) -> None:
        """A statement of synchronization, such as `sync("mbarrier.wait", full[s], parity)`."""
        parts: list[str | Value] = [operation]
        for i, argument in enumerate(arguments):
            parts += [", " if i else "(", argument if isinstance(argument, Value) else text_of(argument)]
        self._write([*parts, ")"] if arguments else parts, sizes=arguments)

    # ---- Statements

    def _outputs(self, outputs: Sequence[Output]) -> list[Value]:
        for output in outputs:
            if not isinstance(output, Value):
                self._trace.uses(_new(output).symbols)
        return [o if isinstance(o, Value) else Value(self._trace, "") for o in outputs]

    def _head(
        self, kind: str, inputs: Sequence[Any], outputs: Sequence[Output], on: Threads | None, attributes: Mapping[str, Any]
    ) -> tuple[list[str | Value], list[Value]]:
        if on is not None:
            _threads(on)
        out = self._outputs(outputs)
        self._trace.uses(symbols_of((*inputs, *attributes.values(), *(on.sizes if on else ()))))
        parts: list[str | Value] = [kind, f" <<<{on.text}>>>" if on else "", " ("]
        for i, operand in enumerate(inputs):
            text = operand if isinstance(operand, Value) else text_of(operand) if isinstance(operand, Size) else literal(operand)
            parts += [", " if i else "", text]
        parts.append(") -> (")
        for i, (value, of) in enumerate(zip(out, outputs)):
            parts += [", " if i else "", value, "" if isinstance(of, Value) else _new(of).text()]
        parts.append(")")
        for key, value in attributes.items():
            parts += [f" {key}=", value if isinstance(value, Value) else _word(value)]
        declared = [v for v, of in zip(out, outputs) if not isinstance(of, Value)]
        return parts, declared

    def _write(self, parts: Sequence[str | Value], declares: Sequence[Value] = (), sizes: Sequence[object] = ()) -> Statement:
        self._trace.uses(symbols_of(tuple(sizes)))
        statement = Statement(list(parts), list(declares))
        self._trace.add(statement)
        return statement

    @contextmanager
    def _block(
        self, parts: Sequence[str | Value], declares: Sequence[Value], sizes: Sequence[object] = ()
    ) -> Iterator[None]:
        statement = self._write(parts, declares, sizes)
        outside, inside = self._trace.items, []
        statement.body = self._trace.items = inside
        self._trace.scopes.append({})
        yield
        # After an exception nothing is written.
        if self._trace.items is not inside:
            raise RuntimeError("blocks of `with` end in another order than they begin")
        self._trace.items = outside
        self._trace.scopes.pop()


class Tile(Runs):
    """A kernel whose body is written in Python, made by :func:`tile`."""

    def __init__(
        self, function: Callable[..., Any], around: Mapping[str, Any], kind: str, grid: Mapping[str, Extent],
        threads: Extent | Mapping[str, Extent] | None, means: Kernel | None, attributes: Mapping[str, Any],
    ) -> None:  # fmt: skip
        check_function(function)
        functools.update_wrapper(self, function)
        self._function = function
        self._inputs, self._outputs = parameters(function, around, skipped=1, in_place=True)
        if not isinstance(grid, Mapping):
            raise TypeError(f"`grid` is a mapping of names to extents, not {grid!r}")
        if means is not None and not isinstance(means, Kernel):
            raise TypeError(f"`means` is a kernel of `@carbyne.kernel`, not {means!r}")
        for name in (*grid, *(threads if isinstance(threads, Mapping) else ())):
            check_name(name, "a coordinate")
        first = next(iter(inspect.signature(function).parameters), None)
        if first is None or first in function.__annotations__:
            raise TypeError(f"`{function.__name__}`: the first parameter is the builder of the body, without a type")
        if means is not None and (list(means._inputs.items()), means._outputs) != (list(self._inputs.items()), self._outputs):
            raise TypeError(f"`{function.__name__}`: `means` has other arguments or results: both have the same names and types, in one order")
        self._kind, self._grid = kind, grid
        self._threads = {} if threads is None else threads if isinstance(threads, Mapping) else {"": threads}
        self._means, self._attributes = means, attributes

    def text(self, *, loc: bool = True) -> str:
        """The kernel in the language of carbyne, as `carbyne fmt` prints it. `loc=False` leaves out lines of the Python source."""
        inputs, outputs, name = self._inputs, self._outputs, self._function.__name__
        meaning: list[str] = []
        with tracing() as trace:
            arguments = {n: of_caller(trace, n, of) for n, of in inputs.items()}
            if self._means is not None:
                meaning = [" means {", *self._means.meaning(trace, arguments, loc), "}"]
                trace.items = []
            trace.uses(symbols_of((*self._grid.values(), *self._threads.values())))
            results = {n: arguments[n] if n in arguments else of_caller(trace, n, of) for n, of in outputs.items()}
            trace.is_body = True
            builder = Builder(trace, results, [trace.local(f"@{n}") for n in (*self._grid, *self._threads) if n])
            outside = trace.items
            returned, variables = traced(self._function, [builder, *arguments.values()])
            if trace.items is not outside:
                raise RuntimeError(f"`{name}`: a block of `with` has not ended")
            if returned is not None:
                raise TypeError(f"`{name}` is a body and returns nothing: store its results, `b[\"C\"][...] = c`")
            writer = Writer(named(trace, variables), {}, {*inputs, *outputs}, loc)
            writer.block(trace.items, needed(_roots(trace.items)))
            if writer.lines and not self._threads:
                raise TypeError(f"`{name}` has a body: say how many threads execute it, `threads=128`")
        parts = f"({', '.join(f'%{n}' for n in inputs)}) -> ({', '.join(f'%{n}' for n in outputs)})"
        pins = "".join(f" {key}={_word(value)}" for key, value in self._attributes.items())
        exec = f" <<<#grid:[{_modes(self._grid) or '1'}], #cta:[{_modes(self._threads)}]>>>" if self._threads else ""
        head = f"{self._kind} @{name}{exec} {parts}{pins}"
        body = ["{", *writer.lines, "}"] if self._threads else []
        return whole(trace, {**inputs, **outputs}, [head + (meaning[0] if meaning else ""), *meaning[1:], *body])


def tile(
    kind: str = "Spec", *, grid: Mapping[str, Extent] | None = None, threads: Extent | Mapping[str, Extent] | None = None,
    means: Kernel | None = None, **attributes: Any,
) -> Callable[[Callable[..., Any]], Tile]:
    """Makes a kernel of a function that writes its body: tiles, loops and threads.

    The function's first argument is a :class:`Builder`; the others are tensors. `grid` has names and extents of the grid's modes, `threads` is the number of
    threads of a block, or has names and extents, too; without it the kernel is a spec without a body. `means` is a kernel that says what this one computes, with which it is compared.

    >>> import carbyne, numpy as np
    >>> from carbyne.language import cast, f16, f32
    >>> @carbyne.kernel
    ... def product(A: f16[128, 64], B: f16[64, 128]) -> {"C": f16[128, 128]}:
    ...     return A @ B
    >>> @carbyne.tile(grid={"i": 2, "j": 2}, threads=128, means=product)
    ... def gemm(b, A: f16[128, 64], B: f16[64, 128]) -> {"C": f16[128, 128]}:
    ...     i, j = b.at
    ...     c = b.tensor(f32[64, 64], 0)
    ...     with b.loop("k", 2, stages=2) as k:
    ...         a = b.move(A.tile([64, 32])[i, k], "SH")
    ...         d = b.move(B.tile([32, 64])[k, j], "SH")
    ...         b.matmul(a, d, c)
    ...     b["C"].tile([64, 64])[i, j] = cast(c, f16)
    >>> print(gemm.text(loc=False))
    carbyne 2
    <BLANKLINE>
    %A:[128,64].f16.GL
    %B:[64,128].f16.GL
    %C:[128,128].f16.GL
    <BLANKLINE>
    Spec @gemm <<<#grid:[@i < 2, @j < 2], #cta:[128]>>> (%A, %B) -> (%C) means {
      %C = matmul(%A, %B)
    } {
      %c:[64,64].f32 = 0
      for (k = 0; k < 2; k += 1) stages=2 {
        Move (%A.tile([64,32])[@i, k]) -> (%a:SH)
        Move (%B.tile([32,64])[k, @j]) -> (%d:SH)
        MatMul (%a, %d) -> (%c)
      }
      %C.tile([64,64])[@i, @j] = cast(%c, f16)
    }
    <BLANKLINE>
    >>> gemm(np.ones((128, 64), np.float16), np.ones((64, 128), np.float16))[0, 0]
    np.float16(64.0)
    """
    around = sys._getframe(1).f_locals
    return lambda function: Tile(function, around, kind, grid or {}, threads, means, attributes)


def _modes(all: Mapping[str, Extent]) -> str:
    return ", ".join(f"@{n} < {text_of(of)}" if n else text_of(of) for n, of in all.items())


def _roots(items: Sequence[Value | Statement]) -> Iterator[Value]:
    for item in items:
        if isinstance(item, Statement):
            yield from item.reads()
            yield from _roots(item.body or ())


def _threads(threads: object) -> Threads:
    if not isinstance(threads, Threads):
        raise TypeError(f"threads are such as `b.threads[0:32]`, not {threads!r}")
    return threads


def _new(of: Declared) -> New:
    if isinstance(of, New):
        return of
    if isinstance(of, str):
        return New(None, of)
    if of is not None and not isinstance(of, TensorType):
        raise TypeError(f"a tensor is declared by a memory such as `\"SH\"` or a type such as `f32[64, 64]`, not {of!r}")
    return New(of)


def _attribute(key: str, value: object) -> str:
    if key == "open":
        return "?"
    return f"{key}={_word(value)}"


def _word(value: object) -> str:
    """An attribute as the language writes it."""
    if isinstance(value, str):
        return value
    if isinstance(value, Scalar):
        return value.name
    if isinstance(value, tuple):
        return f"({','.join(map(_word, value))})"
    return text_of(value)
