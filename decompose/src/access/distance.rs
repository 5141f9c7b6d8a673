//! Computes how many iterations of a loop lie between two accesses that may touch the same element
//! ([`distance()`]). Offsets that cannot be compared count as the least distance that the caller
//! allows.

use super::increments::{Drift, drift, mentions};
use super::sum::Sum;
use carbyne_ir::expr::{Dim, VarId};
use carbyne_ir::program::{Program, TensorId};
use num_integer::gcd;

/// The variable of a loop, its first value where that is known, by how much it grows, and how many
/// values it has.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Counter {
    pub(crate) var: VarId,
    pub(crate) start: Option<i64>,
    pub(crate) step: i64,
    pub(crate) trips: Option<i64>,
}

/// Iterations that are looked at one by one.
const MOST: i64 = 64;
/// Pairs of iterations that are.
const MOST_COMPARED: i64 = 1 << 13;

/// The least number of iterations, `from` or more, after which the second view may have an element
/// in common with what the first view was; none where none may ever. What is not known may be the
/// same at once.
pub(crate) fn distance(
    p: &Program,
    l: Counter,
    (first, second): (TensorId, TensorId),
    from: i64,
) -> Option<i64> {
    let least = match compared(p, l, (first, second), from) {
        Some(found) => found,
        None => Some(from),
    };
    least.filter(|d| l.trips.is_none_or(|n| *d < n.max(1)))
}

/// The same; the outer option is none where offsets cannot be compared.
fn compared(
    p: &Program,
    l: Counter,
    (first, second): (TensorId, TensorId),
    from: i64,
) -> Option<Option<i64>> {
    let (x, y) = (span(p, first)?, span(p, second)?);
    let (a, b) = (Moving::of(p, first, l.var), Moving::of(p, second, l.var));
    if a.still != b.still {
        return None;
    }
    let (period, by, _) = a.drift.common(b.drift).filter(|(_, by, other)| by == other)?;
    // In iterations: after so many both are where they were but for a constant.
    let turns = period / gcd(period, l.step);
    let starts = match l.start {
        Some(start) => start..start.saturating_add(1),
        None => 0..period,
    };
    let most = if by == 0 { turns } else { MOST };
    let compared = turns.saturating_mul(most).saturating_mul(starts.end - starts.start);
    if compared > MOST_COMPARED {
        return None;
    }
    for d in from..from + most {
        for start in starts.clone() {
            for turn in 0..turns {
                let now = start.checked_add(turn.checked_mul(l.step)?)?;
                let later = now.checked_add(d.checked_mul(l.step)?)?;
                let apart = b.at(p, later)?.checked_sub(a.at(p, now)?)?;
                if -y < apart && apart < x {
                    return Some(Some(d));
                }
            }
        }
    }
    // Where they move on, they have left each other behind when they have moved by more than both
    // are long.
    let moved = by.checked_mul(MOST.checked_mul(l.step)? / period)?;
    (by == 0 || moved.abs() >= x.checked_add(y)?.checked_mul(2)?).then_some(None)
}

/// Elements from the first to the last of a view.
fn span(p: &Program, t: TensorId) -> Option<i64> {
    let tensor = &p.tensors[t];
    if tensor.map.is_some() || tensor.peer.is_some() || p.buffers[tensor.buffer].gather.is_some() {
        return None;
    }
    let layout = tensor.concat().to_fixed()?;
    layout.leaves().iter().all(|(_, step)| *step >= 0).then(|| layout.cosize())
}

/// An offset as a variable moves it.
struct Moving {
    var: VarId,
    /// Its terms that do not follow from the variable, with their factors.
    still: Vec<(Dim, i64)>,
    /// The others, and what is added to all.
    rest: Sum,
    drift: Drift,
}

impl Moving {
    fn of(p: &Program, t: TensorId, var: VarId) -> Self {
        let offset = p.tensors[t].offset;
        let (still, rest) = Sum::of(p, offset).split(|d| !mentions(p, d, var));
        Moving { var, still, rest, drift: drift(p, offset, var) }
    }

    /// What the variable makes of it where it has a value; none where something else has a part in
    /// that.
    fn at(&self, p: &Program, value: i64) -> Option<i64> {
        self.rest.value(|d| p.value_with(d, &|v| (v == self.var).then_some(value)))
    }
}
