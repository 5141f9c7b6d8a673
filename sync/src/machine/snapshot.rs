//! States of a kernel at the turns of its outer loops, from which it goes on for other numbers of
//! turns.

use super::loops::{Moving, moves};
use super::*;
use crate::fingerprint::Fingerprint;
use std::cell::OnceCell;

const OUTER: usize = Nest::Outer as usize;

/// A state at the beginning of a turn of the outer loops.
#[derive(Clone)]
pub(crate) struct Snapshot<'p, 'a> {
    pub(crate) machine: Machine<'p, 'a>,
    /// The least number of turns for which all is decided so far as it was.
    pub(crate) least: i64,
    /// Found where it is compared with that of another state.
    fingerprint: OnceCell<Fingerprint>,
    moving: Vec<Moving>,
}

impl<'p, 'a> Snapshot<'p, 'a> {
    /// After how many turns the state of another one has come again here.
    pub(crate) fn since(&self, before: &Snapshot<'p, 'a>) -> Option<i64> {
        let by = moves(&before.moving, &self.moving)?;
        let turns = by.iter().flatten().map(|m| m.0).find(|m| *m > 0)?;
        let is_same = by == self.machine.moved(Nest::Outer, turns)
            && self.fingerprint() == before.fingerprint();
        is_same.then_some(turns)
    }

    fn fingerprint(&self) -> Fingerprint {
        *self.fingerprint.get_or_init(|| self.machine.fingerprint())
    }
}

impl<'p, 'a> Machine<'p, 'a> {
    /// The state as it is. What is known of pairs stays here.
    pub(crate) fn snapshot(&mut self) -> Snapshot<'p, 'a> {
        self.overhead += 4 * self.cost();
        let pairs = std::mem::take(&mut self.pairs);
        let machine = self.clone();
        self.pairs = pairs;
        let least = if self.exprs.is_within.get() { i64::MAX } else { self.tested + 1 };
        Snapshot { machine, least, fingerprint: OnceCell::new(), moving: self.moving() }
    }

    /// Goes on with so many turns of the outer loops, which move by some for the next member of
    /// their family.
    pub(crate) fn give(&mut self, exprs: &'a Exprs<'p>) {
        let given = exprs.given(Nest::Outer);
        self.each_of(Nest::Outer, |_, (end, by)| {
            (*end, by.number[OUTER]) = (Value::Same(given.value), given.by);
        });
        self.exprs = exprs;
    }

    /// From here on a stretch of so many turns of the outer loops is followed, before which others
    /// like it may be inserted.
    pub(crate) fn begin_stretch(&mut self, turns: i64) {
        self.watch.inserted[OUTER] = Some(FOREVER);
        self.each_of(Nest::Outer, |by, _| by.inserted[OUTER] = turns);
    }

    /// The state as it is, behind turns that are inserted before the stretch.
    pub(crate) fn behind_stretch(&mut self) -> Snapshot<'p, 'a> {
        let mut now = self.snapshot();
        let machine = &mut now.machine;
        let lasts = machine.watch.inserted[OUTER].take().unwrap_or(0);
        machine.watch.number[OUTER] = machine.watch.number[OUTER].map(|n| n.min(lasts));
        machine.each_of(Nest::Outer, |by, _| {
            (by.number[OUTER], by.inserted[OUTER]) = (by.inserted[OUTER], 0);
        });
        now
    }

    /// The numbers of turns that are given to loops.
    pub(crate) fn turns(&self) -> [i64; 2] {
        [Nest::Outer, Nest::Inner].map(|nest| self.exprs.given(nest).value)
    }

    /// Whether loops are given numbers of turns.
    pub(crate) fn is_counted(&self) -> bool {
        self.exprs.given(Nest::Outer).id.is_some()
    }

    /// The number of the next access.
    pub(crate) fn serial(&self) -> u32 {
        self.serial
    }

    /// Goes on behind a number of accesses, with so many steps to make.
    pub(crate) fn resume(&mut self, serial: u32, left: u64) {
        self.serial = self.serial.max(serial);
        self.max_steps = self.steps().saturating_add(left);
    }
}
