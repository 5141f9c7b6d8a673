"""Division: a layout split into a tile and the rest, which iterates over tiles.

The places of tiles are found by enumeration: the smallest index that no previous tile covers begins the next one.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis.strategies import SearchStrategy

from .. import strategies as st
from .._plain import Plain, PlainTiler
from ._registry import Case, law

Judge = Callable[[Case, Plain, Plain, Plain], None]


def places(image: list[int], count: int, limit: int) -> list[int] | None:
    """The first `count` shifts of the image by which it covers each index at most once, each beginning at the smallest free index.

    `None` beyond `limit`, or if tiles collide.
    """
    covered: set[int] = set()
    found: list[int] = []
    free = 0
    while len(found) < count:
        while free in covered:
            free += 1
        tile = {free + index for index in image}
        if max(tile) >= limit or tile & covered:
            return None
        covered |= tile
        found.append(free)
    return found


def _divided(case: Case, result: Plain, whole: Plain, tile: Plain) -> None:
    """`result` is (`whole` after `tile`, rest), the tiles covering `whole` once."""
    halves = result.modes()
    case.same("the rank of (tile, rest)", len(halves), 2)
    elements, inside = whole.values(), tile.values()
    case.agree("the tile mode, which is `whole` after the tile", halves[0].values(), [elements[i] for i in inside])
    image = sorted(set(inside))
    starts = places(image, len(elements) // len(image), len(elements))
    if starts is not None:
        case.agree("the element of (tile, rest)", result.values(), [elements[i + start] for start in starts for i in inside])


def by_tiler(case: Case, result: Plain, whole: Plain, tiler: PlainTiler, judge: Judge) -> None:
    """Judges the result by a layout, or each mode with a layout; other modes are unchanged."""
    if isinstance(tiler, Plain):
        return judge(case, result, whole, tiler)
    case.same("the rank", len(result.modes()), len(whole.modes()))
    case.by_mode(result, whole, tiler or [], judge)


@law("logical_divide", st.divisions)
@law("logical_divide_by_mode", st.divisions_by_mode)
@law("logical_divide_negative", lambda bounds: st.divisions(bounds, st.negative_layouts(bounds)))
def logical_divide(case: Case, whole: Plain, tiler: PlainTiler) -> None:
    """Each divided mode is (tile, rest); the tiles cover the mode, each element once if the tile is injective."""
    by_tiler(case, case.get("logical_divide", case.build(whole), case.tiler(tiler)), whole, tiler, _divided)


def rearranged(operation: str, logical: str, gathered: bool) -> Callable[[Case, Plain, PlainTiler], None]:
    """The law that `operation` has the halves of `logical` in another order: first all first halves, then all second ones."""

    def body(case: Case, whole: Plain, tiler: PlainTiler) -> None:
        built, by = case.build(whole), case.tiler(tiler)
        halved = case.get(logical, built, by)
        found = case.get(operation, built, by)
        first: list[Plain] = []
        second: list[Plain] = []
        tilers = tiler if isinstance(tiler, list) else [tiler]
        if None in tilers:
            return  # The place of an undivided mode depends on the library.
        for k, mode in enumerate(halved.modes() if isinstance(tiler, list) else [halved]):
            if k >= len(tilers):
                second.append(mode)
                continue
            if len(mode.modes()) != 2:
                return  # The law of the logical operation is broken.
            first.append(mode.modes()[0])
            second.append(mode.modes()[1])
        halves = Plain.concat(first), Plain.concat(second)
        case.agree("the function", found.values(), Plain.concat(halves).values())
        if gathered:
            case.holds("two modes or more", len(found.modes()) >= 2)
            case.agree("mode 0", found.modes()[0].values(), halves[0].values())

    return body


Operands = Callable[[st.Bounds], SearchStrategy[object]]


def register(kind: str, whole: Operands, by_mode: Operands, small: bool) -> None:
    """Registers the laws of the three operations that rearrange a logical one."""
    for form in ("zipped", "tiled", "flat"):
        name = f"{form}_{kind}"
        body = rearranged(name, f"logical_{kind}", gathered=form != "flat")
        law(name, whole, small=small)(body)
        law(f"{name}_by_mode", by_mode, small=small)(body)


register("divide", st.divisions, st.divisions_by_mode, small=False)
