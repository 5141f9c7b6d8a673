//! Defines [`IntTuple`], an integer or a nested tuple of integers: a shape, stride or coordinate of
//! a layout.
//!
//! A number and a tuple of one number are different: `4` and `(4)`. Parsers and
//! [`crate::layout::Layout`] check that tuples nest at most [`MAX_DEPTH`] deep, so recursion over
//! such a tuple is bounded. The order is column-major everywhere: the first leaf (innermost number)
//! varies fastest.

use crate::layout::LayoutError;
use crate::leaf::{Decision, Leaf};
use std::fmt;

/// Maximum nesting depth of a tuple.
pub const MAX_DEPTH: usize = 128;

/// Maximum count of numbers and tuples within one tuple, together.
pub const MAX_NODES: usize = 4096;

/// A number, or a tuple of numbers and tuples.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum IntTuple<L = i64> {
    /// One number.
    Leaf(L),
    /// A tuple, possibly empty.
    Tuple(Vec<IntTuple<L>>),
}

impl<L> IntTuple<L> {
    /// The number of modes: 1 for a number.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.modes().len()
    }

    /// The depth of nesting: 0 for a number, 1 for a flat tuple.
    #[must_use]
    pub fn depth(&self) -> usize {
        match self {
            IntTuple::Leaf(_) => 0,
            IntTuple::Tuple(modes) => 1 + modes.iter().map(IntTuple::depth).max().unwrap_or(0),
        }
    }

    /// The modes of the outermost tuple; a number is its own only mode.
    #[must_use]
    pub fn modes(&self) -> &[IntTuple<L>] {
        match self {
            IntTuple::Leaf(_) => std::slice::from_ref(self),
            IntTuple::Tuple(modes) => modes,
        }
    }

    /// Mode `i`, if there is one.
    #[must_use]
    pub fn mode(&self, i: usize) -> Option<&IntTuple<L>> {
        self.modes().get(i)
    }

    /// Whether this is a number.
    #[must_use]
    pub fn is_leaf(&self) -> bool {
        matches!(self, IntTuple::Leaf(_))
    }

    /// Calls `f` on the leaves in order.
    pub fn for_each<'a>(&'a self, f: &mut impl FnMut(&'a L)) {
        match self {
            IntTuple::Leaf(leaf) => f(leaf),
            IntTuple::Tuple(modes) => modes.iter().for_each(|m| m.for_each(f)),
        }
    }

    /// A tuple with equal nesting whose leaves are `f` of these leaves.
    #[must_use]
    pub fn map<M>(&self, f: &mut impl FnMut(&L) -> M) -> IntTuple<M> {
        match self {
            IntTuple::Leaf(leaf) => IntTuple::Leaf(f(leaf)),
            IntTuple::Tuple(modes) => IntTuple::Tuple(modes.iter().map(|m| m.map(f)).collect()),
        }
    }

    /// As [`IntTuple::map`], stopping at the first error.
    ///
    /// # Errors
    /// The first error of `f`.
    pub fn try_map<M, E>(&self, f: &mut impl FnMut(&L) -> Result<M, E>) -> Result<IntTuple<M>, E> {
        Ok(match self {
            IntTuple::Leaf(leaf) => IntTuple::Leaf(f(leaf)?),
            IntTuple::Tuple(modes) => {
                IntTuple::Tuple(modes.iter().map(|m| m.try_map(f)).collect::<Result<_, E>>()?)
            }
        })
    }

    /// Whether both tuples have equal nesting.
    #[must_use]
    pub fn congruent<M>(&self, other: &IntTuple<M>) -> bool {
        match (self, other) {
            (IntTuple::Leaf(_), IntTuple::Leaf(_)) => true,
            (IntTuple::Tuple(a), IntTuple::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.congruent(b))
            }
            _ => false,
        }
    }

    /// Whether `other` refines the nesting of `self`: any tuple refines a number.
    #[must_use]
    pub fn weakly_congruent<M>(&self, other: &IntTuple<M>) -> bool {
        match (self, other) {
            (IntTuple::Leaf(_), _) => true,
            (IntTuple::Tuple(a), IntTuple::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.weakly_congruent(b))
            }
            (IntTuple::Tuple(_), IntTuple::Leaf(_)) => false,
        }
    }

    /// Checks depth and number of nodes; stops as soon as a limit is exceeded.
    ///
    /// # Errors
    /// [`LayoutError::TooDeep`] and [`LayoutError::TooLarge`].
    pub fn check_limits(&self) -> Result<(), LayoutError> {
        fn walk<L>(t: &IntTuple<L>, depth: usize, nodes: &mut usize) -> Result<(), LayoutError> {
            // Empty tuples count, too; otherwise nested empty tuples would have no limit.
            *nodes += 1;
            if *nodes > MAX_NODES {
                return Err(LayoutError::TooLarge { what: "a tuple", limit: MAX_NODES });
            }
            match t {
                IntTuple::Leaf(_) => Ok(()),
                IntTuple::Tuple(_) if depth >= MAX_DEPTH => {
                    Err(LayoutError::TooDeep { limit: MAX_DEPTH })
                }
                IntTuple::Tuple(modes) => modes.iter().try_for_each(|m| walk(m, depth + 1, nodes)),
            }
        }
        walk(self, 0, &mut 0)
    }
}

impl<L: Leaf> IntTuple<L> {
    /// The leaves in order.
    #[must_use]
    pub fn flatten(&self) -> Vec<L> {
        let mut leaves = Vec::new();
        self.for_each(&mut |leaf| leaves.push(*leaf));
        leaves
    }

    /// The product of the leaves; 1 for the empty tuple.
    ///
    /// # Errors
    /// [`LayoutError::Overflow`].
    pub fn size_in(&self, cx: &L::Cx) -> Result<L, LayoutError> {
        match self {
            IntTuple::Leaf(leaf) => Ok(*leaf),
            IntTuple::Tuple(modes) => modes
                .iter()
                .try_fold(L::constant(1), |size, mode| L::mul(cx, size, mode.size_in(cx)?)),
        }
    }

    /// Whether every coordinate of `self` is a coordinate of `other`: at each leaf of `self` the
    /// sizes are equal.
    ///
    /// # Errors
    /// [`LayoutError::Overflow`].
    pub fn compatible_in(&self, cx: &L::Cx, other: &IntTuple<L>) -> Result<Decision, LayoutError> {
        match (self, other) {
            (IntTuple::Leaf(leaf), _) => Ok(<L as Leaf>::eq(cx, *leaf, other.size_in(cx)?)),
            (IntTuple::Tuple(a), IntTuple::Tuple(b)) if a.len() == b.len() => {
                let mut all = Decision::Known(true);
                for (a, b) in a.iter().zip(b) {
                    match a.compatible_in(cx, b)? {
                        Decision::Known(true) => {}
                        Decision::Known(false) => return Ok(Decision::Known(false)),
                        needs @ Decision::Needs(_) => all = needs,
                    }
                }
                Ok(all)
            }
            _ => Ok(Decision::Known(false)),
        }
    }

    /// The text of the tuple. `cx` supplies the names of symbols.
    #[must_use]
    pub fn display_in(&self, cx: &L::Cx) -> String {
        self.map(&mut |leaf| leaf.show(cx)).to_string()
    }
}

impl IntTuple<i64> {
    /// The product of the leaves; 1 for the empty tuple.
    ///
    /// # Errors
    /// [`LayoutError::Overflow`].
    pub fn size(&self) -> Result<i64, LayoutError> {
        self.size_in(&())
    }

    /// Whether every coordinate of `self` is a coordinate of `other`. `false` if a size overflows.
    #[must_use]
    pub fn compatible(&self, other: &IntTuple<i64>) -> bool {
        matches!(self.compatible_in(&(), other), Ok(Decision::Known(true)))
    }
}

impl<L: fmt::Display> fmt::Display for IntTuple<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IntTuple::Leaf(leaf) => leaf.fmt(f),
            IntTuple::Tuple(modes) => {
                f.write_str("(")?;
                for (i, mode) in modes.iter().enumerate() {
                    if i > 0 {
                        f.write_str(",")?;
                    }
                    mode.fmt(f)?;
                }
                f.write_str(")")
            }
        }
    }
}

impl<L: Leaf> From<L> for IntTuple<L> {
    fn from(leaf: L) -> Self {
        IntTuple::Leaf(leaf)
    }
}

impl<L: Leaf> From<Vec<L>> for IntTuple<L> {
    fn from(leaves: Vec<L>) -> Self {
        IntTuple::Tuple(leaves.into_iter().map(IntTuple::Leaf).collect())
    }
}

impl<L: Leaf> From<Vec<IntTuple<L>>> for IntTuple<L> {
    fn from(modes: Vec<IntTuple<L>>) -> Self {
        IntTuple::Tuple(modes)
    }
}
