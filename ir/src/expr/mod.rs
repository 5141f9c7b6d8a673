//! Defines symbolic numbers ([`Dim`]): integer expressions over symbols, loop variables and thread
//! indices. Layouts have them as extents, strides and indices that are not constant.
//!
//! A [`Dim`] is a constant or a handle into an [`ExprArena`]. The arena is hash-consed: equal
//! expressions have equal handles. Every constructor simplifies by the known ranges and divisors
//! (see [`linear`] and [`divmod`]). Sums of products are one [`Node::Linear`]. [`prove`] decides
//! whether inequalities and divisibility hold under assumptions; [`quotients`] adds proofs about
//! quotients.
//!
//! Invariant: constants never enter the arena. Invariant: simplification is exact. For all values
//! of the variables within their ranges, the simplified expression has the value of the written
//! one; division rounds down and divisors are positive.

mod arena;
pub mod divmod;
mod eval;
mod facts;
mod leaf;
pub mod linear;
mod minmax;
mod print;
pub mod prove;
pub mod quotients;
mod symbolic;
mod visit;

pub use arena::ExprArena;

use std::sync::Arc;

/// A constant or an expression over variables.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Dim {
    /// A constant.
    Const(i64),
    /// An expression of the arena.
    Expr(ExprId),
}

/// A handle of an expression in one arena. The order is the order of creation.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct ExprId(pub(crate) u32);

/// A handle of a variable in one arena. The order is the order of creation.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct VarId(pub(crate) u32);

impl ExprId {
    /// The position among the expressions of the arena.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl VarId {
    /// The position among the variables of the arena.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The known bounds of a variable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct VarInfo {
    /// The printed name. Variables with equal names are still different.
    pub name: String,
    /// The smallest value.
    pub lo: i64,
    /// The largest value, if it is bounded.
    pub hi: Option<i64>,
    /// A divisor of every value; at least 1.
    pub div: i64,
}

impl VarInfo {
    /// A size: 1 or more, without other bounds.
    #[must_use]
    pub fn size(name: impl Into<String>) -> Self {
        VarInfo { name: name.into(), lo: 1, hi: None, div: 1 }
    }

    /// An index: from 0 to `extent - 1`.
    #[must_use]
    pub fn index(name: impl Into<String>, extent: i64) -> Self {
        VarInfo { name: name.into(), lo: 0, hi: Some(extent.saturating_sub(1)), div: 1 }
    }

    /// The smallest multiple of the divisor that is at least `n`. `None` if it does not fit in 64
    /// bits.
    #[must_use]
    pub fn multiple_from(&self, n: i64) -> Option<i64> {
        n.checked_add(n.checked_neg()?.rem_euclid(self.div.max(1)))
    }

    /// The distinct values that are in the range, in the given order.
    #[must_use]
    pub fn in_range(&self, mut values: Vec<i64>) -> Vec<i64> {
        let mut seen = vec![];
        values.retain(|v| {
            let fits = *v >= self.lo && self.hi.is_none_or(|hi| *v <= hi) && !seen.contains(v);
            seen.push(*v);
            fits
        });
        values
    }
}

/// One expression. Its operands are constants or older expressions.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Node {
    /// A variable.
    Var(VarId),
    /// A sum of `coefficient * term` and a constant. Terms are sorted, are not sums, and have
    /// non-zero coefficients.
    Linear {
        /// The terms with their coefficients.
        terms: Arc<[(ExprId, i64)]>,
        /// The constant.
        constant: i64,
    },
    /// A product of two expressions.
    Mul(Dim, Dim),
    /// The quotient, rounded down.
    Div(Dim, Dim),
    /// The remainder, never negative.
    Mod(Dim, Dim),
    /// The quotient, rounded up. Its divisor is not constant.
    CeilDiv(Dim, Dim),
    /// The minimum.
    Min(Dim, Dim),
    /// The maximum.
    Max(Dim, Dim),
}

impl Dim {
    /// The value of a constant.
    #[must_use]
    pub fn as_const(self) -> Option<i64> {
        match self {
            Dim::Const(v) => Some(v),
            Dim::Expr(_) => None,
        }
    }
}

impl From<i64> for Dim {
    fn from(v: i64) -> Self {
        Dim::Const(v)
    }
}
