"""Functions of traced tensors; some also accept sizes and numbers. `math="fast"` and `math="exact"` select the accuracy
of a function."""

from __future__ import annotations

import math as _math
import numbers
from typing import Any, overload

from . import _sizes
from ._sizes import Extent, Size
from ._trace import current
from ._types import Scalar
from ._values import Operand, Value, check_operands, check_tensor, unary


def exp(x: Value, *, math: str | None = None) -> Value:
    """The exponential of each element."""
    return _of_one("exp", x, math)


def exp2(x: Value, *, math: str | None = None) -> Value:
    """2 to the power of each element."""
    return _of_one("exp2", x, math)


def log(x: Value, *, math: str | None = None) -> Value:
    """The natural logarithm of each element."""
    return _of_one("log", x, math)


@overload
def sqrt(x: Value, *, math: str | None = None) -> Value: ...
@overload
def sqrt(x: float) -> float: ...
@overload
def sqrt(x: Size) -> Size: ...
def sqrt(x: Any, *, math: str | None = None) -> Any:
    """The square root of each element, of a number, or of a constant."""
    if isinstance(x, Size):
        return _sizes.root(x)
    if isinstance(x, Value):
        return _of_one("sqrt", x, math)
    if not isinstance(x, numbers.Real) or not x >= 0:
        raise ValueError(f"the square root is of a traced tensor, a constant, or a number from 0, not of {x!r}")
    return _math.sqrt(x)


def rsqrt(x: Value, *, math: str | None = None) -> Value:
    """The reciprocal of the square root of each element."""
    return _of_one("rsqrt", x, math)


def rcp(x: Value, *, math: str | None = None) -> Value:
    """The reciprocal of each element."""
    return _of_one("rcp", x, math)


def tanh(x: Value, *, math: str | None = None) -> Value:
    """The hyperbolic tangent of each element."""
    return _of_one("tanh", x, math)


def sigmoid(x: Value, *, math: str | None = None) -> Value:
    """1 / (1 + exp(-x)) of each element."""
    return _of_one("sigmoid", x, math)


def relu(x: Value, *, math: str | None = None) -> Value:
    """The maximum of each element and 0."""
    return _of_one("relu", x, math)


def gelu(x: Value, *, math: str | None = None) -> Value:
    """x / 2 * (1 + erf(x / sqrt(2))) of each element."""
    return _of_one("gelu", x, math)


def silu(x: Value, *, math: str | None = None) -> Value:
    """x * sigmoid(x) of each element."""
    return _of_one("silu", x, math)


def move(x: Value) -> Value:
    """Copies the elements of a view to a new tensor."""
    return unary("move", x)


def cast(x: Value, scalar: Scalar) -> Value:
    """Rounds elements to a type."""
    check_tensor("cast", x)
    return x.cast(scalar)


def matmul(a: Value, b: Value) -> Value:
    """The matrix product, as `a @ b`."""
    check_tensor("matmul", a)
    return a @ b


@overload
def max(a: Value, b: Operand) -> Value: ...
@overload
def max(a: Operand, b: Value) -> Value: ...
@overload
def max(a: Extent, b: Extent) -> Extent: ...
def max(a: Any, b: Any) -> Any:
    """The maximum of elements of two tensors, or of two sizes. If one element is NaN, the result is the other one."""
    found = _both("max", a, b)
    return _sizes.larger(a, b) if found is None else found


@overload
def min(a: Value, b: Operand) -> Value: ...
@overload
def min(a: Operand, b: Value) -> Value: ...
@overload
def min(a: Extent, b: Extent) -> Extent: ...
def min(a: Any, b: Any) -> Any:
    """The minimum of elements of two tensors, or of two sizes. If one element is NaN, the result is the other one."""
    found = _both("min", a, b)
    return _sizes.smaller(a, b) if found is None else found


def maximum(a: Operand, b: Operand) -> Value:
    """The maximum of elements of two tensors; NaN if either element is NaN."""
    return _of_tensors("maximum", a, b)


def minimum(a: Operand, b: Operand) -> Value:
    """The minimum of elements of two tensors; NaN if either element is NaN."""
    return _of_tensors("minimum", a, b)


def where(condition: Value, a: Operand, b: Operand) -> Value:
    """Elements of `a` where the condition holds, elements of `b` elsewhere."""
    if not isinstance(condition, Value):
        raise TypeError(f"the condition of `where` is a traced tensor such as `A > 0`, not {condition!r}")
    check_operands("where", a, b)
    return Value(condition.trace, "select", (condition, a, b))


def assume(*conditions: _sizes.Condition) -> None:
    """States facts about the sizes of the traced kernel, such as `assume(N % 8 == 0)`. Calls check that the facts
    hold."""
    for condition in conditions:
        if not isinstance(condition, _sizes.Condition):
            raise TypeError(f"a fact compares symbols, such as `N % 8 == 0`; found {condition!r}")
        current().assume(condition)


def result(name: str) -> Value:
    """The tensor of a result of the traced kernel, for its coordinates: `result("Y").iota(1)`."""
    return current().result(name)


def _of_one(function: str, x: Value, math: str | None) -> Value:
    """A function of each element. `math=exact` selects the smallest error, `math=fast` the fewest cycles; otherwise the
    default of the language applies."""
    if math not in (None, "exact", "fast"):
        raise ValueError(f"`math` is `exact` or `fast`, not {math!r}")
    return unary(function, x, *([] if math is None else [f"math={math}"]))


def _both(function: str, a: object, b: object) -> Value | None:
    for x in (a, b):
        if isinstance(x, Value):
            check_operands(function, a, b)
            return Value(x.trace, function, (a, b))  # type: ignore[arg-type]
    return None


def _of_tensors(function: str, a: object, b: object) -> Value:
    found = _both(function, a, b)
    if found is None:
        raise TypeError(f"`{function}` is of traced tensors, not of {a!r} and {b!r}")
    return found
