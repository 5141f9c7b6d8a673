//! Evaluates comparisons of two indices, such as `k + 1 < 8` in `if (k + 1 < 8) { .. }`, for each
//! thread.

use super::Index;
use super::code::{BadIndex, Env};
use carbyne_ir::ast::CmpOp;

/// A comparison of two indices.
#[derive(Clone, Debug)]
pub(crate) struct Compare {
    /// The left side.
    pub lhs: Index,
    /// The comparison operator.
    pub op: CmpOp,
    /// The right side.
    pub rhs: Index,
}

impl Compare {
    /// Whether the comparison is uniform for all threads.
    pub(crate) fn is_uniform(&self) -> bool {
        self.lhs.is_uniform() && self.rhs.is_uniform()
    }

    /// Whether the comparison holds for a thread.
    ///
    /// # Errors
    /// [`BadIndex`].
    pub(crate) fn holds(&self, env: &Env, thread: usize) -> Result<bool, BadIndex> {
        let a = self.lhs.at(self.lhs.base(env)?, env, thread)?;
        let b = self.rhs.at(self.rhs.base(env)?, env, thread)?;
        Ok(self.op.holds(a, b))
    }
}
