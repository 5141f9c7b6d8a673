//! Division into tiles, and products of tiles.
//!
//! Invariant: a tiler in brackets acts by mode, a layout on the whole as a one-dimensional function.

use super::{Operation, Param, op, pending};
use crate::calculator::value::Kind;

const TILED: &[Param] = &[("L", Kind::Layout), ("tiler", Kind::Tiler)];
const BLOCKS: &[Param] = &[("block", Kind::Layout), ("tiler", Kind::Layout)];
const TV: &[Param] = &[("thr", Kind::Layout), ("val", Kind::Layout)];

pub(super) const ALL: &[Operation] = &[
    op(
        "logical_divide",
        TILED,
        "every tiled mode becomes (tile, rest)",
        ("logical_divide((8,24):(1,8), [4, 8])", "((4,2),(8,3)):((1,4),(8,64))"),
        |a| Ok(a.layout(0)?.logical_divide(a.tiler(1)?)?.into()),
    )
    .alias(&["divide"]),
    op(
        "zipped_divide",
        TILED,
        "as `logical_divide`, gathered as (tiles, rests)",
        ("zipped_divide((8,24):(1,8), [4, 8])", "((4,8),(2,3)):((1,8),(4,64))"),
        |a| Ok(a.layout(0)?.zipped_divide(a.tiler(1)?)?.into()),
    ),
    op(
        "tiled_divide",
        TILED,
        "as `zipped_divide`, the rests side by side: (tiles, rest, rest, ...)",
        ("tiled_divide((8,24):(1,8), [4, 8])", "((4,8),2,3):((1,8),4,64)"),
        pending,
    ),
    op(
        "flat_divide",
        TILED,
        "as `zipped_divide`, all side by side: (tile, tile, ..., rest, rest, ...)",
        ("flat_divide((8,24):(1,8), [4, 8])", "(4,8,2,3):(1,8,4,64)"),
        pending,
    ),
    op(
        "logical_product",
        TILED,
        "every tiled mode becomes (mode, copies)",
        ("logical_product((2,5):(5,1), 3:1)", "((2,5),3):((5,1),10)"),
        |a| Ok(a.layout(0)?.logical_product(a.tiler(1)?)?.into()),
    ),
    op(
        "zipped_product",
        TILED,
        "as `logical_product`, gathered as (modes, copies)",
        ("zipped_product((2,5):(5,1), (3,4):(1,3))", "((2,5),(3,4)):((5,1),(10,30))"),
        |a| Ok(a.layout(0)?.zipped_product(a.tiler(1)?)?.into()),
    ),
    op(
        "tiled_product",
        TILED,
        "as `zipped_product`, the copies side by side",
        ("tiled_product((2,5):(5,1), (3,4):(1,3))", "((2,5),3,4):((5,1),10,30)"),
        pending,
    ),
    op(
        "flat_product",
        TILED,
        "as `zipped_product`, all side by side",
        ("flat_product((2,5):(5,1), (3,4):(1,3))", "(2,5,3,4):(5,1,10,30)"),
        pending,
    ),
    op(
        "blocked_product",
        BLOCKS,
        "copies of the block as the tiler says, mode by mode, each block kept together",
        ("blocked_product((2,5):(5,1), (3,4):(1,3))", "((2,3),(5,4)):((5,10),(1,30))"),
        pending,
    ),
    op(
        "raked_product",
        BLOCKS,
        "as `blocked_product`, the blocks interleaved",
        ("raked_product((2,5):(5,1), (3,4):(1,3))", "((3,2),(4,5)):((10,5),(30,1))"),
        pending,
    ),
    op(
        "make_layout_tv",
        TV,
        "(thread, value) to the coordinate in the tile that both make together",
        ("make_layout_tv((32,8):(1,32), (4,1):(1,4))", "(256,4):(4,1)"),
        pending,
    )
    .alias(&["tv"]),
    op(
        "make_layout_tv_tiler",
        TV,
        "the tile that threads and values make together",
        ("make_layout_tv_tiler((32,8):(1,32), (4,1):(1,4))", "(128,8)"),
        pending,
    )
    .alias(&["tv_tiler"]),
];
