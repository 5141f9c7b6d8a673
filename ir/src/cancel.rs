//! Cancels long work from another thread.
//!
//! Decomposition, proofs and simulation may take long. A caller can run them under a [`Token`] and
//! cancel the token from another thread. Long-running code calls [`point`] now and then. If the
//! token is cancelled, the thread unwinds from there to [`run`], without a panic message.
//!
//! ```
//! use carbyne_ir::cancel::{self, Token};
//!
//! let token = Token::default();
//! assert_eq!(cancel::run(&token, || 1), Ok(1));
//! token.cancel();
//! let forever = || -> u8 {
//!     loop {
//!         cancel::point();
//!     }
//! };
//! assert_eq!(cancel::run(&token, forever), Err(cancel::Cancelled));
//! ```
//!
//! Invariant: the data of a cancelled computation is dropped; nothing that outlives [`run`] is left
//! half changed.

use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A handle to cancel work and to read its progress. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Token(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    is_cancelled: AtomicBool,
    reported: Mutex<Reported>,
}

/// The progress of work, as reported by [`crate::progress`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The current part of the work, such as `solving`.
    pub stage: &'static str,
    /// The number of finished steps of this part.
    pub done: u64,
    /// The number of all steps of this part, if known.
    pub total: Option<u64>,
    /// The subject of the next step, such as the name of a kernel; may be empty.
    pub subject: String,
}

/// The last report.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    pub(crate) last: Option<Progress>,
    pub(crate) is_in_stage: bool,
}

impl Token {
    /// Requests cancellation. The work ends soon, not at once.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// The last reported progress, also after the end of the work. `None` before the first report.
    #[must_use]
    pub fn progress(&self) -> Option<Progress> {
        self.report(|reported| reported.last.clone())
    }

    pub(crate) fn report<T>(&self, f: impl FnOnce(&mut Reported) -> T) -> T {
        f(&mut self.0.reported.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The work was cancelled.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the work was cancelled")
    }
}

impl std::error::Error for Cancelled {}

thread_local! {
    /// The token under which this thread works.
    static CURRENT: RefCell<Option<Token>> = const { RefCell::new(None) };
}

/// The token under which this thread works, to pass it to helper threads.
#[must_use]
pub fn current() -> Option<Token> {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs `part` in this thread under the token of another thread.
pub fn under<T>(token: Option<&Token>, part: impl FnOnce() -> T) -> T {
    /// Restores the thread's previous token, also after unwinding.
    struct Restored(Option<Token>);
    impl Drop for Restored {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _restored = Restored(CURRENT.replace(token.cloned()));
    part()
}

/// Runs work that `token` can cancel.
///
/// # Errors
/// [`Cancelled`] if the token is cancelled before the work ends.
///
/// # Panics
/// If `work` panics.
pub fn run<T>(token: &Token, work: impl FnOnce() -> T) -> Result<T, Cancelled> {
    // After cancellation nobody sees data that the work may have left half changed.
    catch_unwind(AssertUnwindSafe(|| under(Some(token), work))).map_err(|panic| {
        if !panic.is::<Cancelled>() {
            resume_unwind(panic)
        }
        Cancelled
    })
}

/// A point where the work may end: unwinds to [`run`] if the token of this thread is cancelled.
#[inline]
pub fn point() {
    let cancelled = |token: &Option<Token>| {
        token.as_ref().is_some_and(|t| t.0.is_cancelled.load(Ordering::Relaxed))
    };
    if CURRENT.with_borrow(cancelled) {
        resume_unwind(Box::new(Cancelled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_end_with_the_work() {
        let token = Token::default();
        let work = || {
            crate::parallel::map(&[1, 2, 3, 4], 4, |n| {
                if *n == 3 {
                    current().into_iter().for_each(|t| t.cancel());
                }
                loop {
                    point();
                }
            })
        };
        assert_eq!(run(&token, work), Err(Cancelled));
        // This thread has no token anymore.
        assert!(current().is_none());
        point();
    }

    #[test]
    fn a_panic_stays_one() {
        let quiet = || resume_unwind(Box::new("other"));
        let caught =
            catch_unwind(AssertUnwindSafe(|| run(&Token::default(), || -> u8 { quiet() })));
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"other"));
    }
}
