//! Composition, inverses, complement, null space.
//!
//! Invariant: an answer is the exact function that the line promises.

use crate::calculator::fault::Fault;
use crate::calculator::operation::{Args, Operation, Param, on_domain, op};
use crate::calculator::value::{Kind, Value};

const F: &[Param] = &[("L", Kind::Function)];
const ANY: &[Param] = &[("L", Kind::Any)];

pub(super) const ALL: &[Operation] = &[
    op(
        "composition",
        &[("L", Kind::Any), ("tiler", Kind::Composable)],
        "the layout of `L(tiler(i))`, also written `L o tiler`",
        ("composition((6,2):(8,2), (4,3):(3,1))", "((2,2),3):((24,2),8)"),
        composition,
    )
    .alias(&["o", "compose"]),
    op(
        "right_inverse",
        F,
        "a layout `R` with `L(R(i)) == i`, as large as whole modes make it",
        ("right_inverse((4,8):(8,1))", "(8,4):(4,1)"),
        |a| Ok(a.function(0)?.right_inverse()?.into()),
    )
    .alias(&["inverse"]),
    op(
        "left_inverse",
        F,
        "a layout `R` with `L(R(L(i))) == L(i)`",
        ("left_inverse((4,8):(16,2))", "(2,8,4):(0,4,1)"),
        |a| Ok(a.function(0)?.left_inverse()?.into()),
    ),
    op(
        "complement",
        &[("L", Kind::Layout), ("cotarget", Kind::Shape)],
        "the layout of the indices that `L` leaves out, up to the cotarget",
        ("complement((2,2):(1,6), 24)", "(3,2):(2,12)"),
        |a| {
            let cotarget = if a.get(1).is_some() { a.shape(1)? } else { 1.into() };
            if cotarget.flatten().iter().any(|extent| *extent < 1) {
                let wanted = "a shape with extents of 1 or more";
                return Err(Fault::Range { arg: 1, wanted });
            }
            Ok(a.layout(0)?.complement(cotarget)?.into())
        },
    )
    .optional(1),
    op(
        "nullspace",
        ANY,
        "the layout of the one-dimensional indices that go to 0",
        ("nullspace((7,5,16):(3,1,0))", "16:35"),
        nullspace,
    ),
];

fn composition(a: &Args<'_>) -> Result<Value, Fault> {
    match (a.value(0)?, a.value(1)?) {
        (Value::Composed(l), Value::Coords(m)) => Ok(l.map(|l| l.compose_coord_in(&(), m))?.into()),
        (Value::Coords(l), Value::Coords(m)) => Ok(l.compose_coord_in(&(), m)?.into()),
        (_, Value::Coords(m)) => Ok(a.layout(0)?.compose_coord_in(&(), m)?.into()),
        (Value::Coords(_), Value::Composed(_)) => Err(Fault::Type { arg: 1, wanted: Kind::Tiler }),
        (_, Value::Composed(m)) => Ok(a.function(0)?.compose_twisted(m)?.into()),
        _ => Ok(on_domain!(a, 0, |l| l.compose_by_mode(a.tiler(1)?)?)),
    }
}

fn nullspace(a: &Args<'_>) -> Result<Value, Fault> {
    match a.value(0)? {
        Value::Coords(l) => Ok(l.nullspace().into()),
        _ => Ok(a.layout(0)?.nullspace().into()),
    }
}
