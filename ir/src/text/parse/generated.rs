//! Holds the parser that pest generates from `grammar.pest`. It has a module of its own, because
//! the generator makes the enum of grammar rules public; the module keeps the enum out of the
//! crate's interface.

#[derive(pest_derive::Parser)]
#[grammar = "text/grammar.pest"]
pub(super) struct Grammar;
