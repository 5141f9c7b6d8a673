//! Comparisons of indices.

use super::Index;
use super::code::{BadIndex, Env};
use carbyne_ir::ast::CmpOp;

/// A comparison of two indices.
#[derive(Clone, Debug)]
pub(crate) struct Compare {
    /// Left side.
    pub lhs: Index,
    /// Comparison.
    pub op: CmpOp,
    /// Right side.
    pub rhs: Index,
}

impl Compare {
    /// Whether it is the same for all threads.
    pub(crate) fn is_uniform(&self) -> bool {
        self.lhs.is_uniform() && self.rhs.is_uniform()
    }

    /// Whether it holds for a thread.
    ///
    /// # Errors
    /// [`BadIndex`].
    pub(crate) fn holds(&self, env: &Env, thread: usize) -> Result<bool, BadIndex> {
        let a = self.lhs.at(self.lhs.base(env)?, env, thread)?;
        let b = self.rhs.at(self.rhs.base(env)?, env, thread)?;
        Ok(self.op.holds(a, b))
    }
}
