//! The machine: the state of all threads of one cluster, and the loop that follows them through a
//! kernel, without data.
//!
//! The machine always continues the threads that are farthest behind. This is one of many possible
//! schedules, but the result holds for all of them: only synchronization advances the clocks, and
//! an arrival, a copy or a wait that might belong to another phase in another schedule is an error.
//!
//! Reading order: `control_flow` (loops, conditions, specs), `access` (memory), `sync`
//! (synchronization statements), `mbarrier`, `bulk`, `registers`; then `rounds` and
//! `inserted_iterations` (loops of many iterations), `deadlock` (the end of a kernel).

mod access;
mod barrier;
mod body_effects;
mod bulk;
mod control_flow;
mod deadlock;
mod decisions;
mod inserted_iterations;
mod loops;
mod mbarrier;
mod registers;
mod rounds;
mod snapshot;
mod state;
mod sync;

pub(crate) use snapshot::Snapshot;

use crate::clocks::{Clocks, Engine, Message, Way};
use crate::expr::{Env, Exprs};
use crate::groups::Groups;
use crate::increments::{FOREVER, Increment, Watch};
use crate::lockstep::{Frame, Kind, Lockstep, Status};
use crate::memory::{Access, By, Cell, Does, Proxy, Record, Relation};
use crate::pages::Pages;
use crate::pairs::{At, Found, Pairs, Position};
use crate::phases::{Arrival, ClusterBarrier, Mbarrier, Settled};
use crate::plan::{Bulk, How, LeafPlan, OperandPlan, Plan, Space, first_of};
use crate::regions::{Footprint, Regions};
use crate::report::{AgentKind, Keeps, Missing};
use crate::steps::Nest;
use crate::steps::{Along, Steps};
use crate::threads::Mask;
use crate::value::{NOTHING, Value};
use carbyne_atoms::{AtomTable, Visibility};
use carbyne_ir::ast::{CmpOp, SyncOp};
use carbyne_ir::cancel;
use carbyne_ir::expr::{Dim, VarId};
use carbyne_ir::program::{
    BufferId, Program, SpecId, Stmt, StmtId, StmtKind, Sync, TensorId, ThreadsId,
};
use carbyne_ir::scalar::Scalar;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

/// The reason why the machine stops before the end of the kernel.
pub(crate) enum Stop {
    /// A fault, which has been recorded.
    Fault,
    /// A limit of the checker, described in words.
    Limit(String),
}

type Goes<T> = Result<T, Stop>;

/// The last uses of a register by a thread and by asynchronous MatMuls.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Register {
    last: u32,
    last_site: u32,
    /// Batch plus one, statement, and for writes the accumulator shape.
    writing: (u32, u32, (i64, i64)),
    reading: (u32, u32),
}

use body_effects::BodyEffects;
use loops::{Rounds, Turned};

/// The cluster to follow, and the limits.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Start {
    /// The number of blocks of a cluster, and the index of the first one.
    pub(crate) blocks: usize,
    pub(crate) first: i64,
    /// The elected lane of every warp.
    pub(crate) elected: usize,
    pub(crate) max_steps: u64,
    /// A statement that threads reach as late as possible.
    pub(crate) held: Option<u32>,
}

/// The state of the threads of a cluster.
#[derive(Clone)]
pub(crate) struct Machine<'p, 'a> {
    pub(crate) p: &'p Program,
    exprs: &'a Exprs<'p>,
    plan: &'a Plan,
    atoms: &'a AtomTable,
    body: &'p [Stmt],
    n_threads: usize,
    n_blocks: usize,
    first_block: i64,
    elected: usize,
    pub(crate) clocks: Clocks,
    /// For each block, the recorded accesses of each region of its shared memory.
    cells: Vec<Vec<Cell>>,
    regions: Regions,
    globals: Vec<Pages<Cell>>,
    registers: Vec<Vec<Register>>,
    /// For each warp, the serial number and the statement of its last `wgmma.fence`.
    fences: Vec<(u32, u32)>,
    mbarriers: Vec<Mbarrier>,
    mbarrier_at: BTreeMap<(usize, i64), usize>,
    cluster: ClusterBarrier,
    locksteps: Vec<Lockstep<'p>>,
    /// The counters of the kernel, and integers whose index depends on a counter.
    counters: Vec<VarId>,
    serial: u32,
    pub(crate) pairs: Pairs,
    n_splits: usize,
    groups: FxHashMap<(ThreadsId, i64), Rc<Groups>>,
    insides: FxHashMap<Option<StmtId>, BodyEffects>,
    steps: u64,
    /// Costs other than accesses.
    overhead: u64,
    max_steps: u64,
    /// For each synchronization statement, the number of threads that must execute it together.
    together: FxHashMap<u32, usize>,
    /// For each block, thread and statement, the time of the last access to that block's shared
    /// memory.
    remote: BTreeMap<(usize, u32, u32), u32>,
    /// For each block, the number of free registers, and the registers of a thread of each warp.
    registers_left: Vec<(i64, Vec<i64>)>,
    wake: bool,
    at: At<'p>,
    last_position: Position,
    pub(crate) watch: Watch,
    pub(crate) rounds: Rounds,
    held: Option<u32>,
    /// The last iteration of the outer loops.
    reached: u64,
    /// The largest value that was compared with the trip count of the outer loops.
    pub(crate) tested: i64,
    /// Waits that may come too late for their phase.
    pub(crate) late: BTreeSet<u32>,
}

/// The most granules of a tensor in global memory that one block may access.
const MAX_GLOBAL: usize = 1 << 21;
/// The most granules of shared memory, and the most registers, of all blocks of a cluster.
const MAX_CELLS: usize = 1 << 21;
/// The cost of a statement per eight threads, in accesses.
const STATEMENT: u64 = 16;
/// The most classes of threads.
const MAX_CLASSES: usize = 1 << 10;
/// The label at a condition or a role that some threads of a barrier do not enter.
const SOME_ENTER: &str = "only some of the threads enter this body";
/// The most mbarriers.
const MAX_MBARRIERS: usize = 1 << 12;

impl<'p, 'a> Machine<'p, 'a> {
    pub(crate) fn new(
        exprs: &'a Exprs<'p>,
        plan: &'a Plan,
        atoms: &'a AtomTable,
        start: Start,
        mut pairs: Pairs,
    ) -> Self {
        pairs.restart();
        let are_families = [Nest::Outer, Nest::Inner].map(|nest| exprs.given(nest).by != 0);
        let Start { blocks: n_blocks, first: first_block, elected, max_steps, held } = start;
        let n_threads = exprs.n_threads;
        let mut clocks = Clocks::new(n_blocks, n_threads);
        let agents = (clocks.agent(), clocks.agent());
        let n_warps = n_blocks * clocks.per / 32;
        let cluster = ClusterBarrier::new(agents, n_blocks * clocks.per);
        Machine {
            p: exprs.program,
            exprs,
            plan,
            atoms,
            body: &[],
            n_threads,
            n_blocks,
            first_block,
            elected,
            cells: vec![vec![Cell::default()]; n_blocks],
            regions: Regions::new(plan.n_cells),
            globals: vec![Pages::default(); plan.globals.len()],
            registers: plan
                .registers
                .iter()
                .map(|(_, n)| vec![Register::default(); *n as usize * n_warps])
                .collect(),
            fences: vec![(0, 0); n_warps],
            mbarriers: vec![],
            mbarrier_at: BTreeMap::new(),
            cluster,
            locksteps: vec![],
            counters: vec![],
            serial: 1,
            pairs,
            n_splits: 0,
            groups: FxHashMap::default(),
            insides: FxHashMap::default(),
            steps: 0,
            overhead: 0,
            max_steps,
            together: FxHashMap::default(),
            remote: BTreeMap::new(),
            registers_left: vec![(0, registers_of(n_threads, atoms)); n_blocks],
            wake: false,
            at: At::new(exprs.program),
            last_position: Arc::new([]),
            watch: Watch::new(are_families),
            // A state that may represent other trip counts must not leave iterations out.
            rounds: Rounds::new(are_families.contains(&true)),
            held,
            reached: 0,
            tested: -1,
            late: BTreeSet::new(),
            clocks,
        }
    }

    /// Whether the memory of a cluster exceeds the limits.
    pub(crate) fn is_too_large(plan: &Plan, n_blocks: usize, n_threads: usize) -> bool {
        let warps = n_blocks * n_threads.div_ceil(32);
        let registers: usize = plan.registers.iter().map(|(_, n)| *n as usize).sum();
        plan.n_cells.saturating_mul(n_blocks) > MAX_CELLS
            || registers.saturating_mul(warps) > MAX_CELLS
    }

    /// Places all threads at the first statement.
    pub(crate) fn begin(&mut self, kernel: SpecId) {
        let body: &'p [Stmt] = self.p.specs[kernel].body.as_deref().unwrap_or(&[]);
        self.body = body;
        let declared = self.p.walk(body).stmts().filter_map(|s| match s.kind {
            StmtKind::Step { counter, var, .. } if counter == var => Some(counter),
            StmtKind::Element { var, .. } if self.exprs.is_held(var) => Some(var),
            _ => None,
        });
        self.counters = declared.collect();
        for rank in 0..self.n_blocks {
            let mask = Mask::first(self.n_threads);
            let frame = Frame { stmts: body, at: 0, mask, kind: Kind::Root };
            let env = Env { block: self.first_block + rank as i64, loops: vec![] };
            self.locksteps.push(Lockstep { rank, frames: vec![frame], env, status: Status::Ready });
        }
    }

    /// Follows all threads to their ends (true), or until the first threads begin the next
    /// iteration of outer loops (false).
    pub(crate) fn run(&mut self, to_next_iteration: bool) -> Goes<bool> {
        loop {
            let Some(mut lockstep) = self.next() else {
                if self.locksteps.is_empty() {
                    return self.ends().map(|()| true);
                }
                return self.stuck().map(|()| true);
            };
            let goes_on = loop {
                let n = 1 + self.n_threads as u64 / 8;
                self.overhead += n * (STATEMENT - 1);
                self.spend(n)?;
                match self.step(&mut lockstep)? {
                    Step::On if self.locksteps.is_empty() && self.rounds.turned.is_none() => {}
                    Step::On => break true,
                    Step::Waits => break true,
                    Step::Ended => break false,
                }
            };
            if goes_on {
                self.put(lockstep);
            }
            if std::mem::take(&mut self.wake) {
                self.wake_all();
            }
            if let Some(turned) = self.rounds.turned.take() {
                match self.exprs.nest_of(turned.var) {
                    Some(Nest::Outer) if to_next_iteration => {
                        if turned.turn <= self.reached {
                            continue;
                        }
                        self.reached = turned.turn;
                        return Ok(false);
                    }
                    Some(nest) => self.turned_within(nest, turned.turn),
                    None => {}
                }
                self.turned(turned);
            }
        }
    }

    /// Lets waiting threads check their condition again.
    fn wake_all(&mut self) {
        let (mut waiting, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.locksteps)
            .into_iter()
            .partition(|s| s.status == Status::Waits);
        self.locksteps = others;
        waiting.sort_by_key(|s| (s.rank, s.all().threads().next()));
        for mut lockstep in waiting {
            lockstep.status = Status::Ready;
            self.put(lockstep);
        }
    }

    /// The cost so far, in accesses.
    pub(crate) fn steps(&self) -> u64 {
        self.steps + self.overhead
    }

    fn spend(&mut self, n: u64) -> Goes<()> {
        cancel::point();
        self.steps += n;
        match self.steps + self.overhead > self.max_steps {
            true => Err(Stop::Limit(
                "following all threads through all iterations takes more steps than the limit"
                    .to_owned(),
            )),
            false => Ok(()),
        }
    }

    fn next(&mut self) -> Option<Lockstep<'p>> {
        let first = |s: &Lockstep<'_>| s.all().threads().next();
        let site = |s: &Lockstep<'_>| s.stmt().map(|stmt| self.plan.site(stmt));
        let held = |s: &Lockstep<'_>| self.held.is_some() && site(s) == self.held;
        let order = |a: &Lockstep<'_>, b: &Lockstep<'_>| {
            held(a)
                .cmp(&held(b))
                .then(a.compare(b))
                .then(a.rank.cmp(&b.rank))
                .then_with(|| first(a).cmp(&first(b)))
        };
        let ready = self.locksteps.iter().enumerate().filter(|(_, s)| s.status == Status::Ready);
        let (i, _) = ready.min_by(|a, b| order(a.1, b.1))?;
        Some(self.locksteps.swap_remove(i))
    }

    /// Puts threads back. They join threads at the same statement.
    fn put(&mut self, lockstep: Lockstep<'p>) {
        let stands = |s: &Lockstep<'_>| matches!(s.status, Status::Ready | Status::Meets);
        let same = self.locksteps.iter_mut().find(|o| {
            o.rank == lockstep.rank
                && stands(o)
                && stands(&lockstep)
                && o.compare(&lockstep) == std::cmp::Ordering::Equal
        });
        match same {
            Some(other) => {
                other.join(&lockstep);
                other.status = Status::Ready;
            }
            None => self.locksteps.push(lockstep),
        }
    }

    /// Whether some of these threads may still reach the position of `lockstep`.
    fn may_come(&self, lockstep: &Lockstep<'_>, threads: &Mask) -> bool {
        self.locksteps.iter().any(|o| {
            o.rank == lockstep.rank
                && !o.all().and(threads).is_empty()
                && match o.compare(lockstep) {
                    std::cmp::Ordering::Less => true,
                    std::cmp::Ordering::Equal => matches!(o.status, Status::Ready | Status::Meets),
                    std::cmp::Ordering::Greater => false,
                }
        })
    }

    /// Records an error. `other` is another statement and its part in the error.
    fn fault(&mut self, site: u32, other: Option<(u32, &str)>, what: &str, help: &str) {
        let (what, help) = (what.to_owned(), help.to_owned());
        let other = other.map(|(site, label)| (site, label.to_owned()));
        let label = self.at.label("executes it");
        self.pairs.fault(Found { site, label, other, what, help, certain: true });
    }

    /// Records an error and stops.
    fn stop<T>(
        &mut self,
        site: u32,
        other: Option<(u32, &str)>,
        what: &str,
        help: &str,
    ) -> Goes<T> {
        self.fault(site, other, what, help);
        Err(Stop::Fault)
    }

    /// Records that a value is unknown, and stops.
    fn lost<T>(&mut self, site: u32, what: &str) -> Goes<T> {
        let help = "run `carbyne simulate`, which uses the data; or use values that are the same \
                    for all threads and do not depend on data";
        self.pairs.undecided(site, what, help);
        Err(Stop::Fault)
    }

    fn global_thread(&self, rank: usize, t: usize) -> u32 {
        (rank * self.clocks.per + t) as u32
    }
}

/// The registers of a thread in each warp at the start of a block that has a multiprocessor to
/// itself, a multiple of 8 (PTX ISA, Miscellaneous Instructions: setmaxnreg).
fn registers_of(n_threads: usize, atoms: &AtomTable) -> Vec<i64> {
    let limits = carbyne_atoms::limits(atoms.arch);
    let n_warps = n_threads.div_ceil(32).max(1);
    let fit = limits.regs_per_sm / (n_warps as i64 * 32) / 8 * 8;
    vec![fit.min((limits.regs_per_thread + 7) / 8 * 8); n_warps]
}

/// Threads at a statement.
#[derive(Copy, Clone)]
struct Act<'s, 'p> {
    lockstep: &'s Lockstep<'p>,
    mask: Mask,
    site: u32,
}

/// The result of executing a statement.
enum Step {
    On,
    Waits,
    Ended,
}

/// A view at an offset in a block of the cluster.
#[derive(Copy, Clone)]
struct Target {
    rank: usize,
    view: usize,
    base: i64,
}
