//! Decides whether operands whose extents contain symbols fit their spec for all values of the
//! symbols, for V0208 (the shapes do not fit the spec).
//!
//! First, extents that are provably equal are replaced by one of them. If the operands then fit,
//! they pass. Otherwise, a search looks for a counterexample: values of the symbols that satisfy
//! all facts, and for which the extents do not fit. The verifier refuses the spec if there is one.
//! Undecided cases pass, except for a matrix product in which two symbols that are not known to be
//! equal meet.

use super::state::{Asked, Verifier};
use crate::expr::prove::{self, Budget};
use crate::expr::{Dim, VarId};
use crate::program::{Condition, Fact, Program, differences, sides};

/// The maximal number of steps of one proof.
const MAX_PROOF_STEPS: usize = 10_000;
/// The maximal number of values that the search tries for one spec.
const MAX_LOOKS_OF_ONE: usize = 1 << 11;
/// The maximal number of different extents of one spec that are compared.
const MAX_COMPARED: usize = 16;
/// The maximal number of symbols that get values for one spec.
const MAX_SYMBOLS: usize = 64;
/// The maximal number of facts that are considered for one spec.
const MAX_FACTS: usize = 64;

/// A symbol and its value.
pub(super) type Value = (VarId, i64);

impl Asked {
    /// The comparisons over symbols that follow if a condition holds, or if it does not.
    pub(super) fn of(p: &Program, cond: &[Condition], hold: bool) -> Option<Asked> {
        let known = |dim: Dim| p.arena.vars_of(dim).iter().all(|v| p.symbols.contains(v));
        let all: Vec<_> = cond.iter().filter(|(a, _, b)| known(*a) && known(*b)).copied().collect();
        // A negated conjunction says nothing about a subset of its comparisons.
        let says = if hold { !all.is_empty() } else { all.len() == cond.len() };
        says.then_some(Asked { all, hold })
    }

    fn vars(&self, p: &Program) -> Vec<VarId> {
        sides(&self.all).flat_map(|dim| p.arena.vars_of(dim)).collect()
    }

    /// Whether it holds for these values; `None` if a value is missing.
    fn is_kept(&self, p: &Program, value: &dyn Fn(VarId) -> Option<i64>) -> Option<bool> {
        if self.vars(p).iter().any(|v| value(*v).is_none()) {
            return None;
        }
        let side = |dim| p.arena.eval(dim, value).ok();
        let one = |(a, op, b): &Condition| Some(op.holds(side(*a)?, side(*b)?));
        let answers: Option<Vec<bool>> = self.all.iter().map(one).collect();
        Some(answers.is_some_and(|all| all.iter().all(|held| *held) == self.hold))
    }
}

impl Verifier<'_> {
    /// Replaces provably equal extents by one of them.
    pub(super) fn unified(&mut self, shapes: &[Vec<Dim>], asked: &[Asked]) -> Vec<Vec<Dim>> {
        let mut kept: Vec<Dim> = vec![];
        let mut unified = shapes.to_vec();
        for dim in unified.iter_mut().flatten() {
            if dim.as_const().is_some() || kept.contains(dim) {
                continue;
            }
            match kept.iter().find(|other| self.is_equal(**other, *dim, asked)) {
                Some(same) => *dim = *same,
                None if kept.len() < MAX_COMPARED => kept.push(*dim),
                None => {}
            }
        }
        unified
    }

    /// Whether two extents are provably equal.
    pub(super) fn is_equal(&mut self, x: Dim, y: Dim, asked: &[Asked]) -> bool {
        if x == y {
            return true;
        }
        if asked.is_empty()
            && let Some(known) = self.questions.equal.get(&(x, y))
        {
            return *known;
        }
        let Some(left) = self.questions.proofs.checked_sub(1) else { return false };
        self.questions.proofs = left;
        let p = self.p;
        let facts = self.questions.facts.get_or_insert_with(|| p.assumptions());
        let of_all = facts.len();
        for (a, op, b) in asked.iter().filter(|asked| asked.hold).flat_map(|asked| &asked.all) {
            differences(&p.arena, *a, *op, *b).into_iter().for_each(|d| facts.push(&p.arena, d));
        }
        let mut budget = Budget::new(MAX_PROOF_STEPS);
        let mut below = |x, y| prove::proves(&p.arena, (x, y, 0), facts, &mut budget);
        let equal = below(x, y) && below(y, x);
        facts.truncate(of_all);
        if asked.is_empty() {
            self.questions.equal.insert((x, y), equal);
        }
        equal
    }

    /// Whether the budget of proofs is exhausted.
    pub(super) fn has_decided_enough(&self) -> bool {
        self.questions.proofs == 0
    }

    /// A counterexample: values of the symbols in the extents that satisfy all facts and enclosing
    /// conditions, and for which the operands do not fit.
    pub(super) fn misfit(
        &mut self,
        shapes: &[Vec<Dim>],
        asked: &[Asked],
        fits: &dyn Fn(&[Vec<i64>]) -> bool,
    ) -> Option<Vec<Value>> {
        let p = self.p;
        let mut symbols: Vec<VarId> = vec![];
        for var in shapes.iter().flatten().flat_map(|d| p.arena.vars_of(*d)) {
            if !p.symbols.contains(&var) {
                return None;
            }
            if !symbols.contains(&var) {
                symbols.push(var);
            }
        }
        let own = symbols.len();
        let mut search = Search { p, symbols, own, facts: vec![], asked, values: vec![], looks: 0 };
        search.looks = self.questions.looks.min(MAX_LOOKS_OF_ONE);
        self.questions.looks -= search.looks;
        let wrong = |values: &[Value]| {
            let side = |d: &Dim| p.arena.eval(*d, &|v| of(values, v)).ok().filter(|n| *n >= 0);
            let shape = |shape: &Vec<Dim>| shape.iter().map(side).collect();
            let numbers: Option<Vec<Vec<i64>>> = shapes.iter().map(shape).collect();
            numbers.is_some_and(|shapes| !fits(&shapes))
        };
        let found = search.connect() && search.choose(&wrong);
        self.questions.looks += search.looks;
        found.then(|| search.values[..own].to_vec())
    }
}

/// The value of a symbol.
fn of(values: &[Value], symbol: VarId) -> Option<i64> {
    values.iter().find(|(v, _)| *v == symbol).map(|(_, n)| *n)
}

struct Search<'a> {
    p: &'a Program,
    /// The symbols of the extents, followed by symbols that facts connect to them.
    symbols: Vec<VarId>,
    /// The number of symbols of the extents.
    own: usize,
    /// The facts about these symbols.
    facts: Vec<&'a Fact>,
    asked: &'a [Asked],
    /// The values of the first symbols.
    values: Vec<Value>,
    /// The number of values that may still be tried.
    looks: usize,
}

impl Search<'_> {
    /// Collects the symbols and facts connected to the extents' symbols; returns false if there are
    /// too many.
    fn connect(&mut self) -> bool {
        let of_fact = |fact: &Fact| {
            let sides = [fact.lhs, fact.rhs].map(|side| self.p.arena.vars_of(side));
            sides.concat()
        };
        let mut left: Vec<(Option<&Fact>, Vec<VarId>)> =
            self.p.facts.iter().map(|fact| (Some(fact), of_fact(fact))).collect();
        left.extend(self.asked.iter().map(|asked| (None, asked.vars(self.p))));
        loop {
            let about = |vars: &Vec<VarId>| vars.iter().any(|v| self.symbols.contains(v));
            let (near, far): (Vec<_>, Vec<_>) = left.into_iter().partition(|(_, v)| about(v));
            if near.is_empty() {
                return true;
            }
            for (fact, vars) in near {
                self.facts.extend(fact);
                for var in vars {
                    if !self.symbols.contains(&var) {
                        self.symbols.push(var);
                    }
                }
            }
            if self.symbols.len() > MAX_SYMBOLS || self.facts.len() > MAX_FACTS {
                return false;
            }
            left = far;
        }
    }

    /// Chooses values of all symbols for which the extents do not fit. The recursion ends because
    /// each call adds a value.
    fn choose(&mut self, wrong: &dyn Fn(&[Value]) -> bool) -> bool {
        let at = self.values.len();
        if at == self.own && !wrong(&self.values) {
            return false;
        }
        let Some(symbol) = self.symbols.get(at).copied() else { return true };
        for value in self.candidates(symbol) {
            let Some(left) = self.looks.checked_sub(1) else { return false };
            self.looks = left;
            self.values.push((symbol, value));
            if self.is_kept() && self.choose(wrong) {
                return true;
            }
            self.values.truncate(at);
        }
        false
    }

    /// Whether no fact or condition fails for the values chosen so far.
    fn is_kept(&self) -> bool {
        let value = |v| of(&self.values, v);
        let kept = |fact: &&Fact| matches!(fact.holds(self.p, &value), Ok(None | Some(true)));
        self.facts.iter().all(kept)
            && self.asked.iter().all(|asked| asked.is_kept(self.p, &value) != Some(false))
    }

    /// Candidate values of a symbol. Those that no other symbol has come first.
    fn candidates(&self, symbol: VarId) -> Vec<i64> {
        /// Small numbers, primes, and common tile sizes.
        const SOME: [i64; 12] = [5, 7, 11, 13, 17, 64, 100, 128, 1000, 1024, 4096, 65536];
        /// The number of smallest values to try.
        const FEW: i64 = 8;
        let info = self.p.arena.var_info(symbol);
        let (lo, hi, div) = (info.lo, info.hi, info.div.max(1));
        let up = |v: i64| info.multiple_from(v);
        let mut near: Vec<i64> = self.values.iter().rev().map(|(_, n)| *n).collect();
        // The values that facts compare it with.
        let value = |v| of(&self.values, v);
        for fact in &self.facts {
            for (own, other) in [(fact.lhs, fact.rhs), (fact.rhs, fact.lhs)] {
                if self.p.arena.var_id(own) == Some(symbol)
                    && let Ok(n) = self.p.arena.eval(other, &value)
                {
                    near.push(n);
                }
            }
        }
        let mut all: Vec<i64> = SOME.iter().filter_map(|n| up((*n).max(lo))).collect();
        all.extend((0..FEW).filter_map(|i| up(lo)?.checked_add(i.checked_mul(div)?)));
        let around =
            |n: &i64| [up(*n), up(*n).and_then(|n| n.checked_add(div)), n.checked_sub(div)];
        all.extend(near.iter().flat_map(around).flatten().filter_map(up));
        all.extend(hi.map(|hi| hi - hi.rem_euclid(div)));
        let (new, used): (Vec<i64>, Vec<i64>) =
            all.into_iter().partition(|n| !self.values.iter().any(|(_, other)| other == n));
        info.in_range([new, used].concat())
    }
}
