//! Generates specs with their kind, executor, operands and attributes (proptest strategies). The
//! caller passes body and `means` block.

use super::expr::tuple;
use super::expr::{computed, expr};
use super::tensor::{data_view, result_type, thread_view};
use super::words::{ident, index, named, number, quoted, tensor_name, word};
use carbyne_ir::ast::{
    Attr, AttrValue, Block, Chosen, Exec, Expr, ExprKind, Group, Launch, Operand, ResultType, Spec,
    SpecKind, TupleExpr, View,
};
use carbyne_ir::span::Span;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// Any kind of spec.
pub fn spec_kind() -> impl Strategy<Value = SpecKind> {
    let of_word = |word| SpecKind::all().filter(|kind| kind.word() == word).collect::<Vec<_>>();
    select(SpecKind::words().collect::<Vec<_>>())
        .prop_flat_map(move |word| select(of_word(word)))
        .boxed()
}

/// A spec with the given `means` block and body, each optional.
pub fn spec(
    blocks: impl Strategy<Value = (Option<Block>, Option<Block>)> + 'static,
) -> impl Strategy<Value = Spec> {
    let head = (spec_kind(), option::weighted(0.3, named(ident())), option::weighted(0.7, exec()));
    let lists = (inputs(), outputs(), vec(attr(), 0..3));
    (head, lists, blocks)
        .prop_map(|((kind, name, exec), (inputs, (outputs, declared), attrs), blocks)| Spec {
            kind,
            name,
            exec,
            inputs,
            outputs,
            declared,
            attrs,
            means: blocks.0,
            body: blocks.1,
            span: Span::default(),
        })
        .boxed()
}

pub(super) fn inputs() -> impl Strategy<Value = Vec<Operand>> {
    let operand = prop_oneof![
        8 => data_view().prop_map(Operand::View),
        2 => number().prop_map(Operand::Number),
        1 => computed().prop_map(Operand::Value),
    ];
    vec(operand, 0..4).boxed()
}

/// Outputs and their stated types: no type for all outputs, or a type for one of them.
pub(super) fn outputs() -> impl Strategy<Value = (Vec<View>, Vec<Option<ResultType>>)> {
    let typed = vec((data_view(), option::weighted(0.2, result_type())), 0..3);
    typed
        .prop_map(|all| {
            let (views, mut types): (Vec<_>, Vec<_>) = all.into_iter().unzip();
            if types.iter().all(Option::is_none) {
                types.clear();
            }
            (views, types)
        })
        .boxed()
}

fn exec() -> impl Strategy<Value = Exec> {
    let modes = vec((option::of(named(index())), expr()), 1..4);
    let new =
        (named(tensor_name()), modes).prop_map(|(name, modes)| Group::New { name, modes }).boxed();
    prop_oneof![
        6 => (thread_view(), thread_view()).prop_map(|(b, t)| Exec::Both(b, t)),
        1 => thread_view().prop_map(Exec::Threads),
        1 => (thread_view(), new.clone()).prop_map(|(b, threads)| {
            Exec::Launch(Box::new(Launch { blocks: Group::Of(b), threads }))
        }),
        1 => (new.clone(), new)
            .prop_map(|(blocks, threads)| Exec::Launch(Box::new(Launch { blocks, threads }))),
    ]
    .boxed()
}

pub(super) fn attr() -> impl Strategy<Value = Attr> {
    let value = prop_oneof![
        word().prop_map(AttrValue::Word),
        data_view().prop_map(AttrValue::View),
        quoted().prop_map(AttrValue::Text),
        (option::of(named(ident())), vec((named(ident()), expr()), 0..3)).prop_map(
            |(name, values)| AttrValue::Chosen(Chosen { name, values, span: Span::default() })
        ),
        tuple().prop_map(|t| match &t {
            // A single name parses as a word, except a name with `@`.
            TupleExpr::Leaf(Expr { kind: ExprKind::Name(name), .. }) if !name.starts_with('@') => {
                AttrValue::Word(name.clone())
            }
            _ => AttrValue::Tuple(t),
        }),
    ];
    (named(ident()), value).prop_map(|(name, value)| Attr::named(name, value)).boxed()
}
