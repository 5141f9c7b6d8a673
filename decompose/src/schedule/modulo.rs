//! [`Schedule`] is a modulo schedule, from which its methods derive stages, the order of issue,
//! depths of rings, and groups in flight.

use super::problem::{Kind, Problem};
use super::system::ceil;
use std::collections::BTreeMap;

/// How far the search has proved that a schedule is the best. Each value implies those before it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Proof {
    /// It is the best schedule that was found.
    Nothing,
    /// No schedule has a shorter initiation interval.
    Interval,
    /// No schedule with this initiation interval has fewer stages.
    Depth,
    /// No schedule with as many stages has a lower sum of starts.
    Starts,
}

/// Starts of the operations of one iteration; each iteration starts them II cycles after the one
/// before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// The initiation interval II: cycles from one iteration to the next.
    pub ii: i64,
    /// The lower bound of it from resources.
    pub resource_bound: i64,
    /// The lower bound of it from cycles of dependences.
    pub recurrence_bound: i64,
    /// It was proved that none is less than this: the gap is `ii - least_ii`.
    pub least_ii: i64,
    /// What was proved.
    pub proof: Proof,
    /// The start of each operation, at which its agent issues it; the first is 0.
    pub start: Vec<i64>,
    /// When its engine begins to work on it: where it is asynchronous it may wait in a queue, less
    /// than a period.
    pub begin: Vec<i64>,
    /// Nodes that the search visited.
    pub nodes: u64,
}

/// A wait that an agent executes before an operation.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// Before which operation.
    pub operation: usize,
    /// For which queue.
    pub queue: usize,
    /// How many groups, one for each operation of the queue, may be left in flight. They are the
    /// last that were issued.
    pub in_flight: i64,
}

/// What a schedule does not satisfy.
#[cfg(test)]
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    #[error("{0:?}")]
    Dependence(super::problem::Dependence),
    #[error("{operation} begins {waits} cycles after its start")]
    Begin { operation: usize, waits: i64 },
    #[error("{0} and {1} overlap on {2}")]
    Overlap(usize, usize, usize),
    #[error("{0} and {1} pass each other")]
    Passing(usize, usize),
}

impl Schedule {
    /// The stage of an operation: it belongs to the iteration that began so many periods before.
    pub(crate) fn stage(&self, operation: usize) -> i64 {
        self.start[operation].div_euclid(self.ii)
    }

    /// Whether an operation is not done yet when that of the next iteration is issued.
    pub(crate) fn runs_on(&self, problem: &Problem, operation: usize) -> bool {
        let done = self.begin[operation].saturating_add(problem.operations[operation].latency);
        self.start[operation].saturating_add(self.ii) < done
    }

    /// How many stages it has.
    pub(crate) fn depth(&self) -> i64 {
        (0..self.start.len()).map(|o| self.stage(o)).max().unwrap_or(0) + 1
    }

    /// The operations of each agent in the order in which a period of the steady state issues them.
    pub(crate) fn order(&self, problem: &Problem) -> Vec<Vec<usize>> {
        let ranks = self.ranks(problem);
        let mut all: Vec<usize> = (0..self.start.len()).collect();
        all.sort_by_key(|o| (self.start[*o].rem_euclid(self.ii), ranks[*o], *o));
        let mut out = vec![vec![]; problem.agents.len()];
        all.into_iter().for_each(|o| out[problem.operations[o].agent].push(o));
        out
    }

    /// Of operations that start in the same cycle, how many wait for each other before each:
    /// dependences without latency say which comes first.
    pub(crate) fn ranks(&self, problem: &Problem) -> Vec<usize> {
        let mut ranks = vec![0; self.start.len()];
        for _ in 0..self.start.len() {
            for d in &problem.dependences {
                if self.start[d.from] == self.start[d.to] + d.distance * self.ii {
                    ranks[d.to] = ranks[d.to].max(ranks[d.from] + 1);
                }
            }
        }
        ranks
    }

    /// Whether it satisfies all dependences, and no two operations overlap on what serves one at a
    /// time. Says what does not hold.
    #[cfg(test)]
    pub(crate) fn check(&self, problem: &Problem) -> Result<(), Violation> {
        for d in &problem.dependences {
            if self.start[d.to] + d.distance * self.ii < self.begin[d.from] + d.latency {
                return Err(Violation::Dependence(*d));
            }
        }
        for (o, of) in problem.operations.iter().enumerate() {
            let waits = self.begin[o] - self.start[o];
            if !(0..self.ii).contains(&waits) || of.queue.is_none() && waits != 0 {
                return Err(Violation::Begin { operation: o, waits });
            }
        }
        let n = problem.agents.len();
        for server in 0..n + problem.resources.len() {
            let mut taken = BTreeMap::new();
            let resource = server.checked_sub(n);
            if resource.is_some_and(|r| !problem.resources[r].serial) {
                continue;
            }
            for (o, of) in problem.operations.iter().enumerate() {
                let uses = of.uses.iter().filter(|u| Some(u.resource) == resource);
                let (from, cycles) = match resource {
                    Some(_) => (self.begin[o], uses.map(|u| u.cycles).sum()),
                    None => (self.start[o], if of.agent == server { of.held } else { 0 }),
                };
                for cycle in from..from + cycles {
                    if let Some(other) = taken.insert(cycle.rem_euclid(self.ii), o) {
                        return Err(Violation::Overlap(other, o, server));
                    }
                }
            }
        }
        self.check_queues(problem)
    }

    /// Whether engines take operations of one agent in the order of issue.
    #[cfg(test)]
    fn check_queues(&self, problem: &Problem) -> Result<(), Violation> {
        let serial = |o: usize| {
            let uses = &problem.operations[o].uses;
            uses.iter().any(|u| problem.resources[u.resource].serial && u.cycles > 0)
        };
        for i in 0..self.start.len() {
            for j in i + 1..self.start.len() {
                let (a, b) = (&problem.operations[i], &problem.operations[j]);
                let one = a.queue.is_some() && (a.queue, a.agent) == (b.queue, b.agent);
                let both = one && serial(i) && serial(j) && a.held > 0 && b.held > 0;
                let period = |at: &[i64]| (at[j] - at[i]).div_euclid(self.ii);
                if both && period(&self.start) != period(&self.begin) {
                    return Err(Violation::Passing(i, j));
                }
            }
        }
        Ok(())
    }

    /// The stages that each ring must have: an iteration that comes so many after another writes
    /// the stage of that one when all that read it are done. An asynchronous reader is not done
    /// before its engine is.
    pub(crate) fn depths(&self, problem: &Problem) -> Vec<i64> {
        let mut out = vec![1; problem.rings.len()];
        for d in &problem.dependences {
            let Kind::Anti { ring: Some(ring) } = d.kind else { continue };
            // The distance of the dependence is that of the text and the ring's stages.
            let of_text = d.distance - problem.rings[ring].stages;
            let cycles = self.begin[d.from] + d.latency - self.start[d.to];
            out[ring] = out[ring].max(ceil(cycles, self.ii) - of_text);
        }
        out
    }

    /// The waits of agents for what they have issued themselves: before operations that depend on
    /// an asynchronous one of another queue, or of none, where no wait before that has waited for
    /// as much. A group is one operation; groups of a queue complete in order.
    pub(crate) fn waits(&self, problem: &Problem) -> Vec<Wait> {
        let ranks = self.ranks(problem);
        let at = |o: usize, period: i64| (self.start[o] + period * self.ii, ranks[o], o);
        // Periods in which an operation is issued before a place in the order, the first of them
        // far back.
        let issued = |o: usize, place: (i64, usize, usize)| {
            let until = if (ranks[o], o) < (place.1, place.2) { place.0 } else { place.0 - 1 };
            (until - self.start[o]).div_euclid(self.ii)
        };
        // How many operations of a queue are issued from one place on, before another.
        let between = |agent: usize, queue: usize, from, to| -> i64 {
            let all = problem.operations.iter().enumerate();
            let of_queue = all.filter(|(_, of)| (of.queue, of.agent) == (Some(queue), agent));
            of_queue.map(|(o, _)| issued(o, to) - issued(o, from)).sum()
        };
        let mut found: BTreeMap<(usize, usize), i64> = BTreeMap::new();
        for d in &problem.dependences {
            let (from, to) = (&problem.operations[d.from], &problem.operations[d.to]);
            let Some(queue) = from.queue else { continue };
            let waits = problem.queues[queue].groups && from.agent == to.agent;
            if !waits || to.queue == Some(queue) {
                continue;
            }
            // Behind what is waited for.
            let (time, rank, o) = at(d.from, -d.distance);
            let left = between(to.agent, queue, (time, rank, o + 1), at(d.to, 0));
            let known = found.entry((d.to, queue)).or_insert(left);
            *known = (*known).min(left);
        }
        let known = |(o, queue): (usize, usize), left: i64| {
            let agent = problem.operations[o].agent;
            found.iter().any(|((other, same), of_other)| {
                let own =
                    *same == queue && problem.operations[*other].agent == agent && *other != o;
                // The last time that the other waited.
                let before = at(*other, issued(*other, at(o, 0)));
                own && of_other + between(agent, queue, before, at(o, 0)) <= left
            })
        };
        let needed = found.iter().filter(|(of, left)| !known(**of, **left));
        let wait = |(&(operation, queue), &in_flight)| Wait { operation, queue, in_flight };
        needed.map(wait).collect()
    }
}
