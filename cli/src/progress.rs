//! Bars of progress on standard error, for commands that take long.
//!
//! Commands report how far they are by [`carbyne_ir::progress`], and so do the libraries below them. A bar shows what is reported:
//! [`shown`] asks for it from another thread while a command works. It is drawn on the process's own stream, and only where
//! that is a terminal ([`Io::progress`](crate::Io)).

use carbyne_ir::cancel::{self, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{Builder, scope};
use std::time::Duration;

/// How often people are told.
const EVERY: Duration = Duration::from_millis(100);

/// A bar, which is taken away where it is dropped.
pub struct Bar(ProgressBar);

impl Default for Bar {
    /// Of nothing yet. It is not drawn unless standard error is a terminal.
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
        // Dropped at the end of the work, also of one that unwinds.
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
