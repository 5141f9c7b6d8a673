//! Collects what the machine finds: for each pair of accesses whether it is ordered, with
//! certificates or the missing order; the faults of synchronization statements (errors in their
//! use, certain or possible); and orders beside those of pairs, such as a copy that is complete
//! before its block ends. `check` makes the report from them.

use crate::blocks::Meeting;
use crate::clocks::{Clocks, Engine, Open, Way};
use crate::expr::{Env, Held};
use crate::memory::{Access, By, Does, Proxy, Record, Relation};
use crate::report::{AgentKind, Instance, Keeps, Missing};
use crate::threads::Mask;
use carbyne_ir::expr::VarId;
use carbyne_ir::program::{Program, StmtId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most certificates that are kept for a pair.
const MAX_WAYS: usize = 4;
/// The most pairs that are kept.
const MAX_PAIRS: usize = 1 << 14;
/// The number of first occurrences of a pair for which a certificate is looked up.
const SAMPLED: u64 = 16;
/// The most faults that are kept.
const MAX_FAULTS: usize = 64;

const UNSURE: &str = "where the tile ends depends on an unknown value";

/// The identity of a pair: statement, effect and agent of the first access, the same of the second
/// access, and both buffers.
pub(crate) type Key = (u32, Does, AgentKind, u32, Does, AgentKind, u32, u32);

/// Whether to look up a certificate for this occurrence: for the first ones, and for some later
/// ones.
fn is_sampled(times: u64) -> bool {
    times <= SAMPLED || times.is_power_of_two()
}

/// Adds a certificate to the known ones.
fn add(ways: &mut Vec<Way>, new: Way) {
    let same = |old: &Way| old.steps == new.steps && old.distance == new.distance;
    match ways.iter().position(same) {
        Some(i) => {
            let with = &mut ways[i].with;
            with.extend(new.with);
            with.sort_unstable();
            with.dedup();
        }
        None if ways.len() < MAX_WAYS => ways.push(new),
        None => {}
    }
}

/// Two accesses to registers or to an mbarrier: statements and effects, buffers, agents.
pub(crate) type OwnPair = ((u32, Does), (u32, Does), (u32, u32), (AgentKind, AgentKind));

/// An order beside those of pairs: its kind, statement and buffer.
pub(crate) type Kept = (Keeps, u32, u32);

/// The loops around an access: the first statement of the body, the variable, and the number of
/// iterations followed so far.
pub(crate) type Position = Arc<[(Option<StmtId>, VarId, u64)]>;

/// The findings about a pair so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) times: u64,
    pub(crate) missing: Option<Missing>,
    pub(crate) undecided: Option<&'static str>,
    pub(crate) ways: Vec<Way>,
    pub(crate) threads: (u32, u32),
    pub(crate) at: Instance,
    /// If the pair is not ordered: the reason why the first access is in flight, and the loop whose
    /// iterations lie between the accesses.
    pub(crate) open: Option<Open>,
    pub(crate) across: Option<(VarId, i64)>,
}

/// A fault of a synchronization statement.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) site: u32,
    pub(crate) label: String,
    pub(crate) other: Option<(u32, String)>,
    pub(crate) what: String,
    pub(crate) help: String,
    pub(crate) certain: bool,
}

/// The current position of threads, for error messages.
#[derive(Clone)]
pub(crate) struct At<'p> {
    program: &'p Program,
    loops: Vec<Held>,
    thread: usize,
}

impl<'p> At<'p> {
    pub(crate) fn new(program: &'p Program) -> Self {
        At { program, loops: vec![], thread: 0 }
    }

    pub(crate) fn put(&mut self, env: &Env, mask: &Mask) {
        self.loops.clone_from(&env.loops);
        self.thread = mask.threads().next().unwrap_or(0);
    }

    /// The action of the thread, and the iteration: `thread 32 waits here, k = 3`
    pub(crate) fn label(&self, does: &str) -> String {
        let loops = self.instance().text(self.program);
        let comma = if loops.is_empty() { "" } else { ", " };
        format!("thread {} {does}{comma}{loops}", self.thread)
    }

    /// The values of loop variables.
    fn instance(&self) -> Instance {
        let one = |held: &Held| (held.var, held.value.of(self.thread));
        Instance::Loops(self.loops.iter().map(one).collect())
    }
}

/// All pairs and faults.
#[derive(Clone, Default)]
pub(crate) struct Pairs {
    index: FxHashMap<Key, usize>,
    last: Option<(Key, usize)>,
    pub(crate) list: Vec<(Key, Known)>,
    pub(crate) faults: Vec<Found>,
    /// The reason why the current access may not happen, either in this thread of its group or at
    /// all.
    pub(crate) inexact: Option<&'static str>,
    /// Statements for which the set of existing elements is unknown.
    unsure: FxHashSet<u32>,
    pub(crate) overflowed: bool,
    /// The orders beside those of pairs, how often each was seen, and its certificates.
    pub(crate) kept: BTreeMap<Kept, (u64, Vec<Way>)>,
    /// The position of each access, by serial number.
    positions: Vec<Option<Position>>,
}

fn agent_of(r: &Record) -> AgentKind {
    match r.by {
        By::Lanes { .. } => AgentKind::Thread,
        By::Batch { engine: Engine::Copies, .. } => AgentKind::Copy,
        By::Batch { engine: Engine::Bulk, .. } => AgentKind::Bulk,
        By::Batch { engine: Engine::MatMuls, .. } => AgentKind::MatMul,
        By::Phase { .. } => AgentKind::Counted,
    }
}

fn key((first, did): (&Record, Does), (second, does): (&Record, Does)) -> Key {
    let by = (agent_of(first), agent_of(second));
    (first.site, did, by.0, second.site, does, by.1, first.buffer, second.buffer)
}

impl Pairs {
    /// Whether an error is certain.
    pub(crate) fn is_refused(&self) -> bool {
        let missing = self.list.iter().any(|(_, known)| known.missing.is_some());
        missing || self.faults.iter().any(|f| f.certain)
    }

    /// Restarts the serial numbers.
    pub(crate) fn restart(&mut self) {
        self.positions.clear();
    }

    /// Records the loops around the access with a serial number.
    pub(crate) fn put(&mut self, serial: u32, position: Position) {
        /// The most positions that are kept.
        const MAX_POSITIONS: usize = 1 << 22;
        let i = serial as usize;
        if i < MAX_POSITIONS {
            if self.positions.len() <= i {
                self.positions.resize(i + 1, None);
            }
            self.positions[i] = Some(position);
        }
    }

    /// The number of iterations between two accesses, for the outermost common loop in which they
    /// are in different iterations. Iterations of loops inside of that loop are not comparable.
    fn distance(&self, first: u32, second: u32) -> Option<(VarId, i64)> {
        let of = |serial: u32| self.positions.get(serial as usize).and_then(Option::as_ref);
        let (Some(a), Some(b)) = (of(first), of(second)) else { return None };
        let both = a.iter().zip(b.iter()).take_while(|(a, b)| a.0 == b.0);
        let mut iterations = both.map(|(a, b)| (a.1, b.2 as i64 - a.2 as i64));
        iterations.find(|(_, n)| *n != 0)
    }

    fn entry(&mut self, key: Key, threads: (u32, u32)) -> Option<&mut Known> {
        let i = match self.last {
            Some((last, i)) if last == key => i,
            _ => match self.index.get(&key) {
                Some(i) => *i,
                None if self.list.len() >= MAX_PAIRS => {
                    self.overflowed = true;
                    return None;
                }
                None => {
                    let known = Known { threads, ..Known::default() };
                    self.list.push((key, known));
                    self.index.insert(key, self.list.len() - 1);
                    self.list.len() - 1
                }
            },
        };
        self.last = Some((key, i));
        self.list.get_mut(i).map(|(_, known)| known)
    }

    /// Records that a statement may not access all of its elements, because the set of existing
    /// elements is unknown.
    pub(crate) fn unsure(&mut self, site: u32) {
        self.unsure.insert(site);
        self.inexact = self.inexact.or(Some(UNSURE));
    }

    /// Records that two accesses touch the same element.
    pub(crate) fn meet(
        &mut self,
        clocks: &Clocks,
        (first, did): (Record, Does),
        new: &Access,
        relation: Relation,
        at: &At<'_>,
    ) {
        let Access { thread, does, record: second } = *new;
        let unsure = self.unsure.contains(&first.site);
        let inexact = self.inexact.or(unsure.then_some(UNSURE));
        let key = key((&first, did), (&second, does));
        let threads = (first.thread(), thread);
        let distance = self.distance(first.serial, second.serial);
        let open = match (relation, first.by) {
            (Relation::UnderWay, By::Batch { engine, batch, reading, .. }) => {
                clocks.class(first.thread()).queue(engine).why(batch, reading)
            }
            _ => None,
        };
        let Some(known) = self.entry(key, threads) else { return };
        known.times += 1;
        let missing = match relation {
            Relation::Same | Relation::Ordered => {
                if is_sampled(known.times)
                    && let Some(path) = way(clocks, (&first, did), new)
                {
                    add(&mut known.ways, Way { distance, ..path });
                }
                return;
            }
            Relation::Unfenced => Missing::Fence,
            Relation::Unordered => Missing::Order,
            Relation::UnderWay => Missing::Wait,
        };
        if let Some(why) = inexact {
            if known.undecided.is_none() {
                known.undecided = Some(why);
                (known.threads, known.at) = (threads, at.instance());
            }
        } else if known.missing.is_none() {
            known.missing = Some(missing);
            (known.threads, known.at) = (threads, at.instance());
            (known.open, known.across) = (open, distance);
        } else if let (
            Some(Open::Left { needed: old, .. }),
            Some(Open::Left { needed, wait: Some(_) }),
        ) = (known.open, open)
            && needed < old
        {
            known.open = open;
        }
    }

    /// Records two accesses whose order the caller has determined: to registers, where one is by an
    /// asynchronous MatMul of the same warp, or to an mbarrier after the cluster barrier.
    pub(crate) fn own(
        &mut self,
        (first, second, (buffer, other), (by_first, by_second)): OwnPair,
        thread: u32,
        by: Result<Way, Missing>,
        at: &At<'_>,
    ) {
        let key = (first.0, first.1, by_first, second.0, second.1, by_second, buffer, other);
        let Some(known) = self.entry(key, (thread, thread)) else { return };
        known.times += 1;
        match by {
            Ok(way) => add(&mut known.ways, way),
            Err(missing) if known.missing.is_none() => {
                known.missing = Some(missing);
                (known.threads, known.at) = ((thread, thread), at.instance());
            }
            Err(_) => {}
        }
    }

    /// Records an order beside those of pairs; `path` finds the certificate.
    pub(crate) fn keep(&mut self, what: Kept, path: impl FnOnce() -> Option<Way>) {
        let (times, ways) = self.kept.entry(what).or_default();
        *times += 1;
        if is_sampled(*times)
            && let Some(path) = path()
        {
            add(ways, path);
        }
    }

    /// Records that threads of one warp write the same element at once.
    pub(crate) fn overlap(&mut self, first: Record, second: Record, at: &At<'_>) {
        let key = key((&first, Does::Write), (&second, Does::Write));
        let threads = (first.thread(), second.thread());
        let Some(known) = self.entry(key, threads) else { return };
        known.times += 1;
        if known.undecided.is_none() && known.missing.is_none() {
            known.undecided = Some(
                "threads of one warp write one element at once; this is correct only if they \
                 write the same value",
            );
            (known.threads, known.at) = (threads, at.instance());
        }
    }

    /// Records that threads of the grid access the same element.
    pub(crate) fn across(&mut self, m: &Meeting, buffer: u32) {
        let [a, b] = [m.sites.0, m.sites.1];
        if m.blocks.0 == m.blocks.1 {
            let same = |k: &Key| k.6 == buffer && ((k.0, k.3) == (a, b) || (k.0, k.3) == (b, a));
            if self.list.iter().any(|(k, _)| same(k)) {
                return;
            }
        }
        let agent = AgentKind::Thread;
        let key = (a, m.does.0, agent, b, m.does.1, agent, buffer, buffer);
        let Some(known) = self.entry(key, m.threads) else { return };
        known.times += 1;
        known.at = match m.blocks {
            (x, y) if x == y => Instance::Block(x),
            (-1, y) => Instance::AndOthers(y),
            (x, y) => Instance::Blocks(x, y),
        };
        known.threads = m.threads;
        if m.blocks.0 == m.blocks.1 {
            known.undecided =
                Some("the accesses touch the same element in a block that was not followed");
        } else {
            known.missing = Some(Missing::Blocks);
        }
    }

    /// Adds a fault, unless the statement has one of this kind: the words before the first colon.
    pub(crate) fn fault(&mut self, new: Found) {
        let kind = |what: &str| what.split(':').next().map(str::to_owned);
        let same = |f: &Found| f.site == new.site && kind(&f.what) == kind(&new.what);
        if !self.faults.iter().any(same) && self.faults.len() < MAX_FAULTS {
            self.faults.push(new);
        }
    }

    /// Adds that the checker cannot decide about a statement.
    pub(crate) fn undecided(&mut self, site: u32, what: &str, help: &str) {
        let (what, help) = (what.to_owned(), help.to_owned());
        self.fault(Found { site, label: String::new(), other: None, what, help, certain: false });
    }

    /// Whether a missing wait for a statement has been reported.
    pub(crate) fn is_under_way(&self, site: u32) -> bool {
        self.list.iter().any(|(key, known)| key.0 == site && known.missing == Some(Missing::Wait))
    }

    /// Whether any pair lacks an order or a wait.
    pub(crate) fn lacks_order(&self) -> bool {
        let lacks = |m| matches!(m, Missing::Order | Missing::Wait);
        self.list.iter().any(|(_, known)| known.missing.is_some_and(lacks))
    }

    /// Adds the pairs and faults that were found later.
    pub(crate) fn append(&mut self, later: Pairs) {
        for (key, new) in later.list {
            let Some(known) = self.entry(key, new.threads) else { break };
            known.times += new.times;
            new.ways.into_iter().for_each(|way| add(&mut known.ways, way));
            let is_worse = new.missing.is_some() || new.undecided.is_some();
            if is_worse && known.missing.is_none() && known.undecided.is_none() {
                (known.threads, known.at) = (new.threads, new.at);
                (known.open, known.across) = (new.open, new.across);
            }
            known.missing = known.missing.or(new.missing);
            known.undecided = known.undecided.or(new.undecided);
        }
        for f in later.faults {
            self.fault(f);
        }
        for (what, (times, ways)) in later.kept {
            let known = self.kept.entry(what).or_default();
            known.0 += times;
            ways.into_iter().for_each(|way| add(&mut known.1, way));
        }
        self.unsure.extend(later.unsure);
        self.overflowed |= later.overflowed;
    }

    /// The pairs, ordered by their statements.
    pub(crate) fn sorted(&self) -> BTreeMap<Key, &Known> {
        self.list.iter().map(|(key, known)| (*key, known)).collect()
    }
}

/// The certificate of an access that comes after an earlier one.
fn way(clocks: &Clocks, (first, did): (&Record, Does), new: &Access) -> Option<Way> {
    let to = clocks.class(new.thread).agent;
    let is_async = new.record.proxy == Proxy::Async;
    let crosses = did != Does::Read && first.proxy == Proxy::Generic && is_async;
    let mine = first.lane_of(new.thread);
    match first.by {
        By::Lanes { lanes, time } => {
            let own = lanes & !mine == 0;
            let lane = if own { lanes } else { lanes & !mine }.trailing_zeros();
            let class = clocks.class(first.warp * 32 + lane.min(31));
            clocks.path(clocks.since(class, time), to, own, crosses)
        }
        By::Batch { lanes, engine, batch, reading } => {
            // Any of its lanes may have waited. The thread of the new access is tried first if it
            // is one of them.
            let of_lane = |lane: u32| {
                let thread = first.warp * 32 + lane;
                let class = clocks.class(thread);
                let b = class.queue(engine).batches.get(batch as usize)?;
                let (done, at) =
                    if reading { (b.done_reading, b.read_at) } else { (b.done, b.waited_at) };
                let behind = |at: u32, mut rest: Way| {
                    rest.steps.insert(0, at);
                    rest
                };
                let waited = || {
                    let own = thread == new.thread;
                    let rest = clocks.path(clocks.since(class, done), to, own, crosses)?;
                    let mut path = behind(at, rest);
                    path.with.push(b.committed_at);
                    Some(path)
                };
                let landed = || {
                    let (agent, phases) = b.lands?;
                    let rest =
                        clocks.path(clocks.since_phase(agent, phases)?, to, false, crosses)?;
                    Some(behind(b.landed_at, rest))
                };
                let waited = if done > 0 { waited() } else { None };
                waited.or_else(landed)
            };
            let own = (lanes & mine != 0).then_some(new.thread % 32);
            let all = (0..32).filter(|lane| lanes >> lane & 1 == 1);
            // Lanes of one class have the same certificate.
            let mut tried = vec![];
            let mut new = |lane: &u32| {
                let class = clocks.class(first.warp * 32 + lane).agent;
                let is_new = !tried.contains(&class);
                tried.push(class);
                is_new
            };
            own.and_then(of_lane).or_else(|| all.filter(|lane| new(lane)).find_map(of_lane))
        }
        By::Phase { agent, phases } => {
            clocks.path(clocks.since_phase(agent, phases)?, to, false, false)
        }
    }
}
