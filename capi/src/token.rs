//! Ending long work, and the threads that it is done on.

use crate::border::{Outcome, Status, answer, given, place, silent};
use crate::diagnostics::Diagnostics;
use crate::objects::{free, new};
use carbyne_embed::{Code, Diagnostic};
use carbyne_ir::cancel;
use carbyne_ir::parallel::STACK;
use std::panic::resume_unwind;
use std::thread::{Builder, scope};

/// Ends work from another thread. A token may be given to any number of calls, which end together.
pub struct Token(cancel::Token);

/// A token that does not end anything yet.
#[unsafe(no_mangle)]
pub extern "C" fn carbyne_token_new() -> *mut Token {
    new(Token(cancel::Token::default()))
}

/// Ends all work that was given this token, also such as begins later: it returns
/// `CARBYNE_STATUS_CANCELLED` within moments. Any thread may do this, at any time. Null is nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_token_cancel(token: *const Token) {
    // SAFETY: the head of `lib.rs`.
    if let Some(token) = unsafe { token.as_ref() } {
        token.0.cancel();
    }
}

/// Frees a token that no call uses anymore. Null is nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_token_free(token: *mut Token) {
    // SAFETY: the head of `lib.rs`.
    unsafe { free(token) }
}

/// Does work that a token may end. It runs on a thread of its own, as the stacks of callers may be
/// small.
///
/// # Safety
/// The token is null or alive until the work has ended.
pub(crate) unsafe fn under<T: Send>(
    token: *const Token,
    work: impl FnOnce() -> Outcome<T> + Send,
) -> Outcome<T> {
    // SAFETY: the caller states it.
    let token = unsafe { token.as_ref() }.map_or_else(cancel::Token::default, |t| t.0.clone());
    let all = || {
        cancel::run(&token, || {
            cancel::point(); // A token that was cancelled before ends short work, too.
            work()
        })
    };
    scope(|threads| {
        let worker = Builder::new().stack_size(STACK).spawn_scoped(threads, all).map_err(|e| {
            let text = format!("no thread can be started: {e}");
            let error = Diagnostic::new(Code::NoThreads, Default::default(), text);
            Box::new(error.help("raise the limit on threads"))
        })?;
        worker.join().unwrap_or_else(|panic| resume_unwind(panic))?
    })
}

/// Makes an object from another one, and puts it into its place. Names are those of parameters.
///
/// # Safety
/// Pointers are null or point to what their types say.
pub(crate) unsafe fn made<S: Sync, T: Send>(
    (from, name): (*const S, &str),
    token: *const Token,
    (to, result): (*mut *mut T, &str),
    diagnostics: *mut *mut Diagnostics,
    make: impl FnOnce(&S) -> Outcome<T> + Send,
) -> Status {
    let work = || {
        // SAFETY: the caller states it.
        let (to, from) = unsafe { (place(to, result)?, given(from, name)?) };
        // SAFETY: as above.
        *to = new(unsafe { under(token, || make(from)) }?);
        Ok(())
    };
    // SAFETY: the caller states it.
    unsafe { answer(diagnostics, || silent(work())) }
}
