"""Swizzles, judged by their definition on bits."""

from __future__ import annotations

from .. import strategies as st
from .._plain import Plain, Swizzle
from ._registry import Case, law


@law("swizzle", lambda bounds: st.large_swizzled_indices())
def swizzle(case: Case, swizzle: Swizzle, index: int) -> None:
    """A swizzle equals its definition on bits, and is its own inverse."""
    moved = case.number("swizzle", swizzle, index)
    case.same("the index", moved, swizzle.of(index))
    case.same("the index moved twice", case.number("swizzle", swizzle, moved), index)


@law("swizzle_bijection", lambda bounds: st.large_swizzled_indices())
def swizzle_bijection(case: Case, swizzle: Swizzle, index: int) -> None:
    """A swizzle permutes each of its periods: the period of `index` is tested, long ones in part."""
    period = swizzle.period()
    begin = index - index % period
    seen: dict[int, int] = {}
    for i in range(begin, begin + period, max(1, period // 256) | 1):
        moved = case.number("swizzle", swizzle, i)
        case.holds(f"the index {moved} of {i} is in its period", begin <= moved < begin + period)
        case.same(f"the index of {moved}", seen.setdefault(moved, i), i)


@law("swizzled_at", st.swizzled_layouts)
def swizzled_at(case: Case, swizzle: Swizzle, offset: int, a: Plain) -> None:
    """A swizzled layout is the layout, then the offset, then the swizzle."""
    built = case.build(a)
    for i, index in enumerate(a.values()):
        case.same(f"the index at {i}", case.number("swizzled_at", swizzle, offset, built, i), swizzle.of(offset + index))


@law("swizzled_composition", st.swizzled_compositions)
def swizzled_composition(case: Case, swizzle: Swizzle, offset: int, outer: Plain, inner: Plain) -> None:
    """The composition of a swizzled layout with another: the inner layout, the outer one, the offset, then the swizzle."""
    left, right = case.build(outer), case.build(inner)
    table = outer.values()
    for i, at in enumerate(inner.values()):
        found = case.number("swizzled_composition_at", swizzle, offset, left, right, i)
        if at < len(table):
            case.same(f"the index at {i}", found, swizzle.of(offset + table[at]))


@law("swizzle_recast", lambda bounds: st.swizzle_recasts())
def swizzle_recast(case: Case, swizzle: Swizzle, old_bits: int, new_bits: int) -> None:
    """Elements of another width are moved with their memory."""
    answer = case.ask("swizzle_recast", swizzle, old_bits, new_bits)
    if not isinstance(answer, Swizzle):
        raise case.broken("the answer of `swizzle_recast`", answer, Swizzle)
    small, large = (answer, swizzle) if new_bits <= old_bits else (swizzle, answer)
    n = max(old_bits, new_bits) // min(old_bits, new_bits)
    case.holds("the swizzle reaches no further than 30 bits", sum(small) <= 30 and min(small) >= 0)
    # One period shows the three fields; a part of a long one is enough.
    for i in range(0, small.period(), max(1, small.period() // 1024) | 1):
        case.same(f"the place of element {i}", small.of(i), large.of(i // n) * n + i % n)
