"""Layouts as plain data, and the reference that laws are judged by: evaluation by counting.

Nothing here calls layout algebra. A layout is a list of leaves (extent, stride), the first leaf fastest, and its function is a
table that is built by counting through the leaves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional, SupportsIndex, Union

#: A shape, a stride or a coordinate: a number or a tuple of such.
IntTuple = Union[int, tuple["IntTuple", ...]]
#: A coordinate. `None` leaves a mode open.
OpenCoordinate = Union[int, None, tuple["OpenCoordinate", ...]]

#: The most coordinates that are enumerated.
MAX_POINTS = 1 << 16


@dataclass(frozen=True)
class Plain:
    """A layout as plain data: a shape and a stride, nested alike.

    >>> from carbyne.testing import Plain
    >>> rows = Plain((2, 3), (3, 1))
    >>> str(rows), rows.values()
    ('(2,3):(3,1)', [0, 3, 1, 4, 2, 5])
    """

    shape: IntTuple
    stride: IntTuple

    @staticmethod
    def flat(leaves: Iterable[tuple[int, int]]) -> Plain:
        """The layout of these leaves without nesting; of none, `1:0`."""
        leaves = list(leaves) or [(1, 0)]
        return Plain(tuple(e for e, _ in leaves), tuple(s for _, s in leaves))

    @staticmethod
    def concat(modes: Iterable[Plain]) -> Plain:
        """The layout whose modes are these."""
        modes = list(modes)
        return Plain(tuple(m.shape for m in modes), tuple(m.stride for m in modes))

    def modes(self) -> list[Plain]:
        """The modes of the outermost tuple; a number is its own only mode."""
        if isinstance(self.shape, int) or isinstance(self.stride, int):
            return [self]
        return [Plain(d, s) for d, s in zip(self.shape, self.stride)]

    def leaves(self) -> list[tuple[int, int]]:
        """All (extent, stride), the first one fastest."""
        return list(zip(flatten(self.shape), flatten(self.stride)))

    def kept(self) -> list[tuple[int, int]]:
        """The leaves that change the index: neither extent 1 nor stride 0."""
        return [(e, s) for e, s in self.leaves() if e > 1 and s != 0]

    def size(self) -> int:
        """The number of coordinates."""
        return size_of(self.shape)

    def cosize(self) -> int:
        """One more than the largest index, if no stride is negative."""
        return 1 + sum((e - 1) * s for e, s in self.leaves())

    def values(self) -> list[int]:
        """The index of every coordinate, the first leaf fastest; of small layouts only."""
        if self.size() > MAX_POINTS:
            raise ValueError(f"{self} has more than {MAX_POINTS} coordinates")
        table = [0]
        for extent, stride in self.leaves():
            table = [digit * stride + index for digit in range(extent) for index in table]
        return table

    def index(self, i: int) -> int:
        """The index of the `i`-th coordinate, digit by digit: also of large layouts. The last leaf goes on beyond its extent."""
        leaves = self.leaves()
        index = 0
        for extent, stride in leaves[:-1]:
            index += i % extent * stride
            i //= extent
        return index + i * leaves[-1][1] if leaves else 0

    def gaps(self) -> tuple[list[int], int] | None:
        """The gaps between leaves sorted by stride, and the reach of the last; `None` if the strides do not nest.

        Strides nest if every one but 0 is a multiple of the reach of the next smaller: such layouts have a complement and a
        left inverse for certain.
        """
        gaps: list[int] = []
        reach = 1
        for extent, stride in sorted(self.kept(), key=lambda leaf: leaf[1]):
            if stride < reach or stride % reach:
                return None
            gaps.append(stride // reach)
            reach = extent * stride
        return [gap for gap in gaps if gap > 1], reach

    def is_injective(self) -> bool:
        """Whether no two coordinates share an index."""
        values = self.values()
        return len(set(values)) == len(values)

    def is_bijective(self) -> bool:
        """Whether the indices are those from 0 to the size, each once."""
        return sorted(self.values()) == list(range(self.size()))

    def __str__(self) -> str:
        return f"{text(self.shape)}:{text(self.stride)}"


class Swizzle(NamedTuple):
    """`Sw<bits,base,shift>`: `bits` bits above the lowest `base` are XORed with the bits that lie `shift` above them."""

    bits: int
    base: int
    shift: int

    def of(self, index: int) -> int:
        """The swizzled index, from the definition.

        >>> from carbyne.testing import Swizzle
        >>> [Swizzle(1, 0, 1).of(i) for i in range(4)]
        [0, 1, 3, 2]
        """
        mask = ((1 << self.bits) - 1) << self.base
        return index ^ (index >> self.shift & mask)

    def period(self) -> int:
        """The number of indices, from 0 on, that are permuted among themselves."""
        return 1 << (self.bits + self.base + self.shift)

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"


@dataclass(frozen=True)
class ThreadValue:
    """A layout from (thread, value) to a column-major index of a tile."""

    tile: IntTuple
    layout: Plain

    def __str__(self) -> str:
        return f"{self.layout} of the tile {text(self.tile)}"


#: A layout, or one for each of the first modes; `None` leaves the mode alone.
PlainTiler = Union[Plain, None, list[Optional[Plain]]]


def is_operand(kind: str, value: Any) -> bool:
    """True if the value has the type that is written as `kind` at a law's parameter."""
    if kind in ("IntTuple", "OpenCoordinate"):
        if isinstance(value, tuple):
            return all(is_operand(kind, part) for part in value)
        return isinstance(value, int) or value is None and kind == "OpenCoordinate"
    if kind in ("list[Plain | None]", "PlainTiler"):
        if isinstance(value, list):
            return all(mode is None or isinstance(mode, Plain) for mode in value)
        return kind == "PlainTiler" and (value is None or isinstance(value, Plain))
    return isinstance(value, {"Plain": Plain, "Swizzle": Swizzle, "ThreadValue": ThreadValue, "int": SupportsIndex}[kind])


def text(value: Any) -> str:
    """The value as layouts are written: no blanks, `_` for `None`."""
    if isinstance(value, Plain):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(text, value))}]"
    if type(value) is tuple:
        return f"({','.join(map(text, value))})"
    return "_" if value is None else str(value)


def flatten(value: IntTuple) -> list[int]:
    """The numbers of a tuple in order."""
    if isinstance(value, int):
        return [value]
    return [number for part in value for number in flatten(part)]


def size_of(shape: IntTuple) -> int:
    """The product of the numbers."""
    return math.prod(flatten(shape))


def depth_of(value: IntTuple) -> int:
    """The levels of nesting; 0 is a number."""
    return 0 if isinstance(value, int) else 1 + max(map(depth_of, value), default=0)


def is_congruent(a: IntTuple, b: IntTuple) -> bool:
    """Whether both are nested alike."""
    return deepens(a, b) and deepens(b, a)


def deepens(a: IntTuple, b: IntTuple) -> bool:
    """Whether every tuple of `a` stands over one of the same rank in `b`."""
    if isinstance(a, int):
        return True
    return not isinstance(b, int) and len(a) == len(b) and all(map(deepens, a, b))


def refines(a: IntTuple, b: IntTuple) -> bool:
    """Whether `b` has the size of `a` at each number of `a`."""
    if isinstance(a, int):
        return size_of(b) == a
    return not isinstance(b, int) and len(a) == len(b) and all(map(refines, a, b))


def column_major(shape: IntTuple) -> Plain:
    """The compact layout, the first leaf fastest."""
    after = 1

    def stride(part: IntTuple) -> IntTuple:
        nonlocal after
        if isinstance(part, int):
            now, after = after, after * part
            return now
        return tuple(map(stride, part))

    return Plain(shape, stride(shape))


def coordinate(i: int, shape: IntTuple, depth: int = 99) -> IntTuple:
    """The coordinate of an index below the size; beyond `depth` levels numbers stand for whole modes."""
    if isinstance(shape, int) or depth == 0:
        return i
    digits: list[IntTuple] = []
    for mode in shape:
        i, digit = divmod(i, size_of(mode))
        digits.append(coordinate(digit, mode, depth - 1))
    return tuple(digits)
