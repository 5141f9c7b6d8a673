//! Implements calculator operations that select, replace, group and merge modes of a layout.
//!
//! Invariant: a coordinate of the modes that an operation keeps has the same offset as before.

use crate::calculator::fault::Fault;
use crate::calculator::operation::{Args, Operation, Param, on_domain, op};
use crate::calculator::value::{CoordLayout, Kind, Layout, Value};
use carbyne_ir::layout::LayoutError;

const L: &[Param] = &[("L", Kind::Any)];
const L_L: &[Param] = &[("L", Kind::Any), ("M", Kind::Any)];
const L_PROFILE: &[Param] = &[("L", Kind::Any), ("profile", Kind::Shape)];
const L_RANGE: &[Param] = &[("L", Kind::Any), ("begin", Kind::Int), ("end", Kind::Int)];

pub(super) const ALL: &[Operation] = &[
    op(
        "get",
        &[("L", Kind::Any), ("path", Kind::Modes)],
        "the mode at the path",
        ("get((4,(3,6)):(1,(4,12)), [1, 0])", "3:4"),
        |a| {
            let path = a.modes(1)?;
            Ok(on_domain!(a, 0, |l| path.iter().try_fold(l.clone(), |mode, &k| mode.mode(k))?))
        },
    )
    .alias(&["mode"]),
    op(
        "select",
        &[("L", Kind::Any), ("modes", Kind::Modes)],
        "the chosen modes in the order given",
        ("select((2,3,5,7):(1,2,6,30), [1, 3])", "(3,7):(2,30)"),
        |a| Ok(on_domain!(a, 0, |l| l.select(&a.modes(1)?)?)),
    ),
    op(
        "take",
        L_RANGE,
        "the modes from `begin` to before `end`",
        ("take((2,3,5,7):(1,2,6,30), 1, 3)", "(3,5):(2,6)"),
        |a| {
            let (begin, end) = (a.index(1)?, a.index(2)?);
            if begin >= end {
                return Err(Fault::Range { arg: 2, wanted: "above `begin`" });
            }
            Ok(on_domain!(a, 0, |l| l.take(begin, end)?))
        },
    ),
    op(
        "group",
        L_RANGE,
        "the modes from `begin` to before `end` gathered into one",
        ("group((2,3,5,7):(1,2,6,30), 0, 2)", "((2,3),5,7):((1,2),6,30)"),
        |a| Ok(on_domain!(a, 0, |l| l.group(a.index(1)?, a.index(2)?)?)),
    ),
    op(
        "append",
        L_L,
        "the layout with another mode at the end",
        ("append(3:1, 4:3)", "(3,4):(1,3)"),
        |a| joined(a, 0, 1, |l, m| l.append(m), |l, m| l.append(m)),
    ),
    op(
        "prepend",
        L_L,
        "the layout with another mode in front",
        ("prepend(3:1, 4:3)", "(4,3):(3,1)"),
        |a| joined(a, 0, 1, |l, m| l.prepend(m), |l, m| l.prepend(m)),
    ),
    op(
        "replace",
        &[("L", Kind::Any), ("n", Kind::Int), ("M", Kind::Any)],
        "the layout with mode `n` exchanged for `M`",
        ("replace((3,4,(3,4)):(1,3,(1,3)), 2, 4:3)", "(3,4,4):(1,3,3)"),
        |a| {
            let n = a.index(1)?;
            joined(a, 0, 2, |l, m| l.replace(n, m), |l, m| l.replace(n, m))
        },
    ),
    op(
        "flatten",
        L,
        "the same leaves without nesting",
        ("flatten(((2,3),5):((1,2),6))", "(2,3,5):(1,2,6)"),
        |a| Ok(on_domain!(a, 0, |l| l.flatten())),
    ),
    op(
        "coalesce",
        L,
        "the layout as a function of one-dimensional indices, with as few modes as possible",
        ("coalesce((2,(1,6)):(1,(6,2)))", "12:1"),
        |a| Ok(on_domain!(a, 0, |l| l.coalesce_in(a.cx)?)),
    ),
    op(
        "coalesce_by",
        L_PROFILE,
        "every leaf of the profile coalesced on its own",
        ("coalesce_by((2,(1,6)):(1,(6,2)), (1,1))", "(2,6):(1,2)"),
        |a| Ok(on_domain!(a, 0, |l| l.coalesce_by_in(a.cx, &a.shape(1)?)?)),
    ),
    op(
        "filter",
        L,
        "without modes of stride 0 and of extent 1, coalesced",
        ("filter((2,4,3):(1,0,2))", "6:1"),
        |a| Ok(on_domain!(a, 0, |l| l.filter_zeros_in(a.cx)?)),
    ),
    op(
        "filter_by",
        L_PROFILE,
        "every leaf of the profile filtered on its own",
        ("filter_by((2,(4,3)):(1,(0,2)), (1,1))", "(2,3):(1,2)"),
        |a| Ok(on_domain!(a, 0, |l| l.filter_by_in(a.cx, &a.shape(1)?)?)),
    ),
    op(
        "filter_zeros",
        L,
        "with extent 1 wherever the stride is 0",
        ("filter_zeros((2,4,3):(1,0,2))", "(2,1,3):(1,0,2)"),
        |a| Ok(on_domain!(a, 0, |l| l.collapse_zeros())),
    ),
];

/// Joins two layouts of one kind. Only the first may be swizzled; the result keeps its swizzle.
fn joined(
    a: &Args<'_>,
    k: usize,
    m: usize,
    plain: impl Fn(&Layout, &Layout) -> Result<Layout, LayoutError>,
    coords: impl Fn(&CoordLayout, &CoordLayout) -> Result<CoordLayout, LayoutError>,
) -> Result<Value, Fault> {
    match (a.value(k)?, a.value(m)?) {
        (Value::Coords(l), Value::Coords(other)) => Ok(coords(l, other)?.into()),
        (Value::Composed(c), _) => {
            let other = a.layout(m)?;
            Ok(c.map(|l| plain(l, &other))?.into())
        }
        (Value::Coords(_), _) => Err(Fault::Type { arg: m, wanted: Kind::Any }),
        _ => Ok(plain(&a.layout(k)?, &a.layout(m)?)?.into()),
    }
}
