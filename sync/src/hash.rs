//! Maps of small keys that nobody chooses to collide: numbers of statements, places, granules.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map that is quick to look into. Its order reaches no output.
pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;
/// A set of the same kind.
pub(crate) type FastSet<K> = HashSet<K, BuildHasherDefault<Spread>>;

/// Spreads numbers.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Spread(u64);

impl Spread {
    #[inline]
    fn add(&mut self, n: u64) {
        // The golden ratio, as a fraction of 2^64; tables look at both ends of a hash.
        let mixed = (self.0.rotate_left(23) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.add(u64::from(*b)));
    }
    #[inline]
    fn write_u8(&mut self, n: u8) {
        self.add(u64::from(n));
    }
    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.add(u64::from(n));
    }
    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.add(n);
    }
    #[inline]
    fn write_usize(&mut self, n: usize) {
        self.add(n as u64);
    }
    #[inline]
    fn write_i64(&mut self, n: i64) {
        self.add(n.cast_unsigned());
    }
    #[inline]
    fn write_isize(&mut self, n: isize) {
        self.add(n as u64);
    }
}
