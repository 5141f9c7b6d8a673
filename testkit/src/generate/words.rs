//! Generates names, words of attributes, quoted texts, literals and comments (proptest strategies).

use carbyne_ir::ast::{Name, Number};
use carbyne_ir::span::Span;
use proptest::collection::vec;
use proptest::prelude::*;

/// Words of the grammar that are also valid names.
const KEYWORDS: [&str; 15] = [
    "let", "for", "if", "else", "min", "max", "ceil_div", "over", "barrier", "async", "tile",
    "inf", "Move", "to", "carbyne",
];

/// A bare name of a constant, a symbol or an attribute; not `_`.
pub fn ident() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[A-Za-z][A-Za-z0-9_]{0,6}",
        1 => "_[A-Za-z0-9_]{1,4}",
        1 => proptest::sample::select(&KEYWORDS[..]).prop_map(str::to_owned),
    ]
    .boxed()
}

/// A name in an expression: bare, or an index with its `@`.
pub fn index_or_constant() -> impl Strategy<Value = String> {
    prop_oneof![3 => ident(), 1 => index()].boxed()
}

/// An index with its `@`.
pub(super) fn index() -> impl Strategy<Value = String> {
    ident().prop_map(|name| format!("@{name}")).boxed()
}

/// The name of a tensor without its sigil; it may start with a digit.
pub fn tensor_name() -> impl Strategy<Value = String> {
    "[A-Za-z0-9_]{1,6}".boxed()
}

/// The contents of a quoted text.
pub(super) fn quoted() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z/]{1,8}\\.py:[0-9]{1,3}",
        1 => "[ !#-\\[\\]-~é\t]{0,12}",
        1 => Just("https://example.org/a(b[c{d".to_owned()),
    ]
    .boxed()
}

/// A word such as `mma.m16n8k16.f32.f16`.
pub fn word() -> impl Strategy<Value = String> {
    prop_oneof!["[A-Za-z_][A-Za-z0-9_]{0,8}", "[a-z][a-z0-9]{0,8}(\\.[a-z0-9_]{1,6}){1,3}"].boxed()
}

/// A literal operand.
pub fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        6 => "-?[0-9]{1,5}(\\.[0-9]{1,5})?([eE][+-]?[0-9]{1,2})?",
        1 => "-?inf",
        1 => "nan",
    ]
    .prop_map(|text| Number { text, span: Span::default() })
    .boxed()
}

/// A decimal number of an expression.
pub(super) fn real() -> impl Strategy<Value = String> {
    prop_oneof!["[0-9]{1,5}\\.[0-9]{1,5}([eE][+-]?[0-9]{1,2})?", "[0-9]{1,5}[eE][+-]?[0-9]{1,2}"]
        .boxed()
}

/// The text of a comment: any characters but line breaks, no blanks at the end.
pub fn comment() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[ -~]{0,24}", 1 => "\\PC{0,12}"]
        .prop_map(|text| text.trim_end().to_owned())
        .boxed()
}

/// Up to two comment lines, mostly none.
pub(super) fn comments() -> impl Strategy<Value = Vec<String>> {
    prop_oneof![3 => Just(vec![]), 1 => vec(comment(), 1..3)].boxed()
}

/// A name without a place.
pub(super) fn named(text: impl Strategy<Value = String> + 'static) -> impl Strategy<Value = Name> {
    text.prop_map(Name::new).boxed()
}
