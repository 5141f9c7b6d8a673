//! Generates expressions (proptest strategies): numbers computed from literals, names, operators
//! and `sqrt`; tuples of them; layouts; and one level of a tensor's type with or without strides,
//! such as `[8,2]` or `[(8,2):(2,1)]`. The literals include decimal numbers, because the grammar
//! allows them in every expression.

use super::words::{index_or_constant, real};
use carbyne_ir::ast::{BinOp, Dims, Expr, ExprKind, LayoutExpr, TupleExpr};
use carbyne_ir::span::Span;
use carbyne_ir::tuple::IntTuple;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// A number with up to a few operators.
pub fn expr() -> impl Strategy<Value = Expr> + Clone {
    let leaf = prop_oneof![
        6 => (0i64..300).prop_map(Expr::int),
        1 => (0..=i64::MAX).prop_map(Expr::int),
        4 => index_or_constant().prop_map(Expr::name),
        1 => real().prop_map(|text| built(ExprKind::Real(text))),
    ];
    let tree = leaf.clone().prop_recursive(4, 12, 2, |inner| {
        let one = || inner.clone().prop_map(Box::new);
        prop_oneof![
            8 => (select(BinOp::ALL), inner.clone(), inner.clone())
                .prop_map(|(op, a, b)| Expr::bin(op, a, b)),
            1 => one().prop_map(|a| built(ExprKind::Neg(a))),
            1 => one().prop_map(|a| built(ExprKind::Sqrt(a))),
        ]
    });
    prop_oneof![2 => leaf, 1 => tree].boxed()
}

fn built(kind: ExprKind) -> Expr {
    Expr { kind, span: Span::default() }
}

/// A number that is not a literal.
pub(super) fn computed() -> impl Strategy<Value = Expr> {
    (select(BinOp::ALL), expr(), expr()).prop_map(|(op, a, b)| Expr::bin(op, a, b)).boxed()
}

/// A number or a nested tuple.
pub fn tuple() -> impl Strategy<Value = TupleExpr> {
    nested(expr()).prop_map(|t| convert(&t, &|e| e)).boxed()
}

/// A shape and strides with equal nesting.
pub fn layout() -> impl Strategy<Value = LayoutExpr> {
    nested((expr(), expr()))
        .prop_map(|t| LayoutExpr {
            shape: convert(&t, &|(shape, _)| shape),
            stride: convert(&t, &|(_, stride)| stride),
            span: Span::default(),
        })
        .boxed()
}

/// One level of a tensor, with or without strides.
pub fn dims() -> impl Strategy<Value = Dims> {
    let plain = vec(tuple(), 0..4).prop_map(|modes| (modes, None));
    let strided = vec(nested((expr(), expr())), 0..4).prop_map(|modes| {
        let shape = modes.iter().map(|t| convert(t, &|(shape, _)| shape)).collect();
        let stride = modes.iter().map(|t| convert(t, &|(_, stride)| stride)).collect();
        (shape, Some(stride))
    });
    prop_oneof![3 => plain, 2 => strided]
        .prop_map(|(modes, strides)| Dims { modes, strides, span: Span::default() })
        .boxed()
}

/// Mostly single leaves, some tuples, few deep ones.
fn nested<T: Clone + std::fmt::Debug + 'static>(
    leaf: impl Strategy<Value = T> + Clone + 'static,
) -> impl Strategy<Value = IntTuple<T>> {
    let leaf = leaf.prop_map(IntTuple::Leaf);
    let tree =
        leaf.clone().prop_recursive(3, 8, 3, |inner| vec(inner, 0..4).prop_map(IntTuple::Tuple));
    prop_oneof![2 => leaf, 1 => tree].boxed()
}

fn convert<'t, T>(t: &'t IntTuple<T>, f: &impl Fn(&'t T) -> &'t Expr) -> TupleExpr {
    match t {
        IntTuple::Leaf(leaf) => TupleExpr::Leaf(f(leaf).clone()),
        IntTuple::Tuple(modes) => TupleExpr::Tuple(modes.iter().map(|m| convert(m, f)).collect()),
    }
}
