//! Statements that are written: by strategies, by rewrites, and for bodies of what is solved.

use carbyne_ir::ast::{Attr, Operand, SpecKind, Stmt, View};
pub(crate) use carbyne_ir::build::statements::*;

/// Writes leaf specs that the same threads execute.
pub(crate) struct Writer {
    /// Blocks and threads.
    pub(crate) exec: (View, View),
}

impl Writer {
    /// A leaf spec.
    pub(crate) fn spec(
        &self,
        kind: SpecKind,
        inputs: Vec<Operand>,
        output: View,
        attrs: Vec<Attr>,
    ) -> Stmt {
        spec(kind, Some(both(&self.exec)), inputs, output, attrs)
    }
}
