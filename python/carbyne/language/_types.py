"""Types of tensors, for annotations of a kernel's parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Union

from ._sizes import DEEPEST, Extent, Symbol, Symbols, symbols_of, text_of

#: An extent or a stride; a tuple for a hierarchical mode.
Mode = Union[Extent, tuple["Mode", ...]]


@dataclass(frozen=True, eq=False)
class TensorType:
    """The type of a tensor of the caller.

    >>> from carbyne.language import f16, i32, symbols
    >>> M, N = symbols("M N")
    >>> f16[M, N]
    TensorType([M,N].f16)
    >>> f16[M, N].strides(1, M)
    TensorType([(M,N):(1,M)].f16)
    >>> i32[M].within(0, N)
    TensorType([M].i32 in 0..N)
    >>> f16[64, 32].strides(1, 64).array(3)
    TensorType([3].[(64,32):(1,64)].f16)
    """

    scalar: Scalar
    shape: tuple[Mode, ...]
    #: Strides along each mode, in elements; None means row-major.
    stride: tuple[Mode, ...] | None = None
    #: Outer levels: shapes and strides of arrays of such tensors, the outermost first.
    around: tuple[tuple[tuple[Mode, ...], tuple[Mode, ...] | None], ...] = ()
    #: Facts about integer elements, in the syntax of the language.
    values: str = ""
    #: Symbols in these facts.
    _more: Symbols = field(default_factory=dict)

    def strides(self, *strides: Mode) -> TensorType:
        """The type with these strides, in elements."""
        return replace(self, stride=_strides(self.shape, strides))

    def array(self, *shape: Mode, strides: Sequence[Mode] | None = None) -> TensorType:
        """The type of an array of such tensors, consecutive or `strides` elements apart. An index selects one
        tensor."""
        modes = tuple(map(_mode, shape))
        return replace(self, around=((modes, None if strides is None else _strides(modes, strides)), *self.around))

    def within(self, least: Extent, end: Extent, *, distinct: bool = False) -> TensorType:
        """The type of a tensor whose integers are at least `least` and below `end`, and all different if
        `distinct`."""
        text = f" in {text_of(least)}..{text_of(end)}{' distinct' if distinct else ''}"
        return replace(self, values=text, _more=symbols_of(least) | symbols_of(end))

    def splits(self, total: Extent) -> TensorType:
        """The type of a tensor whose integers begin with 0, never decrease, and end with `total`."""
        return replace(self, values=f" splits {text_of(total)}", _more=symbols_of(total))

    @property
    def symbols(self) -> Symbols:
        """The symbols in the type."""
        levels = tuple((shape, stride or ()) for shape, stride in (*self.around, (self.shape, self.stride)))
        return symbols_of(levels) | self._more

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and self.text() == other.text()

    def __hash__(self) -> int:
        return hash(self.text())

    def text(self, memory: str = "") -> str:
        """The type in the syntax of the language, in a memory such as `GL`."""
        levels = [_level(shape, stride) for shape, stride in (*self.around, (self.shape, self.stride))]
        place = f".{memory}" if memory and self.shape else ""
        return f"{'.'.join(levels)}.{self.scalar.name}{place}{self.values}"

    def declared(self, name: str) -> list[str]:
        """The statement that declares a tensor of the caller."""
        return [f"%{name}:{self.text('GL')}"]

    def __repr__(self) -> str:
        return f"TensorType({self.text()})"


@dataclass(frozen=True)
class Scalar:
    """An element type. `f16[M, N]` is a tensor type; `f16` alone is the type of a number."""

    name: str

    def __getitem__(self, shape: Any) -> TensorType:
        sizes = shape if isinstance(shape, tuple) else (shape,)
        return TensorType(self, tuple(map(_mode, sizes)))

    def __repr__(self) -> str:
        return self.name


def check_type(type: object) -> TensorType:
    """Refuses a value that is not a tensor type."""
    if not isinstance(type, TensorType):
        raise TypeError(f"a tensor has a type such as `f32[64, 64]`, not {type!r}")
    return type


def check_memory(memory: object) -> str:
    """Refuses an unknown memory; empty if other parts determine the memory."""
    if memory not in ("", "GL", "SH", "RF"):
        raise ValueError(f'a memory is `"GL"`, `"SH"` or `"RF"`, not {memory!r}')
    return memory  # type: ignore[return-value]


def word(value: object) -> str:
    """An attribute in the syntax of the language: a word, a size, a tuple of sizes, a type, or a strategy such as
    `@ring[BM=128]`."""
    if isinstance(value, Scalar):
        return value.name
    if isinstance(value, (tuple, list)):
        return f"({','.join(map(word, value))})"
    if not isinstance(value, str):
        return text_of(value)
    if not re.fullmatch(r"\w+(\.\w+)*|@\w+(\[[\w=,.+*/() -]*\])?|@?\[[\w=,.+*/() -]*\]", value, re.ASCII):
        raise ValueError(
            f"{value!r} is no attribute: it is a word such as `fast`, a size, a type, or a strategy such as "
            "`@ring[BM=128]`"
        )
    return value


def _level(shape: tuple[Mode, ...], stride: tuple[Mode, ...] | None) -> str:
    if stride is None:
        return f"[{','.join(map(text_of, shape))}]"
    is_one = len(shape) == 1 and not isinstance(shape[0], tuple)
    return f"[{':'.join(text_of(side[0] if is_one else side) for side in (shape, stride))}]"


def _strides(shape: Sequence[Mode], strides: Sequence[Mode]) -> tuple[Mode, ...]:
    if len(strides) != len(shape):
        raise ValueError(f"{len(shape)} strides are wanted, and {len(strides)} are given")
    return tuple(map(_mode, strides))


def _mode(size: Any, depth: int = 0) -> Mode:
    if isinstance(size, str):
        return Symbol(size)
    if isinstance(size, tuple) and depth < DEEPEST:
        return tuple(_mode(part, depth + 1) for part in size)
    text_of(size, depth)
    return size


f64, f32, tf32, f16, bf16 = map(Scalar, ("f64", "f32", "tf32", "f16", "bf16"))
e4m3, e5m2 = map(Scalar, ("e4m3", "e5m2"))
i64, i32, i16, i8, i4, i2, i1 = (Scalar(f"i{n}") for n in (64, 32, 16, 8, 4, 2, 1))
u64, u32, u16, u8, u4, u2, u1 = (Scalar(f"u{n}") for n in (64, 32, 16, 8, 4, 2, 1))
bool_ = Scalar("bool")
mbarrier = Scalar("mbarrier")
#: Elements of groups. `thread[32]` is a warp.
thread, block = Scalar("thread"), Scalar("block")
