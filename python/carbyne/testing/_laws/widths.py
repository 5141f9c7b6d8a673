"""Layouts of one memory in larger or smaller elements, and common vectors.

Both sides of a recast name the same bits: dividing the digits of a small element gives the digits of the large element that
contains it.
"""

from __future__ import annotations

from .. import strategies as st
from .._plain import Plain, is_congruent
from ._registry import Case, law


def _same_memory(case: Case, small: Plain, large: Plain, n: int, whole: bool) -> None:
    """`n` elements of `small` make one of `large`; with `whole`, the remainder counts the parts in order."""
    case.holds("shapes are nested alike", is_congruent(small.shape, large.shape))
    wanted = [0]
    for (extent, _), (larger, stride) in zip(small.leaves(), large.leaves()):
        case.holds("an extent divides that of smaller elements", extent % larger == 0)
        parts = extent // larger
        steps = [digit // parts * stride * n + (digit % parts if whole else 0) for digit in range(extent)]
        wanted = [step + index for step in steps for index in wanted]
    found = small.values()
    case.agree("the memory of an element", found if whole else [index - index % n for index in found], wanted)


def _parts(case: Case, small: Plain, a: Plain, n: int) -> None:
    """`small` contains the `n` parts of each element of `a`; a leaf of stride 1 has `n` times its elements."""
    splits = any(stride == 1 for _, stride in a.leaves())
    case.same("the number of parts", small.size(), a.size() * (n if splits else 1))
    _same_memory(case, small, a, n, whole=True)


def may_refuse_parts(a: Plain, n: int) -> bool:
    """Whether the parts may be refused: without a mode of stride 1, parts of an element have no coordinate."""
    return n != 1 and all(stride != 1 for _, stride in a.leaves())


@law("upcast", st.upcasts, small=True)
def upcast(case: Case, a: Plain, n: int) -> None:
    """An element is in the group of its index divided by `n`."""
    _same_memory(case, a, case.get("upcast", case.build(a), n), n, whole=False)


@law("downcast", st.downcasts, small=True)
def downcast(case: Case, a: Plain, n: int) -> None:
    """The parts of the element at `i` are at `n * i`, `n * i + 1`, and so on."""
    case.may_refuse = may_refuse_parts(a, n)
    _parts(case, case.get("downcast", case.build(a), n), a, n)


@law("recast", st.recasts, small=True)
def recast(case: Case, a: Plain, old_bits: int, new_bits: int) -> None:
    """Another width names the same bits."""
    if new_bits >= old_bits:
        _same_memory(case, a, case.get("recast", case.build(a), old_bits, new_bits), new_bits // old_bits, whole=False)
    else:
        n = old_bits // new_bits
        case.may_refuse = may_refuse_parts(a, n)
        _parts(case, case.get("recast", case.build(a), old_bits, new_bits), a, n)


@law("max_common_layout", st.same_shapes)
def max_common_layout(case: Case, a: Plain, b: Plain) -> None:
    """The common layout maps to indices 0, 1, 2, ... in both layouts."""
    common = case.get("max_common_layout", case.build(a), case.build(b)).values()
    for name, layout in (("a", a), ("b", b)):
        case.points(f"{name}(result(i))", common, layout.values(), lambda i: i)
    if a == b and a.is_bijective():
        case.same("the size, of one bijection", len(common), a.size())


@law("max_common_vector", st.same_shapes)
def max_common_vector(case: Case, a: Plain, b: Plain) -> None:
    """The common vector is not longer than the run of indices that both layouts have at equal coordinates."""
    n = case.number("max_common_vector", case.build(a), case.build(b))
    together = {x for x, y in zip(a.values(), b.values()) if x == y}
    run = next(i for i in range(len(together) + 1) if i not in together)
    case.holds("1 or more", n >= 1)
    case.same("no longer than the common run", n, min(n, max(run, 1)))
    if a == b and a.is_bijective():
        case.same("the length, of one bijection", n, a.size())
