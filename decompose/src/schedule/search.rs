//! Searches for a schedule at one initiation interval ([`Search`]), by branch and bound over the
//! order of operations that exclude each other.
//!
//! A node of the search is a [`Net`] of difference constraints. Each pair of operations narrows the
//! window in which the start of one may lie as seen from the other, and no server may be overfull,
//! until nothing changes. A pair that no k fits ends the branch, and one that a single k fits is
//! decided ([`super::system`] defines k). The earliest starts are then a solution of everything
//! decided so far. If no pair overlaps at them, they are the best schedule below the node;
//! otherwise the search branches on k of a pair that does.

use super::net::Net;
use super::system::{Difference, Exclusion, Pair, Start, System, ceil};

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Starts.
    Starts(Vec<i64>),
    /// There are none.
    Nothing,
    /// The limit on nodes was reached.
    Limit,
}

/// What all searches of one problem share.
#[derive(Clone, Debug)]
pub(super) struct Effort {
    /// Nodes visited so far, and at most.
    pub(super) visited: u64,
    pub(super) limit: u64,
    /// How often each pair has ended a branch, and once more: what has done so often is decided
    /// first (Boussemart et al., *Boosting Systematic Search by Weighting Constraints*, ECAI 2004).
    weights: Vec<u64>,
    /// The pair of two starts.
    pairs: Vec<Option<usize>>,
}

impl Effort {
    pub(super) fn new(system: &System) -> Self {
        let n = system.starts;
        let mut pairs = vec![None; n * n];
        for (at, pair) in system.pairs.iter().enumerate() {
            for e in &pair.on {
                let (i, j) = e.starts;
                (pairs[i * n + j], pairs[j * n + i]) = (Some(at), Some(at));
            }
        }
        Effort { visited: 0, limit: 0, weights: vec![1; system.pairs.len()], pairs }
    }

    /// Counts a node; false where it is one too many.
    fn visit(&mut self) -> bool {
        let more = self.visited < self.limit;
        self.visited += u64::from(more);
        more
    }
}

/// A search at one initiation interval.
pub(super) struct Search<'a> {
    pub(super) ii: i64,
    pub(super) system: &'a System,
    pub(super) effort: &'a mut Effort,
}

/// What is known of the order of a pair.
enum Window {
    /// k is one of these, from the first to the second.
    Between(i64, i64),
    /// Each may lie anywhere as seen from the other.
    Open,
}

/// What the cheapest two ways to decide a pair cost.
type Costs = (i64, i64);

/// A branch that has no solution.
#[derive(Debug)]
struct Dead;

/// Periods between starts, where they are known.
struct Decided {
    n: usize,
    periods: Vec<Option<i64>>,
}

impl Decided {
    fn get(&self, i: Start, j: Start) -> Option<i64> {
        self.periods[i * self.n + j]
    }

    fn set(&mut self, i: Start, j: Start, k: i64) {
        self.periods[i * self.n + j] = Some(k);
        self.periods[j * self.n + i] = Some(1 - k);
    }
}

impl<'a> Search<'a> {
    fn window(&self, net: &Net, pair: &Pair) -> Window {
        let (mut least, mut most) = (i64::MIN, i64::MAX);
        for &Exclusion { starts: (i, j), cycles: (first, second) } in &pair.on {
            let (Some(low), Some(back)) = (net.least(i, j), net.least(j, i)) else {
                return Window::Open;
            };
            least = least.max(ceil(first + back, self.ii));
            most = most.min((self.ii - second - low).div_euclid(self.ii));
        }
        Window::Between(least, most)
    }

    /// Decides k of a pair; false where that is impossible.
    fn decide(&self, net: &mut Net, pair: &Pair, k: i64) -> bool {
        let all = pair.on.iter().flat_map(|e| e.at(k)).map(|d| d.at(self.ii));
        all.fold(true, |fine, (from, to, cycles)| fine && net.add(from, to, cycles))
    }

    /// Narrows windows until nothing changes; false where one is empty.
    fn propagate(&mut self, net: &mut Net) -> bool {
        loop {
            match self.narrowed(net) {
                Ok(true) => {}
                Ok(false) => return true,
                Err(Dead) => return false,
            }
        }
    }

    /// Whether something has changed.
    fn narrowed(&mut self, net: &mut Net) -> Result<bool, Dead> {
        let system = self.system;
        let mut changed = false;
        let mut decided = Decided { n: system.starts, periods: vec![None; system.starts.pow(2)] };
        for (at, pair) in system.pairs.iter().enumerate() {
            let Window::Between(least, most) = self.window(net, pair) else { continue };
            let mut narrow = || {
                for e in &pair.on {
                    // As late as k lets j be, and as early.
                    let [late, early] = [e.at(most)[0], e.at(least)[1]].map(|d| d.at(self.ii));
                    for (from, to, cycles) in [late, early] {
                        changed |= net.least(from, to) < Some(cycles);
                        if !net.add(from, to, cycles) {
                            return false;
                        }
                    }
                    if least == most {
                        decided.set(e.starts.0, e.starts.1, least);
                    }
                }
                true
            };
            if least > most || !narrow() {
                self.effort.weights[at] += 1;
                return Err(Dead);
            }
        }
        for list in &system.servers {
            changed |= self.fill(net, list, &mut decided)?;
            changed |= self.follow(net, list)?;
        }
        Ok(changed)
    }

    fn blame(&mut self, i: Start, j: Start) -> Dead {
        if let Some(at) = self.effort.pairs[i * self.system.starts + j] {
            self.effort.weights[at] += 1;
        }
        Dead
    }

    /// Between two operations of a server there is room for all that it serves between them, and it
    /// serves nothing there that there is no room for. Whether something has changed.
    fn fill(
        &mut self,
        net: &mut Net,
        list: &[(Start, i64)],
        decided: &mut Decided,
    ) -> Result<bool, Dead> {
        let mut changed = false;
        for &(i, cycles) in list {
            for &(j, _) in list {
                let Some(k) = decided.get(i, j) else { continue };
                // From the start of i to that of j in its period k.
                let within = |x: Start| {
                    let both = decided.get(i, x).zip(decided.get(x, j));
                    both.is_some_and(|(first, second)| first + second == k)
                };
                let others = list.iter().filter(|(x, _)| within(*x));
                let filled = others.fold(cycles, |all, (_, cycles)| all + cycles);
                let least = filled - k * self.ii;
                if net.least(i, j).is_none_or(|known| known < least) {
                    changed = true;
                    if !net.add(i, j, least) {
                        return Err(self.blame(i, j));
                    }
                }
                let Some(back) = net.least(j, i) else { continue };
                let room = k * self.ii - back - filled;
                for &(x, _) in list.iter().filter(|(x, own)| *own > room && *x != i && *x != j) {
                    let (from, to, k) = match (decided.get(i, x), decided.get(x, j)) {
                        (Some(first), None) => (x, j, k + 1 - first),
                        (None, Some(second)) => (i, x, k + 1 - second),
                        _ => continue,
                    };
                    changed = true;
                    decided.set(from, to, k);
                    if !self.decide_starts(net, from, to, k) {
                        self.blame(i, j);
                        return Err(self.blame(from, to));
                    }
                }
            }
        }
        Ok(changed)
    }

    /// Decides k of the pair of two starts; false where that is impossible.
    fn decide_starts(&self, net: &mut Net, from: Start, to: Start, k: i64) -> bool {
        let at = self.effort.pairs[from * self.system.starts + to];
        let Some(pair) = at.and_then(|at| self.system.pairs.get(at)) else { return true };
        let forward = pair.on.iter().any(|e| e.starts == (from, to));
        self.decide(net, pair, if forward { k } else { 1 - k })
    }

    /// An operation starts after all that its server must serve before it, and before all that
    /// comes after. Whether something has changed.
    fn follow(&mut self, net: &mut Net, list: &[(Start, i64)]) -> Result<bool, Dead> {
        let origin = net.origin();
        let mut changed = false;
        let mut add = |net: &mut Net, from, to, cycles| {
            let more = net.least(from, to).is_none_or(|known| known < cycles);
            changed |= more;
            if !more || net.add(from, to, cycles) { Ok(()) } else { Err(Dead) }
        };
        for &(o, cycles) in list {
            let (mut first, mut before) = (i64::MAX, 0);
            let (mut last, mut after) = (Some(i64::MIN), 0);
            for &(x, own) in list.iter().filter(|(x, _)| *x != o) {
                if net.least(x, o).is_some_and(|apart| apart >= own) {
                    (first, before) = (first.min(net.earliest(x)), before + own);
                }
                if net.least(o, x).is_some_and(|apart| apart >= cycles) {
                    let end = net.least(x, origin).map(|latest| own - latest);
                    (last, after) = (last.zip(end).map(|(a, b)| a.max(b)), after + own);
                }
            }
            if before > 0 {
                add(net, origin, o, first + before)?;
            }
            if let (Some(last), 1..) = (last, after) {
                add(net, o, origin, after + cycles - last)?;
            }
        }
        Ok(changed)
    }

    /// Any starts that satisfy all constraints. It is searched again from the beginning, each time
    /// longer, with what was learnt of pairs that are hard to decide.
    ///
    /// Either all windows are bounded, or differences lead both ways wherever they lead one way,
    /// but from the origin: then operations that are not connected yet may be moved by whole
    /// periods, and one k stands for all.
    pub(super) fn feasible(&mut self, net: &Net) -> Found {
        /// Nodes of the first attempt.
        const FIRST: u64 = 32;
        let (limit, mut nodes) = (self.effort.limit, FIRST);
        loop {
            self.effort.limit = limit.min(self.effort.visited + nodes);
            let last = self.effort.limit == limit;
            let found = self.descend(net.clone());
            self.effort.limit = limit;
            if found != Found::Limit || last {
                return found;
            }
            nodes += nodes / 2;
        }
    }

    fn descend(&mut self, mut net: Net) -> Found {
        if !self.effort.visit() {
            return Found::Limit;
        }
        if !self.propagate(&mut net) {
            return Found::Nothing;
        }
        let Some((pair, window)) = self.chosen(&net) else { return Found::Starts(net.starts()) };
        let near = pair.on.first().map_or(0, |e| e.period(|s| net.earliest(s), self.ii));
        let (least, most) = match window {
            Window::Between(least, most) => (least, most),
            Window::Open => (near, near),
        };
        for k in outward(near, least, most) {
            let mut below = net.clone();
            if !self.decide(&mut below, pair, k) {
                continue;
            }
            match self.descend(below) {
                Found::Nothing => {}
                found => return found,
            }
        }
        Found::Nothing
    }

    /// Of the pairs that overlap at the earliest starts, the one with the fewest ks for its weight,
    /// of these the longest.
    fn chosen(&self, net: &Net) -> Option<(&'a Pair, Window)> {
        let system: &'a System = self.system;
        let mut best: Option<((u64, u64, i64), &'a Pair)> = None;
        for (pair, weight) in system.pairs.iter().zip(&self.effort.weights) {
            if pair.period(|s| net.earliest(s), self.ii).is_some() {
                continue;
            }
            let n = match self.window(net, pair) {
                Window::Between(least, most) => most.abs_diff(least) + 1,
                Window::Open => 1,
            };
            let cycles = pair.on.iter().map(|e| e.cycles.0 + e.cycles.1).sum();
            let better = |&((m, other, known), _): &((u64, u64, i64), _)| {
                let (own, its) = (n.saturating_mul(other), m.saturating_mul(*weight));
                own < its || own == its && cycles > known
            };
            if best.as_ref().is_none_or(better) {
                best = Some(((n, *weight, cycles), pair));
            }
        }
        let (_, pair) = best?;
        Some((pair, self.window(net, pair)))
    }

    /// The starts of the least sum over operations, if it is below that of `best`, which they
    /// replace; false where the limit was reached. All windows must be bounded.
    pub(super) fn least_sum(&mut self, mut net: Net, best: &mut Vec<i64>) -> bool {
        if !self.effort.visit() {
            return false;
        }
        if !self.propagate(&mut net) || !self.bound(&mut net, best) {
            return true;
        }
        // The pair that costs most whatever k is.
        let mut chosen: Option<(Costs, &Pair, (i64, i64))> = None;
        for pair in self.overlaps(&net) {
            let Window::Between(least, most) = self.window(&net, pair) else { continue };
            let mut costs = (i64::MAX, i64::MAX);
            for cost in (least..=most).filter_map(|k| self.cost(&net, pair, k)) {
                costs = if cost < costs.0 { (cost, costs.0) } else { (costs.0, costs.1.min(cost)) };
            }
            if chosen.is_none_or(|(known, ..)| known < costs) {
                chosen = Some((costs, pair, (least, most)));
            }
        }
        let Some((_, pair, (least, most))) = chosen else {
            *best = net.starts();
            return true;
        };
        let below = (least..=most).filter_map(|k| {
            let mut below = net.clone();
            let possible = self.decide(&mut below, pair, k);
            possible.then(|| (self.sum(&below), below))
        });
        let mut below: Vec<(i64, Net)> = below.collect();
        below.sort_by_key(|(sum, _)| *sum);
        below.into_iter().all(|(_, net)| self.least_sum(net, best))
    }

    /// By how much the sum of starts rises at least where k of a pair is decided so; none where
    /// that is impossible.
    fn cost(&self, net: &Net, pair: &Pair, k: i64) -> Option<i64> {
        let rise = |d: Difference| {
            let (from, to, cycles) = d.at(self.ii);
            if net.least(to, from).is_some_and(|back| back + cycles > 0) {
                return None;
            }
            let from = net.earliest(from) + cycles;
            let rise = |o: Start| {
                let later = net.least(to, o).map_or(0, |more| from + more - net.earliest(o));
                later.max(0)
            };
            Some((0..self.system.operations).map(rise).sum::<i64>())
        };
        let all = pair.on.iter().flat_map(|e| e.at(k));
        all.map(rise).try_fold(0, |most, rise| Some(rise?.max(most)))
    }

    /// Pairs that overlap at the earliest starts.
    fn overlaps<'n>(&'n self, net: &'n Net) -> impl Iterator<Item = &'n Pair> + 'n {
        let overlap = |p: &&Pair| p.period(|s| net.earliest(s), self.ii).is_none();
        self.system.pairs.iter().filter(overlap)
    }

    /// The sum of the earliest starts of operations.
    fn sum(&self, net: &Net) -> i64 {
        (0..self.system.operations).map(|o| net.earliest(o)).sum()
    }

    /// Adds what starts of a sum below that of the best must satisfy; false where there are none.
    fn bound(&self, net: &mut Net, best: &[i64]) -> bool {
        let most = best.iter().take(self.system.operations).sum::<i64>() - 1;
        let slack = most - self.sum(net);
        // Operations of an agent wait for each other.
        let agents = self.system.servers.iter().take(self.system.agents);
        let waiting = agents.map(|list| {
            let alone: i64 = list.iter().map(|(o, _)| net.earliest(*o)).sum();
            queued(list.iter().map(|(o, cycles)| (*cycles, net.earliest(*o))).collect()) - alone
        });
        if slack < waiting.sum() {
            return false;
        }
        let origin = net.origin();
        (0..self.system.operations).all(|o| {
            let latest = net.earliest(o) + slack;
            net.add(o, origin, -latest)
        })
    }
}

/// The numbers of a range, those near one first.
fn outward(near: i64, least: i64, most: i64) -> impl Iterator<Item = i64> {
    let near = near.min(most).max(least - 1);
    let far = (near - least).max(most - near).max(0);
    let both = (0..=far).flat_map(move |d| [near - d, near + 1 + d]);
    both.filter(move |k| (least..=most).contains(k))
}

/// The least sum of starts of jobs, each with its cycles and its earliest start, that are served
/// one at a time and may be interrupted: the one with the fewest cycles left is served first
/// (Schrage 1968).
fn queued(mut left: Vec<(i64, i64)>) -> i64 {
    let all: i64 = left.iter().map(|(cycles, _)| cycles).sum();
    let (mut now, mut ends) = (0, 0);
    while let Some(first) = left.iter().map(|(_, from)| *from).min() {
        now = now.max(first);
        let next = left.iter().map(|(_, from)| *from).filter(|from| *from > now).min();
        let ready = (0..left.len()).filter(|i| left[*i].1 <= now);
        let Some(at) = ready.min_by_key(|i| left[*i].0) else { break };
        let served = next.map_or(left[at].0, |next| left[at].0.min(next - now));
        now += served;
        left[at].0 -= served;
        if left[at].0 == 0 {
            left.remove(at);
            ends += now;
        }
    }
    ends - all
}
