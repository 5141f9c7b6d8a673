//! Answers of a library under test.

use std::fmt;

/// A library's answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer<T> {
    /// The result.
    Got(T),
    /// There is no result for these operands, says the library, and why.
    Refused(String),
    /// The library has no such operation, or not for operands like these.
    Unsupported,
}

impl<T> Answer<T> {
    /// The answer with its result changed by `f`.
    #[must_use]
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Answer<U> {
        match self {
            Answer::Got(result) => Answer::Got(f(result)),
            Answer::Refused(why) => Answer::Refused(why),
            Answer::Unsupported => Answer::Unsupported,
        }
    }
}

/// `Ok` is an answer, an error is a refusal in the error's words.
impl<T, E: fmt::Display> From<Result<T, E>> for Answer<T> {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(result) => Answer::Got(result),
            Err(why) => Answer::Refused(why.to_string()),
        }
    }
}
