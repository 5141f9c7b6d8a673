//! Counts for each leaf its executions, the wavefronts of its accesses to shared memory, and the
//! sectors of its accesses to global memory, as [`carbyne_atoms::banks`] defines them. The report
//! shows bank conflicts by these counts.

use carbyne_atoms::{BANKS, SECTOR_BYTES};

/// The counts of a statement.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct LeafCount {
    /// The number of executions by a warp; an atom of several warps counts once for all of them.
    pub executions: u64,
    /// Accesses to shared memory, of atoms only; includes the bytes of bulk copies.
    pub shared: BankCount,
    /// Accesses to global memory, of atoms only; includes the bytes of bulk copies.
    pub global: SectorCount,
}

impl LeafCount {
    /// Adds the counts of another block.
    pub fn merge(&mut self, other: &LeafCount) {
        self.executions += other.executions;
        self.shared.merge(&other.shared);
        self.global.merge(&other.global);
    }
}

/// The accesses of one statement to global memory.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct SectorCount {
    /// The number of accesses by a warp.
    pub accesses: u64,
    /// The number of bytes that its lanes read or wrote.
    pub bytes: u64,
    /// The number of sectors that contain these bytes.
    pub sectors: u64,
    /// The smallest number of sectors that can hold that many distinct bytes.
    pub ideal: u64,
}

impl SectorCount {
    /// Counts an access of a warp: the byte address of each active lane, and the bytes per lane.
    pub fn add(&mut self, addresses: &[i64], bytes: i64) {
        self.add_spans(addresses.iter().map(|at| (*at, bytes.max(1))).collect());
    }

    /// Counts an access, like [`SectorCount::add`], from the first byte and the number of bytes of
    /// each lane. Lanes without bytes do not count.
    pub(crate) fn add_spans(&mut self, mut spans: Vec<(i64, i64)>) {
        spans.retain(|(_, bytes)| *bytes > 0);
        if spans.is_empty() {
            return;
        }
        self.accesses += 1;
        self.bytes += spans.iter().map(|(_, bytes)| *bytes as u64).sum::<u64>();
        spans.sort_unstable();
        spans.dedup();
        let (mut sectors, mut last, mut end, mut different) = (0, i64::MIN, i64::MIN, 0);
        for (start, bytes) in spans {
            different += (start + bytes - start.max(end)).max(0);
            end = end.max(start + bytes);
            for sector in
                start.div_euclid(SECTOR_BYTES)..=(start + bytes - 1).div_euclid(SECTOR_BYTES)
            {
                sectors += u64::from(sector > last);
                last = last.max(sector);
            }
        }
        self.sectors += sectors;
        self.ideal += (different as u64).div_ceil(SECTOR_BYTES as u64);
    }

    /// Adds the counts of another block.
    pub fn merge(&mut self, other: &SectorCount) {
        self.accesses += other.accesses;
        self.bytes += other.bytes;
        self.sectors += other.sectors;
        self.ideal += other.ideal;
    }
}

/// The accesses of one statement to shared memory.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct BankCount {
    /// The number of accesses by a warp.
    pub accesses: u64,
    /// The number of bytes that its lanes read or wrote.
    pub bytes: u64,
    /// The number of wavefronts of the accesses.
    pub wavefronts: u64,
    /// The number of wavefronts without conflicts.
    pub ideal: u64,
}

impl BankCount {
    /// Counts an access of a warp: the byte address of each active lane, and the bytes per lane.
    pub fn add(&mut self, addresses: &[i64], bytes: i64) {
        let bytes = bytes.clamp(1, BANKS.n * BANKS.bytes);
        self.accesses += 1;
        self.bytes += addresses.len() as u64 * bytes as u64;
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
        self.bytes += other.bytes;
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
    fn sectors() {
        let count = |stride: i64, bytes: i64| {
            let mut count = SectorCount::default();
            count.add(&(0..32).map(|l| l * stride).collect::<Vec<_>>(), bytes);
            (count.sectors, count.ideal, count.bytes)
        };
        assert_eq!(count(4, 4), (4, 4, 128));
        assert_eq!(count(16, 16), (16, 16, 512));
        assert_eq!(count(128, 4), (32, 4, 128), "a sector for each lane");
        assert_eq!(count(0, 4), (1, 1, 128), "one word for all");
        assert_eq!(count(2, 4), (3, 3, 128), "lanes overlap: 66 bytes");
        let mut few = SectorCount::default();
        few.add_spans(vec![(0, 16), (16, 4), (32, 0), (64, 2)]);
        assert_eq!((few.sectors, few.ideal, few.bytes, few.accesses), (2, 1, 22, 1));
        few.add_spans(vec![(0, 0)]);
        assert_eq!((few.bytes, few.accesses), (22, 1), "nothing is accessed");
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
