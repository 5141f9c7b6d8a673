//! Computes the fingerprint of the machine's state. Two states with equal fingerprints have the
//! same future, except for the values of loop variables.

use super::*;
use crate::fingerprint::{Fingerprint, Fingerprinter};

impl<'p, 'a> Machine<'p, 'a> {
    /// The fingerprint of everything that determines the future, except for the values of loop
    /// variables and the numbers of iterations.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        let (mut clocks, mut converged) = (vec![], vec![]);
        self.clocks.each(&mut clocks);
        for class in &self.clocks.classes {
            converged.extend(&class.converged);
        }
        self.mbarriers.iter().for_each(|m| m.each(&mut clocks, &mut converged));
        self.cluster.arriving.each(&mut clocks);
        self.cluster.complete.each(&mut clocks);
        let mut now: FxHashMap<u32, u32> =
            self.clocks.classes.iter().map(|c| (c.agent, c.time)).collect();
        // A complete phase belongs to the past; the current phase is the next one.
        now.extend(self.mbarriers.iter().map(|m| (m.agent, m.phase + 1)));
        now.insert(self.cluster.agent, self.cluster.phase + 1);
        let mut fingerprint = Fingerprinter::new(clocks, converged, now);
        self.clocks.fingerprint(&mut fingerprint);
        for ((rank, byte), m) in &self.mbarrier_at {
            fingerprint.words(&[*rank as u64, *byte as u64, *m as u64]);
        }
        self.mbarriers.iter().for_each(|m| m.fingerprint(&mut fingerprint, &self.clocks));
        self.cluster.fingerprint(&mut fingerprint);
        self.fingerprint_memory(&mut fingerprint);
        self.fingerprint_registers(&mut fingerprint);
        for ((rank, thread, site), time) in &self.remote {
            fingerprint.words(&[*rank as u64, u64::from(*thread), u64::from(*site)]);
            fingerprint.time(self.clocks.class(*thread).agent, *time);
        }
        self.fingerprint_locksteps(&mut fingerprint);
        fingerprint.finish()
    }

    fn fingerprint_memory(&self, fingerprint: &mut Fingerprinter<'_>) {
        for cells in &self.cells {
            let mut last = 0;
            for (i, cell) in cells.iter().enumerate().filter(|(_, c)| !c.is_untouched()) {
                fingerprint.words(&[(i - last) as u64]);
                last = i;
                cell.fingerprint(fingerprint, &self.clocks);
            }
        }
        for cells in &self.globals {
            for (key, cell) in cells.iter() {
                fingerprint.words(&[key as u64]);
                cell.fingerprint(fingerprint, &self.clocks);
            }
            fingerprint.words(&[u64::MAX]);
        }
    }

    fn fingerprint_registers(&self, fingerprint: &mut Fingerprinter<'_>) {
        for (r, cells) in self.registers.iter().enumerate() {
            let n = (self.plan.registers[r].1 as usize).max(1);
            for (warp, cells) in cells.chunks(n).enumerate() {
                let (fence, _) = self.fences[warp];
                let of = |c: &Register| {
                    let last = if c.last == 0 { 0 } else { 1 + u64::from(c.last < fence) };
                    (last, c.last_site, c.writing, c.reading)
                };
                // Neighboring registers mostly have the same state.
                for alike in cells.chunk_by(|a, b| of(a) == of(b)) {
                    let (last, last_site, writing, reading) = of(&alike[0]);
                    fingerprint.words(&[alike.len() as u64, last, u64::from(last_site)]);
                    let class = self.clocks.class(warp as u32 * 32);
                    let (m, n) = writing.2;
                    for (batch, site) in [(writing.0, writing.1), reading] {
                        fingerprint.words(&[
                            u64::from(batch > 0),
                            u64::from(site),
                            m as u64,
                            n as u64,
                        ]);
                        if batch > 0 {
                            let queue = class.queue(Engine::MatMuls);
                            queue.fingerprint_batch(fingerprint, class.agent, batch - 1);
                        }
                    }
                }
            }
        }
        self.fences.iter().for_each(|(f, _)| fingerprint.words(&[u64::from(*f == 0)]));
        for (left, held) in &self.registers_left {
            fingerprint.words(&[*left as u64]);
            held.iter().for_each(|n| fingerprint.words(&[*n as u64]));
        }
    }

    /// The positions of threads. Of the iterations of a loop, only the differences between threads
    /// matter.
    fn fingerprint_locksteps(&self, fingerprint: &mut Fingerprinter<'_>) {
        let mut first: HashMap<Option<StmtId>, u64> = HashMap::new();
        for frame in self.locksteps.iter().flat_map(|s| &s.frames) {
            if let Kind::Loop { trip, .. } = frame.kind {
                let least = first.entry(first_of(frame.stmts)).or_insert(trip);
                *least = trip.min(*least);
            }
        }
        for lockstep in self.in_order() {
            fingerprint.words(&[lockstep.rank as u64, lockstep.frames.len() as u64]);
            match &lockstep.status {
                Status::Ready => fingerprint.words(&[0]),
                Status::Waits => fingerprint.words(&[1]),
                Status::Barrier(named) => {
                    named.0.iter().for_each(|w| fingerprint.words(&[u64::from(*w)]))
                }
                Status::Meets => fingerprint.words(&[2]),
            }
            for frame in &lockstep.frames {
                let key = first_of(frame.stmts);
                fingerprint.words(&[word(key), frame.at as u64]);
                frame.mask.0.iter().for_each(|w| fingerprint.words(&[u64::from(*w)]));
                match &frame.kind {
                    Kind::Root => fingerprint.words(&[0]),
                    Kind::Body => fingerprint.words(&[1]),
                    Kind::Branch { second, otherwise } => {
                        fingerprint.words(&[2 + u64::from(*second)]);
                        if let Some((stmts, mask)) = otherwise {
                            fingerprint.words(&[word(first_of(stmts))]);
                            mask.0.iter().for_each(|w| fingerprint.words(&[u64::from(*w)]));
                        }
                    }
                    Kind::Loop { trip, .. } => {
                        fingerprint.words(&[4, trip - first.get(&key).copied().unwrap_or(0)]);
                    }
                }
            }
        }
    }

    /// The threads in an order that does not depend on the schedule.
    pub(super) fn in_order(&self) -> Vec<&Lockstep<'p>> {
        let mut all: Vec<&Lockstep<'p>> = self.locksteps.iter().collect();
        all.sort_by_key(|s| (s.rank, s.all().threads().next()));
        all
    }
}

/// A list of statements, given by its first statement, as a word of a fingerprint.
fn word(list: Option<StmtId>) -> u64 {
    list.map_or(u64::MAX, |first| first.index() as u64)
}
