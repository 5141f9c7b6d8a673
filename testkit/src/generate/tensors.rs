//! Generates expressions over tensors, such as `exp(%a) + 1` in a `means` block or a body (proptest
//! strategies).

use super::expr::expr;
use super::spec::attr;
use super::tensor::data_view;
use carbyne_ir::ast::{Apply, Attr, BinaryOp, Key, ReduceOp, SpecKind, TensorExpr, UnaryOp};
use carbyne_ir::build::statements;
use carbyne_ir::scalar::Scalar;
use carbyne_ir::span::Span;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// An expression that a text can contain: every operation has a tensor among its operands.
pub fn tensors() -> impl Strategy<Value = TensorExpr> {
    let view = data_view().prop_map(TensorExpr::View).boxed();
    let number = expr().prop_map(TensorExpr::Number).boxed();
    let tree = view.clone().prop_recursive(3, 10, 3, {
        let number = number.clone();
        move |inner| {
            let other = prop_oneof![2 => inner.clone(), 1 => number.clone()].boxed();
            let two = (inner.clone(), other.clone(), any::<bool>())
                .prop_map(|(a, b, first)| if first { vec![a, b] } else { vec![b, a] });
            let unary = select(UnaryOp::ALL).prop_filter("has a type", |op| *op != UnaryOp::Cast);
            // Only negation is printed as a sign.
            let unary = prop_oneof![1 => Just(UnaryOp::Neg), 4 => unary].boxed();
            let reduce = (select(ReduceOp::ALL), inner.clone(), vec(attr(), 0..2));
            // `axis=` distinguishes a reduction from a binary function with the same name.
            let plain =
                vec(attr().prop_filter("of a reduction", |a| a.key != Some(Key::Axis)), 1..3);
            let attrs = prop_oneof![12 => Just(vec![]), 1 => plain].boxed();
            let cast = (select(Scalar::ALL), inner.clone());
            prop_oneof![
                12 => (select(BinaryOp::ALL), two, attrs.clone())
                    .prop_map(|(op, args, attrs)| applied(SpecKind::Binary(op), args, attrs)),
                2 => (unary, inner.clone(), attrs.clone())
                    .prop_map(|(op, a, attrs)| applied(SpecKind::Unary(op), vec![a], attrs)),
                1 => cast.prop_map(|(to, a)| {
                    let to = statements::word(Key::To, to.as_str());
                    applied(SpecKind::Unary(UnaryOp::Cast), vec![a], vec![to])
                }),
                2 => reduce.prop_map(|(op, a, attrs)| {
                    applied(SpecKind::Reduction(op), vec![a], attrs)
                }),
                1 => (inner.clone(), inner.clone(), vec(attr(), 0..2))
                    .prop_map(|(a, b, attrs)| applied(SpecKind::MatMulSet, vec![a, b], attrs)),
                1 => (inner.clone(), other.clone(), other.clone())
                    .prop_map(|(p, a, b)| applied(SpecKind::Select, vec![p, a, b], vec![])),
                1 => inner.prop_map(|a| applied(SpecKind::Move, vec![a], vec![])),
            ]
        }
    });
    prop_oneof![1 => view, 1 => number, 4 => tree].boxed()
}

fn applied(kind: SpecKind, args: Vec<TensorExpr>, attrs: Vec<Attr>) -> TensorExpr {
    TensorExpr::Apply(Box::new(Apply { kind, args, attrs, span: Span::default() }))
}
