//! Extends a proof to larger trip counts: checks that iterations may be inserted into loops without
//! changing anything else.
//!
//! Let the loops of a nest have the trip count *c*. A *stretch* is a run of *m* of their
//! iterations. Suppose that the states at its beginning and at its end are equal, except that all
//! these loops are *m* iterations further. Then the stretch may be repeated any number of times.
//! The other iterations stay as they are if each of their decisions is the same: before the stretch
//! in the same iteration ([`Along::Number`]), within and after it *m* iterations later
//! ([`Along::Inserted`]). Then the result for *c* iterations holds for *c* + *m*, *c* + 2*m*, and
//! so on.

use super::loops::{Moves, Stretch, moves};
use super::*;

impl<'p, 'a> Machine<'p, 'a> {
    /// A loop of a nest begins an iteration.
    pub(super) fn turned_within(&mut self, nest: Nest, turn: u64) {
        let (length, at) = (self.exprs.given(nest).by, nest as usize);
        let stretch = &mut self.rounds.stretch[at];
        if self.watch.number[at].is_none_or(|n| n == 0) || turn <= stretch.turn {
            return;
        }
        stretch.turn = turn;
        // Iterations are inserted once per loop.
        if self.is_inserted(nest) {
            return;
        }
        // A decision that inserted iterations would change must lie before the stretch.
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

    /// Whether iterations have been inserted into a loop of a nest that threads are executing.
    fn is_inserted(&self, nest: Nest) -> bool {
        let loops = self.locksteps.iter().flat_map(|s| &s.env.loops);
        loops
            .filter(|held| held.by.number[nest as usize] != 0)
            .any(|held| self.exprs.nest_of(held.var) == Some(nest))
    }

    /// Calls `f` for all loops of a nest with the steps of the variable, the end, and the steps of
    /// the end.
    pub(super) fn each_of(&mut self, nest: Nest, f: impl Fn(&mut Steps, (&mut Value, &mut Steps))) {
        let exprs = self.exprs;
        self.each_moving(|_, _, held, end| {
            if exprs.nest_of(held.var) == Some(nest) {
                f(&mut held.by, end);
            }
        });
    }

    /// The moves of `n` further iterations of all loops of a nest.
    pub(super) fn moved(&self, nest: Nest, n: i64) -> Moves {
        let of = |var| match self.exprs.nest_of(var) == Some(nest) {
            true => (n, 0, n.unsigned_abs()),
            false => (0, 0, 0),
        };
        let counters = || self.counters.iter().map(|_| (0, 0, 0));
        self.in_order().into_iter().map(|s| s.loops().map(of).chain(counters()).collect()).collect()
    }
}
