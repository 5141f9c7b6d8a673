//! [`Answer`] is what a layout library under test answers to one operation: a result, a refusal of
//! the operands, or that the library does not have the operation, at least not for such operands.

use std::fmt;

/// The answer of a library.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer<T> {
    /// The result.
    Got(T),
    /// The library refuses the operands, with its reason.
    Refused(String),
    /// The library does not have the operation, or does not have it for such operands.
    Unsupported,
}

impl<T> Answer<T> {
    /// The answer with `f` applied to its result.
    #[must_use]
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Answer<U> {
        match self {
            Answer::Got(result) => Answer::Got(f(result)),
            Answer::Refused(why) => Answer::Refused(why),
            Answer::Unsupported => Answer::Unsupported,
        }
    }
}

/// `Ok` is a result, an error is a refusal with the text of the error.
impl<T, E: fmt::Display> From<Result<T, E>> for Answer<T> {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(result) => Answer::Got(result),
            Err(why) => Answer::Refused(why.to_string()),
        }
    }
}
