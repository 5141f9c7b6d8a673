"""The interface between a library of layouts and the laws: :class:`Adapter`."""

from __future__ import annotations

import abc
from typing import Generic, NoReturn, Optional, TypeVar, Union

from ._plain import IntTuple, OpenCoordinate, Swizzle

L = TypeVar("L")

#: The right operand of composition, division and product: a layout, or a list of layouts for the first modes; `None` leaves
#: a mode unchanged.
Tiler = Union[L, None, list[Optional[L]]]


class Adapter(abc.ABC, Generic[L]):
    """Builds and reads layouts of a library, and calls its operations; `L` is its type of layouts.

    Three methods are required. The others are operations of CuTe under CuTe's names; implement those that the library has with one
    call each. An operation that is missing or raises `NotImplementedError` is reported as not implemented, and its laws are skipped.

    >>> from carbyne.testing import Adapter, check
    >>> class Pairs(Adapter[tuple]):
    ...     def build(self, shape, stride): return (shape, stride)
    ...     def shape(self, a): return a[0]
    ...     def stride(self, a): return a[1]
    ...     def group(self, a, begin, end):
    ...         return tuple((*t[:begin], t[begin:end], *t[end:]) for t in a)
    >>> report = check(Pairs())
    >>> report.held
    ['build', 'group', 'build_large']
    """

    #: Whether :meth:`build` accepts negative strides.
    has_negative_strides: bool = False
    #: Whether sizes and indices may exceed 32 bits, up to 2^60.
    has_large_layouts: bool = True
    #: Exceptions of the library for operands without a result. Any other exception breaks a law.
    refusals: tuple[type[BaseException], ...] = (ValueError, AssertionError)

    @property
    def name(self) -> str:
        """The name of the library in reports."""
        return type(self).__name__

    @abc.abstractmethod
    def build(self, shape: IntTuple, stride: IntTuple) -> L:
        """The layout with this shape and stride, which are congruent. Extents are at least 1."""

    @abc.abstractmethod
    def shape(self, a: L) -> IntTuple:
        """The extents of a layout: an integer or a tuple, nested."""

    @abc.abstractmethod
    def stride(self, a: L) -> IntTuple:
        """The strides, nested as the shape is."""

    # Evaluation, and operations that keep the function

    def at(self, a: L, coordinate: IntTuple) -> int:
        """The index of a coordinate; a number may stand for a tuple."""
        _absent()

    def coalesce(self, a: L, profile: IntTuple | None) -> L:
        """As few modes as the function of one-dimensional indices needs; with a profile, for each of its numbers."""
        _absent()

    def filter(self, a: L) -> L:
        """The layout without leaves of stride 0 and extent 1, coalesced."""
        _absent()

    def flatten(self, a: L) -> L:
        """The layout without nesting."""
        _absent()

    # Algebra

    def composition(self, outer: L, inner: Tiler[L]) -> L:
        """`outer` after `inner`, by mode for a list."""
        _absent()

    def complement(self, a: L, cotarget: int) -> L:
        """The layout that fills the gaps up to `cotarget`."""
        _absent()

    def right_inverse(self, a: L) -> L:
        """`a(result(i)) == i`."""
        _absent()

    def left_inverse(self, a: L) -> L:
        """`a(result(a(i))) == a(i)`."""
        _absent()

    def nullspace(self, a: L) -> L:
        """The coordinates that differ in leaves of stride 0 only: `a(result(i)) == 0`."""
        _absent()

    def logical_divide(self, whole: L, tiler: Tiler[L]) -> L:
        """Each tiled mode becomes (tile, rest)."""
        _absent()

    def zipped_divide(self, whole: L, tiler: Tiler[L]) -> L:
        """((tiles), (rests))."""
        _absent()

    def tiled_divide(self, whole: L, tiler: Tiler[L]) -> L:
        """((tiles), rest, rest, ...)."""
        _absent()

    def flat_divide(self, whole: L, tiler: Tiler[L]) -> L:
        """(tile, tile, ..., rest, rest, ...)."""
        _absent()

    def logical_product(self, block: L, tiler: Tiler[L]) -> L:
        """Each tiled mode becomes (mode, copies)."""
        _absent()

    def zipped_product(self, block: L, tiler: Tiler[L]) -> L:
        """((modes), (copies))."""
        _absent()

    def tiled_product(self, block: L, tiler: Tiler[L]) -> L:
        """((modes), copies, copies, ...)."""
        _absent()

    def flat_product(self, block: L, tiler: Tiler[L]) -> L:
        """(mode, mode, ..., copies, copies, ...)."""
        _absent()

    def blocked_product(self, block: L, tiler: L) -> L:
        """Copies of a block beside each other: mode k is (block k, tiler k)."""
        _absent()

    def raked_product(self, block: L, tiler: L) -> L:
        """Copies of a block interleaved: mode k is (tiler k, block k)."""
        _absent()

    def with_shape(self, a: L, shape: IntTuple) -> L:
        """The function with another shape, of equal or smaller size."""
        _absent()

    def tile_to_shape(self, block: L, shape: IntTuple) -> L:
        """Copies of a block that fill a flat shape, first mode first."""
        _absent()

    def max_common_vector(self, a: L, b: L) -> int:
        """The number of indices, from 0 on, that both layouts have at equal coordinates."""
        _absent()

    def max_common_layout(self, a: L, b: L) -> L:
        """The coordinates of these indices: `a(result(i)) == b(result(i)) == i`."""
        _absent()

    # Other widths of elements

    def upcast(self, a: L, n: int) -> L:
        """The layout of groups of `n` consecutive elements."""
        _absent()

    def downcast(self, a: L, n: int) -> L:
        """The layout of the `n` parts of each element."""
        _absent()

    def recast(self, a: L, old_bits: int, new_bits: int) -> L:
        """The layout of the memory in elements of another width."""
        _absent()

    # Modes

    def group(self, a: L, begin: int, end: int) -> L:
        """Modes `begin` to before `end` gathered into one."""
        _absent()

    def concat(self, modes: list[L]) -> L:
        """The layout with these modes."""
        _absent()

    def slice(self, a: L, coordinate: OpenCoordinate) -> L:
        """The modes where the coordinate is `None`."""
        _absent()

    def dice(self, a: L, coordinate: OpenCoordinate) -> L:
        """The modes where the coordinate is a number."""
        _absent()

    # Relations of shapes

    def congruent(self, a: IntTuple, b: IntTuple) -> bool:
        """Whether two shapes have equal nesting."""
        _absent()

    def weakly_congruent(self, a: IntTuple, b: IntTuple) -> bool:
        """Whether `b` refines the nesting of `a`."""
        _absent()

    def compatible(self, a: IntTuple, b: IntTuple) -> bool:
        """Whether every coordinate of `a` is a coordinate of `b`."""
        _absent()

    # Swizzles

    def swizzle(self, swizzle: Swizzle, index: int) -> int:
        """The swizzled index."""
        _absent()

    def swizzled_at(self, swizzle: Swizzle, offset: int, a: L, i: int) -> int:
        """`swizzle(offset + a(i))`, the index of a swizzled layout."""
        _absent()

    def swizzled_composition_at(self, swizzle: Swizzle, offset: int, outer: L, inner: L, i: int) -> int:
        """The index at `i` of the composition of a swizzled layout with `inner`."""
        _absent()

    def swizzle_recast(self, swizzle: Swizzle, old_bits: int, new_bits: int) -> Swizzle:
        """The swizzle of the memory for indices of elements of another width."""
        _absent()


def _absent() -> NoReturn:
    raise NotImplementedError
