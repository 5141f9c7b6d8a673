//! States a scheduling problem as constraints on starts: how many cycles lie between them, and
//! which operations exclude each other.
//!
//! Each operation has a start, at which its agent issues it. An operation that an engine works on
//! has a second start, if the engine serves one operation at a time: when the engine begins. The
//! engine begins not before the issue, and less than a period after it; until then the operation
//! waits in the queue. The operands must be there when the operation is issued, since its agent
//! waits for them; the result is there so many cycles after the engine began.
//!
//! Two operations that one server keeps busy for d(i) and d(j) cycles do not overlap modulo II if
//! and only if there is an integer k with
//!
//! ```text
//! σ(j) − σ(i) ≥ d(i) − k·II        j starts after i of k iterations before is done,
//! σ(i) − σ(j) ≥ d(j) − (1 − k)·II  and is done before the next i starts.
//! ```
//!
//! k is the number of the period of i in which j starts. For operations of one queue, k is equal
//! for the agent that issues them and for the engine, which takes them in the order of issue.

use super::net::Net;
use super::problem::Problem;
use std::collections::BTreeMap;

/// A start: of an operation, by its number, or of an engine.
pub(super) type Start = usize;

/// σ(to) + distance·II ≥ σ(from) + cycles.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) from: Start,
    pub(super) to: Start,
    pub(super) cycles: i64,
    pub(super) distance: i64,
}

impl Difference {
    /// At an initiation interval: so many cycles lie between both.
    pub(super) fn at(&self, ii: i64) -> (Start, Start, i64) {
        (self.from, self.to, self.cycles - self.distance * ii)
    }
}

/// Two starts on one server, and for how long each keeps out the other.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Exclusion {
    pub(super) starts: (Start, Start),
    pub(super) cycles: (i64, i64),
}

impl Exclusion {
    /// That j starts in period k of i.
    pub(super) fn at(&self, k: i64) -> [Difference; 2] {
        let ((i, j), (first, second)) = (self.starts, self.cycles);
        [
            Difference { from: i, to: j, cycles: first, distance: k },
            Difference { from: j, to: i, cycles: second, distance: 1 - k },
        ]
    }

    /// The period of i in which j starts.
    pub(super) fn period(&self, starts: impl Fn(Start) -> i64, ii: i64) -> i64 {
        -(starts(self.starts.1) - starts(self.starts.0)).div_euclid(ii)
    }
}

/// Two operations that exclude each other: on their agent, on a resource, or on both in the same
/// order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) on: Vec<Exclusion>,
}

impl Pair {
    /// The period of the first in which the second starts, if that is the same on all servers, and
    /// they overlap on none.
    pub(super) fn period(&self, starts: impl Fn(Start) -> i64, ii: i64) -> Option<i64> {
        let k = self.on.first()?.period(&starts, ii);
        let holds = |d: Difference| starts(d.to) + d.distance * ii >= starts(d.from) + d.cycles;
        self.on.iter().flat_map(|e| e.at(k)).all(holds).then_some(k)
    }
}

/// The constraints of a problem.
#[derive(Clone, Debug, Default)]
pub(super) struct System {
    /// Operations, whose starts come first.
    pub(super) operations: usize,
    /// Starts in all.
    pub(super) starts: usize,
    /// When the engine of an operation begins, or it itself.
    pub(super) begins: Vec<Start>,
    pub(super) differences: Vec<Difference>,
    pub(super) pairs: Vec<Pair>,
    /// Starts with the cycles for which they keep a server busy, by server: the agents, then the
    /// resources that serve one operation at a time.
    pub(super) servers: Vec<Vec<(Start, i64)>>,
    /// How many of them are agents.
    pub(super) agents: usize,
    /// The least initiation interval for which there are cycles enough.
    pub(super) least: i64,
}

impl System {
    pub(super) fn of(p: &Problem) -> Self {
        let (operations, agents) = (p.operations.len(), p.agents.len());
        let mut out = System { operations, starts: operations, agents, ..System::default() };
        out.servers = vec![vec![]; agents + p.resources.len()];
        for (o, of) in p.operations.iter().enumerate() {
            let mut busy = BTreeMap::new();
            for u in of.uses.iter().filter(|u| p.resources[u.resource].serial && u.cycles > 0) {
                *busy.entry(agents + u.resource).or_insert(0) += u.cycles;
            }
            let mut begin = o;
            if of.queue.is_some() && !busy.is_empty() {
                begin = out.starts;
                out.starts += 1;
                let between = |from, to, cycles| Difference { from, to, cycles, distance: cycles };
                out.differences.extend([between(o, begin, 0), between(begin, o, 1)]);
            }
            out.begins.push(begin);
            if of.held > 0 {
                out.servers[of.agent].push((o, of.held));
            }
            busy.into_iter().for_each(|(server, cycles)| out.servers[server].push((begin, cycles)));
        }
        for d in &p.dependences {
            let (from, to) = (out.begins[d.from], d.to);
            let (cycles, distance) = (d.latency, d.distance);
            out.differences.push(Difference { from, to, cycles, distance });
        }
        out.pair(p);
        out.least = out.bound(p);
        out
    }

    /// Which operations exclude each other.
    fn pair(&mut self, p: &Problem) {
        let mut operation: Vec<usize> = (0..self.starts).collect();
        self.begins.iter().enumerate().for_each(|(o, begin)| operation[*begin] = o);
        // Of operations of one queue and one agent there is one order.
        let queue = |o: usize| p.operations[o].queue.map(|q| (q, p.operations[o].agent));
        // By operations; what an engine orders by itself is apart.
        type Key = (usize, usize, Option<(Start, Start)>);
        let mut pairs: BTreeMap<Key, Pair> = BTreeMap::new();
        for list in &self.servers {
            for (at, (i, first)) in list.iter().enumerate() {
                for (j, second) in &list[at + 1..] {
                    let (a, b) = (operation[*i], operation[*j]);
                    let one = queue(a).is_some() && queue(a) == queue(b);
                    let both = (*i == a) == (*j == b) && (*i == a || one);
                    let apart = (!both).then_some((*i, *j));
                    let known = pairs.entry((a, b, apart)).or_default();
                    let of = known.on.iter_mut().find(|e| e.starts == (*i, *j));
                    match of {
                        Some(e) => {
                            e.cycles = (e.cycles.0.max(*first), e.cycles.1.max(*second));
                        }
                        None => {
                            known.on.push(Exclusion { starts: (*i, *j), cycles: (*first, *second) })
                        }
                    }
                }
            }
        }
        self.pairs = pairs.into_values().collect();
    }

    /// The sum of the uses of each server in an iteration, and of what is shared out; of two
    /// operations that exclude each other on several servers, the longest on each side.
    fn bound(&self, p: &Problem) -> i64 {
        let busy = self.servers.iter().map(|list| list.iter().map(|(_, cycles)| cycles).sum());
        let exclusions = self.pairs.iter().flat_map(|p| &p.on);
        let both = exclusions.map(|e| e.cycles.0 + e.cycles.1);
        let shared = (0..p.resources.len()).map(|r| {
            let uses = p.operations.iter().flat_map(|o| &o.uses);
            uses.filter(|u| u.resource == r).map(|u| u.cycles).sum()
        });
        busy.chain(both).chain(shared).fold(1, i64::max)
    }

    /// The net of differences at an initiation interval; none where they contradict each other.
    pub(super) fn net(&self, ii: i64) -> Option<Net> {
        Net::new(self.starts, self.differences.iter().map(|d| d.at(ii)))
    }

    /// The net of those differences that lie on cycles of them.
    pub(super) fn cycles(&self, ii: i64) -> Option<Net> {
        let all = self.net(ii)?;
        let both = |&(i, j, _): &(Start, Start, i64)| {
            all.least(i, j).is_some() && all.least(j, i).is_some()
        };
        Net::new(self.starts, self.differences.iter().map(|d| d.at(ii)).filter(both))
    }

    /// The net of all differences, in which no operation starts in a stage after the one of this
    /// number.
    pub(super) fn within(&self, ii: i64, depth: i64) -> Option<Net> {
        let ends = (0..self.operations).map(|o| (o, self.starts, 1 - (depth + 1) * ii));
        Net::new(self.starts, self.differences.iter().map(|d| d.at(ii)).chain(ends))
    }

    /// The least initiation interval, up to one that is feasible, for which no cycle of differences
    /// contradicts itself.
    pub(super) fn recurrence(&self, feasible: i64) -> i64 {
        let (mut low, mut high) = (1, feasible);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.net(middle) {
                Some(_) => high = middle,
                None => low = middle + 1,
            }
        }
        low
    }
}

/// The quotient, rounded up.
pub(super) fn ceil(a: i64, b: i64) -> i64 {
    -(-a).div_euclid(b)
}
