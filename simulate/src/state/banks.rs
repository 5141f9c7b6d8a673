//! Shared memory has 32 banks of 4 bytes: how many wavefronts a warp's access takes.
//!
//! The hardware serves at most 128 bytes a wavefront; wider accesses are split by lanes first (a quarter
//! warp for 16 bytes a lane). Within a part, lanes that want different words of one bank wait for each
//! other, lanes that want the same word do not.

/// Accesses of one statement.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct BankCount {
    /// How often a warp accessed shared memory.
    pub accesses: u64,
    /// Wavefronts that took.
    pub wavefronts: u64,
    /// Wavefronts without conflicts.
    pub ideal: u64,
}

impl BankCount {
    /// Counts an access of a warp: the byte address of each active lane, and bytes per lane.
    pub fn add(&mut self, addresses: &[i64], bytes: i64) {
        let bytes = bytes.clamp(1, 128);
        let lanes = (128 / bytes).clamp(1, 32) as usize;
        self.accesses += 1;
        for part in addresses.chunks(lanes) {
            let mut words: Vec<i64> =
                part.iter().flat_map(|a| a.div_euclid(4)..=(a + bytes - 1).div_euclid(4)).collect();
            words.sort_unstable();
            words.dedup();
            let mut banks = [0u64; 32];
            words.iter().for_each(|w| banks[w.rem_euclid(32) as usize] += 1);
            self.wavefronts += banks.iter().max().copied().unwrap_or(0);
            self.ideal += (words.len() as u64).div_ceil(32);
        }
    }

    /// Adds the counts of another block.
    pub fn merge(&mut self, other: &BankCount) {
        self.accesses += other.accesses;
        self.wavefronts += other.wavefronts;
        self.ideal += other.ideal;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wavefronts(stride: i64, bytes: i64) -> u64 {
        let mut count = BankCount::default();
        count.add(&(0..32).map(|l| l * stride).collect::<Vec<_>>(), bytes);
        count.wavefronts
    }

    #[test]
    fn strides() {
        assert_eq!(wavefronts(4, 4), 1);
        assert_eq!(wavefronts(0, 4), 1, "one word for all");
        assert_eq!(wavefronts(8, 4), 2);
        assert_eq!(wavefronts(128, 4), 32);
        assert_eq!(wavefronts(16, 16), 4, "512 bytes take four wavefronts");
        assert_eq!(wavefronts(64, 16), 16, "each quarter warp has four rows in one bank");
    }
}
