//! What two layouts have in common, and elements of other widths.
//!
//! Invariant: widths and factors are positive; the library checks that they divide.

use super::{Operation, Param, op, pending};
use crate::calculator::value::Kind;

const L_L: &[Param] = &[("L", Kind::Layout), ("M", Kind::Layout)];
const L_N: &[Param] = &[("L", Kind::Layout), ("n", Kind::Int)];

pub(super) const ALL: &[Operation] = &[
    op(
        "max_common_vector",
        L_L,
        "how many elements both layouts keep consecutive",
        ("max_common_vector((4,2):(1,4), (4,2):(1,8))", "4"),
        pending,
    ),
    op(
        "max_common_layout",
        L_L,
        "the largest layout that both make consecutive",
        ("max_common_layout((4,2):(1,4), (4,2):(1,8))", "4:1"),
        pending,
    ),
    op(
        "upcast",
        L_N,
        "over elements `n` times as wide",
        ("upcast((8,4):(1,8), 2)", "(4,4):(1,4)"),
        pending,
    ),
    op(
        "downcast",
        L_N,
        "over elements of an `n`-th of the width",
        ("downcast((4,4):(1,4), 2)", "(8,4):(1,8)"),
        pending,
    ),
    op(
        "recast",
        &[("L", Kind::Layout), ("old_bits", Kind::Int), ("new_bits", Kind::Int)],
        "over elements of another width",
        ("recast((8,4):(1,8), 16, 32)", "(4,4):(1,4)"),
        pending,
    ),
];
