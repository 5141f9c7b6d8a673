//! [`Match`] is a strategy that matches a spec, with the form of the graph that it matches.

use super::found::Found;
use super::graph::Graph;
use super::library::Source;
use carbyne_ir::ast::Def;

/// A form of the graph, and how a strategy matches it.
pub(super) struct Match<'s> {
    pub def: &'s Def,
    pub file: &'s Source,
    pub graph: Graph,
    pub found: Found,
}
