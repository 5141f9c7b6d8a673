//! Implements calculator operations on layouts as functions: composition, inverses, complement,
//! null space. `solve` and `unify` find a layout from equations between layouts.
//!
//! Invariant: an answer is exactly the function in the operation's description; otherwise the
//! operation fails.

use crate::calculator::fault::Fault;
use crate::calculator::operation::{Args, Operation, Param, on_domain, op};
use crate::calculator::value::{Kind, Value};
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::{solve_in, unify};

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
        "a layout `R` with `L(R(i)) == i`, as large as whole modes permit",
        ("right_inverse((4,8):(8,1))", "(8,4):(4,1)"),
        |a| match a.function(0)?.plain() {
            Some(l) => Ok(l.right_inverse_in(a.cx)?.into()),
            None => Ok(a.fixed(0)?.right_inverse()?.into()),
        },
    )
    .alias(&["inverse"]),
    op(
        "left_inverse",
        F,
        "a layout `R` with `L(R(L(i))) == L(i)`",
        ("left_inverse((4,8):(16,2))", "(2,8,4):(0,4,1)"),
        |a| match a.function(0)?.plain() {
            Some(l) => Ok(l.left_inverse_in(a.cx)?.into()),
            None => Ok(a.fixed(0)?.left_inverse()?.into()),
        },
    ),
    op(
        "complement",
        &[("L", Kind::Layout), ("cotarget", Kind::Shape)],
        "the layout of the indices that `L` leaves out, up to the cotarget",
        ("complement((2,2):(1,6), 24)", "(3,2):(2,12)"),
        |a| {
            let one = || Dim::Const(1).into();
            let cotarget = if a.get(1).is_some() { a.shape(1)? } else { one() };
            if cotarget.flatten().iter().any(|n| a.cx.range(*n).1.is_some_and(|most| most < 1)) {
                let wanted = "a shape with extents of 1 or more";
                return Err(Fault::Range { arg: 1, wanted });
            }
            Ok(a.layout(0)?.complement_in(a.cx, cotarget)?.into())
        },
    )
    .optional(1),
    op(
        "nullspace",
        ANY,
        "the layout of the one-dimensional indices that map to 0",
        ("nullspace((7,5,16):(3,1,0))", "16:35"),
        nullspace,
    ),
    op(
        "solve",
        &[("f", Kind::Layout), ("p", Kind::Layout), ("q", Kind::Layout)],
        "the layout `g` with `f o p⁻¹ = g o q⁻¹`: if `p` and `q` name the same element, so do `f` \
         and `g`",
        (
            "solve((32,8):(8,1), (32,8):(1,32), ((4,8),(2,4)):((64,1),(32,8)))",
            "((4,8),(2,4)):((2,8),(1,64))",
        ),
        |a| Ok(solve_in(a.cx, &a.layout(0)?, &a.layout(1)?, &a.layout(2)?)?.into()),
    ),
    op(
        "unify",
        &[("shape", Kind::Shape), ("runs", Kind::Layouts), ("outer", Kind::Int)],
        "the compact layout `m` of the shape with `m(run(j)) == j` for every run; the first \
         `outer` modes are outermost",
        ("unify((64,64), [8:1, (8,4):(1,16)])", "((8,2,4),64):((1,32,8),64)"),
        |a| {
            let outer = if a.get(2).is_some() { a.index(2)? } else { 0 };
            let runs = a.value(1)?.layouts().map_err(|m| m.fault(1, Kind::Layouts))?;
            let runs =
                runs.iter().map(|run| run.eval(a.cx, &|_| None)).collect::<Result<Vec<_>, _>>()?;
            Ok(unify(&a.fixed_shape(0)?.flatten(), outer, &runs)?.into())
        },
    )
    .optional(1),
];

fn composition(a: &Args<'_>) -> Result<Value, Fault> {
    match (a.value(0)?, a.value(1)?) {
        (Value::Composed(l), Value::Coords(m)) => {
            Ok(l.map(|l| l.compose_coord_in(a.cx, m))?.into())
        }
        (Value::Coords(l), Value::Coords(m)) => Ok(l.compose_coord_in(a.cx, m)?.into()),
        (_, Value::Coords(m)) => Ok(a.layout(0)?.compose_coord_in(a.cx, m)?.into()),
        (Value::Coords(_), Value::Composed(_)) => Err(Fault::Type { arg: 1, wanted: Kind::Tiler }),
        (_, Value::Composed(_)) => Ok(a.fixed(0)?.compose_twisted(&a.fixed(1)?)?.into()),
        _ => Ok(on_domain!(a, 0, |l| l.compose_by_mode_in(a.cx, a.tiler(1)?)?)),
    }
}

fn nullspace(a: &Args<'_>) -> Result<Value, Fault> {
    match a.value(0)? {
        Value::Coords(l) => Ok(l.nullspace_in(a.cx)?.into()),
        _ => Ok(a.layout(0)?.nullspace_in(a.cx)?.into()),
    }
}
