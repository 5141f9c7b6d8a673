"""Regrouping: leaves keep their extents, strides and order; only the nesting changes, or leaves disappear."""

from __future__ import annotations

from .. import strategies as st
from .._plain import OpenCoordinate, Plain
from ._registry import Case, law


@law("group", st.mode_ranges)
def group(case: Case, a: Plain, begin: int, end: int) -> None:
    """Grouping gathers a range of modes into one."""
    modes = a.modes()
    modes[begin:end] = [Plain.concat(modes[begin:end])]
    case.same("the layout", case.get("group", case.build(a), begin, end), Plain.concat(modes))


@law("concat", st.layout_pairs, small=True)
def concat(case: Case, a: Plain, b: Plain) -> None:
    """Concatenated layouts are the modes of the result."""
    case.same("the layout", case.get("concat", [case.build(a), case.build(b)]), Plain.concat([a, b]))


def _split(a: Plain, coordinate: OpenCoordinate) -> tuple[list[Plain], list[Plain]]:
    """The parts of a layout that the coordinate leaves open, and those that it fixes."""
    if not isinstance(coordinate, tuple):
        return ([a], []) if coordinate is None else ([], [a])
    parts = [_split(mode, c) for mode, c in zip(a.modes(), coordinate)]
    return [p for left, _ in parts for p in left], [p for _, right in parts for p in right]


@law("slice", st.slices)
def slice_(case: Case, a: Plain, coordinate: OpenCoordinate) -> None:
    """A slice has the modes that the coordinate leaves open, in order."""
    found = case.get("slice", case.build(a), coordinate)
    case.agree("the function of open modes", found.values(), Plain.concat(_split(a, coordinate)[0]).values())


@law("dice", st.slices)
def dice(case: Case, a: Plain, coordinate: OpenCoordinate) -> None:
    """A dice has the modes that the coordinate fixes."""
    found = case.get("dice", case.build(a), coordinate)
    case.agree("the function of fixed modes", found.values(), Plain.concat(_split(a, coordinate)[1]).values())
