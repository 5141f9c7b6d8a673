//! Represents elements as the simulator keeps them: the stored bits and the *shadow*. With the
//! shadow, a wrong algorithm can be told from rounding. [`Value`] is one element, [`Tile`] a
//! sequence of elements.
//!
//! The shadow is the element without rounding to its type: every operation computes the shadow of
//! its result from the shadows of its operands, in binary64. A cast between floats rounds the
//! shadow if the meaning states the cast; any other one only restricts it to the range of the type.
//! The shadow of an element from the caller is its number. When bits are read as another type than
//! they were written, the shadow starts again from the number. Integers and booleans also have
//! shadows, to detect comparisons and casts whose result rounding has changed.

use crate::num::decode;
use crate::plan::Literal;
use carbyne_ir::scalar::Scalar;

/// The bits of an element and its shadow. Without shadows, the shadow is 0 and has no meaning.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Value {
    /// The stored bits.
    pub bits: u64,
    /// The value without rounding.
    pub shadow: f64,
}

impl Value {
    /// The value of an element that does not exist.
    pub(crate) const ZERO: Value = Value { bits: 0, shadow: 0.0 };

    /// A literal. Its number replaces its bits, because the type depends on the other operand.
    pub(crate) fn literal(literal: &Literal) -> Self {
        Value { bits: literal.rounded.to_bits(), shadow: literal.exact }
    }

    /// A coordinate, an `i32`.
    #[inline]
    pub(crate) fn coordinate(at: i64) -> Self {
        Value { bits: u64::from(at as u32), shadow: at as f64 }
    }

    /// Bits, with a shadow that starts from them.
    #[inline]
    pub(crate) fn begin(scalar: Scalar, bits: u64, shadows: bool) -> Self {
        Value { bits, shadow: if shadows { decode(scalar, bits) } else { 0.0 } }
    }
}

/// Whether two shadows are equal, or both NaN.
#[inline]
pub(crate) fn same_shadow(x: f64, y: f64) -> bool {
    x == y || (x.is_nan() && y.is_nan())
}

/// The shadows of consecutive elements; empty without shadows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadows(Vec<f64>);

impl Shadows {
    /// The shadows of `n` elements.
    pub(crate) fn new(n: usize, on: bool) -> Self {
        Shadows(if on { vec![0.0; n] } else { Vec::new() })
    }

    /// Whether shadows are stored.
    #[inline]
    pub(crate) fn are_on(&self) -> bool {
        !self.0.is_empty()
    }

    /// The shadow of an element; 0 without shadows.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> f64 {
        self.0.get(i).copied().unwrap_or(0.0)
    }

    /// Sets the shadow of an element.
    #[inline]
    pub(crate) fn set(&mut self, i: usize, shadow: f64) {
        if let Some(to) = self.0.get_mut(i) {
            *to = shadow;
        }
    }

    /// The number of bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len() * size_of::<f64>()
    }
}

/// A sequence of values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tile {
    /// The stored bits.
    pub bits: Vec<u64>,
    /// The shadows, one for each value; empty without shadows.
    pub shadows: Vec<f64>,
}

impl Tile {
    /// Removes all values.
    pub(crate) fn clear(&mut self) {
        self.bits.clear();
        self.shadows.clear();
    }

    /// Resizes to `n` values.
    pub(crate) fn resize(&mut self, n: usize, shadows: bool) {
        self.bits.resize(n, 0);
        self.shadows.resize(if shadows { n } else { 0 }, 0.0);
    }

    /// Sets a value.
    #[inline]
    pub(crate) fn set(&mut self, i: usize, value: Value) {
        self.bits[i] = value.bits;
        if let Some(shadow) = self.shadows.get_mut(i) {
            *shadow = value.shadow;
        }
    }

    /// Appends a value.
    #[inline]
    pub(crate) fn push(&mut self, value: Value, shadows: bool) {
        self.bits.push(value.bits);
        if shadows {
            self.shadows.push(value.shadow);
        }
    }

    /// The value at an index.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> Value {
        Value { bits: self.bits[i], shadow: self.shadows.get(i).copied().unwrap_or(0.0) }
    }

    /// Appends the values of another tile.
    pub(crate) fn extend(&mut self, other: &Tile) {
        self.bits.extend(&other.bits);
        self.shadows.extend(&other.shadows);
    }
}
