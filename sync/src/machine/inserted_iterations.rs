//! Turns that may be inserted into loops.
//!
//! Let the loops of a nest turn *c* times. If a *stretch* of *m* of their turns ends in the state
//! in which it began, but for *m* more turns of all these loops, it may be executed any number of
//! times. All other turns stay as they are if each of their decisions is the same: before the
//! stretch at the same turn, within it and behind it at a turn that is so much later
//! ([`Along::Number`], [`Along::Inserted`]). Then what was followed for *c* turns holds for *c* +
//! *m*, *c* + 2*m*, and so on.

use super::loops::{Moves, Stretch, moves};
use super::*;

impl<'p, 'a> Machine<'p, 'a> {
    /// A loop of a nest has turned.
    pub(super) fn turned_within(&mut self, nest: Nest, turn: u64) {
        let (length, at) = (self.exprs.given(nest).by, nest as usize);
        let stretch = &mut self.rounds.stretch[at];
        if self.watch.number[at].is_none_or(|n| n == 0) || turn <= stretch.turn {
            return;
        }
        stretch.turn = turn;
        // Turns are inserted once.
        if self.is_inserted(nest) {
            return;
        }
        // A decision that inserted turns change must lie before the stretch.
        if self.watch.inserted[at].is_none_or(|n| n < FOREVER) {
            self.rounds.stretch[at].states.clear();
            self.watch.inserted[at] = Some(FOREVER);
        }
        self.each_of(nest, |by, _| by.inserted[at] = length);
        self.overhead += self.cost();
        let now = (self.fingerprint(), self.moving());
        let states = &mut self.rounds.stretch[at].states;
        states.push_back(now);
        if states.len() as i64 <= length {
            return;
        }
        let before = states.pop_front();
        let (Some((fingerprint, old)), Some((same, new))) = (before, states.back()) else { return };
        if fingerprint == *same && moves(&old, new) == Some(self.moved(nest, length)) {
            self.watch.inserted[at] = None;
            self.each_of(nest, |by, _| {
                (by.number[at], by.inserted[at]) = (length, 0);
            });
        }
    }

    /// Threads leave a loop.
    pub(super) fn leaves(&mut self, var: VarId) {
        if let Some(nest) = self.exprs.nest_of(var) {
            let at = nest as usize;
            (self.rounds.stretch[at], self.watch.inserted[at]) = (Stretch::default(), None);
        }
    }

    /// Whether turns have been inserted into a loop of a nest in which threads are.
    fn is_inserted(&self, nest: Nest) -> bool {
        let loops = self.locksteps.iter().flat_map(|s| &s.env.loops);
        loops
            .filter(|held| held.by.number[nest as usize] != 0)
            .any(|held| self.exprs.nest_of(held.var) == Some(nest))
    }

    /// Changes of all loops of a nest by how much the variable moves; and the end, and by how much
    /// that does.
    pub(super) fn each_of(&mut self, nest: Nest, f: impl Fn(&mut Steps, (&mut Value, &mut Steps))) {
        let exprs = self.exprs;
        self.each_moving(|_, _, held, end| {
            if exprs.nest_of(held.var) == Some(nest) {
                f(&mut held.by, end);
            }
        });
    }

    /// So many more turns of all loops of a nest.
    pub(super) fn moved(&self, nest: Nest, n: i64) -> Moves {
        let of = |var| match self.exprs.nest_of(var) == Some(nest) {
            true => (n, 0, n.unsigned_abs()),
            false => (0, 0, 0),
        };
        self.in_order().into_iter().map(|s| s.loops().map(of).collect()).collect()
    }
}
