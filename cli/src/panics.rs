//! Converts panics of libraries to values, so that a bug ends with a message and exit code 3.

use carbyne_ir::cancel::Cancelled;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

/// The place of the last panic of the process: file and line in carbyne's sources.
static PLACE: Mutex<Option<String>> = Mutex::new(None);

/// Suppresses the messages of panics, because [`crate::run`] reports them. For the binary only;
/// library users keep their own panic hook.
pub fn catch_panics_quietly() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|l| format!("{}:{}", l.file(), l.line()));
        *PLACE.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }));
}

/// Returns the value of `f`, or the message of its panic and the place, if known.
pub(crate) fn caught<T>(f: impl FnOnce() -> T) -> (Result<T, String>, Option<String>) {
    // The streams are only written to after a panic, and they are always in a valid state.
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => (Ok(value), None),
        // The caller that cancelled the work catches this.
        Err(payload) if payload.is::<Cancelled>() => resume_unwind(payload),
        Err(payload) => {
            let what = payload
                .downcast_ref::<&str>()
                .map(|s| (*s).to_owned())
                .or_else(|| payload.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "a panic without a message".to_owned());
            (Err(what), PLACE.lock().unwrap_or_else(PoisonError::into_inner).take())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message() {
        let (outcome, _) = caught(|| -> () { std::panic::panic_any("no row") });
        assert_eq!(outcome.unwrap_err(), "no row");
        let (outcome, _) = caught(|| -> () { std::panic::panic_any(7) });
        assert_eq!(outcome.unwrap_err(), "a panic without a message");
        assert_eq!(caught(|| 1).0, Ok(1));
    }
}
