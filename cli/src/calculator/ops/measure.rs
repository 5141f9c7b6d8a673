//! Implements calculator operations that return properties of a layout: its size, rank, depth,
//! shape, strides and alignment, whether it is injective, and whether two layouts are equal as
//! functions.
//!
//! Invariant: the operations here only inspect layouts.

use crate::calculator::fault::Fault;
use crate::calculator::operation::{Args, Operation, Param, op};
use crate::calculator::value::{Basis, Kind, Shape, Value};
use carbyne_ir::tuple::IntTuple;

const ANY: &[Param] = &[("L", Kind::Any)];
const L: &[Param] = &[("L", Kind::Layout)];

pub(super) const ALL: &[Operation] = &[
    op("size", ANY, "the number of coordinates", ("size((4,8):(8,1))", "32"), |a| {
        Ok(Value::Int(shape(a)?.size_in(a.cx)?))
    }),
    op(
        "cosize",
        L,
        "one more than the distance between the lowest and the highest index",
        ("cosize((2,4):(12,1))", "16"),
        |a| Ok(Value::Int(a.layout(0)?.cosize_in(a.cx)?)),
    ),
    op("rank", ANY, "the number of modes", ("rank((2,(2,2)):(4,(2,1)))", "2"), |a| {
        Ok(Value::from(shape(a)?.rank() as i64))
    }),
    op("depth", ANY, "the levels of nesting", ("depth((2,(2,2)):(4,(2,1)))", "2"), |a| {
        Ok(Value::from(shape(a)?.depth() as i64))
    }),
    op("shape", ANY, "the extents", ("shape((2,(2,2)):(4,(2,1)))", "(2,(2,2))"), |a| {
        Ok(Value::from(&shape(a)?))
    }),
    op(
        "stride",
        ANY,
        "the strides, nested as the shape is",
        ("stride((2,(2,2)):(4,(2,1)))", "(4,(2,1))"),
        |a| match a.value(0)? {
            Value::Coords(l) => Ok(steps(&l.stride())),
            _ => Ok(Value::from(&a.function(0)?.layout().stride())),
        },
    ),
    op(
        "is_injective",
        L,
        "whether no two coordinates share an index",
        ("is_injective((4,4):(1,2))", "false"),
        |a| Ok(Value::Bool(a.fixed_layout(0)?.is_injective()?)),
    ),
    op(
        "equivalent",
        &[("L", Kind::Layout), ("M", Kind::Layout)],
        "whether both are the same function of one-dimensional indices, for all values of their \
         symbols",
        ("equivalent((4,(2,8)):(1,(4,8)), 64:1)", "true"),
        |a| {
            let same = a.layout(0)?.equivalent_in(a.cx, &a.layout(1)?)?;
            Ok(Value::Bool(same.require()?))
        },
    ),
    op(
        "max_alignment",
        L,
        "how many consecutive elements start at a multiple of their number, wherever the layout \
         is cut",
        ("max_alignment((4,8):(1,8))", "4"),
        |a| Ok(Value::from(a.fixed_layout(0)?.max_alignment())),
    ),
];

/// The shape of a layout of any kind.
fn shape(a: &Args<'_>) -> Result<Shape, Fault> {
    match a.value(0)? {
        Value::Coords(l) => Ok(l.shape()),
        _ => Ok(a.function(0)?.layout().shape()),
    }
}

fn steps(stride: &IntTuple<Basis>) -> Value {
    match stride {
        IntTuple::Leaf(step) if step.path().is_empty() => Value::Int(step.value()),
        IntTuple::Leaf(step) => Value::Basis(*step),
        IntTuple::Tuple(modes) => Value::Tuple(modes.iter().map(steps).collect()),
    }
}
