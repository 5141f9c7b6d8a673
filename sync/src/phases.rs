//! The state of mbarriers and of the cluster barrier: the arrivals of each phase, and the vector
//! clocks that the arrivals pass on to the threads that wait for the phase.

use crate::clock::{Agent, Clock};
use crate::clocks::{Clocks, Converged, Message};
use crate::fingerprint::Fingerprinter;
use carbyne_ir::diag::count;

/// An arrival of threads that arrive together.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) threads: Vec<u32>,
    pub(crate) time: u32,
    /// Whether the arrival happens when copies are complete.
    pub(crate) later: bool,
    pub(crate) site: u32,
    /// The threads' knowledge of the past of their own warps.
    pub(crate) converged: Converged,
}

/// The arrivals that completed a phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    pub(crate) list: Vec<Arrival>,
    /// A statement that brought bytes, if bytes were counted.
    pub(crate) bytes: Option<u32>,
    /// The number of phases that are complete with this one.
    phases: u32,
}

impl Arrivals {
    /// The number of phases that are complete with this one.
    pub(crate) fn phases(&self) -> u32 {
        self.phases
    }

    /// The statement of an arrival that is not ordered before the class reaches this point.
    pub(crate) fn unordered(
        &self,
        clocks: &Clocks,
        class: usize,
        agent: Agent,
        later: bool,
    ) -> Option<u32> {
        let me = &clocks.classes[class];
        let happened = &me.knows.happened;
        if self.phases == 0 || happened.get(agent) >= self.phases {
            return None;
        }
        if let Some(site) = self.bytes {
            return Some(site);
        }
        let comes_before = |a: &Arrival| {
            if a.later {
                return later && me.members.len() == 1 && a.threads == me.members;
            }
            a.threads.iter().all(|t| {
                let class = clocks.class(*t);
                let own = class.agent == me.agent && me.members.len() == 1;
                own || happened.get(class.agent) >= a.time
            })
        };
        self.list.iter().find(|a| !comes_before(a)).map(|a| a.site)
    }
}

/// A class that continued after a phase.
#[derive(Clone, Debug)]
pub(crate) struct Passed {
    threads: Vec<u32>,
    pub(crate) time: u32,
    pub(crate) site: u32,
}

impl Passed {
    /// One of its threads.
    pub(crate) fn thread(&self) -> u32 {
        self.threads.first().copied().unwrap_or(0)
    }
}

/// An mbarrier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mbarrier {
    pub(crate) agent: Agent,
    /// The agent that collects arrivals until their phase is complete.
    pub(crate) arrivals: Agent,
    pub(crate) count: i64,
    /// The buffer of the mbarrier.
    pub(crate) buffer: u32,
    /// The statement that initializes the mbarrier, and one that arrives on it.
    pub(crate) made_at: u32,
    pub(crate) arrived_at: Option<u32>,
    pub(crate) pending: i64,
    pub(crate) bytes: i64,
    /// The number of complete phases.
    pub(crate) phase: u32,
    pub(crate) arriving: Message,
    pub(crate) complete: Message,
    pub(crate) current: Arrivals,
    pub(crate) last: Arrivals,
    pub(crate) before: Arrivals,
    /// The thread that initialized the mbarrier, until asynchronous copies can see that.
    pub(crate) unpublished: Option<u32>,
    /// The fence that makes the initialization visible to copies or to other blocks.
    pub(crate) published_at: Option<u32>,
    /// The thread that initialized the mbarrier. `told` is the phase of the cluster barrier after
    /// which other threads know that. The inner option is none if the thread has executed the fence
    /// but has not arrived at the cluster barrier.
    pub(crate) made_by: u32,
    pub(crate) told: Option<Option<u32>>,
    /// The statement that arrives at the cluster barrier.
    pub(crate) told_at: u32,
    passed: Vec<Passed>,
    /// A statement whose copies were counted by a phase that no thread has waited for.
    pub(crate) unwaited: Option<u32>,
    landing: Option<u32>,
}

impl Arrivals {
    fn fingerprint(&self, fingerprint: &mut Fingerprinter<'_>, clocks: &Clocks, agent: Agent) {
        fingerprint.words(&[self.bytes.map_or(0, |s| u64::from(s) + 1)]);
        fingerprint.time(agent, self.phases);
        for a in &self.list {
            fingerprint.words(&[u64::from(a.site), u64::from(a.later), a.converged.1.len() as u64]);
            fingerprint_times(fingerprint, clocks, &a.threads, a.time);
            a.converged.0.iter().for_each(|w| fingerprint.words(&[u64::from(*w)]));
            a.converged.1.iter().for_each(|(agent, _)| fingerprint.words(&[u64::from(*agent)]));
        }
        fingerprint.words(&[u64::MAX]);
    }
}

/// Adds the accesses of threads at a time of their class. The threads may be in several classes by
/// now.
fn fingerprint_times(
    fingerprint: &mut Fingerprinter<'_>,
    clocks: &Clocks,
    threads: &[u32],
    time: u32,
) {
    fingerprint.threads(threads);
    let mut last = None;
    for t in threads {
        let agent = clocks.class(*t).agent;
        if last != Some(agent) {
            fingerprint.time(agent, time);
            last = Some(agent);
        }
    }
}

impl Mbarrier {
    /// The statement that initializes the mbarrier, and a label for it.
    pub(crate) fn made(&self) -> (u32, String) {
        let arrivals = count(usize::try_from(self.count).unwrap_or(0), "arrival");
        (self.made_at, format!("initialized here for {arrivals}"))
    }

    pub(crate) fn each<'c>(
        &'c self,
        clocks: &mut Vec<&'c Clock>,
        converged: &mut Vec<(Agent, u32)>,
    ) {
        self.arriving.each(clocks);
        self.complete.each(clocks);
        for a in [&self.current, &self.last, &self.before].into_iter().flat_map(|a| &a.list) {
            converged.extend(&a.converged.1);
        }
    }

    /// Adds everything that decides the future of its phases.
    pub(crate) fn fingerprint(&self, fingerprint: &mut Fingerprinter<'_>, clocks: &Clocks) {
        let some = |s: Option<u32>| s.map_or(0, |s| u64::from(s) + 1);
        let numbers =
            [some(self.arrived_at), self.count as u64, self.pending as u64, self.bytes as u64];
        fingerprint.words(&numbers);
        fingerprint.words(&[
            u64::from(self.phase & 1),
            some(self.unpublished),
            some(self.unwaited),
        ]);
        fingerprint.words(&[self.told.map_or(0, |told| some(told) + 1)]);
        fingerprint.words(&[some(self.landing), u64::from(self.phase.min(2))]);
        for arrivals in [&self.current, &self.last, &self.before] {
            arrivals.fingerprint(fingerprint, clocks, self.agent);
        }
        for p in &self.passed {
            fingerprint.words(&[u64::from(p.site)]);
            fingerprint_times(fingerprint, clocks, &p.threads, p.time);
        }
        fingerprint.words(&[u64::MAX]);
    }

    pub(crate) fn new(
        (agent, arrivals): (Agent, Agent),
        count: i64,
        by: u32,
        made_at: u32,
        buffer: u32,
    ) -> Self {
        Mbarrier {
            agent,
            arrivals,
            count,
            buffer,
            made_at,
            pending: count,
            unpublished: Some(by),
            made_by: by,
            ..Mbarrier::default()
        }
    }

    /// Makes the current phase count a copy of a statement.
    pub(crate) fn lands(&mut self, site: u32) {
        self.landing = Some(site);
    }

    /// Begins the next phase if the current one is complete. Reports a wait that may come too late
    /// for the phase before.
    pub(crate) fn settle(&mut self, clocks: &Clocks) -> Settled {
        if self.pending != 0 || self.bytes != 0 {
            return Settled::Not;
        }
        self.phase += 1;
        self.pending = self.count;
        let mut message = std::mem::take(&mut self.arriving);
        for clock in [&mut message.seen, &mut message.happened] {
            clock.raise(self.agent, self.phase);
        }
        let of: Vec<Converged> = self.current.list.iter().map(|a| a.converged.clone()).collect();
        message.happened.join(&clocks.converged(&of));
        self.complete.join(&message);
        let mut done = std::mem::take(&mut self.current);
        done.phases = self.phase;
        self.before = std::mem::replace(&mut self.last, done);
        if let Some(site) = self.landing.take() {
            self.unwaited = Some(site);
        }
        // The waits for the phase before must have returned by now, in every order of the threads.
        let passed = std::mem::take(&mut self.passed);
        let late = passed.iter().find(|p| {
            let knows = |t: &u32| self.complete.happened.get(clocks.class(*t).agent) >= p.time;
            !p.threads.iter().all(knows)
        });
        match late {
            Some(p) => Settled::Late(p.site),
            None => Settled::Complete(passed),
        }
    }

    /// The statements that contributed to the complete phase: arrivals and the init.
    pub(crate) fn parts(&self) -> Vec<u32> {
        let arrivals = self.last.list.iter().map(|a| a.site);
        let mut sites: Vec<u32> = arrivals.chain([self.made_at]).chain(self.last.bytes).collect();
        sites.sort_unstable();
        sites.dedup();
        sites
    }

    /// Whether a wait for a parity returns.
    pub(crate) fn passes(&self, parity: i64) -> bool {
        i64::from(self.phase & 1) != parity & 1
    }

    /// A class continues after its wait.
    pub(crate) fn pass(&mut self, clocks: &Clocks, class: usize, site: u32) {
        let class = &clocks.classes[class];
        self.passed.retain(|p| p.threads != class.members);
        self.passed.push(Passed { threads: class.members.clone(), time: class.time, site });
        self.unwaited = None;
    }

    pub(crate) fn split(&mut self, from: Agent, to: Agent) {
        self.arriving.split(from, to);
        self.complete.split(from, to);
    }
}

/// The state of a phase.
pub(crate) enum Settled {
    Not,
    /// The phase is complete. The classes are those that had waited for the phase before.
    Complete(Vec<Passed>),
    /// The phase is complete, but a wait for the phase before may not have returned.
    Late(u32),
}

/// The barrier of the threads of a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterBarrier {
    pub(crate) agent: Agent,
    /// The agent that collects arrivals until their phase is complete.
    pub(crate) arrivals: Agent,
    pub(crate) phase: u32,
    arrived: usize,
    /// For each thread, the number of phases in which it arrived, and for which it waited.
    threads: Vec<(u32, u32)>,
    /// For each thread, the statement of its last wait.
    waited_at: Vec<u32>,
    /// The statements that arrive in the current phase.
    sites: Vec<u32>,
    pub(crate) arriving: Message,
    pub(crate) complete: Message,
}

impl ClusterBarrier {
    pub(crate) fn fingerprint(&self, fingerprint: &mut Fingerprinter<'_>) {
        fingerprint.words(&[self.arrived as u64]);
        for (arrived, waited) in &self.threads {
            let back = |n: u32| i64::from(n) - i64::from(self.phase);
            fingerprint.words(&[back(*arrived) as u64, back(*waited) as u64]);
        }
    }

    pub(crate) fn new((agent, arrivals): (Agent, Agent), threads: usize) -> Self {
        let waited_at = vec![0; threads];
        let threads = vec![(0, 0); threads];
        ClusterBarrier { agent, arrivals, threads, waited_at, ..Self::default() }
    }

    /// Records a statement of threads that arrive.
    pub(crate) fn arrives(&mut self, site: u32) {
        if !self.sites.contains(&site) {
            self.sites.push(site);
        }
    }

    /// The statements that arrived in the complete phase.
    pub(crate) fn parts(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.sites)
    }

    /// The statement of a thread's last wait.
    pub(crate) fn waited_at(&self, thread: u32) -> u32 {
        self.waited_at.get(thread as usize).copied().unwrap_or(0)
    }

    /// A thread arrives; `all` threads complete a phase. Returns whether the phase is complete, or
    /// an error if the thread must not arrive.
    pub(crate) fn arrive(&mut self, thread: u32, all: usize) -> Result<bool, ()> {
        let Some((arrived, waited)) = self.threads.get_mut(thread as usize) else { return Err(()) };
        if *arrived != *waited {
            return Err(());
        }
        *arrived += 1;
        self.arrived += 1;
        let complete = self.arrived == all;
        if complete {
            self.arrived = 0;
            self.phase += 1;
            let mut message = std::mem::take(&mut self.arriving);
            message.seen.raise(self.agent, self.phase);
            message.happened.raise(self.agent, self.phase);
            self.complete.join(&message);
        }
        Ok(complete)
    }

    /// The last phase in which a thread has arrived, and the last one for which it has waited;
    /// phases count from 1.
    pub(crate) fn phases(&self, thread: u32) -> (u32, u32) {
        self.threads.get(thread as usize).copied().unwrap_or_default()
    }

    /// Whether a thread's wait returns; an error if the thread has not arrived.
    pub(crate) fn passes(&self, thread: u32) -> Result<bool, ()> {
        match self.threads.get(thread as usize) {
            Some((arrived, waited)) if arrived > waited => Ok(*arrived <= self.phase),
            _ => Err(()),
        }
    }

    pub(crate) fn pass(&mut self, thread: u32, site: u32) {
        if let Some((arrived, waited)) = self.threads.get_mut(thread as usize) {
            *waited = *arrived;
            self.waited_at[thread as usize] = site;
        }
    }
}
