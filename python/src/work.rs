//! Long work that a person may interrupt.

use carbyne_ir::cancel::{self, Token};
use carbyne_ir::parallel::STACK;
use pyo3::prelude::*;
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
    let token = Token::default();
    py.detach(|| {
        scope(|threads| {
            let (done, ended) = channel::<()>();
            let all = || {
                let _done = done; // Dropped at the end, also of one that unwinds.
                cancel::run(&token, work)
            };
            let worker = Builder::new().stack_size(STACK).spawn_scoped(threads, all)?;
            let mut raised = None;
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                if raised.is_none()
                    && let Err(error) = Python::attach(|py| py.check_signals())
                {
                    raised = Some(error);
                    token.cancel();
                }
            }
            let result = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
            match (result, raised) {
                (_, Some(error)) => Err(error),
                (Ok(result), None) => Ok(result),
                (Err(cancelled), None) => {
                    Err(pyo3::exceptions::PyKeyboardInterrupt::new_err(cancelled.to_string()))
                }
            }
        })
    })
}
