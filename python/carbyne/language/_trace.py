"""Runs a Python function on traced tensors, and writes the text of its operations."""

from __future__ import annotations

import inspect
import keyword
import os
import sys
from bisect import bisect, bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from .._diagnostics import Error
from .._program import Program
from ._errors import Place, in_python
from ._sizes import (
    Condition,
    Constant,
    Local,
    Name,
    Size,
    Symbol,
    Symbols,
    check_name,
    literal,
    number_text,
    symbols_of,
    text_of,
)
from ._types import Scalar, TensorType, check_type
from ._values import SIGNS, Operand, Value

#: The folder of this package, whose lines are not user source.
_OWN = os.path.dirname(__file__)

#: Precedences of operators.
_BINDS = {"add": 2, "sub": 2, "mul": 3, "div": 3, "lt": 1, "le": 1, "gt": 1, "ge": 1, "eq": 1, "ne": 1}

#: Maximum number of nested operations in one statement.
_DEPTH = 16

_current: ContextVar[Trace | None] = ContextVar("carbyne_trace", default=None)


def current() -> Trace:
    """The kernel that is being traced."""
    trace = _current.get()
    if trace is None:
        raise RuntimeError("no kernel is traced: call this within a function of `@carbyne.kernel`")
    return trace


def is_tracing() -> bool:
    """Whether a kernel is being traced."""
    return _current.get() is not None


class Trace:
    """The operations of a function on its tensors, as statements of the language."""

    def __init__(self) -> None:
        #: Whether a body is written, which stores to tensors.
        self.is_body = False
        #: Tensors and statements of the current block, in order.
        self.items: list[Value | Statement] = []
        #: Names given to tensors, by identity, and names of variables of closed blocks.
        self.wishes: dict[int, str] = {}
        self.names: dict[int, str] = {}
        #: Stated types of tensors, by identity.
        self.types: dict[int, str] = {}
        #: Types of tensors that :func:`tensor` created.
        self.tensors: dict[str, TensorType] = {}
        #: Types of the caller's tensors, by identity.
        self.arguments: dict[int, TensorType | Part] = {}
        #: The result tensors of the kernel.
        self.results: dict[str, Value] = {}
        #: Tensors of the meaning of a body. They are kept alive because identities are used as keys.
        self.kept: list[object] = []
        #: Blocks that no `with` has entered.
        self.waiting: list[Any] = []
        #: Symbols by name.
        self.symbols: dict[str, Name] = {}
        #: Variables of the open blocks.
        self.scopes: list[dict[int, Local]] = [{}]
        self.facts: list[Condition] = []

    def uses(self, symbols: Symbols) -> None:
        """Registers symbols for the declarations of the program. Refuses variables of closed blocks, and two sizes with
        one name."""
        for symbol in symbols.values():
            name = symbol.text
            if isinstance(symbol, Local):
                if not any(id(symbol) in scope for scope in self.scopes):
                    raise ValueError(f"`{name}` is of a loop or a block that has ended: it has no value here")
                continue
            if isinstance(symbol, Constant):
                self.uses(symbols_of(symbol.expression))
            own = self.symbols.setdefault(name, symbol)
            if own is symbol:
                continue
            value, other = (getattr(s, "value", None) for s in (own, symbol))
            if value != other or None not in (own.typical, symbol.typical) and own.typical != symbol.typical:
                raise ValueError(f"two different sizes are named `{name}`: give one of them another name")
            if own.typical is None:
                self.symbols[name] = symbol

    def local(self, text: str) -> Local:
        """A variable of the current block."""
        made = Local(text)
        self.scopes[-1][id(made)] = made
        return made

    def result(self, name: str) -> Value:
        """A result tensor of the kernel."""
        if not isinstance(name, str) or name not in self.results:
            raise KeyError(f"there is no result `{name}`; there are {', '.join(self.results)}")
        return self.results[name]

    def add(self, item: Value | Statement) -> None:
        """Adds a tensor or a statement to the current block. Refuses tensors of other kernels."""
        if isinstance(item, Statement):
            item.place = self.here()
        for value in item.reads():
            if value.trace is not self:
                raise ValueError("a tensor of another kernel cannot be used here")
            if not any(value.scope is scope for scope in self.scopes):
                raise ValueError(
                    "a tensor of a block that has ended: it was made in the block. To change a tensor that was declared "
                    "before the block, store into it: `s[...] = s + x`, not `s = s + x`"
                )
            value.uses += 1
        self.items.append(item)

    def store(self, place: Value, value: Operand, is_whole: bool) -> None:
        """Stores a tensor to a view or to a whole tensor."""
        if not self.is_body:
            raise TypeError("a kernel of `@carbyne.kernel` stores nothing: return its results")
        if not isinstance(value, Value):
            raise TypeError(
                f'a traced tensor is stored, not {value!r}: numbers are written by `spec("Init", [0], [x])`'
            )
        self.add(Statement([place, " = ", value], is_store=True, is_whole=is_whole))

    def assume(self, fact: Condition) -> None:
        """Registers a fact about symbols."""
        if not any(type(symbol) is Symbol for symbol in fact.symbols.values()):
            raise ValueError(f"`{fact.text}` is about no symbol: nothing can be assumed of it")
        self.uses(fact.symbols)
        if all(fact.text != known.text for known in self.facts):
            self.facts.append(fact)

    def end(self) -> None:
        """Refuses blocks that have not begun or have not ended."""
        for block in self.waiting:
            raise RuntimeError(f"a block does nothing without `with`: write {block.use}{_at(block.place)}")
        if len(self.scopes) > 1:
            raise RuntimeError("a block of `with` has not ended")

    def here(self) -> Place | None:
        """The file and line of the Python source that calls this package."""
        frame = caller()
        return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def _at(place: Place | None) -> str:
    return f" ({os.path.basename(place[0])}:{place[1]})" if place else ""


def caller() -> FrameType | None:
    """The stack frame that calls this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return frame


def traced(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
    """Calls a function. Returns its result and its variables at the end, which give names to tensors."""
    variables: dict[str, Any] = {}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "return" and frame.f_code is function.__code__:
            variables.update(frame.f_locals)

    before = sys.getprofile()
    # A profiler written in C cannot be restored, so use line tracing to detect the end of the function.
    get, put = (sys.getprofile, sys.setprofile) if before is None or callable(before) else (sys.gettrace, sys.settrace)
    before = get()
    put(watch if put is sys.setprofile else lambda frame, event, _: watch)
    try:
        result = function(*arguments)
    finally:
        put(before)
    current().end()
    return result, variables


@contextmanager
def tracing() -> Iterator[Trace]:
    """Starts tracing a new kernel."""
    trace = Trace()
    token = _current.set(trace)
    try:
        yield trace
    finally:
        _current.reset(token)


def parameters(
    function: Callable[..., Any], around: Mapping[str, Any], *, skipped: int = 0
) -> tuple[dict[str, TensorType | Part], dict[str, TensorType | Part]]:
    """The types of a function's arguments and results, by name. `around` contains the variables at the definition of
    the function; the first arguments may be skipped. Arguments that are updated in place are also results."""
    name = function.__name__
    # With `from __future__ import annotations`, annotations are strings.
    types = inspect.get_annotations(function, eval_str=True, locals=dict(around))
    results = types.pop("return", None)
    inputs: dict[str, TensorType | Part] = {}
    for parameter in [*inspect.signature(function).parameters.values()][skipped:]:
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise TypeError(f"`{name}`: a kernel has a parameter for each tensor, not `{parameter}`")
        if parameter.name not in types:
            raise TypeError(f"`{name}`: `{parameter.name}` needs a type, such as `{parameter.name}: f16[64, 32]`")
        if parameter.default is not parameter.empty:
            raise TypeError(
                f"`{name}`: `{parameter.name}` has a default value; a kernel's arguments are passed by each call"
            )
        inputs[check_name(text_name(parameter.name), "a tensor", may_be_number=True)] = tensor_type(
            types[parameter.name], f"`{name}`: `{parameter.name}`"
        )
    if results is None:
        raise TypeError(f"`{name}` needs the type of its result, such as `-> f16[64, 32]`")
    if isinstance(results, Mapping):
        outputs = dict(results)
    elif isinstance(results, tuple):
        outputs = {f"out{i}": of for i, of in enumerate(results)}
    else:
        outputs = {"out": results}
    if not outputs:
        raise TypeError(f"`{name}` has no results")
    for output, of in outputs.items():
        check_name(output, "a result", may_be_number=True)
        outputs[output] = tensor_type(of, f"`{name}`: the result `{output}`")
        if output in inputs and inputs[output] != outputs[output]:
            raise TypeError(f"`{name}`: the result `{output}` has the name of an argument, and another type")
    return inputs, outputs


def text_name(name: str) -> str:
    """The name of a variable in the text. `from_` is %from, and `_1` is %1, because Python has no such names."""
    if keyword.iskeyword(name[:-1]) and name.endswith("_"):
        return name[:-1]
    return name[1:] if name[:1] == "_" and name[1:].isdigit() else name


def tensor_type(of: Any, what: str) -> TensorType | Part:
    """The type of an annotation. A scalar type alone is the type of a number."""
    if isinstance(of, Scalar):
        return TensorType(of, ())
    if isinstance(of, TensorType):
        return of
    if isinstance(of, Value):
        return Part(of)
    raise TypeError(f"{what} has a type such as `f16[64, 32]`, not {of!r}")


class Part:
    """A view of a caller's tensor as the type of an argument or result."""

    def __init__(self, view: Value) -> None:
        root = view
        while root.operands:
            if not _is_view(root):
                raise TypeError(f"an argument or a result is a view of `tensor(..)`, and no {root!r}")
            root = root.operands[0]  # type: ignore[assignment]
        if root.name not in root.trace.tensors:
            raise TypeError(f"an argument or a result is a view of `tensor(..)`, not of {root!r}")
        self._name, self._type = root.name, root.trace.tensors[root.name]
        self._text = Writer(root.trace, {}, {}, set(), False).expression(view) if view is not root else ""
        self.symbols = {id(symbol): symbol for symbol in root.trace.symbols.values()}

    def declared(self, name: str) -> list[str]:
        """The statements that declare the tensor and the view."""
        if not self._text and name != self._name:
            raise TypeError(f"a whole tensor has one name, and this one is `{name}` and `{self._name}`")
        whole = self._type.declared(self._name)
        return [*whole, f"%{name} = {self._text}"] if self._text else whole

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and self.declared("") == other.declared("")

    __hash__ = None  # type: ignore[assignment]


def tensor(name: str, type: TensorType) -> Value:
    """A tensor of the caller whose views are arguments or results of a kernel.

    >>> import carbyne, numpy as np
    >>> from carbyne.language import f32, tensor
    >>> Y = tensor("Y", f32[4, 8])
    >>> @carbyne.kernel
    ... def signs(X: f32[4, 4]) -> {"left": Y[:, 0:4], "right": Y[:, 4:8]}:
    ...     return X, -X
    >>> y = np.zeros((4, 8), np.float32)
    >>> signs(np.ones((4, 4), np.float32), y)
    >>> y[0].tolist()
    [1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0]
    """
    trace = Trace()
    trace.tensors[check_name(name, "a tensor")] = check_type(type)
    return of_caller(trace, name, type)


@dataclass
class Statement:
    """A statement that is not an operation on tensors."""

    #: Texts and the tensors between them.
    parts: list[str | Value]
    #: Tensors that the statement declares.
    declares: list[Value] = field(default_factory=list)
    #: The statements between the braces.
    body: list[Value | Statement] | None = None
    #: Whether the statement stores the value of an expression.
    is_store: bool = False
    #: Whether it stores to a whole tensor. Then a name alone would only rename a tensor.
    is_whole: bool = False
    #: Whether the statement is a spec, which has a place attribute.
    is_spec: bool = False
    #: File and line of the Python source.
    place: Place | None = None

    def reads(self) -> Iterator[Value]:
        """The tensors in the text of the statement."""
        return (part for part in self.parts if isinstance(part, Value))


class Line(str):
    """A line of the text, with its place in the Python source."""

    place: Place | None = None


def line_of(text: str, place: Place | None) -> Line:
    """A line with a place."""
    line = Line(text)
    line.place = place
    return line


class Writer:
    """Writes blocks. A tensor without a name that is read once is written at its use, if no statement lies between."""

    def __init__(
        self, trace: Trace, variables: Mapping[str, Any], results: Mapping[int, str], taken: set[str], places: bool
    ) -> None:
        #: Names from the function's variables and results, by the identity of the tensor.
        self.names = named(variables.items()) | trace.names | trace.wishes
        self.results = results
        self.types = trace.types
        #: Names in the block and in enclosing blocks.
        self.taken = taken
        #: Results that have been written.
        self.replaced: set[str] = set()
        self.places = places
        self.lines: list[str] = []
        self.count = 0
        #: Depths of expressions of tensors without a name.
        self.depths: dict[int, int] = {}
        #: Tensors with views, and tensors used as indices. They are written where they are computed.
        self.bases: set[int] | None = None

    def block(self, items: Sequence[Value | Statement], needed: set[int]) -> None:
        """Writes statements in order, and operations where they are needed."""
        if self.bases is None:
            self.bases = set(_bases(items))
        last = _last_reads(items)
        statements = [i for i, item in enumerate(items) if isinstance(item, Statement)]
        for i, item in enumerate(items):
            if isinstance(item, Statement):
                self.plain(item, needed)
            elif id(item) in needed and item.function:
                reader = last.get(id(item))
                is_near = reader is not None and bisect(statements, i) == bisect_left(statements, reader)
                depth = 1 + max((self.depths.get(id(value), 0) for value in item.reads()), default=0)
                self.keep(item, is_near, depth < _DEPTH)
                self.depths[id(item)] = 0 if item.name else depth

    def plain(self, statement: Statement, needed: set[int]) -> None:
        """Writes a statement and its body."""
        for value in statement.declares:
            value.name = self.fresh(self.names.get(id(value)))
        part = self.part if statement.is_store else self.viewed
        texts = [part(p) if isinstance(p, Value) else p for p in statement.parts]
        if statement.is_store:
            *_, stored = statement.reads()
            is_move = stored.name is not None or _is_view(stored)
            place = self.place(statement)
            # An operation that is stored immediately has its own place.
            if is_move and (statement.is_whole or place):
                texts[-1] = f"move({', '.join([texts[-1], *place])})"
        if statement.is_spec:
            texts += [f" {loc}" for loc in self.place(statement)]
        text = "".join(texts)
        if statement.body is None:
            self.lines.append(line_of(text, statement.place))
            return
        self.lines.append(line_of(f"{text} {{", statement.place))
        around = self.taken
        self.taken = set(around)
        self.block(statement.body, needed)
        self.taken = around
        self.lines.append(line_of("}", statement.place))

    def part(self, value: Value) -> str:
        """The text of a tensor in a statement."""
        return self.expression(value) if value.name is None else self.called(value)

    def called(self, value: Value) -> str:
        """The name of a tensor. Refuses an argument that a result has replaced."""
        if value.name in self.replaced and not value.function:
            raise TypeError(
                f"`{value.name}` is updated in place and read afterwards: keep it, `old = move({value.name})`, or "
                "compute its result last"
            )
        return f"%{value.name}"

    def fresh(self, wish: str | None) -> str:
        """An unused name."""
        name = wish
        while name is None or name in self.taken:
            self.count += 1
            name = f"{wish or 't'}{self.count}"
        self.taken.add(name)
        return name

    def statement(self, value: Value) -> None:
        """Writes the statement that computes a tensor, under a name."""
        text = self.expression(value)
        name = self.results.get(id(value)) or self.fresh(self.names.get(id(value)))
        type = self.types.get(id(value))
        self.lines.append(line_of(f"%{name}{f':{type}' if type else ''} = {text}", value.place))
        value.name = name
        if id(value) in self.results:
            self.replaced.add(name)

    def keep(self, value: Value, is_near: bool, is_flat: bool) -> None:
        """Writes the statement of a tensor where it is computed, if the tensor needs a name."""
        is_named = any(id(value) in known for known in (self.results, self.names, self.types))
        is_apart = not _is_view(value) and (value.uses > 1 or not is_near or id(value) in (self.bases or ()))
        if value.name is None and (is_named or is_apart or not is_flat):
            self.statement(value)

    def name_of(self, value: Value) -> str:
        """The name of a tensor that needs a name."""
        if value.name is None:
            self.statement(value)
        return self.called(value)

    def expression(self, value: Value, binds: int = 0) -> str:
        """The expression that computes a tensor."""
        function, operands = value.function, value.operands
        if function == "[]":
            others = iter(operands[1:])
            picks = (self.name_of(next(others)) if p is None else p for p in value.attributes)
            return f"{self.viewed(operands[0])}[{', '.join(picks)}]"
        if function.startswith("."):
            return f"{self.viewed(operands[0])}{function}"
        place = self.place(value)
        if function == "neg" and not place:
            return f"-{self.operand(operands[0], 4)}"
        if function in _BINDS and not place:
            own = _BINDS[function]
            text = f"{self.operand(operands[0], own)} {SIGNS[function]} {self.operand(operands[1], own + 1)}"
            return f"({text})" if own < binds else text
        parts = [self.operand(o, 0) for o in operands]
        parts += value.attributes
        return f"{function}({', '.join(parts + place)})"

    def place(self, of: Value | Statement) -> list[str]:
        """The place attribute of an operation."""
        if not self.places or of.place is None:
            return []
        file, line = of.place
        name = "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else "_" for c in os.path.basename(file))
        return [f'loc="{name}:{line}"']

    def viewed(self, value: Any) -> str:
        """The text of a tensor or view whose view is taken."""
        return self.expression(value) if _is_view(value) and value.name is None else self.name_of(value)

    def operand(self, operand: Any, binds: int) -> str:
        """The text of an operand of an operation."""
        if isinstance(operand, Value):
            return self.called(operand) if operand.name else self.expression(operand, binds)
        if isinstance(operand, Size):
            text = number_text(operand)
            return f"({text})" if binds and " " in text else text
        return literal(operand)


def _bases(items: Sequence[Value | Statement]) -> Iterator[int]:
    """Identities of tensors with views, of tensors that are stored to, and of indices in views."""
    for item in items:
        if isinstance(item, Statement):
            if item.is_store:
                yield id(item.parts[0])
            yield from _bases(item.body or ())
        elif _is_view(item):
            yield from map(id, item.reads())


def _last_reads(items: Sequence[Value | Statement]) -> dict[int, int]:
    """The last item of a block that reads each tensor; reads in bodies count as far away."""
    last: dict[int, int] = {}
    for i, item in enumerate(items):
        last |= {id(value): i for value in item.reads()}
    return last


def _is_view(value: Value) -> bool:
    return value.function == "[]" or value.function.startswith(".")


def named(variables: Iterable[tuple[str, Any]]) -> dict[int, str]:
    """The names of a function's variables, by the identity of their tensors."""
    return {id(v): text_name(n) for n, v in variables if isinstance(v, Value) and n.isascii()}


def needed(roots: Iterable[Value]) -> set[int]:
    """Identities of these tensors and of all tensors that they depend on."""
    found: set[int] = set()
    todo = list(roots)
    while todo:
        value = todo.pop()
        if id(value) not in found:
            found.add(id(value))
            todo += value.reads()
    return found


def check_reads(trace: Trace, arguments: Mapping[str, Value], results: Sequence[Value]) -> None:
    """Refuses reads of elements of a result, because only its coordinates are known."""
    unknown = {id(value): name for name, value in trace.results.items() if name not in arguments}
    values = [item for item in trace.items if isinstance(item, Value)]
    read = [operand for v in values for operand in (v.operands[1:] if _is_view(v) else v.operands)]
    for value in (*read, *results):
        while isinstance(value, Value) and _is_view(value) and not value.function.startswith(".iota"):
            value = value.operands[0]
        if id(value) in unknown:
            name = unknown[id(value)]
            coordinates = f'`result("{name}").iota(1)`'
            raise TypeError(f"the result `{name}` has no elements yet: only its coordinates are known, {coordinates}")


def of_caller(trace: Trace, name: str, type: TensorType | Part) -> Value:
    """A tensor of the caller."""
    trace.uses(type.symbols)
    value = Value(trace, "", name=name)
    trace.arguments[id(value)] = type
    return value


def place_of(function: Callable[..., Any]) -> Place:
    """The place of a function's definition."""
    return function.__code__.co_filename, function.__code__.co_firstlineno


def whole(
    trace: Trace,
    tensors: Mapping[str, TensorType | Part],
    groups: Sequence[str],
    spec: Sequence[str],
    place: Place,
) -> str:
    """A program of one kernel, as `carbyne fmt` prints it. `place` is the place of the kernel."""
    for of in tensors.values():
        trace.uses(of.symbols)
    declared = sorted(trace.symbols.values(), key=lambda symbol: symbol.number)
    groups_of = {id(c.group): c.group for c in declared if isinstance(c, Constant)}
    used = [[c for c in group if c.text in trace.symbols] for group in groups_of.values()]
    lets = [f"let {', '.join(f'{c.text} = {text_of(c.expression)}' for c in group)}" for group in used]
    symbols = {s.text: s for s in declared if not isinstance(s, Constant)}
    line = f"sym {', '.join(symbols)}"
    if trace.facts:
        line += " where " + ", ".join(fact.text for fact in trace.facts)
    usual = [f"{n}={s.typical}" for n, s in symbols.items() if s.typical is not None]
    if usual:
        line += " typical " + ", ".join(usual)
    types = list(dict.fromkeys(text for name, of in tensors.items() for text in of.declared(name)))
    parts = [["carbyne 2"], lets, [line] if symbols else [], [*types, *dict.fromkeys(groups)], spec]
    lines = [line for part in parts if part for line in (*part, "")]
    try:
        return Program("\n".join(lines)).fmt()
    except Error as error:
        raise in_python(error, [getattr(line, "place", None) or place for line in lines]) from None
