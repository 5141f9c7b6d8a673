//! The generated parser, fenced in so that its public enum stays private.

#[derive(pest_derive::Parser)]
#[grammar = "text/grammar.pest"]
pub(super) struct Grammar;
