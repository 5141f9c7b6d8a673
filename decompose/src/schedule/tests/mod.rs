//! Tests modulo schedules: the search against brute force and on random loops, and loops whose
//! schedules are known.

mod brute;
mod known;
mod loops;
mod random;

use super::problem::{Dependence, Kind, Problem};

impl Problem {
    /// Adds that `to`, so many iterations later, reads what `from` writes.
    pub(super) fn flow(&mut self, from: usize, to: usize, distance: i64) {
        let latency = self.operations.get(from).map_or(0, |o| o.latency);
        self.dependences.push(Dependence { from, to, latency, distance, kind: Kind::True });
    }

    /// Adds that `to` overwrites what `from` writes.
    pub(super) fn output(&mut self, from: usize, to: usize, distance: i64) {
        let latency = self.operations.get(from).map_or(0, |o| o.latency);
        self.dependences.push(Dependence { from, to, latency, distance, kind: Kind::Output });
    }

    /// Adds that `to` overwrites in place what `from` has read.
    pub(super) fn anti(&mut self, from: usize, to: usize, distance: i64) {
        let latency = self.reading(from);
        let kind = Kind::Anti { ring: None };
        self.dependences.push(Dependence { from, to, latency, distance, kind });
    }

    /// Adds that `to` overwrites the stage of a ring that `from` has read as many iterations before
    /// as the ring has stages, beside the `distance` that lies between them in the text.
    pub(super) fn reuse(&mut self, from: usize, to: usize, ring: usize, distance: i64) {
        let latency = self.reading(from);
        let stages = self.rings.get(ring).map_or(1, |r| r.stages);
        let distance = distance.saturating_add(stages);
        let kind = Kind::Anti { ring: Some(ring) };
        self.dependences.push(Dependence { from, to, latency, distance, kind });
    }

    /// Cycles from the start of an operation until it has read its operands: threads have when they
    /// go on, an engine when it is done.
    fn reading(&self, operation: usize) -> i64 {
        let of = self.operations.get(operation);
        of.map_or(0, |o| if o.queue.is_some() { o.latency.max(o.held) } else { o.held })
    }
}
