//! The banks of shared memory, and how a warp's access is served.
//!
//! A wavefront delivers at most one word of each bank. An access too wide for one is split by lanes
//! first: two halves of a warp for 8 bytes a lane, four quarters for 16. Within such a *phase*,
//! lanes that want different words of one bank wait for each other; lanes that want the same word
//! do not.
//!
//! Invariant: the simulator, the solver and the pictures of accesses all count by this file.

use std::ops::RangeInclusive;

/// Banks of shared memory and their width.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Banks {
    /// The number of banks.
    pub n: i64,
    /// Bytes of one word: what a bank delivers at once.
    pub bytes: i64,
}

/// Bytes of global memory that are fetched or written together; addresses are multiples of it (CUDA
/// C++ Best Practices Guide, Coalesced Access to Global Memory).
pub const SECTOR_BYTES: i64 = 32;

/// The banks of every architecture in the table.
pub const BANKS: Banks = Banks { n: 32, bytes: 4 };

impl Banks {
    /// How many lanes of a warp, each accessing so many bytes, one phase serves.
    #[must_use]
    pub fn lanes_per_phase(self, bytes: i64) -> usize {
        (self.n * self.bytes / bytes.max(1)).clamp(1, 32) as usize
    }

    /// The words that an access of `bytes` at a byte address touches.
    #[must_use]
    pub fn words(self, address: i64, bytes: i64) -> RangeInclusive<i64> {
        address.div_euclid(self.bytes)..=(address + bytes - 1).div_euclid(self.bytes)
    }

    /// The bank that holds a word.
    #[must_use]
    pub fn bank(self, word: i64) -> usize {
        word.rem_euclid(self.n) as usize
    }

    /// Wavefronts of a phase that touches these words, each named once: the most words that one
    /// bank has to deliver.
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
