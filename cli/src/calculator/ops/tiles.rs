//! Implements calculator operations that divide a layout into tiles, or repeat a layout as a tile
//! (products), and thread-value layouts of a tile from layouts of threads and of values.
//!
//! Invariant: a tiler in brackets, `[4, 8]`, has an entry for each mode; a layout as the tiler
//! divides the whole as a one-dimensional function.

use crate::calculator::operation::{Operation, Param, on_domain, op};
use crate::calculator::value::{Kind, Layout, Value};

const TILED: &[Param] = &[("L", Kind::Any), ("tiler", Kind::Tiler)];
const REPEATED: &[Param] = &[("L", Kind::Function), ("tiler", Kind::Tiler)];
const BLOCKS: &[Param] = &[("block", Kind::Function), ("tiler", Kind::Layout)];
const TV: &[Param] = &[("thr", Kind::Layout), ("val", Kind::Layout)];

pub(super) const ALL: &[Operation] = &[
    op(
        "logical_divide",
        TILED,
        "every tiled mode becomes (tile, rest)",
        ("logical_divide((8,24):(1,8), [4, 8])", "((4,2),(8,3)):((1,4),(8,64))"),
        |a| Ok(on_domain!(a, 0, |l| l.logical_divide_in(a.cx, a.tiler(1)?)?)),
    )
    .alias(&["divide"]),
    op(
        "zipped_divide",
        TILED,
        "as `logical_divide`, gathered as (tiles, rests)",
        ("zipped_divide((8,24):(1,8), [4, 8])", "((4,8),(2,3)):((1,8),(4,64))"),
        |a| Ok(on_domain!(a, 0, |l| l.zipped_divide_in(a.cx, a.tiler(1)?)?)),
    ),
    op(
        "tiled_divide",
        TILED,
        "as `zipped_divide`, the rests side by side: (tiles, rest, rest, ...)",
        ("tiled_divide((8,24):(1,8), [4, 8])", "((4,8),2,3):((1,8),4,64)"),
        |a| Ok(on_domain!(a, 0, |l| l.tiled_divide_in(a.cx, a.tiler(1)?)?)),
    ),
    op(
        "flat_divide",
        TILED,
        "as `zipped_divide`, all side by side: (tile, tile, ..., rest, rest, ...)",
        ("flat_divide((8,24):(1,8), [4, 8])", "(4,8,2,3):(1,8,4,64)"),
        |a| Ok(on_domain!(a, 0, |l| l.flat_divide_in(a.cx, a.tiler(1)?)?)),
    ),
    op(
        "logical_product",
        REPEATED,
        "every tiled mode becomes (mode, copies)",
        ("logical_product((2,5):(5,1), 3:1)", "((2,5),3):((5,1),10)"),
        |a| {
            let tiler = a.tiler(1)?;
            Ok(a.function(0)?.map(|l| l.logical_product_in(a.cx, tiler))?.into())
        },
    ),
    op(
        "zipped_product",
        REPEATED,
        "as `logical_product`, gathered as (modes, copies)",
        ("zipped_product((2,5):(5,1), (3,4):(1,3))", "((2,5),(3,4)):((5,1),(10,30))"),
        |a| {
            let tiler = a.tiler(1)?;
            Ok(a.function(0)?.map(|l| l.zipped_product_in(a.cx, tiler))?.into())
        },
    ),
    op(
        "tiled_product",
        REPEATED,
        "as `zipped_product`, the copies side by side",
        ("tiled_product((2,5):(5,1), (3,4):(1,3))", "((2,5),3,4):((5,1),10,30)"),
        |a| {
            let tiler = a.tiler(1)?;
            Ok(a.function(0)?.map(|l| l.tiled_product_in(a.cx, tiler))?.into())
        },
    ),
    op(
        "flat_product",
        REPEATED,
        "as `zipped_product`, all side by side",
        ("flat_product((2,5):(5,1), (3,4):(1,3))", "(2,5,3,4):(5,1,10,30)"),
        |a| {
            let tiler = a.tiler(1)?;
            Ok(a.function(0)?.map(|l| l.flat_product_in(a.cx, tiler))?.into())
        },
    ),
    op(
        "blocked_product",
        BLOCKS,
        "copies of the block, arranged by the tiler, mode by mode, each block kept together",
        ("blocked_product((2,5):(5,1), (3,4):(1,3))", "((2,3),(5,4)):((5,10),(1,30))"),
        |a| {
            let tiler = a.layout(1)?;
            Ok(a.function(0)?.map(|l| l.blocked_product_in(a.cx, &tiler))?.into())
        },
    ),
    op(
        "raked_product",
        BLOCKS,
        "as `blocked_product`, the blocks interleaved",
        ("raked_product((2,5):(5,1), (3,4):(1,3))", "((3,2),(4,5)):((10,5),(30,1))"),
        |a| {
            let tiler = a.layout(1)?;
            Ok(a.function(0)?.map(|l| l.raked_product_in(a.cx, &tiler))?.into())
        },
    ),
    op(
        "make_layout_tv",
        TV,
        "(thread, value) to the coordinate in the tile that both make together",
        ("make_layout_tv((32,8):(1,32), (4,1):(1,4))", "(256,4):(4,1)"),
        |a| Ok(Layout::tv_in(a.cx, &a.layout(0)?, &a.layout(1)?)?.into()),
    )
    .alias(&["tv"]),
    op(
        "make_layout_tv_tiler",
        TV,
        "the tile that threads and values make together",
        ("make_layout_tv_tiler((32,8):(1,32), (4,1):(1,4))", "(128,8)"),
        |a| Ok(Value::from(&Layout::tv_tiler_in(a.cx, &a.layout(0)?, &a.layout(1)?)?)),
    )
    .alias(&["tv_tiler"]),
];
