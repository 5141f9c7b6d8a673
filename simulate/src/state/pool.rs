//! Registers that the warps of a block hand over with `setmaxnreg`.
//!
//! A block begins with as many a thread as fit when it has the multiprocessor for itself, a
//! multiple of 8; what is released goes into the block's pool, what is requested comes out of it,
//! and who requests more than it holds waits (PTX ISA, Miscellaneous Instructions: setmaxnreg).

/// The pool of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RegisterPool {
    /// Registers of the block that no thread has.
    free: i64,
    /// Registers of a thread, by warp.
    held: Vec<i64>,
}

/// The multiple in which registers are handed over.
const MULTIPLE: i64 = 8;
const LANES: i64 = 32;

impl RegisterPool {
    /// Of a block of so many threads alone on a multiprocessor; both limits are the architecture's.
    pub(crate) fn new(n_threads: usize, of_multiprocessor: i64, of_thread: i64) -> Self {
        let n_warps = n_threads.div_ceil(LANES as usize);
        let fit = of_multiprocessor / (n_warps.max(1) as i64 * LANES);
        let most = (of_thread as u64).next_multiple_of(MULTIPLE as u64) as i64;
        let each = (fit / MULTIPLE * MULTIPLE).min(most);
        RegisterPool { free: 0, held: vec![each; n_warps] }
    }

    /// Registers of a thread of a warp.
    pub(crate) fn of(&self, warp: usize) -> i64 {
        self.held.get(warp).copied().unwrap_or(0)
    }

    /// Registers that nobody has.
    pub(crate) fn free(&self) -> i64 {
        self.free
    }

    /// What these warps need beyond what they have, for so many registers a thread.
    pub(crate) fn needed(&self, warps: &[usize], registers: i64) -> i64 {
        warps.iter().map(|w| (registers - self.of(*w)) * LANES).sum()
    }

    /// Gives the warps so many registers a thread; the caller has seen that they are there.
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
    fn what_one_releases_others_get() {
        // The figures of CUTLASS for a producer and two consumers.
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
