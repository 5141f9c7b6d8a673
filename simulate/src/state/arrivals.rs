//! Records the arrivals of a phase of an mbarrier, and checks that each of them counts in this
//! phase under every schedule.
//!
//! An mbarrier counts an arrival in the phase that is current when the arrival executes. An arrival
//! is certain to count in phase p only if everything that completed phase p - 1 happened before.
//! Otherwise, under another schedule, it may execute before one of those arrivals, count instead of
//! it, and complete p - 1 too early.

use super::clock::{Clocks, Entry, Part};

/// The arrivals that complete a phase: those of threads, and those of bytes.
#[derive(Clone, Default)]
pub(crate) struct Arrivals {
    list: Vec<Arrived>,
    /// The mbarrier's agent, and the number of complete phases including this one. A thread that
    /// waited for the phase knows that all arrivals have happened.
    complete: (u16, Entry),
}

/// The arrivals of an agent.
#[derive(Clone)]
struct Arrived {
    agent: u16,
    /// The agent's lanes, each up to its last arrival.
    lanes: Entry,
    /// Whether the arrivals happen later, when copies are complete.
    later: bool,
    /// The statement of the last arrival.
    site: u32,
}

impl Arrivals {
    /// Adds arrivals of lanes of a warp; `later`: when their copies are complete. The agent may
    /// also be that of an mbarrier, for bytes of copies.
    pub(crate) fn add(&mut self, agent: u16, lanes: &Entry, later: bool, site: u32) {
        let same = |a: &&mut Arrived| (a.agent, a.later) == (agent, later);
        match self.list.iter_mut().find(same) {
            Some(arrived) => {
                arrived.lanes.join(lanes);
                arrived.site = site;
            }
            None => self.list.push(Arrived { agent, lanes: lanes.clone(), later, site }),
        }
    }

    /// Marks the phase as complete, with the agent of the mbarrier and its number of complete
    /// phases.
    pub(crate) fn are_complete(mut self, agent: u16, phases: u32) -> Self {
        self.complete = (agent, Entry::up_to(phases));
        self
    }

    /// The statement of an arrival that is not ordered before the arrival of these lanes; `later`:
    /// these lanes arrive when their copies are complete.
    pub(crate) fn unordered(&self, clocks: &Clocks, part: Part, later: bool) -> Option<u32> {
        let (agent, phases) = &self.complete;
        let waited = !self.list.is_empty() && clocks.happened(part, (*agent, phases));
        let happens_before = |arrived: &Arrived| match arrived.later {
            _ if waited => true,
            false => clocks.happened(part, (arrived.agent, &arrived.lanes)),
            // The copies of a thread complete in order.
            true => later && clocks.are_its_own(part, (arrived.agent, &arrived.lanes)),
        };
        self.list.iter().find(|a| !happens_before(a)).map(|arrived| arrived.site)
    }
}
