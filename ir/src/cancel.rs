//! Ending work that somebody no longer wants.
//!
//! Decomposition, proofs and simulation may take long. Whoever starts one may run it under a
//! [`Token`], and cancel that from another thread. Code that works long calls [`point`] now and
//! then. If the token is cancelled, the thread unwinds from there to [`run`], without the message
//! of a panic.
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
//! Invariant: what a cancelled thread leaves behind is dropped; nothing that outlives [`run`] is
//! changed half.

use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Tells whether work is still wanted, and records its progress. Clones are the same token.
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
    /// The part that is being worked on, such as `solving`.
    pub stage: &'static str,
    /// The number of its finished steps.
    pub done: u64,
    /// The number of all its steps, if known.
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
    /// Says that the work is not wanted anymore. It ends soon, not at once.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// The progress of the work, also after its end. None before its first report.
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
    /// The token of the work that this thread does.
    static CURRENT: RefCell<Option<Token>> = const { RefCell::new(None) };
}

/// The token of the work that this thread does, for threads that help.
#[must_use]
pub fn current() -> Option<Token> {
    CURRENT.with_borrow(Clone::clone)
}

/// Does a part of the work of another thread, whose token this is.
pub fn under<T>(token: Option<&Token>, part: impl FnOnce() -> T) -> T {
    /// Gives the thread its own token back, also after an unwinding.
    struct Restored(Option<Token>);
    impl Drop for Restored {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _restored = Restored(CURRENT.replace(token.cloned()));
    part()
}

/// Does work that the token may cancel.
///
/// # Errors
/// If it was cancelled before the work was done.
///
/// # Panics
/// If the work does.
pub fn run<T>(token: &Token, work: impl FnOnce() -> T) -> Result<T, Cancelled> {
    // The work owns or leaves alone what it changes.
    catch_unwind(AssertUnwindSafe(|| under(Some(token), work))).map_err(|panic| {
        if !panic.is::<Cancelled>() {
            resume_unwind(panic)
        }
        Cancelled
    })
}

/// A point at which work may end.
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
        // Of this thread nothing is left.
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
