//! [`Work`] counts what one execution of an operation by one block takes of each part of the
//! hardware: cycles of a scheduler and its units, wavefronts of shared memory, sectors of global
//! memory, latency, space and barriers. Its methods add and multiply it, and reduce it to the
//! cycles of the busiest part. Other files compute it: [`super::least`] before layouts are known,
//! [`crate::layouts::cost`] from the chosen rows.

/// One execution of an operation by one block.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(crate) struct Work {
    /// Instructions of all warps together.
    pub instructions: f64,
    /// Cycles of one scheduler, in which they are issued.
    pub issue: f64,
    /// Cycles of one scheduler's matrix unit.
    pub matrix: f64,
    /// Cycles of one scheduler's unit for special functions.
    pub special: f64,
    /// Wavefronts of shared memory.
    pub wavefronts: f64,
    /// 32-byte sectors of global memory.
    pub sectors: f64,
    /// Cycles from the last issue until the result is there.
    pub completion: f64,
    /// Bytes of shared memory that it takes for itself.
    pub space: i64,
    /// Barriers of the block within it.
    pub barriers: f64,
    /// Whether it goes on while others are issued, until it is waited for.
    pub asynchronous: bool,
}

impl Work {
    /// Cycles that keep the busiest part busy, four schedulers assumed: for comparing candidates.
    pub(crate) fn busy(&self) -> f64 {
        let scheduler = self.issue.max(self.matrix).max(self.special);
        (scheduler / 4.0).max(self.wavefronts).max(self.sectors) + 0.01 * self.issue
    }

    /// Adds what is done besides, at the same time.
    pub(crate) fn and(self, other: Work) -> Work {
        Work {
            instructions: self.instructions + other.instructions,
            issue: self.issue + other.issue,
            matrix: self.matrix + other.matrix,
            special: self.special + other.special,
            wavefronts: self.wavefronts + other.wavefronts,
            sectors: self.sectors + other.sectors,
            completion: self.completion + other.completion,
            space: self.space.saturating_add(other.space),
            barriers: self.barriers + other.barriers,
            asynchronous: self.asynchronous || other.asynchronous,
        }
    }

    /// So many executions.
    pub(crate) fn times(self, n: f64) -> Work {
        Work {
            instructions: self.instructions * n,
            issue: self.issue * n,
            matrix: self.matrix * n,
            special: self.special * n,
            wavefronts: self.wavefronts * n,
            sectors: self.sectors * n,
            barriers: self.barriers * n,
            ..self
        }
    }
}
