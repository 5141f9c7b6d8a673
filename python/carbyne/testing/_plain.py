"""Layouts as plain data, and the reference for laws: evaluation by counting.

Nothing here uses layout algebra. A layout is a list of leaves (extent, stride), the first leaf fastest. Its function is a table that is
built by counting through the leaves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional, SupportsIndex, Union

#: A shape, a stride or a coordinate: a number or a nested tuple of numbers.
IntTuple = Union[int, tuple["IntTuple", ...]]
#: A coordinate. `None` leaves a mode open.
OpenCoordinate = Union[int, None, tuple["OpenCoordinate", ...]]

#: Maximum number of enumerated coordinates.
MAX_POINTS = 1 << 16


@dataclass(frozen=True)
class Plain:
    """A layout as plain data: a shape and a congruent stride.

    >>> from carbyne.testing import Plain
    >>> rows = Plain((2, 3), (3, 1))
    >>> str(rows), rows.values()
    ('(2,3):(3,1)', [0, 3, 1, 4, 2, 5])
    """

    shape: IntTuple
    stride: IntTuple

    @staticmethod
    def flat(leaves: Iterable[tuple[int, int]]) -> Plain:
        """The layout of these leaves without nesting; without leaves, `1:0`."""
        leaves = list(leaves) or [(1, 0)]
        return Plain(tuple(e for e, _ in leaves), tuple(s for _, s in leaves))

    @staticmethod
    def concat(modes: Iterable[Plain]) -> Plain:
        """The layout with these modes."""
        modes = list(modes)
        return Plain(tuple(m.shape for m in modes), tuple(m.stride for m in modes))

    def modes(self) -> list[Plain]:
        """The modes of the outermost tuple; a number is a single mode."""
        if isinstance(self.shape, int) or isinstance(self.stride, int):
            return [self]
        return [Plain(d, s) for d, s in zip(self.shape, self.stride)]

    def leaves(self) -> list[tuple[int, int]]:
        """All leaves as (extent, stride), the first one fastest."""
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
        """The index of every coordinate, the first leaf fastest; only for small layouts."""
        if self.size() > MAX_POINTS:
            raise ValueError(f"{self} has more than {MAX_POINTS} coordinates")
        table = [0]
        for extent, stride in self.leaves():
            table = [digit * stride + index for digit in range(extent) for index in table]
        return table

    def index(self, i: int) -> int:
        """The index of the `i`-th coordinate, computed digit by digit, also for large layouts. The last leaf continues beyond its extent."""
        leaves = self.leaves()
        index = 0
        for extent, stride in leaves[:-1]:
            index += i % extent * stride
            i //= extent
        return index + i * leaves[-1][1] if leaves else 0

    def gaps(self) -> tuple[list[int], int] | None:
        """The gaps between leaves sorted by stride, and the reach of the last; `None` if the strides do not nest.

        Strides nest if each one, except 0, is a multiple of the reach of the next smaller one. Such layouts always have a complement
        and a left inverse.
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
        """Whether the indices are 0 to the size, each once."""
        return sorted(self.values()) == list(range(self.size()))

    def __str__(self) -> str:
        return f"{text(self.shape)}:{text(self.stride)}"


class Swizzle(NamedTuple):
    """`Sw<bits,base,shift>`: XORs `bits` bits above the lowest `base` bits with the bits that are `shift` positions higher."""

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
        """The number of indices, from 0 on, that are permuted among each other."""
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


#: A layout, or a list of layouts for the first modes; `None` leaves a mode unchanged.
PlainTiler = Union[Plain, None, list[Optional[Plain]]]


def is_operand(kind: str, value: Any) -> bool:
    """Whether the value has the type `kind`, as written at a law's parameter."""
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
    """The value in the syntax of layouts: no blanks, `_` for `None`."""
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
    """Whether both have equal nesting."""
    return deepens(a, b) and deepens(b, a)


def deepens(a: IntTuple, b: IntTuple) -> bool:
    """Whether every tuple of `a` corresponds to a tuple of equal rank in `b`."""
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
    """The coordinate of an index below the size; deeper than `depth` levels, numbers stand for whole modes."""
    if isinstance(shape, int) or depth == 0:
        return i
    digits: list[IntTuple] = []
    for mode in shape:
        i, digit = divmod(i, size_of(mode))
        digits.append(coordinate(digit, mode, depth - 1))
    return tuple(digits)
