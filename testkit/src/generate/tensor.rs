//! Generates types and views of tensors of data and of threads, such as `%A.tile([8,8])[i, 0]`
//! (proptest strategies).

use super::expr::{dims, expr, layout};
use super::words::{named, tensor_name};
use carbyne_ir::ast::{Expr, LayoutExpr, TensorType, ThreadScalar, ThreadType, Tiler, TupleExpr};
use carbyne_ir::ast::{Pad, Pick, ResultType, TypeAttr, View, ViewOp};
use carbyne_ir::scalar::{Memory, Scalar};
use carbyne_ir::span::Span;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// The type of a data tensor.
pub fn tensor_type() -> impl Strategy<Value = TensorType> {
    let attrs = prop_oneof![2 => Just(vec![]), 1 => vec(type_attr(), 1..4)];
    (vec(dims(), 1..4), select(Scalar::ALL), option::weighted(0.8, select(Memory::ALL)), attrs)
        .prop_map(|(levels, scalar, memory, attrs)| TensorType {
            levels,
            scalar,
            memory,
            attrs,
            span: Span::default(),
        })
        .boxed()
}

/// The stated type of a result: complete, or a part.
pub fn result_type() -> impl Strategy<Value = ResultType> {
    let attrs = prop_oneof![3 => Just(vec![]), 1 => vec(type_attr(), 1..3)];
    let part = (option::of(select(Scalar::ALL)), select(Memory::ALL), any::<bool>(), attrs)
        .prop_map(|(scalar, memory, is_placed, attrs)| ResultType {
            levels: vec![],
            scalar,
            memory: (is_placed || scalar.is_none()).then_some(memory),
            attrs,
            span: Span::default(),
        });
    prop_oneof![1 => tensor_type().prop_map(ResultType::whole), 2 => part].boxed()
}

/// The numbers of a swizzle, mostly literals.
fn swizzle() -> impl Strategy<Value = Box<[Expr; 3]>> {
    let number = || prop_oneof![4 => (0i64..16).prop_map(Expr::int), 1 => expr()];
    [number(), number(), number()].prop_map(Box::new)
}

fn type_attr() -> impl Strategy<Value = TypeAttr> {
    prop_oneof![
        Just(TypeAttr::Open),
        (layout(), named(tensor_name())).prop_map(|(layout, over)| TypeAttr::Tv(layout, over)),
        swizzle().prop_map(TypeAttr::Swizzle),
        expr().prop_map(TypeAttr::Align),
        expr().prop_map(TypeAttr::At),
        named(tensor_name()).prop_map(TypeAttr::Reuses),
    ]
    .boxed()
}

/// The type of a thread tensor.
pub fn thread_type() -> impl Strategy<Value = ThreadType> {
    (vec(dims(), 1..4), select(ThreadScalar::ALL))
        .prop_map(|(levels, scalar)| ThreadType { levels, scalar, span: Span::default() })
        .boxed()
}

/// A view of a data tensor.
pub fn data_view() -> impl Strategy<Value = View> {
    view()
}

/// A view of a thread tensor. The text format allows all operations on both kinds of tensors.
pub fn thread_view() -> impl Strategy<Value = View> {
    view()
}

fn view() -> impl Strategy<Value = View> {
    let ops = prop_oneof![1 => Just(vec![]), 1 => vec(view_op(), 1..4)];
    (named(tensor_name()), ops)
        .prop_map(|(base, ops)| View { base, ops, span: Span::default() })
        .boxed()
}

fn view_op() -> impl Strategy<Value = ViewOp> {
    prop_oneof![
        3 => tiler().prop_map(ViewOp::Tile),
        2 => reshaped().prop_map(ViewOp::Reshape),
        3 => entries().prop_map(ViewOp::Index),
        1 => Just(ViewOp::Mine),
        1 => (layout(), named(tensor_name())).prop_map(|(layout, over)| ViewOp::Tv(layout, over)),
        1 => select(&[ViewOp::Scalar, ViewOp::Elect][..]),
        1 => expr().prop_map(ViewOp::Peer),
        1 => vec(expr(), 0..4).prop_map(ViewOp::Permute),
        1 => expr().prop_map(ViewOp::Iota),
        1 => expr().prop_map(ViewOp::Plus),
        1 => (vec(expr(), 0..4), vec(expr(), 0..4), option::of(expr())).prop_map(
            |(before, behind, value)| ViewOp::Pad(Box::new(Pad { before, behind, value }))
        ),
        1 => picks().prop_map(ViewOp::Pick),
        1 => (vec(expr(), 0..4), option::of(swizzle())).prop_map(
            |(sizes, swizzle)| ViewOp::TensorMap {
                sizes,
                swizzle,
            }
        ),
    ]
    .boxed()
}

/// A layout, or one whose sides may have different nesting.
fn reshaped() -> impl Strategy<Value = LayoutExpr> {
    let list = || vec(super::tuple(), 0..4).prop_map(TupleExpr::Tuple);
    let lists = (list(), list()).prop_map(|(shape, stride)| LayoutExpr {
        shape,
        stride,
        span: Span::default(),
    });
    prop_oneof![layout(), lists].boxed()
}

fn tiler() -> impl Strategy<Value = Tiler> {
    let modes = vec(option::weighted(0.8, layout()), 0..4).prop_map(Tiler::Modes);
    prop_oneof![entries().prop_map(Tiler::Sizes), modes].boxed()
}

/// Entries of an index, at least one of which is not a plain index.
fn picks() -> impl Strategy<Value = Vec<Pick>> {
    let new = || {
        prop_oneof![
            (expr(), expr()).prop_map(|(from, to)| Pick::Range(from, to)),
            named(tensor_name()).prop_map(Pick::From),
        ]
    };
    let any = prop_oneof![1 => Just(Pick::Keep), 1 => expr().prop_map(Pick::At), 1 => new()];
    (vec(any.clone(), 0..2), new(), vec(any, 0..2))
        .prop_map(|(mut picks, one, rest)| {
            picks.push(one);
            picks.extend(rest);
            picks
        })
        .boxed()
}

fn entries() -> impl Strategy<Value = Vec<Option<Expr>>> {
    vec(option::weighted(0.7, expr()), 0..4).boxed()
}
