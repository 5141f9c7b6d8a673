"""Tensors of a traced kernel, and operations on them."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

from ._sizes import Extent, Size, check_name, literal, symbols_of, text_of
from ._types import Mode, Scalar, TensorType, block, check_memory, check_type, mbarrier, thread

if TYPE_CHECKING:
    from ._tile import Threads
    from ._trace import Trace

#: An operand: a tensor, or a number or size that is broadcast.
Operand = Union["Value", float, Size]


class Value:
    """A tensor of a traced kernel. Operators work element by element; modes of extent 1 are broadcast.

    `A @ B` multiplies matrices. `A.sum(axis=1)` and other reductions keep the mode with extent 1. Views are `A[i, :]`,
    `A[0:64, :]`, `A[rows, :]`, `A.T`, `A.tile([64, 32])[i, k]`, `A.permute([1, 0])` and `A.reshape(shape, steps)`.
    """

    __slots__ = ("trace", "function", "operands", "attributes", "place", "scope", "uses", "name")

    def __init__(
        self,
        trace: Trace,
        function: str,
        operands: Sequence[Operand] = (),
        attributes: Sequence[str] = (),
        name: str | None = None,
    ) -> None:
        #: The kernel of the tensor.
        self.trace = trace
        #: The operation in the language; empty for tensors of the caller, `.` and the method for views.
        self.function = function
        self.operands = tuple(operands)
        self.attributes = tuple(attributes)
        #: File and line of the Python source.
        self.place = trace.here()
        #: Variables of the enclosing block, with which the tensor ends.
        self.scope = trace.scopes[-1]
        self.uses = 0
        #: The name in the text.
        self.name = name
        trace.uses(symbols_of(self.operands))
        trace.add(self)

    def reads(self) -> list[Value]:
        """The tensors among the operands."""
        return [operand for operand in self.operands if isinstance(operand, Value)]

    def __repr__(self) -> str:
        return f"<traced {'%' + self.name if self.name else self.function or 'tensor'}>"

    # ---- Elements

    def __add__(self, other: Operand) -> Value:
        return binary("add", self, other)

    def __radd__(self, other: Operand) -> Value:
        return binary("add", other, self)

    def __sub__(self, other: Operand) -> Value:
        return binary("sub", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return binary("sub", other, self)

    def __mul__(self, other: Operand) -> Value:
        return binary("mul", self, other)

    def __rmul__(self, other: Operand) -> Value:
        return binary("mul", other, self)

    def __truediv__(self, other: Operand) -> Value:
        return binary("div", self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return binary("div", other, self)

    def __neg__(self) -> Value:
        return unary("neg", self)

    def __abs__(self) -> Value:
        return unary("abs", self)

    def __lt__(self, other: Operand) -> Value:
        return binary("lt", self, other)

    def __le__(self, other: Operand) -> Value:
        return binary("le", self, other)

    def __gt__(self, other: Operand) -> Value:
        return binary("gt", self, other)

    def __ge__(self, other: Operand) -> Value:
        return binary("ge", self, other)

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return binary("eq", self, other)

    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return binary("ne", self, other)

    __hash__ = object.__hash__

    def __matmul__(self, other: Value) -> Value:
        return binary("matmul", self, other)

    def __rmatmul__(self, other: Value) -> Value:
        return binary("matmul", other, self)

    def __pow__(self, power: int) -> Value:
        """Products of the tensor with itself, for powers from 2 to 8."""
        if not isinstance(power, numbers.Integral) or not 2 <= power <= 8:
            raise TypeError(
                f"a power is an integer from 2 to 8, not {power!r}: write `sqrt(x)`, `rsqrt(x)`, `rcp(x)` or "
                "`exp(log(x) * y)`"
            )
        product = self
        for _ in range(int(power) - 1):
            product = product * self
        return product

    def __rpow__(self, base: object) -> Value:
        raise TypeError(f"a tensor is no power of {base!r}: write `exp2(x)`, `exp(x)` or `exp(x * math.log(base))`")

    def __floordiv__(self, other: object) -> Value:
        raise TypeError("tensors are divided by `/`, which rounds quotients of integers toward zero; `//` is of sizes")

    def __mod__(self, other: object) -> Value:
        raise TypeError("tensors have no `%`: write a remainder of integers as `x - x / 8 * 8`")

    __rfloordiv__, __rmod__, __divmod__, __rdivmod__ = __floordiv__, __mod__, __mod__, __mod__

    def __and__(self, other: object) -> Value:
        raise TypeError(
            "conditions are combined by nesting: `where(p, where(q, a, b), b)` where both hold, `where(p, a, "
            "where(q, a, b))` where one does"
        )

    __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __and__

    def __invert__(self) -> Value:
        raise TypeError("a condition is not negated: exchange what it chooses, `where(p, b, a)`")

    def __bool__(self) -> bool:
        raise TypeError(
            "a traced tensor has no truth value: choose elements by `where(condition, a, b)`, also in place of "
            "`if`, `and`, `or` and `not`"
        )

    def __iadd__(self, other: Operand) -> Value:
        return self._changed("add", other)

    def __isub__(self, other: Operand) -> Value:
        return self._changed("sub", other)

    def __imul__(self, other: Operand) -> Value:
        return self._changed("mul", other)

    def __itruediv__(self, other: Operand) -> Value:
        return self._changed("div", other)

    def __imatmul__(self, other: Value) -> Value:
        return self._changed("matmul", other)

    def __ipow__(self, power: int) -> Value:
        self._refuse_change()
        return self**power

    def _changed(self, function: str, other: Operand) -> Value:
        self._refuse_change()
        return binary(function, self, other)

    def _refuse_change(self) -> None:
        if self.trace.is_body:
            raise TypeError("in a body `x += y` would make a new tensor: write `x[...] = x + y` to change `x`")

    def __iter__(self) -> Any:
        raise TypeError("a traced tensor cannot be iterated over: take parts of it by `A[0:64, :]`")

    def __contains__(self, value: object) -> bool:
        raise TypeError(
            "whether a traced tensor holds a number is known when the kernel runs: compare elements, `A == 3`"
        )

    def __len__(self) -> int:
        raise TypeError("a traced tensor has no length: use the sizes of its type, or `A.shape[0]` of an argument")

    @property
    def shape(self) -> tuple[Mode, ...]:
        """The extents of an argument or a result of the kernel."""
        type = self.trace.arguments.get(id(self))
        return type.shape if isinstance(type, TensorType) else self.__getattr__("shape")

    def __getattr__(self, name: str) -> Any:
        instead = _INSTEAD.get(name, "its methods are those of `carbyne.language.Value`")
        raise AttributeError(f"a traced tensor has no `{name}`: {instead}")

    def __float__(self) -> float:
        raise TypeError("a traced tensor has no numbers: it is known when the kernel runs")

    __int__ = __index__ = __complex__ = __float__  # type: ignore[assignment]

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("NumPy cannot compute with a traced tensor: use functions of `carbyne.language`")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Handles operators with a NumPy number on the left. Other uses are refused."""
        apply = _UFUNCS.get(ufunc.__name__)
        if (
            apply is not None
            and method == "__call__"
            and not keywords
            and not any(hasattr(x, "__len__") for x in inputs if x is not self)
        ):
            return apply(*(x if isinstance(x, Value) else x.item() if hasattr(x, "item") else x for x in inputs))
        if any(type(x).__name__ == "ndarray" for x in inputs):
            raise TypeError("a kernel computes with its arguments, not with arrays: make the array an argument")
        raise TypeError(
            f"NumPy's `{ufunc.__name__}` cannot compute with a traced tensor: use functions of `carbyne.language`"
        )

    def __array_function__(self, function: Any, *_: Any) -> Any:
        raise TypeError(
            f"NumPy's `{function.__name__}` cannot compute with a traced tensor: use functions and methods of "
            "`carbyne.language`"
        )

    def cast(self, scalar: Scalar) -> Value:
        """Rounds elements to a type."""
        if not isinstance(scalar, Scalar) or scalar in (thread, block, mbarrier):
            raise TypeError(f"a cast is to a type such as `f16`, not to {scalar!r}")
        return Value(self.trace, "cast", (self,), (scalar.name,))

    # ---- Reductions

    def sum(self, axis: int | Sequence[int]) -> Value:
        """Sums along modes, which keep extent 1. Sums have the element type."""
        return reduction("sum", self, axis)

    def prod(self, axis: int | Sequence[int]) -> Value:
        """Products along modes."""
        return reduction("prod", self, axis)

    def max(self, axis: int | Sequence[int]) -> Value:
        """Maxima along modes. NaN elements are ignored; see :meth:`maximum`."""
        return reduction("max", self, axis)

    def min(self, axis: int | Sequence[int]) -> Value:
        """Minima along modes. NaN elements are ignored; see :meth:`minimum`."""
        return reduction("min", self, axis)

    def maximum(self, axis: int | Sequence[int]) -> Value:
        """Maxima along modes; NaN if an element is NaN."""
        return reduction("maximum", self, axis)

    def minimum(self, axis: int | Sequence[int]) -> Value:
        """Minima along modes; NaN if an element is NaN."""
        return reduction("minimum", self, axis)

    def named(self, name: str) -> Value:
        """This tensor, with a name in the text that no variable has."""
        if self.name is not None:
            raise ValueError(f"this tensor has the name `{self.name}`")
        self.trace.wishes[id(self)] = check_name(name, "a tensor", may_be_number=True)
        return self

    # ---- Views

    def view(self, method: str, *sizes: Mode | None) -> Value:
        """A view by a method of the language, such as `.tile([64,32])`."""
        self.trace.uses(symbols_of(sizes))
        return Value(self.trace, method, (self,))

    @property
    def T(self) -> Value:
        """The tensor with its last two modes exchanged."""
        return self.view(".transpose()")

    def transpose(self) -> Value:
        """The tensor with its last two modes exchanged."""
        return self.T

    def permute(self, modes: Sequence[int]) -> Value:
        """The tensor with its modes in another order."""
        return self.view(f".permute([{_list(listed(modes, 'permute'))}])", *modes)

    def reshape(self, shape: Sequence[Extent], steps: Sequence[Extent]) -> Value:
        """The elements under other coordinates. `steps` are the distances along each new mode, in column-major
        coordinates of this tensor."""
        return self.view(reshaped(shape, steps), *shape, *steps)

    def tile(self, sizes: Sequence[Mode | None], steps: Sequence[Mode | None] | None = None) -> Value:
        """Tiles of these sizes; None keeps a whole mode. An index after it selects a tile. `steps` are the distances
        between the elements of a tile along each mode: `tile([2, 4], [2, 1])` takes every other row."""
        return self.view(tiles(sizes, steps), *sizes, *(steps or ()))

    def iota(self, axis: int) -> Value:
        """The coordinate of each element along a mode."""
        return self.view(f".iota({text_of(axis)})")

    def plus(self, number: Extent) -> Value:
        """The coordinates of :meth:`iota` plus a number."""
        return self.view(f".plus({text_of(number)})", number)

    @property
    def mine(self) -> Value:
        """The values of a register tensor that one thread holds."""
        return self.view(".mine")

    def tv(self, shape: tuple[Mode, ...], strides: tuple[Mode, ...], threads: Threads) -> Value:
        """The tensor by threads and values: the shapes of both, and their strides in column-major coordinates of this
        tensor."""
        return self.view(f".tv({spread(shape, strides, threads)})", shape, strides, threads.sizes)

    def typed(self, type: TensorType, memory: str = "") -> Value:
        """This tensor, with its type in the text. The type is checked against the derived type."""
        self.trace.uses(check_type(type).symbols)
        self.trace.types[id(self)] = type.text(check_memory(memory))
        return self

    def tensormap(self, box: Sequence[Extent], *, swizzle: tuple[int, int, int] | None = None) -> Value:
        """Boxes for the copy engine."""
        more = "" if swizzle is None else f", swizzle={text_of(swizzle)}"
        return self.view(f".tensormap([{_list(listed(box, 'tensormap'))}]{more})", *box)

    def peer(self, block: Extent) -> Value:
        """The tensor of another block of the cluster."""
        return self.view(f".peer({text_of(block)})", block)

    def pad(
        self, before: Sequence[Extent], behind: Sequence[Extent] | None = None, value: float | None = None
    ) -> Value:
        """The tensor with additional elements before the first one and after the last one of each mode."""
        parts = [f"[{_list(listed(before, 'pad'))}]"]
        if behind is not None:
            parts.append(f"[{_list(listed(behind, 'pad'))}]")
        if value is not None:
            if behind is None:
                raise TypeError(
                    "`pad` with a number says how many elements there are behind each mode, too: `pad([1, 1], [1, "
                    "1], 0)`"
                )
            parts.append(literal(value))
        return self.view(f".pad({', '.join(parts)})", *before, *(behind or ()))

    def __setitem__(self, index: Any, value: Operand) -> None:
        """Stores in a body: `view[i, j] = value` to a view, `tensor[...] = value` to a whole tensor."""
        is_whole = index is Ellipsis
        self.trace.store(self if is_whole else self[index], value, is_whole)

    def __getitem__(self, index: Any) -> Value:
        picks, operands, sizes = [], [], []
        for pick in index if isinstance(index, tuple) else (index,):
            if isinstance(pick, Value):
                # The name is inserted when the text is written.
                picks.append(None)
                operands.append(pick)
            else:
                picks.append(index_of(pick, sizes))
        self.trace.uses(symbols_of(tuple(sizes)))
        return Value(self.trace, "[]", (self, *operands), picks)


def reshaped(shape: Sequence[Mode], steps: Sequence[Mode]) -> str:
    """The method for other coordinates."""
    if len(listed(shape, "reshape")) != len(listed(steps, "reshape")):
        raise ValueError(f"{len(shape)} steps are wanted, and {len(steps)} are given")
    return f".reshape([{_list(shape)}]:[{_list(steps)}])"


def tiles(sizes: Sequence[Mode | None], steps: Sequence[Mode | None] | None) -> str:
    """The method for tiles."""
    listed(sizes, "tile")
    if steps is None:
        return f".tile([{_list(sizes)}])"
    if len(sizes) != len(listed(steps, "tile")):
        raise ValueError(f"{len(sizes)} steps are wanted, and {len(steps)} are given")
    modes = ("_" if size is None else f"[{text_of(size)}:{text_of(step)}]" for size, step in zip(sizes, steps))
    return f".tile({', '.join(modes)})"


def spread(shape: tuple[Mode, ...], strides: tuple[Mode, ...], threads: Threads) -> str:
    """A thread-value layout."""
    for side in (shape, strides):
        if not isinstance(side, tuple) or len(side) != 2:
            raise TypeError(
                "a thread-value layout has a shape and strides of threads and values, such as `((32,), 2)`, not "
                f"{side!r}"
            )
    if not hasattr(threads, "sizes"):
        raise TypeError(f"a thread-value layout is over threads such as `b.threads`, not {threads!r}")
    return f"{text_of(shape)}:{text_of(strides)} over {threads.text}"


def binary(function: str, a: object, b: object) -> Value:
    """An operation on two tensors, or on a tensor and a number."""
    check_operands(SIGNS.get(function, function), a, b)
    trace = a.trace if isinstance(a, Value) else b.trace
    return Value(trace, function, (a, b))


def check_operands(function: str, *operands: object) -> None:
    """Refuses a value that is not a tensor, size or number."""
    for operand in operands:
        if not isinstance(operand, (Value, Size, numbers.Real)) or isinstance(operand, bool):
            is_array = hasattr(operand, "__array__") or hasattr(operand, "__dlpack__")
            found = "an array: make it an argument of the kernel" if is_array else f"{operand!r}"
            raise TypeError(f"`{function}` is of traced tensors and numbers, not of {found}")


def check_tensor(function: str, a: object) -> None:
    """Refuses a value that is not a tensor."""
    if not isinstance(a, Value):
        raise TypeError(f"`{function}` is of a traced tensor, not of {a!r}")


def unary(function: str, a: Value, *attributes: str) -> Value:
    """An operation on one tensor."""
    check_tensor(function, a)
    return Value(a.trace, function, (a,), attributes)


def reduction(function: str, a: Value, axis: int | Sequence[int]) -> Value:
    """A reduction along modes."""
    axes = list(axis) if isinstance(axis, Sequence) else [axis]
    if not axes or not all(isinstance(i, numbers.Integral) and not isinstance(i, bool) for i in axes):
        raise TypeError(f"`axis` is a mode or a list of modes, not {axis!r}")
    if any(i < 0 for i in axes):
        raise ValueError("modes count from 0: `axis` cannot be negative")
    text = str(axes[0]) if len(axes) == 1 else f"({','.join(map(str, axes))})"
    return unary(function, a, f"axis={text}")


def index_of(pick: Any, sizes: list[Extent]) -> str:
    """An index in the syntax of the language. Its sizes are added to a list."""
    if isinstance(pick, slice):
        return _range(pick, sizes)
    if pick is Ellipsis or pick is None:
        raise TypeError("an index names each mode: write `:` for a whole one")
    sizes.append(pick)
    return text_of(pick)


def listed(sizes: Any, method: str) -> Sequence[Any]:
    """Refuses a value that is not a list of sizes."""
    if not isinstance(sizes, (list, tuple)):
        raise TypeError(f"`{method}` takes a list of sizes such as `[64, 32]`, not {sizes!r}")
    return sizes


def _list(sizes: Sequence[Mode | None]) -> str:
    return ",".join("_" if size is None else text_of(size) for size in sizes)


def _range(pick: slice, sizes: list[Extent]) -> str:
    if pick.step is not None:
        raise TypeError("a range has no step: take every second element by `reshape`")
    if pick.start is None and pick.stop is None:
        return "_"
    if pick.stop is None:
        raise TypeError("a range that begins within a mode needs its end")
    start = 0 if pick.start is None else pick.start
    sizes += [start, pick.stop]
    return f"{text_of(start)}..{text_of(pick.stop)}"


#: Operators of the language.
SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "matmul": "@",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
}  # fmt: skip

#: Operators of NumPy numbers.
_UFUNCS = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
    "equal": operator.eq, "not_equal": operator.ne,
}  # fmt: skip

_ANNOTATED = "its type is that of the annotation"

#: Hints for attributes that other libraries have.
_INSTEAD = {
    "shape": "only arguments and results have one, so use the sizes that it is made of",
    "dtype": _ANNOTATED, "ndim": _ANNOTATED, "size": _ANNOTATED,
    "astype": "write `cast(A, f32)`", "to": "write `cast(A, f32)`",
    "mean": "write `A.sum(axis=1) / N`", "amax": "write `A.max(axis=1)`",
    "flatten": "write `A.reshape(shape, steps)`", "exp": "write `exp(A)`", "sqrt": "write `sqrt(A)`",
    "relu": "write `relu(A)`", "tanh": "write `tanh(A)`",
}  # fmt: skip
