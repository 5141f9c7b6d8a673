"""Layouts whose sizes and indices do not fit 32 bits, judged at chosen coordinates.

The coordinates depend only on the size, so that failures are repeatable: the ends of every leaf, the neighbors of 2^31, 2^32 and
2^53, and some that are spread over all.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import strategies as st
from .._plain import Plain, coordinate, depth_of, is_congruent, text
from ._registry import Case, law
from .widths import may_refuse_parts


def _samples(a: Plain) -> list[int]:
    size = a.size()
    at = {0, 1, 2, size // 2, size - 1}
    before = 1
    for extent, _ in a.leaves():
        at |= {before, before * (extent - 1), before * extent}
        before *= extent
    for bits in (31, 32, 53):
        at |= {(1 << bits) + d for d in (-1, 0, 1)}
    # Multiples of the bits of the golden ratio: no stride hits all of them.
    at |= {k * 0x9E3779B97F4A7C15 % (1 << 62) % size for k in range(1, 25)}
    return sorted(i for i in at if 0 <= i < size)


def _follow(case: Case, what: str, found: Plain, over: Plain, wanted: Callable[[int], int | None]) -> None:
    """`found` has the wanted index, if any, at coordinates of `over`."""
    case.same(f"the size of {what}", found.size(), over.size())
    for i in _samples(over):
        index = wanted(i)
        if index is not None:
            case.same(f"{what} at {i}", found.index(i), index)


def _agree(case: Case, what: str, found: Plain, wanted: Plain) -> None:
    _follow(case, what, found, wanted, wanted.index)


@law("build_large", st.large_layouts)
def build(case: Case, a: Plain) -> None:
    """A large layout is read as it was built, except for strides of extent 1."""
    back = case.large("build", a.shape, a.stride)
    case.same("the shape", back.shape, a.shape)
    _agree(case, "the function", back, a)


@law("at_large", st.large_layouts)
def at(case: Case, a: Plain) -> None:
    """The index of a large layout at numbers and full coordinates follows from shape and stride."""
    built = case.build(a)
    for i in _samples(a):
        for at in (i, coordinate(i, a.shape)):
            case.same(f"the index at {text(at)}", case.number("at", built, at), a.index(i))


@law("coalesce_large", st.large_layouts)
def coalesce(case: Case, a: Plain) -> None:
    """Coalescing a large layout keeps the function and is flat."""
    c = case.large("coalesce", case.build(a), None)
    case.holds("flat", depth_of(c.shape) <= 1)
    _agree(case, "the function", c, a)


@law("flatten_large", st.large_layouts)
def flatten(case: Case, a: Plain) -> None:
    """Flattening a large layout keeps the leaves."""
    f = case.large("flatten", case.build(a))
    case.holds("flat", depth_of(f.shape) <= 1)
    case.same("the leaves", Plain.flat(f.leaves()), Plain.flat(a.leaves()))


@law("filter_large", st.large_layouts)
def filter_(case: Case, a: Plain) -> None:
    """Filtering a large layout leaves the function of the leaves that are not broadcast."""
    _agree(case, "the function", case.large("filter", case.build(a)), Plain.flat(a.kept()))


@law("composition_large", st.large_compositions)
def composition(case: Case, outer: Plain, inner: Plain) -> None:
    """Composition with a large layout is function composition."""
    size = outer.size()

    def wanted(i: int) -> int | None:
        at = inner.index(i)
        return outer.index(at) if at < size else None

    _follow(case, "the function", case.large("composition", case.build(outer), case.build(inner)), inner, wanted)


@law("complement_large", st.large_complements)
def complement(case: Case, a: Plain, cotarget: int) -> None:
    """The leaves of a layout that nests and of its complement count through an interval that reaches `cotarget`."""
    c = case.large("complement", case.build(a), cotarget)
    strides = [s for e, s in c.leaves() if e > 1]
    case.holds("the complement is ordered", strides == sorted(strides))
    gaps = Plain.concat([a, c]).gaps()
    if gaps is None:
        raise case.broken("both together overlap", True, False)
    case.same("gaps in both together", gaps[0], [])
    case.same("how far both reach", gaps[1], max(gaps[1], cotarget))


@law("right_inverse_large", lambda bounds: st.large_layouts(bounds, padded=False, broadcast=False))
def right_inverse(case: Case, a: Plain) -> None:
    """`a(r(i)) == i` for a large bijection, inverted whole."""
    r = case.large("right_inverse", case.build(a))
    case.same("the size of a bijection's inverse", r.size(), a.size())
    for i in _samples(r):
        case.same(f"a(result(i)) at {i}", a.index(r.index(i)), i)


@law("left_inverse_large", lambda bounds: st.large_layouts(bounds, broadcast=False))
def left_inverse(case: Case, a: Plain) -> None:
    """`l(a(i)) == i` for a large injective layout whose strides nest."""
    inverse = case.large("left_inverse", case.build(a))
    for i in _samples(a):
        case.same(f"result(a(i)) at {i}", inverse.index(a.index(i)), i)


def _left_out(a: Plain, size: int) -> Plain | None:
    """The smallest indices that a layout with nested strides leaves out: the digits between its leaves, the last without limit."""
    if a.gaps() is None:
        return None
    digits, reach = [], 1
    for extent, stride in sorted(a.kept(), key=lambda leaf: leaf[1]):
        digits.append((stride // reach, reach))
        reach = extent * stride
    return Plain.flat([*digits, (max(1, size // reach), reach)])


@law("logical_divide_large", st.large_divisions)
def logical_divide(case: Case, whole: Plain, tile: Plain) -> None:
    """The first mode is `whole` after the tile, the second `whole` after the indices that the tile leaves out."""
    halves = case.large("logical_divide", case.build(whole), case.build(tile)).modes()
    case.same("the rank of (tile, rest)", len(halves), 2)
    _follow(case, "the tile mode", halves[0], tile, lambda i: whole.index(tile.index(i)))
    rest = _left_out(tile, whole.size())
    if rest is not None:
        over = rest
        _follow(case, "the rest mode", halves[1], rest, lambda i: whole.index(over.index(i)))


@law("logical_product_large", st.large_products)
def logical_product(case: Case, block: Plain, tiler: Plain) -> None:
    """The first mode is the block, the second walks over the indices that the block leaves out, in the order of the tiler."""
    halves = case.large("logical_product", case.build(block), case.build(tiler)).modes()
    case.same("the rank of (block, copies)", len(halves), 2)
    _agree(case, "the block mode", halves[0], block)
    rest = _left_out(block, 1)
    if rest is not None:
        over = rest
        _follow(case, "the copies", halves[1], tiler, lambda i: over.index(tiler.index(i)))


def _same_elements(case: Case, small: Plain, large: Plain, n: int) -> None:
    """The first part of every element of `large` is at `n` times its index in `small`."""
    case.holds("shapes are nested alike", is_congruent(small.shape, large.shape))
    first = []
    for (extent, stride), (larger, _) in zip(small.leaves(), large.leaves()):
        case.holds("an extent divides that of smaller elements", extent % larger == 0)
        first.append((larger, stride * (extent // larger)))
    _follow(case, "the first part of an element", Plain.flat(first), large, lambda i: n * large.index(i))


@law("upcast_large", st.large_casts)
def upcast(case: Case, a: Plain, n: int) -> None:
    """Groups of `n` elements of a large layout are exact."""
    _same_elements(case, a, case.large("upcast", case.build(a), n), n)


@law("downcast_large", st.large_casts)
def downcast(case: Case, a: Plain, n: int) -> None:
    """The `n` parts of each element of a large layout are exact."""
    case.may_refuse = may_refuse_parts(a, n)
    _same_elements(case, case.large("downcast", case.build(a), n), a, n)
