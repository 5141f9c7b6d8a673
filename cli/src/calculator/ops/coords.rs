//! Implements calculator operations that evaluate a layout: the offset of a coordinate, the
//! coordinate of an index, lists of all offsets. Others take the modes that a coordinate leaves
//! open (`slice`) or fixes (`dice`), or give a layout another shape.
//!
//! Invariant: no list has more than [`MAX_VALUES`] offsets, and the number of offsets times the
//! number of leaves is at most [`MAX_STEPS`], so that a large layout neither hangs nor fills the
//! memory.

use crate::calculator::fault::Fault;
use crate::calculator::operation::{Args, Operation, Param, on_domain, op};
use crate::calculator::value::{self, Kind, Value};
use carbyne_ir::layout::index::idx2crd_in;
use carbyne_ir::layout::{ComposedLayout, Swizzle};

/// Maximum number of values in a list.
const MAX_VALUES: i64 = 1 << 16;
/// Maximum number of leaves visited for a list.
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
            Value::Coords(l) => Ok(Value::from(&l.crd2crd_in(a.cx, &a.shape(0)?)?)),
            Value::Composed(_) => Ok(a.fixed(1)?.at_coord(&a.fixed_shape(0)?)?.into()),
            _ => Ok(a.layout(1)?.crd2idx_in(a.cx, &a.shape(0)?)?.into()),
        },
    )
    .alias(&["at"]),
    op(
        "idx2crd",
        &[("index", Kind::Shape), ("shape", Kind::Shape)],
        "the coordinate of an index, first mode fastest",
        ("idx2crd(4, (3,(2,3)))", "(1,(1,0))"),
        |a| Ok(Value::from(&idx2crd_in(a.cx, &a.shape(0)?, &a.shape(1)?)?)),
    ),
    op(
        "layout_eval",
        &[("L", Kind::Function)],
        "the indices of all coordinates, first mode fastest",
        ("layout_eval((2,4):(12,1))", "[0,12,1,13,2,14,3,15]"),
        |a| Ok(listed(values(&a.fixed(0)?)?)),
    )
    .alias(&["eval", "values"]),
    op(
        "swizzle_layout_eval",
        SWIZZLE_L,
        "the indices of all coordinates, shifted by an offset and swizzled",
        ("swizzle_layout_eval(1, 0, 2, 0, (4,2):(1,4))", "[0,1,2,3,5,4,7,6]"),
        |a| {
            let swizzle = Swizzle::of_fields(a.int(0)?, a.int(1)?, a.int(2)?)?;
            let layout = a.layout(4)?.into();
            let swizzled = value::swizzled(a.cx, swizzle, a.number(3)?, &layout)?;
            Ok(listed(values(&swizzled.eval(a.cx, &|_| None)?)?))
        },
    ),
    op(
        "slice",
        CRD_L,
        "the layout of the modes that `_` leaves open",
        ("slice((2,_), ((3,2),(2,5,2)):((4,1),(2,13,100)))", "((2,5,2)):((2,13,100))"),
        slice,
    ),
    op(
        "slice_offset",
        CRD_L,
        "the index of the coordinate with 0 for every `_`",
        ("slice_offset((2,_), ((3,2),(2,5,2)):((4,1),(2,13,100)))", "8"),
        |a| Ok(a.layout(1)?.slice_offset_in(a.cx, &a.coord(0)?)?.into()),
    ),
    op(
        "dice",
        CRD_L,
        "the layout of the modes that the coordinate fixes",
        ("dice((2,_), ((3,2),(2,5,2)):((4,1),(2,13,100)))", "((3,2)):((4,1))"),
        |a| Ok(on_domain!(a, 1, |l| l.dice(&a.coord(0)?)?)),
    ),
    op(
        "with_shape",
        &[("L", Kind::Any), ("shape", Kind::Shape)],
        "the layout as a function of one-dimensional indices, under another shape",
        ("with_shape(12:2, (3,4))", "(3,4):(2,6)"),
        |a| Ok(on_domain!(a, 0, |l| l.with_shape_in(a.cx, a.shape(1)?)?)),
    ),
];

/// All values of the function, if they are few enough to list.
pub(crate) fn values(f: &ComposedLayout) -> Result<Vec<i64>, Fault> {
    let size = f.size();
    let leaves = (f.layout().leaves().len() as i64).max(1);
    let limit = MAX_VALUES.min(MAX_STEPS / leaves);
    if size > limit {
        return Err(Fault::TooLarge { values: size, limit });
    }
    Ok((0..size).map(|i| f.at(i)).collect())
}

fn listed(values: Vec<i64>) -> Value {
    Value::List(values.into_iter().map(Value::from).collect())
}

fn slice(a: &Args<'_>) -> Result<Value, Fault> {
    let coord = a.coord(0)?;
    match a.value(1)? {
        Value::Composed(c) => Ok(c.slice_in(a.cx, &coord)?.into()),
        Value::Coords(l) => Ok(l.slice(&coord)?.into()),
        _ => Ok(a.layout(1)?.slice(&coord)?.into()),
    }
}
