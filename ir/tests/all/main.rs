//! Tests of the layout algebra, its kit and the text format, one program so that they link once.

mod kit_catches;
mod kit_laws;
mod kit_oracles;
mod kit_reference;
mod kit_shrinking;
mod layout_expr;
mod layout_known;
mod layout_laws;
mod layout_referee;
mod layout_semantics;
mod layout_symbolic;
mod nodes;
mod text_errors;
mod text_examples;
mod text_limits;
mod text_properties;
mod text_quotes;
