//! The threads on which blocks run side by side.
//!
//! As many as there are cores, or as `RAYON_NUM_THREADS` says; fewer where the machine does not
//! start so many. Whoever calls from within a pool of rayon keeps that one. Results do not depend
//! on how many there are.

use crate::plan::Checked;
use carbyne_ir::cancel;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::span::Span;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::sync::OnceLock;
use std::time::Duration;

/// The number to go on with where the machine does not start as many threads as it has cores.
const FEWER: usize = 64;
/// Bytes of a piece of memory from which on glibc's allocator learns nothing.
const KEPT: usize = (32 << 20) - (64 << 10);
/// Attempts to start a single thread, while those of earlier attempts end.
const ATTEMPTS: u32 = 20;

/// Threads to run on.
#[derive(Copy, Clone)]
pub(crate) enum Workers {
    /// Those of the pool within which we are called.
    Callers,
    /// Our own.
    Own(&'static ThreadPool),
}

impl Workers {
    /// The threads at hand.
    ///
    /// # Errors
    /// `X0009` where the machine starts none.
    pub(crate) fn get() -> Checked<Self> {
        static POOL: OnceLock<Result<ThreadPool, ThreadPoolBuildError>> = OnceLock::new();
        if rayon::current_thread_index().is_some() {
            return Ok(Workers::Callers);
        }
        POOL.get_or_init(start).as_ref().map(Workers::Own).map_err(|why| {
            Box::new(
                Diagnostic::new(Code::NoThreads, Span::default(), "the machine starts no thread")
                    .label(why.to_string())
                    .help("allow more threads or memory: `ulimit -u`, `ulimit -v`"),
            )
        })
    }

    /// How many there are.
    pub(crate) fn count(self) -> usize {
        match self {
            Workers::Callers => rayon::current_num_threads(),
            Workers::Own(pool) => pool.current_num_threads(),
        }
    }

    /// Runs `f` so that what it does in parallel is done by them.
    pub(crate) fn run<T: Send>(self, f: impl FnOnce() -> T + Send) -> T {
        let token = cancel::current();
        match self {
            Workers::Callers => f(),
            Workers::Own(pool) => pool.install(|| cancel::under(token.as_ref(), f)),
        }
    }

    /// The results of a function for some items, in their order.
    pub(crate) fn map<T: Sync, R: Send>(self, items: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
        let token = cancel::current();
        let of = |item: &T| cancel::under(token.as_ref(), || f(item));
        self.run(|| items.par_iter().map(of).collect())
    }
}

/// A pool of as many threads as the machine starts.
fn start() -> Result<ThreadPool, ThreadPoolBuildError> {
    // Blocks take and return memory all the time. An allocator such as glibc's keeps what is
    // returned, up to twice the largest piece that it has seen returned to the system; it sees a
    // large one, and keeps it all.
    drop(std::hint::black_box(Vec::<u8>::with_capacity(KEPT)));
    let (mut n, mut left) = (0, ATTEMPTS); // 0 is what rayon chooses.
    loop {
        let error = match ThreadPoolBuilder::new().num_threads(n).build() {
            Ok(pool) => return Ok(pool),
            Err(e) => e,
        };
        n = if n == 0 { FEWER } else { n.div_ceil(2) };
        if n == 1 {
            let Some(fewer) = left.checked_sub(1) else { return Err(error) };
            left = fewer;
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
