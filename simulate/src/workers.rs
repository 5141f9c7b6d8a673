//! Provides the threads on which the blocks of a kernel run in parallel.
//!
//! By default there is one thread for each core; `RAYON_NUM_THREADS` sets another number, and the
//! machine may not be able to start so many. A caller within a rayon pool keeps its pool. Results
//! do not depend on the number of threads.

use crate::plan::Checked;
use carbyne_ir::cancel;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::span::Span;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::sync::OnceLock;
use std::time::Duration;

/// The number of threads to try next if the machine cannot start one thread for each core.
const FEWER: usize = 64;
/// The largest allocation, in bytes, from whose release glibc's allocator adapts its threshold.
const KEPT: usize = (32 << 20) - (64 << 10);
/// The number of attempts to start a single thread, while threads of earlier attempts end.
const ATTEMPTS: u32 = 20;

/// The threads to run on.
#[derive(Copy, Clone)]
pub(crate) enum Workers {
    /// The pool of the caller.
    Callers,
    /// The pool of this module.
    Own(&'static ThreadPool),
}

impl Workers {
    /// The threads to run on.
    ///
    /// # Errors
    /// `X0009` if the machine cannot start any thread.
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

    /// The number of threads.
    pub(crate) fn count(self) -> usize {
        match self {
            Workers::Callers => rayon::current_num_threads(),
            Workers::Own(pool) => pool.current_num_threads(),
        }
    }

    /// Runs `f`, whose parallel work runs on these threads.
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

/// Starts a pool of as many threads as the machine allows.
fn start() -> Result<ThreadPool, ThreadPoolBuildError> {
    // Blocks allocate and free memory often. An allocator such as glibc's returns freed memory to
    // the system above a threshold, and raises the threshold to twice the size of the largest freed
    // mapping. The release of one large allocation raises it at the start, so that the allocator
    // keeps the memory.
    drop(std::hint::black_box(Vec::<u8>::with_capacity(KEPT)));
    let (mut n, mut left) = (0, ATTEMPTS); // 0: rayon chooses the number.
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
