//! The entry point of the crate: [`check()`] checks the synchronization of a kernel and builds its
//! report, in up to three steps. First it tries a proof for all trip counts of the loops. If there
//! is none, it checks the kernel with its symbols as they are. If that does not decide, it tries
//! some values of the symbols and of the caller's integers, in order to find an error; such a trial
//! proves nothing.
//!
//! The file also contains the limits of the checker ([`Limits`]), [`is_atomic`] (whether a kernel
//! can be checked at all) and [`arch_of`].

use crate::blocks::{Met, Unwalked, Walker};
use crate::clocks::{Open, Way};
use crate::differences::Differences;
use crate::expr::Exprs;
use crate::follow::Follower;
use crate::machine::Machine;
use crate::memory::Does;
use crate::nested::Counted;
use crate::owners::owned;
use crate::pairs::{Found, Pairs};
use crate::plan::{How, LeafPlan, Plan, Refusal, kernel_place};
use crate::report::{
    Access, AccessKind, Fault, Keeps, Kept, MANY_GRIDS, Ordering, Pair, Report, UnderWay,
    Unfollowed, Verdict,
};
use crate::trip_counts::TripCounts;
use carbyne_atoms::{Arch, AtomOp, AtomTable};
use carbyne_ir::expr::{Dim, VarId};
use carbyne_ir::limits::MAX_BLOCK_THREADS;
use carbyne_ir::program::samples::{samples, with_turns};
use carbyne_ir::program::{BufferId, Program, SpecId, Stmt, StmtKind};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The limits of the checker. Beyond them, its answer is undecided.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of accesses to granules of memory, by all threads together. Each takes some ten
    /// nanoseconds. Each statement that threads reach costs some more accesses, and so does each
    /// comparison of the state of all threads.
    pub accesses: u64,
    /// Follows every iteration of every loop, also those that are known to repeat earlier ones.
    /// Tests use this to verify that they do.
    pub every_iteration: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { accesses: 1 << 27, every_iteration: false }
    }
}

/// The most blocks of a grid that are compared with each other.
const MAX_BLOCKS: i64 = 1 << 23;

/// Whether a kernel assigns every access to a thread: no layout is open, and every leaf of several
/// threads names its atom. Other kernels must be decomposed first; their synchronization is not
/// placed yet.
pub fn is_atomic(p: &Program, kernel: SpecId) -> bool {
    let open = p.walk_body(kernel).stmts().any(|s| match s.kind {
        StmtKind::Allocate(t) => p.buffer_of(t).open,
        StmtKind::For { stages, .. } => stages > 1,
        _ => false,
    });
    let named = |id: SpecId| {
        let spec = &p.specs[id];
        let alone = spec.exec.is_some_and(|e| {
            let threads = &p.threads[e.threads];
            threads.each.is_some()
                || threads.levels.last().is_none_or(|l| l.to_fixed().is_some_and(|l| l.size() == 1))
        });
        let has_map = spec.input_tensors().chain(spec.outputs.iter().copied());
        let mut mapped = has_map.map(|t| p.tensors[t].map.is_some());
        spec.body.is_some()
            || spec.atom.is_some()
            || alone && !mapped.any(|m| m) && spec.bar.is_none()
    };
    p.specs[kernel].exec.is_some()
        && p.specs[kernel].body.is_some()
        && !open
        && p.walk_body(kernel).specs().all(named)
}

/// The oldest architecture that has all atoms and all synchronization statements of a program.
pub fn arch_of(p: &Program) -> Option<Arch> {
    let has = |table: &AtomTable| {
        let named = p.specs.iter().filter_map(|(_, s)| s.atom.as_deref());
        let mut ops =
            p.kernels.iter().flat_map(|k| p.walk_body(*k).stmts()).filter_map(|s| match s.kind {
                StmtKind::Sync(sync) => Some(sync.op),
                _ => None,
            });
        let any = |op| table.atoms().iter().any(|a| a.op == AtomOp::Sync(op));
        named.into_iter().all(|name| table.get(name).is_some()) && ops.all(any)
    };
    Arch::ALL.iter().copied().find(|arch| has(&AtomTable::new(*arch)))
}

/// Checks the order of a kernel's accesses.
///
/// If the order depends on symbols or on integers of the caller's memory and cannot be decided for
/// all of their values, the checker tries some values that satisfy the facts. The kernel is refused
/// if it is refused for one of them.
pub fn check(p: &Program, kernel: SpecId, atoms: &AtomTable, limits: &Limits) -> Report {
    let owned = owned(p, kernel, atoms);
    let mut values = vec![];
    if let Some((report, refused)) = check_trip_counts(p, kernel, atoms, limits, &owned) {
        if report.is_ordered() {
            return report;
        }
        values = refused;
    }
    let mut report = check_with(p, kernel, atoms, limits, (HashMap::new(), false, &owned));
    if report.is_ordered() || is_refused(&report) {
        return report;
    }
    // Each trial gets a part of the time: it finds an error early, or is not worth the wait.
    let limits = Limits { accesses: limits.accesses / 8, ..*limits };
    let samples = samples(p, kernel);
    let found = samples.first().and_then(|sample| with_turns(p, sample, &values));
    for values in found.into_iter().chain(samples) {
        let tried = check_with(p, kernel, atoms, &limits, (values, true, &owned));
        if is_refused(&tried) {
            return tried;
        }
        report.tried.push(tried);
    }
    report
}

/// Whether a report contains a certain error.
fn is_refused(report: &Report) -> bool {
    report.counts()[1] > 0 || report.faults.iter().any(|f| f.is_certain)
}

/// Checks a kernel for all trip counts of its loops. Returns the report and the trip counts for
/// which an error was found. Returns none if the control flow of blocks depends on anything else,
/// or if blocks may access the same memory.
fn check_trip_counts(
    p: &Program,
    kernel: SpecId,
    atoms: &AtomTable,
    limits: &Limits,
    owned: &BTreeSet<BufferId>,
) -> Option<(Report, Vec<(Dim, i64)>)> {
    let cluster = p.cluster_size(kernel).filter(|n| (1..=64).contains(n))?;
    let trip_counts = TripCounts::of(p, kernel, cluster)?;
    let nested = trip_counts.nested();
    let one = trip_counts.numbers.first().copied().filter(|_| trip_counts.numbers.len() == 1);
    let numbers = nested.map_or(one.into_iter().collect(), |(a, b)| vec![a, b]);
    if numbers.is_empty() {
        return None;
    }
    let n_threads = p.threads[p.specs[kernel].exec?.threads].concat().to_fixed()?.size();
    let n_threads = usize::try_from(n_threads).ok()?;
    let accesses = limits.accesses.saturating_mul(4);
    let counted = Counted {
        program: p,
        kernel,
        atoms,
        owned,
        trip_counts: &trip_counts,
        n_threads,
        cluster,
        accesses,
    };
    let exprs = counted.exprs();
    let plan = counted.plan(&exprs).ok()?;
    let differences = Differences::new(&exprs, &plan, kernel);
    let blocks = p.threads[p.specs[kernel].exec?.blocks].concat().to_fixed();
    let is_alone = blocks.is_some_and(|b| b.size() == 1);
    if !(plan.globals.is_empty() || is_alone)
        || !differences.are_within_clusters(&exprs, cluster)
        || Machine::is_too_large(&plan, cluster as usize, n_threads)
    {
        return None;
    }
    let mut follower = Follower::new(&plan, atoms, kernel, cluster, accesses);
    let mut again_from = None;
    for lane in elected(p, kernel) {
        let followed = match (nested, one) {
            (Some(both), _) => counted.nested(&mut follower, &exprs, both, lane, &mut again_from),
            (None, Some(number)) => follower.numbers(&exprs, number, lane),
            (None, None) => None,
        };
        if followed.is_none() || follower.pairs.overflowed {
            follower.give_up::<()>();
            break;
        }
    }
    let with = follower.refused.into_iter().flatten();
    let refused = numbers.iter().map(|n| Dim::Expr(n.id)).zip(with).collect();
    Some((report(p, kernel, &plan, &follower.pairs), refused))
}

/// Checks the kernel for these values of symbols.
fn check_with(
    p: &Program,
    kernel: SpecId,
    atoms: &AtomTable,
    limits: &Limits,
    (symbols, drawn, owned): (HashMap<VarId, i64>, bool, &BTreeSet<BufferId>),
) -> Report {
    let spec = &p.specs[kernel];
    let (Some(exec), Some(_)) = (spec.exec, &spec.body) else { return Report::default() };
    let size = |layout: &carbyne_ir::layout::Layout<carbyne_ir::expr::Dim>| {
        layout.eval(&p.arena, &|v| symbols.get(&v).copied()).ok().map(|l| l.size())
    };
    let n_threads = size(&p.threads[exec.threads].concat());
    let Some(n_threads) = n_threads.filter(|n| (1..=MAX_BLOCK_THREADS).contains(n)) else {
        return refused(p, kernel, "the number of threads of a block is unknown");
    };
    let cluster = p.cluster_size(kernel).filter(|n| (1..=64).contains(n));
    let Some(cluster) = cluster else {
        return refused(p, kernel, "the cluster size is unknown");
    };
    let exprs = Exprs::new(p, symbols.clone(), n_threads as usize, drawn);
    let mut plan = match Plan::new(&exprs, kernel, atoms, owned) {
        Ok(plan) => plan,
        Err(Refusal { why }) => return refused(p, kernel, &why),
    };
    // If each thread works by itself, no accesses can collide and no statement waits, then trip
    // counts do not matter.
    let synchronizes = |s: &Stmt| matches!(s.kind, StmtKind::Barrier(_) | StmtKind::Sync(_));
    let is_each =
        |id: SpecId| p.specs[id].exec.is_some_and(|exec| p.threads[exec.threads].each.is_some());
    let by_itself = |(id, leaf): (&SpecId, &LeafPlan)| match leaf.how {
        How::Atom { size, .. } => !leaf.matters && size == 1,
        How::Meaning => !leaf.matters && is_each(*id),
        How::Bulk(_) => false,
    };
    let alone = plan.leaves.iter().all(by_itself) && plan.lost.is_empty();
    if alone && plan.globals.is_empty() && !p.walk_body(kernel).stmts().any(synchronizes) {
        return report(p, kernel, &plan, &Pairs::default());
    }
    if Machine::is_too_large(&plan, cluster as usize, n_threads as usize) {
        return refused(p, kernel, "it uses more shared memory than the checker can track");
    }
    let n_blocks = size(&p.threads[exec.blocks].concat());
    let differences = Differences::new(&exprs, &plan, kernel);
    let alike = plan.globals.is_empty() && differences.are_none();
    let n_blocks = match n_blocks {
        Some(n) if n % cluster == 0 && n > 0 && (alike || n < MAX_BLOCKS) => n,
        Some(_) => {
            return refused(p, kernel, "the grid has more blocks than the checker can compare");
        }
        None if alike => cluster,
        None if !p.symbols.is_empty() && symbols.is_empty() => {
            return refused(p, kernel, MANY_GRIDS);
        }
        None => return refused(p, kernel, "the number of blocks of the grid is unknown"),
    };
    let mut pairs = Pairs::default();
    let lanes = elected(p, kernel);
    let lane = lanes.first().copied().unwrap_or(0);
    let mut walker = Walker::new(&exprs, &plan, &differences, lane, limits.accesses);
    let first = match alike {
        true => Ok(vec![0]),
        false => ways(&mut walker, &differences, n_blocks, cluster),
    };
    let first = first.unwrap_or_else(|why| {
        let (what, help) = match why {
            Unwalked::TooLong => (
                "its blocks take too many different control paths",
                "check a smaller grid of the same form",
            ),
            Unwalked::Unknown if !p.symbols.is_empty() && symbols.is_empty() => (
                "the control path of a block depends on symbols",
                "write numbers in place of the symbols, such as `let K = 4096` for `sym K`; or \
                 simulate the sizes of your launch by `carbyne simulate FILE --sym K=4096`",
            ),
            Unwalked::Unknown => (
                "the control path of a block depends on data",
                "run `carbyne simulate`, which finds races for given data; to prove the order, \
                 make conditions and bounds of loops independent of data",
            ),
        };
        pairs.undecided(0, what, help);
        vec![0]
    });
    let walked = walker.touches(n_blocks);
    let met = Met::of(walker);
    // Elements that are accessed once cannot be in a pair, so they need not be followed.
    if walked.is_ok() && !limits.every_iteration {
        plan.forget(&met.once);
    }
    let mut follower = Follower::new(&plan, atoms, kernel, cluster, limits.accesses);
    (follower.every_iteration, follower.pairs) = (limits.every_iteration, pairs);
    follower.ways(&exprs, &first, lane);
    // A single block shares memory with no other block, and has been followed.
    if n_blocks > 1 && across(walked, met, &plan, &mut follower.pairs) == Err(Unwalked::Unknown) {
        let what = "the global memory that a block accesses depends on an unknown value";
        let help = "make indices and trip counts constant, or give the symbols values";
        follower.pairs.undecided(0, what, help);
    }
    // Other elected lanes are tried for one control path only.
    for lane in lanes.iter().skip(1) {
        follower.ways(&exprs, &first[..1], *lane);
    }
    let mut pairs = follower.pairs;
    if pairs.overflowed {
        pairs.undecided(0, "it has too many pairs of accesses", "check a smaller kernel");
    }
    report(p, kernel, &plan, &pairs)
}

/// The lanes that `.elect()` may elect. The hardware may elect any lane, so the checker tries two.
/// Lane 0 is not among them, since a text could name it.
fn elected(p: &Program, kernel: SpecId) -> Vec<usize> {
    let of = |id: SpecId| p.specs[id].exec.is_some_and(|e| p.threads[e.threads].elect.is_some());
    match p.walk_body(kernel).specs().any(of) {
        true => vec![31, 13],
        false => vec![31],
    }
}

/// The first block of one cluster for each distinct control path.
///
/// # Errors
/// If a control path is unknown, or if there are too many of them.
fn ways(
    walker: &mut Walker<'_, '_>,
    differences: &Differences<'_>,
    n_blocks: i64,
    cluster: i64,
) -> Result<Vec<i64>, Unwalked> {
    /// The most distinct control paths that are followed.
    const MAX_WAYS: usize = 1 << 8;
    if differences.are_none() {
        return Ok(vec![0]);
    }
    let (mut seen, mut out) = (HashSet::new(), vec![]);
    for first in (0..n_blocks).step_by(cluster.max(1) as usize) {
        let mut way = vec![];
        for rank in 0..cluster {
            way.push(walker.decisions(first + rank)?);
        }
        if seen.insert(way) {
            out.push(first);
        }
        if out.len() > MAX_WAYS {
            return Err(Unwalked::TooLong);
        }
    }
    Ok(out)
}

/// Records the elements of global memory that several blocks access, and those that several threads
/// of one block access if that block was not followed.
///
/// # Errors
/// If the accessed elements depend on an unknown value.
fn across(
    walked: Result<(), Unwalked>,
    met: Met,
    plan: &Plan,
    pairs: &mut Pairs,
) -> Result<(), Unwalked> {
    if walked == Err(Unwalked::Unknown) && !plan.globals.is_empty() {
        return walked;
    }
    let help = "check a smaller grid of the same form";
    if walked.is_err() && !plan.globals.is_empty() {
        let what = "its blocks access more global memory than the checker can track";
        pairs.undecided(0, what, help);
    }
    if met.too_large {
        let what = "it writes a tensor that is larger than the checker can track";
        pairs.undecided(0, what, help);
    }
    for m in met.meetings {
        pairs.across(&m, plan.globals[m.buffer].id.0);
    }
    Ok(())
}

fn refused(p: &Program, kernel: SpecId, why: &str) -> Report {
    let place = kernel_place(p, kernel);
    let unfollowed =
        Unfollowed { place, buffer: None, kind: AccessKind::Write, why: why.to_owned() };
    Report { unfollowed: vec![unfollowed], ..Report::default() }
}

fn ordering(p: &Program, plan: &Plan, way: &Way) -> Ordering {
    let distance = |(var, n): &(VarId, i64)| (p.arena.var_info(*var).name, *n);
    let mut with = way.with.clone();
    with.sort_unstable();
    with.dedup();
    with.retain(|site| plan.synchronizes(*site) && !way.steps.contains(site));
    Ordering {
        steps: way.steps.iter().map(|site| plan.place(*site)).collect(),
        distance: way.distance.as_ref().map(distance),
        with: with.iter().map(|site| plan.place(*site)).collect(),
    }
}

fn report(p: &Program, kernel: SpecId, plan: &Plan, pairs: &Pairs) -> Report {
    let place = |site: u32| plan.place(site);
    let kind = |does: Does| match does {
        Does::Read => AccessKind::Read,
        Does::Write => AccessKind::Write,
        Does::Sum(_) => AccessKind::Accumulate,
    };
    let mut out = Report::default();
    for (key, known) in pairs.sorted() {
        let (first, did, by, second, does, by_second, buffer, buffer_second) = key;
        let access = |site, does, agent, buffer: u32, thread| Access {
            place: place(site),
            buffer: BufferId(buffer),
            kind: kind(does),
            agent,
            thread,
        };
        let verdict = match (known.missing, known.undecided) {
            (Some(missing), _) => Verdict::Unordered(missing),
            (None, Some(why)) => Verdict::Undecided(why.to_owned()),
            (None, None) => {
                Verdict::Ordered(known.ways.iter().map(|way| ordering(p, plan, way)).collect())
            }
        };
        out.pairs.push(Pair {
            first: access(first, did, by, buffer, known.threads.0),
            second: access(second, does, by_second, buffer_second, known.threads.1),
            verdict,
            times: known.times,
            at: known.at.clone(),
            under_way: known.open.map(|open| match open {
                Open::Uncommitted => UnderWay::Uncommitted,
                Open::Counted(at) => UnderWay::Counted(place(at)),
                Open::Left { needed, wait } => {
                    UnderWay::Left { needed, wait: wait.map(|(at, left)| (place(at), left)) }
                }
            }),
            around: known.across.and_then(|(var, _)| {
                let is_loop =
                    |s: &&Stmt| matches!(&s.kind, StmtKind::For { var: v, .. } if *v == var);
                let found = p.walk_body(kernel).stmts().find(is_loop);
                found.map(|stmt| place(plan.site(stmt)))
            }),
        });
    }
    for Found { site, label, other, what, help, certain } in &pairs.faults {
        out.faults.push(Fault {
            place: place(*site),
            label: label.clone(),
            other: other.as_ref().map(|(site, label)| (place(*site), label.clone())),
            what: what.clone(),
            help: help.clone(),
            is_certain: *certain,
        });
    }
    for ((what, site, buffer), (_, ways)) in &pairs.kept {
        let is_mbarrier = matches!(what, Keeps::LastPhase | Keeps::NextPhase | Keeps::Ready);
        out.kept.push(Kept {
            what: *what,
            place: place(*site),
            mbarrier: is_mbarrier.then_some(BufferId(*buffer)),
            ways: ways.iter().map(|way| ordering(p, plan, way)).collect(),
        });
    }
    out.unfollowed.clone_from(&plan.lost);
    out
}
