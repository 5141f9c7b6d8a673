//! Implements calculator operations on numbers and on tuples of integers, such as shapes without
//! strides: products, quotients, compact strides, and the relations of two shapes (`compatible`,
//! `congruent`). Only `domain_distribute` makes a layout.
//!
//! Invariant: operations that need an order of modes take the first mode as the fastest, unless
//! their name says `row_major`.

use crate::calculator::operation::{Operation, Param, op};
use crate::calculator::value::{Kind, Layout, Value};
use carbyne_ir::ast::BinOp;
use carbyne_ir::layout::shapes;

const A: &[Param] = &[("shape", Kind::Shape)];
const A_B: &[Param] = &[("a", Kind::Shape), ("b", Kind::Shape)];

const NUMBERS: &[Param] = &[("a", Kind::Number), ("b", Kind::Number)];

pub(super) const ALL: &[Operation] = &[
    op("min", NUMBERS, "the smaller number", ("min(3, 5)", "3"), |a| {
        Ok(Value::Int(BinOp::Min.apply(a.cx, a.number(0)?, a.number(1)?)?))
    }),
    op("max", NUMBERS, "the larger number", ("max(3, 5)", "5"), |a| {
        Ok(Value::Int(BinOp::Max.apply(a.cx, a.number(0)?, a.number(1)?)?))
    }),
    op("product", A, "the product of all leaves", ("product(((2,3),4))", "24"), |a| {
        Ok(Value::Int(a.shape(0)?.size_in(a.cx)?))
    }),
    op(
        "inner_product",
        A_B,
        "the sum of the products of leaves",
        ("inner_product((1,2), (3,2))", "7"),
        |a| Ok(Value::Int(shapes::inner_product_in(a.cx, &a.shape(0)?, &a.shape(1)?)?)),
    ),
    op(
        "shape_div",
        A_B,
        "the shape divided by a number, first mode first",
        ("shape_div((6,(3,4)), 36)", "(1,(1,2))"),
        |a| Ok(Value::from(&shapes::shape_div_by_in(a.cx, &a.shape(0)?, &a.shape(1)?)?)),
    ),
    op(
        "ceil_div",
        A_B,
        "each leaf divided, rounded up",
        ("ceil_div((41,55), (4,8))", "(11,7)"),
        |a| Ok(Value::from(&shapes::ceil_div_by_in(a.cx, &a.shape(0)?, &a.shape(1)?)?)),
    ),
    op(
        "compact_col_major",
        A,
        "compact strides, first mode fastest",
        ("compact_col_major((3,2,4))", "(1,3,6)"),
        |a| Ok(Value::from(&Layout::col_major_in(a.cx, a.shape(0)?)?.stride())),
    ),
    op(
        "compact_row_major",
        A,
        "compact strides, last mode fastest",
        ("compact_row_major((4,8,2))", "(16,2,1)"),
        |a| Ok(Value::from(&Layout::row_major_in(a.cx, a.shape(0)?)?.stride())),
    ),
    op(
        "compatible",
        A_B,
        "whether every coordinate of `a` is one of `b`",
        ("compatible(24, (4,6))", "true"),
        |a| Ok(Value::Bool(a.shape(0)?.compatible_in(a.cx, &a.shape(1)?)?.require()?)),
    ),
    op(
        "congruent",
        A_B,
        "whether both are nested alike",
        ("congruent((4,6), (1,(2,3)))", "false"),
        |a| Ok(Value::Bool(a.shape(0)?.congruent(&a.shape(1)?))),
    ),
    op(
        "weakly_congruent",
        A_B,
        "whether `b` is nested as `a` is, or deeper",
        ("weakly_congruent((4,6), (1,(2,3)))", "true"),
        |a| Ok(Value::Bool(a.shape(0)?.weakly_congruent(&a.shape(1)?))),
    ),
    op(
        "evenly_divides",
        &[("shape", Kind::Shape), ("tiler", Kind::Tiler)],
        "whether the tiler fits the shape without a rest",
        ("evenly_divides(16, 12)", "false"),
        |a| {
            let even = shapes::evenly_divides_in(a.cx, &a.shape(0)?, &a.tiler(1)?)?;
            Ok(Value::Bool(even.require()?))
        },
    ),
    op(
        "domain_distribute",
        &[("shape", Kind::Shape), ("n", Kind::Int)],
        "the layout that spreads a shape over `n` threads",
        ("domain_distribute(((64,3),(8,8)), 128)", "(64,2):(1,192)"),
        |a| Ok(shapes::domain_distribute(&a.fixed_shape(0)?, a.int(1)?)?.into()),
    ),
];
