//! Constructs the minimum and the maximum of two symbolic expressions. The result is one of the two
//! if their ranges, or the range of their difference, decide which. Otherwise it is a new node of
//! the arena.

use super::{Dim, ExprArena, Node};
use crate::layout::LayoutError;

impl ExprArena {
    /// The minimum.
    ///
    /// # Errors
    /// The limits on expressions.
    pub fn min(&self, a: Dim, b: Dim) -> Result<Dim, LayoutError> {
        match (a, b) {
            (Dim::Const(a), Dim::Const(b)) => Ok(Dim::Const(a.min(b))),
            _ if self.at_most(a, b) => Ok(a),
            _ if self.at_most(b, a) => Ok(b),
            _ => {
                let (a, b) = sorted(a, b);
                self.intern(Node::Min(a, b))
            }
        }
    }

    /// The maximum.
    ///
    /// # Errors
    /// The limits on expressions.
    pub fn max(&self, a: Dim, b: Dim) -> Result<Dim, LayoutError> {
        match (a, b) {
            (Dim::Const(a), Dim::Const(b)) => Ok(Dim::Const(a.max(b))),
            _ if self.at_most(a, b) => Ok(b),
            _ if self.at_most(b, a) => Ok(a),
            _ => {
                let (a, b) = sorted(a, b);
                self.intern(Node::Max(a, b))
            }
        }
    }

    fn at_most(&self, a: Dim, b: Dim) -> bool {
        // The difference cancels common terms. If it overflows, the ranges still decide.
        let room = self.sub(b, a).ok().and_then(|room| self.range(room).0);
        let apart = self.range(a).1.zip(self.range(b).0).is_some_and(|(a, b)| a <= b);
        apart || room.is_some_and(|room| room >= 0)
    }
}

/// Sorts expressions by age, constants last.
fn sorted(a: Dim, b: Dim) -> (Dim, Dim) {
    let key = |dim: Dim| match dim {
        Dim::Expr(id) => (0, Some(id)),
        Dim::Const(_) => (1, None),
    };
    if key(a) <= key(b) { (a, b) } else { (b, a) }
}
