//! Describes the banks of shared memory ([`Banks`]): the words that an access touches, the bank of
//! a word, and the number of wavefronts (cycles) of one phase of a warp's access, including those
//! of bank conflicts. Callers sum over phases. [`SECTOR_BYTES`] is the unit of accesses to global
//! memory.
//!
//! In one wavefront each bank delivers at most one word. An access that is too wide for one
//! wavefront is split by lanes first: into two halves of a warp for 8 bytes per lane, into four
//! quarters for 16. Each part of the warp is a *phase* of the access (not of an mbarrier). Within
//! it, lanes that need different words of one bank wait for each other. Lanes that need the same
//! word do not wait.
//!
//! Invariant: the simulator, the solver and the pictures of accesses all count with this file.

use std::ops::RangeInclusive;

/// The banks of shared memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Banks {
    /// The number of banks.
    pub n: i64,
    /// The width of a bank in bytes: one word.
    pub bytes: i64,
}

/// Bytes of global memory that are read or written together. Their address is a multiple of this
/// size (CUDA C++ Best Practices Guide, Coalesced Access to Global Memory).
pub const SECTOR_BYTES: i64 = 32;

/// The banks of every architecture in the table.
pub const BANKS: Banks = Banks { n: 32, bytes: 4 };

impl Banks {
    /// The number of lanes of a warp in one phase, for `bytes` bytes per lane.
    #[must_use]
    pub fn lanes_per_phase(self, bytes: i64) -> usize {
        (self.n * self.bytes / bytes.max(1)).clamp(1, 32) as usize
    }

    /// The words that an access of `bytes` bytes touches.
    #[must_use]
    pub fn words(self, address: i64, bytes: i64) -> RangeInclusive<i64> {
        address.div_euclid(self.bytes)..=(address + bytes - 1).div_euclid(self.bytes)
    }

    /// The bank that holds a word.
    #[must_use]
    pub fn bank(self, word: i64) -> usize {
        word.rem_euclid(self.n) as usize
    }

    /// The number of wavefronts of a phase: the largest number of these words in one bank. `words`
    /// must be distinct.
    #[must_use]
    pub fn wavefronts(self, words: &[i64]) -> i64 {
        let mut few = [0i64; 64];
        let mut many = vec![];
        let count = match few.get_mut(..self.n.max(1) as usize) {
            Some(few) => few,
            None => {
                many.resize(self.n as usize, 0);
                &mut many
            }
        };
        let mut most = 0;
        for w in words {
            let n = &mut count[self.bank(*w)];
            *n += 1;
            most = most.max(*n);
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases() {
        let lanes = [1, 2, 4, 8, 16].map(|bytes| BANKS.lanes_per_phase(bytes));
        assert_eq!(lanes, [32, 32, 32, 16, 8]);
        assert_eq!(BANKS.words(6, 4), 1..=2, "an access that is not aligned touches two words");
        assert_eq!(BANKS.wavefronts(&[0, 1, 31]), 1);
        assert_eq!(BANKS.wavefronts(&[0, 32, 64, 5]), 3);
        assert_eq!(BANKS.wavefronts(&[]), 0);
    }
}
