//! Finds fixes for errors by changes of a few tokens near each error. Most are about
//! synchronization (a barrier, a wait, another parity). Others exchange indices, add a cast, or
//! transpose a factor. The caller checks each changed text.
//!
//! The edits of the error itself are kept if they reduce the number of errors. Any other change is
//! a guess: it must leave no error.

use crate::lines;
use carbyne_ir::ast::visit::{Part, Step, Walk, parts};
use carbyne_ir::ast::{
    BinOp, Block, Expr, ExprKind, Module, Operand, SpecKind, Stmt, StmtKind, SyncArg, SyncOp,
    TensorExpr, Tiler, UnaryOp, View, ViewOp,
};
use carbyne_ir::diag::{Code, Diagnostic, Edit};
use carbyne_ir::span::{LineIndex, Span};
use std::collections::BTreeSet;

/// The text of a barrier.
const BARRIER: &str = "barrier";
/// For each engine, the statements that commit a group and wait for groups.
const ENGINES: [(SyncOp, SyncOp); 3] = [
    (SyncOp::WgmmaCommit, SyncOp::WgmmaWait),
    (SyncOp::AsyncCommit, SyncOp::AsyncWait),
    (SyncOp::BulkCommit, SyncOp::BulkWait),
];
/// The most changes that are tried for one text, and the most bytes of all changed texts together.
const MOST_TRIED: usize = 24;
const MOST_BYTES: usize = 1 << 20;
/// The most errors of a text for which changes are tried.
const MOST_REPAIRED: usize = 4;

/// A change of the text.
struct Change {
    /// An action, as the help of an error.
    help: String,
    edits: Vec<Edit>,
}

impl Change {
    fn new(help: String, edits: Vec<Edit>) -> Self {
        Change { help, edits }
    }

    /// Replaces an expression by a text.
    fn write(text: String, at: Span) -> Self {
        Change::new(format!("write `{text}`"), vec![Edit::new(at, text)])
    }
}

/// The errors of a text.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The number of errors. An error of an earlier stage counts more than any number of errors of
    /// later stages.
    pub errors: usize,
    /// The number of warnings.
    pub warnings: usize,
}

impl Wrong {
    /// A text that cannot be checked.
    pub const MOST: Wrong = Wrong { errors: usize::MAX, warnings: 0 };
}

/// Adds to each error a change that fixes it. `wrong` checks a changed text.
///
/// The edits of an error itself are kept if they reduce the number of errors. Any other change is a
/// guess and must leave no error.
pub fn repaired(
    mut all: Vec<Diagnostic>,
    text: &str,
    before: Wrong,
    wrong: &dyn Fn(&str) -> Wrong,
) -> Vec<Diagnostic> {
    let index = LineIndex::new(text);
    let module = carbyne_ir::text::parse(text).ok();
    let mut left = MOST_TRIED.min(MOST_BYTES / text.len().max(1));
    let mut after = |edits: &[Edit]| {
        left = left.checked_sub(1)?;
        Edit::apply(edits, text).map(|changed| wrong(&changed))
    };
    // The line of an error of synchronization whose edit ends all errors.
    let mut cause = None;
    let is_sync = |d: &Diagnostic| d.code == Code::WrongSync;
    for (i, d) in all.iter_mut().enumerate() {
        let own = std::mem::take(&mut d.edits);
        if i >= MOST_REPAIRED {
            continue;
        }
        let edits = lines::indented(own.clone(), text);
        let tried = if own.is_empty() { None } else { after(&edits) };
        if let Some(left) = tried.filter(|left| left.errors < before.errors) {
            d.edits = edits;
            if is_sync(d) && left.errors == 0 {
                cause.get_or_insert(index.line(d.span.start));
            }
            continue;
        }
        let Some(module) = &module else { continue };
        for change in (Finder { d, own: &own, module, text, lines: &index }).changes() {
            let edits = lines::indented(change.edits, text);
            let Some(left) = after(&edits) else { break };
            if left.errors == 0 && left.warnings <= before.warnings {
                // An index or a shape may be meant as it is.
                let may_be_meant = matches!(d.code, Code::IndexRange | Code::ShapeMismatch);
                if !own.is_empty() || !may_be_meant {
                    d.help = None;
                }
                *d = Diagnostic { edits, ..d.clone().better(change.help) };
                if is_sync(d) {
                    cause.get_or_insert(index.line(d.span.start));
                }
            }
            // A text that is too large to be decided stays so with other changes.
            if left.errors == 0 {
                break;
            }
        }
    }
    if let Some(line) = cause {
        for d in all.iter_mut().filter(|d| is_sync(d) && d.edits.is_empty()) {
            d.help =
                Some(format!("correct line {line} first, as its error says: it causes this one"));
        }
    }
    all
}

/// A synchronization statement.
#[derive(Copy, Clone)]
struct SyncStmt<'a> {
    stmt: &'a Stmt,
    op: SyncOp,
    args: &'a [SyncArg],
}

impl<'a> SyncStmt<'a> {
    fn of(stmt: &'a Stmt) -> Option<Self> {
        match &stmt.kind {
            StmtKind::Sync { op, args } => Some(SyncStmt { stmt, op: *op, args }),
            _ => None,
        }
    }

    fn view(&self) -> Option<&'a View> {
        self.args.iter().find_map(|arg| match arg {
            SyncArg::View(view) => Some(view),
            SyncArg::Number(_) | SyncArg::After(_) => None,
        })
    }

    fn number(&self) -> Option<&'a Expr> {
        self.args.iter().find_map(|arg| match arg {
            SyncArg::Number(n) => Some(n),
            SyncArg::View(_) | SyncArg::After(_) => None,
        })
    }

    /// Whether the statement names this mbarrier.
    fn is_of(&self, name: &str) -> bool {
        self.view().is_some_and(|view| view.base.text == name)
    }
}

/// Finds changes that often fix an error.
struct Finder<'a> {
    d: &'a Diagnostic,
    /// The edits of the error itself, without indentation.
    own: &'a [Edit],
    module: &'a Module,
    text: &'a str,
    lines: &'a LineIndex,
}

impl<'a> Finder<'a> {
    /// The possible changes, the most likely ones first.
    fn changes(&self) -> Vec<Change> {
        match self.d.code {
            Code::IndexRange => self.index_fixes(),
            Code::ShapeMismatch => self.factor_fixes(),
            Code::ScalarMismatch => self.type_fixes(),
            Code::WrongSync => self.sync_fixes(),
            Code::Unordered => self.order_fixes(),
            _ => vec![],
        }
    }

    fn stmts(&self) -> impl Iterator<Item = &'a Stmt> {
        Walk::new(&self.module.items).stmts()
    }

    fn syncs(&self) -> impl Iterator<Item = SyncStmt<'a>> {
        self.stmts().filter_map(SyncStmt::of)
    }

    /// The statements that contain a position, the outermost one (the kernel) first.
    fn holding(&self, place: Span) -> impl Iterator<Item = &'a Stmt> {
        let holds = move |s: &&Stmt| s.span.start <= place.start && place.end <= s.span.end;
        self.stmts().filter(holds)
    }

    /// The statement at the error.
    fn here(&self) -> Option<&'a Stmt> {
        self.holding(self.d.span).last()
    }

    /// The statement at a position and its enclosing statements in the kernel, innermost first.
    fn around(&self, place: Span) -> Vec<&'a Stmt> {
        let mut all: Vec<&Stmt> = self.holding(place).skip(1).collect();
        all.reverse();
        all
    }

    /// Inserts a line before a statement.
    fn put_before(&self, stmt: &Stmt, line: &str) -> Change {
        let at = self.lines.line(stmt.span.start);
        Change::new(
            format!("write `{line}` before line {at}"),
            vec![lines::before(stmt.span, line)],
        )
    }

    /// Inserts a line after a statement.
    fn put_behind(&self, stmt: &Stmt, line: &str) -> Change {
        let at = self.lines.line(stmt.span.start);
        let help = format!("write `{line}` after the statement in line {at}");
        Change::new(help, vec![lines::behind(stmt.span, line)])
    }

    fn written(&self, span: Span) -> &'a str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// Exchanges the texts at two positions.
    fn exchanged(&self, what: &str, a: Span, b: Span) -> Change {
        let (first, second) = (self.written(a), self.written(b));
        let help = format!("exchange the {what} `{first}` and `{second}`");
        Change::new(help, vec![Edit::new(a, second), Edit::new(b, first)])
    }

    /// For an index out of range: exchanges indices or the sizes of the preceding tile, or changes
    /// a modulus.
    fn index_fixes(&self) -> Vec<Change> {
        let mut out = vec![];
        let Some(stmt) = self.here() else { return out };
        parts(stmt, &mut |part| {
            let Part::View(view, _) = part else { return };
            for (i, op) in view.ops.iter().enumerate() {
                let ViewOp::Index(list) = op else { continue };
                let wrong =
                    |e: &&Expr| e.span.start == self.d.span.start && e.span.end == self.d.span.end;
                let Some(index) = list.iter().flatten().find(wrong) else { continue };
                if let ExprKind::Bin(BinOp::Mod, a, n) = &index.kind {
                    let (a, n) = (self.written(a.span), self.written(n.span));
                    let others = self.moduli().into_iter().filter(|other| *other != n);
                    out.extend(others.map(|n| Change::write(format!("{a} % {n}"), index.span)));
                }
                let others = list.iter().flatten().filter(|e| !std::ptr::eq(*e, index));
                out.extend(others.map(|other| self.exchanged("indices", index.span, other.span)));
                if let Some(ViewOp::Tile(Tiler::Sizes(sizes))) =
                    i.checked_sub(1).map(|i| &view.ops[i])
                    && let [Some(a), Some(b)] = &sizes[..]
                {
                    out.push(self.exchanged("sizes of the tile", a.span, b.span));
                }
            }
        });
        out
    }

    /// The divisors of remainders in the text, each once.
    fn moduli(&self) -> Vec<&'a str> {
        let mut out = vec![];
        for stmt in self.stmts() {
            parts(stmt, &mut |part| {
                if let Part::Expr(Expr { kind: ExprKind::Bin(BinOp::Mod, _, n), .. }) = part {
                    out.push(self.written(n.span));
                }
            });
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// For a Move between different types: a cast to one of the types of the text.
    fn type_fixes(&self) -> Vec<Change> {
        let Some(here) = self.here() else { return vec![] };
        match &here.kind {
            StmtKind::Spec(spec) => {
                let start = spec.span.start as usize;
                let (word, cast) = (SpecKind::Move, SpecKind::Unary(UnaryOp::Cast).to_string());
                let at = Span::new(start, start + word.to_string().len());
                let is_move = spec.kind == word && self.written(at) == word.to_string();
                is_move.then(|| Change::write(cast, at)).into_iter().collect()
            }
            StmtKind::Assign { value: TensorExpr::View(view), .. } => {
                let value = self.written(view.span);
                let to = |scalar| Change::write(format!("cast({value}, {scalar})"), view.span);
                self.scalars().into_iter().map(to).collect()
            }
            _ => vec![],
        }
    }

    /// The element types of declared tensors, each once.
    fn scalars(&self) -> BTreeSet<&'static str> {
        let mut out = BTreeSet::new();
        for stmt in self.stmts() {
            parts(stmt, &mut |part| {
                if let Part::TensorType(ty) = part {
                    out.insert(ty.scalar.as_str());
                }
            });
        }
        out
    }

    /// For factors of a MatMul whose shapes do not match: adds or removes a transposition.
    fn factor_fixes(&self) -> Vec<Change> {
        const TRANSPOSED: &str = ".transpose()";
        let mut out = vec![];
        let Some(Stmt { kind: StmtKind::Spec(spec), .. }) = self.here() else { return out };
        if !matches!(spec.kind, SpecKind::MatMul | SpecKind::MatMulSet) {
            return out;
        }
        for operand in &spec.inputs {
            let Operand::View(view) = operand else { continue };
            let written = self.written(view.span);
            let text = match written.strip_suffix(TRANSPOSED) {
                Some(rest) => rest.to_owned(),
                None => format!("{written}{TRANSPOSED}"),
            };
            out.push(Change::write(text, view.span));
        }
        out
    }

    /// The index of a view: `k % 2` of `%full[k % 2]`.
    fn index_of(view: &View) -> Option<&Expr> {
        view.ops.iter().find_map(|op| match op {
            ViewOp::Index(list) => list.first()?.as_ref(),
            _ => None,
        })
    }

    /// The value that a `let` before a position gives to a name.
    fn value_of(&self, name: &str, place: Span) -> Option<&'a Expr> {
        let lets = self.stmts().filter(|s| s.span.start < place.start);
        let values = lets.filter_map(|s| match &s.kind {
            StmtKind::Let(bindings) => bindings.iter().find(|(n, _)| n.text == name),
            _ => None,
        });
        values.last().map(|(_, value)| value)
    }

    /// The two parities of a ring with the index `k % 2`: `k / 2 % 2`, and that of the phase
    /// before.
    fn parities(&self, index: Option<&Expr>) -> Vec<String> {
        let index = index.and_then(|index| match &index.kind {
            ExprKind::Name(name) => self.value_of(name, index.span),
            _ => Some(index),
        });
        let Some(Expr { kind: ExprKind::Bin(BinOp::Mod, a, n), .. }) = index else {
            return vec!["0".to_owned(), "1".to_owned()];
        };
        let is_one = matches!(a.kind, ExprKind::Name(_) | ExprKind::Int(_));
        let (a, n) = (self.written(a.span), self.written(n.span));
        let a = if is_one { a.to_owned() } else { format!("({a})") };
        vec![format!("{a} / {n} % 2"), format!("({a} / {n} + 1) % 2")]
    }

    /// For wrong synchronization: another parity or count, or an additional init, arrival, fence or
    /// wait.
    fn sync_fixes(&self) -> Vec<Change> {
        let mut out = vec![];
        if let Some(sync) = self.here().and_then(SyncStmt::of)
            && let Some(view) = sync.view()
        {
            let name = view.base.text.as_str();
            if sync.op == SyncOp::MbarrierWait {
                out.extend(sync.number().into_iter().flat_map(|n| self.other_parities(n, view)));
            }
            out.extend(self.stages(name));
            out.extend(self.counts(name));
            if !self.syncs().any(|s| s.is_of(name) && s.op.arrives()) {
                out.extend(self.arrivals(view));
            }
        }
        let inits = self.syncs().filter(|s| s.op == SyncOp::MbarrierInit);
        let fence = SyncOp::FenceMbarrierInit.as_str();
        out.extend(inits.last().map(|init| self.put_behind(init.stmt, fence)));
        let fence = SyncOp::WgmmaFence.as_str();
        let around = self.around(self.d.span);
        out.extend(around.iter().map(|stmt| self.put_before(stmt, fence)));
        out.extend(around.first().into_iter().flat_map(|here| self.waits(here)));
        out
    }

    /// Waits for the other phase of an mbarrier.
    fn other_parities(&self, parity: &Expr, view: &View) -> Vec<Change> {
        let own = self.written(parity.span);
        let flipped = match &parity.kind {
            ExprKind::Int(n) => n.checked_rem(2).map_or(0, |n| 1 - n).to_string(),
            ExprKind::Bin(BinOp::Mod, a, _) => match &a.kind {
                ExprKind::Bin(BinOp::Add, a, _) => format!("{} % 2", self.written(a.span)),
                _ => format!("({} + 1) % 2", self.written(a.span)),
            },
            _ => format!("({own} + 1) % 2"),
        };
        let all = self.parities(Self::index_of(view)).into_iter().chain([flipped]);
        let line = self.lines.line(parity.span.start);
        all.filter(|p| p != own)
            .map(|p| {
                let help = format!("write `{p}` as the parity in line {line}");
                Change::new(help, vec![Edit::new(parity.span, p)])
            })
            .collect()
    }

    /// Other stages of a ring of mbarriers: an integer of an index `(k + 2) % 3` is one or two more
    /// or less, first in the statements that arrive.
    fn stages(&self, name: &str) -> Vec<Change> {
        let mut out = vec![];
        let (arrive, wait): (Vec<_>, Vec<_>) = self
            .syncs()
            .filter(|s| s.is_of(name) && (s.op.arrives() || s.op == SyncOp::MbarrierWait))
            .partition(|s| s.op.arrives());
        for index in arrive.iter().chain(&wait).filter_map(|s| Self::index_of(s.view()?)) {
            let ExprKind::Bin(BinOp::Mod, a, _) = &index.kind else { continue };
            let (line, whole) = (self.lines.line(index.span.start), self.written(index.span));
            let mut todo = vec![&**a];
            while let Some(e) = todo.pop() {
                match &e.kind {
                    ExprKind::Bin(_, a, b) => todo.extend([&**a, &**b]),
                    ExprKind::Int(value) => {
                        let at = (e.span.start - index.span.start) as usize;
                        let (before, rest) = whole.split_at(at.min(whole.len()));
                        let Some(rest) = rest.strip_prefix(self.written(e.span)) else { continue };
                        out.extend([-1, 1, -2, 2].map(|by| {
                            let text = format!("{before}{}{rest}", value.saturating_add(by));
                            let help = format!("write `{text}` as the index in line {line}");
                            Change::new(help, vec![Edit::new(index.span, text)])
                        }));
                    }
                    _ => {}
                }
            }
        }
        out
    }

    /// Other stages of rings in the views of a statement: those for which threads wait, `%s[k % 2]`
    /// in place of `%s[(k + 1) % 2]`.
    fn waited_stages(&self, here: &Stmt) -> Vec<Change> {
        let mut waits: Vec<_> = self.syncs().filter(|s| s.op == SyncOp::MbarrierWait).collect();
        waits.sort_by_key(|wait| wait.stmt.span.start.abs_diff(here.span.start));
        let mut out = vec![];
        parts(here, &mut |part| {
            let Part::View(view, _) = part else { return };
            let Some(index) = Self::index_of(view) else { return };
            if !matches!(index.kind, ExprKind::Bin(BinOp::Mod, ..)) {
                return;
            }
            for wait in &waits {
                let Some(other) = wait.view().and_then(Self::index_of) else { continue };
                let (own, stage) = (self.written(index.span), self.written(other.span));
                if stage != own {
                    let line = self.lines.line(wait.stmt.span.start);
                    let help = format!(
                        "write `{stage}` for `{own}` in `%{}`: line {line} waits for that stage",
                        view.base.text
                    );
                    out.push(Change::new(help, vec![Edit::new(index.span, stage)]));
                }
            }
        });
        out
    }

    /// Other arrival counts of an mbarrier. If the mbarrier has no `mbarrier.init`, inserts one
    /// after the last one.
    fn counts(&self, name: &str) -> Vec<Change> {
        let inits = || self.syncs().filter(|s| s.op == SyncOp::MbarrierInit);
        let mut counts: Vec<&str> =
            inits().filter_map(|s| Some(self.written(s.number()?.span))).collect();
        counts.extend(["1", "32", "2", "4", "8", "16", "64", "128", "256"]);
        let mut seen = BTreeSet::new();
        counts.retain(|n| seen.insert(*n));
        let mut out = vec![];
        for init in inits().filter(|s| s.is_of(name)) {
            let Some(count) = init.number() else { continue };
            let others = counts.iter().filter(|n| **n != self.written(count.span));
            out.extend(others.map(|n| {
                let help = format!("initialize `%{name}` for {n} arrivals");
                Change::new(help, vec![Edit::new(count.span, *n)])
            }));
        }
        if let (true, Some(last)) = (out.is_empty(), inits().last()) {
            out.extend(counts.iter().map(|n| {
                let line = format!("mbarrier.init(%{name}, {n})");
                Change::new(format!("write `{line}`"), vec![lines::behind(last.stmt.span, &line)])
            }));
        }
        out
    }

    /// Arrivals on an mbarrier at the ends of loops that wait for another mbarrier.
    fn arrivals(&self, view: &View) -> Vec<Change> {
        let mut loops: Vec<&Block> = vec![];
        let mut open = vec![];
        for step in Walk::new(&self.module.items) {
            match step {
                Step::Open(block) => open.push(block),
                Step::Close(_) => drop(open.pop()),
                Step::Enter(stmt) => {
                    let waits = SyncStmt::of(stmt)
                        .is_some_and(|s| s.op == SyncOp::MbarrierWait && !s.is_of(&view.base.text));
                    loops.extend(open.last().filter(|_| waits));
                }
                Step::Leave(_) => {}
            }
        }
        let last: Vec<&Stmt> = loops.into_iter().filter_map(|b| b.stmts.last()).collect();
        let ops = [SyncOp::MbarrierArrive, SyncOp::MbarrierAsyncArrive];
        let of = |op: SyncOp| {
            let line = format!("{}({})", op.as_str(), self.written(view.span));
            last.iter().map(move |stmt| self.put_behind(stmt, &line))
        };
        ops.into_iter().flat_map(of).collect()
    }

    /// For unordered accesses: the statement that the error names at another place, a barrier of
    /// other threads, a commit of a group, or a wait for an mbarrier.
    fn order_fixes(&self) -> Vec<Change> {
        let mut out = vec![];
        let Some(here) = self.here() else { return out };
        let around = self.around(self.d.span);
        let first = self.d.related.first().map_or(self.d.span, |(span, _)| *span);
        let wanted = |op: &SyncOp| self.d.help.as_ref().is_some_and(|h| h.contains(op.as_str()));
        let engines: Vec<_> = ENGINES.iter().filter(|(c, w)| wanted(c) || wanted(w)).collect();
        // Outer statements come first: after all loops that contain the first access, a wait costs
        // no overlap.
        let is_behind = |s: &&&Stmt| s.span.start >= first.end;
        for (_, wait) in &engines {
            let line = format!("{}(0)", wait.as_str());
            let behind = around.iter().rev().filter(is_behind);
            out.extend(behind.map(|s| self.put_before(s, &line)));
        }
        if wanted(&SyncOp::MbarrierWait) {
            out.extend(self.waited_stages(here));
        }
        if let [edit] = self.own
            && edit.span.start == edit.span.end
        {
            let line = edit.text.trim();
            let is_barrier = line.starts_with(BARRIER);
            let others = if is_barrier { self.barriers(line) } else { vec![] };
            let at = self.lines.line(edit.span.start);
            out.extend(others.iter().map(|other| {
                let text = edit.text.replace(line, other);
                let help = format!("write `{other}` before line {at}");
                Change::new(help, vec![Edit::new(edit.span, text)])
            }));
            if !is_barrier {
                let barriers = self.stmts().filter(|s| matches!(s.kind, StmtKind::Barrier(_)));
                out.extend(barriers.map(|stmt| self.put_before(stmt, line)));
                let is_commit = |s: &SyncStmt<'_>| ENGINES.iter().any(|(c, _)| *c == s.op);
                let commits = self.syncs().filter(is_commit);
                out.extend(commits.map(|commit| self.put_behind(commit.stmt, line)));
            }
            let texts = std::iter::once(line).chain(others);
            out.extend(texts.flat_map(|l| around.iter().map(move |s| self.put_before(s, l))));
        }
        for (commit, _) in engines {
            let stmts = self.around(first);
            out.extend(stmts.iter().map(|s| self.put_behind(s, commit.as_str())));
        }
        out.extend(self.waits(here));
        out
    }

    /// The texts of other barriers, each once.
    fn barriers(&self, but: &str) -> Vec<&'a str> {
        let barriers = self.stmts().filter(|s| matches!(s.kind, StmtKind::Barrier(_)));
        let mut all: Vec<&str> = barriers.map(|s| self.written(s.span)).collect();
        all.sort_unstable();
        all.dedup();
        all.retain(|text| *text != but && *text != BARRIER);
        all
    }

    /// Waits for the mbarriers of rings before a statement. Mbarriers without any wait come first.
    fn waits(&self, here: &Stmt) -> Vec<Change> {
        let waited =
            |name: &str| self.syncs().any(|s| s.op == SyncOp::MbarrierWait && s.is_of(name));
        let (mut out, mut seen) = (vec![], BTreeSet::new());
        let mut rings: Vec<&View> =
            self.syncs().filter(|s| s.op.arrives()).filter_map(|s| s.view()).collect();
        rings.sort_by_key(|view| waited(&view.base.text));
        for ring in rings {
            let mut indices = vec![Self::index_of(ring)];
            parts(here, &mut |part| {
                if let Part::View(view, _) = part {
                    indices.push(Self::index_of(view));
                }
            });
            for index in indices {
                let at = index.map_or(String::new(), |e| format!("[{}]", self.written(e.span)));
                for parity in self.parities(index) {
                    let line = format!("mbarrier.wait(%{}{at}, {parity})", ring.base.text);
                    if seen.insert(line.clone()) {
                        out.push(self.put_before(here, &line));
                    }
                }
            }
        }
        out
    }
}
