//! The generated parser in its own module, so that its public enum stays private.

#[derive(pest_derive::Parser)]
#[grammar = "text/grammar.pest"]
pub(super) struct Grammar;
