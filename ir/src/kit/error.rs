//! How a law ends: it holds, it could not be asked, or it is broken at a coordinate.
//!
//! Invariant: a [`LawError`] is complete. Its inputs, built again, break the law again.

use super::answer::Answer;
use super::like::LayoutLike;
use super::plain::Plain;
use std::fmt;

/// A law that does not hold, with what shows it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct LawError {
    /// The law, as its function is named without `law_`.
    pub law: &'static str,
    /// The operands, by name.
    pub inputs: Vec<(&'static str, String)>,
    /// The result that is wrong, where there is one.
    pub result: Option<String>,
    /// What was compared.
    pub what: String,
    /// The first coordinate at which it is wrong, where there is one.
    pub at: Option<String>,
    /// What the library has there.
    pub found: String,
    /// What it should have.
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

/// How a law that is not broken ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It holds.
    Holds,
    /// The library does not have this operation.
    Unsupported(&'static str),
    /// The library refused the operands, which it may.
    Refused,
}

/// What a law returns.
pub type LawResult = Result<Outcome, Box<LawError>>;

/// Whether a library may refuse the operands of a law.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Demand {
    /// The operands are admissible: a refusal breaks the law.
    Answer,
    /// It may refuse, but what it answers must be exact.
    ExactOrRefuse,
}

/// Why a law stops before its end.
pub(crate) enum Stop {
    Early(Outcome),
    Broken(Box<LawError>),
}

/// A law being judged: its name and operands, for the error.
pub(crate) struct Case<'a> {
    law: &'static str,
    inputs: &'a [(&'static str, &'a dyn fmt::Display)],
    demand: Demand,
    result: Option<Plain>,
}

/// Judges a law whose operands are all admissible.
pub(crate) fn judge(
    law: &'static str,
    inputs: &[(&'static str, &dyn fmt::Display)],
    body: impl FnOnce(&mut Case<'_>) -> Result<(), Stop>,
) -> LawResult {
    judge_as(law, Demand::Answer, inputs, body)
}

/// Judges a law; `demand` says what a refusal means.
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
    /// The layout under test of generated data.
    pub(crate) fn build<T: LayoutLike>(&self, p: &Plain) -> Result<T, Stop> {
        self.must("build", T::build(&p.shape, &p.stride))
    }

    /// The result, whatever the demand.
    pub(crate) fn must<X>(&self, operation: &'static str, answer: Answer<X>) -> Result<X, Stop> {
        match answer {
            Answer::Got(result) => Ok(result),
            Answer::Unsupported => Err(Stop::Early(Outcome::Unsupported(operation))),
            Answer::Refused(why) => {
                Err(self.broken(operation, None, &format!("refused: {why}"), &"an answer"))
            }
        }
    }

    /// The result; a refusal breaks the law only where an answer is demanded.
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

    /// Errors show this as the result from now on.
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

    /// The result as plain data; a refusal breaks the law only where an answer is demanded.
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

    /// As [`Case::get`], with the table of the result.
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

    /// The law as broken here.
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

    /// Both are the same.
    pub(crate) fn same<X: PartialEq + fmt::Display>(
        &self,
        what: &str,
        found: &X,
        wanted: &X,
    ) -> Result<(), Stop> {
        if found == wanted { Ok(()) } else { Err(self.broken(what, None, found, wanted)) }
    }

    /// It is so.
    pub(crate) fn holds(&self, what: &str, is: bool) -> Result<(), Stop> {
        self.same(what, &is, &true)
    }

    /// Both tables are the same; the error names the first index where they are not.
    pub(crate) fn agree(&self, what: &str, found: &[i64], wanted: &[i64]) -> Result<(), Stop> {
        self.same("number of coordinates", &found.len(), &wanted.len())?;
        match found.iter().zip(wanted).position(|(found, wanted)| found != wanted) {
            None => Ok(()),
            Some(i) => Err(self.broken(what, Some(i.to_string()), &found[i], &wanted[i])),
        }
    }

    /// The value at one place is as wanted.
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
