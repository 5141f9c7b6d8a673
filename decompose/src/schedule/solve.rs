//! Finds the best schedule of a problem ([`solve`]): the least initiation interval, with it the
//! least depth, and with that the least sum of starts.
//!
//! 1. *Lower bounds.* No initiation interval is below the cycles that a resource or an agent is
//!    busy for in an iteration, nor below the ratio of latency to distance of a cycle of
//!    dependences (Rau, *Iterative Modulo Scheduling*, MICRO-27, 1994).
//! 2. *Initiation interval.* A schedule stays one with a longer interval when each operation keeps
//!    its stage and its cycle in that: feasible intervals are all from the least one on, and
//!    bisection finds it. Only dependences on cycles of dependences matter, for all others hold
//!    once operations have moved by whole periods (Lam, *Software Pipelining*, PLDI 1988). A
//!    schedule that was found is shortened as far as its order of operations allows. A schedule at
//!    the lower bound is the best; another one is the best when the search has shown that none is
//!    shorter by a cycle.
//! 3. *Depth.* The number of the last stage, from that of the longest path of dependences on.
//! 4. *Starts.* The earliest in sum.
//!
//! Soi et al., *Twill*, arXiv 2512.18134, give an equal formulation, by an SMT solver and with
//! warps as resources.

use super::modulo::{Proof, Schedule};
use super::net::Net;
use super::problem::{Problem, Unsolvable};
use super::search::{Effort, Found, Search};
use super::system::{Pair, System, ceil};

/// Stages of schedules that are made shorter. No ring has as many.
const MOST_STAGES: i64 = 64;

/// Nodes that are enough for most loops of so many operations, and are visited in a fraction of a
/// second: the time for one grows with the third power of the number.
pub(crate) fn usual_nodes(operations: usize) -> u64 {
    let n = operations.max(20) as u64;
    (2000 * 20u64.pow(3) / n.pow(3)).max(32)
}

/// The best schedule of a problem, for which searches visit so many nodes at most.
///
/// # Errors
/// What is wrong with the problem. Where the nodes do not suffice the best schedule that was found
/// is returned, with what was proved of it.
pub(crate) fn solve(problem: &Problem, nodes: u64) -> Result<Schedule, Unsolvable> {
    let order = problem.checked()?;
    let system = System::of(problem);
    let mut best = serial(problem, &system, &order);
    let recurrence = system.recurrence(best.ii);
    let least = system.least.max(recurrence);
    let mut solver = Solver { effort: Effort::new(&system), system: &system, most: nodes };
    let least = solver.interval(least, &mut best);
    let interval = least == best.ii;
    let depth = solver.depth(&mut best);
    let starts = solver.sum(&mut best);
    let proof = match (interval, depth, starts) {
        (false, ..) => Proof::Nothing,
        (true, false, _) => Proof::Interval,
        (true, true, false) => Proof::Depth,
        (true, true, true) => Proof::Starts,
    };
    Ok(Schedule {
        nodes: solver.effort.visited,
        ..best.schedule(&system, recurrence, least, proof)
    })
}

/// The schedule of the text as it is written: each operation starts when the one before it is done.
///
/// # Errors
/// What is wrong with the problem.
pub(crate) fn identity(problem: &Problem) -> Result<Schedule, Unsolvable> {
    let order = problem.checked()?;
    let system = System::of(problem);
    let found = serial(problem, &system, &order);
    let recurrence = system.recurrence(found.ii);
    Ok(found.schedule(&system, recurrence, system.least.max(recurrence), Proof::Nothing))
}

/// An initiation interval, and starts that are a schedule at it.
#[derive(Clone, Debug)]
struct Candidate {
    ii: i64,
    starts: Vec<i64>,
}

impl Candidate {
    fn schedule(self, system: &System, recurrence: i64, least: i64, proof: Proof) -> Schedule {
        Schedule {
            ii: self.ii,
            resource_bound: system.least,
            recurrence_bound: recurrence,
            least_ii: least,
            proof,
            start: self.starts[..system.operations].to_vec(),
            begin: system.begins.iter().map(|s| self.starts[*s]).collect(),
            nodes: 0,
        }
    }

    /// The number of its last stage.
    fn depth(&self, operations: usize) -> i64 {
        self.starts.iter().take(operations).max().map_or(0, |last| last / self.ii)
    }
}

/// One operation after the other, each result awaited.
fn serial(problem: &Problem, system: &System, order: &[usize]) -> Candidate {
    let mut starts = vec![0; system.starts];
    let mut now = 0;
    for &o in order {
        (starts[o], starts[system.begins[o]]) = (now, now);
        let of = &problem.operations[o];
        let uses = of.uses.iter().map(|u| u.cycles);
        let awaited = problem.dependences.iter().filter(|d| d.from == o).map(|d| d.latency);
        now += uses.chain(awaited).fold(of.held.max(of.latency), i64::max);
    }
    Candidate { ii: now.max(system.least), starts }
}

struct Solver<'a> {
    system: &'a System,
    effort: Effort,
    /// Nodes that may be visited in all.
    most: u64,
}

impl Solver<'_> {
    /// A search at an initiation interval, for one part in so many of the nodes that are left.
    fn search(&mut self, ii: i64, part: u64) -> Search<'_> {
        let left = self.most - self.effort.visited;
        self.effort.limit = self.effort.visited + left.div_ceil(part);
        Search { ii, system: self.system, effort: &mut self.effort }
    }

    /// Shortens the initiation interval; below the number that is returned there is no schedule.
    fn interval(&mut self, least: i64, best: &mut Candidate) -> i64 {
        let (mut low, mut next) = (least, least);
        while next < best.ii {
            let middle = if next == least { least } else { next + (best.ii - next) / 2 };
            let found = match self.system.cycles(middle) {
                Some(net) => self.search(middle, 4).feasible(&net),
                None => Found::Nothing,
            };
            match found {
                Found::Starts(starts) => match self.lifted(middle, &starts) {
                    Some(found) => *best = self.shortened(found, low),
                    // Cannot be: what lies on no cycle moves by whole periods.
                    None => next = middle + 1,
                },
                Found::Nothing => (low, next) = (middle + 1, middle + 1),
                Found::Limit => next = middle + 1,
            }
        }
        low
    }

    /// Starts that satisfy all differences, each in the same cycle of the period as before.
    fn lifted(&self, ii: i64, starts: &[i64]) -> Option<Candidate> {
        let at = |s: usize| starts[s].rem_euclid(ii);
        let stages = self
            .system
            .differences
            .iter()
            .map(|d| (d.from, d.to, ceil(d.cycles + at(d.from) - at(d.to), ii) - d.distance));
        let net = Net::new(starts.len(), stages)?;
        let starts: Vec<i64> = (0..starts.len()).map(|s| net.earliest(s) * ii + at(s)).collect();
        Some(Candidate { ii, starts })
    }

    /// The same order of operations with the shortest initiation interval, not below `low`, and the
    /// earliest starts.
    fn shortened(&self, found: Candidate, low: i64) -> Candidate {
        let period = |pair: &Pair| pair.period(|s| found.starts[s], found.ii);
        let order: Vec<(&Pair, Option<i64>)> =
            self.system.pairs.iter().map(|pair| (pair, period(pair))).collect();
        let net = |ii: i64| {
            let ordered = order.iter().filter_map(|(pair, k)| Some((pair, (*k)?)));
            let ordered = ordered.flat_map(|(pair, k)| pair.on.iter().flat_map(move |e| e.at(k)));
            let all = self.system.differences.iter().copied().chain(ordered);
            Net::new(self.system.starts, all.map(|d| d.at(ii)))
        };
        let (mut least, mut ii) = (low.min(found.ii), found.ii);
        while least < ii {
            let middle = least + (ii - least) / 2;
            match net(middle) {
                Some(_) => ii = middle,
                None => least = middle + 1,
            }
        }
        net(ii).map_or(found, |net| Candidate { ii, starts: net.starts() })
    }

    /// Makes the depth the least; false where that is not known.
    fn depth(&mut self, best: &mut Candidate) -> bool {
        let (ii, operations) = (best.ii, self.system.operations);
        if best.depth(operations) > MOST_STAGES {
            return false;
        }
        let earliest = self.system.net(ii).map(|net| net.starts()).unwrap_or_default();
        let least = Candidate { ii, starts: earliest }.depth(operations);
        for depth in least..best.depth(operations) {
            let Some(net) = self.system.within(ii, depth) else { continue };
            match self.search(ii, 2).feasible(&net) {
                Found::Starts(starts) => {
                    *best = Candidate { ii, starts };
                    break;
                }
                Found::Nothing => {}
                Found::Limit => return false,
            }
        }
        true
    }

    /// Makes the sum of starts the least; false where that is not known.
    fn sum(&mut self, best: &mut Candidate) -> bool {
        let (ii, depth) = (best.ii, best.depth(self.system.operations));
        let Some(net) = self.system.within(ii, depth).filter(|_| depth <= MOST_STAGES) else {
            return false;
        };
        // What is gained by it is little, and where threads are always busy it takes long to prove.
        self.search(ii, 4).least_sum(net, &mut best.starts)
    }
}
