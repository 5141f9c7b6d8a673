//! Makes a comment for each synchronization statement that orders memory: the most important access
//! that it orders, and the number of others, for example
//! `orders: what line 71 copies to %a, before line 83 multiplies it`. The comments follow the
//! certificates of a report, which are the proofs of the order. A statement in no certificate gets
//! `orders nothing that is proved`, or no comment if its kernel was checked for some values of
//! symbols only. A kernel that the checker could not follow gets no comments.

use carbyne_ir::ast::{SpecKind, SyncOp};
use carbyne_ir::program::{BufferId, Program, SpecId, StmtKind};
use carbyne_ir::scalar::Scalar;
use carbyne_sync::{Access, AccessKind, AgentKind, Keeps, Kept, Ordering, Pair, Report, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// The beginnings of the comments of [`comments`].
const BEGINS: [&str; 2] = ["orders: ", NOTHING];
/// The comment of a statement that has no part in any proof.
const NOTHING: &str = "orders nothing that is proved";

/// Whether a text is a comment of [`comments`].
pub fn is_comment(text: &str) -> bool {
    BEGINS.iter().any(|begin| text.starts_with(begin))
}

/// The comments of all synchronization statements of these kernels, by the byte of the text at
/// which the statement begins. A comment states the most important access that the statement
/// orders, and the number of others. Kernels that are not followed get no comments.
///
/// If the order is not decided for all values of symbols, comments describe the values that were
/// tried. A statement that orders nothing for them gets no comment.
///
/// Statements that order no memory, such as `prefetch`, get no comment.
pub fn comments(p: &Program, reports: &[(SpecId, Report)]) -> BTreeMap<u32, String> {
    let mut all: BTreeMap<u32, Vec<Use>> = BTreeMap::new();
    let mut undecided = BTreeSet::new();
    for (kernel, report) in reports {
        let is_tried = !report.tried.is_empty();
        let report = report.tried.first().unwrap_or(report);
        if report.unfollowed.iter().any(|u| u.place.spec == Some(*kernel)) {
            continue;
        }
        for stmt in p.walk_body(*kernel).stmts() {
            let orders = match &stmt.kind {
                StmtKind::Barrier(_) => true,
                StmtKind::Sync(sync) => orders(sync.op),
                _ => false,
            };
            if orders {
                all.entry(stmt.span.start).or_default();
                if is_tried {
                    undecided.insert(stmt.span.start);
                }
            }
        }
        for (i, pair) in report.pairs.iter().enumerate() {
            if let Verdict::Ordered(ways) = &pair.verdict {
                note(&mut all, ways, &|| phrase(p, pair), rank(p, pair), i);
            }
        }
        for (i, kept) in report.kept.iter().enumerate() {
            note(&mut all, &kept.ways, &|| kept_phrase(p, kept), LAST, i);
        }
    }
    all.retain(|start, uses| !uses.is_empty() || !undecided.contains(start));
    all.into_iter().map(|(start, uses)| (start, said(uses))).collect()
}

/// Whether a statement orders memory.
fn orders(op: SyncOp) -> bool {
    match op {
        SyncOp::MbarrierInit
        | SyncOp::MbarrierArrive
        | SyncOp::MbarrierExpect
        | SyncOp::MbarrierWait
        | SyncOp::MbarrierAsyncArrive
        | SyncOp::FenceMbarrierInit
        | SyncOp::FenceAsync
        | SyncOp::ClusterArrive
        | SyncOp::ClusterArriveRelaxed
        | SyncOp::ClusterWait
        | SyncOp::AsyncCommit
        | SyncOp::AsyncWait
        | SyncOp::BulkCommit
        | SyncOp::BulkWait
        | SyncOp::BulkWaitRead
        | SyncOp::WgmmaFence
        | SyncOp::WgmmaCommit
        | SyncOp::WgmmaWait => true,
        SyncOp::RegistersInc
        | SyncOp::RegistersDec
        | SyncOp::GridWait
        | SyncOp::GridLaunch
        | SyncOp::Prefetch => false,
    }
}

/// The contribution of a statement to an order. Smaller ones are more important.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Use {
    /// Whether the order is not about a pair of accesses.
    beside: bool,
    /// Whether the statement only contributes to other statements of the certificate.
    helps: bool,
    rank: u8,
    /// Whether the order sometimes holds without the statement.
    sometimes: bool,
    index: usize,
    text: String,
}

/// Records the contributions of statements to one order.
fn note(
    all: &mut BTreeMap<u32, Vec<Use>>,
    ways: &[Ordering],
    text: &dyn Fn() -> String,
    rank: u8,
    index: usize,
) {
    let starts = |way: &Ordering| -> Vec<(u32, bool)> {
        let steps = way.steps.iter().map(|s| (s.span.start, false));
        steps.chain(way.with.iter().map(|s| (s.span.start, true))).collect()
    };
    let mut of: BTreeMap<u32, (usize, bool)> = BTreeMap::new();
    for way in ways {
        let mut mine = starts(way);
        mine.sort_unstable();
        mine.dedup_by_key(|(start, _)| *start);
        for (start, helps) in mine {
            let (times, only_helps) = of.entry(start).or_insert((0, true));
            *times += 1;
            *only_helps &= helps;
        }
    }
    for (start, (times, helps)) in of {
        if let Some(uses) = all.get_mut(&start) {
            let sometimes = times < ways.len();
            let beside = rank == LAST;
            uses.push(Use { beside, helps, rank, sometimes, index, text: text() });
        }
    }
}

/// The comment of a statement.
fn said(mut uses: Vec<Use>) -> String {
    uses.sort();
    let mut texts: Vec<String> = vec![];
    for u in uses {
        if !texts.contains(&u.text) {
            texts.push(u.text);
        }
    }
    match texts.as_slice() {
        [] => NOTHING.to_owned(),
        [only] => format!("{}{only}", BEGINS[0]),
        [first, others @ ..] => format!("{}{first}; and {} more", BEGINS[0], others.len()),
    }
}

/// The rank of orders that are not about pairs.
const LAST: u8 = 4;

/// Data that is handed over ranks before memory that is reused, and mbarrier inits rank last.
fn rank(p: &Program, pair: &Pair) -> u8 {
    let reads = |a: &Access| a.kind == AccessKind::Read;
    match (reads(&pair.first), reads(&pair.second)) {
        _ if is_mbarrier(p, pair.first.buffer) => 3,
        (false, true) => 0,
        (true, _) => 1,
        (false, false) => 2,
    }
}

fn is_mbarrier(p: &Program, buffer: BufferId) -> bool {
    p.buffers[buffer].scalar == Scalar::Mbarrier
}

/// `what line 71 copies to %a, before line 83 multiplies it`
fn phrase(p: &Program, pair: &Pair) -> String {
    let (a, b) = (&pair.first, &pair.second);
    let (from, to) = (a.place.line, b.place.line);
    let name = &p.buffers[a.buffer].name;
    if is_mbarrier(p, a.buffer) {
        let uses = match b.place.what.as_str() {
            "mbarrier.wait" => "waits for it",
            what if what.starts_with("mbarrier.") => "arrives at it",
            _ => "counts on it",
        };
        return format!("line {from} makes %{name} ready, before line {to} {uses}");
    }
    let first = match (a.kind, a.agent) {
        (AccessKind::Read, AgentKind::Thread) => format!("line {from} reads %{name}"),
        (AccessKind::Read, AgentKind::MatMul) => format!("line {from} multiplies %{name}"),
        (AccessKind::Read, _) => format!("line {from} copies %{name}"),
        (AccessKind::Write, AgentKind::Thread) => format!("what line {from} writes to %{name}"),
        (AccessKind::Write, AgentKind::MatMul) => format!("what line {from} adds up in %{name}"),
        (AccessKind::Write, _) => format!("what line {from} copies to %{name}"),
        (AccessKind::Accumulate, _) => format!("what line {from} adds to %{name}"),
    };
    let sums = b.agent == AgentKind::MatMul && is_accumulator(p, b);
    let second = match (b.kind, b.agent) {
        (AccessKind::Read | AccessKind::Write, _) if sums => "adds to",
        (AccessKind::Accumulate, _) => "adds to",
        (AccessKind::Read, AgentKind::Thread) => "reads",
        (AccessKind::Read, AgentKind::MatMul) => "multiplies",
        (AccessKind::Read, _) => "copies",
        (AccessKind::Write, _) => "overwrites",
    };
    match a.buffer == b.buffer {
        true => format!("{first}, before line {to} {second} it"),
        // Two tensors occupy the same bytes.
        false => {
            let other = &p.buffers[b.buffer].name;
            let second = if second == "overwrites" { "writes" } else { second };
            format!("{first}, before line {to} {second} %{other} in its place")
        }
    }
}

/// Whether an asynchronous MatMul accumulates into the buffer of an access.
fn is_accumulator(p: &Program, a: &Access) -> bool {
    let Some(spec) = a.place.spec.map(|id| &p.specs[id]) else { return false };
    let written = spec.outputs.iter().any(|t| p.tensors[*t].buffer == a.buffer);
    written && spec.kind == SpecKind::MatMul && p.buffers[a.buffer].is_per_thread()
}

fn kept_phrase(p: &Program, kept: &Kept) -> String {
    let line = kept.place.line;
    let name = kept.mbarrier.map_or("", |b| p.buffers[b].name.as_str());
    let is_sync = kept.place.spec.is_none();
    match kept.what {
        Keeps::LastPhase => {
            let does = if is_sync { "arrives" } else { "counts" };
            format!("a phase of %{name}, before line {line} {does} in the next one")
        }
        Keeps::NextPhase => {
            format!("line {line} waits for a phase of %{name}, before the next one is complete")
        }
        Keeps::Ready => format!("%{name} is ready, before line {line} counts on it"),
        Keeps::OwnEnd => {
            let kind = kept.place.spec.map(|id| &p.specs[id].kind);
            let multiplies = matches!(kind, Some(SpecKind::MatMul | SpecKind::MatMulSet));
            let does = if multiplies { "multiplies" } else { "copies" };
            format!("what line {line} {does}, before its block ends")
        }
        Keeps::OtherEnd => {
            let does = if is_sync { "arrives in" } else { "accesses" };
            format!("line {line} {does} another block's shared memory, before that block ends")
        }
    }
}
