"""Sizes: integers that are known only at launch, and expressions over them."""

from __future__ import annotations

import itertools
import math
import numbers
import re
from dataclasses import dataclass
from typing import Union

from .._expression import value_of

#: A number or a size.
Extent = Union[int, "Size"]

#: Symbols, constants and variables by their identity.
Symbols = dict[int, "Name"]

#: Maximum nesting depth of tuples of sizes.
DEEPEST = 32

#: Maximum number of characters of an expression. Each use of a size repeats its text.
_MAX_LENGTH = 10_000

#: Precedences of operators of numbers.
_BINDS = {"+": 1, "-": 1, "*": 2, "/": 2, "% ": 2}


class Size:
    """An integer that is known at launch: a symbol, a coordinate, or an expression over them.

    >>> from carbyne.language import symbols
    >>> M, N = symbols("M N")
    >>> (M + 1) * N // 2
    Size('(M + 1) * N / 2')

    For non-negative integers, `//` and `%` are those of Python.
    """

    __slots__ = ("text", "_binds", "_symbols")

    text: str
    _binds: int
    _symbols: Symbols

    def __repr__(self) -> str:
        return f"Size({self.text!r})"

    def __add__(self, other: Extent) -> Size:
        return _binary(self, "+", other)

    def __radd__(self, other: Extent) -> Size:
        return _binary(other, "+", self)

    def __sub__(self, other: Extent) -> Size:
        return _binary(self, "-", other)

    def __rsub__(self, other: Extent) -> Size:
        return _binary(other, "-", self)

    def __mul__(self, other: Extent) -> Size:
        return _binary(self, "*", other)

    def __rmul__(self, other: Extent) -> Size:
        return _binary(other, "*", self)

    def __floordiv__(self, other: Extent) -> Size:
        return _binary(self, "/", other)

    def __rfloordiv__(self, other: Extent) -> Size:
        return _binary(other, "/", self)

    def __mod__(self, other: Extent) -> Size:
        return _binary(self, "% ", other)

    def __rmod__(self, other: Extent) -> Size:
        return _binary(other, "% ", self)

    def __truediv__(self, other: object) -> Size:
        raise TypeError("sizes are integers: divide them by `//`")

    def __rtruediv__(self, other: object) -> Size:
        # The quotient of constants is a real number in the text.
        if isinstance(other, float) and all(isinstance(s, Constant) for s in self._symbols.values()):
            value = constant_of(self)
            return Expression(f"{literal(other)} / {_within(self, 3) if value is None else value}", 2, self._symbols)
        raise TypeError("sizes are integers: divide them by `//`")

    def __neg__(self) -> Size:
        return Expression(f"-{_within(self, 3)}", 3, self._symbols)

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return _equality(self, "==", other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return _equality(self, "!=", other)

    def __lt__(self, other: Extent) -> Condition:
        return _compare(self, "<", other)

    def __le__(self, other: Extent) -> Condition:
        return _compare(self, "<=", other)

    def __gt__(self, other: Extent) -> Condition:
        return _compare(self, ">", other)

    def __ge__(self, other: Extent) -> Condition:
        return _compare(self, ">=", other)

    def __hash__(self) -> int:
        return hash(self.text)

    def __bool__(self) -> bool:
        raise TypeError(f"`{self.text}` has no value yet: it is known at launch")

    def __index__(self) -> int:
        raise TypeError(f"`{self.text}` is no number of Python: it is known at launch")


# No class below derives from another instantiated class: for `a < b`, Python would first call `b > a` of the derived
# class.


class Expression(Size):
    """A number, or an expression of symbols."""

    __slots__ = ()

    def __init__(self, text: str, binds: int = 3, symbols: Symbols | None = None) -> None:
        self.text = text
        self._binds = binds
        self._symbols = symbols or {}


_made = itertools.count()


class Name(Size):
    """A size with a name."""

    __slots__ = ("typical", "number")

    typical: int | None
    #: Symbols are declared in the order of their creation.
    number: int

    def __init__(self, name: str, typical: int | None = None) -> None:
        self.text, self._binds = check_name(name, "a symbol", may_be_number=isinstance(self, Local)), 3
        self._symbols = {id(self): self}
        if typical is not None and (not isinstance(typical, numbers.Integral) or typical < 0):
            raise ValueError(f"a typical value of `{name}` is an integer from 0, not {typical!r}")
        self.typical = typical
        self.number = next(_made)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text!r})"


class Symbol(Name):
    """A size that the caller of a kernel determines."""

    __slots__ = ()


class Constant(Name):
    """A name for a number, which also appears in the text."""

    __slots__ = ("value", "expression", "group")

    value: int
    expression: Extent
    group: tuple[Constant, ...]

    def __repr__(self) -> str:
        return f"Constant({self.text!r}, {self.value})"


class Local(Name):
    """A coordinate, a loop variable, a number, or a group of a body, valid to the end of its block. Its text may begin
    with `@` or `#`."""

    __slots__ = ()

    def __init__(self, text: str) -> None:
        super().__init__(text.lstrip("@#"))
        self.text = text


class Root(Size):
    """The square root of a constant: a real number, not a size."""

    __slots__ = ()

    def __init__(self, size: Size) -> None:
        value = constant_of(size)
        made = _call("sqrt", size if value is None else value)
        self.text, self._binds, self._symbols = made.text, 3, made._symbols

    def __floordiv__(self, other: object) -> Size:
        raise TypeError(f"`{self.text}` is no integer: a tensor is divided by it, and `//` is of sizes")

    __rfloordiv__ = __mod__ = __rmod__ = __floordiv__


@dataclass(frozen=True, eq=False)
class Condition:
    """A comparison of sizes. :func:`assume` states it as a fact."""

    text: str
    symbols: Symbols

    def __bool__(self) -> bool:
        raise TypeError(
            f"`{self.text}` has no value yet: sizes are known at launch. Write `assume({self.text})` to state it "
            "as a fact"
        )


def symbols(names: str, **typical: int) -> tuple[Symbol, ...]:
    """Symbols with these names, separated by spaces or commas. Keywords are typical values, which guide `decompose`.

    >>> from carbyne.language import symbols
    >>> symbols("M, N", M=4096)
    (Symbol('M'), Symbol('N'))
    """
    all = names_of(names)
    if unknown := set(typical) - set(all):
        raise TypeError(f"`{sorted(unknown)[0]}` has a typical value and is none of the symbols")
    return tuple(Symbol(name, typical.get(name)) for name in all)


def constants(**values: Extent) -> tuple[Constant, ...]:
    """Names for numbers, or for expressions over constants: `let` of the language. Use them like sizes.

    >>> from carbyne.language import constants
    >>> M, BM = constants(M=256, BM=64)
    >>> M // BM
    Size('M / BM')
    """
    all = []
    for name, value in values.items():
        number = _value(value)
        if number is None:
            raise TypeError(f"`{name}` is an integer or an expression of constants, not {value!r}")
        if not -(1 << 63) <= number < 1 << 63:
            raise ValueError(f"`{name}` has more than 64 bits")
        constant = Constant(name)
        constant.value, constant.expression = number, value if isinstance(value, Size) else number
        all.append(constant)
    group = tuple(all)
    for constant in all:
        constant.group = group
    return group


def root(size: Size) -> Size:
    """The square root of a constant, as a number."""
    return Root(size)


def ceil_div(a: Extent, b: Extent) -> Extent:
    """The quotient of two sizes, rounded up."""
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    return _call("ceil_div", a, b)


def smaller(a: Extent, b: Extent) -> Extent:
    """The smaller of two sizes."""
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else _call("min", a, b)


def larger(a: Extent, b: Extent) -> Extent:
    """The larger of two sizes."""
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else _call("max", a, b)


def text_of(size: object, depth: int = 0) -> str:
    """A size, or a tuple of sizes, in the syntax of the language."""
    if depth > DEEPEST:
        raise ValueError(f"tuples of sizes nest {DEEPEST} deep at most")
    if isinstance(size, tuple):
        return f"({','.join(text_of(part, depth + 1) for part in size)})"
    return _of(size).text


def symbols_of(size: object) -> Symbols:
    """The symbols in a size, or in a tuple of sizes."""
    if isinstance(size, tuple):
        return {key: symbol for part in size for key, symbol in symbols_of(part).items()}
    return size._symbols if isinstance(size, Size) else {}


def names_of(names: object) -> list[str]:
    """The names in a text, separated by spaces or commas."""
    if not isinstance(names, str) or not (all := names.replace(",", " ").split()):
        raise TypeError(f'names are a text such as `"i j"`, not {names!r}')
    return all


def check_name(name: object, what: str, *, may_be_number: bool = False) -> str:
    """Refuses an invalid name of the language. Names of tensors and threads may be numbers, such as %1."""
    is_name = isinstance(name, str) and name.isascii() and (name.isidentifier() or may_be_number and name.isdigit())
    if not is_name or name in ("_", "inf", "nan"):
        raise ValueError(f"{name!r} is no name of {what}: take letters, digits and `_`")
    return str(name)


def constant_of(size: Size) -> int | None:
    """The value of a quotient of constants, which is an integer here and a real number in the text; None for others."""
    parts = [size, *(s.expression for s in size._symbols.values() if isinstance(s, Constant))]
    return _value(size) if any(" / " in text_of(part) for part in parts) else None


def number_text(size: Size) -> str:
    """A size as an operand of elements, where the text divides constants as real numbers."""
    value = constant_of(size)
    return text_of(size) if value is None else literal(value)


def _value(size: object) -> int | None:
    """The value of an integer, or of an expression over constants."""
    if isinstance(size, numbers.Integral) and not isinstance(size, bool):
        return int(size)
    if not isinstance(size, Size) or "." in size.text or "sqrt" in size.text:
        return None
    known = {s.text: s.value for s in size._symbols.values() if isinstance(s, Constant)}
    if len(known) < len(size._symbols):
        return None
    try:
        return value_of(size.text, known)
    except ZeroDivisionError:
        raise ValueError(f"`{size.text}` divides by 0") from None


def literal(number: float) -> str:
    """A Python number in the syntax of the language."""
    if isinstance(number, numbers.Integral):
        return _of(number).text
    if not isinstance(number, numbers.Real):
        raise TypeError(f"a number is wanted, not {number!r}")
    try:
        value = float(number)
    except OverflowError:
        raise ValueError("a number is too large for 64 bits") from None
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    # 1e-5, not 1e-05.
    return re.sub(r"e([+-]?)0*", r"e\1", repr(value)).replace("e+", "e")


def _of(size: object) -> Size:
    if isinstance(size, Size):
        return size
    if isinstance(size, numbers.Integral) and not isinstance(size, bool):
        if not -(1 << 63) < int(size) < 1 << 63:
            raise ValueError("an integer has at most 64 bits")
        return Expression(str(int(size)), 3)
    raise TypeError(f"a size is an integer or an expression of symbols, not {size!r}")


def _binary(a: object, op: str, b: object) -> Size:
    if isinstance(a, float) or isinstance(b, float):
        raise TypeError(f"sizes are integers, not {b if isinstance(b, float) else a!r}: combine it with a tensor")
    if not isinstance(a, (Size, numbers.Integral)) or not isinstance(b, (Size, numbers.Integral)):
        return NotImplemented  # type: ignore[return-value]
    a, b, binds = _of(a), _of(b), _BINDS[op]
    text = f"{_within(a, binds)} {op.strip()} {_within(b, binds + 1)}"
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"an expression of sizes has over {_MAX_LENGTH} characters: name parts of it by `constants`")
    return Expression(text, binds, a._symbols | b._symbols)


def _call(function: str, *operands: object) -> Size:
    all = [_of(operand) for operand in operands]
    symbols = {key: s for operand in all for key, s in operand._symbols.items()}
    return Expression(f"{function}({', '.join(operand.text for operand in all)})", 3, symbols)


def _compare(a: Size, op: str, b: object) -> Condition:
    if isinstance(b, float):
        raise TypeError(f"`{a.text}` is an integer: it is compared with sizes, not with {b!r}")
    if not isinstance(b, (Size, numbers.Integral)):
        return NotImplemented  # type: ignore[return-value]
    b = _of(b)
    return Condition(f"{a.text} {op} {b.text}", a._symbols | b._symbols)


def _equality(a: Size, op: str, b: object) -> Condition:
    """An equality. Python would compare identities if this did not handle unknown operands."""
    found = _compare(a, op, b)
    if found is NotImplemented:
        raise TypeError(f"`{a.text}` is compared with sizes, not with {b!r}")
    return found


def _within(size: Size, binds: int) -> str:
    return f"({size.text})" if size._binds < binds else size.text
