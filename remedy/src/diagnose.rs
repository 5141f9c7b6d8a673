//! Converts a report of the synchronization checker to errors and warnings. A missing order becomes
//! an error with both accesses and the statement that would order them. Several pairs that one
//! statement would order become one error. Faults that are certain, such as the misuse of an
//! mbarrier, become errors, too. An undecided order becomes a warning.

use crate::lines;
use carbyne_ir::ast::{Key, SyncOp};
use carbyne_ir::diag::{Code, Diagnostic, Edit, Severity};
use carbyne_ir::expr::VarId;
use carbyne_ir::program::samples::samples;
use carbyne_ir::program::walk::Step;
use carbyne_ir::program::{Program, SpecId, Stmt, StmtKind, VarKind};
use carbyne_ir::span::Span;
use carbyne_sync::{
    Access, AccessKind, AgentKind, Fault, Instance, Missing, Pair, Place, Report, UnderWay,
    Unfollowed, Verdict,
};
use std::collections::BTreeSet;

/// The most symbols for which a help text gives values.
const MOST_NAMED: usize = 8;

/// Errors for unordered pairs and certain faults, warnings for undecided ones; in text order.
pub fn diagnostics(report: &Report, p: &Program, kernel: SpecId) -> Vec<Diagnostic> {
    let mut out = vec![];
    for fault in &report.faults {
        let here = |f: &&Fault| f.place.node.same(fault.place.node);
        // If a wait is an error, its undecided fault is the reason for the error.
        let mut certain = report.faults.iter().filter(here).filter(|f| f.is_certain);
        let d = match fault.is_certain {
            true => {
                let mut stmts = p.walk_body(kernel).stmts();
                let is_step = stmts.any(|s| {
                    s.node.same(fault.place.node) && matches!(s.kind, StmtKind::Step { .. })
                });
                let code = if is_step { Code::Counter } else { Code::WrongSync };
                Diagnostic::new(code, fault.place.span, fault.what.clone())
            }
            false if certain.next().is_some() => continue,
            false => Diagnostic::warning(
                Code::Undecided,
                fault.place.span,
                format!("cannot decide the order of accesses: {}", fault.what),
            ),
        };
        let d = d.label(fault.label.clone()).help(fault.help.clone());
        let others = report.faults.iter().filter(here).find_map(|f| f.other.as_ref());
        out.push(match fault.other.as_ref().or(others) {
            Some((other, label)) => d.related(other.span, label.clone()),
            None => d,
        });
    }
    let mut missing = vec![];
    for pair in &report.pairs {
        match &pair.verdict {
            Verdict::Ordered(_) => {}
            Verdict::Unordered(what) => missing.push((pair, *what)),
            Verdict::Undecided(why) => out.push(undecided(p, pair, why)),
        }
    }
    out.extend(grouped(p, kernel, missing));
    for u in &report.unfollowed {
        if u.is_of_many_grids() {
            out.push(undecided_sizes(report, p, kernel, u));
            continue;
        }
        let of = u.buffer.map_or(String::new(), |b| format!(" of `%{}`", p.buffers[b].name));
        let text = format!("cannot tell which elements{of} this {}", u.kind.verb());
        out.push(
            Diagnostic::warning(Code::Undecided, u.place.span, text).label(u.why.clone()).help(
                "run `carbyne simulate`, which uses the data; or make the indices independent of \
                 data",
            ),
        );
    }
    blame_counters(p, kernel, &mut out);
    out.sort_by_key(|d| (d.span.start, d.span.end));
    out
}

/// Names a counter that nothing steps in the errors of its kernel: it probably causes them.
fn blame_counters(p: &Program, kernel: SpecId, all: &mut [Diagnostic]) {
    let mut errors = all.iter_mut().filter(|d| d.severity == Severity::Error).peekable();
    if errors.peek().is_none() {
        return;
    }
    let steps: Vec<(VarId, VarId, Span)> = p
        .walk_body(kernel)
        .stmts()
        .filter_map(|s| match s.kind {
            StmtKind::Step { counter, var, .. } => Some((counter, var, s.span)),
            _ => None,
        })
        .collect();
    let stepped: BTreeSet<VarId> =
        steps.iter().filter(|(counter, var, _)| counter != var).map(|(id, ..)| *id).collect();
    let Some((id, _, span)) = steps.into_iter().find(|(id, ..)| !stepped.contains(id)) else {
        return;
    };
    let name = &p.arena.var_info(id).name;
    for d in errors {
        d.related.push((span, format!("no statement steps `{name}`")));
        let help = format!("step the counter in the loop that uses it: `{name} += 1`");
        *d = d.clone().better(help);
    }
}

/// The warning for a kernel that is not checked for all sizes, with the results for some sizes.
fn undecided_sizes(report: &Report, p: &Program, kernel: SpecId, u: &Unfollowed) -> Diagnostic {
    let ordered = report.tried.iter().filter(|tried| tried.is_ordered()).count();
    let known = match (ordered, report.tried.len()) {
        (0, _) => "the order is not decided for any of the sizes that were tried",
        (n, all) if n == all => "accesses are ordered for all sizes that were tried",
        _ => "accesses are ordered for some of the sizes that were tried",
    };
    let values = samples(p, kernel).into_iter().next().unwrap_or_default();
    let value = |symbol: &VarId| {
        let n = values.get(symbol).map_or("..".to_owned(), i64::to_string);
        format!("--sym {}={n}", p.arena.var_info(*symbol).name)
    };
    let sizes: Vec<String> = p.symbols.iter().take(MOST_NAMED).map(value).collect();
    let more = if p.symbols.len() > MOST_NAMED { " .." } else { "" };
    let has_counters = p.walk_body(kernel).stmts().any(|s| match &s.kind {
        StmtKind::Step { .. } => true,
        StmtKind::For { also, .. } => !also.is_empty(),
        _ => false,
    });
    let numbers = |symbol: &VarId| {
        let name = p.arena.var_info(*symbol).name;
        format!("`let {name} = {}`", values.get(symbol).map_or("..".to_owned(), i64::to_string))
    };
    let help = match has_counters {
        true => {
            let lets: Vec<String> = p.symbols.iter().take(MOST_NAMED).map(numbers).collect();
            format!(
                "a kernel with counters is proved for one launch: write numbers in place of \
                 symbols, {}{more}",
                lets.join(", ")
            )
        }
        false => format!(
            "simulate the sizes of your launch: `carbyne simulate FILE --arch ARCH {}{more}`",
            sizes.join(" ")
        ),
    };
    let text = "cannot decide the order of accesses for all sizes";
    Diagnostic::warning(Code::Undecided, u.place.span, text)
        .label(u.why.clone())
        .note(known)
        .help(help)
}

/// `bulk copy of thread 3 reads %s`
fn access_text(p: &Program, a: &Access) -> String {
    let name = &p.buffers[a.buffer].name;
    format!("{} {} {} `%{name}`", a.agent.name(), a.thread, a.kind.verb())
}

/// `, k = 3`; empty outside of loops.
fn at(p: &Program, pair: &Pair) -> String {
    let text = pair.at.text(p);
    if text.is_empty() { text } else { format!(", {text}") }
}

/// The error for a pair. `least` groups may be left in flight for all pairs of the same wait.
fn unordered(
    p: &Program,
    kernel: SpecId,
    pair: &Pair,
    missing: Missing,
    least: Option<u32>,
) -> Diagnostic {
    let (a, b) = (&pair.first, &pair.second);
    let name = &p.buffers[b.buffer].name;
    let verb = |k: AccessKind| match k {
        AccessKind::Read => "read",
        AccessKind::Write => "write",
        AccessKind::Accumulate => "accumulation",
    };
    let what = match missing {
        Missing::Order => "nothing orders their threads",
        Missing::Wait => "no thread has waited for the first one",
        Missing::Fence => "no fence stands between the proxies",
        Missing::Blocks => "different blocks make them",
        Missing::RegisterFence => "no `wgmma.fence` stands between them",
    };
    let (first, second) = (verb(a.kind), verb(b.kind));
    let text = format!("{first} and {second} of `%{name}` are not ordered: {what}");
    let Remedy { help, edits } = remedy(p, kernel, pair, missing, least);
    let d = Diagnostic::new(Code::Unordered, b.place.span, text)
        .label(format!("{} here{}", access_text(p, b), at(p, pair)))
        .related(a.place.span, format!("{} here", access_text(p, a)))
        .help(help);
    edits.into_iter().fold(d, |d, edit| d.edit(edit.span, edit.text))
}

/// Unordered pairs, each with the missing synchronization.
type Unordered<'r> = Vec<(&'r Pair, Missing)>;

/// Groups pairs that one statement would order if it stood before the second access of one of them.
/// Each group is one error.
fn grouped(p: &Program, kernel: SpecId, mut left: Unordered<'_>) -> Vec<Diagnostic> {
    /// The most pairs that are compared, and the most that a message lists.
    const MAX_TOGETHER: usize = 1 << 8;
    const NAMED: usize = 8;
    let mut out = vec![];
    while let Some((first, _)) = left.first() {
        let some = &left[..left.len().min(MAX_TOGETHER)];
        let together = |lead: &(&Pair, Missing)| -> Vec<usize> {
            some.iter().enumerate().filter(|(_, o)| is_explained(lead, o)).map(|(i, _)| i).collect()
        };
        // The lead of a group is the pair that explains the most others. Ties are broken by text
        // order, and pairs within one iteration come before pairs across iterations.
        let lead = some.iter().enumerate().max_by_key(|(i, lead)| {
            let uncommitted = lead.0.under_way == Some(UnderWay::Uncommitted);
            let n = together(lead).len();
            (n, uncommitted, lead.0.around.is_none(), std::cmp::Reverse(*i))
        });
        let (lead, what) = lead.map_or((*first, left[0].1), |(_, lead)| *lead);
        let least = some.iter().filter_map(|(pair, _)| same_wait(lead, pair)).min();
        let found = together(&(lead, what));
        let mut others = vec![];
        let mut i = 0;
        left.retain(|(pair, _)| {
            let gone = std::ptr::eq(*pair, lead) || found.contains(&i);
            if gone && !std::ptr::eq(*pair, lead) {
                others.push(*pair);
            }
            i += 1;
            !gone
        });
        let mut d = unordered(p, kernel, lead, what, least);
        if !others.is_empty() {
            let line = |a: &Access| {
                format!("line {} {} `%{}`", a.place.line, a.kind.verb(), p.buffers[a.buffer].name)
            };
            let one = |pair: &&Pair| format!("{}, {}", line(&pair.first), line(&pair.second));
            let mut all: Vec<String> = others.iter().take(NAMED).map(one).collect();
            all.dedup();
            if others.len() > NAMED {
                all.push("..".to_owned());
            }
            let n = others.len();
            let pairs = if n == 1 { "pair probably lacks" } else { "pairs probably lack" };
            d = d.note(format!("{n} more {pairs} the same: {}", all.join("; ")));
        }
        out.push(d);
    }
    out
}

/// The groups that the wait of the lead may leave in flight, for another pair.
fn same_wait(lead: &Pair, pair: &Pair) -> Option<u32> {
    match (&lead.under_way, &pair.under_way) {
        (
            Some(UnderWay::Left { wait: Some((at, _)), .. }),
            Some(UnderWay::Left { needed, wait: Some((other, _)) }),
        ) if at.node.same(other.node) => Some(*needed),
        _ => None,
    }
}

/// Whether a statement that orders the lead, placed before its second access, would order the other
/// pair, too.
fn is_explained((lead, what): &(&Pair, Missing), (pair, missing): &(&Pair, Missing)) -> bool {
    if what != missing {
        return false;
    }
    let place = |p: &Place| (p.span.start, p.span.end);
    let (at, _) = place(&lead.second.place);
    let (from, to) = (place(&pair.first.place).0, place(&pair.second.place).0);
    match missing {
        Missing::Order | Missing::Wait => {
            let turned = pair.around.as_ref().is_some_and(|l| {
                let (start, end) = place(l);
                (start..end).contains(&at)
            });
            let between = if from < to { from < at && at <= to } else { at > from || at <= to };
            // Each kind of asynchronous work has its own wait.
            let alike = *missing == Missing::Order || lead.first.agent == pair.first.agent;
            alike && (turned || between)
        }
        Missing::Fence => lead.first.place.line == pair.first.place.line,
        Missing::RegisterFence => at == to,
        Missing::Blocks => lead.second.buffer == pair.second.buffer,
    }
}

/// A help text and the same as edits.
struct Remedy {
    help: String,
    /// Empty if a person must choose the place. Inserted lines are not indented.
    edits: Vec<Edit>,
}

impl From<String> for Remedy {
    fn from(help: String) -> Self {
        Remedy { help, edits: vec![] }
    }
}

impl Remedy {
    /// Adds an edit.
    fn edit(mut self, edit: Edit) -> Self {
        self.edits.push(edit);
        self
    }
}

/// The statements after and before which an ordering statement may stand. They are as far out as
/// possible, but after the synchronization that precedes the second access.
fn sides<'p>(p: &'p Program, kernel: SpecId, pair: &Pair) -> Option<(&'p Stmt, &'p Stmt)> {
    let path = |place: &Place| {
        let mut walk = p.walk_body(kernel);
        while let Some(step) = walk.next() {
            if matches!(step, Step::Enter(stmt) if stmt.node.same(place.node)) {
                return walk.around().to_vec();
            }
        }
        vec![]
    };
    let (first, second) = (path(&pair.first.place), path(&pair.second.place));
    let apart = first.iter().zip(&second).take_while(|(a, b)| a.node.same(b.node)).count();
    let to = pair.second.place.span.start;
    let is_sync = |s: &Stmt| matches!(s.kind, StmtKind::Barrier(_) | StmtKind::Sync(_));
    // In a later iteration of a loop, all synchronization of the loop precedes the access.
    let is_later = |around: &Stmt| match &around.kind {
        StmtKind::For { var, start, .. } => {
            let moved = |(of, n): &(VarId, i64)| of == var && start.as_const() != Some(*n);
            matches!(&pair.at, Instance::Loops(values) if values.iter().any(moved))
        }
        _ => false,
    };
    let synchronizes = |around: &Stmt| {
        let later = is_later(around);
        let mut inside = p.walk(std::slice::from_ref(around)).stmts();
        inside.any(|s| is_sync(s) && (later || s.span.start < to))
    };
    let behind = first.get(apart).or(first.last())?;
    let before = second.iter().skip(apart).find(|s| !synchronizes(s)).or(second.last())?;
    Some((behind, before))
}

fn remedy(
    p: &Program,
    kernel: SpecId,
    pair: &Pair,
    missing: Missing,
    least: Option<u32>,
) -> Remedy {
    let (a, b) = (&pair.first, &pair.second);
    let root = p.specs[kernel].exec.and_then(|e| p.threads[e.threads].name.clone());
    let root = root.unwrap_or("cta".to_owned());
    let (from, to) = (a.place.line, b.place.line);
    let is_one = a.place.node.same(b.place.node);
    let sides_of = sides(p, kernel, pair);
    let at = match sides_of {
        Some((_, second)) if !is_one => format!("before line {}", second.line),
        _ if is_one => format!("before line {to}, in the loop around it"),
        _ => format!("before line {to}"),
    };
    let before = |help: String, line: &str| match sides_of {
        Some((_, second)) => Remedy::from(help).edit(lines::before(second.span, line)),
        None => help.into(),
    };
    let barrier = format!("barrier(#{root})");
    match missing {
        Missing::Order => {
            before(format!("put `{barrier}`, or a barrier of fewer threads, {at}"), &barrier)
        }
        Missing::Fence if p.buffers[b.buffer].is_global() => format!(
            "copy `%{name}` by threads in line {to}, or write `%{name}` in an earlier kernel: \
             `fence.async` is for shared memory only",
            name = p.buffers[b.buffer].name
        )
        .into(),
        Missing::Fence => {
            let help = format!("put `fence.async` after line {from}, before the next barrier");
            match sides_of {
                Some((first, _)) => {
                    Remedy::from(help).edit(lines::behind(first.span, "fence.async"))
                }
                None => help.into(),
            }
        }
        Missing::RegisterFence => {
            before(format!("put `wgmma.fence` before line {to}"), "wgmma.fence")
        }
        Missing::Blocks => match repeated(p, b) {
            Some(list) => format!(
                "add `distinct` to the range of `%{list}` if no two of its elements are equal, or \
                 accumulate: `Move.add`"
            )
            .into(),
            None => {
                "let blocks access different elements, or accumulate: `Move.add`".to_owned().into()
            }
        },
        Missing::Wait => {
            let (commit, wait) = match (a.agent, a.kind) {
                (AgentKind::Copy, _) => ("async.commit", "async.wait"),
                (AgentKind::MatMul, _) => ("wgmma.commit", "wgmma.wait"),
                (AgentKind::Bulk, AccessKind::Read) => ("bulk.commit", "bulk.wait_read"),
                (AgentKind::Bulk, _) => ("bulk.commit", "bulk.wait"),
                (AgentKind::Counted, _) => {
                    let help = "put `mbarrier.wait` for the phase of its mbarrier before line";
                    return format!("{help} {to}").into();
                }
                (AgentKind::Thread, _) => {
                    return before(format!("put `{barrier}` {at}"), &barrier);
                }
            };
            waiting(p, kernel, (pair, sides_of), (commit, wait), least)
        }
    }
}

/// The wait for the first access of a pair, in combination with existing synchronization.
fn waiting(
    p: &Program,
    kernel: SpecId,
    (pair, sides): (&Pair, Option<(&Stmt, &Stmt)>),
    (commit, wait): (&str, &str),
    least: Option<u32>,
) -> Remedy {
    let (from, to) = (pair.first.place.line, pair.second.place.line);
    match &pair.under_way {
        Some(UnderWay::Counted(at)) => format!(
            "put `mbarrier.wait` for the phase that line {} arrives in before line {to}",
            at.line
        )
        .into(),
        Some(UnderWay::Left { needed, wait: Some((at, left)) }) => {
            let needed = least.as_ref().unwrap_or(needed);
            let groups = if *left == 1 { "group" } else { "groups" };
            Remedy::from(format!(
                "line {} leaves {left} {groups} in flight, but at most {needed} may be: write \
                 `{wait}({needed})`, or correct the stage index in line {to}",
                at.line
            ))
            .edit(Edit::new(at.span, format!("{wait}({needed})")))
        }
        Some(UnderWay::Left { needed, wait: None }) => {
            let line = format!("{wait}({needed})");
            let remedy = Remedy::from(format!("put `{line}` before line {to}"));
            match sides {
                Some((_, second)) => remedy.edit(lines::before(second.span, &line)),
                None => remedy,
            }
        }
        Some(UnderWay::Uncommitted) | None => {
            let is =
                |s: &Stmt, op: SyncOp| matches!(&s.kind, StmtKind::Sync(sync) if sync.op == op);
            let stmts = || p.walk_body(kernel).stmts();
            let behind = |s: &&Stmt| s.span.start > pair.first.place.span.start;
            let copies = pair.first.agent == AgentKind::Copy;
            let arrives = stmts().filter(behind).find(|s| is(s, SyncOp::MbarrierArrive));
            let commits = stmts().any(|s| is(s, SyncOp::AsyncCommit));
            match arrives.filter(|_| copies && !commits) {
                Some(s) => format!(
                    "replace `mbarrier.arrive` in line {} by `mbarrier.async_arrive`, which \
                     arrives when the copies of its thread are complete",
                    s.line
                )
                .into(),
                None => {
                    let named = |s: &&Stmt| match &s.kind {
                        StmtKind::Sync(sync) => sync.op.as_str() == wait,
                        _ => false,
                    };
                    let (waits, last) = (stmts().find(named), format!("{wait}(0)"));
                    let then = match waits {
                        Some(s) => format!("so that `{wait}` in line {} waits for it", s.line),
                        None => format!("and `{last}` before line {to}"),
                    };
                    let remedy = Remedy::from(format!("put `{commit}` after line {from}, {then}"));
                    match sides {
                        Some((first, _)) if waits.is_some() => {
                            remedy.edit(lines::behind(first.span, commit))
                        }
                        Some((first, second)) => remedy
                            .edit(lines::behind(first.span, commit))
                            .edit(lines::before(second.span, &last)),
                        None => remedy,
                    }
                }
            }
        }
    }
}

fn undecided(p: &Program, pair: &Pair, why: &str) -> Diagnostic {
    let (a, b) = (&pair.first, &pair.second);
    let name = &p.buffers[b.buffer].name;
    let text = format!("cannot prove that accesses of `%{name}` are ordered");
    let is_named =
        |a: &Access| a.place.spec.is_some_and(|id| p.specs[id].word(Key::Atom).is_some());
    Diagnostic::warning(Code::Undecided, b.place.span, text)
        .label(format!("{} here{}: {why}", access_text(p, b), at(p, pair)))
        .related(a.place.span, format!("{} here", access_text(p, a)))
        .help(match is_named(a) && is_named(b) {
            true => {
                "run `carbyne simulate`, which compares the values; or let one thread access the \
                 element, `<<<#cta[0]>>>`"
            }
            false => {
                "run `carbyne simulate`, which uses the data; or name atoms, which fix the thread \
                 that accesses each element"
            }
        })
}

/// The tensor of integers that selects the accessed elements and is not declared `distinct`.
fn repeated<'p>(p: &'p Program, access: &Access) -> Option<&'p str> {
    let spec = &p.specs[access.place.spec?];
    let all = spec.outputs.iter().copied().chain(spec.input_tensors());
    let vars = all
        .map(|t| &p.tensors[t])
        .filter(|t| t.buffer == access.buffer)
        .flat_map(|t| p.arena.vars_of(t.offset));
    let lists = vars.filter_map(|v| match p.vars.get(&v) {
        Some(VarKind::Element(list)) => Some(p.buffer_of(*list)),
        _ => None,
    });
    let mut open = lists.filter(|list| !list.splits && !list.distinct);
    open.next().map(|list| list.name.as_str())
}
