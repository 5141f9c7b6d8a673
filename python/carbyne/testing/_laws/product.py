"""Products: a layout repeated as another layout defines.

The places of copies are found by enumeration: place `j` is the smallest shift at which the block meets no previous place, and copy `y`
is at place `tiler(y)`.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import strategies as st
from .._plain import MAX_POINTS, IntTuple, Plain, PlainTiler, flatten
from ._registry import Case, law
from .division import by_tiler, places, register


def _copies(case: Case, values: list[int], block: Plain, tiler: Plain, at: Callable[[int, int], int]) -> None:
    """`values` at `at(x, y)` are copy `y` of the block at `x`, and copies are in the places of the tiler."""
    inside, order = block.values(), tiler.values()
    case.same("number of coordinates", len(values), len(inside) * len(order))
    offsets = [values[at(0, y)] for y in range(len(order))]
    for y, offset in enumerate(offsets):
        for x, index in enumerate(inside):
            case.same(f"the copy of an element at ({x}, {y})", values[at(x, y)], index + offset)
    image = sorted(set(inside))
    where = places(image, max(order) + 1, MAX_POINTS // 8)
    if where is not None:
        case.agree("the place of a copy", offsets, [where[place] for place in order])
        return
    starts = set(offsets)
    if len(starts) * len(image) <= MAX_POINTS:
        sums = {start + index for start in starts for index in image}
        case.same("copies keep clear of each other: number of indices", len(sums), len(starts) * len(image))


def _multiplied(case: Case, result: Plain, block: Plain, tiler: Plain) -> None:
    case.same("the rank of (block, copies)", len(result.modes()), 2)
    n = block.size()
    _copies(case, result.values(), block, tiler, lambda x, y: x + n * y)


@law("logical_product", st.products, small=True)
@law("logical_product_by_mode", st.products_by_mode, small=True)
def logical_product(case: Case, block: Plain, tiler: PlainTiler) -> None:
    """A product has the block as mode 0; mode 1 walks over copies of it, in the order of the tiler."""
    by_tiler(case, case.get("logical_product", case.build(block), case.tiler(tiler)), block, tiler, _multiplied)


register("product", st.products, st.products_by_mode, small=True)


def _zipped_modes(operation: str, block_first: bool) -> Callable[[Case, Plain, Plain], None]:
    """The law that mode `k` of a product has the extents of both operands, the faster one first."""

    def body(case: Case, block: Plain, tiler: Plain) -> None:
        found = case.get(operation, case.build(block), case.build(tiler))
        extents = [[mode.size() for mode in a.modes()] for a in (block, tiler)]
        rank = max(map(len, extents))
        case.same("the rank", len(found.modes()), rank)
        # The weight of each mode of both operands in an index of the result.
        of_block, of_tiler, after = [], [], 1
        for k in range(rank):
            b, t = (all_extents[k] if k < len(all_extents) else 1 for all_extents in extents)
            of_block.append((b, after if block_first else after * t))
            of_tiler.append((t, after * b if block_first else after))
            after *= b * t
        x_at, y_at = Plain.flat(of_block).values(), Plain.flat(of_tiler).values()
        _copies(case, found.values(), block, tiler, lambda x, y: x_at[x] + y_at[y])

    return body


law("blocked_product", st.products, small=True)(_zipped_modes("blocked_product", block_first=True))
law("raked_product", st.products, small=True)(_zipped_modes("raked_product", block_first=False))


@law("tile_to_shape", st.tile_to_shapes, small=True)
def tile_to_shape(case: Case, block: Plain, shape: IntTuple) -> None:
    """Copies of a bijective block fill a shape, one after the other, first mode first."""
    found = case.get("tile_to_shape", case.build(block), shape)
    extents = flatten(shape)
    case.same("the rank", len(found.modes()), len(extents))
    of_block, of_copy, copy, after, copies = [], [], [], 1, 1
    for (count, _), extent in zip(block.leaves(), extents):
        of_block.append((count, after))
        of_copy.append((extent // count, after * count))
        copy.append((extent // count, copies))
        copies *= extent // count
        after *= extent
    x_at, y_at = Plain.flat(of_block).values(), Plain.flat(of_copy).values()
    _copies(case, found.values(), block, Plain.flat(copy), lambda x, y: x_at[x] + y_at[y])
