//! Implements calculator operations for vectorized copies: the elements that are consecutive in two
//! layouts, and the layout over elements of another width.
//!
//! Invariant: the layout library refuses widths and factors below 1, and those that do not divide
//! the layout.

use crate::calculator::operation::{Operation, Param, op};
use crate::calculator::value::{Kind, Value};

const L_L: &[Param] = &[("L", Kind::Function), ("M", Kind::Function)];
const L_N: &[Param] = &[("L", Kind::Function), ("n", Kind::Int)];

pub(super) const ALL: &[Operation] = &[
    op(
        "max_common_vector",
        L_L,
        "how many elements both layouts keep consecutive",
        ("max_common_vector((4,2):(1,4), (4,2):(1,8))", "4"),
        |a| match (a.function(0)?.plain(), a.function(1)?.plain()) {
            (Some(l), Some(m)) => Ok(Value::from(l.max_common_vector_in(a.cx, m)?)),
            _ => Ok(Value::from(a.fixed(0)?.max_common_vector(&a.fixed(1)?)?)),
        },
    ),
    op(
        "max_common_layout",
        L_L,
        "the largest layout that both make consecutive",
        ("max_common_layout((4,2):(1,4), (4,2):(1,8))", "4:1"),
        |a| match (a.function(0)?.plain(), a.function(1)?.plain()) {
            (Some(l), Some(m)) => Ok(l.max_common_layout_in(a.cx, m)?.into()),
            _ => Ok(a.fixed(0)?.max_common_layout(&a.fixed(1)?)?.into()),
        },
    ),
    op(
        "upcast",
        L_N,
        "over elements `n` times as wide",
        ("upcast((8,4):(1,8), 2)", "(4,4):(1,4)"),
        |a| Ok(a.function(0)?.recast_in(a.cx, 1, a.int(1)?)?.into()),
    ),
    op(
        "downcast",
        L_N,
        "over elements of an `n`-th of the width",
        ("downcast((4,4):(1,4), 2)", "(8,4):(1,8)"),
        |a| Ok(a.function(0)?.recast_in(a.cx, a.int(1)?, 1)?.into()),
    ),
    op(
        "recast",
        &[("L", Kind::Function), ("old_bits", Kind::Int), ("new_bits", Kind::Int)],
        "over elements of another width",
        ("recast((8,4):(1,8), 16, 32)", "(4,4):(1,4)"),
        |a| Ok(a.function(0)?.recast_in(a.cx, a.int(1)?, a.int(2)?)?.into()),
    ),
];
