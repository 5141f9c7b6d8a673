"""Running a function of Python on traced tensors, and the text that this makes."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

from ._sizes import Condition, Size, Symbols, literal, text_of
from ._types import Scalar, TensorType
from ._values import Value

#: Files of this package, whose lines are nobody's source.
_OWN = os.path.dirname(__file__)

#: Operators, by how tightly they bind.
_OPERATORS = {
    "add": ("+", 2), "sub": ("-", 2), "mul": ("*", 3), "div": ("/", 3),
    "lt": ("<", 1), "le": ("<=", 1), "gt": (">", 1), "ge": (">=", 1), "eq": ("==", 1), "ne": ("!=", 1),
}  # fmt: skip

_current: ContextVar[Trace | None] = ContextVar("carbyne_trace", default=None)


def current() -> Trace:
    """The kernel that is traced."""
    trace = _current.get()
    if trace is None:
        raise RuntimeError("no kernel is traced: call this within a function of `@carbyne.kernel`")
    return trace


def is_tracing() -> bool:
    """Whether a kernel is traced."""
    return _current.get() is not None


class Trace:
    """What a function does with its tensors, as statements of the language."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.symbols: Symbols = {}
        self.facts: list[Condition] = []

    def uses(self, symbols: Symbols) -> None:
        """Notes symbols that the program declares."""
        for name, symbol in symbols.items():
            own = self.symbols.setdefault(name, symbol)
            if own.typical is None and symbol.typical is not None:
                self.symbols[name] = symbol

    def assume(self, fact: Condition) -> None:
        """Notes a fact about symbols."""
        self.uses(fact.symbols)
        if all(fact.text != known.text for known in self.facts):
            self.facts.append(fact)

    def here(self) -> tuple[str, int] | None:
        """File and line of the Python source that calls into this package."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(_OWN):
            frame = frame.f_back
        return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def traced(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
    """Calls a function. Returns its result and its variables at the end, by which tensors are named."""
    variables: dict[str, Any] = {}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "return" and frame.f_code is function.__code__:
            variables.update(frame.f_locals)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        result = function(*arguments)
    finally:
        sys.setprofile(before)
    return result, variables


@contextmanager
def tracing() -> Iterator[Trace]:
    """A new kernel that is traced."""
    trace = Trace()
    token = _current.set(trace)
    try:
        yield trace
    finally:
        _current.reset(token)


def parameters(
    function: Callable[..., Any], around: Mapping[str, Any]
) -> tuple[dict[str, TensorType], dict[str, TensorType]]:
    """The types of a function's arguments and of its results, by name. `around` has the variables where the function is defined."""
    name = function.__name__
    # Annotations are texts under `from __future__ import annotations`.
    types = inspect.get_annotations(function, eval_str=True, locals=dict(around))
    results = types.pop("return", None)
    inputs: dict[str, TensorType] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise TypeError(f"`{name}`: a kernel has a parameter for each tensor, not `{parameter}`")
        if parameter.name not in types:
            raise TypeError(f"`{name}`: `{parameter.name}` needs a type, such as `{parameter.name}: f16[64, 32]`")
        inputs[parameter.name] = tensor_type(types[parameter.name], f"`{name}`: `{parameter.name}`")
    if results is None:
        raise TypeError(f"`{name}` needs the type of its result, such as `-> f16[64, 32]`")
    if isinstance(results, Mapping):
        outputs = dict(results)
    elif isinstance(results, tuple):
        outputs = {f"out{i}": of for i, of in enumerate(results)}
    else:
        outputs = {"out": results}
    for output, of in outputs.items():
        if output in inputs:
            raise TypeError(f"`{name}`: the result `{output}` has the name of an argument")
        outputs[output] = tensor_type(of, f"`{name}`: the result `{output}`")
    return inputs, outputs


def tensor_type(of: Any, what: str) -> TensorType:
    """The type that an annotation means. A scalar alone is a number."""
    if isinstance(of, Scalar):
        return TensorType(of, ())
    if isinstance(of, TensorType):
        return of
    raise TypeError(f"{what} has a type such as `f16[64, 32]`, not {of!r}")


class Writer:
    """Statements of a `means` block. Tensors without a name that are read once stand where they are read."""

    def __init__(
        self, names: Mapping[int, str], results: Mapping[int, str], taken: set[str], places: bool
    ) -> None:
        #: Names that the function gave, and those of results, by the identity of the tensor.
        self.names = names
        self.results = results
        self.taken = taken
        self.places = places
        self.lines: list[str] = []
        self.count = 0

    def fresh(self, wish: str | None) -> str:
        """A name that is not taken yet."""
        name = wish
        while name is None or name in self.taken:
            self.count += 1
            name = f"{wish or 't'}{self.count}"
        self.taken.add(name)
        return name

    def statement(self, value: Value) -> None:
        """Writes what computes a tensor, under a name."""
        text = self.expression(value)
        name = self.results.get(id(value)) or self.fresh(self.names.get(id(value)))
        self.lines.append(f"%{name} = {text}")
        value.name = name

    def keep(self, value: Value) -> None:
        """Writes a tensor's statement where it is computed, if the tensor is to have a name."""
        is_named = id(value) in self.results or id(value) in self.names
        if value.name is None and (is_named or value.uses > 1 and not _is_view(value)):
            self.statement(value)

    def name_of(self, value: Value) -> str:
        """The name of a tensor that must have one."""
        if value.name is None:
            self.statement(value)
        return f"%{value.name}"

    def expression(self, value: Value, binds: int = 0) -> str:
        """What computes a tensor."""
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
        if function in _OPERATORS and not place:
            sign, own = _OPERATORS[function]
            text = f"{self.operand(operands[0], own)} {sign} {self.operand(operands[1], own + 1)}"
            return f"({text})" if own < binds else text
        parts = [self.operand(o, 0) for o in operands]
        parts += value.attributes
        return f"{function}({', '.join(parts + place)})"

    def place(self, value: Value) -> list[str]:
        """The attribute that says where an operation comes from."""
        if not self.places or value.place is None:
            return []
        file, line = value.place
        name = os.path.basename(file).replace("\\", "/").replace('"', "'")
        return [f'loc="{name}:{line}"']

    def viewed(self, value: Any) -> str:
        """A tensor or a view, of which a view is taken."""
        return self.expression(value) if _is_view(value) and value.name is None else self.name_of(value)

    def operand(self, operand: Any, binds: int) -> str:
        """An operand of an operation."""
        if isinstance(operand, Value):
            return f"%{operand.name}" if operand.name else self.expression(operand, binds)
        if isinstance(operand, Size):
            return f"({text_of(operand)})" if binds and " " in text_of(operand) else text_of(operand)
        return literal(operand)


def _is_view(value: Value) -> bool:
    return value.function == "[]" or value.function.startswith(".")


def of_caller(trace: Trace, name: str, type: TensorType) -> Value:
    """A tensor of the caller."""
    trace.uses(type.symbols)
    return Value(trace, "", name=name)


def heads(trace: Trace) -> list[str]:
    """The declaration of symbols."""
    if not trace.symbols:
        return []
    names = sorted(trace.symbols)
    lines = [f"sym {', '.join(names)}"]
    if trace.facts:
        lines.append("where " + ", ".join(fact.text for fact in trace.facts))
    usual = [f"{n}={s.typical}" for n, s in sorted(trace.symbols.items()) if s.typical is not None]
    if usual:
        lines.append("typical " + ", ".join(usual))
    return [" ".join(lines)]
