//! Gives kernels with `consumers=` a producer that copies, and groups of threads that consume the
//! copied tiles, in turn if there are several ([`apply`]).
//!
//! Until instructions, layouts and synchronization are known, such a kernel is that of one group,
//! which copies for itself ([`super::bulk`]). This rewrite makes its threads the consumers: the
//! copies in their loop are removed, and a producer behind them gets a loop of its own. Stages are
//! handed over as before, by the mbarriers of the ring.
//!
//! Two groups take the iterations of the loop over tiles in turn, so that one stores its tile while
//! the other multiplies. A group multiplies when the other has issued its last product: `turn`.
//! Both stage their results at one place, which is free for a group when the copies of the other
//! have read it: `spare`.
//!
//! If one group of warps multiplies alone, its threads have all registers that a thread can have.
//! With more groups, the producer is a warp group, too, and gives registers to the consumers.

use super::bulk::write::{meeting, met};
use super::roles::parted::{needed, operands};
use super::turns::{modulo, plus, referred, staged, sum};
use crate::access::ops::WARP;
use crate::build::{
    barrier, block, define_threads, dims, indices, plain, sync, when, within, word,
};
use crate::cost::capacity;
use crate::names::Names;
use crate::plan::roles::Producer;
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::visit::{self, Walk};
use carbyne_ir::ast::*;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::scalar::{Memory, Scalar};
use carbyne_ir::span::Span;
use std::collections::{HashMap, HashSet};

/// The module with producers beside consumers. A kernel that none of them is for stays as it is,
/// without `consumers=`, which a warning says.
pub(crate) fn apply(
    module: &Module,
    producers: &[Producer],
    table: &AtomTable,
) -> (Module, Vec<Diagnostic>) {
    let (mut out, mut alone) = (module.clone(), vec![]);
    let names = &mut Names::of(module);
    for at in 0..out.items.len() {
        let StmtKind::Spec(spec) = &mut out.items[at].kind else { continue };
        let Some(asked) = spec.attr(Key::Consumers).map(|a| a.name.span) else { continue };
        spec.attrs.retain(|a| a.key != Some(Key::Consumers));
        alone.push(unfed(asked));
        let (Some((_, threads)), Some(body)) = (spec.both(), &spec.body) else { continue };
        let (cta, body) = (threads.base.text.clone(), body.clone());
        let of = |p: &&Producer| {
            let allocates = |s: &Stmt| match &s.kind {
                StmtKind::Allocate { name, .. } => name.text == p.full,
                _ => false,
            };
            p.exec.1 == cta && body.stmts.iter().any(allocates)
        };
        let all: Vec<&Producer> = producers.iter().filter(of).collect();
        let (&[producer], Some(threads)) = (&all[..], counted(&out.items, &cta)) else { continue };
        let kernel = Kernel { producer, threads, table, names };
        let (Some((stmts, threads)), Some(decl)) =
            (kernel.written(&body.stmts), declared(&mut out.items, &cta))
        else {
            continue;
        };
        decl.levels = vec![dims(&[threads], false)];
        if let StmtKind::Spec(spec) = &mut out.items[at].kind {
            spec.body = Some(Block { stmts, footer: body.footer.clone() });
        }
        alone.pop();
        if producer.consumers > 1 && producer.outer.is_none() {
            alone.push(one_group(asked));
        }
    }
    (out, alone)
}

fn one_group(asked: Span) -> Diagnostic {
    let message = "a block has one tile, so only one group of threads consumes";
    Diagnostic::warning(Code::Stages, asked, message).label("asked for here").help(
        "let blocks walk over tiles, `for (t = @b; t < TILES; t += BLOCKS)`, or write \
         `consumers=1`",
    )
}

fn unfed(asked: Span) -> Diagnostic {
    let message = "the kernel has no producer: the copy engine does not fill its loops";
    Diagnostic::warning(Code::Stages, asked, message).label("asked for here").help(
        "let a loop with `stages=` move factors to shared memory that only its MatMul reads, or \
         remove `consumers=`",
    )
}

/// How many threads a declared tensor has.
fn counted(items: &[Stmt], cta: &str) -> Option<i64> {
    let of = |s: &Stmt| match &s.kind {
        StmtKind::ThreadDecl { name, ty } if name.text == cta => Some(ty.clone()),
        _ => None,
    };
    let ty = items.iter().find_map(of)?;
    let users = items.iter().filter(|s| match &s.kind {
        StmtKind::Spec(spec) => spec.both().is_some_and(|(_, t)| t.base.text == cta),
        _ => false,
    });
    let [Dims { modes, strides: None, .. }] = &ty.levels[..] else { return None };
    match &modes[..] {
        [TupleExpr::Leaf(Expr { kind: ExprKind::Int(n), .. })] if users.count() == 1 => Some(*n),
        _ => None,
    }
}

fn declared<'a>(items: &'a mut [Stmt], cta: &str) -> Option<&'a mut ThreadType> {
    items.iter_mut().find_map(|s| match &mut s.kind {
        StmtKind::ThreadDecl { name, ty } if name.text == cta => Some(ty),
        _ => None,
    })
}

/// A kernel whose threads become consumers.
struct Kernel<'a> {
    producer: &'a Producer,
    /// How many threads a group of consumers has.
    threads: i64,
    table: &'a AtomTable,
    names: &'a mut Names,
}

/// Names of what groups that take turns have.
struct Turns {
    /// All groups, the number of a thread's own, and that group.
    group: String,
    number: String,
    own: String,
    /// The mbarriers by which the right to multiply goes round, and the place where stores are
    /// staged.
    turn: String,
    spare: Option<String>,
}

impl Turns {
    /// The element of an mbarrier tensor for the thread's own group, or for the other one.
    fn at(&self, name: &str, own: bool) -> Option<View> {
        let number = Expr::name(&self.number);
        let number = if own { number } else { Expr::bin(BinOp::Sub, Expr::int(1), number) };
        Some(staged(name, &number))
    }
}

impl Kernel<'_> {
    /// The statements of the kernel, and how many threads it has.
    fn written(mut self, stmts: &[Stmt]) -> Option<(Vec<Stmt>, i64)> {
        let p = self.producer;
        let (mut head, mut own) = self.sorted(stmts)?;
        let mut loops = self.copies(stmts)?;
        let (blocks, cta) = (View::of(&p.exec.0), View::of(&p.exec.1));
        let turns = match &p.outer {
            Some(_) if p.consumers > 1 => self.turns(&mut own),
            _ => None,
        };
        let consumers = self.threads * if turns.is_some() { p.consumers } else { 1 };
        let registers = capacity::registers(consumers, self.table);
        let all = consumers + capacity::copiers(registers);

        let group = |name: &str, from: i64, to: i64| {
            let range = Pick::Range(Expr::int(from), Expr::int(to));
            define_threads(name, cta.clone().then(ViewOp::Pick(vec![range])))
        };
        let (name, lead) = (self.names.fresh("consumers"), self.names.fresh("producer"));
        let exec = |threads: &str| (blocks.clone(), View::of(threads));
        head.push(group(&name, 0, consumers));
        let mut copier = View::of(&p.exec.1);
        let first = consumers + WARP;
        copier.ops.push(ViewOp::Pick(vec![Pick::Range(Expr::int(consumers), Expr::int(first))]));
        head.push(define_threads(&lead, copier.then(ViewOp::Elect)));

        self.begin(turns.as_ref(), &lead, &mut loops, &mut head);

        // The producer.
        if let Some((kept, _)) = registers {
            let copiers = self.names.fresh("copiers");
            head.push(group(&copiers, consumers, all));
            let dec = sync(SyncOp::RegistersDec, None, Some(Expr::int(kept)));
            head.push(within(&exec(&copiers), vec![], vec![], vec![dec]));
        }
        let views = |list: &[String]| list.iter().map(View::of).collect::<Vec<_>>();
        let read = [views(&p.sources), vec![View::of(&p.full), View::of(&p.empty)]].concat();
        head.push(within(&exec(&lead), read, views(&p.rings), loops));

        // The consumers.
        let more = registers.map(|(_, more)| more);
        let first = self.consume(turns.as_ref(), &name, own, more)?;
        let (inputs, outputs) = operands(&first);
        head.push(within(&exec(&name), inputs, outputs, first));
        // Nobody goes while others may still say that they have read a stage.
        if p.cluster.0 > 1 && p.outer.is_some() {
            head.extend(meeting(Some(SyncOp::ClusterArrive)));
        }
        Some((head, all))
    }

    /// Writes the initialization of the mbarriers. The initializing thread may also copy the first
    /// stages.
    fn begin(&self, turns: Option<&Turns>, lead: &str, loops: &mut [Stmt], head: &mut Vec<Stmt>) {
        let p = self.producer;
        let prefetch = |map: &String| sync(SyncOp::Prefetch, Some(View::of(map)), None);
        let mut init: Vec<Stmt> = p.maps.iter().map(prefetch).collect();
        init.extend([
            sync(SyncOp::MbarrierInit, Some(View::of(&p.full)), Some(Expr::int(1))),
            sync(
                SyncOp::MbarrierInit,
                Some(View::of(&p.empty)),
                Some(Expr::int(self.threads / WARP * p.cluster.0)),
            ),
        ]);
        let mut barriers = vec![View::of(&p.full), View::of(&p.empty)];
        if let Some(t) = turns {
            let all = [(Some(&t.turn), self.threads / WARP), (t.spare.as_ref(), 1)];
            for (name, n) in all.into_iter().filter_map(|(name, n)| Some((name?, n))) {
                head.push(plain(name, &[p.consumers], Scalar::Mbarrier, Memory::Sh));
                init.push(sync(SyncOp::MbarrierInit, Some(View::of(name)), Some(Expr::int(n))));
                barriers.push(View::of(name));
            }
        }
        let together = p.cluster.0 > 1;
        let early = if together { early(loops) } else { None };
        let fences = [
            together.then_some(SyncOp::FenceMbarrierInit),
            (!together || early.is_some()).then_some(SyncOp::FenceAsync),
        ];
        init.extend(fences.into_iter().flatten().map(|fence| sync(fence, None, None)));
        let mut read = vec![];
        if let Some(copies) = early {
            // Of whom a map is, the definitions of the head say.
            let of = |map: &View| {
                head.iter().find_map(|s| match &s.kind {
                    StmtKind::DataDef { name, view, .. } if name.text == map.base.text => {
                        Some(View::of(&view.base.text))
                    }
                    _ => None,
                })
            };
            let (maps, rings) = operands(std::slice::from_ref(&copies));
            read = maps.iter().filter_map(of).collect();
            let rings = rings.into_iter().filter(|v| p.rings.contains(&v.base.text));
            barriers.extend(rings);
            init.push(copies);
        }
        let exec = (View::of(&p.exec.0), View::of(lead));
        head.push(within(&exec, read, barriers, init));
        head.extend(met(together));
    }

    /// The statements of the consumers, which may take `more` registers.
    fn consume(
        &self,
        turns: Option<&Turns>,
        name: &str,
        mut own: Vec<Stmt>,
        more: Option<i64>,
    ) -> Option<Vec<Stmt>> {
        let mut first = vec![];
        if let Some(more) = more {
            first.push(sync(SyncOp::RegistersInc, None, Some(Expr::int(more))));
        }
        let of_warp = Tiler::Sizes(vec![Some(Expr::int(WARP))]);
        let each = match turns {
            None => name.to_owned(),
            Some(t) => {
                let tiles = Tiler::Sizes(vec![Some(Expr::int(self.threads))]);
                first.push(define_threads(&t.group, View::of(name).then(ViewOp::Tile(tiles))));
                first.push(indices(&[&t.number], View::of(&t.group)));
                let at = ViewOp::Index(vec![Some(Expr::name(&t.number))]);
                first.push(define_threads(&t.own, View::of(&t.group).then(at)));
                t.own.clone()
            }
        };
        let leads = View::of(&each).then(ViewOp::Tile(of_warp)).then(ViewOp::Elect);
        first.push(define_threads(&self.producer.leads, leads));
        self.over(&each, &mut own)?;
        first.append(&mut own);
        Some(first)
    }

    /// What stays before the producer and the consumers, and what consumers execute.
    fn sorted(&self, stmts: &[Stmt]) -> Option<(Vec<Stmt>, Vec<Stmt>)> {
        let p = self.producer;
        let mut used: HashSet<&str> = HashSet::new();
        for stmt in Walk::new(&p.stmts).stmts() {
            referred(stmt, &mut |name, _| {
                used.insert(name);
            });
        }
        let (mut head, mut own): (Vec<Stmt>, Vec<Stmt>) = (vec![], vec![]);
        let mut rest = stmts.iter().peekable();
        let mut found = false;
        while let Some(stmt) = rest.next() {
            match &stmt.kind {
                StmtKind::Spec(spec) if self.initializes(spec) => {
                    for meets in met(p.cluster.0 > 1) {
                        rest.next_if(|s| s.kind == meets.kind)?;
                    }
                    found = true;
                }
                StmtKind::ThreadDef { name, .. }
                    if [&p.warps, &p.lead, &p.leads].contains(&&name.text) => {}
                StmtKind::Indices { threads, .. } if !found && threads.base.text != p.exec.1 => {
                    head.push(stmt.clone());
                }
                StmtKind::Allocate { name, .. }
                    if p.rings.contains(&name.text)
                        || name.text == p.full
                        || name.text == p.empty =>
                {
                    head.push(stmt.clone());
                }
                StmtKind::DataDef { name, .. } if !found && used.contains(name.text.as_str()) => {
                    head.push(stmt.clone());
                }
                StmtKind::Let(_) | StmtKind::Element { .. } if !found => head.push(stmt.clone()),
                _ => own.push(stmt.clone()),
            }
        }
        // The ring's copies by the consumers themselves.
        own = visit::rewrite(own, &mut Fills { lead: &p.lead, gone: false });
        found.then_some((head, own))
    }

    /// Whether a spec initializes the mbarriers of the ring.
    fn initializes(&self, spec: &Spec) -> bool {
        let by_lead = spec.both().is_some_and(|(_, t)| t.base.text == self.producer.lead);
        let init = |s: &Stmt| matches!(&s.kind, StmtKind::Sync { op: SyncOp::MbarrierInit, .. });
        by_lead && spec.body.iter().flat_map(|b| &b.stmts).any(init)
    }

    /// The producer's loops, with the atoms that copies into the same rings have been given.
    fn copies(&self, stmts: &[Stmt]) -> Option<Vec<Stmt>> {
        let mut atoms: HashMap<&str, &str> = HashMap::new();
        for stmt in Walk::new(stmts).stmts() {
            let StmtKind::Spec(spec) = &stmt.kind else { continue };
            let atom = spec.attr(Key::Atom).and_then(Attr::as_word);
            if let (Some(atom), [to]) = (atom, &spec.outputs[..]) {
                atoms.insert(&to.base.text, atom);
            }
        }
        let mut out = self.producer.stmts.clone();
        let mut missing = false;
        visit::each_mut(&mut out, &mut |stmt| {
            let StmtKind::Spec(spec) = &mut stmt.kind else { return };
            match spec.outputs.first().and_then(|to| atoms.get(to.base.text.as_str())) {
                Some(atom) => spec.attrs.push(word(Key::Atom, atom)),
                None => missing = true,
            }
        });
        (!missing).then_some(out)
    }

    /// Lets two groups take the iterations of the loop around the ring's in turn; none where it is
    /// not known how.
    fn turns(&mut self, stmts: &mut Vec<Stmt>) -> Option<Turns> {
        let p = self.producer;
        let (var, before) = p.outer.as_ref()?;
        let is_outer = |s: &Stmt| matches!(&s.kind, StmtKind::For { var: v, .. } if v.text == *var);
        let at = stmts.iter().position(is_outer)?;
        // What is shared stands behind the products, in the loop.
        let waits = |s: &Stmt| {
            let full = |s: &Stmt| {
                matches!(&s.kind, StmtKind::Sync { op: SyncOp::MbarrierWait, args }
                    if matches!(&args[..], [SyncArg::View(v), ..] if v.base.text == p.full))
            };
            matches!(&s.kind, StmtKind::For { body, .. } if body.stmts.iter().any(full))
        };
        let StmtKind::For { body, .. } = &stmts[at].kind else { return None };
        let inner = body.stmts.iter().position(waits)?;
        let around = stmts.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, s)| s);
        if around.chain(&body.stmts[..inner]).any(|s| !shared(s).is_empty()) {
            return None;
        }
        let staging = staging(&body.stmts[inner + 1..]);
        let [own, group, g, turn, spare, o] =
            ["own", "group", "g", "turn", "spare", "o"].map(|n| self.names.fresh(n));
        let spare = staging.is_some().then_some(spare);
        let out = Turns { group, number: format!("@{g}"), own, turn, spare };

        // Each phase of an mbarrier is one of the other group's turns; a fresh one passes parity 1.
        let (number, o) = (Expr::name(&out.number), Expr::name(o));
        let used = Expr::bin(BinOp::Div, o.clone(), Expr::int(p.consumers));
        let parity = modulo(plus(sum(used, number.clone()), 1), 2);
        let wait =
            |name: &str| sync(SyncOp::MbarrierWait, out.at(name, true), Some(parity.clone()));
        let arrive = |name: &str| sync(SyncOp::MbarrierArrive, out.at(name, false), None);
        let exec = |threads: View| (View::of(&p.exec.0), threads);
        let lead = View::of(&p.exec.1)
            .then(ViewOp::Tile(Tiler::Sizes(vec![Some(Expr::int(WARP))])))
            .then(ViewOp::Index(vec![Some(Expr::int(0))]))
            .then(ViewOp::Elect);

        let StmtKind::For { start, step, body, .. } = &mut stmts[at].kind else { return None };
        let mut all = std::mem::take(&mut body.stmts);
        let mut behind = all.split_off(inner + 1);
        let looped = all.pop()?;
        if let (Some((first, last)), Some(spare)) = (staging, &out.spare) {
            let mut rest = behind.split_off(last + 1);
            // Who has staged there before waits until that is read.
            let read = match &mut behind[last].kind {
                StmtKind::Spec(spec) if commits(spec) => {
                    let stmts = spec.body.iter_mut().flat_map(|b| [&mut b.stmts]);
                    for stmts in stmts {
                        let read = sync(SyncOp::BulkWaitRead, None, Some(Expr::int(0)));
                        stmts.extend([read, arrive(spare)]);
                    }
                    spec.inputs.push(Operand::View(View::of(spare)));
                    vec![]
                }
                _ => {
                    let stmts = vec![arrive(spare)];
                    vec![barrier(None), within(&exec(lead), vec![View::of(spare)], vec![], stmts)]
                }
            };
            behind.extend(read);
            behind.append(&mut rest);
            let waits = match &behind[first..] {
                [a, b, ..] if waits_read(a) && matches!(b.kind, StmtKind::Barrier(None)) => 2,
                _ => 0,
            };
            behind.splice(first..first + waits, [wait(spare)]);
        }
        let count = StmtKind::Let(vec![(Name::new(name_of(&o)), before.clone())]);
        body.stmts = vec![Stmt::new(count)];
        body.stmts.append(&mut all);
        body.stmts.extend([wait(&out.turn), looped]);
        let leads = (View::of(&p.exec.0), View::of(&p.leads));
        body.stmts.push(within(&leads, vec![View::of(&out.turn)], vec![], vec![arrive(&out.turn)]));
        body.stmts.append(&mut behind);
        *start = sum(start.clone(), Expr::bin(BinOp::Mul, number, step.clone()));
        *step = match &step.kind {
            ExprKind::Int(n) => Expr::int(n.checked_mul(p.consumers)?),
            _ => Expr::bin(BinOp::Mul, step.clone(), Expr::int(p.consumers)),
        };
        if out.spare.is_some() {
            let mut place = 0;
            stmts.retain(|s| {
                place += 1;
                place <= at + 1 || !waits_read(s)
            });
        }
        Some(out)
    }

    /// Puts the threads of a group in the place of the block's.
    fn over(&self, each: &str, stmts: &mut [Stmt]) -> Option<()> {
        visit::each_mut(stmts, &mut |stmt| {
            if let StmtKind::Barrier(threads @ None) = &mut stmt.kind {
                *threads = Some(View::of(&self.producer.exec.1));
            }
        });
        let mut by = Substitution { budget: super::pipeline::BUDGET, ..Substitution::default() };
        by.threads.insert(self.producer.exec.1.clone(), each.to_owned());
        by.in_place(stmts).ok()
    }
}

/// What a producer need not wait for other blocks of its cluster for: the copies of its first
/// iteration that go to its own block alone. They are taken out of its loop. None where there are
/// none, or where the iterations are those of loops around.
fn early(loops: &mut [Stmt]) -> Option<Stmt> {
    let [Stmt { kind: StmtKind::For { var, start, end, step, body, .. }, .. }] = loops else {
        return None;
    };
    let waits = |s: &Stmt| matches!(s.kind, StmtKind::Sync { op: SyncOp::MbarrierWait, .. });
    let alone = |s: &Stmt| match &s.kind {
        StmtKind::Sync { op: SyncOp::MbarrierExpect, .. } => true,
        StmtKind::Spec(spec) => spec.attr(Key::Multicast).is_none(),
        _ => false,
    };
    let first = body.stmts.iter().position(waits)?;
    // What a later definition names could not be copied before it.
    let defines = |s: &Stmt| matches!(s.kind, StmtKind::Let(_) | StmtKind::Element { .. });
    if body.stmts[first..].iter().any(defines) {
        return None;
    }
    let (own, others): (Vec<Stmt>, Vec<Stmt>) =
        body.stmts.split_off(first + 1).into_iter().partition(alone);
    if !own.iter().any(|s| matches!(s.kind, StmtKind::Spec(_))) {
        body.stmts.extend(own.into_iter().chain(others));
        return None;
    }
    let named = body.stmts[..first].iter().chain(&own).cloned();
    let once = StmtKind::For {
        var: var.clone(),
        start: start.clone(),
        end: Expr::bin(BinOp::Min, end.clone(), sum(start.clone(), step.clone())),
        also: vec![],
        step: step.clone(),
        unroll: Unroll::Default,
        stages: None,
        body: block(named.collect()),
    };
    body.stmts.extend(others);
    body.stmts.push(when(start.clone(), CmpOp::Lt, Expr::name(&var.text), own));
    Some(Stmt::new(once))
}

/// Takes away what an elected thread copies for the group that it is in.
struct Fills<'a> {
    lead: &'a str,
    gone: bool,
}

impl visit::Rewriter for Fills<'_> {
    fn leave(&mut self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        match &mut stmt.kind {
            StmtKind::Spec(spec) if spec.both().is_some_and(|(_, t)| t.base.text == self.lead) => {
                self.gone = true;
                return;
            }
            StmtKind::If { then, otherwise: None, .. } if then.stmts.is_empty() => return,
            StmtKind::For { body, .. } if std::mem::take(&mut self.gone) => {
                needed(&mut body.stmts);
            }
            _ => {}
        }
        out.push(stmt);
    }
}

/// The shared memory that a statement allocates.
fn shared(stmt: &Stmt) -> Vec<&str> {
    let of = |s| match s {
        &Stmt { kind: StmtKind::Allocate { ref name, ref ty }, .. } => {
            (ty.memory.is_some_and(Memory::is_shared)).then_some(name.text.as_str())
        }
        _ => None,
    };
    Walk::new(std::slice::from_ref(stmt)).stmts().filter_map(of).collect()
}

/// The first and the last of the statements that have to do with shared memory that they allocate;
/// none where there is none.
fn staging(stmts: &[Stmt]) -> Option<(usize, usize)> {
    let names: HashSet<&str> = stmts.iter().flat_map(shared).collect();
    let touches = |stmt: &Stmt| {
        let mut any = false;
        for inner in Walk::new(std::slice::from_ref(stmt)).stmts() {
            referred(inner, &mut |name, _| any |= names.contains(name));
        }
        any && !matches!(stmt.kind, StmtKind::Allocate { .. }) || waits_read(stmt)
    };
    let mut all = stmts.iter().enumerate().filter(|(_, s)| touches(s)).map(|(i, _)| i);
    let first = all.next().filter(|_| !names.is_empty())?;
    Some((first, all.next_back().unwrap_or(first)))
}

/// Whether a spec commits copies of the copy engine.
pub(crate) fn commits(spec: &Spec) -> bool {
    let commit = |s: &Stmt| matches!(s.kind, StmtKind::Sync { op: SyncOp::BulkCommit, .. });
    spec.body.iter().flat_map(|b| &b.stmts).any(commit)
}

/// Whether a statement does nothing but wait until the copy engine has read what it stores.
pub(crate) fn waits_read(stmt: &Stmt) -> bool {
    let StmtKind::Spec(Spec { body: Some(body), .. }) = &stmt.kind else { return false };
    let wait = |s: &Stmt| matches!(s.kind, StmtKind::Sync { op: SyncOp::BulkWaitRead, .. });
    matches!(&body.stmts[..], [s] if wait(s))
}

fn name_of(e: &Expr) -> &str {
    if let ExprKind::Name(name) = &e.kind { name } else { "" }
}
