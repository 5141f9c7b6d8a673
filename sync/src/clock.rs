//! Defines the vector clock ([`Clock`]): for each agent, the latest time that is ordered before the
//! owner of the clock. An agent is here a class of threads (`clocks.rs`), or a counter of phases
//! (of an mbarrier or of the barrier of a cluster). Two accesses are ordered if the clock of the
//! second one has reached the time of the first one.

/// The owner of a clock entry: a class of threads, or a counter of phases.
pub(crate) type Agent = u32;

/// The time of each agent; missing entries are 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Clock(Vec<u32>);

impl Clock {
    #[inline]
    pub(crate) fn get(&self, agent: Agent) -> u32 {
        self.0.get(agent as usize).copied().unwrap_or(0)
    }
    pub(crate) fn raise(&mut self, agent: Agent, time: u32) {
        let i = agent as usize;
        if self.0.len() <= i {
            self.0.resize(i + 1, 0);
        }
        if let Some(entry) = self.0.get_mut(i) {
            *entry = time.max(*entry);
        }
    }
    pub(crate) fn join(&mut self, other: &Clock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a = (*a).max(*b));
    }
}
