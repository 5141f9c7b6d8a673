//! A layout as a function: coordinates, indices, slices, all values.
//!
//! Invariant: no list is longer than [`MAX_VALUES`], nor takes more than [`MAX_STEPS`] steps.

use crate::calculator::fault::Fault;
use crate::calculator::operation::{Args, Operation, Param, on_domain, op};
use crate::calculator::value::{Kind, Value, composed, swizzle};
use carbyne_ir::layout::ComposedLayout;
use carbyne_ir::layout::index::idx2crd;

/// Most values of a list.
const MAX_VALUES: i64 = 1 << 16;
/// Most leaves visited for a list.
const MAX_STEPS: i64 = 1 << 24;

const CRD_L: &[Param] = &[("coord", Kind::Coord), ("L", Kind::Any)];
const SWIZZLE_L: &[Param] = &[
    ("bits", Kind::Int),
    ("base", Kind::Int),
    ("shift", Kind::Int),
    ("offset", Kind::Int),
    ("L", Kind::Layout),
];

pub(super) const ALL: &[Operation] = &[
    op(
        "crd2idx",
        &[("coord", Kind::Shape), ("L", Kind::Any)],
        "the index of a coordinate; a number may stand for any mode",
        ("crd2idx((1,(1,2)), (3,(2,3)):(3,(12,1)))", "17"),
        |a| match a.value(1)? {
            Value::Coords(l) => Ok(Value::from(&l.at_coord(&a.shape(0)?)?)),
            _ => Ok(Value::Int(a.function(1)?.at_coord(&a.shape(0)?)?)),
        },
    )
    .alias(&["at"]),
    op(
        "idx2crd",
        &[("index", Kind::Shape), ("shape", Kind::Shape)],
        "the coordinate of an index, first mode fastest",
        ("idx2crd(4, (3,(2,3)))", "(1,(1,0))"),
        |a| Ok(Value::from(&idx2crd(&a.shape(0)?, &a.shape(1)?)?)),
    ),
    op(
        "layout_eval",
        &[("L", Kind::Function)],
        "the indices of all coordinates, first mode fastest",
        ("layout_eval((2,4):(12,1))", "[0,12,1,13,2,14,3,15]"),
        |a| values(&a.function(0)?),
    )
    .alias(&["eval", "values"]),
    op(
        "swizzle_layout_eval",
        SWIZZLE_L,
        "as `layout_eval`, the indices shifted by an offset and swizzled",
        ("swizzle_layout_eval(1, 0, 2, 0, (4,2):(1,4))", "[0,1,2,3,5,4,7,6]"),
        |a| {
            let fields = [a.int(0)?, a.int(1)?, a.int(2)?];
            let (swizzle, layout) = (swizzle(fields)?, a.layout(4)?);
            values(&composed(swizzle, a.int(3)?, layout)?)
        },
    ),
    op(
        "slice",
        CRD_L,
        "the layout of what `_` leaves open",
        ("slice((2,_), ((3,2),(2,5,2)):((4,1),(2,13,100)))", "((2,5,2)):((2,13,100))"),
        slice,
    ),
    op(
        "slice_offset",
        CRD_L,
        "the index of the coordinate with 0 for every `_`",
        ("slice_offset((2,_), ((3,2),(2,5,2)):((4,1),(2,13,100)))", "8"),
        |a| Ok(Value::Int(a.layout(1)?.slice_offset(&a.coord(0)?)?)),
    ),
    op(
        "dice",
        CRD_L,
        "the layout of what the coordinate fixes",
        ("dice((2,_), ((3,2),(2,5,2)):((4,1),(2,13,100)))", "((3,2)):((4,1))"),
        |a| Ok(on_domain!(a, 1, |l| l.dice(&a.coord(0)?)?)),
    ),
    op(
        "with_shape",
        &[("L", Kind::Any), ("shape", Kind::Shape)],
        "the same function of one-dimensional indices under another shape",
        ("with_shape(12:2, (3,4))", "(3,4):(2,6)"),
        |a| Ok(on_domain!(a, 0, |l| l.with_shape(a.shape(1)?)?)),
    ),
];

/// All values of the function, if they are few enough to list.
pub(crate) fn values(f: &ComposedLayout) -> Result<Value, Fault> {
    let size = f.size();
    let leaves = (f.layout().leaves().len() as i64).max(1);
    let limit = MAX_VALUES.min(MAX_STEPS / leaves);
    if size > limit {
        return Err(Fault::TooLarge { values: size, limit });
    }
    Ok(Value::List((0..size).map(|i| Value::Int(f.at(i))).collect()))
}

fn slice(a: &Args<'_>) -> Result<Value, Fault> {
    let coord = a.coord(0)?;
    match a.value(1)? {
        Value::Composed(c) => Ok(c.slice_in(&(), &coord)?.into()),
        Value::Coords(l) => Ok(l.slice(&coord)?.into()),
        _ => Ok(a.layout(1)?.slice(&coord)?.into()),
    }
}
