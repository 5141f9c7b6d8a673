//! Tests the layout algebra, its kit, and the texts, trees and programs of kernels. All tests are
//! one program, so that Cargo links once.
//!
//! Without the feature `text`, only the tests of the algebra and the kit remain.

#[cfg(feature = "text")]
mod build;
#[cfg(feature = "text")]
mod extents;
mod kit_bugs;
mod kit_catches;
mod kit_laws;
mod kit_oracles;
mod kit_reference;
mod kit_settings;
mod kit_shrinking;
mod layout_expr;
mod layout_known;
mod layout_laws;
mod layout_referee;
mod layout_semantics;
mod layout_solve;
mod layout_symbolic;
#[cfg(feature = "text")]
mod link;
#[cfg(feature = "text")]
mod nodes;
#[cfg(feature = "text")]
mod ranges;
#[cfg(feature = "text")]
mod subspecs;
#[cfg(feature = "text")]
mod text_errors;
#[cfg(feature = "text")]
mod text_examples;
#[cfg(feature = "text")]
mod text_limits;
#[cfg(feature = "text")]
mod text_oracles;
#[cfg(feature = "text")]
mod text_quotes;
#[cfg(feature = "text")]
mod view_bounds;
