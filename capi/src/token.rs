//! Ending long work, and the threads that it is done on.

use crate::border::Outcome;
use crate::objects::{free, new};
use carbyne_embed::{Code, Diagnostic};
use carbyne_ir::cancel;
use carbyne_ir::parallel::STACK;
use std::panic::resume_unwind;
use std::thread::{Builder, scope};

/// What ends work from another thread. A token may be given to any number of calls, which end together.
pub struct Token(cancel::Token);

/// A token that does not end anything yet.
#[unsafe(no_mangle)]
pub extern "C" fn carbyne_token_new() -> *mut Token {
    new(Token(cancel::Token::default()))
}

/// Ends all work that was given this token, also such as begins later: it returns `CARBYNE_STATUS_CANCELLED` within moments. Any thread
/// may do this, at any time; of null, nothing happens.
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

/// Does work that a token may end, on a thread with as large a stack as it needs: those of callers may have small ones.
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
