//! Symbolic numbers: the leaves of shapes, strides and indices that are not constant.
//!
//! A [`Dim`] is a constant or a handle into an [`ExprArena`]. The arena is hash-consed: equal
//! expressions have equal handles, and every constructor simplifies with the known ranges and
//! divisors (see [`linear`] and [`divmod`]). Sums of products are one [`Node::Linear`].
//!
//! Invariant: constants never enter the arena. Invariant: simplification is exact; whatever the
//! variables are within their ranges, the result has the value of the expression as written,
//! division rounding down and divisors being positive.

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

/// A number that is constant or an expression over variables.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Dim {
    /// A constant.
    Const(i64),
    /// An expression of the arena at hand.
    Expr(ExprId),
}

/// An expression of one arena. Ordered by creation.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct ExprId(pub(crate) u32);

/// A variable of one arena. Ordered by creation.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct VarId(pub(crate) u32);

impl ExprId {
    /// Its place among the expressions of its arena.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl VarId {
    /// Its place among the variables of its arena.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is known of a variable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct VarInfo {
    /// How it prints. Two variables may share a name; they stay different.
    pub name: String,
    /// The smallest value it takes.
    pub lo: i64,
    /// The largest value it takes, if there is a bound.
    pub hi: Option<i64>,
    /// A number of at least 1 that divides every value it takes.
    pub div: i64,
}

impl VarInfo {
    /// A size: 1 or more, without further knowledge.
    #[must_use]
    pub fn size(name: impl Into<String>) -> Self {
        VarInfo { name: name.into(), lo: 1, hi: None, div: 1 }
    }

    /// An index: from 0 up to, not including, `extent`.
    #[must_use]
    pub fn index(name: impl Into<String>, extent: i64) -> Self {
        VarInfo { name: name.into(), lo: 0, hi: Some(extent.saturating_sub(1)), div: 1 }
    }

    /// The least multiple of its divisor from `n` on; none outside of 64 bits.
    #[must_use]
    pub fn multiple_from(&self, n: i64) -> Option<i64> {
        n.checked_add(n.checked_neg()?.rem_euclid(self.div.max(1)))
    }

    /// Those of these values that lie in its range, each once, in their order.
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

/// One expression; its operands are constants or older expressions.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Node {
    /// A variable.
    Var(VarId),
    /// The sum of `coefficient * term` and a constant. Terms are sorted, are no sums themselves,
    /// and have non-zero coefficients.
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
    /// The quotient, rounded up. Only by a divisor that is not constant.
    CeilDiv(Dim, Dim),
    /// The smaller.
    Min(Dim, Dim),
    /// The larger.
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
