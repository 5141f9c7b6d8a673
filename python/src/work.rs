//! Long work that a person may interrupt.

use carbyne_ir::cancel::{self, Cancelled, Token};
use carbyne_ir::parallel::STACK;
use pyo3::prelude::*;
use std::io;
use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{Builder, scope};
use std::time::Duration;

/// How often signals are looked at.
const EVERY: Duration = Duration::from_millis(50);

/// Does work without the interpreter's lock. A signal whose handler raises an exception, such as Ctrl-C, ends the work.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let mut raised = None;
    let signalled = |_: &Token| {
        raised = Python::attach(|py| py.check_signals()).err();
        raised.is_some()
    };
    let done = py.detach(|| until(signalled, work))?;
    match (done, raised) {
        (_, Some(error)) => Err(error),
        (Ok(result), None) => Ok(result),
        (Err(cancelled), None) => {
            Err(pyo3::exceptions::PyKeyboardInterrupt::new_err(cancelled.to_string()))
        }
    }
}

/// Does work on a thread of its own. What is asked meanwhile of the work's token, every now and then, ends it when it is true.
///
/// # Errors
/// There is no thread to be had.
pub(crate) fn until<T: Send>(
    mut is_enough: impl FnMut(&Token) -> bool,
    work: impl FnOnce() -> T + Send,
) -> io::Result<Result<T, Cancelled>> {
    let token = Token::default();
    scope(|threads| {
        let (done, ended) = channel::<()>();
        let all = || {
            let _done = done; // Dropped at the end, also of one that unwinds.
            cancel::run(&token, work)
        };
        let worker = Builder::new().stack_size(STACK).spawn_scoped(threads, all)?;
        let mut is_over = false;
        while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            if !is_over && is_enough(&token) {
                is_over = true;
                token.cancel();
            }
        }
        Ok(worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}
