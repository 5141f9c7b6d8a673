//! Runs a function for a list of items on several threads, one of which is the caller's, with
//! results in the order of the items. The threads work under the caller's token of
//! [`crate::cancel`], so that they can be cancelled together.

use crate::cancel;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The stack size of worker threads in bytes, which is the usual one of a main thread.
pub const STACK: usize = 8 << 20;

/// How many threads the machine has cores for.
#[must_use]
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The results of a function for some items, in their order. This thread works on them, and so do
/// others, `threads` in all, as far as the machine starts them. A thread takes the next item when
/// it has done one.
///
/// ```
/// assert_eq!(carbyne_ir::parallel::map(&[1, 2, 3], 2, |n| n * n), [1, 4, 9]);
/// ```
///
/// # Panics
/// Where the function does.
pub fn map<T: Sync, R: Send>(items: &[T], threads: usize, f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let token = cancel::current();
    let work = || {
        let mut done = vec![];
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(i) else { return done };
            done.push((i, cancel::under(token.as_ref(), || f(item))));
        }
    };
    let mut all = thread::scope(|s| {
        let start = |_| thread::Builder::new().stack_size(STACK).spawn_scoped(s, work).ok();
        let others: Vec<_> = (1..threads.min(items.len())).filter_map(start).collect();
        let mut all = work();
        for thread in others {
            all.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        all
    });
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, result)| result).collect()
}
