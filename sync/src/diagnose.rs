//! A report as errors and warnings.

use crate::report::{Access, AccessKind, AgentKind, Missing, Pair, Report, Verdict};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{Program, SpecId};

impl Report {
    /// Errors for what is not ordered and for what is wrong, warnings for what cannot be said; in text order.
    pub fn diagnostics(&self, p: &Program, kernel: SpecId) -> Vec<Diagnostic> {
        let mut out = vec![];
        for fault in &self.faults {
            let d = match fault.is_certain {
                true => Diagnostic::new(Code::WrongSync, fault.place.span, fault.what.clone()),
                false => Diagnostic::warning(
                    Code::Undecided,
                    fault.place.span,
                    format!("the order of accesses is not known: {}", fault.what),
                ),
            };
            let d = d.help(fault.help.clone());
            out.push(match &fault.other {
                Some(other) => d.related(other.span, "this has to do with it"),
                None => d,
            });
        }
        for pair in &self.pairs {
            match &pair.verdict {
                Verdict::Ordered(_) => {}
                Verdict::Unordered(missing) => out.push(unordered(p, kernel, pair, *missing)),
                Verdict::Undecided(why) => out.push(undecided(p, pair, why)),
            }
        }
        for u in &self.unfollowed {
            let name = u.buffer.map_or(String::new(), |b| format!(" `%{}`", p.buffers[b].name));
            let text = format!("it is not known what this {}{name}", u.kind.verb());
            out.push(
                Diagnostic::warning(Code::Undecided, u.place.span, text)
                    .label(u.why.clone())
                    .help("run `carbyne simulate`, which follows the data; or write it so that indices do not depend on data"),
            );
        }
        out.sort_by_key(|d| (d.span.start, d.span.end));
        out
    }
}

/// `a bulk copy of thread 3 reads %s`
fn who(p: &Program, a: &Access) -> String {
    let name = &p.buffers[a.buffer].name;
    format!("{} {} {} `%{name}`", a.agent.name(), a.thread, a.kind.verb())
}

fn at(pair: &Pair) -> String {
    if pair.at.is_empty() { String::new() } else { format!(", {}", pair.at) }
}

fn unordered(p: &Program, kernel: SpecId, pair: &Pair, missing: Missing) -> Diagnostic {
    let (a, b) = (&pair.first, &pair.second);
    let name = &p.buffers[b.buffer].name;
    let verb = |k: AccessKind| match k {
        AccessKind::Read => "read",
        AccessKind::Write => "write",
        AccessKind::Accumulate => "sum",
    };
    let what = match missing {
        Missing::Order => "nothing orders them",
        Missing::Wait => "nobody has waited for the first",
        Missing::Fence => "no fence stands between the proxies",
        Missing::Blocks => "blocks are not ordered",
        Missing::RegisterFence => "no `wgmma.fence` stands between them",
    };
    let text = format!("a {} and a {} of `%{name}` meet, and {what}", verb(a.kind), verb(b.kind));
    Diagnostic::new(Code::Unordered, b.place.span, text)
        .label(format!("{} here{}", who(p, b), at(pair)))
        .related(a.place.span, format!("{} here", who(p, a)))
        .help(help(p, kernel, pair, missing))
}

fn help(p: &Program, kernel: SpecId, pair: &Pair, missing: Missing) -> String {
    let (a, b) = (&pair.first, &pair.second);
    let root = p.specs[kernel].exec.and_then(|e| p.threads[e.threads].name.clone());
    let root = root.unwrap_or("cta".to_owned());
    let (from, to) = (a.place.line, b.place.line);
    let between = match from == to {
        true => format!("the turns of the loop around line {to}"),
        false => format!("line {from} and line {to}"),
    };
    match missing {
        Missing::Order => {
            format!("put `barrier(#{root})`, or one of fewer threads, between {between}")
        }
        Missing::Fence => {
            format!("put `fence.async` behind line {from}, before the barrier that follows it")
        }
        Missing::RegisterFence => format!("put `wgmma.fence` before line {to}"),
        Missing::Blocks => {
            "let blocks access different elements, or accumulate: `Move.add`".to_owned()
        }
        Missing::Wait => match (a.agent, a.kind) {
            (AgentKind::Copy, _) => format!(
                "put `async.commit` behind line {from}, and `async.wait(0)` before line {to}"
            ),
            (AgentKind::Counted, _) => {
                format!("put `mbarrier.wait` for the phase of its mbarrier before line {to}")
            }
            (AgentKind::MatMul, _) => format!(
                "put `wgmma.commit` behind line {from}, and `wgmma.wait(0)` before line {to}"
            ),
            (AgentKind::Bulk, AccessKind::Read) => format!(
                "put `bulk.commit` behind line {from}, and `bulk.wait_read(0)` before line {to}"
            ),
            (AgentKind::Bulk, _) => {
                format!("put `bulk.commit` behind line {from}, and `bulk.wait(0)` before line {to}")
            }
            (AgentKind::Thread, _) => format!("put `barrier(#{root})` between {between}"),
        },
    }
}

fn undecided(p: &Program, pair: &Pair, why: &str) -> Diagnostic {
    let (a, b) = (&pair.first, &pair.second);
    let text = format!("accesses of `%{}` may not be ordered", p.buffers[b.buffer].name);
    Diagnostic::warning(Code::Undecided, b.place.span, text)
        .label(format!("{} here{}: {why}", who(p, b), at(pair)))
        .related(a.place.span, format!("{} here", who(p, a)))
        .help("run `carbyne simulate`, which follows the data; or name atoms, so that it is known who accesses what")
}
