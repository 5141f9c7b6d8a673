//! Bars of progress on standard error, for commands that take long.
//!
//! Commands and the libraries below them report progress by [`carbyne_ir::progress`]. While a
//! command works, [`shown`] asks for the progress from another thread, and draws it as a bar. The
//! bar is drawn on the process's own stream, and only if that is a terminal
//! ([`Io::progress`](crate::Io)).

use carbyne_ir::cancel::{self, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{Builder, scope};
use std::time::Duration;

/// The time between two drawings of a bar.
const EVERY: Duration = Duration::from_millis(100);

/// A bar. Dropping it clears it.
pub struct Bar(ProgressBar);

impl Default for Bar {
    /// A bar without progress yet. It is drawn only if standard error is a terminal.
    fn default() -> Self {
        Bar(ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()))
    }
}

impl Bar {
    /// Draws how far the work is.
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

    /// Takes the bar away while something else is written to the terminal.
    pub fn hidden<T>(&self, f: impl FnOnce() -> T) -> T {
        self.0.suspend(f)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Does work, and draws a bar of its progress meanwhile if one is wanted. The work may hide it.
pub(crate) fn shown<T>(is_wanted: bool, work: impl FnOnce(&Bar) -> T) -> T {
    if !is_wanted {
        return work(&Bar(ProgressBar::hidden()));
    }
    let token = cancel::current().unwrap_or_default();
    let bar = Bar::default();
    scope(|threads| {
        // Dropped when the work ends or unwinds.
        let (_working, ended) = channel::<()>();
        let (bar, of) = (&bar, &token);
        let draw = move || {
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                of.progress().iter().for_each(|progress| bar.shows(progress));
            }
        };
        // Without another thread the work is done without a bar.
        let _ = Builder::new().spawn_scoped(threads, draw);
        cancel::under(Some(&token), || work(bar))
    })
}
