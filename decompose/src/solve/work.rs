//! Units of cost: what one execution of an operation takes, and what a kernel.

use super::ops;
use carbyne_ir::program::{Program, TensorId};

/// One execution of an operation by one block.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(crate) struct Work {
    /// Instructions of all warps together.
    pub instructions: f64,
    /// Their issue cycles, on one scheduler.
    pub issue: f64,
    /// Wavefronts of shared memory.
    pub wavefronts: f64,
    /// 32-byte sectors of global memory.
    pub sectors: f64,
    /// Cycles from the last issue until the result is there.
    pub completion: f64,
    /// Barriers of the block within it.
    pub barriers: f64,
    /// Whether it goes on while others are issued, until it is waited for.
    pub asynchronous: bool,
}

impl Work {
    /// Cycles that keep the busiest part busy, four schedulers assumed: for comparing candidates.
    pub(crate) fn busy(&self) -> f64 {
        (self.issue / 4.0).max(self.wavefronts).max(self.sectors) + 0.01 * self.issue
    }
}

/// What a kernel costs.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Cycles of one block, on a multiprocessor that holds as many as fit.
    pub cycles: f64,
    /// Instructions of all warps of one block.
    pub instructions: f64,
    /// Bytes of global memory that one block touches, in whole sectors.
    pub global_bytes: f64,
    /// Wavefronts of shared memory of one block.
    pub wavefronts: f64,
    /// 32-bit registers of one thread that tensors take at once.
    pub registers: i64,
    /// Bytes of shared memory of one block.
    pub shared_bytes: i64,
    /// Blocks that one multiprocessor holds.
    pub blocks_per_sm: i64,
}

/// A whole number that grows with the cycles, the same for cycles that differ by less than the estimate
/// can tell: some 2 percent.
pub(crate) fn grade(cycles: f64) -> i64 {
    (libm::log(cycles.max(1.0)) / 0.02) as i64
}

/// Cycles in which a block does nothing else: its warps meet at a barrier. Fitted to 42 tiles of MatMuls on one H100
/// (`bench/mma_sync.sh` measures the one that is chosen).
pub(crate) const MEETING: f64 = 40.0;

/// Cycles until a register tensor has gone through shared memory, roughly.
pub(super) fn rearranging(p: &Program, t: TensorId) -> f64 {
    let bits = ops::whole(p, t).map_or(0, |l| l.size()).saturating_mul(p.scalar_of(t).bits());
    100.0 + bits as f64 / 8.0 / 32.0
}
