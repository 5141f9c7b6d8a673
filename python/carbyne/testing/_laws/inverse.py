"""Complement, inverses and nullspace. Inverses are judged only on the image."""

from __future__ import annotations

from hypothesis import strategies as hyp

from .. import strategies as st
from .._case import Verbatim
from .._plain import MAX_POINTS, Plain
from ._registry import Case, law


@law("complement", st.complements)
@law("complement_any", lambda bounds: hyp.tuples(st.layouts(bounds), hyp.integers(1, 400)), may_refuse=True)
def complement(case: Case, a: Plain, cotarget: int) -> None:
    """The complement is ordered, and all sums of one of its indices and an index of the layout are different.

    If the strides nest, the sums cover everything below `cotarget`.
    """
    rest = case.get("complement", case.build(a), cotarget).values()
    for i, (one, after) in enumerate(zip(rest, rest[1:])):
        if one >= after:
            raise case.broken(f"the order of the complement at {i + 1}", after, Verbatim(f"more than {one}"))
    image = sorted(set(a.values()))
    if len(image) * len(rest) > MAX_POINTS:
        return  # Too many sums to enumerate; the order was checked.
    sums = sorted(r + i for r in rest for i in image)
    for one, after in zip(sums, sums[1:]):
        if one == after:
            raise case.broken(f"sums of both at index {one}", Verbatim("twice"), Verbatim("once at most"))
    if a.gaps() is not None:
        holes = set(range(cotarget)) - set(sums)
        if holes:
            raise case.broken(f"sums of both at index {min(holes)}", Verbatim("a hole"), Verbatim("no hole"))


@law("right_inverse", st.layouts)
@law("right_inverse_bijection", st.bijections)
def right_inverse(case: Case, a: Plain) -> None:
    """`a(r(i)) == i` for every `i`; a bijection is inverted completely."""
    inverse = case.get("right_inverse", case.build(a)).values()
    case.points("a(result(i))", inverse, a.values(), lambda i: i)
    if a.is_bijective():
        case.same("the size of a bijection's inverse", len(inverse), a.size())


@law("left_inverse", st.padded_layouts)
@law("left_inverse_any", st.layouts, may_refuse=True)
def left_inverse(case: Case, a: Plain) -> None:
    """`a(l(a(i))) == a(i)` for every `i`: an injective layout is undone."""
    inverse = case.get("left_inverse", case.build(a))
    values = a.values()
    case.points("a(result(a(i)))", [inverse.index(index) for index in values], values, lambda i: values[i])


@law("nullspace", st.broadcasts)
def nullspace(case: Case, a: Plain) -> None:
    """The nullspace contains different coordinates of index 0, one for each choice of the leaves of stride 0."""
    null = case.get("nullspace", case.build(a)).values()
    case.points("a(result(i))", null, a.values(), lambda i: 0)
    case.same("the number of different coordinates", len(set(null)), len(null))
    case.same("the number of coordinates", len(null), Plain.flat(leaf for leaf in a.leaves() if leaf[1] == 0).size())
