//! A bar of progress on standard error, for commands that take long.
//!
//! It is drawn on the process's own stream, and only where that is a terminal ([`Io::progress`]).

use crate::Io;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// So many steps, of which some are done.
pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
    /// None of so many steps.
    pub(crate) fn new(what: &'static str, steps: usize, io: &Io<'_>) -> Self {
        if !io.progress {
            return Progress(None);
        }
        let target = ProgressDrawTarget::stderr();
        let bar = ProgressBar::with_draw_target(Some(steps as u64), target).with_prefix(what);
        let template = "{prefix} {bar:32} {pos}/{len} {elapsed} {wide_msg}";
        Progress(Some(match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }))
    }

    /// What is done now.
    pub(crate) fn says(&self, what: &str) {
        if let Some(bar) = &self.0 {
            bar.set_message(what.to_owned());
        }
    }

    /// Another step is done.
    pub(crate) fn step(&self) {
        if let Some(bar) = &self.0 {
            bar.inc(1);
        }
    }

    /// Takes the bar away while something else is written to the terminal.
    pub(crate) fn hidden<T>(&self, f: impl FnOnce() -> T) -> T {
        match &self.0 {
            Some(bar) => bar.suspend(f),
            None => f(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
