//! Simulates `setmaxnreg`, by which the warps of a block release and request registers.
//!
//! At its start, each thread of a block has as many registers as fit when the block has the
//! multiprocessor for itself, rounded to a multiple of 8. Released registers go to the block's
//! pool, requested registers come from the pool, and a warp that requests more than the pool holds
//! waits (PTX ISA, Miscellaneous Instructions: setmaxnreg).

/// The pool of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RegisterPool {
    /// The registers of the block that no thread holds.
    free: i64,
    /// The number of registers of each thread, by warp.
    held: Vec<i64>,
}

/// The granularity of register counts.
const MULTIPLE: i64 = 8;
const LANES: i64 = 32;

impl RegisterPool {
    /// The pool of a block of `n_threads` threads that is alone on a multiprocessor; both limits
    /// are those of the architecture.
    pub(crate) fn new(n_threads: usize, of_multiprocessor: i64, of_thread: i64) -> Self {
        let n_warps = n_threads.div_ceil(LANES as usize);
        let fit = of_multiprocessor / (n_warps.max(1) as i64 * LANES);
        let most = (of_thread as u64).next_multiple_of(MULTIPLE as u64) as i64;
        let each = (fit / MULTIPLE * MULTIPLE).min(most);
        RegisterPool { free: 0, held: vec![each; n_warps] }
    }

    /// The number of registers of each thread of a warp.
    pub(crate) fn of(&self, warp: usize) -> i64 {
        self.held.get(warp).copied().unwrap_or(0)
    }

    /// The number of free registers.
    pub(crate) fn free(&self) -> i64 {
        self.free
    }

    /// The number of additional registers that these warps need for `registers` registers per
    /// thread.
    pub(crate) fn needed(&self, warps: &[usize], registers: i64) -> i64 {
        warps.iter().map(|w| (registers - self.of(*w)) * LANES).sum()
    }

    /// Gives the warps `registers` registers per thread; the caller has checked that the pool has
    /// enough.
    pub(crate) fn set(&mut self, warps: &[usize], registers: i64) {
        self.free -= self.needed(warps, registers);
        for warp in warps {
            if let Some(held) = self.held.get_mut(*warp) {
                *held = registers;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_registers_can_be_requested() {
        // The numbers of CUTLASS for a producer and two consumers.
        let mut pool = RegisterPool::new(384, 65_536, 255);
        assert_eq!((pool.of(0), pool.free()), (168, 0));
        pool.set(&[0, 1, 2, 3], 40);
        assert_eq!(pool.free(), 128 * 128);
        pool.set(&[4, 5, 6, 7], 232);
        assert_eq!(pool.needed(&[8, 9, 10, 11], 232), pool.free());
        assert!(pool.needed(&[8, 9, 10, 11], 240) > pool.free());
        assert_eq!(RegisterPool::new(128, 65_536, 255).of(3), 256);
    }
}
