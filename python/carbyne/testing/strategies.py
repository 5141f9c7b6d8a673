"""Hypothesis strategies for shapes, layouts, and operands for which an operation must have a result.

Values are constructed, never filtered. Therefore every value during shrinking is admissible, too, and shrinking ends at a layout of one
or two leaves. Operands are *admissible* for an operation if it has an exact result in every library with CuTe's semantics: inner
layouts made of whole digits of the outer one, tiles that divide, layouts whose strides nest.

>>> from hypothesis import given, settings
>>> from carbyne import Layout
>>> from carbyne.testing import strategies
>>> @settings(deadline=None, max_examples=20)
... @given(strategies.compositions())
... def test(pair):
...     outer, inner = (Layout(a.shape, a.stride) for a in pair)
...     assert outer.compose(inner).size() == inner.size()
>>> test()
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from ._plain import (
    IntTuple,
    OpenCoordinate,
    Plain,
    PlainTiler,
    Swizzle,
    ThreadValue,
    column_major,
    depth_of,
    size_of,
)

__all__ = [
    "Bounds",
    "bijections",
    "broadcasts",
    "compact_layouts",
    "complements",
    "compositions",
    "compositions_by_mode",
    "divisions",
    "divisions_by_mode",
    "downcasts",
    "int_tuples",
    "large_casts",
    "large_complements",
    "large_compositions",
    "large_divisions",
    "large_layouts",
    "large_products",
    "layout_pairs",
    "layouts",
    "mode_ranges",
    "negative_layouts",
    "nested_strides",
    "padded_layouts",
    "products",
    "products_by_mode",
    "profiles",
    "recasts",
    "refinements",
    "replicated_thread_values",
    "reshapes",
    "same_shapes",
    "slices",
    "swizzle_recasts",
    "swizzled_compositions",
    "swizzled_layouts",
    "swizzles",
    "thread_values",
    "tile_to_shapes",
    "tilers",
    "upcasts",
]

#: Extents of leaves; simple ones first, because shrinking ends there.
EXTENTS = [1, 2, 2, 2, 3, 4, 4, 4, 5, 6, 7, 8, 8, 12, 16, 32]
#: Maximum ratio of the reach and the size of a layout, so that its complement can be enumerated.
MAX_GAPS = 32
#: Maximum index of large layouts, so that sums of two indices fit 64 bits.
LARGE = 1 << 60


@dataclass(frozen=True)
class Bounds:
    """The maximum size of operands.

    An inner layout, a tile or a shape that is cut from a layout has divisors of the layout's extents.

    >>> from carbyne.testing import Bounds, strategies
    >>> matrices = Bounds(rank=2, depth=1)
    >>> a = strategies.layouts(matrices).example()
    """

    #: Maximum number of coordinates of a layout, at most 1024. Large layouts may have more.
    size: int = 192
    #: Maximum number of modes of the outermost tuple.
    rank: int = 5
    #: Maximum nesting: 0 is a number, 1 a tuple of numbers.
    depth: int = 3
    #: Maximum extent of a leaf.
    extent: int = 32

    def __post_init__(self) -> None:
        if not (1 <= self.size <= 1024 and self.rank >= 1 and self.depth >= 0 and self.extent >= 1):
            raise ValueError(f"{self}: 1 <= size <= 1024, 1 <= rank, 0 <= depth and 1 <= extent are wanted")

    def at_most(self, size: int) -> Bounds:
        """These bounds with at most `size` coordinates."""
        return replace(self, size=min(self.size, size))

    def leaves(self) -> int:
        """Maximum number of leaves of a layout."""
        return self.rank if self.depth == 1 else 5 if self.depth else 1


DEFAULT = Bounds()


@dataclass(frozen=True)
class _Style:
    """The allowed strides of a layout."""

    permuted: bool = True
    padded: bool = False
    broadcast: bool = False
    wild: bool = False

    def kinds(self) -> list[str]:
        chosen = [("gap", 3, self.padded), ("broadcast", 2, self.broadcast), ("wild", 2, self.wild)]
        return ["compact"] * 9 + [kind for kind, times, on in chosen if on for _ in range(times)]


_ANY = _Style(padded=True, broadcast=True, wild=True)
_NESTED = _Style(padded=True, broadcast=True)


def _leaves(draw: DrawFn, style: _Style, bounds: Bounds) -> list[tuple[int, int]]:
    """Leaves within bounds. Unless wild, they nest: every stride except 0 is a multiple of the reach before it."""
    # Draw all choices of a leaf together, so that shrinking removes the whole leaf.
    kinds = st.sampled_from(style.kinds())
    leaf = st.tuples(st.sampled_from(EXTENTS), st.integers(0, 15), kinds, st.integers(0, 100))
    left = bounds.size
    extents: list[int] = []
    chosen = draw(st.lists(leaf, max_size=bounds.leaves()))
    for extent, *_ in chosen:
        extents.append(min(extent, left, bounds.extent))
        left //= extents[-1]
    order = sorted(range(len(chosen)), key=lambda k: chosen[k][1] if style.permuted else k)
    strides = [0] * len(extents)
    reach = gaps = 1
    for k in order:
        _, _, kind, number = chosen[k]
        if kind == "broadcast":
            continue
        if kind == "wild":
            strides[k] = number
            continue
        if kind == "gap":
            gap = 1 + number % (MAX_GAPS // gaps)
            gaps *= gap
            reach *= gap
        strides[k] = reach
        reach *= extents[k]
    return list(zip(extents, strides))


def _nest(draw: DrawFn, leaves: list[tuple[int, int]], bounds: Bounds) -> Plain:
    """Nests the leaves at random. No leaves make `1:0`. Bounds without nesting drop leaves that do not fit."""
    if bounds.depth <= 1:
        leaves = leaves[: bounds.rank if bounds.depth else 1]
    modes = [Plain(e, s) for e, s in leaves] or [Plain(1, 0)]
    for _ in range(draw(st.integers(0, 2)) if bounds.depth else 0):
        begin = draw(st.integers(0, len(modes) - 1))
        end = draw(st.integers(begin + 1, len(modes)))
        inner = Plain.concat(modes[begin:end])
        # Unless they are all modes, gathered modes are inside a tuple of modes.
        deepest, most = (bounds.depth, bounds.rank) if len(inner.modes()) == len(modes) else (bounds.depth - 1, 99)
        if depth_of(inner.shape) <= deepest and len(inner.modes()) <= most:
            modes[begin:end] = [inner]
    if len(modes) > bounds.rank:
        rest = [leaf for mode in modes[bounds.rank - 1 :] for leaf in mode.leaves()]
        return Plain.concat([*modes[: bounds.rank - 1], Plain.flat(rest)])
    return modes[0] if len(modes) == 1 else Plain.concat(modes)


def _styled(style: _Style, bounds: Bounds) -> st.SearchStrategy[Plain]:
    @st.composite
    def layout(draw: DrawFn) -> Plain:
        return _nest(draw, _leaves(draw, style, bounds), bounds)

    return layout()


# Layouts


def int_tuples(bounds: Bounds = DEFAULT) -> st.SearchStrategy[IntTuple]:
    """Nested tuples of positive numbers: shapes."""
    return compact_layouts(bounds).map(lambda a: a.shape)


def layouts(bounds: Bounds = DEFAULT) -> st.SearchStrategy[Plain]:
    """Layouts without negative strides. Some strides are arbitrary numbers."""
    return _styled(_ANY, bounds)


def compact_layouts(bounds: Bounds = DEFAULT) -> st.SearchStrategy[Plain]:
    """Compact layouts, the first leaf fastest."""
    return _styled(_Style(permuted=False), bounds)


def bijections(bounds: Bounds = DEFAULT) -> st.SearchStrategy[Plain]:
    """Compact layouts whose leaves are in any order."""
    return _styled(_Style(), bounds)


def padded_layouts(bounds: Bounds = DEFAULT) -> st.SearchStrategy[Plain]:
    """Injective layouts with gaps whose strides nest: their left inverse exists."""
    return _styled(_Style(padded=True), bounds)


def broadcasts(bounds: Bounds = DEFAULT) -> st.SearchStrategy[Plain]:
    """Compact layouts in any order, some of whose leaves have stride 0."""
    return _styled(_Style(broadcast=True), bounds)


def nested_strides(bounds: Bounds = DEFAULT) -> st.SearchStrategy[Plain]:
    """Layouts with gaps and strides of 0 whose strides nest: their complement exists."""
    return _styled(_NESTED, bounds)


def _signed(draw: DrawFn, stride: IntTuple) -> IntTuple:
    if isinstance(stride, int):
        return -stride if draw(st.booleans()) else stride
    return tuple(_signed(draw, part) for part in stride)


@st.composite
def negative_layouts(draw: DrawFn, bounds: Bounds = DEFAULT) -> Plain:
    """Layouts with some negative strides."""
    a = draw(layouts(bounds))
    return Plain(a.shape, _signed(draw, a.stride))


def layout_pairs(bounds: Bounds = DEFAULT) -> st.SearchStrategy[tuple[Plain, Plain]]:
    """Two independent layouts: an operation may refuse them."""
    return st.tuples(layouts(bounds), layouts(bounds))


@st.composite
def same_shapes(draw: DrawFn, bounds: Bounds = DEFAULT) -> tuple[Plain, Plain]:
    """Two layouts with equal shapes; the second is the first one, or a bijection in some order."""
    a = draw(padded_layouts(bounds))
    if draw(st.booleans()):
        return a, a
    extents = [e for e, _ in a.leaves()]
    strides, reach = [0] * len(extents), 1
    for k in draw(st.permutations(range(len(extents)))):
        strides[k] = reach
        reach *= extents[k]
    rest = iter(strides)

    def nested(shape: IntTuple) -> IntTuple:
        return next(rest) if isinstance(shape, int) else tuple(map(nested, shape))

    return a, Plain(a.shape, nested(a.shape))


@st.composite
def large_layouts(draw: DrawFn, bounds: Bounds = DEFAULT, padded: bool = True, broadcast: bool = True) -> Plain:
    """Layouts whose strides nest, with sizes and indices of up to 60 bits. `bounds.size` does not limit them."""
    power = st.one_of(st.just(0), st.integers(0, 39))
    leaf = st.tuples(st.sampled_from(EXTENTS), st.integers(0, 15), power, power, st.integers(0, 7))
    chosen = draw(st.lists(leaf, max_size=bounds.leaves()))
    leaves = [(1, 0)] * len(chosen)
    reach = size = 1
    for k in sorted(range(len(chosen)), key=lambda k: chosen[k][1]):
        extent, _, wide, far, kind = chosen[k]
        extent <<= wide
        gap = 1 << far if padded else 1
        if size * extent > LARGE:
            continue
        if broadcast and kind == 7:
            leaves[k] = (extent, 0)
        elif reach * gap * extent <= LARGE:
            leaves[k] = (extent, reach * gap)
            reach *= gap * extent
        size *= leaves[k][0]
    return _nest(draw, leaves, bounds)


# Operands made of digits of a layout


def _radices(a: Plain) -> list[int]:
    """The extents after merging continuing leaves: the radices in which `a` writes an index."""
    merged: list[tuple[int, int]] = []
    for extent, stride in a.leaves():
        if extent == 1:
            continue
        if merged and merged[-1][0] * merged[-1][1] == stride:
            merged[-1] = (merged[-1][0] * extent, merged[-1][1])
        else:
            merged.append((extent, stride))
    return [extent for extent, _ in merged]


def _cut(draw: DrawFn, radices: list[int]) -> list[int]:
    """The radices, up to two of them cut into two factors."""
    for _ in range(draw(st.integers(0, 2)) if radices else 0):
        k = draw(st.integers(0, len(radices) - 1))
        n = radices[k]
        low = [d for d in range(2, min(n, 64)) if n % d == 0]
        if low:
            inner = draw(st.sampled_from(sorted({*low, *(n // d for d in low)})))
            radices = [*radices[:k], inner, n // inner, *radices[k + 1 :]]
    return radices


#: The use of a digit, and the position of a run that begins with it.
_USES = st.tuples(st.sampled_from(["skip", "new", "new", "continue"]), st.integers(0, 15))


def _runs(draw: DrawFn, radices: Iterable[int], truncate: bool = False) -> list[tuple[int, int]]:
    """Runs of neighboring digits, each as (extent, stride) over the index that the digits write, in any order.

    Different runs use different digits. With `truncate`, the highest digit of a run may stop short of its radix, and there
    may be a run of stride 0.
    """
    runs: list[tuple[int, int, int]] = []
    below, is_open = 1, False
    for radix in radices:
        use, order = draw(_USES)
        extent = radix
        if truncate and use != "skip" and radix > 2 and draw(st.integers(0, 4)) == 4:
            extent = draw(st.integers(1, radix - 1))
        if use == "continue" and is_open:
            runs[-1] = (runs[-1][0], runs[-1][1] * extent, runs[-1][2])
        elif use != "skip":
            runs.append((order, extent, below))
        is_open = use != "skip" and extent == radix
        below *= radix
    if truncate and draw(st.integers(0, 7)) == 7:
        runs.append((draw(st.integers(0, 15)), draw(st.integers(2, 4)), 0))
    return [(extent, stride) for _, extent, stride in sorted(runs, key=lambda run: run[0])]


def _inner(draw: DrawFn, outer: Plain, bounds: Bounds) -> Plain:
    """A layout that composes with `outer`: runs of its digits."""
    return _nest(draw, _runs(draw, _cut(draw, _radices(outer)), truncate=True), bounds)


def _tile(draw: DrawFn, whole: Plain, bounds: Bounds) -> Plain:
    """A tile that divides `whole` without rest: whole digits, each once."""
    return _nest(draw, _runs(draw, _cut(draw, _radices(whole))), bounds)


def _copies(draw: DrawFn, block: Plain, top: list[int], most: int, bounds: Bounds) -> Plain:
    """A tiler that repeats `block`, which nests, at most `most` times: digits of its complement, the highest without limit."""
    gaps = block.gaps()
    digits: list[int] = []
    for digit in [*(gaps[0] if gaps else []), *top]:
        most //= digit
        if most == 0:
            break
        digits.append(digit)
    return _nest(draw, _runs(draw, [d for d in digits if d > 1]), bounds)


def _tops(most: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.sampled_from(EXTENTS), max_size=most)


def _with_modes(a: Plain) -> Plain:
    return Plain.concat([a]) if isinstance(a.shape, int) else a


@st.composite
def _by_mode(
    draw: DrawFn, wholes: st.SearchStrategy[Plain], tile: Callable[[DrawFn, Plain], Plain]
) -> tuple[Plain, PlainTiler]:
    whole = _with_modes(draw(wholes))
    modes = whole.modes()
    tiled = modes[: draw(st.integers(1, min(2, len(modes))))]
    return whole, [None if draw(st.integers(0, 15)) == 15 else tile(draw, mode) for mode in tiled]


@st.composite
def compositions(draw: DrawFn, bounds: Bounds = DEFAULT, outer: st.SearchStrategy[Plain] | None = None) -> tuple[Plain, Plain]:
    """`(outer, inner)` whose composition is a layout; `outer` may be given.

    The leaves of `inner` are runs of digits in which `outer` writes its indices, in any order, or have stride 0.
    """
    a = draw(layouts(bounds) if outer is None else outer)
    return a, _inner(draw, a, bounds)


def compositions_by_mode(bounds: Bounds = DEFAULT) -> st.SearchStrategy[tuple[Plain, PlainTiler]]:
    """A layout and a tiler by mode that composes with it."""
    return _by_mode(layouts(bounds), lambda draw, mode: _inner(draw, mode, bounds))


@st.composite
def divisions(draw: DrawFn, bounds: Bounds = DEFAULT, whole: st.SearchStrategy[Plain] | None = None) -> tuple[Plain, Plain]:
    """`(whole, tile)`: the tile takes whole digits of `whole`, so that it divides without rest; `whole` may be given."""
    a = draw(layouts(bounds) if whole is None else whole)
    return a, _tile(draw, a, bounds)


def divisions_by_mode(bounds: Bounds = DEFAULT) -> st.SearchStrategy[tuple[Plain, PlainTiler]]:
    """A layout and a tiler by mode that divides it without rest."""
    return _by_mode(layouts(bounds), lambda draw, mode: _tile(draw, mode, bounds))


def tilers(whole: Plain, bounds: Bounds = DEFAULT) -> st.SearchStrategy[PlainTiler]:
    """Tilers that divide this layout without rest: a layout, or one for each of the first modes.

    >>> from carbyne.testing import Plain, strategies
    >>> tiler = strategies.tilers(Plain((4, 8), (8, 1))).example()
    """
    one: st.SearchStrategy[PlainTiler] = divisions(bounds, st.just(whole)).map(lambda pair: pair[1])
    if isinstance(whole.shape, int):
        return one
    by_mode = _by_mode(st.just(whole), lambda draw, mode: _tile(draw, mode, bounds))
    return st.one_of(one, by_mode.map(lambda pair: pair[1]))


def complements(bounds: Bounds = DEFAULT) -> st.SearchStrategy[tuple[Plain, int]]:
    """A layout whose strides nest, and the cotarget of its complement."""
    return st.tuples(nested_strides(bounds), st.integers(1, 2 * bounds.size))


@st.composite
def products(draw: DrawFn, bounds: Bounds = DEFAULT) -> tuple[Plain, Plain]:
    """`(block, tiler)` whose product exists: the strides of the block nest, and the tiler takes digits that the block leaves out."""
    block = draw(nested_strides(bounds))
    return block, _copies(draw, block, draw(_tops(3)), 64 * bounds.size, bounds)


def products_by_mode(bounds: Bounds = DEFAULT) -> st.SearchStrategy[tuple[Plain, PlainTiler]]:
    """A layout and a tiler by mode, mode by mode as for :func:`products`."""
    return _by_mode(nested_strides(bounds), lambda draw, mode: _copies(draw, mode, [2, 2], 24, bounds))


@st.composite
def reshapes(draw: DrawFn, bounds: Bounds = DEFAULT) -> tuple[Plain, IntTuple]:
    """A layout and a shape under which its function is a layout."""
    a = draw(layouts(bounds))
    leaves: list[int] = []
    for digit in _cut(draw, _radices(a)):
        joins: bool = draw(st.booleans())
        if leaves and joins:
            leaves[-1] *= digit
        else:
            leaves.append(digit)
    return a, _nest(draw, [(extent, 0) for extent in leaves], bounds).shape


@st.composite
def tile_to_shapes(draw: DrawFn, bounds: Bounds = DEFAULT) -> tuple[Plain, IntTuple]:
    """A flat bijection and a shape that whole copies of it fill."""
    flat = replace(bounds, rank=min(bounds.rank, 3), depth=1)
    leaves = draw(bijections(flat)).leaves()
    return Plain.flat(leaves), tuple(e * draw(st.integers(1, 4)) for e, _ in leaves)


@st.composite
def profiles(draw: DrawFn, bounds: Bounds = DEFAULT) -> tuple[Plain, IntTuple]:
    """A layout and a tuple with the nesting of its outer levels: the parts to be coalesced separately."""
    a = draw(layouts(bounds))

    def cut(shape: IntTuple, depth: int) -> IntTuple:
        return 1 if isinstance(shape, int) or depth == 0 else tuple(cut(mode, depth - 1) for mode in shape)

    return a, cut(a.shape, draw(st.integers(0, 2)))


@st.composite
def mode_ranges(draw: DrawFn, bounds: Bounds = DEFAULT) -> tuple[Plain, int, int]:
    """A layout with a range of its modes, `begin <= end`."""
    a = _with_modes(draw(layouts(bounds)))
    begin = draw(st.integers(0, len(a.modes())))
    return a, begin, draw(st.integers(begin, len(a.modes())))


@st.composite
def slices(draw: DrawFn, bounds: Bounds = DEFAULT) -> tuple[Plain, OpenCoordinate]:
    """A layout and a coordinate into it that leaves modes at any depth open."""
    a = _with_modes(draw(layouts(bounds)))

    def pick(shape: IntTuple, whole: bool = False) -> OpenCoordinate:
        if not isinstance(shape, int) and (whole or draw(st.booleans())):
            return tuple(pick(mode) for mode in shape)
        return draw(st.one_of(st.none(), st.integers(0, size_of(shape) - 1)))

    return a, pick(a.shape, whole=True)


@st.composite
def refinements(draw: DrawFn, bounds: Bounds = DEFAULT) -> tuple[IntTuple, IntTuple, IntTuple, IntTuple]:
    """Three shapes, each a refinement of the one before, and an independent fourth shape."""

    def refine(shape: IntTuple, depth: int) -> IntTuple:
        if not isinstance(shape, int):
            return tuple(refine(mode, depth - 1) for mode in shape)
        if depth <= 0 or not draw(st.booleans()):
            return shape
        inner = draw(st.sampled_from([d for d in range(1, shape + 1) if shape % d == 0]))
        return (inner, shape // inner)

    a, other = draw(int_tuples(bounds)), draw(int_tuples(bounds))
    b = refine(a, bounds.depth)
    return a, b, refine(b, bounds.depth), other


# Elements of other widths


def _parts(draw: DrawFn, large: Plain, n: int, parts: int, bounds: Bounds) -> Plain:
    """A layout of the `n` parts of larger elements: strides times `n`, and a leaf that counts `parts` of the parts."""
    leaves = [(e, s * n) for e, s in large.leaves()]
    unit = next((k for k, (e, s) in enumerate(large.leaves()) if e > 1 and s == 1), None)
    if unit is None:
        leaves.insert(0, (parts, n // parts))
    else:
        leaves[unit] = (leaves[unit][0] * parts, n // parts)
    return _nest(draw, [(e, s) for e, s in leaves if e > 1], bounds)


def _fewer(bounds: Bounds) -> Bounds:
    """Bounds that leave room for one more leaf."""
    return replace(bounds, rank=max(1, bounds.rank - 1), depth=bounds.depth if bounds.rank > 1 else 0)


@st.composite
def upcasts(draw: DrawFn, bounds: Bounds = DEFAULT) -> tuple[Plain, int]:
    """A layout and `n`, for which `n` consecutive elements always form a larger element."""
    n = draw(st.integers(0, 3))
    large = draw(nested_strides(_fewer(bounds)))
    return _parts(draw, large, 1 << n, 1 << draw(st.integers(0, n)), bounds), 1 << n


def downcasts(bounds: Bounds = DEFAULT) -> st.SearchStrategy[tuple[Plain, int]]:
    """A layout and `n`, for which each element can be divided into `n` parts."""
    return st.tuples(nested_strides(bounds), st.integers(1, 5))


@st.composite
def recasts(draw: DrawFn, bounds: Bounds = DEFAULT) -> tuple[Plain, int, int]:
    """A layout of elements, their width in bits, and another width in which the layout can be expressed."""
    bits = 1 << draw(st.integers(0, 3))
    if draw(st.booleans()):
        a, n = draw(upcasts(bounds))
        return a, bits, bits * n
    return draw(nested_strides(bounds)), bits << draw(st.integers(0, 3)), bits


# Large operands


def large_compositions(bounds: Bounds = DEFAULT) -> st.SearchStrategy[tuple[Plain, Plain]]:
    """`(outer, inner)` as for :func:`compositions`, of a large layout."""
    return compositions(bounds, large_layouts(bounds))


def large_divisions(bounds: Bounds = DEFAULT) -> st.SearchStrategy[tuple[Plain, Plain]]:
    """`(whole, tile)` as for :func:`divisions`, of a large layout."""
    return divisions(bounds, large_layouts(bounds))


def large_complements(bounds: Bounds = DEFAULT) -> st.SearchStrategy[tuple[Plain, int]]:
    """A large layout and the cotarget of its complement."""
    return st.builds(lambda a, power, times: (a, times << power), large_layouts(bounds), st.integers(0, 49), st.integers(1, 8))


def _fits(a: Plain, most: int) -> bool:
    return max(a.size(), a.cosize()) <= most


@st.composite
def large_products(draw: DrawFn, bounds: Bounds = DEFAULT) -> tuple[Plain, Plain]:
    """`(block, tiler)` as for :func:`products`, of a large block."""
    block = draw(large_layouts(bounds))
    if not _fits(block, 1 << 40):
        return block, Plain(1, 0)  # Copies would exceed 62 bits.
    return block, _copies(draw, block, draw(_tops(2)), 1 << 20, bounds)


@st.composite
def large_casts(draw: DrawFn, bounds: Bounds = DEFAULT) -> tuple[Plain, int]:
    """A large layout and `n`: `n` consecutive elements form a larger element, and each can be divided into `n` parts."""
    large = draw(large_layouts(_fewer(bounds)))
    n = 1 << draw(st.integers(0, 3)) if _fits(large, 1 << 54) else 1
    return _parts(draw, large, n, n, bounds), n


# Swizzles


@st.composite
def swizzles(draw: DrawFn) -> Swizzle:
    """Swizzles of up to 3 bits, whose period is at most 2^13."""
    bits = draw(st.integers(0, 3))
    return Swizzle(bits, draw(st.integers(0, 4)), bits + draw(st.integers(0, 3)))


_offsets = st.integers(0, 3 << 12)


def swizzled_layouts(bounds: Bounds = DEFAULT) -> st.SearchStrategy[tuple[Swizzle, int, Plain]]:
    """A layout under a swizzle: the swizzle, an offset, the layout."""
    return st.tuples(swizzles(), _offsets, layouts(bounds))


def swizzled_compositions(bounds: Bounds = DEFAULT) -> st.SearchStrategy[tuple[Swizzle, int, Plain, Plain]]:
    """A layout under a swizzle, as for :func:`swizzled_layouts`, and an inner layout that composes with it."""
    return st.builds(lambda sw, offset, pair: (sw, offset, *pair), swizzles(), _offsets, compositions(bounds))


@st.composite
def swizzle_recasts(draw: DrawFn) -> tuple[Swizzle, int, int]:
    """A swizzle of elements of a width in bits, and another width in which it is a swizzle."""
    swizzle = draw(swizzles())
    more, bits = draw(st.integers(0, 3)), 1 << draw(st.integers(0, 3))
    if draw(st.booleans()):
        return swizzle._replace(base=swizzle.base + more), bits, bits << more
    return swizzle, bits << more, bits


# Thread-value layouts


def thread_values(bounds: Bounds = DEFAULT) -> st.SearchStrategy[ThreadValue]:
    """Thread-value layouts that are bijections onto their tile."""
    return _thread_values(bounds, st.just(1))


def replicated_thread_values(bounds: Bounds = DEFAULT) -> st.SearchStrategy[ThreadValue]:
    """Thread-value layouts in which several threads hold each element."""
    return _thread_values(bounds, st.integers(2, 4))


@st.composite
def _thread_values(draw: DrawFn, bounds: Bounds, copies: st.SearchStrategy[int]) -> ThreadValue:
    """Assigns each digit of the tile to the threads or to the values."""
    tile = draw(int_tuples(bounds))
    halves: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    below = 1
    for digit in _cut(draw, _radices(column_major(tile))):
        halves[draw(st.integers(0, 1))].append((digit, below))
        below *= digit
    threads, values = (list(draw(st.permutations(half))) for half in halves)
    times = draw(copies)
    if times > 1:
        threads.append((times, 0))
    free = Bounds(rank=99)
    return ThreadValue(tile, Plain.concat([_nest(draw, threads, free), _nest(draw, values, free)]))


def large_swizzled_indices() -> st.SearchStrategy[tuple[Swizzle, int]]:
    """A swizzle, and an index of up to 61 bits."""
    return st.tuples(swizzles(), st.integers(0, 61).flatmap(lambda bits: st.integers(0, (1 << bits) - 1)))
