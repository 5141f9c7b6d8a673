//! Finds numbers for the symbols of a program ([`Sizes`]) that are near to their usual values,
//! fulfill all facts, and differ wherever the symbols may.
//!
//! Ranges follow from facts that are linear in the symbols. Numbers are then chosen one symbol
//! after the other; each narrows the ranges of the others, and if no range is left for one, the
//! symbol before takes its next number. A fact that is not linear is checked when all of its
//! symbols have numbers. Nothing here is random, and every search ends.

use carbyne_ir::diag::Diagnostic;
use carbyne_ir::expr::{Dim, Node, VarId};
use carbyne_ir::program::{Fact, Program, Residue};
use num_integer::Integer;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A size of which nothing else is said.
const USUAL: i64 = 4096;
/// How far numbers are put apart.
const APART: i64 = 64;
/// How many numbers are tried for one symbol in one way.
const MOST_TRIED: usize = 64;
/// How many are tried for all symbols in one way, and how many more for each of them.
const MOST_LOOKS: usize = 1 << 12;
/// The largest number, so that sums of them fit 64 bits.
const MOST: i64 = i64::MAX / 4;
/// The most symbols that get numbers.
const MOST_SYMBOLS: usize = 1 << 10;
/// How often a range is narrowed by what follows from others, for each number that is chosen and
/// each fact.
const MOST_NARROWED: usize = 8;

/// Why no numbers stand for the symbols of a program.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum Unsized {
    #[error("it has more than {MOST_SYMBOLS} symbols")]
    TooMany,
    #[error("the facts about `{0}` exclude every size that is tried")]
    NoSize(String),
    #[error("no sizes were found that satisfy `{0}` and all other facts")]
    Unkept(String),
    #[error("`{0}` is never above 0")]
    NeverPositive(String),
    /// The program has this error with numbers in the places of its symbols.
    #[error(transparent)]
    Refused(Box<Diagnostic>),
    #[error(
        "`{0}` has only a few possible values, which cannot be distinguished from other numbers: \
         let the caller compute it and pass it as a symbol"
    )]
    Few(String),
    #[error("numbers that are computed from them cannot be distinguished from others")]
    Ambiguous,
}

/// Numbers for symbols, and what is known of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes {
    /// What stands for each symbol.
    pub values: BTreeMap<VarId, i64>,
    /// The most that each symbol can be, where that is known.
    pub most: BTreeMap<VarId, i64>,
    /// Symbols that can be one number alone.
    pub fixed: BTreeSet<VarId>,
}

/// The values that a symbol may have.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Range {
    lo: i64,
    hi: i64,
    /// What is known of its remainders.
    residue: Residue,
}

impl Range {
    /// The range without ends that no value is; none where it is empty.
    fn tight(self) -> Option<Range> {
        let lo = self.residue.least(self.lo)?;
        let hi = self
            .hi
            .checked_sub((self.hi.checked_sub(self.residue.rest)?).rem_euclid(self.residue.by))?;
        (lo <= hi).then_some(Range { lo, hi, ..self })
    }

    /// Those of its values that are divided by no more powers of two than all of them are.
    fn odd(&self) -> Residue {
        let Residue { by, rest } = self.residue;
        let common = by.gcd(&rest);
        match (by / common % 2 == 0, by.checked_mul(2)) {
            (false, Some(twice)) if rest / common % 2 == 0 => {
                Residue { by: twice, rest: rest + by }
            }
            (false, Some(twice)) => Residue { by: twice, rest },
            _ => self.residue,
        }
    }
}

/// How numbers are looked for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Way {
    /// Far apart, divided by no more than all values are.
    Apart,
    /// Next to each other, divided by no more than all values are.
    Near,
    /// Any.
    Any,
}

/// A fact that is linear: the terms and a constant are at least zero together.
struct Linear {
    /// Which of the program it is.
    of: usize,
    terms: Vec<(usize, i64)>,
    constant: i64,
}

/// A symbol that has a number.
struct Chosen {
    /// What is left to try.
    left: std::vec::IntoIter<i64>,
    /// Ranges that are narrower because of the number, as they were.
    before: Vec<(usize, Range)>,
}

/// What is said of the symbols of a program.
pub(super) struct Said<'a> {
    p: &'a Program,
    linear: Vec<Linear>,
    /// The linear facts that each symbol is in.
    about: Vec<Vec<usize>>,
    /// The facts of the program that each symbol is in.
    named: Vec<Vec<usize>>,
    /// The place of each symbol in these lists.
    number: HashMap<VarId, usize>,
    ranges: Vec<Range>,
    /// Whether a symbol can be one number alone.
    fixed: Vec<bool>,
    /// For each symbol the first of those that are equal to it whatever they are.
    same: Vec<usize>,
    typical: Vec<i64>,
}

impl<'a> Said<'a> {
    /// What a program says.
    ///
    /// # Errors
    /// That it has too many symbols, or which of its facts no values keep that are found.
    pub(super) fn of(p: &'a Program) -> Result<Self, Unsized> {
        if p.symbols.len() > MOST_SYMBOLS {
            return Err(Unsized::TooMany);
        }
        let number: HashMap<VarId, usize> = p.symbols.iter().copied().zip(0..).collect();
        let of = |(i, fact): (usize, &Fact)| {
            let all = fact.differences(p).into_iter();
            all.filter_map(|d| Linear::of(p, i, d, &number)).collect::<Vec<_>>()
        };
        let linear: Vec<Linear> = p.facts.iter().enumerate().flat_map(of).collect();
        let mut about = vec![vec![]; p.symbols.len()];
        for (i, fact) in linear.iter().enumerate() {
            fact.terms.iter().for_each(|(k, _)| about[*k].push(i));
        }
        let mut named = vec![vec![]; p.symbols.len()];
        for (i, fact) in p.facts.iter().enumerate() {
            let vars: BTreeSet<VarId> =
                [fact.lhs, fact.rhs].iter().flat_map(|d| p.arena.vars_of(*d)).collect();
            vars.iter().filter_map(|v| number.get(v)).for_each(|k| named[*k].push(i));
        }
        let range = |symbol: &VarId| {
            let info = p.arena.var_info(*symbol);
            let (lo, hi) = (info.lo.clamp(-MOST, MOST), info.hi.unwrap_or(MOST).min(MOST));
            let range = p.residue(*symbol).and_then(|residue| Range { lo, hi, residue }.tight());
            range.ok_or(Unsized::NoSize(info.name))
        };
        let usual =
            |symbol: &VarId| p.typical.iter().find(|(v, _)| v == symbol).map_or(USUAL, |(_, n)| *n);
        let mut said = Said {
            p,
            about,
            named,
            number,
            ranges: p.symbols.iter().map(range).collect::<Result<_, _>>()?,
            fixed: vec![],
            same: equal(p.symbols.len(), &linear),
            typical: p.symbols.iter().map(usual).collect(),
            linear,
        };
        let all = || (0..said.linear.len()).collect();
        let broken = |i: usize| Unsized::Unkept(p.facts[said.linear[i].of].text.clone());
        let mut ranges = said.ranges.clone();
        said.narrow(&mut ranges, &mut vec![], all()).map_err(broken)?;
        let fixed = ranges.iter().map(|r| r.lo == r.hi).collect::<Vec<_>>();
        // No number stands for what may be 0.
        for ((range, fixed), symbol) in ranges.iter_mut().zip(&fixed).zip(&p.symbols) {
            if !fixed {
                let sized = Range { lo: range.lo.max(1), ..*range }.tight();
                let name = || p.arena.var_info(*symbol).name;
                *range = sized.ok_or_else(|| Unsized::NeverPositive(name()))?;
            }
        }
        said.narrow(&mut ranges, &mut vec![], all()).map_err(broken)?;
        (said.ranges, said.fixed) = (ranges, fixed);
        Ok(said)
    }

    /// What numbers may not be, with those that symbols always are.
    fn taken(&self, constants: &BTreeSet<i64>) -> BTreeSet<i64> {
        let fixed = self.ranges.iter().zip(&self.fixed).filter(|(_, fixed)| **fixed);
        constants.iter().copied().chain(fixed.map(|(range, _)| range.lo)).collect()
    }

    /// Numbers that keep all facts, usual sizes that are larger taken as `usual`.
    pub(super) fn kept(&self, constants: &BTreeSet<i64>, usual: i64) -> Option<Sizes> {
        let taken = &self.taken(constants);
        [Way::Apart, Way::Near, Way::Any]
            .into_iter()
            .find_map(|way| self.searched(taken, usual, way))
            .map(|values| self.sizes(values))
    }

    /// Numbers that keep what is said of each symbol alone but for the most that it can be; where
    /// facts cannot be kept with different numbers.
    pub(super) fn free(&self, constants: &BTreeSet<i64>, usual: i64) -> Option<Sizes> {
        let mut taken = self.taken(constants);
        let mut values: Vec<i64> = vec![];
        for (k, range) in self.ranges.iter().enumerate() {
            let own = match self.same[k] {
                first if first < k => values[first],
                _ if self.fixed[k] => range.lo,
                _ => {
                    let near = self.typical[k].min(usual).min(range.hi);
                    let range = Range { hi: MOST, ..*range };
                    around(&range, near, Way::Apart).find(|n| !taken.contains(n))?
                }
            };
            taken.insert(own);
            values.push(own);
        }
        Some(self.sizes(values))
    }

    fn sizes(&self, values: Vec<i64>) -> Sizes {
        let mut sizes = Sizes::default();
        for (k, (symbol, n)) in self.p.symbols.iter().zip(values).enumerate() {
            sizes.values.insert(*symbol, n);
            let most = self.ranges[k].hi;
            if most < MOST {
                sizes.most.insert(*symbol, most);
            }
            if self.fixed[k] {
                sizes.fixed.insert(*symbol);
            }
        }
        sizes
    }

    /// Numbers that keep all facts, found in one way.
    fn searched(&self, taken: &BTreeSet<i64>, usual: i64, way: Way) -> Option<Vec<i64>> {
        let n = self.ranges.len();
        let mut ranges = self.ranges.clone();
        let mut chosen: Vec<Chosen> = vec![];
        let mut values: Vec<Option<i64>> = vec![None; n];
        let mut used: BTreeMap<i64, usize> = BTreeMap::new();
        let mut looks = MOST_LOOKS.saturating_add(n.saturating_mul(MOST_TRIED));
        let mut next = true;
        loop {
            if next {
                let k = chosen.len();
                if k == n {
                    return values.into_iter().collect();
                }
                let all = self.candidates(k, &ranges[k], taken, &used, usual, way);
                chosen.push(Chosen { left: all.into_iter(), before: vec![] });
            }
            let k = chosen.len().checked_sub(1)?;
            let Chosen { left, before } = chosen.last_mut()?;
            for (at, range) in before.drain(..).rev() {
                ranges[at] = range;
            }
            if let Some(own) = values[k].take()
                && used.get(&own) == Some(&k)
            {
                used.remove(&own);
            }
            looks = looks.checked_sub(1)?;
            let Some(own) = left.next() else {
                chosen.pop();
                next = false;
                continue;
            };
            before.push((k, ranges[k]));
            ranges[k] = Range { lo: own, hi: own, ..ranges[k] };
            values[k] = Some(own);
            used.entry(own).or_insert(k);
            next = self.narrow(&mut ranges, before, self.about[k].clone()).is_ok()
                && self.holds(k, &values);
        }
    }

    /// Numbers to try for a symbol, the best first.
    fn candidates(
        &self,
        k: usize,
        range: &Range,
        taken: &BTreeSet<i64>,
        used: &BTreeMap<i64, usize>,
        usual: i64,
        way: Way,
    ) -> Vec<i64> {
        // One that can be no other number may be a number of the text, too.
        if self.fixed[k] {
            return vec![self.ranges[k].lo];
        }
        let free = |n: &i64| {
            let same = |other: &usize| self.same[*other] == self.same[k];
            !taken.contains(n) && used.get(n).is_none_or(same)
        };
        if range.lo == range.hi {
            return Some(range.lo).filter(free).into_iter().collect();
        }
        let near = self.typical[k].min(usual);
        // Of few values the others, too.
        let more = (way == Way::Apart).then(|| around(range, near, Way::Near).take(MOST_TRIED));
        let all = around(range, near, way).chain(more.into_iter().flatten());
        all.filter(free).take(MOST_TRIED).collect()
    }

    /// Whether the facts hold whose symbols have numbers, this one among them.
    fn holds(&self, k: usize, values: &[Option<i64>]) -> bool {
        let number = |v: VarId| values[*self.number.get(&v)?];
        self.named[k].iter().all(|i| {
            let held = self.p.facts[*i].holds(self.p, &number);
            matches!(held, Ok(None | Some(true)))
        })
    }

    /// Narrows ranges by these facts, and by those about what they narrow; what was there before
    /// goes to `before`.
    ///
    /// # Errors
    /// The fact that leaves nothing of one.
    fn narrow(
        &self,
        ranges: &mut [Range],
        before: &mut Vec<(usize, Range)>,
        mut todo: Vec<usize>,
    ) -> Result<(), usize> {
        let mut budget = MOST_NARROWED.saturating_mul(self.linear.len() + 1);
        todo.reverse();
        while let Some(i) = todo.pop() {
            let fact = &self.linear[i];
            for (k, by) in &fact.terms {
                let range = ranges[*k];
                let least = fact.least_without(*k, ranges);
                // `by * x` is at least this.
                let by = i128::from(*by);
                let narrowed = match by > 0 {
                    true => Range { lo: clamped(div_up(least, by)).max(range.lo), ..range },
                    false => Range { hi: clamped(div_down(-least, -by)).min(range.hi), ..range },
                };
                let narrowed = narrowed.tight().ok_or(i)?;
                if narrowed == range {
                    continue;
                }
                before.push((*k, range));
                ranges[*k] = narrowed;
                // What would go on narrowing without an end is left to the search.
                budget = match budget.checked_sub(1) {
                    Some(budget) => budget,
                    None => return Ok(()),
                };
                todo.extend(self.about[*k].iter().filter(|other| **other != i));
            }
        }
        Ok(())
    }
}

impl Linear {
    fn of(p: &Program, of: usize, d: Dim, number: &HashMap<VarId, usize>) -> Option<Self> {
        let Dim::Expr(id) = d else { return None };
        match p.arena.node(id) {
            Node::Var(v) => Some(Linear { of, terms: vec![(*number.get(&v)?, 1)], constant: 0 }),
            Node::Linear { terms, constant } => {
                let one = |(id, by): &(_, i64)| {
                    let symbol = p.arena.var_id(Dim::Expr(*id))?;
                    Some((*number.get(&symbol)?, *by))
                };
                let terms = terms.iter().map(one).collect::<Option<_>>()?;
                Some(Linear { of, terms, constant })
            }
            _ => None,
        }
    }

    /// The least that the term of a symbol can be, the others as large as they can be.
    fn least_without(&self, k: usize, ranges: &[Range]) -> i128 {
        let most = |(at, by): &(usize, i64)| {
            let end = if *by > 0 { ranges[*at].hi } else { ranges[*at].lo };
            i128::from(*by) * i128::from(end)
        };
        let others = self.terms.iter().filter(|(at, _)| *at != k);
        others.map(most).fold(-i128::from(self.constant), i128::saturating_sub)
    }
}

/// For each symbol the first of those that facts `x <= y` make equal to it.
fn equal(n: usize, linear: &[Linear]) -> Vec<usize> {
    let mut larger: Vec<Vec<usize>> = vec![vec![]; n];
    for fact in linear.iter().filter(|f| f.constant <= 0) {
        if let [(a, 1), (b, -1)] | [(b, -1), (a, 1)] = fact.terms[..] {
            larger[b].push(a);
        }
    }
    let reached = |from: usize| {
        let (mut seen, mut todo) = (vec![false; n], vec![from]);
        while let Some(k) = todo.pop() {
            if !std::mem::replace(&mut seen[k], true) {
                todo.extend(&larger[k]);
            }
        }
        seen
    };
    let mut same: Vec<usize> = (0..n).collect();
    let in_facts: Vec<usize> = (0..n).filter(|k| !larger[*k].is_empty()).collect();
    let all: Vec<(usize, Vec<bool>)> = in_facts.into_iter().map(|k| (k, reached(k))).collect();
    for (i, (k, of)) in all.iter().enumerate() {
        let first = all[..i].iter().find(|(other, from)| of[*other] && from[*k]);
        same[*k] = first.map_or(*k, |(other, _)| same[*other]);
    }
    same
}

/// Values of a range around a number, the nearest first.
fn around(range: &Range, near: i64, way: Way) -> impl Iterator<Item = i64> {
    let Range { lo, hi, residue } = *range;
    let own = match way {
        Way::Apart | Way::Near => range.odd(),
        Way::Any => residue,
    };
    let step = match way {
        Way::Apart => {
            u64::try_from(own.by).ok().and_then(|by| (APART as u64).checked_next_multiple_of(by))
        }
        Way::Near | Way::Any => u64::try_from(own.by).ok(),
    };
    let step = step.and_then(|step| i64::try_from(step).ok()).unwrap_or(MOST);
    let near = near.clamp(lo, hi);
    let below = near.checked_sub(own.rest).map(|n| near - n.rem_euclid(own.by));
    let start = below.filter(|n| *n >= lo).or_else(|| own.least(lo)).unwrap_or(near);
    let both = (0i64..).map_while(move |k| {
        let apart = k.checked_mul(step)?;
        let (up, down) = (start.checked_add(apart), start.checked_sub(apart));
        let inside = |n: Option<i64>| n.filter(|n| (lo..=hi).contains(n));
        let found = [inside(up), inside(down).filter(|_| k > 0)];
        (found != [None, None]).then_some(found)
    });
    both.flatten().flatten()
}

fn div_up(a: i128, by: i128) -> i128 {
    -((-a).div_euclid(by))
}

fn div_down(a: i128, by: i128) -> i128 {
    a.div_euclid(by)
}

fn clamped(n: i128) -> i64 {
    n.clamp(-i128::from(MOST), i128::from(MOST)) as i64
}
