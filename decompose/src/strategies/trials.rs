//! Solves the layouts of instances, those of the least bound first, while a bound beats the best
//! ([`Trials`]).

use super::larger;
use super::params::Pins;
use super::write::{Executors, Instance};
use crate::cost::constants::ALIKE;
use crate::names::Names;
use crate::strategies::candidates::{Candidate, Choosing, Ranked, Ranking, Reason, Trial};
use crate::strategies::matched::Match;
use carbyne_ir::ast::{Module, Stmt};
use carbyne_ir::diag::{Diagnostic, Diagnostics};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Instances whose layouts are solved at most, of one kernel.
const MOST_SOLVED: usize = 8;

/// How many instances are listed.
pub(super) const MOST_LISTED: usize = 64;

/// The kernel-level spec that instances are of.
#[derive(Copy, Clone)]
pub(super) struct Wanted<'a> {
    pub(super) stmt: &'a Stmt,
    pub(super) executors: Option<&'a Executors>,
    pub(super) names: &'a Names,
    pub(super) pins: &'a Pins,
}

impl Ranked {
    /// A candidate that is not solved yet.
    fn of(c: &Candidate) -> Self {
        let (by, bound) = (c.by.clone(), Some(c.bound));
        Ranked { by, bound, cycles: None, spills: false, partial: c.unknown, refused: None }
    }
}

/// An instance that is solved.
struct Solved {
    /// Which candidate.
    of: usize,
    module: Module,
    /// What was looked at for kernels that it leaves to other strategies.
    more: Vec<Ranking>,
    /// Whether a block has the shared memory that it needs.
    fits: bool,
    spills: bool,
    cycles: f64,
    /// Whether all its accesses are known to be ordered.
    ordered: bool,
}

/// What has become of the candidates so far.
pub(super) struct Trials<'a> {
    choosing: &'a Choosing<'a>,
    wanted: Wanted<'a>,
    matches: &'a [Match<'a>],
    /// Best bounds first.
    candidates: &'a [Candidate],
    solved: Vec<Solved>,
    /// By how much bounds of a match were too low, at least.
    over: Vec<Option<f64>>,
    /// Of each candidate, a number for all that differ from it in the place of warps alone.
    tiles: Vec<usize>,
    /// The same as `over`, by these numbers.
    over_tile: Vec<Option<f64>>,
    /// Matches whose bodies cannot be written, or hold no leaf for the atom that is pinned.
    hopeless: HashSet<usize>,
    /// Strategies that are listed.
    named: HashSet<&'a str>,
    /// Of the first instance that cannot be.
    pub(super) errors: Option<Diagnostics>,
}

impl<'a> Trials<'a> {
    pub(super) fn new(
        choosing: &'a Choosing<'a>,
        wanted: Wanted<'a>,
        matches: &'a [Match<'a>],
        candidates: &'a [Candidate],
    ) -> Self {
        let mut numbers = HashMap::new();
        let tile = |c: &Candidate| {
            let all = numbers.len();
            *numbers.entry((c.of, larger::but_warps(matches[c.of].def, &c.numbers))).or_insert(all)
        };
        let tiles: Vec<usize> = candidates.iter().map(tile).collect();
        Trials {
            over_tile: vec![None; candidates.len()],
            tiles,
            choosing,
            wanted,
            matches,
            candidates,
            solved: vec![],
            over: vec![None; matches.len()],
            hopeless: HashSet::new(),
            named: HashSet::new(),
            errors: None,
        }
    }

    /// The best instance, and which candidate it is of. Whatever was looked at goes into the
    /// ranking, why a strategy has nothing to offer into `refusals`.
    pub(super) fn best(
        &mut self,
        ranking: &mut Ranking,
        refusals: &mut BTreeMap<String, Reason>,
    ) -> Option<(Module, Vec<Ranking>, usize)> {
        let mut left: Vec<usize> = (0..self.candidates.len()).collect();
        let mut unsolved = vec![];
        while let Some(at) = self.next(&left) {
            let i = left.remove(at);
            let c = &self.candidates[i];
            if self.hopeless.contains(&c.of) {
                continue;
            }
            let mut ranked = Ranked::of(c);
            if self.is_beaten(c, ranking) {
                unsolved.push(i);
                // The best of each strategy, whatever there is of others.
                let first = self.named.insert(&self.matches[c.of].def.name.text);
                if ranking.instances.len() < MOST_LISTED || first {
                    ranking.instances.push(ranked);
                }
                continue;
            }
            self.solve(i, &mut ranked, ranking, refusals);
            ranking.instances.push(ranked);
        }
        // Another way to lay it over the spec's modes has the same name, and a pin of it would look
        // at both.
        if let Some(by) = self.first().map(|i| &self.candidates[self.solved[i].of].by) {
            for i in unsolved.into_iter().filter(|i| self.candidates[*i].by == *by) {
                let c = &self.candidates[i];
                let mut ranked = Ranked::of(c);
                self.solve(i, &mut ranked, ranking, refusals);
                ranking.instances.push(ranked);
            }
        }
        let best = self.ordered(ranking);
        let chosen = best.as_ref().map(|(_, _, i)| self.candidates[*i].by.as_str());
        self.sort(ranking, chosen);
        best
    }

    /// The place of the one to solve next: that with the least bound, corrected by what those of
    /// its strategy have shown.
    fn next(&self, left: &[usize]) -> Option<usize> {
        let key = |i: usize| {
            let c = &self.candidates[i];
            let over = match self.over_tile[self.tiles[i]] {
                Some(over) => over * ALIKE,
                None => self.over[c.of].unwrap_or(1.0),
            };
            ((c.unknown, c.spills), c.bound * over)
        };
        let less = |a: usize, b: usize| {
            let (a, b) = (key(a), key(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        };
        (0..left.len()).min_by(|x, y| less(left[*x], left[*y]))
    }

    /// The place of the best that is solved: among equals the same one whatever else was solved,
    /// and in which order.
    fn first(&self) -> Option<usize> {
        let less = |a: &Solved, b: &Solved| {
            let cycles = a.cycles.total_cmp(&b.cycles);
            let worse = (!a.fits, a.spills).cmp(&(!b.fits, b.spills));
            worse.then(cycles).then(a.of.cmp(&b.of))
        };
        (0..self.solved.len()).min_by(|i, j| less(&self.solved[*i], &self.solved[*j]))
    }

    /// Whether a candidate is not worth solving. What does not fit, or spills, is no reason to end
    /// the search.
    fn is_beaten(&self, c: &Candidate, ranking: &Ranking) -> bool {
        let Some(best) = self.first().map(|i| &self.solved[i]) else {
            return ranking.counts.1 >= 2 * MOST_SOLVED;
        };
        let runs_well = best.fits && !best.spills;
        ranking.counts.1 >= 2 * MOST_SOLVED
            || runs_well && (self.solved.len() >= MOST_SOLVED || c.bound >= best.cycles)
            || c.unknown
    }

    /// Solves an instance. What must stand between its accesses is found for the first alone: it
    /// changes no estimate.
    fn solve(
        &mut self,
        i: usize,
        ranked: &mut Ranked,
        ranking: &mut Ranking,
        refusals: &mut BTreeMap<String, Reason>,
    ) {
        let c = &self.candidates[i];
        let m = &self.matches[c.of];
        let instance = Instance::of(m, &c.numbers);
        let module = match self.choosing.module_of(&instance, self.wanted) {
            Ok(module) => module,
            Err(why) => {
                ranked.refused = Some(why.to_string());
                refusals.entry(m.def.name.text.clone()).or_insert(why);
                self.hopeless.insert(c.of);
                return;
            }
        };
        ranking.counts.1 += 1;
        let ordered = self.solved.is_empty();
        let is_planned = !c.unknown && instance.is_apart();
        let planned = match is_planned {
            true => (self.choosing.plan)(&module, self.wanted.names),
            false => Ok((module, vec![])),
        };
        let (module, more) = match planned {
            Ok(planned) => planned,
            Err(e) => return self.refuse(e, c.of, ranked),
        };
        let launches = if is_planned { self.choosing.launches(&module) } else { 0.0 };
        match (self.choosing.solve)(&module, ordered) {
            Ok(Trial { cycles, spills, shared }) => {
                let cycles = cycles + launches;
                // What is written by hand is costed by the bound alone.
                let cycles = cycles.max(c.bound);
                (ranked.cycles, ranked.spills) = (Some(cycles), spills);
                let own = cycles / c.bound.max(1.0);
                self.over[c.of] = Some(self.over[c.of].map_or(own, |o| o.min(own)));
                let of_tile = &mut self.over_tile[self.tiles[i]];
                *of_tile = Some(of_tile.map_or(own, |o| o.min(own)));
                let fits = self.choosing.fits(shared);
                self.solved.push(Solved { of: i, module, more, fits, spills, cycles, ordered });
            }
            Err(e) => self.refuse(e, c.of, ranked),
        }
    }

    /// Puts a candidate first, as the chosen one, with what it takes.
    pub(super) fn take(
        &mut self,
        i: usize,
        ranking: &mut Ranking,
        refusals: &mut BTreeMap<String, Reason>,
    ) {
        let c = &self.candidates[i];
        let found = ranking.instances.iter().position(|r| r.by == c.by);
        let fresh = Ranked::of(c);
        let mut ranked = found.map_or(fresh, |at| ranking.instances.remove(at));
        if ranked.cycles.is_none() && ranked.refused.is_none() {
            self.solve(i, &mut ranked, ranking, refusals);
        }
        ranking.instances.insert(0, ranked);
    }

    fn refuse(&mut self, errors: Diagnostics, of: usize, ranked: &mut Ranked) {
        ranked.refused = errors.iter().next().map(|d| format!("{}: {}", d.code, d.message));
        let m = &self.matches[of];
        let theirs = m.file.theirs(&m.def.name.text);
        let noted = |d: Diagnostic| match theirs {
            Some(theirs) => d.note(format!("written by {theirs}")),
            None => d,
        };
        self.errors.get_or_insert_with(|| errors.into_iter().map(noted).collect());
    }

    /// The best of those whose accesses can be ordered.
    fn ordered(&mut self, ranking: &mut Ranking) -> Option<(Module, Vec<Ranking>, usize)> {
        while let Some(at) = self.first() {
            let solved = self.solved.swap_remove(at);
            let done = match solved.ordered {
                true => Ok(()),
                false => (self.choosing.solve)(&solved.module, true).map(drop),
            };
            let Err(errors) = done else {
                return Some((solved.module, solved.more, solved.of));
            };
            let by = &self.candidates[solved.of].by;
            if let Some(ranked) = ranking.instances.iter_mut().find(|r| r.by == *by) {
                ranked.cycles = None;
                self.refuse(errors, self.candidates[solved.of].of, ranked);
            }
        }
        None
    }

    /// The chosen one, then best first; those that were not solved come where bounds of those like
    /// them have shown them to belong.
    fn sort(&self, ranking: &mut Ranking, chosen: Option<&str>) {
        let over = |(i, c): (usize, &'a Candidate)| {
            Some((c.by.as_str(), self.over_tile[self.tiles[i]].or(self.over[c.of])?))
        };
        let factor: HashMap<&str, f64> =
            self.candidates.iter().enumerate().filter_map(over).collect();
        let key = |r: &Ranked| {
            let bound = r.bound.unwrap_or(f64::MAX);
            let expected = bound * factor.get(r.by.as_str()).copied().unwrap_or(1.0);
            ((r.refused.is_some(), Some(r.by.as_str()) != chosen), r.cycles.unwrap_or(expected))
        };
        ranking.instances.sort_by(|a, b| {
            let (x, y) = (key(a), key(b));
            x.0.cmp(&y.0).then(x.1.total_cmp(&y.1))
        });
        // A strategy may be laid over the modes of a spec in more than one way.
        let mut seen = HashSet::new();
        ranking.instances.retain(|r| seen.insert(r.by.clone()));
    }
}
