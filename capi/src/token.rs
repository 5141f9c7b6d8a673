//! Implements tokens ([`Token`]), by which another thread of the caller cancels a long call. Long
//! calls run on a thread of their own, because the stack of the caller's thread may be small:
//! [`run_with_token`] starts it. [`make_object`] does so for functions that create an object from
//! another.

use crate::border::{Outcome, Status, answer, given, place, silent};
use crate::diagnostics::Diagnostics;
use crate::objects::{free, new};
use carbyne_embed::{Code, Diagnostic};
use carbyne_ir::cancel;
use carbyne_ir::parallel::STACK;
use std::panic::resume_unwind;
use std::thread::{Builder, scope};

/// Cancels work from another thread. Any number of calls may have the same token.
pub struct Token(cancel::Token);

/// Creates a token.
#[unsafe(no_mangle)]
pub extern "C" fn carbyne_token_new() -> *mut Token {
    new(Token(cancel::Token::default()))
}

/// Cancels all calls with this token, including later ones. They return `CARBYNE_STATUS_CANCELLED`
/// within moments. Any thread may call this at any time. Does nothing for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_token_cancel(token: *const Token) {
    // SAFETY: see the header of `lib.rs`.
    if let Some(token) = unsafe { token.as_ref() } {
        token.0.cancel();
    }
}

/// Frees a token that no call uses anymore. Does nothing for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_token_free(token: *mut Token) {
    // SAFETY: see the header of `lib.rs`.
    unsafe { free(token) }
}

/// Executes work that a token may cancel. It runs on its own thread, because the stacks of callers
/// may be small.
///
/// # Safety
/// The token is null, or alive until the work ends.
pub(crate) unsafe fn run_with_token<T: Send>(
    token: *const Token,
    work: impl FnOnce() -> Outcome<T> + Send,
) -> Outcome<T> {
    // SAFETY: the caller guarantees it.
    let token = unsafe { token.as_ref() }.map_or_else(cancel::Token::default, |t| t.0.clone());
    let all = || {
        cancel::run(&token, || {
            cancel::point(); // A token that was cancelled before also ends short work.
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

/// Creates an object from another one, and stores it. `name` and `result` are names of parameters
/// for messages.
///
/// # Safety
/// Pointers are null or point to valid values of their types.
pub(crate) unsafe fn make_object<S: Sync, T: Send>(
    (from, name): (*const S, &str),
    token: *const Token,
    (to, result): (*mut *mut T, &str),
    diagnostics: *mut *mut Diagnostics,
    make: impl FnOnce(&S) -> Outcome<T> + Send,
) -> Status {
    let work = || {
        // SAFETY: the caller guarantees it.
        let (to, from) = unsafe { (place(to, result)?, given(from, name)?) };
        // SAFETY: the caller guarantees it.
        *to = new(unsafe { run_with_token(token, || make(from)) }?);
        Ok(())
    };
    // SAFETY: the caller guarantees it.
    unsafe { answer(diagnostics, || silent(work())) }
}
