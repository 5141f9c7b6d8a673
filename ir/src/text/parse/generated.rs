//! The parser that pest generates from `grammar.pest`, in a module of its own. The generator makes
//! the enum of grammar rules public; this module keeps it out of the crate's interface.

#[derive(pest_derive::Parser)]
#[grammar = "text/grammar.pest"]
pub(super) struct Grammar;
