//! Modes chosen, exchanged, gathered, and taken together where strides continue each other.
//!
//! Invariant: no operation here changes the index of a leaf coordinate that remains.

use super::{Operation, Param, op, pending};
use crate::calculator::fault::Fault;
use crate::calculator::value::{Kind, Value};

const L: &[Param] = &[("L", Kind::Layout)];
const L_L: &[Param] = &[("L", Kind::Layout), ("M", Kind::Layout)];
const L_PROFILE: &[Param] = &[("L", Kind::Layout), ("profile", Kind::Shape)];
const L_RANGE: &[Param] = &[("L", Kind::Layout), ("begin", Kind::Int), ("end", Kind::Int)];

pub(super) const ALL: &[Operation] = &[
    op(
        "get",
        &[("L", Kind::Layout), ("path", Kind::Modes)],
        "the mode that the path leads to",
        ("get((4,(3,6)):(1,(4,12)), [1, 0])", "3:4"),
        |a| {
            let path = a.modes(1)?;
            Ok(path.iter().try_fold(a.layout(0)?, |mode, &k| mode.mode(k))?.into())
        },
    )
    .alias(&["mode"]),
    op(
        "select",
        &[("L", Kind::Layout), ("modes", Kind::Modes)],
        "the chosen modes in the order given",
        ("select((2,3,5,7):(1,2,6,30), [1, 3])", "(3,7):(2,30)"),
        |a| Ok(a.layout(0)?.select(&a.modes(1)?)?.into()),
    ),
    op(
        "take",
        L_RANGE,
        "the modes from `begin` to before `end`",
        ("take((2,3,5,7):(1,2,6,30), 1, 3)", "(3,5):(2,6)"),
        |a| {
            let (layout, begin, end) = (a.layout(0)?, a.index(1)?, a.index(2)?);
            if end > layout.rank() || begin >= end {
                let wanted = "above `begin`, and no more than the number of modes";
                return Err(Fault::Range { arg: 2, wanted });
            }
            Ok(layout.select(&(begin..end).collect::<Vec<_>>())?.into())
        },
    ),
    op(
        "group",
        L_RANGE,
        "the modes from `begin` to before `end` gathered into one",
        ("group((2,3,5,7):(1,2,6,30), 0, 2)", "((2,3),5,7):((1,2),6,30)"),
        |a| Ok(a.layout(0)?.group(a.index(1)?, a.index(2)?)?.into()),
    ),
    op(
        "append",
        L_L,
        "the layout with another mode at the end",
        ("append(3:1, 4:3)", "(3,4):(1,3)"),
        pending,
    ),
    op(
        "prepend",
        L_L,
        "the layout with another mode in front",
        ("prepend(3:1, 4:3)", "(4,3):(3,1)"),
        pending,
    ),
    op(
        "replace",
        &[("L", Kind::Layout), ("n", Kind::Int), ("M", Kind::Layout)],
        "the layout with mode `n` exchanged for `M`",
        ("replace((3,4,(3,4)):(1,3,(1,3)), 2, 4:3)", "(3,4,4):(1,3,3)"),
        pending,
    ),
    op(
        "flatten",
        L,
        "the same leaves without nesting",
        ("flatten(((2,3),5):((1,2),6))", "(2,3,5):(1,2,6)"),
        |a| Ok(a.layout(0)?.flatten().into()),
    ),
    op(
        "coalesce",
        L,
        "the same function of one-dimensional indices, with as few modes as possible",
        ("coalesce((2,(1,6)):(1,(6,2)))", "12:1"),
        |a| Ok(a.layout(0)?.coalesce().into()),
    ),
    op(
        "coalesce_by",
        L_PROFILE,
        "every leaf of the profile coalesced on its own",
        ("coalesce_by((2,(1,6)):(1,(6,2)), (1,1))", "(2,6):(1,2)"),
        pending,
    ),
    op(
        "filter",
        L,
        "without modes of stride 0 and of extent 1, coalesced",
        ("filter((2,4,3):(1,0,2))", "6:1"),
        |a| Ok(Value::Layout(a.layout(0)?.filter_zeros())),
    ),
    op(
        "filter_by",
        L_PROFILE,
        "every leaf of the profile filtered on its own",
        ("filter_by((2,(4,3)):(1,(0,2)), (1,1))", "(2,3):(1,2)"),
        pending,
    ),
    op(
        "filter_zeros",
        L,
        "with extent 1 wherever the stride is 0",
        ("filter_zeros((2,4,3):(1,0,2))", "(2,1,3):(1,0,2)"),
        pending,
    ),
];
