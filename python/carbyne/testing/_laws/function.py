"""Evaluation, and the operations that keep the function: coalesce, filter, flatten. They are total: a refusal breaks the law."""

from __future__ import annotations

from .. import strategies as st
from .._plain import IntTuple, Plain, coordinate, deepens, depth_of, text
from ._registry import Case, law


@law("build", st.layouts)
@law("build_negative", st.negative_layouts)
def build(case: Case, a: Plain) -> None:
    """A layout is read as it was built, except for strides of extent 1."""
    back = case.get("build", a.shape, a.stride)
    case.same("the shape", back.shape, a.shape)
    case.agree("the function", back.values(), a.values())


@law("at", st.layouts)
@law("at_negative", st.negative_layouts)
def at(case: Case, a: Plain) -> None:
    """The index at a number, at indices of whole modes and at full coordinates follows from shape and stride."""
    built = case.build(a)
    for i, wanted in enumerate(a.values()):
        for at in dict.fromkeys(coordinate(i, a.shape, depth) for depth in (0, 1, 99)):
            case.same(f"the index at {text(at)}", case.number("at", built, at), wanted)


@law("coalesce", st.layouts)
@law("coalesce_negative", st.negative_layouts)
def coalesce(case: Case, a: Plain) -> None:
    """Coalescing keeps the function and is flat; no two leaves continue each other; coalescing twice changes nothing."""
    once = case.ask("coalesce", case.build(a), None)
    c = case.read("coalesce", once)
    case.agree("the function", c.values(), a.values())
    case.holds("flat", depth_of(c.shape) <= 1)
    leaves = c.leaves()
    case.holds("no more leaves than before", len(leaves) <= max(1, len(a.leaves())))
    for (e, s), (after_e, after_s) in zip(leaves, leaves[1:]):
        case.holds("no neighbors are left to merge", e != 1 and after_e != 1 and e * s != after_s)
    case.same("coalesced again", case.get("coalesce", once, None), c)


def _parts(a: Plain, profile: IntTuple) -> list[Plain]:
    """The parts of a layout for the numbers of a profile."""
    if isinstance(profile, int):
        return [a]
    return [part for mode, p in zip(a.modes(), profile) for part in _parts(mode, p)]


@law("coalesce_by", st.profiles)
def coalesce_by(case: Case, a: Plain, profile: IntTuple) -> None:
    """Coalescing by a profile coalesces each part."""
    c = case.get("coalesce", case.build(a), profile)
    case.agree("the function", c.values(), a.values())
    case.holds("the profile is that of the result", deepens(profile, c.shape))
    for found, wanted in zip(_parts(c, profile), _parts(a, profile)):
        case.holds("flat below the profile", depth_of(found.shape) <= 1)
        case.agree("a part's function", found.values(), wanted.values())


@law("filter", st.layouts)
def filter_(case: Case, a: Plain) -> None:
    """Filtering leaves the function of the leaves that are neither broadcast nor of extent 1."""
    f = case.get("filter", case.build(a))
    case.agree("the function", f.values(), Plain.flat(a.kept()).values())
    case.holds("no leaf of stride 0 is left", all(e == 1 or s != 0 for e, s in f.leaves()))


@law("flatten", st.layouts)
@law("flatten_negative", st.negative_layouts)
def flatten(case: Case, a: Plain) -> None:
    """Flattening keeps the leaves."""
    f = case.get("flatten", case.build(a))
    case.holds("flat", depth_of(f.shape) <= 1)
    case.same("the leaves", Plain.flat(f.leaves()), Plain.flat(a.leaves()))
