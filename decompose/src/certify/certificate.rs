//! Defines certificates: a [`Certificate`] holds the layouts p, q, f, g of a [`Relation`] that the
//! solver used. [`super::checker`] evaluates the relations.
//!
//! A thread-value layout here has T = (lanes of a group, groups) and V = (values of an instruction,
//! instructions), both column-major, regardless of its nesting.

use carbyne_ir::ast::NodeId;
use carbyne_ir::program::SpecId;

pub use super::relation::Relation;

/// A proof that the decomposition of a spec is right.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// The spec, in the program that was solved.
    pub spec: SpecId,
    /// The statement of the spec, which the decomposed module has as well.
    pub node: NodeId,
    /// The row that implements the spec; `-` if there are several.
    pub atom: &'static str,
    /// The relation that holds.
    pub relation: Relation,
}

impl Certificate {
    /// Evaluates the relation with [`super::checker`].
    ///
    /// # Errors
    /// The first point at which the relation does not hold.
    pub fn check(&self) -> Result<(), super::checker::Wrong> {
        super::checker::check(&self.relation)
    }
}
