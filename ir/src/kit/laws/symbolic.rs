//! Checks laws of layouts whose strides may be multiples of symbols: after substitution of values,
//! the result is the result over numbers.
//!
//! Invariant: a library may refuse to coalesce or to compose if the answer depends on the symbols.
//! An answer must be correct for all substituted values.

use crate::kit::answer::Answer;
use crate::kit::error::{Case, Demand, LawResult, Stop, judge, judge_as};
use crate::kit::like::LayoutLike;
use crate::kit::plain::Plain;
use crate::kit::symbolic::{Symbolic, VALUES};
use crate::kit::tiling::Tiling;

fn build<T: LayoutLike>(case: &Case<'_>, a: &Symbolic) -> Result<T, Stop> {
    case.must("build_symbolic", T::build_symbolic(a))
}

/// The result, or the permitted refusal of the library.
fn result<T: LayoutLike>(
    operation: &'static str,
    case: &mut Case<'_>,
    answer: Answer<T>,
) -> Result<T, Stop> {
    case.answered(operation, answer)
}

/// Requires that the result has the indices of `wanted` for each choice of values.
fn for_all_values<T: LayoutLike>(
    case: &mut Case<'_>,
    result: &T,
    wanted: impl Fn(&[i64]) -> Option<Vec<i64>>,
) -> Result<(), Stop> {
    for values in &VALUES {
        let found = case.must("substitute", result.substitute(values))?;
        let table = case.values(&found)?;
        case.shows(found);
        let what = format!("the function with the symbols {values:?}");
        case.agree(&what, &table, &wanted(values).unwrap_or_default())?;
    }
    Ok(())
}

/// A symbolic layout with values substituted is the layout of these numbers.
pub fn law_build_symbolic<T: LayoutLike>(a: &Symbolic) -> LawResult {
    judge("build_symbolic", &[("a", a)], |case| {
        let built: T = build(case, a)?;
        for_all_values(case, &built, |values| a.at(values).values())
    })
}

/// Coalescing keeps the function for all values.
pub fn law_coalesce_symbolic<T: LayoutLike>(a: &Symbolic) -> LawResult {
    judge_as("coalesce_symbolic", Demand::ExactOrRefuse, &[("a", a)], |case| {
        let built: T = build(case, a)?;
        let c = result("coalesce", case, built.coalesce())?;
        for_all_values(case, &c, |values| a.at(values).values())
    })
}

/// Flattening keeps the function for all values.
pub fn law_flatten_symbolic<T: LayoutLike>(a: &Symbolic) -> LawResult {
    judge("flatten_symbolic", &[("a", a)], |case| {
        let built: T = build(case, a)?;
        let f = result("flatten", case, built.flatten())?;
        for_all_values(case, &f, |values| a.at(values).values())
    })
}

/// Composition of symbols with numbers is function composition for all values.
pub fn law_composition_symbolic<T: LayoutLike>(outer: &Symbolic, inner: &Plain) -> LawResult {
    let inputs: [(&'static str, &dyn std::fmt::Display); 2] = [("outer", outer), ("inner", inner)];
    judge_as("composition_symbolic", Demand::ExactOrRefuse, &inputs, |case| {
        let tile: Tiling<T> = Tiling::Layout(case.build(inner)?);
        let built: T = build(case, outer)?;
        let c = result("composition", case, built.composition(&tile))?;
        let at = case.values(inner)?;
        for_all_values(case, &c, |values| {
            let table = outer.at(values).values()?;
            at.iter().map(|&at| table.get(usize::try_from(at).ok()?).copied()).collect()
        })
    })
}
