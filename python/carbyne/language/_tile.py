"""Bodies of kernels that are written in Python: tiles, loops, threads and statements."""

from __future__ import annotations

import functools
import inspect
import numbers
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, Union

from ._kernel import Kernel, Runs, check_arguments, check_function, pins
from ._sizes import Condition, Extent, Size, Symbols, check_name, literal, names_of, number_text, symbols_of, text_of
from ._trace import (
    Statement,
    Trace,
    Writer,
    caller,
    named,
    needed,
    of_caller,
    parameters,
    place_of,
    traced,
    tracing,
    whole,
)
from ._types import Mode, TensorType, block, check_memory, check_type, thread, word
from ._values import Value, index_of, reshaped, spread, tiles

T = TypeVar("T")


class Threads:
    """Threads of a block, or blocks of a grid. Indices and ranges select some of them: `threads[0:32]`. :func:`group`
    gives them a name."""

    __slots__ = ("text", "sizes", "lines", "head", "at")

    def __init__(
        self, text: str, sizes: Sequence[Mode] = (), lines: Sequence[str] = (), head: str = "", at: Sequence[str] = ()
    ) -> None:
        #: The threads in the syntax of the language.
        self.text = text
        #: The sizes in the text.
        self.sizes = tuple(sizes)
        #: Statements before the kernel that declare the threads.
        self.lines = tuple(lines)
        #: The text for the threads in the kernel's head, and names of coordinates there.
        self.head = head or text
        self.at = tuple(at)

    def __repr__(self) -> str:
        return f"Threads({self.text!r})"

    def __getitem__(self, index: Any) -> Threads:
        sizes: list[Extent] = []
        picks = [index_of(pick, sizes) for pick in (index if isinstance(index, tuple) else (index,))]
        return self._view(f"[{', '.join(picks)}]", sizes)

    def __iter__(self) -> Any:
        raise TypeError(
            "threads cannot be iterated over: each of them executes the statements, `b.indices` says which one it is"
        )

    def tile(self, sizes: Sequence[Mode], steps: Sequence[Mode] | None = None) -> Threads:
        """Groups of threads of this size, such as warps: `threads.tile([32])`. `steps` are the distances between the
        threads of a group: `threads.tile([4], [8])`."""
        return self._view(tiles(sizes, steps), (*sizes, *(steps or ())))

    def scalar(self) -> Threads:
        """Each thread separately."""
        return self._view(".scalar()", ())

    def elect(self) -> Threads:
        """One of the threads."""
        return self._view(".elect()", ())

    def reshape(self, shape: Sequence[Extent], steps: Sequence[Extent]) -> Threads:
        """The threads under other coordinates."""
        return self._view(reshaped(shape, steps), (*shape, *steps))

    def _view(self, text: str, sizes: Sequence[Mode]) -> Threads:
        return Threads(self.text + text, (*self.sizes, *sizes), self.lines)


def group(name: str, of: TensorType | Mapping[str, Extent] | Threads) -> Threads:
    """A name for threads or blocks, declared before a kernel that uses them as `threads` or `grid`. They are threads
    such as `thread[32]`, blocks by coordinates and extents, `{"i": 4}`, or parts of other groups,
    `grid.tile([2, 1])`.

    >>> from carbyne.language import block, group
    >>> grid = group("grid", block[2, 8].strides(1, 2))
    >>> group("pairs", grid.tile([2, 1]))
    Threads('#pairs')
    """
    text = f"#{check_name(name, 'a group', may_be_number=True)}"
    if isinstance(of, Threads):
        return Threads(text, of.sizes, (*of.lines, f"{text} = {of.text}"))
    if isinstance(of, Mapping):
        modes = ", ".join(f"@{check_name(n, 'a coordinate')} < {text_of(extent)}" for n, extent in of.items())
        return Threads(text, tuple(of.values()), head=f"{text}:[{modes}]", at=tuple(of))
    if not isinstance(of, TensorType) or of.scalar not in (thread, block):
        raise TypeError(
            f"a group is of threads such as `thread[32]`, or of coordinates and extents such as `{{'i': 4}}`, not "
            f"of {of!r}"
        )
    is_head = of.stride is None and not of.around
    sizes = tuple(of.symbols.values())
    return (
        Threads(text, sizes, head=f"{text}:[{','.join(map(text_of, of.shape))}]")
        if is_head
        else Threads(text, sizes, [f"{text}:{of.text()}"])
    )


class New:
    """A tensor that a statement declares. Omitted parts of its type follow from the statement."""

    def __init__(self, type: TensorType | None = None, memory: str = "", **attributes: object) -> None:
        self.type = None if type is None else check_type(type)
        self.memory = check_memory(memory)
        self.attributes = attributes

    @property
    def symbols(self) -> Symbols:
        """The symbols in the type."""
        return symbols_of(_sizes(self.attributes.values())) | (self.type.symbols if self.type else {})

    def text(self) -> str:
        """The text after the name."""
        if self.type is None and not self.memory:
            return ""
        attributes = [_attribute(key, value) for key, value in self.attributes.items() if value is not False]
        of = self.memory if self.type is None else self.type.text(self.memory)
        return f":{of}" + (f"{{{', '.join(attributes)}}}" if attributes else "")


#: The memory of a declared tensor, its type, or more details.
Declared = Union[str, TensorType, New, None]

#: The output of a statement: a view, or a tensor that the statement declares.
Output = Union[Value, Declared]


#: The executor of a spec: threads, or blocks and threads.
Executor = Union[Threads, tuple[Threads, ...], None]

#: The blocks or threads of a kernel.
Grid = Union[Mapping[str, Extent], Threads, None]


class Builder:
    """Writes the body of a kernel. Each method is a statement of the language, in the order of calls.

    `b[name]` is a result tensor of the kernel. `view[...] = value` and `view[i, j] = value` store.
    """

    def __init__(self, trace: Trace, blocks: Threads, threads: Threads) -> None:
        self._trace = trace
        #: The coordinates of the block in the order of `grid`, and those of the thread if `threads` names them.
        self.at = tuple(trace.local(f"@{n}") for n in (*blocks.at, *threads.at))
        #: All threads of a block.
        self.threads = Threads(threads.text)
        #: All blocks of the grid.
        self.blocks = Threads(blocks.text)

    def __getitem__(self, name: str) -> Value:
        return self._trace.result(name)

    def __setitem__(self, name: str, value: object) -> None:
        raise TypeError(
            f"a result is stored into as a whole or by a view: `b[{name!r}][...] = x`, `b[{name!r}][0:64, :] = x`"
        )

    # ---- Tensors

    def tensor(self, type: TensorType, value: float, memory: str = "") -> Value:
        """A tensor whose elements are all equal to a number: `%c:[64,64].f32 = 0`."""
        new = New(check_type(type), memory)
        (out,) = self._outputs([new])
        self._write([out, new.text(), f" = {literal(value)}"], [out])
        return out

    def allocate(self, type: TensorType, memory: str, **attributes: object) -> Value:
        """A tensor without values. Attributes are those of types: `swizzle=(3, 4, 3)`, `align=128`, `open=True`, and for
        registers `tv=(shape, strides, threads)`, as in :meth:`Value.tv`."""
        new = New(check_type(type), memory, **attributes)
        (out,) = self._outputs([new])
        self._write(["Allocate ", out, new.text()], [out])
        return out

    def let(self, **values: Extent) -> Any:
        """Names for numbers: `i, j = b.let(i=t // N, j=t % N)`. Returns a size, or a tuple of sizes."""
        if not values:
            raise TypeError("a name and a number are wanted: `b.let(n=4)`")
        text = ", ".join(f"{check_name(name, 'a number')} = {text_of(value)}" for name, value in values.items())
        self._write([f"let {text}"], sizes=list(values.values()))
        return _one_or_all([self._trace.local(name) for name in values])

    def number(self, name: str, element: Value) -> Size:
        """An element of an integer tensor as a number, for indices and bounds."""
        if not isinstance(element, Value):
            raise TypeError(f"a number is an element of a traced tensor, such as `offsets[g]`, not {element!r}")
        self._write([f"@{check_name(name, 'a number')} = ", element])
        return self._trace.local(f"@{name}")

    # ---- Specs

    def spec(
        self, kind: str, inputs: Sequence[Any], outputs: Sequence[Output], *, on: Executor = None, **attributes: Any
    ) -> Any:
        """A spec of any kind, such as `Reduction.sum`. Returns the declared tensor, a tuple of declared tensors, or
        None."""
        head, declared = self._head(kind, inputs, outputs, on, attributes)
        self._write(head, declared, is_spec=True)
        return _one_or_all(declared)

    def body(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Output],
        *,
        kind: str = "Spec",
        on: Executor = None,
        **attributes: Any,
    ) -> Block[Any]:
        """A spec with a body."""
        head, declared = self._head(kind, inputs, outputs, on, attributes)
        return Block(self._trace, "body", head, declared, lambda: _one_or_all(declared))

    def move(self, source: Value, to: Output = None, *, on: Executor = None, **attributes: Any) -> Any:
        """Copies a tensor to a view, or to a new tensor: in registers, in a memory such as `"SH"`, or of a type."""
        return self.spec("Move", [source], [to], on=on, **attributes)

    def matmul(self, a: Value, b: Value, c: Output, *, on: Executor = None, **attributes: Any) -> Any:
        """Adds a matrix product to `c`."""
        return self.spec("MatMul", [a, b], [c], on=on, **attributes)

    # ---- Control

    def loop(
        self,
        name: str,
        end: Extent,
        *,
        start: Extent = 0,
        step: Extent = 1,
        stages: Extent | None = None,
        unroll: bool | None = None,
    ) -> Block[Size]:
        """A loop. Up to `stages` iterations may overlap."""
        check_name(name, "a loop's variable")
        begins, ends, steps = map(text_of, (start, end, step))
        head = f"for ({name} = {begins}; {name} < {ends}; {name} += {steps})"
        head += "" if unroll is None else " unroll" if unroll else " nounroll"
        head += "" if stages is None else f" stages={text_of(stages)}"
        self._trace.uses(symbols_of((start, end, step, stages)))
        return Block(self._trace, "loop", [head], (), lambda: self._trace.local(name))

    def when(self, *conditions: Condition) -> Block[None]:
        """Statements that are executed if all conditions hold."""
        for condition in conditions:
            if not isinstance(condition, Condition):
                raise TypeError(
                    f"`when` compares sizes, such as `k < 4`; found {condition!r}: elements are chosen by `where`"
                )
            self._trace.uses(condition.symbols)
        if not conditions:
            raise TypeError("`when` needs a condition, such as `k < 4`")
        text = " && ".join(condition.text for condition in conditions)
        return Block(self._trace, "when", [f"if ({text})"])

    def otherwise(self) -> Block[None]:
        """Statements that are executed if the conditions of the preceding `when` do not hold."""
        before = self._trace.items[-1] if self._trace.items else None
        if not isinstance(before, Statement) or before.body is None or not str(before.parts[0]).startswith("if ("):
            raise RuntimeError("`otherwise` stands behind a `when`, without a statement between")
        return Block(self._trace, "otherwise", ["else"])

    # ---- Threads

    def group(self, name: str, threads: Threads, type: TensorType | None = None) -> Threads:
        """A name for threads: `#warps = #cta.tile([32])`. The threads must have the given type, such as
        `thread[32].array(4)`."""
        text = f"#{check_name(name, 'a group', may_be_number=True)}"
        self._write(
            [f"{text}{f':{check_type(type).text()}' if type else ''} = {_threads(threads).text}"], sizes=threads.sizes
        )
        return Threads(text, [self._trace.local(text)])

    def indices(self, names: str, threads: Threads) -> Any:
        """The coordinates of the executing thread: a size, or a tuple of sizes."""
        all = [check_name(name, "a coordinate") for name in names_of(names)]
        text = f"{', '.join(f'@{name}' for name in all)} = {_threads(threads).text}.indices()"
        self._write([text], sizes=threads.sizes)
        return _one_or_all([self._trace.local(f"@{name}") for name in all])

    def barrier(self, threads: Threads | None = None) -> None:
        """A barrier for all threads of the block, or of a group."""
        if threads is None:
            self._write(["barrier"])
        else:
            self._write([f"barrier({_threads(threads).text})"], sizes=threads.sizes)

    def sync(self, operation: str, *arguments: Value | Extent) -> None:
        """A synchronization statement, such as `sync("mbarrier.wait", full[s], parity)`."""
        if not isinstance(operation, str) or not re.fullmatch(r"\w+(\.\w+)?", operation):
            raise ValueError(f"{operation!r} is no operation such as `async.wait`")
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
        self, kind: str, inputs: Sequence[Any], outputs: Sequence[Output], on: Executor, attributes: Mapping[str, Any]
    ) -> tuple[list[str | Value], list[Value]]:
        _kind(kind)
        for operands in (inputs, outputs):
            if not isinstance(operands, (list, tuple)):
                raise TypeError(
                    f"`{kind}` has a list of inputs and a list of outputs, such as `[x], [y]`; found {operands!r}"
                )
        groups = () if on is None else tuple(map(_threads, on if isinstance(on, tuple) else (on,)))
        out = self._outputs(outputs)
        sizes = (part for of in groups for part in of.sizes)
        self._trace.uses(symbols_of((*inputs, *_sizes(attributes.values()), *sizes)))
        parts: list[str | Value] = [kind, f" <<<{', '.join(of.text for of in groups)}>>>" if groups else "", " ("]
        for i, operand in enumerate(inputs):
            parts += [", " if i else "", _operand(kind, operand)]
        parts.append(") -> (")
        for i, (value, of) in enumerate(zip(out, outputs)):
            parts += [", " if i else "", value, "" if isinstance(of, Value) else _new(of).text()]
        parts.append(")")
        for key, value in attributes.items():
            parts += [f" {key}=", value if isinstance(value, Value) else word(value)]
        declared = [v for v, of in zip(out, outputs) if not isinstance(of, Value)]
        return parts, declared

    def _write(
        self,
        parts: Sequence[str | Value],
        declares: Sequence[Value] = (),
        sizes: Sequence[object] = (),
        is_spec: bool = False,
    ) -> None:
        self._trace.uses(symbols_of(tuple(sizes)))
        self._trace.add(Statement(list(parts), list(declares), is_spec=is_spec))


class Block(Generic[T]):
    """Statements between braces; `with` begins and ends them."""

    def __init__(
        self,
        trace: Trace,
        method: str,
        parts: Sequence[str | Value],
        declares: Sequence[Value] = (),
        value: Callable[[], T] | None = None,
    ) -> None:
        self._trace = trace
        self._statement = Statement(list(parts), list(declares), is_spec=method == "body")
        self._value = value
        #: The syntax for error messages, and the place of creation.
        self.use = f"`with b.{method}(..):`"
        self.place = trace.here()
        self._outside: list[Value | Statement] = []
        trace.waiting.append(self)

    def __enter__(self) -> T:
        trace = self._trace
        if self not in trace.waiting:
            raise RuntimeError(f"a block is entered once: write another {self.use}")
        trace.waiting.remove(self)
        trace.add(self._statement)
        self._outside = trace.items
        self._statement.body = trace.items = []
        trace.scopes.append({})
        return self._value() if self._value else None  # type: ignore[return-value]

    def __iter__(self) -> Any:
        raise TypeError(f"a block is no list of iterations: its statements are written once, {self.use}")

    def __repr__(self) -> str:
        return f"<block of {self.use}>"

    def __exit__(self, kind: object, *_: object) -> None:
        # Write nothing after an exception.
        if kind is not None:
            return
        trace, inside = self._trace, self._statement.body
        if inside is None or trace.items is not inside:
            raise RuntimeError("blocks of `with` end in another order than they begin")
        frame = caller()
        made = {id(v) for item in inside for v in (item.declares if isinstance(item, Statement) else [item])}
        trace.names |= {
            key: name for key, name in named(frame.f_locals.items() if frame else ()).items() if key in made
        }
        trace.items = self._outside
        trace.scopes.pop()


class Tile(Runs):
    """A kernel whose body is written in Python; :func:`tile` creates it."""

    def __init__(
        self, function: Callable[..., Any], around: Mapping[str, Any], kind: str, grid: Grid, threads: Extent | Grid,
        means: Kernel | None, attributes: Mapping[str, Any],
    ) -> None:  # fmt: skip
        check_function(function)
        functools.update_wrapper(self, function)
        self._function = function
        self._inputs, self._outputs = parameters(function, around, skipped=1)
        if not isinstance(grid, (Mapping, Threads, type(None))):
            raise TypeError(f"`grid` is a mapping of names to extents, or a group of blocks, not {grid!r}")
        if means is not None and not isinstance(means, Kernel):
            raise TypeError(f"`means` is a kernel of `@carbyne.kernel`, not {means!r}")
        first = next(iter(inspect.signature(function).parameters), None)
        if first is None or first in function.__annotations__:
            raise TypeError(f"`{function.__name__}`: the first parameter is the builder of the body, without a type")
        if means is not None and (list(means._inputs.items()), means._outputs) != (
            list(self._inputs.items()),
            self._outputs,
        ):
            raise TypeError(
                f"`{function.__name__}`: `means` has other arguments or results: both have the same names and "
                "types, in one order"
            )
        self._kind, self._means, self._attributes = _kind(kind), means, attributes
        self._blocks = _group("grid", grid or block[1])
        self._threads = None if threads is None else _group("cta", threads)

    def text(self, *, loc: bool = True) -> str:
        """The kernel in the language of carbyne, as `carbyne fmt` prints it. `loc=False` omits the lines of the Python
        source."""
        inputs, outputs, name = self._inputs, self._outputs, self._function.__name__
        meaning: list[str] = []
        with tracing() as trace:
            arguments = {n: of_caller(trace, n, of) for n, of in inputs.items()}
            if self._means is not None:
                meaning = [" means {", *self._means.meaning(trace, arguments, loc), "}"]
                if self._threads is None:
                    check_arguments(name, arguments, meaning)
                trace.kept += [trace.items, trace.results]
                trace.items = []
            blocks, threads = self._blocks, self._threads or Threads("#cta")
            trace.uses(symbols_of((*blocks.sizes, *threads.sizes)))
            trace.results = {
                n: arguments[n] if n in arguments else of_caller(trace, n, of) for n, of in outputs.items()
            }
            trace.is_body = True
            returned, variables = traced(self._function, [Builder(trace, blocks, threads), *arguments.values()])
            if returned is not None:
                raise TypeError(f'`{name}` is a body and returns nothing: store its results, `b["C"][...] = c`')
            writer = Writer(trace, variables, {}, {*inputs, *outputs}, loc)
            writer.block(trace.items, needed(_roots(trace, trace.items)))
            if writer.lines and self._threads is None:
                raise TypeError(f"`{name}` has a body: say how many threads execute it, `threads=128`")
        parts = f"({', '.join(f'%{n}' for n in inputs)}) -> ({', '.join(f'%{n}' for n in outputs)})"
        exec = f" <<<{blocks.head}, {threads.head}>>>" if self._threads else ""
        head = f"{self._kind} @{name}{exec} {parts}{pins(self._attributes)}"
        body = ["{", *writer.lines, "}"] if self._threads else []
        groups = [*blocks.lines, *threads.lines] if self._threads else []
        spec = [head + (meaning[0] if meaning else ""), *meaning[1:], *body]
        return whole(trace, {**inputs, **outputs}, groups, spec, place_of(self._function))


def tile(
    kind: str = "Spec",
    *,
    grid: Grid = None,
    threads: Extent | Grid = None,
    means: Kernel | None = None,
    **attributes: Any,
) -> Callable[[Callable[..., Any]], Tile]:
    """Creates a kernel from a function that writes its body: tiles, loops and threads.

    The first argument of the function is a :class:`Builder`; the others are tensors. `grid` maps names to extents of
    the grid's modes. `threads` is the number of threads of a block, or also maps names to extents; without it, the
    kernel is a spec without a body. Both may be a :func:`group`. `means` is a kernel with the meaning of this one, for
    comparison.

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
    return lambda function: Tile(function, around, kind, grid, threads, means, attributes)


def _group(name: str, of: Any) -> Threads:
    """The threads or blocks of a kernel."""
    if isinstance(of, (Threads, Mapping, TensorType)):
        return of if isinstance(of, Threads) else group(name, of)
    return group(name, thread[of])


def _one_or_all(made: Sequence[Any]) -> Any:
    """The only item, a tuple of several, or None."""
    return made[0] if len(made) == 1 else tuple(made) or None


def _kind(kind: object) -> str:
    if not isinstance(kind, str) or not re.fullmatch(r"[A-Za-z]+(\.\w+)?", kind):
        raise ValueError(f"{kind!r} is no kind of a spec, such as `Reduction.sum`")
    return kind


def _operand(kind: str, operand: object) -> str | Value:
    """An input of a spec: a tensor or a number."""
    if not isinstance(operand, (Value, Size, numbers.Real)) or isinstance(operand, bool):
        raise TypeError(f"an input of `{kind}` is a traced tensor or a number, not {operand!r}")
    if isinstance(operand, Value):
        return operand
    return number_text(operand) if isinstance(operand, Size) else literal(operand)


def _sizes(values: Iterable[object]) -> tuple[object, ...]:
    """All values of attributes that may contain sizes, including threads."""
    return tuple(
        _sizes(v) if isinstance(v, tuple) else _sizes(v.sizes) if isinstance(v, Threads) else v for v in values
    )


def _roots(trace: Trace, items: Sequence[Value | Statement]) -> Iterator[Value]:
    """The tensors that statements read, and the tensors with stated types."""
    for item in items:
        if isinstance(item, Statement):
            yield from item.reads()
            yield from _roots(trace, item.body or ())
        elif id(item) in trace.types:
            yield item


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
        raise TypeError(f'a tensor is declared by a memory such as `"SH"` or a type such as `f32[64, 64]`, not {of!r}')
    return New(of)


def _attribute(key: str, value: object) -> str:
    if key == "open":
        return "?"
    if key == "tv":
        if not isinstance(value, tuple) or len(value) != 3 or not isinstance(value[2], Threads):
            raise TypeError(
                f"`tv` is a shape, strides, and threads, such as `(((32,), 2), ((2,), 1), b.threads)`, not {value!r}"
            )
        return f"tv={spread(*value)}"
    return f"{key}={word(value)}"
