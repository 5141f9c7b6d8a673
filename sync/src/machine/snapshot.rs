//! Copies of the machine's state at iterations of a kernel's outer loops. `follow` compares them to
//! find a state that repeats. It then continues from a copy with another trip count, so that the
//! iterations before are not followed again.

use super::loops::{Moving, moves};
use super::*;
use crate::fingerprint::Fingerprint;
use std::cell::OnceCell;

const OUTER: usize = Nest::Outer as usize;

/// A state at the beginning of an iteration of the outer loops.
#[derive(Clone)]
pub(crate) struct Snapshot<'p, 'a> {
    pub(crate) machine: Machine<'p, 'a>,
    /// The least trip count for which all decisions so far are the same.
    pub(crate) least: i64,
    /// Computed when the state is compared with another one.
    fingerprint: OnceCell<Fingerprint>,
    moving: Vec<Moving>,
}

impl<'p, 'a> Snapshot<'p, 'a> {
    /// The number of iterations after which the earlier state has repeated here.
    pub(crate) fn since(&self, before: &Snapshot<'p, 'a>) -> Option<i64> {
        let by = moves(&before.moving, &self.moving)?;
        let iterations = by.iter().flatten().map(|m| m.0).find(|m| *m > 0)?;
        let is_same = by == self.machine.moved(Nest::Outer, iterations)
            && self.fingerprint() == before.fingerprint();
        is_same.then_some(iterations)
    }

    fn fingerprint(&self) -> Fingerprint {
        *self.fingerprint.get_or_init(|| self.machine.fingerprint())
    }
}

impl<'p, 'a> Machine<'p, 'a> {
    /// A copy of the state, without the pairs.
    pub(crate) fn snapshot(&mut self) -> Snapshot<'p, 'a> {
        self.overhead += 4 * self.cost();
        let pairs = std::mem::take(&mut self.pairs);
        let machine = self.clone();
        self.pairs = pairs;
        let least = if self.exprs.is_within.get() { i64::MAX } else { self.tested + 1 };
        Snapshot { machine, least, fingerprint: OnceCell::new(), moving: self.moving() }
    }

    /// Continues with another trip count of the outer loops. The next trip count of the same family
    /// is larger by `given.by`.
    pub(crate) fn give(&mut self, exprs: &'a Exprs<'p>) {
        let given = exprs.given(Nest::Outer);
        self.each_of(Nest::Outer, |_, (end, by)| {
            (*end, by.number[OUTER]) = (Value::Same(given.value), given.by);
        });
        self.exprs = exprs;
    }

    /// Begins a stretch of iterations of the outer loops, before which more of them may be
    /// inserted.
    pub(crate) fn begin_stretch(&mut self, iterations: i64) {
        self.watch.inserted[OUTER] = Some(FOREVER);
        self.each_of(Nest::Outer, |by, _| by.inserted[OUTER] = iterations);
    }

    /// A copy of the state as it is after iterations that are inserted before the stretch.
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

    /// The trip counts given to the outer and inner loops.
    pub(crate) fn trip_counts(&self) -> [i64; 2] {
        [Nest::Outer, Nest::Inner].map(|nest| self.exprs.given(nest).value)
    }

    /// Whether loops have been given trip counts.
    pub(crate) fn is_counted(&self) -> bool {
        self.exprs.given(Nest::Outer).id.is_some()
    }

    /// The serial number of the last access.
    pub(crate) fn serial(&self) -> u32 {
        self.serial
    }

    /// Continues with at least this serial number and at most `left` further steps.
    pub(crate) fn resume(&mut self, serial: u32, left: u64) {
        self.serial = self.serial.max(serial);
        self.max_steps = self.steps().saturating_add(left);
    }
}
