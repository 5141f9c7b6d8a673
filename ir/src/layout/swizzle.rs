//! Defines [`Swizzle`], a permutation of indices that spreads accesses to shared memory over its
//! banks.
//!
//! `Sw<bits,base,shift>` applies exclusive-or to the `bits` bits above the lowest `base` bits, with
//! the `bits` bits that lie `shift` higher. With a negative shift the lower bits change the higher
//! ones. Invariant: the two fields do not overlap. A swizzle is therefore its own inverse, and it
//! permutes every aligned run of [`Swizzle::period`] indices.

use super::{Layout, LayoutError};
use std::fmt;

/// `x ^ ((x >> shift) & mask)`; `mask` is `bits` ones above `base` zeros.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Swizzle {
    bits: u32,
    base: u32,
    shift: i32,
}

impl Swizzle {
    /// The swizzle with these fields, in units of the indices.
    ///
    /// # Errors
    /// [`LayoutError::Swizzle`] if the fields overlap or reach beyond 62 bits.
    pub fn new(bits: u32, base: u32, shift: u32) -> Result<Self, LayoutError> {
        Swizzle::of_fields(bits.into(), base.into(), shift.into())
    }

    /// As [`Swizzle::new`]. With a negative shift the lower field changes the higher one.
    ///
    /// # Errors
    /// The errors of [`Swizzle::new`], and for negative bits or base.
    pub fn of_fields(bits: i64, base: i64, shift: i64) -> Result<Self, LayoutError> {
        let refuse = |reason| {
            Err(LayoutError::Swizzle { swizzle: format!("Sw<{bits},{base},{shift}>"), reason })
        };
        let fields = 0..=62;
        if !fields.contains(&bits) || !fields.contains(&base) || !(-62..=62).contains(&shift) {
            return refuse("reaches beyond 62 bits");
        }
        if bits > shift.abs() {
            return refuse("has a shift smaller than its bits");
        }
        if bits + base + shift.abs() > 62 {
            return refuse("reaches beyond 62 bits");
        }
        Ok(Swizzle { bits: bits as u32, base: base as u32, shift: shift as i32 })
    }

    /// The identity.
    #[must_use]
    pub const fn none() -> Self {
        Swizzle { bits: 0, base: 0, shift: 0 }
    }

    /// The number of changed bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// The number of low bits that never change: runs of `1 << base` indices stay together.
    #[must_use]
    pub fn base(self) -> u32 {
        self.base
    }

    /// The distance from the changed bits up to the deciding bits. Negative if the deciding bits
    /// are lower.
    #[must_use]
    pub fn shift(self) -> i32 {
        self.shift
    }

    /// Whether the swizzle is the identity.
    #[must_use]
    pub fn is_none(self) -> bool {
        self.bits == 0
    }

    /// The index that `x` moves to. The function is its own inverse.
    #[must_use]
    pub fn apply(self, x: i64) -> i64 {
        let mask = ((1i64 << self.bits) - 1) << self.base;
        let distance = self.shift.unsigned_abs();
        if self.shift >= 0 { x ^ ((x >> distance) & mask) } else { x ^ ((x & mask) << distance) }
    }

    /// The number of indices after which the pattern repeats. Memory must be aligned to this
    /// number.
    #[must_use]
    pub fn period(self) -> i64 {
        if self.is_none() { 1 } else { 1 << (self.bits + self.base + self.shift.unsigned_abs()) }
    }

    /// This swizzle of memory in indices of elements with `new_bits`; `self` has indices of
    /// elements with `old_bits`.
    ///
    /// # Errors
    /// [`LayoutError::Swizzle`] if the ratio of the widths is not a power of two, or if the swizzle
    /// would split a new element.
    pub fn recast(self, old_bits: u32, new_bits: u32) -> Result<Self, LayoutError> {
        if self.is_none() {
            return Ok(self);
        }
        let refuse = |reason| Err(LayoutError::Swizzle { swizzle: self.to_string(), reason });
        let (large, small) = (old_bits.max(new_bits), old_bits.min(new_bits));
        if small == 0 || large % small != 0 || !(large / small).is_power_of_two() {
            return refuse("cannot be recast: the ratio of the widths is not a power of two");
        }
        let step = (large / small).trailing_zeros();
        if new_bits <= old_bits {
            return Swizzle::of_fields(
                self.bits.into(),
                i64::from(self.base + step),
                self.shift.into(),
            );
        }
        match self.base.checked_sub(step) {
            Some(base) => Ok(Swizzle { base, ..self }),
            None => refuse("would split the wider elements"),
        }
    }
}

impl Swizzle {
    /// `self ∘ other` as one swizzle, if both have equal base and shift.
    pub(crate) fn merged(self, other: Swizzle) -> Option<Swizzle> {
        if self.is_none() || other.is_none() {
            return Some(if self.is_none() { other } else { self });
        }
        // The lower bits of both fields cancel.
        let low = self.bits.min(other.bits);
        let same = (self.base, self.shift) == (other.base, other.shift);
        let bits = self.bits.max(other.bits) - low;
        same.then_some(match bits {
            0 => Swizzle::none(),
            _ => Swizzle { bits, base: self.base + low, shift: self.shift },
        })
    }

    /// Whether the swizzle permutes `0..n`.
    pub(crate) fn permutes_below(self, n: i64) -> bool {
        let small = n <= super::enumerate::MAX_ENUMERATED;
        n % self.period() == 0
            || (self.shift >= 0 && n.count_ones() == 1)
            || (small && (0..n).all(|i| self.apply(i) < n))
    }

    /// The swizzle of indices with the effect of this swizzle on coordinates: `s` with
    /// `s.apply(layout.at(i)) == layout.at(self.apply(i))` for every `i` below the size.
    ///
    /// # Errors
    /// [`LayoutError::Swizzled`] if the layout separates the bits of a field.
    pub fn through(self, layout: &Layout) -> Result<Swizzle, LayoutError> {
        if self.is_none() {
            return Ok(self);
        }
        let what = "the composition with a swizzle";
        let refuse = || LayoutError::Swizzled { what, layout: format!("{layout} o {self}") };
        // The index distance of each bit of the coordinate, up to an extent that is not a power of
        // two.
        let (mut worth, mut whole) = (Vec::new(), true);
        for &(extent, stride) in layout.leaves() {
            whole &= extent.count_ones() == 1;
            if whole {
                (0..extent.trailing_zeros()).for_each(|k| worth.push(stride.checked_shl(k)));
            }
        }
        let n = worth.len() as u32;
        let distance = self.shift.unsigned_abs();
        let (low, high) = (self.base, self.base + distance);
        // Bits that are never set have no effect.
        let bits = if self.shift >= 0 { self.bits.min(n.saturating_sub(high)) } else { self.bits };
        if bits == 0 {
            return Ok(Swizzle::none());
        }
        let place = |bit: u32| -> Option<u32> {
            let worth = (*worth.get(bit as usize)?)?;
            (worth > 0 && worth.count_ones() == 1).then(|| worth.trailing_zeros())
        };
        let fields = (place(low), place(high));
        let (Some(to_low), Some(to_high)) = fields else { return Err(refuse()) };
        let together = (0..bits)
            .all(|j| (place(low + j), place(high + j)) == (Some(to_low + j), Some(to_high + j)));
        if !together {
            return Err(refuse());
        }
        let flips_low = self.shift >= 0;
        let (flipped, deciding) = if flips_low { (to_low, to_high) } else { (to_high, to_low) };
        let shift = i64::from(deciding) - i64::from(flipped);
        let base = flipped.min(deciding);
        let found = Swizzle::of_fields(bits.into(), base.into(), shift).map_err(|_| refuse())?;
        // A permutation of bits is exact. Other layouts are checked index by index.
        let mut places: Vec<Option<u32>> = (0..n).map(place).collect();
        places.sort_unstable();
        let permutes = whole
            && places.first().is_none_or(Option::is_some)
            && places.windows(2).all(|pair| pair[0] != pair[1]);
        let exact = |i| found.apply(layout.at(i)) == layout.at(self.apply(i));
        let small = layout.size() <= super::enumerate::MAX_ENUMERATED;
        if permutes || (small && (0..layout.size()).all(exact)) { Ok(found) } else { Err(refuse()) }
    }
}

impl fmt::Display for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sw<{},{},{}>", self.bits, self.base, self.shift)
    }
}
