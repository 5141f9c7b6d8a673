//! Spec heads.

use super::expr::tuple;
use super::tensor::{data_view, thread_view};
use super::words::{ident, named, number, quoted, word};
use crate::ast::{AccumulateOp, Expr, SpecKind, TupleExpr, UnaryOp};
use crate::ast::{Attr, AttrValue, BinaryOp, Block, ExprKind, Operand, ReduceOp, ShflOp, Spec};
use crate::span::Span;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// Any kind of spec.
pub fn spec_kind() -> impl Strategy<Value = SpecKind> {
    prop_oneof![
        Just(SpecKind::Move),
        select(AccumulateOp::ALL).prop_map(SpecKind::Accumulate),
        Just(SpecKind::Select),
        Just(SpecKind::MatMul),
        Just(SpecKind::MatMulSet),
        select(UnaryOp::ALL).prop_map(SpecKind::Unary),
        select(BinaryOp::ALL).prop_map(SpecKind::Binary),
        select(ReduceOp::ALL).prop_map(SpecKind::Reduction),
        select(ShflOp::ALL).prop_map(SpecKind::Shfl),
        Just(SpecKind::Init),
        Just(SpecKind::Iota),
        Just(SpecKind::Generic),
    ]
    .boxed()
}

/// A spec with the given `means` block and body, or without.
pub fn spec(
    blocks: impl Strategy<Value = (Option<Block>, Option<Block>)> + 'static,
) -> impl Strategy<Value = Spec> {
    let operand = prop_oneof![
        4 => data_view().prop_map(Operand::View),
        1 => number().prop_map(Operand::Number),
    ];
    let head = (
        spec_kind(),
        option::weighted(0.3, named(ident())),
        option::weighted(0.7, (thread_view(), thread_view())),
    );
    let lists = (vec(operand, 0..4), vec(data_view(), 0..3), vec(attr(), 0..3));
    (head, lists, blocks)
        .prop_map(|((kind, name, exec), (inputs, outputs, attrs), blocks)| Spec {
            kind,
            name,
            exec,
            inputs,
            outputs,
            attrs,
            means: blocks.0,
            body: blocks.1,
            span: Span::default(),
        })
        .boxed()
}

fn attr() -> impl Strategy<Value = Attr> {
    let value = prop_oneof![
        word().prop_map(AttrValue::Word),
        data_view().prop_map(AttrValue::View),
        quoted().prop_map(AttrValue::Text),
        tuple().prop_map(|t| match &t {
            // A lone name is a word; only one with `@` can be nothing else.
            TupleExpr::Leaf(Expr { kind: ExprKind::Name(name), .. }) if !name.starts_with('@') => {
                AttrValue::Word(name.clone())
            }
            _ => AttrValue::Tuple(t),
        }),
    ];
    (named(ident()), value).prop_map(|(key, value)| Attr { key, value }).boxed()
}
