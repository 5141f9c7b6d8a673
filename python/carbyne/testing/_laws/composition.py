"""Composition, and operations based on it. A point is judged only if the inner index is inside the outer layout."""

from __future__ import annotations

from hypothesis.strategies import SearchStrategy

from .. import strategies as st
from .._case import Refused
from .._plain import IntTuple, Plain, ThreadValue, column_major, refines
from ._registry import Case, law


def _composed(case: Case, result: Plain, outer: Plain, inner: Plain) -> None:
    """`result` is `outer` after `inner`, and its shape refines that of `inner`."""
    table, values, indices = outer.values(), result.values(), inner.values()
    case.same("number of coordinates", len(values), len(indices))
    for i, (found, index) in enumerate(zip(values, indices)):
        if 0 <= index < len(table):
            case.same(f"the function at {i}", found, table[index])
    case.holds("every coordinate of `inner` is one of the result", refines(inner.shape, result.shape))


def _negative(bounds: st.Bounds) -> SearchStrategy[tuple[Plain, Plain]]:
    return st.compositions(bounds, st.negative_layouts(bounds))


@law("composition", st.compositions)
@law("composition_any", st.layout_pairs, may_refuse=True)
@law("composition_negative", _negative)
def composition(case: Case, outer: Plain, inner: Plain) -> None:
    """Composition is function composition."""
    _composed(case, case.get("composition", case.build(outer), case.build(inner)), outer, inner)


@law("composition_by_mode", st.compositions_by_mode)
def composition_by_mode(case: Case, outer: Plain, tiler: list[Plain | None]) -> None:
    """Each mode is composed with its own layout. Modes without a tiler may stay or disappear."""
    c = case.get("composition", case.build(outer), case.tiler(list(tiler)))
    rank = len(c.modes())
    case.same("the rank", rank, len(tiler) if rank == len(tiler) else len(outer.modes()))
    case.by_mode(c, outer, tiler, _composed)


@law("with_shape", st.reshapes)
def with_shape(case: Case, a: Plain, shape: IntTuple) -> None:
    """Another shape does not change the function."""
    _composed(case, case.get("with_shape", case.build(a), shape), a, column_major(shape))


@law("thread_value", st.thread_values)
@law("thread_value_replicated", st.replicated_thread_values)
def thread_value(case: Case, thread_value: ThreadValue) -> None:
    """Every thread finds its elements in a tile, and the right inverse gives the thread and value of each element."""
    layout = thread_value.layout
    built, values = case.build(layout), layout.values()
    if layout.is_bijective():
        inverse = case.get("right_inverse", built).values()
        case.same("the number of elements", len(inverse), len(values))
        case.points("the element at the place of element", inverse, values, lambda i: i)
    column = column_major(thread_value.tile)
    c = case.get("composition", case.build(column), built)
    case.agree("the element of a thread", c.values(), values)
    case.same("the rank", len(c.modes()), len(layout.modes()))
    # With row-major data the function may not be a layout; if it is, it is exact.
    strides, after = [], 1
    for extent, _ in reversed(column.leaves()):
        strides.append((extent, after))
        after *= extent
    rows = Plain.flat(reversed(strides))
    case.may_refuse = True
    try:
        by_thread = case.get("composition", case.build(rows), built)
    except Refused:
        return
    elements = rows.values()
    case.agree("the element of a thread, row-major", by_thread.values(), [elements[i] for i in values])


