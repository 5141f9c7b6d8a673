//! Defines the results of laws (properties that every layout library must have), and the functions
//! by which laws compare values. A law holds; or it does not apply, because the library lacks the
//! operation or refuses operands that it may refuse; or it is broken, mostly at a coordinate.
//!
//! Invariant: a [`LawError`] is complete: building its inputs again breaks the law again.

use super::answer::Answer;
use super::like::LayoutLike;
use super::plain::Plain;
use std::fmt;

/// A broken law, with the evidence.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct LawError {
    /// The name of the law: its function name without `law_`.
    pub law: &'static str,
    /// The operands by name.
    pub inputs: Vec<(&'static str, String)>,
    /// The wrong result, if there is one.
    pub result: Option<String>,
    /// The compared quantity.
    pub what: String,
    /// The first wrong coordinate, if there is one.
    pub at: Option<String>,
    /// The value of the library.
    pub found: String,
    /// The correct value.
    pub wanted: String,
}

impl fmt::Display for LawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "law `{}` is broken", self.law)?;
        for (name, input) in &self.inputs {
            write!(f, "\n  {name} = {input}")?;
        }
        if let Some(result) = &self.result {
            write!(f, "\n  result = {result}")?;
        }
        write!(f, "\n  {}", self.what)?;
        if let Some(at) = &self.at {
            write!(f, " at {at}")?;
        }
        write!(f, ": found {}, wanted {}", self.found, self.wanted)
    }
}

/// The outcome of a law that is not broken.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The law holds.
    Holds,
    /// The library does not have this operation.
    Unsupported(&'static str),
    /// The library refused the operands, which the law permits.
    Refused,
}

/// The result of a law.
pub type LawResult = Result<Outcome, Box<LawError>>;

/// Whether a library may refuse the operands of a law.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Demand {
    /// The operands are valid: a refusal breaks the law.
    Answer,
    /// The library may refuse, but an answer must be exact.
    ExactOrRefuse,
}

/// The reason why a law stops early.
pub(crate) enum Stop {
    Early(Outcome),
    Broken(Box<LawError>),
}

/// A law under evaluation, with its name and operands for errors.
pub(crate) struct Case<'a> {
    law: &'static str,
    inputs: &'a [(&'static str, &'a dyn fmt::Display)],
    demand: Demand,
    result: Option<Plain>,
}

/// Evaluates a law that does not permit refusals.
pub(crate) fn judge(
    law: &'static str,
    inputs: &[(&'static str, &dyn fmt::Display)],
    body: impl FnOnce(&mut Case<'_>) -> Result<(), Stop>,
) -> LawResult {
    judge_as(law, Demand::Answer, inputs, body)
}

/// Evaluates a law; `demand` says whether refusals are permitted.
pub(crate) fn judge_as(
    law: &'static str,
    demand: Demand,
    inputs: &[(&'static str, &dyn fmt::Display)],
    body: impl FnOnce(&mut Case<'_>) -> Result<(), Stop>,
) -> LawResult {
    match body(&mut Case { law, inputs, demand, result: None }) {
        Ok(()) => Ok(Outcome::Holds),
        Err(Stop::Early(outcome)) => Ok(outcome),
        Err(Stop::Broken(error)) => Err(error),
    }
}

impl Case<'_> {
    /// Builds a generated layout in the library under test.
    pub(crate) fn build<T: LayoutLike>(&self, p: &Plain) -> Result<T, Stop> {
        self.must("build", T::build(&p.shape, &p.stride))
    }

    /// The result. A refusal breaks the law, whatever the demand.
    pub(crate) fn must<X>(&self, operation: &'static str, answer: Answer<X>) -> Result<X, Stop> {
        match answer {
            Answer::Got(result) => Ok(result),
            Answer::Unsupported => Err(Stop::Early(Outcome::Unsupported(operation))),
            Answer::Refused(why) => {
                Err(self.broken(operation, None, &format!("refused: {why}"), &"an answer"))
            }
        }
    }

    /// The result. A refusal breaks the law if the law demands an answer.
    pub(crate) fn answered<T>(
        &self,
        operation: &'static str,
        answer: Answer<T>,
    ) -> Result<T, Stop> {
        if self.demand == Demand::ExactOrRefuse && matches!(answer, Answer::Refused(_)) {
            return Err(Stop::Early(Outcome::Refused));
        }
        self.must(operation, answer)
    }

    /// Errors show `result` from now on.
    pub(crate) fn shows(&mut self, result: Plain) {
        self.result = Some(result);
    }

    /// The result as plain data of any size.
    pub(crate) fn large<T: LayoutLike>(
        &mut self,
        operation: &'static str,
        answer: Answer<T>,
    ) -> Result<Plain, Stop> {
        let result = self.answered(operation, answer)?.plain();
        self.result = Some(result.clone());
        if result.shape.congruent(&result.stride) && result.total().is_some() {
            return Ok(result);
        }
        let wanted = "congruent, positive extents, fewer than 2^63 coordinates";
        Err(self.broken(operation, None, &"no such layout", &wanted))
    }

    /// The result as plain data. A refusal breaks the law if the law demands an answer.
    pub(crate) fn get<T: LayoutLike>(
        &mut self,
        operation: &'static str,
        answer: Answer<T>,
    ) -> Result<Plain, Stop> {
        let result = self.answered(operation, answer)?.plain();
        self.result = Some(result.clone());
        if result.shape.congruent(&result.stride) && result.size().is_some() {
            return Ok(result);
        }
        let wanted = "congruent, positive extents, not larger than all operands together";
        Err(self.broken(operation, None, &"no such layout", &wanted))
    }

    /// As [`Case::get`], with the table of the result's values.
    pub(crate) fn table<T: LayoutLike>(
        &mut self,
        operation: &'static str,
        answer: Answer<T>,
    ) -> Result<(Plain, Vec<i64>), Stop> {
        let result = self.get(operation, answer)?;
        let values = self.values(&result)?;
        Ok((result, values))
    }

    /// The table of a layout.
    pub(crate) fn values(&self, p: &Plain) -> Result<Vec<i64>, Stop> {
        p.values().ok_or_else(|| self.broken("size", None, &"too large", &"a smaller layout"))
    }

    /// The error that says that the law is broken.
    pub(crate) fn broken(
        &self,
        what: &str,
        at: Option<String>,
        found: &dyn fmt::Display,
        wanted: &dyn fmt::Display,
    ) -> Stop {
        Stop::Broken(Box::new(LawError {
            law: self.law,
            inputs: self.inputs.iter().map(|(name, input)| (*name, input.to_string())).collect(),
            result: self.result.as_ref().map(Plain::to_string),
            what: what.to_owned(),
            at,
            found: found.to_string(),
            wanted: wanted.to_string(),
        }))
    }

    /// Requires that the two values are equal.
    pub(crate) fn same<X: PartialEq + fmt::Display>(
        &self,
        what: &str,
        found: &X,
        wanted: &X,
    ) -> Result<(), Stop> {
        if found == wanted { Ok(()) } else { Err(self.broken(what, None, found, wanted)) }
    }

    /// Requires that the condition is true.
    pub(crate) fn holds(&self, what: &str, is: bool) -> Result<(), Stop> {
        self.same(what, &is, &true)
    }

    /// Requires that the two tables are equal. The error names the first index where they differ.
    pub(crate) fn agree(&self, what: &str, found: &[i64], wanted: &[i64]) -> Result<(), Stop> {
        self.same("number of coordinates", &found.len(), &wanted.len())?;
        match found.iter().zip(wanted).position(|(found, wanted)| found != wanted) {
            None => Ok(()),
            Some(i) => Err(self.broken(what, Some(i.to_string()), &found[i], &wanted[i])),
        }
    }

    /// Requires that the value at one place is the expected one.
    pub(crate) fn point(
        &self,
        what: &str,
        at: impl FnOnce() -> String,
        found: i64,
        wanted: i64,
    ) -> Result<(), Stop> {
        if found == wanted { Ok(()) } else { Err(self.broken(what, Some(at()), &found, &wanted)) }
    }
}
