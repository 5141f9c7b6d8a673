//! Defines [`Symbolic`], a layout as data, whose strides may be multiples of unknown positive
//! numbers, the symbols. Laws for libraries with symbolic strides take it as operand.
//!
//! Invariant: extents are constants. Laws substitute numbers for the symbols and check the layout
//! by enumeration.

use super::plain::Plain;
use crate::tuple::IntTuple;
use std::fmt;

/// The number of symbols.
pub const SYMBOLS: usize = 3;

/// The values that laws substitute for the symbols.
pub(crate) const VALUES: [[i64; SYMBOLS]; 4] = [[1, 1, 1], [2, 3, 5], [64, 8, 1], [1000, 7, 4096]];

/// A stride: a number or a multiple of a symbol.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Term {
    /// The number.
    pub factor: i64,
    /// The symbol that the number is multiplied by, below [`SYMBOLS`].
    pub symbol: Option<usize>,
}

impl Term {
    /// The value for given values of the symbols. A symbol without a value counts as 1.
    #[must_use]
    pub fn at(self, values: &[i64]) -> i64 {
        let symbol = self.symbol.and_then(|symbol| values.get(symbol)).copied().unwrap_or(1);
        self.factor.saturating_mul(symbol)
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.symbol {
            None => write!(f, "{}", self.factor),
            Some(symbol) => write!(f, "{}*s{symbol}", self.factor),
        }
    }
}

/// A layout with constant extents and some strides that are multiples of symbols.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Symbolic {
    /// The extents.
    pub shape: IntTuple<i64>,
    /// The strides, with the nesting of the shape.
    pub stride: IntTuple<Term>,
}

impl Symbolic {
    /// The layout for given values of the symbols.
    #[must_use]
    pub fn at(&self, values: &[i64]) -> Plain {
        Plain::new(self.shape.clone(), self.stride.map(&mut |term| term.at(values)))
    }

    /// The layout with large primes for the symbols. Two of its strides continue each other only if
    /// they do so for all values.
    pub(crate) fn at_distinct_values(&self) -> Plain {
        self.at(&[1_000_003, 1_000_000_007, 1_000_000_000_039])
    }
}

impl fmt::Display for Symbolic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stride = self.stride.map(&mut Term::to_string);
        write!(f, "{}:{stride}", self.shape)
    }
}
