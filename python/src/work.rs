//! Executes long work without the interpreter's lock. Meanwhile it reports progress to a Python
//! function or a bar on the terminal, and a signal such as Ctrl-C cancels the work.

use carbyne::Bar;
use carbyne_ir::cancel::{self, Cancelled, Progress, Token};
use carbyne_ir::parallel::STACK;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use std::io;
use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{Builder, scope};
use std::time::Duration;

/// The interval of signal checks and progress reports.
const EVERY: Duration = Duration::from_millis(50);

/// A receiver of progress reports.
pub(crate) enum Listener {
    Nobody,
    /// A bar on the terminal.
    Bar(Bar),
    /// A Python function of the stage, the completed steps, all steps, and the subject.
    Function(Py<PyAny>),
}

impl Listener {
    /// Reads the Python argument `progress`: a function, or whether to draw a bar.
    pub(crate) fn of(progress: Option<&Bound<'_, PyAny>>) -> PyResult<Listener> {
        match progress {
            None => Ok(Listener::Nobody),
            Some(p) if p.is_callable() => Ok(Listener::Function(p.clone().unbind())),
            Some(p) if p.is_instance_of::<PyBool>() => match p.is_truthy()? {
                true => Ok(Listener::Bar(Bar::default())),
                false => Ok(Listener::Nobody),
            },
            Some(p) => {
                let kind = p.get_type().name()?;
                let text = format!("`progress` is {kind}, and a function or True is wanted");
                Err(PyTypeError::new_err(text))
            }
        }
    }

    fn hears(&self, py: Python<'_>, progress: &Progress) -> PyResult<()> {
        match self {
            Listener::Nobody => Ok(()),
            Listener::Bar(bar) => {
                bar.shows(progress);
                Ok(())
            }
            Listener::Function(function) => {
                let Progress { stage, done, total, subject } = progress;
                function.call1(py, (*stage, *done, *total, subject)).map(drop)
            }
        }
    }
}

/// Does work without the interpreter's lock. A signal whose handler raises an exception, such as
/// Ctrl-C, ends the work.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    reported(py, &Listener::Nobody, work)
}

/// Does work like [`interruptible`], and reports its progress to a listener. An exception of the
/// listener ends the work.
pub(crate) fn reported<T: Send>(
    py: Python<'_>,
    listener: &Listener,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let (mut raised, mut told, mut last) = (None, None, None);
    let mut tell = |py: Python<'_>, progress: Option<Progress>| match &progress {
        Some(new) if progress != told => {
            let heard = listener.hears(py, new);
            told = progress;
            heard
        }
        _ => Ok(()),
    };
    let look = |token: &Token| {
        let looked = Python::attach(|py| {
            py.check_signals()?;
            tell(py, token.progress())
        });
        raised = looked.err();
        raised.is_some()
    };
    let done = py.detach(|| {
        until(look, || {
            let result = work();
            last = cancel::current().and_then(|token| token.progress());
            result
        })
    })?;
    if raised.is_none() && done.is_ok() {
        tell(py, last)?;
    }
    match (done, raised) {
        (_, Some(error)) => Err(error),
        (Ok(result), None) => Ok(result),
        (Err(cancelled), None) => {
            Err(pyo3::exceptions::PyKeyboardInterrupt::new_err(cancelled.to_string()))
        }
    }
}

/// Does work in a new thread. Calls `is_enough` every [`EVERY`]; when it returns true, the work is
/// cancelled.
///
/// # Errors
/// No thread can be started.
pub(crate) fn until<T: Send>(
    mut is_enough: impl FnMut(&Token) -> bool,
    work: impl FnOnce() -> T + Send,
) -> io::Result<Result<T, Cancelled>> {
    let token = Token::default();
    scope(|threads| {
        let (done, ended) = channel::<()>();
        let all = || {
            let _done = done; // Dropped at the end, also after a panic.
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
