//! From a kernel to its report.

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

/// How much is looked at before the answer is that it cannot be decided.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Accesses to granules of memory, all threads together, some ten nanoseconds each. A statement
    /// that threads come to counts as some more, and so does a look at the state of all threads.
    pub accesses: u64,
    /// Follows every turn of every loop, those included that are known to be like others: to test
    /// that these are.
    pub every_turn: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { accesses: 1 << 27, every_turn: false }
    }
}

/// Blocks of a grid that are told apart.
const MAX_BLOCKS: i64 = 1 << 23;

/// Whether a kernel says who accesses what: no layout is open, and whatever several threads execute
/// together names its atom. What does not is to be decomposed, and its synchronization is not
/// planned yet.
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

/// An architecture that has all atoms that a program names, and its synchronization; the oldest
/// one.
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

/// What is known of the order of a kernel's accesses.
///
/// Where that depends on symbols, or on integers of the caller's memory, and is not decided for all
/// of their values, some values are tried that keep the facts: what is refused for them is refused.
pub fn check(p: &Program, kernel: SpecId, atoms: &AtomTable, limits: &Limits) -> Report {
    let owned = owned(p, kernel, atoms);
    let mut values = vec![];
    if let Some((report, refused)) = check_turns(p, kernel, atoms, limits, &owned) {
        if report.is_ordered() {
            return report;
        }
        values = refused;
    }
    let mut report = check_with(p, kernel, atoms, limits, (HashMap::new(), false, &owned));
    if report.is_ordered() || is_refused(&report) {
        return report;
    }
    // Each takes a part of the time only: what is found is found early, or is not worth the wait.
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

/// Whether something in a report is wrong for certain.
fn is_refused(report: &Report) -> bool {
    report.counts()[1] > 0 || report.faults.iter().any(|f| f.is_certain)
}

/// Checks a kernel for all numbers of turns of its loops. Beside the report are numbers of turns at
/// which a fault was found. None if something else decides what blocks do, or if blocks may access
/// the same memory.
fn check_turns(
    p: &Program,
    kernel: SpecId,
    atoms: &AtomTable,
    limits: &Limits,
    owned: &BTreeSet<BufferId>,
) -> Option<(Report, Vec<(Dim, i64)>)> {
    let cluster = p.cluster_size(kernel).filter(|n| (1..=64).contains(n))?;
    let turns = TripCounts::of(p, kernel, cluster)?;
    let nested = turns.nested();
    let one = turns.numbers.first().copied().filter(|_| turns.numbers.len() == 1);
    let numbers = nested.map_or(one.into_iter().collect(), |(a, b)| vec![a, b]);
    if numbers.is_empty() {
        return None;
    }
    let n_threads = p.threads[p.specs[kernel].exec?.threads].concat().to_fixed()?.size();
    let n_threads = usize::try_from(n_threads).ok()?;
    let accesses = limits.accesses.saturating_mul(4);
    let counted =
        Counted { program: p, kernel, atoms, owned, turns: &turns, n_threads, cluster, accesses };
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

/// What is known where symbols have these values.
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
        return refused(p, kernel, "the threads of a block are not known");
    };
    let cluster = p.cluster_size(kernel).filter(|n| (1..=64).contains(n));
    let Some(cluster) = cluster else {
        return refused(p, kernel, "the size of a cluster is not known");
    };
    let exprs = Exprs::new(p, symbols.clone(), n_threads as usize, drawn);
    let mut plan = match Plan::new(&exprs, kernel, atoms, owned) {
        Ok(plan) => plan,
        Err(Refusal { why }) => return refused(p, kernel, &why),
    };
    // Where each thread acts by itself, nobody can conflict and nothing is waited for, it does not
    // matter how often loops turn.
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
        return refused(p, kernel, "its shared memory has more granules than are followed");
    }
    let n_blocks = size(&p.threads[exec.blocks].concat());
    let differences = Differences::new(&exprs, &plan, kernel);
    let alike = plan.globals.is_empty() && differences.are_none();
    let n_blocks = match n_blocks {
        Some(n) if n % cluster == 0 && n > 0 && (alike || n < MAX_BLOCKS) => n,
        Some(_) => return refused(p, kernel, "the grid has more blocks than are followed"),
        None if alike => cluster,
        None if !p.symbols.is_empty() && symbols.is_empty() => {
            return refused(p, kernel, MANY_GRIDS);
        }
        None => return refused(p, kernel, "the number of blocks of the grid is not known"),
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
                "what its blocks do differs, and there are more of them than are followed",
                "check a smaller grid of the same form",
            ),
            Unwalked::Unknown => (
                "whether its blocks do the same depends on what is not known",
                "make conditions and trip counts known, or give the symbol a value",
            ),
        };
        pairs.fault(0, None, what, help, false);
        vec![0]
    });
    let walked = walker.touches(n_blocks);
    let met = Met::of(walker);
    // What is touched once nobody meets: it need not be followed.
    if walked.is_ok() && !limits.every_turn {
        plan.forget(&met.once);
    }
    let mut follower = Follower::new(&plan, atoms, kernel, cluster, limits.accesses);
    (follower.every_turn, follower.pairs) = (limits.every_turn, pairs);
    follower.ways(&exprs, &first, lane);
    // One block meets nobody else, and has been followed.
    if n_blocks > 1 && across(walked, met, &plan, &mut follower.pairs) == Err(Unwalked::Unknown) {
        let what = "which global memory its blocks access depends on what is not known";
        let help = "make indices and trip counts known, or give the symbol a value";
        follower.pairs.fault(0, None, what, help, false);
    }
    // Other lanes are tried for one of the ways.
    for lane in lanes.iter().skip(1) {
        follower.ways(&exprs, &first[..1], *lane);
    }
    let mut pairs = follower.pairs;
    if pairs.overflowed {
        pairs.fault(0, None, "it has more pairs than are kept", "check a smaller kernel", false);
    }
    report(p, kernel, &plan, &pairs)
}

/// The lanes that are elected, one after the other: which one it is nobody knows, but not one that
/// a text names first.
fn elected(p: &Program, kernel: SpecId) -> Vec<usize> {
    let of = |id: SpecId| p.specs[id].exec.is_some_and(|e| p.threads[e.threads].elect.is_some());
    match p.walk_body(kernel).specs().any(of) {
        true => vec![31, 13],
        false => vec![31],
    }
}

/// A first block for each way that clusters go.
///
/// # Errors
/// Where a way is not known, and where there are more of them than are followed.
fn ways(
    walker: &mut Walker<'_, '_>,
    differences: &Differences<'_>,
    n_blocks: i64,
    cluster: i64,
) -> Result<Vec<i64>, Unwalked> {
    /// Different ways that are followed.
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

/// Elements of global memory that several blocks touch; and that threads of one block do which were
/// not followed.
///
/// # Errors
/// Where that depends on what has no value.
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
        pairs.fault(0, None, "its blocks access more global memory than is followed", help, false);
    }
    if met.too_large {
        let what = "a tensor that it writes is larger than what is followed";
        pairs.fault(0, None, what, help, false);
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
    let turns = |(var, n): &(VarId, i64)| (p.arena.var_info(*var).name, *n);
    let mut with = way.with.clone();
    with.sort_unstable();
    with.dedup();
    with.retain(|site| plan.synchronizes(*site) && !way.steps.contains(site));
    Ordering {
        steps: way.steps.iter().map(|site| plan.place(*site)).collect(),
        distance: way.distance.as_ref().map(turns),
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
            around: known.turns.and_then(|(var, _)| {
                let turns =
                    |s: &&Stmt| matches!(&s.kind, StmtKind::For { var: v, .. } if *v == var);
                let found = p.walk_body(kernel).stmts().find(turns);
                found.map(|stmt| place(plan.site(stmt)))
            }),
        });
    }
    for Found { site, other, what, help, certain } in &pairs.faults {
        out.faults.push(Fault {
            place: place(*site),
            other: other.map(place),
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
