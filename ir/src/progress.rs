//! How far work is, for whoever waits for it.
//!
//! Work that knows how far it is begins a [`Stage`], and says when a step of it is done. That costs next to nothing: it is
//! written into the [`Token`] under which the thread works, and nobody is told. Whoever waits asks the token now and then,
//! by [`Token::progress`], as often as people want to read it.
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
//! Invariant: of stages within each other the outermost is reported, so that what is reported goes forward.

use crate::cancel::{self, Progress, Token};

/// A part of work that has steps. It ends where it is dropped.
#[derive(Debug)]
pub struct Stage {
    /// None if nobody waits, or if this is a part of another stage.
    token: Option<Token>,
}

impl Stage {
    /// Begins a stage of so many steps, if their number is known. `name` says what is done, such as `measuring`.
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

    /// So many more steps are done.
    pub fn steps(&self, n: u64) {
        self.report(|progress| progress.done = progress.done.saturating_add(n));
    }

    /// Another step is done.
    pub fn step(&self) {
        self.steps(1);
    }

    /// What the next step is about, such as the name of a kernel.
    pub fn says(&self, subject: &str) {
        self.report(|progress| subject.clone_into(&mut progress.subject));
    }

    /// That the next step is about a kernel, which may have no name.
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
            // Other threads that help count, too.
            crate::parallel::map(&[1, 2], 2, |_| outer.step());
            assert_eq!(said(), Some(("outer", 2, Some(2))));
            drop(outer);
            Stage::new("next", None).says("this");
            assert_eq!(said(), Some(("next", 0, None)));
        };
        assert_eq!(said(), None);
        assert_eq!(cancel::run(&token, work), Ok(()));
        assert_eq!(token.progress().map(|p| p.subject).as_deref(), Some("this"));
        // Where nobody waits, nothing happens.
        Stage::new("alone", None).step();
    }
}
