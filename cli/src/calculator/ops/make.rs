//! Implements calculator operations that make layouts from shapes and from other layouts: compact
//! layouts in an order of modes, modes side by side, a block repeated to a shape. `swizzle` applies
//! a swizzle to one offset.

use crate::calculator::fault::Fault;
use crate::calculator::operation::{Args, Operation, Param, op};
use crate::calculator::value::{Kind, Layout, Value};
use carbyne_ir::layout::Swizzle;

const L: &[Param] = &[("L", Kind::Layout)];
const S: &[Param] = &[("shape", Kind::Shape)];
const SWIZZLE: &[Param] =
    &[("bits", Kind::Int), ("base", Kind::Int), ("shift", Kind::Int), ("offset", Kind::Int)];

pub(super) const ALL: &[Operation] = &[
    op(
        "make_layout",
        L,
        "the layout with these modes",
        ("make_layout(3:1, 4:3)", "(3,4):(1,3)"),
        |a| {
            let modes = (0..a.values.len()).map(|k| a.layout(k));
            Ok(Layout::concat(&modes.collect::<Result<Vec<_>, _>>()?)?.into())
        },
    )
    .alias(&["concat"])
    .many(),
    op(
        "col_major",
        S,
        "the compact layout, first mode fastest",
        ("col_major((4,8))", "(4,8):(1,4)"),
        |a| Ok(Layout::col_major_in(a.cx, a.shape(0)?)?.into()),
    ),
    op(
        "row_major",
        S,
        "the compact layout, last mode fastest",
        ("row_major((4,8))", "(4,8):(8,1)"),
        |a| Ok(Layout::row_major_in(a.cx, a.shape(0)?)?.into()),
    ),
    op(
        "make_ordered_layout",
        &[("shape", Kind::Shape), ("order", Kind::Shape)],
        "the compact layout whose modes go from fast to slow in the given order",
        ("make_ordered_layout((2,2,2,2), (0,2,3,1))", "(2,2,2,2):(1,4,8,2)"),
        |a| Ok(Layout::ordered_in(a.cx, a.shape(0)?, &a.fixed_shape(1)?)?.into()),
    )
    .alias(&["ordered"]),
    op(
        "make_layout_like",
        L,
        "the compact layout of the same shape, with the strides in the same order",
        ("make_layout_like((2,3,4,5):(0,42,1,0))", "(2,3,4,5):(0,4,1,0)"),
        |a| Ok(a.fixed_layout(0)?.make_like()?.into()),
    )
    .alias(&["make_like"]),
    op(
        "tile_to_shape",
        &[("block", Kind::Function), ("shape", Kind::Shape), ("order", Kind::Shape)],
        "the block repeated until it has the shape, along modes in the order given",
        ("tile_to_shape((8,8):(8,1), (32,64))", "((8,4),(8,8)):((8,64),(1,256))"),
        tile_to_shape,
    )
    .optional(1),
    op(
        "swizzle",
        SWIZZLE,
        "the index to which the swizzle moves the offset",
        ("swizzle(3,0,3,9)", "8"),
        |a| {
            let swizzle = Swizzle::of_fields(a.int(0)?, a.int(1)?, a.int(2)?)?;
            Ok(Value::from(swizzle.apply(a.int(3)?)))
        },
    ),
];

fn tile_to_shape(a: &Args<'_>) -> Result<Value, Fault> {
    let (block, shape) = (a.function(0)?, a.shape(1)?);
    let order = if a.get(2).is_some() { Some(a.fixed_shape(2)?) } else { None };
    Ok(block.map(|l| l.tile_to_shape_in(a.cx, &shape, order.as_ref()))?.into())
}
