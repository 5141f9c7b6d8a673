//! Who arrived in a phase of an mbarrier, and what happened before what.
//!
//! An mbarrier counts an arrival in the phase that runs when it comes, whichever that is. In phase
//! p it is sure to count only if all that completed phase p - 1 happened before. Else the threads
//! may go on in another order, in which it comes before one of those arrivals, counts in its place,
//! and completes p - 1 too early.

use super::clock::{Clocks, Entry, Part};

/// What completed a phase: arrivals of threads, and those that come when bytes do.
#[derive(Clone, Default)]
pub(crate) struct Arrivals {
    list: Vec<Arrived>,
    /// That they have come is known to who waited for the phase of the mbarrier: its agent, and how
    /// many phases are complete with this one.
    complete: (u16, Entry),
}

/// The arrivals of an agent.
#[derive(Clone)]
struct Arrived {
    agent: u16,
    /// Its lanes, each up to its last arrival.
    lanes: Entry,
    /// Whether they come some time later, when copies have.
    later: bool,
    /// The last one's statement.
    site: u32,
}

impl Arrivals {
    /// Lanes of a warp arrive; `later`: when their copies are complete. Or an mbarrier's own agent,
    /// for the bytes of copies.
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

    /// All have come; so many phases of the mbarrier with this agent are complete.
    pub(crate) fn are_complete(mut self, agent: u16, phases: u32) -> Self {
        self.complete = (agent, Entry::up_to(phases));
        self
    }

    /// The statement of an arrival that need not happen before these lanes come here; `later`: what
    /// they do happens when their copies are complete.
    pub(crate) fn unordered(&self, clocks: &Clocks, part: Part, later: bool) -> Option<u32> {
        let (agent, phases) = &self.complete;
        let waited = !self.list.is_empty() && clocks.happened(part, (*agent, phases));
        let happens_before = |arrived: &Arrived| match arrived.later {
            _ if waited => true,
            false => clocks.happened(part, (arrived.agent, &arrived.lanes)),
            // A thread's copies are complete when those before them are.
            true => later && clocks.are_its_own(part, (arrived.agent, &arrived.lanes)),
        };
        self.list.iter().find(|a| !happens_before(a)).map(|arrived| arrived.site)
    }
}
