//! Tracks the order of accesses by threads ([`Clocks`]), by vector clocks with one entry per class
//! of threads.
//!
//! A *class* is a set of threads that have taken part in the same synchronization so far. A class
//! has a time, which advances at each synchronization. All threads of a class know the same about
//! other classes. About each other they know only the accesses that a synchronization of the whole
//! class ordered; each thread also knows its own accesses. A statement that only some threads of a
//! class execute splits the class.
//!
//! Each class has three clocks:
//!
//! - `seen`: the accesses that are ordered before the class.
//! - `fenced`: the part of `seen` that a proxy fence follows.
//! - `happened`: everything that has happened before in time, whether or not its effects on memory
//!   are visible.
//!
//! A class also has three queues of asynchronous work ([`Queue`]): groups of `cp.async`, of bulk
//! copies and of `wgmma`, each open, committed or waited for. [`Clocks`] records every event that
//! passes knowledge on. [`Clocks::path`] searches these events for a certificate, the chain of
//! statements that orders two accesses.

use crate::clock::{Agent, Clock};
use crate::fingerprint::Fingerprinter;
use carbyne_ir::expr::VarId;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// Clocks that one class passes to another one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    pub(crate) seen: Clock,
    pub(crate) fenced: Clock,
    pub(crate) happened: Clock,
}

impl Message {
    pub(crate) fn each<'c>(&'c self, clocks: &mut Vec<&'c Clock>) {
        clocks.extend([&self.seen, &self.fenced, &self.happened]);
    }
    pub(crate) fn join(&mut self, other: &Message) {
        self.seen.join(&other.seen);
        self.fenced.join(&other.fenced);
        self.happened.join(&other.happened);
    }
    /// Copies the knowledge about `from` to `to`, which has split off.
    pub(crate) fn split(&mut self, from: Agent, to: Agent) {
        for clock in [&mut self.seen, &mut self.fenced, &mut self.happened] {
            let time = clock.get(from);
            if time > 0 {
                clock.raise(to, time);
            }
        }
    }
}

/// The kinds of asynchronous work that is committed in groups.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// Copies of a thread into shared memory (`cp.async`).
    Copies = 0,
    /// Bulk copies of a thread out of shared memory.
    Bulk = 1,
    /// Asynchronous MatMuls of a warp (`wgmma`).
    MatMuls = 2,
}

/// The work issued between two statements that commit a group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    /// The number of the group, counted from 1; 0 while the batch is open.
    pub(crate) group: u32,
    /// The time of the class at which the batch was waited for; 0 until then.
    pub(crate) done: u32,
    /// The time at which its reads were waited for.
    pub(crate) done_reading: u32,
    /// The statement that committed the group.
    pub(crate) committed_at: u32,
    /// The statements that waited for the batch and for its reads.
    pub(crate) waited_at: u32,
    pub(crate) read_at: u32,
    /// The phase that counts its arrival: the agent, and the number of phases that are then
    /// complete.
    pub(crate) lands: Option<(Agent, u32)>,
    /// The statement that arrives on its behalf.
    pub(crate) landed_at: u32,
    /// A statement that issued a part of the batch.
    pub(crate) site: Option<u32>,
}

/// The batches of each thread of a class.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) batches: Vec<Batch>,
    committed: u32,
    first_live: usize,
    /// The last wait: its statement, the number of groups that it left in flight, the number of
    /// groups committed then, and whether it waited for reads alone.
    waited: Option<(u32, u32, u32, bool)>,
}

/// The reason why a batch is in flight.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Open {
    /// No statement has committed its group.
    Uncommitted,
    /// A statement makes a phase count the batch, and no thread has waited for the phase.
    Counted(u32),
    /// A wait must leave at most `needed` groups in flight. `wait` is an existing wait that leaves
    /// more, with this number.
    Left { needed: u32, wait: Option<(u32, u32)> },
}

impl Default for Queue {
    fn default() -> Self {
        Queue { batches: vec![Batch::default()], committed: 0, first_live: 0, waited: None }
    }
}

impl Batch {
    fn fingerprint(&self, fingerprint: &mut Fingerprinter<'_>, of: Agent) {
        let site = |s: Option<u32>| s.map_or(0, |s| u64::from(s) + 1);
        fingerprint.words(&[site(self.site), u64::from(self.waited_at), u64::from(self.read_at)]);
        fingerprint.words(&[u64::from(self.committed_at)]);
        fingerprint.time(of, self.done);
        fingerprint.time(of, self.done_reading);
        let (agent, phases) = self.lands.unwrap_or((of, 0));
        fingerprint.time(agent, phases);
        fingerprint.words(&[u64::from(self.landed_at)]);
    }
}

impl Queue {
    /// Adds the batches in flight. A batch whose reads are complete is left out here, since the
    /// recorded accesses that belong to it add it.
    fn fingerprint(&self, fingerprint: &mut Fingerprinter<'_>, of: Agent) {
        for (i, b) in self.batches.iter().enumerate().skip(self.first_live) {
            if b.done == 0 && b.done_reading == 0 && b.lands.is_none() {
                self.fingerprint_batch(fingerprint, of, i as u32);
            }
        }
        fingerprint.words(&[u64::MAX]);
    }

    /// Adds the batch of an access: its position if it is in flight, and its state.
    pub(crate) fn fingerprint_batch(
        &self,
        fingerprint: &mut Fingerprinter<'_>,
        of: Agent,
        batch: u32,
    ) {
        let Some(b) = self.batches.get(batch as usize) else { return };
        if b.done == 0 {
            let back = if b.group == 0 { 0 } else { 1 + self.committed - b.group };
            let place =
                if b.lands.is_none() { self.batches.len() as u64 - u64::from(batch) } else { 0 };
            fingerprint.words(&[place, u64::from(back)]);
        }
        b.fingerprint(fingerprint, of);
    }

    /// The reason why a batch is in flight.
    pub(crate) fn why(&self, batch: u32, reading: bool) -> Option<Open> {
        let b = self.batches.get(batch as usize)?;
        if b.lands.is_some() {
            return Some(Open::Counted(b.landed_at));
        }
        if b.group == 0 {
            return Some(Open::Uncommitted);
        }
        let wait = self.waited.filter(|(_, left, of, reads)| {
            *of >= b.group && (reading || !reads) && *left > of - b.group
        });
        Some(match wait {
            Some((site, left, of, _)) => {
                Open::Left { needed: of - b.group, wait: Some((site, left)) }
            }
            None => Open::Left { needed: self.committed.saturating_sub(b.group), wait: None },
        })
    }

    pub(crate) fn open(&self) -> u32 {
        self.batches.len() as u32 - 1
    }
    pub(crate) fn issue(&mut self, site: u32) -> u32 {
        if let Some(batch) = self.batches.last_mut() {
            batch.site = Some(site);
        }
        self.open()
    }
    pub(crate) fn commit(&mut self, site: u32) {
        self.committed += 1;
        let group = self.committed;
        let open = self.batches.iter_mut().rev().take_while(|b| b.group == 0);
        open.for_each(|b| (b.group, b.committed_at) = (group, site));
        // Empty groups count, but are not stored.
        if self.batches.last().is_some_and(|b| b.site.is_some()) {
            self.batches.push(Batch::default());
        } else if let Some(batch) = self.batches.last_mut() {
            (batch.group, batch.committed_at) = (0, 0);
        }
    }
    pub(crate) fn wait(&mut self, left: u32, time: u32, reading: bool, site: u32) {
        self.waited = Some((site, left, self.committed, reading));
        let complete = self.committed.saturating_sub(left);
        for b in self.batches.iter_mut().skip(self.first_live) {
            if b.group == 0 || b.group > complete {
                break;
            }
            if b.done_reading == 0 {
                (b.done_reading, b.read_at) = (time, site);
            }
            if !reading && b.done == 0 {
                (b.done, b.waited_at) = (time, site);
            }
        }
        while self
            .batches
            .get(self.first_live)
            .is_some_and(|b| b.done > 0 || b.lands.is_some() && b.group > 0)
        {
            self.first_live += 1;
        }
    }
    /// Makes a phase count everything that is in flight.
    pub(crate) fn land(&mut self, agent: Agent, phase: u32, site: u32) {
        for b in self.batches.iter_mut().skip(self.first_live) {
            if b.done == 0 && b.lands.is_none() && b.site.is_some() {
                (b.lands, b.landed_at) = (Some((agent, phase)), site);
            }
        }
        if self.batches.last().is_some_and(|b| b.site.is_some()) {
            self.batches.push(Batch::default());
        }
    }
    /// A statement whose work no thread has waited for and no phase counts.
    pub(crate) fn left(&self, reading: bool) -> Option<u32> {
        let under_way = |b: &&Batch| {
            b.lands.is_none() && if reading { b.done_reading == 0 } else { b.done == 0 }
        };
        self.batches.iter().skip(self.first_live).filter(under_way).find_map(|b| b.site)
    }
}

/// Warps, and for each class the time up to which their threads know the past of their own warp.
pub(crate) type Converged = (Vec<u32>, Vec<(Agent, u32)>);

/// Threads that synchronize together.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub(crate) agent: Agent,
    /// The threads of the class, as ascending indices in the cluster.
    pub(crate) members: Vec<u32>,
    pub(crate) time: u32,
    pub(crate) knows: Message,
    pub(crate) queues: [Queue; 3],
    /// For each class, the time up to which a thread knows the past of its own warp, as of the last
    /// statement that whole warps executed together.
    pub(crate) converged: Vec<(Agent, u32)>,
    /// The warps of the members, ascending.
    pub(crate) warps: Vec<u32>,
    /// For each time, the index of the event that ended it.
    ended: Vec<u32>,
}

impl Class {
    pub(crate) fn queue(&self, engine: Engine) -> &Queue {
        &self.queues[engine as usize]
    }
    pub(crate) fn queue_mut(&mut self, engine: Engine) -> &mut Queue {
        &mut self.queues[engine as usize]
    }
}

/// An event that passed knowledge between agents.
#[derive(Clone, Debug)]
struct Event {
    site: u32,
    from: Vec<Agent>,
    to: Vec<Agent>,
    kind: EventKind,
    /// If the event completes a phase, the statements that contributed to the phase.
    with: Vec<u32>,
}

/// The effect of an event.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum EventKind {
    /// Passes knowledge on.
    Pass,
    /// A proxy fence.
    Fence,
    /// A part of a class becomes a class of its own.
    Split,
}

/// The start of a certificate: the event from which on an access can become known, and its agent.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Since {
    agent: Agent,
    event: usize,
    /// Whether other agents know the access, so that it is not the agent's own access.
    is_told: bool,
}

/// A chain of statements that passes an order on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Way {
    /// The statements of the chain, in their order.
    pub(crate) steps: Vec<u32>,
    /// Statements that contribute to the chain, because its phases would not be complete without
    /// them.
    pub(crate) with: Vec<u32>,
    /// The loop and the number of its iterations between the accesses.
    pub(crate) distance: Option<(VarId, i64)>,
}

/// An agent that knows of an access; whether it knows from another agent; whether a fence follows
/// the access.
type Knows = (Agent, bool, bool);

/// The clocks of all classes, and the events that changed them.
#[derive(Clone)]
pub(crate) struct Clocks {
    pub(crate) classes: Vec<Class>,
    /// The class of each thread of the cluster.
    pub(crate) class_of: Vec<u32>,
    /// The class of each warp, if all its lanes are in one class.
    of_warp: Vec<Option<u32>>,
    n_threads: usize,
    /// The distance between the first threads of consecutive blocks.
    pub(crate) per: usize,
    n_agents: u32,
    events: Vec<Event>,
    /// For each counter of phases, the events that completed them.
    phases: BTreeMap<Agent, Vec<u32>>,
    /// For each agent that split off: the agent that it was part of, and the event.
    origins: BTreeMap<Agent, (Agent, usize)>,
    /// All splits, as (old agent, new agent).
    pub(crate) splits: Vec<(Agent, Agent)>,
}

/// The statement of an event without a statement in the text.
const NOWHERE: u32 = u32::MAX;
/// The most events that are searched for one certificate.
const MAX_SEARCH: usize = 1 << 13;
/// The most events that are stored.
const MAX_EVENTS: usize = 1 << 20;

impl Clocks {
    pub(crate) fn new(n_blocks: usize, n_threads: usize) -> Self {
        let per = n_threads.next_multiple_of(32);
        let mut clocks = Clocks {
            classes: vec![],
            class_of: vec![0; n_blocks * per],
            of_warp: vec![],
            n_threads,
            per,
            n_agents: 0,
            events: vec![],
            phases: BTreeMap::new(),
            origins: BTreeMap::new(),
            splits: vec![],
        };
        for rank in 0..n_blocks {
            let members: Vec<u32> = (0..n_threads).map(|t| (rank * per + t) as u32).collect();
            let agent = clocks.agent();
            members.iter().for_each(|t| clocks.class_of[*t as usize] = clocks.classes.len() as u32);
            clocks.classes.push(Class {
                agent,
                time: 1,
                knows: Message::default(),
                queues: Default::default(),
                converged: vec![],
                warps: warps_of(&members),
                members,
                ended: vec![0],
            });
        }
        clocks.of_warp = (0..n_blocks * per / 32).map(|w| Some(clocks.class_of[w * 32])).collect();
        clocks
    }

    pub(crate) fn agent(&mut self) -> Agent {
        self.n_agents += 1;
        self.n_agents - 1
    }

    #[inline]
    pub(crate) fn class(&self, thread: u32) -> &Class {
        &self.classes[self.class_of[thread as usize] as usize]
    }

    /// The class of all lanes of a warp, if they are in one class.
    #[inline]
    pub(crate) fn of_warp(&self, warp: u32) -> Option<u32> {
        self.of_warp[warp as usize]
    }

    /// The classes that consist of exactly these threads. Classes that contain other threads are
    /// split, and the splits are appended to `splits`.
    pub(crate) fn separate(&mut self, threads: &[u32]) -> Vec<usize> {
        let mut by_class: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for run in threads.chunk_by(|a, b| self.class_of[*a as usize] == self.class_of[*b as usize])
        {
            by_class.entry(self.class_of[run[0] as usize]).or_default().extend(run);
        }
        let mut out = Vec::with_capacity(by_class.len());
        for (class, mut members) in by_class {
            let class = class as usize;
            if members.len() == self.classes[class].members.len() {
                out.push(class);
                continue;
            }
            members.sort_unstable();
            let (old, new) = (self.classes[class].agent, self.agent());
            for other in &mut self.classes {
                other.knows.split(old, new);
                let of_old = other.converged.iter().find(|(a, _)| *a == old).map(|(_, t)| *t);
                other.converged.extend(of_old.map(|t| (new, t)));
            }
            let mut part = self.classes[class].clone();
            part.agent = new;
            self.classes[class].members.retain(|t| members.binary_search(t).is_err());
            let number = self.classes.len();
            for t in &members {
                self.class_of[*t as usize] = number as u32;
            }
            let warps: BTreeSet<u32> = members.iter().map(|t| t / 32).collect();
            for warp in warps {
                let first = warp as usize * 32;
                let lanes = self.n_threads.saturating_sub(first % self.per).min(32);
                let mut all = self.class_of.iter().skip(first).take(lanes);
                let same = all.all(|c| *c == number as u32);
                self.of_warp[warp as usize] = same.then_some(number as u32);
            }
            self.classes[class].warps = warps_of(&self.classes[class].members);
            part.warps = warps_of(&members);
            part.members = members;
            self.classes.push(part);
            self.splits.push((old, new));
            self.origins.insert(new, (old, self.events.len()));
            self.event(NOWHERE, vec![old], vec![new], EventKind::Split, vec![]);
            out.push(number);
        }
        out
    }

    fn event(
        &mut self,
        site: u32,
        from: Vec<Agent>,
        to: Vec<Agent>,
        kind: EventKind,
        with: Vec<u32>,
    ) {
        if self.events.len() < MAX_EVENTS {
            self.events.push(Event { site, from, to, kind, with });
        }
    }

    fn tick(&mut self, class: usize) {
        let now = self.events.len() as u32;
        let class = &mut self.classes[class];
        class.ended.push(now);
        class.time += 1;
    }

    /// Everything that a class knows and has done so far. Its time advances. If `to` is given,
    /// records that the statement `site` passes the message to it.
    pub(crate) fn release(&mut self, class: usize, to: Option<Agent>, site: u32) -> Message {
        let c = &self.classes[class];
        let (agent, time) = (c.agent, c.time);
        let mut message = c.knows.clone();
        message.seen.raise(agent, time);
        message.happened.raise(agent, time);
        message.happened.join(&self.converged(&[(c.warps.clone(), c.converged.clone())]));
        self.tick(class);
        if let Some(to) = to {
            self.event(site, vec![agent], vec![to], EventKind::Pass, vec![]);
        }
        message
    }

    pub(crate) fn acquire(
        &mut self,
        class: usize,
        message: &Message,
        from: Option<Agent>,
        site: u32,
    ) {
        let agent = self.classes[class].agent;
        self.classes[class].knows.join(message);
        if let Some(from) = from {
            self.event(site, vec![from], vec![agent], EventKind::Pass, vec![]);
        }
    }

    /// Collects all clocks of classes.
    pub(crate) fn each<'c>(&'c self, clocks: &mut Vec<&'c Clock>) {
        for class in &self.classes {
            class.knows.each(clocks);
        }
    }

    /// Adds everything that decides the relation of future accesses to earlier ones.
    pub(crate) fn fingerprint(&self, fingerprint: &mut Fingerprinter<'_>) {
        for class in &self.classes {
            fingerprint.words(&[u64::from(class.agent), class.members.len() as u64]);
            fingerprint.threads(&class.members);
            class.queues.iter().for_each(|q| q.fingerprint(fingerprint, class.agent));
            class.converged.iter().for_each(|(agent, _)| fingerprint.words(&[u64::from(*agent)]));
            fingerprint.words(&[u64::MAX]);
        }
    }

    /// Orders all future accesses of these classes after everything that any of them did.
    pub(crate) fn synchronize(&mut self, classes: &[usize], site: u32) {
        let mut all = Message::default();
        for class in classes {
            let message = self.release(*class, None, site);
            all.join(&message);
        }
        let agents: Vec<Agent> = classes.iter().map(|c| self.classes[*c].agent).collect();
        for class in classes {
            self.classes[*class].knows.join(&all);
        }
        self.event(site, agents.clone(), agents, EventKind::Pass, vec![]);
    }

    /// The past of the warps of these threads, each of which knows the past of its own warp up to a
    /// time.
    pub(crate) fn converged(&self, of: &[Converged]) -> Clock {
        let mut clock = Clock::default();
        for agent in of.iter().flat_map(|(_, times)| times.iter().map(|(a, _)| *a)) {
            let Some(class) = self.classes.iter().find(|c| c.agent == agent) else { continue };
            let time = |warp: &u32| {
                let there = of.iter().filter(|(warps, _)| warps.binary_search(warp).is_ok());
                let times = there.flat_map(|(_, times)| times.iter());
                times.filter(|(a, _)| *a == agent).map(|(_, t)| *t).max().unwrap_or(0)
            };
            let least = class.warps.iter().map(time).min().unwrap_or(0);
            if least > 0 {
                clock.raise(agent, least);
            }
        }
        clock
    }

    /// Whole warps reach a statement together. Their lanes know that the others have reached it,
    /// but nothing about memory.
    pub(crate) fn converge(&mut self, classes: &[usize]) {
        let times: Vec<(Agent, u32)> =
            classes.iter().map(|c| (self.classes[*c].agent, self.classes[*c].time)).collect();
        for class in classes {
            self.classes[*class].converged = times.clone();
            self.tick(*class);
        }
    }

    /// A proxy fence by all threads of a class.
    pub(crate) fn fence(&mut self, class: usize, site: u32) {
        let c = &mut self.classes[class];
        let (agent, time) = (c.agent, c.time);
        let seen = c.knows.seen.clone();
        c.knows.fenced.join(&seen);
        c.knows.fenced.raise(agent, time);
        self.tick(class);
        self.event(site, vec![agent], vec![agent], EventKind::Fence, vec![]);
    }

    /// A phase of an agent is complete, to which the statements `with` contributed. Threads that
    /// wait for the phase from now on know what arrived in it.
    pub(crate) fn complete(&mut self, arriving: Agent, agent: Agent, with: Vec<u32>) {
        let now = self.events.len() as u32;
        self.phases.entry(agent).or_default().push(now);
        self.event(NOWHERE, vec![arriving], vec![agent], EventKind::Pass, with);
    }

    /// The start of a certificate for an access at a time of a class.
    pub(crate) fn since(&self, class: &Class, time: u32) -> Since {
        let event = class.ended.get(time as usize).copied().unwrap_or(self.events.len() as u32);
        Since { agent: class.agent, event: event as usize, is_told: false }
    }

    /// The start of a certificate for work that is complete with this number of phases.
    pub(crate) fn since_phase(&self, agent: Agent, phases: u32) -> Option<Since> {
        let of = self.phases.get(&agent)?;
        let event = *of.get((phases as usize).checked_sub(1)?)?;
        Some(Since { agent, event: event as usize, is_told: true })
    }

    /// The statements through which a thread of `to` learns of something, in their order, with a
    /// proxy fence if `fence`. `own` states that the thread did it itself. Returns none if no chain
    /// is found.
    pub(crate) fn path(&self, since: Since, to: Agent, own: bool, fence: bool) -> Option<Way> {
        let Since { agent, event: first, is_told } = since;
        // The agent that it was part of at the time of that event.
        let (mut start, mut later) = (agent, vec![]);
        while let Some((old, _)) = self.origins.get(&start).filter(|(_, at)| *at >= first) {
            later.push(start);
            start = *old;
        }
        let is_there = |(agent, told, fenced): Knows| agent == to && fenced && (told || own);
        let begin = (start, is_told, !fence);
        // `ways` holds for each step of a chain its event and the step before; `known` holds the
        // step by which each agent knows.
        let mut ways: Vec<(usize, Option<usize>)> = vec![(usize::MAX, None)];
        let mut known: BTreeMap<Knows, usize> = BTreeMap::from([(begin, 0)]);
        let mut found = is_there(begin).then_some(0);
        for (i, e) in self.events.iter().enumerate().skip(first).take(MAX_SEARCH) {
            if found.is_some() {
                break;
            }
            let mut new: Vec<(Knows, usize)> = vec![];
            for from in &e.from {
                for (told, fenced) in [(false, false), (false, true), (true, false), (true, true)] {
                    let old = (*from, told, fenced);
                    let Some(way) = known.get(&old).copied() else { continue };
                    match e.kind {
                        EventKind::Pass => {
                            new.extend(e.to.iter().map(|t| ((*t, true, fenced), way)));
                        }
                        EventKind::Fence => new.push(((*from, told, true), way)),
                        // After a split, the part that contains the thread knows what the thread
                        // did itself.
                        EventKind::Split => {
                            let part = e.to.iter().find(|t| told || later.contains(t));
                            new.extend(part.map(|t| ((*t, told, fenced), way)));
                            if !told && part.is_some() {
                                known.remove(&old);
                            }
                        }
                    }
                }
            }
            for (knows, before) in new {
                if let Entry::Vacant(unknown) = known.entry(knows) {
                    unknown.insert(ways.len());
                    ways.push((i, Some(before)));
                    if is_there(knows) {
                        found = found.or(Some(ways.len() - 1));
                    }
                }
            }
        }
        // Whoever knows of the phase knows that it is complete, so its completion needs no step.
        let begun = self.events.get(first).filter(|_| is_told);
        let with = begun.map_or(vec![], |e| e.with.clone());
        let mut path = Way { with, ..Way::default() };
        let mut at = Some(found?);
        while let Some((event, before)) = at.and_then(|i| ways.get(i)) {
            if let Some(e) = self.events.get(*event) {
                path.steps.push(e.site);
                path.with.extend(&e.with);
            }
            at = *before;
        }
        path.steps.reverse();
        path.steps.retain(|s| *s != NOWHERE);
        path.steps.dedup();
        Some(path)
    }
}

/// The warps of ascending threads.
fn warps_of(threads: &[u32]) -> Vec<u32> {
    let mut warps: Vec<u32> = threads.iter().map(|t| t / 32).collect();
    warps.dedup();
    warps
}
