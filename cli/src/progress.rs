//! Draws progress bars on standard error while long commands work.
//!
//! Commands and libraries report progress through [`carbyne_ir::progress`]. While a command works,
//! another thread of [`shown`] reads the progress and draws a bar. The bar is drawn only on the
//! process's own standard error, and only if that is a terminal ([`Io::progress`](crate::Io)).

use carbyne_ir::cancel::{self, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{Builder, scope};
use std::time::Duration;

/// The time between two drawings of a bar.
const EVERY: Duration = Duration::from_millis(100);

/// A progress bar. Dropping the bar removes it from the terminal.
pub struct Bar(ProgressBar);

impl Default for Bar {
    /// A bar without progress. It is drawn only if standard error is a terminal.
    fn default() -> Self {
        Bar(ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()))
    }
}

impl Bar {
    /// Draws the progress.
    pub fn shows(&self, progress: &Progress) {
        if self.0.prefix() != progress.stage {
            self.0.reset();
            self.0.set_prefix(progress.stage);
            let template = match progress.total {
                Some(_) => "{prefix} {bar:32} {pos}/{len} {elapsed} {wide_msg}",
                None => "{prefix} {spinner} {pos} {elapsed} {wide_msg}",
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                self.0.set_style(style);
            }
        }
        if let Some(total) = progress.total {
            self.0.set_length(total);
        }
        self.0.set_message(progress.subject.clone());
        self.0.set_position(progress.done);
    }

    /// Hides the bar while `f` writes to the terminal.
    pub fn hidden<T>(&self, f: impl FnOnce() -> T) -> T {
        self.0.suspend(f)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Does work and meanwhile draws a progress bar, if wanted. The work may hide the bar.
pub(crate) fn shown<T>(is_wanted: bool, work: impl FnOnce(&Bar) -> T) -> T {
    if !is_wanted {
        return work(&Bar(ProgressBar::hidden()));
    }
    let token = cancel::current().unwrap_or_default();
    let bar = Bar::default();
    scope(|threads| {
        // Dropped when the work ends or panics.
        let (_working, ended) = channel::<()>();
        let (bar, of) = (&bar, &token);
        let draw = move || {
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                of.progress().iter().for_each(|progress| bar.shows(progress));
            }
        };
        // If no thread can be started, work without a bar.
        let _ = Builder::new().spawn_scoped(threads, draw);
        cancel::under(Some(&token), || work(bar))
    })
}
