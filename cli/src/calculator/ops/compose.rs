//! Composition, inverses, complement, null space.
//!
//! Invariant: an answer is the exact function that the line promises.

use super::{Args, Operation, Param, op, pending};
use crate::calculator::fault::Fault;
use crate::calculator::value::{Kind, Value};
use carbyne_ir::layout::ComposedLayout;

const L: &[Param] = &[("L", Kind::Layout)];

pub(super) const ALL: &[Operation] = &[
    op(
        "composition",
        &[("L", Kind::Function), ("tiler", Kind::Tiler)],
        "the layout of `L(tiler(i))`, also written `L o tiler`",
        ("composition((6,2):(8,2), (4,3):(3,1))", "((2,2),3):((24,2),8)"),
        composition,
    )
    .alias(&["o", "compose"]),
    op(
        "right_inverse",
        L,
        "a layout `R` with `L(R(i)) == i`, as large as whole modes make it",
        ("right_inverse((4,8):(8,1))", "(8,4):(4,1)"),
        |a| Ok(a.layout(0)?.right_inverse().into()),
    )
    .alias(&["inverse"]),
    op(
        "left_inverse",
        L,
        "a layout `R` with `L(R(L(i))) == L(i)`",
        ("left_inverse((4,8):(16,2))", "(2,8,4):(0,4,1)"),
        |a| Ok(a.layout(0)?.left_inverse()?.into()),
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
            let cotarget = cotarget.size()?;
            Ok(a.layout(0)?.complement(cotarget)?.into())
        },
    )
    .optional(1),
    op(
        "nullspace",
        L,
        "the layout of the one-dimensional indices that go to 0",
        ("nullspace((7,5,16):(3,1,0))", "16:35"),
        pending,
    ),
];

fn composition(a: &Args<'_>) -> Result<Value, Fault> {
    let tiler = a.tiler(1)?;
    match a.value(0)? {
        Value::Composed(f) => {
            let layout = f.layout.compose_by_mode(tiler)?;
            Ok(Value::Composed(Box::new(ComposedLayout { layout, ..(**f).clone() })))
        }
        _ => Ok(a.layout(0)?.compose_by_mode(tiler)?.into()),
    }
}
