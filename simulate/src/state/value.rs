//! What an element holds: its bits, and its *shadow*.
//!
//! The shadow of a value is what it would be had nothing been rounded: every operation that
//! computes a value computes its shadow from the shadows of its operands, in binary64. Casts
//! between floats keep it within the range of their type. It begins as the value itself where the
//! caller provides the value, and begins again where bits are read as another type than they were
//! written as. Integers and truth values have shadows too, so that a comparison or a conversion
//! that rounding has turned is seen.

use crate::num::decode;
use crate::plan::Literal;
use carbyne_ir::scalar::Scalar;

/// The bits of an element and its shadow. Where shadows are turned off they are 0 and mean nothing.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Value {
    /// As stored.
    pub bits: u64,
    /// Without rounding.
    pub shadow: f64,
}

impl Value {
    /// What stands for an element that there is not.
    pub(crate) const ZERO: Value = Value { bits: 0, shadow: 0.0 };

    /// A literal, whose number stands for its bits: the type is that of what it meets.
    pub(crate) fn literal(literal: &Literal) -> Self {
        Value { bits: literal.rounded.to_bits(), shadow: literal.exact }
    }

    /// A coordinate, an `i32`.
    #[inline]
    pub(crate) fn coordinate(at: i64) -> Self {
        Value { bits: u64::from(at as u32), shadow: at as f64 }
    }

    /// Bits that the shadow begins from.
    #[inline]
    pub(crate) fn begin(scalar: Scalar, bits: u64, shadows: bool) -> Self {
        Value { bits, shadow: if shadows { decode(scalar, bits) } else { 0.0 } }
    }
}

/// Whether two shadows are the same number, or both are none.
#[inline]
pub(crate) fn same_shadow(x: f64, y: f64) -> bool {
    x == y || (x.is_nan() && y.is_nan())
}

/// Shadows of consecutive elements; nothing is kept where they are turned off.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadows(Vec<f64>);

impl Shadows {
    /// Of so many elements.
    pub(crate) fn new(n: usize, on: bool) -> Self {
        Shadows(if on { vec![0.0; n] } else { Vec::new() })
    }

    /// Whether they are kept.
    #[inline]
    pub(crate) fn are_on(&self) -> bool {
        !self.0.is_empty()
    }

    /// That of an element; 0 where none are kept.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> f64 {
        self.0.get(i).copied().unwrap_or(0.0)
    }

    /// Sets that of an element.
    #[inline]
    pub(crate) fn set(&mut self, i: usize, shadow: f64) {
        if let Some(to) = self.0.get_mut(i) {
            *to = shadow;
        }
    }

    /// Bytes that they take.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len() * size_of::<f64>()
    }
}

/// Values one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tile {
    /// As stored.
    pub bits: Vec<u64>,
    /// As many as there are bits, or none where shadows are turned off.
    pub shadows: Vec<f64>,
}

impl Tile {
    /// No values.
    pub(crate) fn clear(&mut self) {
        self.bits.clear();
        self.shadows.clear();
    }

    /// Of so many values.
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

    /// A value.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> Value {
        Value { bits: self.bits[i], shadow: self.shadows.get(i).copied().unwrap_or(0.0) }
    }

    /// Appends values of another tile.
    pub(crate) fn extend(&mut self, other: &Tile) {
        self.bits.extend(&other.bits);
        self.shadows.extend(&other.shadows);
    }
}
