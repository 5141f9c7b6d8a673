//! Reports the progress of long work, such as decomposition, to a caller that shows or limits it.
//!
//! Work begins a [`Stage`] and reports its finished steps. A report is cheap: it only updates the
//! [`Token`] under which the thread works. A waiting thread polls the token by [`Token::progress`].
//!
//! ```
//! use carbyne_ir::cancel::{self, Token};
//! use carbyne_ir::progress::Stage;
//!
//! let token = Token::default();
//! cancel::run(&token, || {
//!     let stage = Stage::new("counting", Some(2));
//!     stage.step();
//! })?;
//! let progress = token.progress().unwrap();
//! assert_eq!((progress.stage, progress.done, progress.total), ("counting", 1, Some(2)));
//! # Ok::<(), cancel::Cancelled>(())
//! ```
//!
//! Invariant: only the outermost of nested stages is reported, so progress never goes back within a
//! stage.

use crate::cancel::{self, Progress, Token};

/// A part of work that has steps. It ends when it is dropped.
#[derive(Debug)]
pub struct Stage {
    /// None if the thread works under no token, or if this is a part of another stage.
    token: Option<Token>,
}

impl Stage {
    /// Begins a stage of `total` steps, if their number is known. `name` is its activity, such as
    /// `measuring`.
    #[must_use]
    pub fn new(name: &'static str, total: Option<u64>) -> Stage {
        let token = cancel::current().filter(|token| {
            token.report(|reported| {
                let is_outermost = !reported.is_in_stage;
                if is_outermost {
                    let progress = Progress { stage: name, total, ..Progress::default() };
                    reported.last = Some(progress);
                    reported.is_in_stage = true;
                }
                is_outermost
            })
        });
        Stage { token }
    }

    /// Reports `n` more finished steps.
    pub fn steps(&self, n: u64) {
        self.report(|progress| progress.done = progress.done.saturating_add(n));
    }

    /// Reports a finished step.
    pub fn step(&self) {
        self.steps(1);
    }

    /// Reports the subject of the next step.
    pub fn says(&self, subject: &str) {
        self.report(|progress| subject.clone_into(&mut progress.subject));
    }

    /// Reports a kernel, which may have no name, as the subject of the next step.
    pub fn kernel(&self, name: Option<&str>) {
        self.says(&name.map_or_else(String::new, |name| format!("@{name}")));
    }

    fn report(&self, f: impl FnOnce(&mut Progress)) {
        if let Some(token) = &self.token {
            token.report(|reported| reported.last.as_mut().map(f));
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(token) = &self.token {
            token.report(|reported| reported.is_in_stage = false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_stage_is_reported() {
        let token = Token::default();
        let said = || token.progress().map(|p| (p.stage, p.done, p.total));
        let work = || {
            let outer = Stage::new("outer", Some(2));
            {
                let inner = Stage::new("inner", None);
                inner.step();
            }
            assert_eq!(said(), Some(("outer", 0, Some(2))));
            // Steps of helping threads count, too.
            crate::parallel::map(&[1, 2], 2, |_| outer.step());
            assert_eq!(said(), Some(("outer", 2, Some(2))));
            drop(outer);
            Stage::new("next", None).says("this");
            assert_eq!(said(), Some(("next", 0, None)));
        };
        assert_eq!(said(), None);
        assert_eq!(cancel::run(&token, work), Ok(()));
        assert_eq!(token.progress().map(|p| p.subject).as_deref(), Some("this"));
        // Without a token, nothing happens.
        Stage::new("alone", None).step();
    }
}
