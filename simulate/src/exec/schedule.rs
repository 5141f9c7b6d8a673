//! Which strand runs, and what a statement does to it.
//!
//! Of the strands that can go on the one farthest behind does, unless a schedule is drawn. Invariant: a strand
//! that needs others waits only while some of them are behind it.

use super::strand::{Frame, Kind, Status, Strand};
use super::{Runner, blame, diverged};
use crate::index::{BadIndex, Compare, LoopValue};
use crate::plan::{Checked, How, Kernel, Mask, Node, Squad};
use std::cmp::Ordering;

/// What became of a strand.
enum Step {
    /// It goes on.
    On,
    /// It waits, as its status says.
    Waits,
    /// It has ended.
    Ended,
}

impl<'k> Runner<'k> {
    /// Runs all threads to their end.
    ///
    /// # Errors
    /// The first error.
    pub(super) fn run(&mut self) -> Checked<()> {
        let kernel = self.kernel;
        let all = Mask::first(kernel.n_threads);
        for rank in 0..kernel.cluster {
            self.strands.push(Strand::new(rank, &kernel.body, all, kernel.loops.len()));
        }
        loop {
            let Some(mut strand) = self.next() else {
                if self.strands.is_empty() {
                    let flying = self.flying.front().map(|copy| copy.site);
                    let landed = || self.blocks.iter().find_map(|b| b.never_waited_for());
                    return match flying.or_else(landed) {
                        Some(site) => Err(blame::ends_before(self.kernel, site)),
                        None => self.end_after_others(),
                    };
                }
                if !self.deliver(0) {
                    self.stuck()?;
                }
                self.wake_up();
                continue;
            };
            self.rank = strand.rank;
            self.env.block = self.first + strand.rank as i64;
            std::mem::swap(&mut self.env.loops, &mut strand.loops);
            let outcome = loop {
                self.disturb(&mut strand);
                let step = self.step(&mut strand).map_err(|e| self.in_iteration(e, &strand))?;
                match step {
                    Step::On if self.strands.is_empty() => {}
                    outcome => break outcome,
                }
            };
            std::mem::swap(&mut self.env.loops, &mut strand.loops);
            match outcome {
                Step::Ended => {}
                Step::On | Step::Waits => self.put(strand),
            }
            self.wake_up();
        }
    }

    /// Lets strands look again at what they wait for, where something has happened.
    fn wake_up(&mut self) {
        if std::mem::take(&mut self.wake) {
            for strand in self.strands.iter_mut().filter(|s| s.status == Status::Waiting) {
                strand.status = Status::Ready;
            }
        }
    }

    /// Makes a strand's block and loop variables those of what is evaluated.
    pub(super) fn resume(&mut self, strand: &Strand<'_>) {
        self.rank = strand.rank;
        self.env.block = self.first + strand.rank as i64;
        self.env.loops.clone_from(&strand.loops);
    }

    /// Takes the strand that goes next out of the list.
    fn next(&mut self) -> Option<Strand<'k>> {
        let ready = |s: &(usize, &Strand<'_>)| s.1.status == Status::Ready;
        if let Some(dice) = &mut self.dice {
            let all: Vec<usize> =
                self.strands.iter().enumerate().filter(ready).map(|(i, _)| i).collect();
            let i = all.get(dice.below(all.len()))?;
            return Some(self.strands.swap_remove(*i));
        }
        let order = |a: &Strand<'_>, b: &Strand<'_>| match a.rank == b.rank {
            true => a.compare(b),
            // Blocks of a cluster take turns, statement by statement.
            false => a.compare(b).then(a.rank.cmp(&b.rank)),
        };
        let (i, _) =
            self.strands.iter().enumerate().filter(ready).min_by(|a, b| order(a.1, b.1))?;
        Some(self.strands.swap_remove(i))
    }

    /// Puts a strand back, into another that is at its place if there is one.
    fn put(&mut self, strand: Strand<'k>) {
        let stands = |s: &Strand<'_>| matches!(s.status, Status::Ready | Status::Meeting);
        let same = self.strands.iter_mut().find(|other| {
            other.rank == strand.rank
                && stands(other)
                && stands(&strand)
                && other.compare(&strand) == Ordering::Equal
        });
        match same {
            Some(other) => {
                other.join(&strand);
                other.status = Status::Ready;
            }
            None => self.strands.push(strand),
        }
    }

    /// Whether some of the threads are behind the strand, and may still come to its place, or are there, and
    /// will be taken up.
    fn may_come(&self, strand: &Strand<'_>, threads: &Mask) -> bool {
        let there = |s: &Strand<'_>| matches!(s.status, Status::Ready | Status::Meeting);
        self.strands.iter().any(|other| {
            other.rank == strand.rank
                && !other.all().and(threads).is_empty()
                && match other.compare(strand) {
                    Ordering::Less => true,
                    Ordering::Equal => there(other),
                    Ordering::Greater => false,
                }
        })
    }

    fn step(&mut self, strand: &mut Strand<'k>) -> Checked<Step> {
        let Some(frame) = strand.top() else { return Ok(Step::Ended) };
        let mask = frame.mask;
        let nodes = frame.nodes;
        let Some(node) = nodes.get(frame.at) else { return self.leave(strand) };
        match node {
            Node::Leaf(i) => {
                let leaf = &self.kernel.leaves[*i];
                let squad = self.kernel.crews[leaf.crew].squad(&self.env)?;
                let active = mask.and(&squad.mask);
                if !active.is_empty() {
                    let window = match &leaf.how {
                        How::Row(row) if row.group > 1 => row.window,
                        How::Row(_) | How::Bulk(_) => 32,
                        How::Meaning(_) | How::Shuffle { .. } => 0,
                    };
                    let missing = missing(&squad, &active, window);
                    if !missing.is_empty() && self.may_come(strand, &missing) {
                        strand.status = Status::Meeting;
                        return Ok(Step::Waits);
                    }
                    self.leaf(*i, &squad, &active)?;
                    self.note_iteration(strand);
                }
            }
            Node::Body { crew, site, check, blocking, body } => {
                let squad = self.kernel.crews[*crew].squad(&self.env)?;
                let active = mask.and(&squad.mask);
                if active.is_empty() {
                    strand.advance();
                    return Ok(Step::On);
                }
                if let Some(check) = check.filter(|_| self.mode.check) {
                    let missing = self.to_compare(check, &squad, &active);
                    let wanted = !missing.is_empty() && self.may_come(strand, &missing);
                    if wanted && !strand.alone {
                        strand.status = Status::Meeting;
                        return Ok(Step::Waits);
                    }
                    self.expect(check, &squad, &active, *site, wanted)?;
                }
                if *blocking {
                    self.send_on(strand, &mask.without(&active));
                }
                strand.alone = false;
                strand.frames.push(Frame { nodes: body, at: 0, mask: active, kind: Kind::Body });
                return Ok(Step::On);
            }
            Node::Allocate(buffer) => {
                if let Some(i) = buffer {
                    self.blocks[self.rank].registers[*i].clear(&mask);
                }
            }
            Node::For { slot, start, end, site, body, blocking, .. } => {
                let bad = |e: BadIndex| blame::bad_index(self.kernel, *site, e);
                if start.is_uniform() && end.is_uniform() {
                    let first = start.base(&self.env).map_err(bad)?;
                    let end = end.base(&self.env).map_err(bad)?;
                    if first < end {
                        self.env.loops[*slot] = LoopValue::Uniform(first);
                        let kind = Kind::Loop { trip: 0, end: LoopValue::Uniform(end) };
                        strand.frames.push(Frame { nodes: body, at: 0, mask, kind });
                        return Ok(Step::On);
                    }
                } else {
                    let mut values = vec![0i64; self.kernel.n_threads];
                    let mut ends = vec![0i64; self.kernel.n_threads];
                    for t in mask.threads() {
                        values[t] = self.index(start, t, *site)?;
                        ends[t] = self.index(end, t, *site)?;
                    }
                    let going = going(&mask, &values, &ends);
                    if !going.is_empty() {
                        self.env.loops[*slot] = LoopValue::ByThread(values);
                        if *blocking {
                            self.send_on(strand, &mask.without(&going));
                        }
                        let kind = Kind::Loop { trip: 0, end: LoopValue::ByThread(ends) };
                        strand.frames.push(Frame { nodes: body, at: 0, mask: going, kind });
                        return Ok(Step::On);
                    }
                }
            }
            Node::If { cond, site, blocking, then, otherwise } => {
                let mut yes = Mask::NONE;
                let first = mask.threads().next().filter(|_| cond.iter().all(Compare::is_uniform));
                match first {
                    Some(first) if self.all_hold(cond, first, *site)? => yes = mask,
                    Some(_) => {}
                    None => {
                        for t in mask.threads() {
                            if self.all_hold(cond, t, *site)? {
                                yes.insert(t);
                            }
                        }
                    }
                }
                let mut no = mask.without(&yes);
                if *blocking {
                    // Warps of one mind go their own way; those of two take one branch after the other.
                    let (y, n) = (yes.warps(), no.warps());
                    for warps in [n & !y, y & n] {
                        if strand.mask().warps() & warps != 0
                            && strand.mask().warps() & !warps != 0
                            && let Some(mut other) = strand.part(warps)
                        {
                            branch(&mut other, &yes, &no, then, otherwise);
                            other.loops = self.env.loops.clone();
                            self.put(other);
                        }
                    }
                    let mine = strand.mask();
                    (yes, no) = (yes.and(&mine), no.and(&mine));
                }
                branch(strand, &yes, &no, then, otherwise);
                return Ok(Step::On);
            }
            Node::Barrier { crew: None, site } => {
                let absent = Mask::first(self.kernel.n_threads).without(&mask);
                if !absent.is_empty() {
                    if self.may_come(strand, &absent) {
                        strand.status = Status::Meeting;
                        return Ok(Step::Waits);
                    }
                    return Err(blame::deadlock(self.kernel, *site, &absent));
                }
                self.passes(*site, &mask);
                self.synchronize(&mask);
            }
            Node::Barrier { crew: Some(crew), site } => {
                let named = self.kernel.crews[*crew].squad(&self.env)?.mask;
                if !mask.and(&named).is_empty() {
                    return self.named_barrier(strand, named, *site);
                }
            }
            Node::Sync(sync) => {
                // What it does to mbarriers is no part of what was executed before.
                self.serial = self.serial.wrapping_add(1);
                let absent = self.absent(sync, &mask);
                if !absent.is_empty() && self.may_come(strand, &absent) {
                    strand.status = Status::Meeting;
                    return Ok(Step::Waits);
                }
                let waiting = self.waiting(sync, &mask)?;
                if waiting.is_empty() {
                    self.sync(sync, &mask)?;
                } else {
                    let ready = mask.without(&waiting);
                    if !ready.is_empty()
                        && let Some(mut other) = strand.part(ready.warps())
                    {
                        self.sync(sync, &ready)?;
                        other.advance();
                        other.loops = self.env.loops.clone();
                        self.put(other);
                    }
                    strand.status = Status::Waiting;
                    return Ok(Step::Waits);
                }
            }
        }
        strand.advance();
        Ok(Step::On)
    }

    /// Whether all conditions hold for a thread.
    fn all_hold(&self, cond: &[Compare], thread: usize, site: u32) -> Checked<bool> {
        let mut all = true;
        for c in cond {
            let holds = c.holds(&self.env, thread);
            all &= holds.map_err(|e| blame::bad_index(self.kernel, site, e))?;
        }
        Ok(all)
    }

    /// What follows the last statement of a list.
    fn leave(&mut self, strand: &mut Strand<'k>) -> Checked<Step> {
        let depth = strand.frames.len();
        let parent = depth.checked_sub(2).and_then(|i| strand.frames.get(i));
        let node = parent.and_then(|f| f.nodes.get(f.at));
        let frame = &mut strand.frames[depth - 1];
        match (&mut frame.kind, node) {
            (Kind::Root, _) | (_, None) => {
                let mask = frame.mask;
                for t in mask.threads() {
                    if let Some(site) = self.blocks[self.rank].still_reads(t) {
                        return Err(blame::ends_early(self.kernel, site, t));
                    }
                    if let Some(site) = self.blocks[self.rank].still_copies(t) {
                        return Err(blame::ends_while_copied(self.kernel, site, t));
                    }
                }
                for warp in (0..self.kernel.n_warps).filter(|w| mask.warps() >> w & 1 == 1) {
                    if let Some(site) = self.blocks[self.rank].flights.still_reads(warp) {
                        return Err(blame::ends_while_multiplying(self.kernel, site));
                    }
                }
                return Ok(Step::Ended);
            }
            (Kind::Branch { second, otherwise }, _) => {
                if let Some((nodes, mask)) = otherwise.take() {
                    *second = true;
                    (frame.nodes, frame.at, frame.mask) = (nodes, 0, mask);
                    return Ok(Step::On);
                }
            }
            (Kind::Body, Some(Node::Body { crew, check: Some(check), .. })) if self.mode.check => {
                let squad = self.kernel.crews[*crew].squad(&self.env)?;
                let (mask, check) = (frame.mask, *check);
                let missing = self.to_compare(check, &squad, &mask);
                if !missing.is_empty()
                    && !strand.alone
                    && self.is_expected(check, &squad, &mask)
                    && self.may_come(strand, &missing)
                {
                    strand.status = Status::Meeting;
                    return Ok(Step::Waits);
                }
                self.compare(check, &squad, &mask)?;
            }
            (Kind::Body, _) => {}
            (Kind::Loop { trip, end }, Some(Node::For { slot, step, blocking, .. })) => {
                let value = &mut self.env.loops[*slot];
                let mut mask = frame.mask;
                match (value, end) {
                    (LoopValue::Uniform(i), LoopValue::Uniform(end)) => {
                        *i = i.saturating_add(*step);
                        if *i >= *end {
                            mask = Mask::NONE;
                        }
                    }
                    (LoopValue::ByThread(values), LoopValue::ByThread(ends)) => {
                        mask.threads().for_each(|t| values[t] = values[t].saturating_add(*step));
                        mask = going(&mask, values, ends);
                    }
                    _ => mask = Mask::NONE,
                }
                if !mask.is_empty() {
                    (*trip, frame.at) = (*trip + 1, 0);
                    let through = frame.mask.without(&mask);
                    if *blocking && !through.is_empty() {
                        self.send_out(strand, &through, &mask);
                    }
                    if let Some(frame) = strand.top() {
                        frame.mask = mask;
                    }
                    return Ok(Step::On);
                }
            }
            (Kind::Loop { .. }, _) => {}
        }
        strand.frames.pop();
        strand.advance();
        Ok(Step::On)
    }

    /// Lets whole warps of which all threads pass a statement by go on behind it.
    fn send_on(&mut self, strand: &mut Strand<'k>, past: &Mask) {
        let warps = past.warps() & !strand.mask().without(past).warps();
        if warps == 0 {
            return;
        }
        if let Some(mut other) = strand.part(warps) {
            other.advance();
            other.loops = self.env.loops.clone();
            self.put(other);
        }
    }

    /// Lets whole warps that are through with a loop go on behind it, while others begin an iteration.
    fn send_out(&mut self, strand: &mut Strand<'k>, through: &Mask, going: &Mask) {
        let warps = through.warps() & !going.warps();
        if warps == 0 {
            return;
        }
        if let Some(mut other) = strand.part(warps) {
            other.frames.pop();
            other.advance();
            other.loops = self.env.loops.clone();
            self.put(other);
        }
    }

    /// A barrier of some threads, wherever each of them stands.
    fn named_barrier(&mut self, strand: &mut Strand<'k>, named: Mask, site: u32) -> Checked<Step> {
        let mask = strand.mask();
        self.send_on(strand, &mask.without(&named));
        let waits = |s: &Strand<'_>, rank: usize| {
            s.rank == rank && matches!(&s.status, Status::Barrier(m) if *m == named)
        };
        let rank = strand.rank;
        let others = self.strands.iter().filter(|s| waits(s, rank));
        let arrived = others.fold(strand.mask(), |all, s| all.or(&s.mask()));
        if !arrived.contains(&named) {
            strand.status = Status::Barrier(named);
            return Ok(Step::Waits);
        }
        self.passes(site, &named);
        self.synchronize(&named);
        strand.advance();
        let (through, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.strands).into_iter().partition(|s| waits(s, rank));
        self.strands = rest;
        for mut other in through {
            other.advance();
            self.put(other);
        }
        Ok(Step::On)
    }

    /// Nobody can go on: the strand farthest behind is to blame, unless all that it waits for is to be
    /// compared.
    fn stuck(&mut self) -> Checked<()> {
        let order =
            |a: &&mut Strand<'_>, b: &&mut Strand<'_>| a.compare(b).then(a.rank.cmp(&b.rank));
        let Some(strand) = self.strands.iter_mut().min_by(order) else { return Ok(()) };
        let mask = strand.mask();
        let status = strand.status.clone();
        let at = strand.frames.last().and_then(|f| f.nodes.get(f.at));
        let site = site_of(self.kernel, strand).unwrap_or(0);
        match status {
            Status::Barrier(named) => {
                let rank = strand.rank;
                let arrived = self
                    .strands
                    .iter()
                    .filter(|s| s.rank == rank && s.status == Status::Barrier(named))
                    .fold(Mask::NONE, |all, s| all.or(&s.mask()));
                Err(blame::deadlock(self.kernel, site, &named.without(&arrived)))
            }
            Status::Meeting if matches!(at, None | Some(Node::Body { .. })) && !strand.alone => {
                // Its threads wait for each other across the body: it cannot be compared.
                (strand.status, strand.alone) = (Status::Ready, true);
                Ok(())
            }
            Status::Waiting => {
                let mut waiting: Vec<Strand<'_>> =
                    self.strands.iter().filter(|s| s.status == Status::Waiting).cloned().collect();
                waiting.sort_by(|a, b| a.compare(b).then(a.rank.cmp(&b.rank)));
                self.waits_for_ever(&waiting)?;
                self.strands.iter_mut().for_each(|s| s.status = Status::Ready);
                Ok(())
            }
            Status::Meeting | Status::Ready => {
                let absent = Mask::first(self.kernel.n_threads).without(&mask);
                Err(diverged(self.kernel, site, absent.threads().count()))
            }
        }
    }
}

/// The statement that a strand is at.
fn site_of(kernel: &Kernel<'_>, strand: &Strand<'_>) -> Option<u32> {
    let frame = strand.frames.last()?;
    match frame.nodes.get(frame.at)? {
        Node::Leaf(i) => Some(kernel.leaves[*i].site),
        Node::Barrier { site, .. }
        | Node::Body { site, .. }
        | Node::For { site, .. }
        | Node::If { site, .. } => Some(*site),
        Node::Sync(sync) => Some(sync.site),
        Node::Allocate(_) => None,
    }
}

/// Threads of groups that are active in part; of a row, of the windows of warps that it takes at once.
pub(super) fn missing(squad: &Squad, active: &Mask, window: usize) -> Mask {
    let mut missing = Mask::NONE;
    if active.contains(&squad.mask) && window <= 32 {
        return missing;
    }
    if window > 32 {
        let per = window / 32;
        for first in (0..32).step_by(per) {
            let warps = ((1u64 << per) - 1) as u32;
            let warps = warps << first;
            if active.warps() & warps != 0 {
                missing = missing.or(&squad.mask.of_warps(warps).without(active));
            }
        }
        return missing;
    }
    if window == 32 {
        return missing;
    }
    for group in &squad.groups {
        let here = group.iter().filter(|t| active.has(usize::from(**t))).count();
        if here > 0 && here < group.len() {
            group.iter().map(|t| usize::from(*t)).filter(|t| !active.has(*t)).for_each(|t| {
                missing.insert(t);
            });
        }
    }
    missing
}

fn going(mask: &Mask, values: &[i64], ends: &[i64]) -> Mask {
    let mut going = Mask::NONE;
    mask.threads().filter(|t| values[*t] < ends[*t]).for_each(|t| going.insert(t));
    going
}

/// Enters the branch that a strand's threads take first.
fn branch<'k>(
    strand: &mut Strand<'k>,
    yes: &Mask,
    no: &Mask,
    then: &'k [Node],
    otherwise: &'k [Node],
) {
    let mine = strand.mask();
    let (yes, no) = (yes.and(&mine), no.and(&mine));
    let frame = if yes.is_empty() {
        let kind = Kind::Branch { second: true, otherwise: None };
        Frame { nodes: otherwise, at: 0, mask: no, kind }
    } else {
        let next = (!no.is_empty()).then_some((otherwise, no));
        let kind = Kind::Branch { second: false, otherwise: next };
        Frame { nodes: then, at: 0, mask: yes, kind }
    };
    strand.frames.push(frame);
}
