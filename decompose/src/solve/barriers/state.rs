//! What has happened up to a statement: accesses since the last barrier, and copies in flight.

use super::touch::Touch;

/// What has happened.
#[derive(Clone, Default)]
pub(super) struct State {
    /// Since the last barrier.
    pub(super) since: Vec<Touch>,
    /// Asynchronous copies of committed groups that nobody has waited for, with the number of groups that
    /// were committed after theirs, or the fewest on all ways to here.
    pub(super) pending: Vec<(i64, Touch)>,
    /// Those not committed.
    pub(super) open: Vec<Touch>,
    /// What asynchronous leaves of the text touch, till all are waited for.
    pub(super) said: Vec<Touch>,
}

/// Adds an access that is not there.
pub(super) fn add(list: &mut Vec<Touch>, touch: Touch) {
    if !list.iter().any(|t| touch.repeats(t)) {
        list.push(touch);
    }
}

impl State {
    /// Adds what has happened on another way.
    pub(super) fn join(&mut self, other: State) {
        other.since.into_iter().for_each(|t| add(&mut self.since, t));
        other.open.into_iter().for_each(|t| add(&mut self.open, t));
        other.said.into_iter().for_each(|t| add(&mut self.said, t));
        other.pending.into_iter().for_each(|(age, t)| self.fly(age, t));
    }

    fn fly(&mut self, age: i64, touch: Touch) {
        match self.pending.iter_mut().find(|(_, t)| touch.repeats(t)) {
            Some((known, _)) => *known = age.min(*known),
            None => self.pending.push((age, touch)),
        }
    }

    /// How much it holds; what is added, or in flight for fewer groups, changes it.
    pub(super) fn measure(&self) -> (usize, usize, usize, usize, i64) {
        let ages = self.pending.iter().map(|(age, _)| age).sum();
        (self.since.len(), self.open.len(), self.said.len(), self.pending.len(), ages)
    }

    pub(super) fn commit(&mut self) {
        self.pending.iter_mut().for_each(|(age, _)| *age += 1);
        for t in std::mem::take(&mut self.open) {
            self.fly(0, t);
        }
    }

    pub(super) fn wait(&mut self, n: i64) {
        let (done, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending).into_iter().partition(|(age, _)| *age >= n);
        self.pending = left;
        done.into_iter().for_each(|(_, t)| add(&mut self.since, t));
    }
}
