//! Rounds extents up so that tiles divide them, for the matching of strategies ([`variants`]). The
//! tensors do not change; tiles that reach over the end of a mode are bounded there.

use super::extents::{LONGEST, extents, extents_of, is_tiled};
use super::params::{Enumerated, leaves};
use super::symbols::Symbols;
use crate::numbers::Numbers;
use crate::strategies::matched::Match;
use carbyne_ir::ast::{Choices, Def, Expr, ExprKind, StmtKind, TensorExpr, TupleExpr};
use std::collections::HashMap;

/// Extents are multiples of these, of results and of what is summed or reduced.
const UNITS: [i64; 3] = [64, 128, 256];
/// Units of short modes with constant extents, whose few tiles would leave multiprocessors idle.
const SHORT_UNITS: [i64; 6] = [64, 128, 144, 160, 192, 256];
/// The largest extent of a short mode.
const SHORT: i64 = 1536;
/// Units of modes whose rows may be spread over many threads.
const WIDE: [i64; 3] = [64, 256, 1024];
/// Longer rows are rounded up to multiples of this, too, even where tiles divide them.
const SPREAD: i64 = 1024;
/// Of what a product sums up; instructions of few threads have tiles of no more.
const SUMMED: [i64; 2] = [32, 64];
/// Units of K for factors of more than 16 bits, which threads multiply one by one: their tiles are
/// less deep.
const SUMMED_WIDE: [i64; 5] = [4, 8, 16, 32, 64];
/// What is rounded up by more than one in so many, and by more than the least, is not looked at.
const WASTE: i64 = 6;

/// The numbers of a match with its extents rounded up in every way that is looked at; as they are
/// where tiles divide them, and where there are none.
pub(super) fn variants(m: &Match<'_>, given: &Numbers, symbols: Option<&Symbols>) -> Vec<Numbers> {
    if super::extents::is_apart(m.def) {
        return vec![given.clone()];
    }
    let (outputs, inputs) = (extents(&m.def.outputs), extents(&m.def.inputs));
    let multiplies = multiplies(m.def);
    let mut all = vec![given.clone()];
    for name in inputs.union(&outputs) {
        let Some(n) = given.get(name) else { continue };
        let is_constant = symbols.is_none_or(|s| s.expression(*n).is_none());
        // Tiles of whole rows hold the longest.
        let most = symbols.and_then(|s| s.bounds().get(n).copied().flatten());
        let most = most.filter(|most| *most <= LONGEST);
        let longest = most.filter(|most| most > n);
        if !is_tiled(m.def, name) {
            // Where the threads of a warp do not divide them, they reach over the end.
            let whole = if is_constant { Some(*n) } else { most };
            let uneven = whole.filter(|whole| !multiplies && *whole > 32 && whole % 32 != 0);
            let even = uneven.into_iter().flat_map(|whole| multiples(whole, &[32]));
            let larger: Vec<i64> = longest.into_iter().chain(even).collect();
            all.extend(with_each(&all, name, &larger));
            continue;
        }
        let units: &[i64] = match (multiplies, outputs.contains(name)) {
            (true, true) => &UNITS,
            (true, false) if given.get("E").is_some_and(|bits| *bits > 16) => &SUMMED_WIDE,
            (true, false) => &SUMMED,
            (false, _) => &WIDE,
        };
        let mut values = match is_constant {
            false => {
                let mut all = multiples(*n, units);
                // They are spread over threads of which not all divide them.
                let longest = longest.filter(|_| !multiplies);
                all.extend(longest.into_iter().flat_map(|m| multiples(m, units)));
                all
            }
            true if units == UNITS && *n <= SHORT => rounded(*n, &SHORT_UNITS, multiplies),
            true => rounded(*n, units, multiplies),
        };
        // A block may compute one row, whatever the number of rows is.
        if !multiplies && outputs.contains(name) && !values.contains(n) && is_constant {
            values.push(*n);
        }
        let inner = inner(m, name);
        if inner > 1 {
            values.retain(|up| up % inner == 0 && up != n);
            values.insert(0, *n);
        }
        // Deep tiles first: what stands in their way is what is said.
        if is_summed(units) {
            values.reverse();
        }
        all = with_each(&all, name, &values);
    }
    all
}

/// All of these numbers with each of these values of one.
fn with_each(all: &[Numbers], name: &str, values: &[i64]) -> Vec<Numbers> {
    let with = |numbers: &Numbers, value: i64| {
        let mut numbers = numbers.clone();
        numbers.insert(name.to_owned(), value);
        numbers
    };
    all.iter().flat_map(|numbers| values.iter().map(move |value| with(numbers, *value))).collect()
}

/// The instances of each way to round extents up but for those of products that are the same of
/// extents that are rounded up by less: their last tiles would lie behind the ends of the tensors.
pub(super) fn least(def: &Def, variants: &[(Numbers, Enumerated)]) -> Vec<Vec<Numbers>> {
    if variants.len() < 2 || !multiplies(def) {
        return variants.iter().map(|(_, all)| all.instances.clone()).collect();
    }
    let (tiled, others): (Vec<_>, Vec<_>) =
        extents_of(def).into_iter().partition(|name| is_tiled(def, name));
    let of_extents = |e: &Expr| tiled.iter().any(|name| super::params::names(e, name));
    let chosen = def.params.iter().filter(|param| match &param.choices {
        None => false,
        Some(Choices::Among(among)) => !leaves(among).into_iter().any(of_extents),
        Some(Choices::Range { start, end, step }) => {
            ![start, end].into_iter().chain(step).any(of_extents)
        }
    });
    let names: Vec<&str> = chosen.map(|param| param.name.text.as_str()).collect();
    let others: Vec<&str> = others.iter().map(String::as_str).chain(names).collect();
    let key = |numbers: &Numbers| -> Vec<Option<i64>> {
        others.iter().map(|name| numbers.get(*name).copied()).collect()
    };
    let rounded = |numbers: &Numbers| -> Vec<Option<i64>> {
        tiled.iter().map(|name| numbers.get(name).copied()).collect()
    };
    let mut found: HashMap<Vec<Option<i64>>, Vec<Vec<Option<i64>>>> = HashMap::new();
    for numbers in variants.iter().flat_map(|(_, all)| &all.instances) {
        let (of, all) = (rounded(numbers), found.entry(key(numbers)).or_default());
        if !all.contains(&of) {
            all.push(of);
        }
    }
    let is_least = |numbers: &&Numbers| {
        let own = rounded(numbers);
        let less = |other: &Vec<Option<i64>>| {
            *other != own && other.iter().zip(&own).all(|(other, own)| other <= own)
        };
        !found.get(&key(numbers)).is_some_and(|all| all.iter().any(less))
    };
    let of = |all: &Enumerated| all.instances.iter().filter(is_least).cloned().collect();
    variants.iter().map(|(_, all)| of(all)).collect()
}

/// How many elements of a mode lie within the outermost of its parts: tiles reach over its end by
/// whole ones of these.
fn inner(m: &Match<'_>, name: &str) -> i64 {
    let mut most = 1;
    for (operand, ty) in m.def.inputs.iter().chain(&m.def.outputs) {
        let bound = m.found.operands.get(&operand.text);
        let layout = bound.and_then(|b| b.source.layout.as_ref());
        let modes = ty.iter().flat_map(|ty| &ty.levels).flat_map(|level| &level.modes);
        for (mode, layout) in modes.zip(layout.iter().flat_map(|l| l.modes())) {
            let TupleExpr::Leaf(Expr { kind: ExprKind::Name(of), .. }) = mode else { continue };
            let layout = layout.coalesce();
            if let (true, [parts @ .., _]) = (of == name, layout.leaves()) {
                most = most.max(parts.iter().fold(1i64, |n, (e, _)| n.saturating_mul(*e)));
            }
        }
    }
    most
}

fn multiplies(def: &Def) -> bool {
    def.means.iter().flat_map(|block| &block.stmts).any(|s| match &s.kind {
        StmtKind::Assign { value: TensorExpr::Apply(a), .. } => a.kind.is_product(),
        StmtKind::Spec(spec) => spec.kind.is_product(),
        _ => false,
    })
}

/// An extent as multiples of units, the smallest first. Instructions that multiply take at least 8,
/// and vectors are no matrices of one column.
fn rounded(n: i64, units: &[i64], multiplied: bool) -> Vec<i64> {
    match n {
        1 if multiplied => return vec![1, 8, 16],
        2..=8 if multiplied => return vec![8, 16],
        _ => {}
    }
    // Long rows are spread over threads of which not all divide them.
    if n % 32 == 0 && n > SPREAD && n % SPREAD != 0 && units == WIDE {
        return as_it_is_and_larger(n, units);
    }
    // The modes of products are also rounded up to larger tiles, if only small tiles divide them.
    let largest = units.iter().copied().max().unwrap_or(1).min(256);
    if multiplied && n % 32 == 0 && n > 64 && n % largest != 0 {
        return as_it_is_and_larger(n, units);
    }
    if multiplied && units == SUMMED_WIDE && n > 1 && n % 16 != 0 {
        return multiples(n, units);
    }
    // What tiles divide well stays as it is.
    if n < 1 || n % 32 == 0 || n & (n - 1) == 0 || n < 64 && n % 16 == 0 {
        return vec![n];
    }
    if n < 64 {
        let power = u64::try_from(n).map_or(1, u64::next_power_of_two);
        return vec![i64::try_from(power).unwrap_or(64).max(16)];
    }
    multiples(n, units)
}

/// An extent, and the larger ones.
fn as_it_is_and_larger(n: i64, units: &[i64]) -> Vec<i64> {
    std::iter::once(n).chain(multiples(n, units).into_iter().filter(|up| *up > n)).collect()
}

/// Whether extents are those of what a product sums up.
fn is_summed(units: &[i64]) -> bool {
    units == SUMMED || units == SUMMED_WIDE
}

/// The same of what may be any number.
fn multiples(n: i64, units: &[i64]) -> Vec<i64> {
    let mut all: Vec<i64> =
        units.iter().filter_map(|u| n.checked_add(u - 1).map(|up| up / u * u)).collect();
    all.sort_unstable();
    all.dedup();
    let least = if is_summed(units) { 64 } else { units.iter().copied().min().unwrap_or(1) };
    all.retain(|up| up - n < least || (up - n).saturating_mul(WASTE) <= n);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_rounded_where_nothing_divides_them() {
        for exact in [1, 2, 8, 16, 32, 48, 64, 96, 4096] {
            assert_eq!(rounded(exact, &UNITS, false), [exact]);
        }
        assert_eq!(rounded(3, &UNITS, true), [8, 16]);
        assert_eq!(rounded(8, &SUMMED, true), [8, 16]);
        assert_eq!(rounded(3, &UNITS, false), [16]);
        assert_eq!(rounded(50, &UNITS, true), [64]);
        assert_eq!(rounded(100, &UNITS, true), [128]);
        assert_eq!(rounded(1000, &UNITS, true), [1024]);
        assert_eq!(rounded(4097, &UNITS, true), [4160, 4224, 4352]);
        assert_eq!(rounded(1000, &SHORT_UNITS, true), [1008, 1024, 1120, 1152]);
        assert_eq!(rounded(50257, &WIDE, true), [50304, 50432, 51200]);
        assert_eq!(rounded(20000, &WIDE, false), [20000, 20032, 20224, 20480]);
        assert_eq!(rounded(5120, &WIDE, false), [5120]);
        assert_eq!(rounded(20000, &UNITS, true), [20000, 20032, 20096, 20224]);
        assert_eq!(rounded(992, &SUMMED, true), [992, 1024]);
        assert_eq!(rounded(960, &SUMMED, true), [960]);
        assert_eq!(rounded(1002, &SUMMED_WIDE, true), [1004, 1008, 1024]);
        assert_eq!(rounded(36, &SUMMED_WIDE, true), [36, 40, 48, 64]);
        assert_eq!(rounded(257, &SUMMED, true), [288, 320]);
        assert_eq!(rounded(1000, &SUMMED, true), [1024]);
        assert_eq!(rounded(i64::MAX, &UNITS, true), [i64::MAX; 0]);
    }
}
