//! Swizzles: involutions of indices that spread accesses over memory banks.
//!
//! `Sw<bits,base,shift>` flips the `bits` bits above the lowest `base` ones by the `bits` bits that
//! lie `shift` higher. Invariant: the two fields do not overlap, so applying it twice changes
//! nothing and it permutes every aligned run of [`Swizzle::period`] indices.

use super::LayoutError;
use std::fmt;

/// `x ^ ((x >> shift) & mask)`, the mask being `bits` ones above `base` zeros.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Swizzle {
    bits: u32,
    base: u32,
    shift: u32,
}

impl Swizzle {
    /// The swizzle of these fields, in units of whatever is indexed.
    ///
    /// # Errors
    /// [`LayoutError::Swizzle`] where the fields overlap or reach beyond 62 bits.
    pub fn new(bits: u32, base: u32, shift: u32) -> Result<Self, LayoutError> {
        let swizzle = Swizzle { bits, base, shift };
        let refuse = |reason| Err(LayoutError::Swizzle { swizzle: swizzle.to_string(), reason });
        if bits > shift {
            return refuse("has a shift smaller than its bits");
        }
        if bits > 62 || base > 62 || shift > 62 || bits + base + shift > 62 {
            return refuse("reaches beyond 62 bits");
        }
        Ok(swizzle)
    }

    /// The swizzle that changes nothing.
    #[must_use]
    pub const fn none() -> Self {
        Swizzle { bits: 0, base: 0, shift: 0 }
    }

    /// How many bits are flipped.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// How many low bits stay as they are: runs of `1 << base` indices stay together.
    #[must_use]
    pub fn base(self) -> u32 {
        self.base
    }

    /// How far above the flipped bits the deciding ones are.
    #[must_use]
    pub fn shift(self) -> u32 {
        self.shift
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn is_none(self) -> bool {
        self.bits == 0
    }

    /// The index that `x` is moved to. Its own inverse.
    #[must_use]
    pub fn apply(self, x: i64) -> i64 {
        let mask = ((1i64 << self.bits) - 1) << self.base;
        x ^ ((x >> self.shift) & mask)
    }

    /// After how many indices the pattern repeats; memory must be aligned to as many.
    #[must_use]
    pub fn period(self) -> i64 {
        if self.is_none() { 1 } else { 1 << (self.bits + self.base + self.shift) }
    }

    /// The same swizzle of memory, for indices of elements `new_bits` wide instead of `old_bits`.
    ///
    /// # Errors
    /// [`LayoutError::Swizzle`] where the widths are no power of two apart, or where a new element
    /// would be torn apart.
    pub fn recast(self, old_bits: u32, new_bits: u32) -> Result<Self, LayoutError> {
        if self.is_none() {
            return Ok(self);
        }
        let refuse = |reason| Err(LayoutError::Swizzle { swizzle: self.to_string(), reason });
        let (large, small) = (old_bits.max(new_bits), old_bits.min(new_bits));
        if small == 0 || large % small != 0 || !(large / small).is_power_of_two() {
            return refuse("cannot be recast between widths that are no power of two apart");
        }
        let step = (large / small).trailing_zeros();
        if new_bits <= old_bits {
            return Swizzle::new(self.bits, self.base + step, self.shift);
        }
        match self.base.checked_sub(step) {
            Some(base) => Swizzle::new(self.bits, base, self.shift),
            None => refuse("would tear the wider elements apart"),
        }
    }
}

impl fmt::Display for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sw<{},{},{}>", self.bits, self.base, self.shift)
    }
}
