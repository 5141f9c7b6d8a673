//! Chooses the converged set (threads that execute a statement together) that runs next, and
//! executes its statement: control flow and barriers here, leaves and other synchronization by
//! other modules.
//!
//! Among the sets that can continue, the set that is farthest behind runs, unless the schedule is
//! random. Invariant: a set whose statement needs absent threads waits only while some of them are
//! behind it. Waits for mbarriers, registers and clusters, and barriers of named threads, are
//! excepted: they last until their condition holds. If no set can continue, that is an error.

use super::converged::{ConvergedSet, Frame, Kind, Status};
use super::{Runner, diverged, errors};
use crate::index::{BadIndex, Compare, Index, LoopValue};
use crate::plan::{Checked, How, Kernel, Mask, Node, Partition, SyncNode};
use carbyne_ir::cancel;
use carbyne_ir::limits::MAX_COUNTER;
use std::cmp::Ordering;

/// The state of a converged set after a statement.
enum Step {
    /// The set continues.
    On,
    /// The set waits, as its status states.
    Waits,
    /// The set has ended.
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
            self.converged.push(ConvergedSet::new(rank, &kernel.body, all, kernel.loops.len()));
        }
        loop {
            let Some(mut set) = self.next() else {
                if self.converged.is_empty() {
                    let flying = self.flying.front().map(|copy| copy.site);
                    let landed = || self.blocks.iter().find_map(|b| b.never_waited_for());
                    return match flying.or_else(landed) {
                        Some(site) => Err(errors::ends_before(self.kernel, site)),
                        None => self.end_after_others(),
                    };
                }
                if !self.deliver(0) {
                    self.stuck()?;
                }
                self.wake_up();
                continue;
            };
            self.rank = set.rank;
            self.env.block = self.first + set.rank as i64;
            std::mem::swap(&mut self.env.loops, &mut set.loops);
            let outcome = loop {
                cancel::point();
                self.disturb(&mut set);
                let step = self.step(&mut set).map_err(|e| self.in_iteration(e, &set))?;
                match step {
                    Step::On if self.converged.is_empty() => {}
                    outcome => break outcome,
                }
            };
            std::mem::swap(&mut self.env.loops, &mut set.loops);
            match outcome {
                Step::Ended => {}
                Step::On | Step::Waits => self.put(set),
            }
            self.wake_up();
        }
    }

    /// Makes waiting sets check their conditions again, if an event has occurred.
    fn wake_up(&mut self) {
        if std::mem::take(&mut self.wake) {
            for set in self.converged.iter_mut().filter(|s| s.status == Status::Waiting) {
                set.status = Status::Ready;
            }
        }
    }

    /// Switches the environment to the block and the loop variables of this set.
    pub(super) fn resume(&mut self, set: &ConvergedSet<'_>) {
        self.rank = set.rank;
        self.env.block = self.first + set.rank as i64;
        self.env.loops.clone_from(&set.loops);
    }

    /// Removes the set that runs next from the list.
    fn next(&mut self) -> Option<ConvergedSet<'k>> {
        let ready = |s: &(usize, &ConvergedSet<'_>)| s.1.status == Status::Ready;
        if let Some(dice) = &mut self.dice {
            let all: Vec<usize> =
                self.converged.iter().enumerate().filter(ready).map(|(i, _)| i).collect();
            let i = all.get(dice.below(all.len()))?;
            return Some(self.converged.swap_remove(*i));
        }
        let order = |a: &ConvergedSet<'_>, b: &ConvergedSet<'_>| match a.rank == b.rank {
            true => a.compare(b),
            // The blocks of a cluster alternate, statement by statement.
            false => a.compare(b).then(a.rank.cmp(&b.rank)),
        };
        let (i, _) =
            self.converged.iter().enumerate().filter(ready).min_by(|a, b| order(a.1, b.1))?;
        Some(self.converged.swap_remove(i))
    }

    /// Puts a set back. The set reconverges with a set at its position, if one exists.
    fn put(&mut self, set: ConvergedSet<'k>) {
        let stands = |s: &ConvergedSet<'_>| matches!(s.status, Status::Ready | Status::Meeting);
        let same = self.converged.iter_mut().find(|other| {
            other.rank == set.rank
                && stands(other)
                && stands(&set)
                && other.compare(&set) == Ordering::Equal
        });
        match same {
            Some(other) => {
                other.join(&set);
                other.status = Status::Ready;
            }
            None => self.converged.push(set),
        }
    }

    /// Whether some of the threads may still join the set: they are behind it, or in a set at its
    /// position that will reconverge with it.
    fn may_come(&self, set: &ConvergedSet<'_>, threads: &Mask) -> bool {
        let there = |s: &ConvergedSet<'_>| matches!(s.status, Status::Ready | Status::Meeting);
        self.converged.iter().any(|other| {
            other.rank == set.rank
                && !other.all().and(threads).is_empty()
                && match other.compare(set) {
                    Ordering::Less => true,
                    Ordering::Equal => there(other),
                    Ordering::Greater => false,
                }
        })
    }

    /// Records in shared memory the loop iterations of these threads.
    fn enter_turns(&mut self, set: &ConvergedSet<'k>) {
        if !self.kernel.shared.begins_again() {
            return;
        }
        let trip = |f: &Frame<'k>| match f.kind {
            Kind::Loop { trip, .. } => Some(trip),
            _ => None,
        };
        for block in &mut self.blocks {
            block.shared.enter(set.frames.iter().filter_map(trip));
        }
    }

    fn step(&mut self, set: &mut ConvergedSet<'k>) -> Checked<Step> {
        let Some(frame) = set.top() else { return Ok(Step::Ended) };
        let mask = frame.mask;
        let nodes = frame.nodes;
        let Some(node) = nodes.get(frame.at) else { return self.leave(set) };
        match node {
            Node::Leaf(leaf) => return self.try_leaf(set, *leaf, &mask),
            Node::Body { threads, site, check, blocking, body } => {
                let partition = self.kernel.thread_tensors[*threads].partition(&self.env)?;
                let active = mask.and(&partition.mask);
                if active.is_empty() {
                    set.advance();
                    return Ok(Step::On);
                }
                if let Some(check) = check.filter(|_| self.mode.check)
                    && self.waits_to_compare(set, check, &partition, &active, *site)?
                {
                    return Ok(Step::Waits);
                }
                if *blocking {
                    self.send_on(set, &mask.without(&active));
                }
                set.alone = false;
                set.frames.push(Frame { nodes: body, at: 0, mask: active, kind: Kind::Body });
                return Ok(Step::On);
            }
            Node::Allocate(buffer) => {
                if let Some(i) = buffer {
                    self.blocks[self.rank].registers[*i].clear(&mask);
                }
            }
            Node::Element { slot, view, within, step, site } => {
                self.env.loops[*slot] = self.element(*view, (*within, *step), *site, &mask)?;
            }
            Node::Step { slot, value, varying, site } => {
                let value = self.counter(value, *varying, &mask, *site)?;
                let mine = &mut self.env.loops[*slot];
                match (&mut *mine, value) {
                    (LoopValue::ByThread(old), LoopValue::ByThread(new)) => {
                        mask.threads().for_each(|t| old[t] = new[t]);
                    }
                    (_, value) => *mine = value,
                }
            }
            Node::For { slot, start, end, also, site, body, blocking, .. } => {
                let mut entered = self.trips(start, end, &mask, *site)?;
                if let Some((first, _, going)) = &mut entered
                    && !also.is_empty()
                {
                    self.env.loops[*slot] = first.clone();
                    *going = self.all_hold_for(also, going, *site)?;
                }
                if let Some((first, end, going)) = entered.filter(|(.., going)| !going.is_empty()) {
                    self.env.loops[*slot] = first;
                    if *blocking {
                        self.send_on(set, &mask.without(&going));
                    }
                    self.begins_turn(*site, &going)?;
                    let kind = Kind::Loop { trip: 0, end };
                    set.frames.push(Frame { nodes: body, at: 0, mask: going, kind });
                    return Ok(Step::On);
                }
            }
            Node::If { cond, site, blocking, then, otherwise } => {
                let yes = self.all_hold_for(cond, &mask, *site)?;
                let no = mask.without(&yes);
                if *blocking {
                    self.part(set, &yes, &no, then, otherwise);
                }
                branch(set, &yes, &no, then, otherwise);
                return Ok(Step::On);
            }
            Node::Barrier { threads: None, site, .. } => {
                let absent = Mask::first(self.kernel.n_threads).without(&mask);
                if !absent.is_empty() {
                    if self.may_come(set, &absent) {
                        set.status = Status::Meeting;
                        return Ok(Step::Waits);
                    }
                    return Err(errors::deadlock(self.kernel, *site, &absent));
                }
                self.passes(*site, &mask);
                self.synchronize(&mask);
            }
            Node::Barrier { threads: Some(threads), own: true, site } => {
                let partition = self.kernel.thread_tensors[*threads].partition(&self.env)?;
                return self.own_barrier(set, &partition.own, *site);
            }
            Node::Barrier { threads: Some(threads), own: false, site } => {
                let named = self.kernel.thread_tensors[*threads].partition(&self.env)?.mask;
                if !mask.and(&named).is_empty() {
                    return self.named_barrier(set, named, *site);
                }
            }
            Node::Sync(sync) => return self.try_sync(set, sync, &mask),
        }
        set.advance();
        Ok(Step::On)
    }

    /// Executes a spec, if all threads that it needs are present.
    fn try_leaf(&mut self, set: &mut ConvergedSet<'k>, i: usize, mask: &Mask) -> Checked<Step> {
        let leaf = &self.kernel.leaves[i];
        let partition = self.kernel.thread_tensors[leaf.threads].partition(&self.env)?;
        let active = mask.and(&partition.mask);
        if active.is_empty() {
            set.advance();
            return Ok(Step::On);
        }
        let window = match &leaf.how {
            How::Atom(atom) if atom.group > 1 => atom.window,
            How::Atom(_) | How::Bulk(_) => 32,
            How::Meaning(_) | How::Shuffle { .. } => 0,
        };
        let missing = missing(&partition, &active, window);
        if !missing.is_empty() && self.may_come(set, &missing) {
            set.status = Status::Meeting;
            return Ok(Step::Waits);
        }
        self.enter_turns(set);
        self.leaf(i, &partition, &active, mask)?;
        self.note_iteration(set);
        set.advance();
        Ok(Step::On)
    }

    /// Whether a body waits for the other threads of its group, before its comparison with the
    /// meaning of its spec.
    fn waits_to_compare(
        &mut self,
        set: &mut ConvergedSet<'k>,
        check: usize,
        partition: &Partition,
        active: &Mask,
        site: u32,
    ) -> Checked<bool> {
        let missing = self.to_compare(check, partition, active);
        let wanted = !missing.is_empty() && self.may_come(set, &missing);
        if wanted && !set.alone {
            set.status = Status::Meeting;
            return Ok(true);
        }
        self.expect(check, partition, active, site, wanted)?;
        Ok(false)
    }

    /// The first value of a loop variable, the end of the loop, and the threads that enter the
    /// loop; `None` if no thread enters it.
    fn trips(
        &self,
        start: &Index,
        end: &Index,
        mask: &Mask,
        site: u32,
    ) -> Checked<Option<(LoopValue, LoopValue, Mask)>> {
        if start.is_uniform() && end.is_uniform() {
            let bad = |e: BadIndex| errors::bad_index(self.kernel, site, e);
            let first = start.base(&self.env).map_err(bad)?;
            let end = end.base(&self.env).map_err(bad)?;
            let trips = (LoopValue::Uniform(first), LoopValue::Uniform(end), *mask);
            return Ok((first < end).then_some(trips));
        }
        let mut values = vec![0i64; self.kernel.n_threads];
        let mut ends = vec![0i64; self.kernel.n_threads];
        for t in mask.threads() {
            values[t] = self.index(start, t, site)?;
            ends[t] = self.index(end, t, site)?;
        }
        let going = going(mask, &values, &ends);
        let trips = (LoopValue::ByThread(values), LoopValue::ByThread(ends), going);
        Ok((!going.is_empty()).then_some(trips))
    }

    /// The new value of a counter, for all threads or for each of these.
    fn counter(&self, value: &Index, varying: bool, mask: &Mask, site: u32) -> Checked<LoopValue> {
        let fits = |value: i64| match (0..=MAX_COUNTER).contains(&value) {
            true => Ok(value),
            false => Err(errors::no_counter(self.kernel, site, value)),
        };
        if !varying && let Some(first) = mask.threads().next() {
            return Ok(LoopValue::Uniform(fits(self.index(value, first, site)?)?));
        }
        let mut values = vec![0i64; self.kernel.n_threads];
        for t in mask.threads() {
            values[t] = fits(self.index(value, t, site)?)?;
        }
        Ok(LoopValue::ByThread(values))
    }

    /// The threads for which all conditions hold.
    fn all_hold_for(&self, cond: &[Compare], mask: &Mask, site: u32) -> Checked<Mask> {
        let mut yes = Mask::NONE;
        let first = mask.threads().next().filter(|_| cond.iter().all(Compare::is_uniform));
        match first {
            Some(first) if self.all_hold(cond, first, site)? => yes = *mask,
            Some(_) => {}
            None => {
                for t in mask.threads() {
                    if self.all_hold(cond, t, site)? {
                        yes.insert(t);
                    }
                }
            }
        }
        Ok(yes)
    }

    /// Separates warps whose lanes all take one branch; divergent warps take one branch after the
    /// other.
    fn part(
        &mut self,
        set: &mut ConvergedSet<'k>,
        yes: &Mask,
        no: &Mask,
        then: &'k [Node],
        otherwise: &'k [Node],
    ) {
        let (y, n) = (yes.warps(), no.warps());
        for warps in [n & !y, y & n] {
            if set.mask().warps() & warps != 0
                && set.mask().warps() & !warps != 0
                && let Some(mut other) = set.part(warps)
            {
                branch(&mut other, yes, no, then, otherwise);
                other.loops = self.env.loops.clone();
                self.put(other);
            }
        }
    }

    /// Executes a synchronization statement, if all threads that it needs are present. Complete
    /// warps that continue separate from those that wait.
    fn try_sync(
        &mut self,
        set: &mut ConvergedSet<'k>,
        sync: &SyncNode,
        mask: &Mask,
    ) -> Checked<Step> {
        // The effects on mbarriers do not belong to the previous execution.
        self.serial = self.serial.wrapping_add(1);
        let absent = self.absent(sync, mask);
        if !absent.is_empty() && self.may_come(set, &absent) {
            set.status = Status::Meeting;
            return Ok(Step::Waits);
        }
        let waiting = self.waiting(sync, mask)?;
        if waiting.is_empty() {
            self.sync(sync, mask)?;
            set.advance();
            return Ok(Step::On);
        }
        let ready = mask.without(&waiting);
        if !ready.is_empty()
            && let Some(mut other) = set.part(ready.warps())
        {
            self.sync(sync, &ready)?;
            other.advance();
            other.loops = self.env.loops.clone();
            self.put(other);
        }
        set.status = Status::Waiting;
        Ok(Step::Waits)
    }

    /// Whether all conditions hold for a thread.
    fn all_hold(&self, cond: &[Compare], thread: usize, site: u32) -> Checked<bool> {
        let mut all = true;
        for c in cond {
            let holds = c.holds(&self.env, thread);
            all &= holds.map_err(|e| errors::bad_index(self.kernel, site, e))?;
        }
        Ok(all)
    }

    /// Leaves a list of statements after its last statement.
    fn leave(&mut self, set: &mut ConvergedSet<'k>) -> Checked<Step> {
        let depth = set.frames.len();
        let parent = depth.checked_sub(2).and_then(|i| set.frames.get(i));
        let node = parent.and_then(|f| f.nodes.get(f.at));
        let frame = &mut set.frames[depth - 1];
        match (&mut frame.kind, node) {
            (Kind::Root, _) | (_, None) => {
                let mask = frame.mask;
                for t in mask.threads() {
                    if let Some(site) = self.blocks[self.rank].still_reads(t) {
                        return Err(errors::ends_early(self.kernel, site, t));
                    }
                    if let Some(site) = self.blocks[self.rank].still_copies(t) {
                        return Err(errors::ends_while_copied(self.kernel, site, t));
                    }
                }
                for warp in (0..self.kernel.n_warps).filter(|w| mask.warps() >> w & 1 == 1) {
                    if let Some(site) = self.blocks[self.rank].flights.still_reads(warp) {
                        return Err(errors::ends_while_multiplying(self.kernel, site));
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
            (Kind::Body, Some(Node::Body { threads, check: Some(check), .. }))
                if self.mode.check =>
            {
                let partition = self.kernel.thread_tensors[*threads].partition(&self.env)?;
                let (mask, check) = (frame.mask, *check);
                let missing = self.to_compare(check, &partition, &mask);
                if !missing.is_empty()
                    && !set.alone
                    && self.is_expected(check, &partition, &mask)
                    && self.may_come(set, &missing)
                {
                    set.status = Status::Meeting;
                    return Ok(Step::Waits);
                }
                self.compare(check, &partition, &mask)?;
            }
            (Kind::Body, _) => {}
            (
                Kind::Loop { trip, end },
                Some(Node::For { slot, also, step, site, blocking, .. }),
            ) => {
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
                if !also.is_empty() && !mask.is_empty() {
                    mask = self.all_hold_for(also, &mask, *site)?;
                }
                if !mask.is_empty() {
                    (*trip, frame.at) = (*trip + 1, 0);
                    self.begins_turn(*site, &mask)?;
                    let through = frame.mask.without(&mask);
                    if *blocking && !through.is_empty() {
                        self.send_out(set, &through, &mask);
                    }
                    if let Some(frame) = set.top() {
                        frame.mask = mask;
                    }
                    return Ok(Step::On);
                }
            }
            (Kind::Loop { .. }, _) => {}
        }
        set.frames.pop();
        set.advance();
        Ok(Step::On)
    }

    /// Lets complete warps whose threads all skip a statement continue after the statement.
    fn send_on(&mut self, set: &mut ConvergedSet<'k>, past: &Mask) {
        let warps = past.warps() & !set.mask().without(past).warps();
        if warps == 0 {
            return;
        }
        if let Some(mut other) = set.part(warps) {
            other.advance();
            other.loops = self.env.loops.clone();
            self.put(other);
        }
    }

    /// Lets complete warps that have finished a loop continue after the loop, while others begin an
    /// iteration.
    fn send_out(&mut self, set: &mut ConvergedSet<'k>, through: &Mask, going: &Mask) {
        let warps = through.warps() & !going.warps();
        if warps == 0 {
            return;
        }
        if let Some(mut other) = set.part(warps) {
            other.frames.pop();
            other.advance();
            other.loops = self.env.loops.clone();
            self.put(other);
        }
    }

    /// Executes a separate barrier of each group: complete groups continue, the others wait.
    fn own_barrier(
        &mut self,
        set: &mut ConvergedSet<'k>,
        groups: &[Mask],
        site: u32,
    ) -> Checked<Step> {
        let all = groups.iter().fold(Mask::NONE, |all, g| all.or(g));
        let others = set.mask().without(&all);
        self.send_on(set, &others);
        let mask = set.mask();
        let here = groups.iter().filter(|g| !mask.and(g).is_empty());
        let (complete, waiting): (Vec<Mask>, Vec<Mask>) = here.partition(|g| mask.contains(g));
        for group in &complete {
            self.passes(site, group);
            self.synchronize(group);
        }
        let Some((last, waiting)) = waiting.split_last() else {
            set.advance();
            return Ok(Step::On);
        };
        let through = complete.iter().fold(Mask::NONE, |all, g| all.or(g));
        self.send_on(set, &through);
        for group in waiting {
            // Groups that share a warp wait together.
            if set.mask().warps() & !group.warps() == 0 {
                continue;
            }
            let Some(mut other) = set.part(group.warps()) else { continue };
            other.loops = self.env.loops.clone();
            if matches!(self.named_barrier(&mut other, *group, site)?, Step::Ended) {
                continue;
            }
            self.put(other);
        }
        self.named_barrier(set, *last, site)
    }

    /// Executes a barrier of some threads, which may be at different barrier statements.
    fn named_barrier(
        &mut self,
        set: &mut ConvergedSet<'k>,
        named: Mask,
        site: u32,
    ) -> Checked<Step> {
        let mask = set.mask();
        self.send_on(set, &mask.without(&named));
        let waits = |s: &ConvergedSet<'_>, rank: usize| {
            s.rank == rank && matches!(&s.status, Status::Barrier(m) if *m == named)
        };
        let rank = set.rank;
        let others = self.converged.iter().filter(|s| waits(s, rank));
        let arrived = others.fold(set.mask(), |all, s| all.or(&s.mask()));
        if !arrived.contains(&named) {
            set.status = Status::Barrier(named);
            return Ok(Step::Waits);
        }
        self.passes(site, &named);
        self.synchronize(&named);
        set.advance();
        let (through, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.converged).into_iter().partition(|s| waits(s, rank));
        self.converged = rest;
        for mut other in through {
            other.advance();
            self.put(other);
        }
        Ok(Step::On)
    }

    /// Handles a state in which no set can continue. First releases a set that waits only for the
    /// comparison of a body. Without such a set, reports the set that is farthest behind.
    fn stuck(&mut self) -> Checked<()> {
        let order = |a: &&mut ConvergedSet<'_>, b: &&mut ConvergedSet<'_>| {
            a.compare(b).then(a.rank.cmp(&b.rank))
        };
        let compares = |s: &&mut ConvergedSet<'_>| {
            let at = s.frames.last().and_then(|f| f.nodes.get(f.at));
            let body = matches!(at, None | Some(Node::Body { .. }));
            s.status == Status::Meeting && body && !s.alone
        };
        if let Some(set) = self.converged.iter_mut().filter(compares).min_by(order) {
            // Its threads synchronize with each other inside the body, so the body cannot be
            // compared.
            (set.status, set.alone) = (Status::Ready, true);
            return Ok(());
        }
        let Some(set) = self.converged.iter_mut().min_by(order) else { return Ok(()) };
        let mask = set.mask();
        let status = set.status.clone();
        let site = site_of(self.kernel, set).unwrap_or(0);
        match status {
            Status::Barrier(named) => {
                let rank = set.rank;
                let arrived = self
                    .converged
                    .iter()
                    .filter(|s| s.rank == rank && s.status == Status::Barrier(named))
                    .fold(Mask::NONE, |all, s| all.or(&s.mask()));
                Err(errors::deadlock(self.kernel, site, &named.without(&arrived)))
            }
            Status::Waiting => {
                let mut waiting: Vec<ConvergedSet<'_>> = self
                    .converged
                    .iter()
                    .filter(|s| s.status == Status::Waiting)
                    .cloned()
                    .collect();
                waiting.sort_by(|a, b| a.compare(b).then(a.rank.cmp(&b.rank)));
                self.waits_for_ever(&waiting)?;
                self.converged.iter_mut().for_each(|s| s.status = Status::Ready);
                Ok(())
            }
            Status::Meeting | Status::Ready => {
                let absent = Mask::first(self.kernel.n_threads).without(&mask);
                Err(diverged(self.kernel, site, absent.threads().count()))
            }
        }
    }
}

/// The current statement of a converged set.
fn site_of(kernel: &Kernel<'_>, set: &ConvergedSet<'_>) -> Option<u32> {
    let frame = set.frames.last()?;
    match frame.nodes.get(frame.at)? {
        Node::Leaf(i) => Some(kernel.leaves[*i].site),
        Node::Barrier { site, .. }
        | Node::Body { site, .. }
        | Node::Element { site, .. }
        | Node::Step { site, .. }
        | Node::For { site, .. }
        | Node::If { site, .. } => Some(*site),
        Node::Sync(sync) => Some(sync.site),
        Node::Allocate(_) => None,
    }
}

/// The absent threads of partially active groups. For an atom, those of the windows of warps that
/// the atom takes at once.
pub(super) fn missing(partition: &Partition, active: &Mask, window: usize) -> Mask {
    let mut missing = Mask::NONE;
    if active.contains(&partition.mask) && window <= 32 {
        return missing;
    }
    if window > 32 {
        let per = window / 32;
        for first in (0..32).step_by(per) {
            let warps = ((1u64 << per) - 1) as u32;
            let warps = warps << first;
            if active.warps() & warps != 0 {
                missing = missing.or(&partition.mask.of_warps(warps).without(active));
            }
        }
        return missing;
    }
    if window == 32 {
        return missing;
    }
    for group in &partition.groups {
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

/// Enters the branch that the threads of a set take first.
fn branch<'k>(
    set: &mut ConvergedSet<'k>,
    yes: &Mask,
    no: &Mask,
    then: &'k [Node],
    otherwise: &'k [Node],
) {
    let mine = set.mask();
    let (yes, no) = (yes.and(&mine), no.and(&mine));
    let frame = if yes.is_empty() {
        let kind = Kind::Branch { second: true, otherwise: None };
        Frame { nodes: otherwise, at: 0, mask: no, kind }
    } else {
        let next = (!no.is_empty()).then_some((otherwise, no));
        let kind = Kind::Branch { second: false, otherwise: next };
        Frame { nodes: then, at: 0, mask: yes, kind }
    };
    set.frames.push(frame);
}
