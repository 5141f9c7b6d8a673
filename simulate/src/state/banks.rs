//! How many wavefronts a warp's accesses to shared memory take, counted as [`carbyne_atoms::banks`] says.

use carbyne_atoms::BANKS;

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
        let bytes = bytes.clamp(1, BANKS.n * BANKS.bytes);
        self.accesses += 1;
        for part in addresses.chunks(BANKS.lanes_per_phase(bytes)) {
            let mut words: Vec<i64> = part.iter().flat_map(|a| BANKS.words(*a, bytes)).collect();
            words.sort_unstable();
            words.dedup();
            self.wavefronts += BANKS.wavefronts(&words) as u64;
            self.ideal += words.len().div_ceil(BANKS.n as usize) as u64;
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
