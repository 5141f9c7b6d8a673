//! Writes loops whose copies are boxes in the places of the original loops ([`Write`]).

use super::boxes::{Known, mapped};
use super::rings::{Bulk, Cluster, Ring};
use crate::access::ops::WARP;
use crate::build::{
    barrier, block, counted, define, define_threads, dims, indices, layout_expr, number, plain,
    sync, view, when, within, word,
};
use crate::layouts::tv::mode;
use crate::names::Names;
use crate::origins::inherit;
use crate::plan::roles::{Handed, Producer};
use crate::tricks::pipeline::{BUDGET, copied};
use crate::tricks::rotate::Prologues;
use crate::tricks::turns::{count, modulo, plus, referred, staged, sum, times, turns};
use carbyne_ir::ast::visit::Rewriter;
use carbyne_ir::ast::*;
use carbyne_ir::scalar::{Memory, Scalar};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Puts loops over boxes in the places of loops.
pub(crate) struct Write<'a> {
    pub(super) found: HashMap<NodeKey, Bulk>,
    pub(crate) known: Known<'a>,
    pub(crate) names: &'a mut Names,
    /// Whether the tile of the loop around that copies are for is named by the least of its number
    /// and the last.
    pub(crate) clamped: bool,
    /// Statements of prologues before which rings are filled, by their loops.
    pub(crate) prologues: &'a Prologues,
    pub(crate) handed: Vec<Handed>,
    pub(crate) producers: Vec<Producer>,
}

impl Rewriter for Write<'_> {
    fn leave(&mut self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        let Some(bulk) = self.found.remove(&stmt.id.key()) else { return out.push(stmt) };
        let Some(mut written) = self.put(&bulk, &mut stmt) else { return out.push(stmt) };
        let trivia = std::mem::take(&mut stmt.leading);
        if bulk.outer.is_some() {
            written.before.push(Stmt { leading: vec![], ..stmt.clone() });
        }
        let mark = self.prologues.get(&stmt.id.key()).filter(|_| bulk.outer.is_none());
        if let Some(mark) = mark
            && let Some(at) = out.iter().position(|s| s.id.key() == *mark)
        {
            inherit(&mut written.before, stmt.id, stmt.span);
            out.splice(at..at, written.before.drain(..));
        }
        let mut stmts = written.before;
        stmts.append(&mut written.here);
        inherit(&mut stmts, stmt.id, stmt.span);
        if let Some(first) = stmts.first_mut() {
            first.blank_above = stmt.blank_above;
            first.leading = trivia;
        }
        self.handed.push(written.handed);
        self.producers.extend(written.producer);
        out.append(&mut stmts);
    }
}

/// What takes the place of a loop, and what stands before the loop around it.
struct Written {
    before: Vec<Stmt>,
    here: Vec<Stmt>,
    handed: Handed,
    producer: Option<Producer>,
}

/// The loop around, as it is written.
struct Outside<'a> {
    var: &'a str,
    start: &'a Expr,
    end: &'a Expr,
    step: i64,
    turns: Expr,
    /// The least that is known of them.
    least: i64,
    once: bool,
    runs: bool,
    /// What its iterations execute before the loop.
    before: &'a [Stmt],
}

/// What stands around the loop, and what an iteration copies.
struct Around {
    /// Views and names.
    before: Vec<Stmt>,
    /// Numbers that the loop around defines for the copies.
    numbers: Vec<Stmt>,
    /// The copies of the iteration of the loop's variable into the stage of that name.
    copies: Vec<Stmt>,
    stage: String,
    /// Names of tensors that are read, and of the rings.
    sources: Vec<String>,
    rings: Vec<String>,
    /// By their allocations, the names of rings in the loop and before it.
    renamed: Vec<(String, String)>,
    allocations: BTreeSet<NodeKey>,
    full: String,
    empty: String,
    warps: String,
    lead: (View, View),
    leads: (View, View),
    /// How many blocks of a cluster copy for each other, 1 where each copies for itself, and a name
    /// for their numbers.
    cluster: i64,
    peer: String,
    /// Names of tensor maps.
    maps: Vec<String>,
}

/// A loop, and what its iterations are written from.
struct Steps<'a> {
    bulk: &'a Bulk,
    around: &'a Around,
    var: &'a str,
    start: &'a Expr,
    end: &'a Expr,
    /// How many stages the ring has, and how many iterations copies are ahead.
    depth: i64,
    reach: i64,
}

impl Outside<'_> {
    /// How many iterations of the loop came before one of those around.
    fn before(&self) -> Expr {
        product(turns(Expr::name(self.var), self.start, self.step), &self.turns)
    }

    /// Statements that are executed where the loop has iterations.
    fn where_turning(&self, stmts: Vec<Stmt>) -> Vec<Stmt> {
        match self.least {
            1.. => stmts,
            _ => vec![when(Expr::int(0), CmpOp::Lt, self.turns.clone(), stmts)],
        }
    }
}

impl Steps<'_> {
    /// How many iterations of the loop come before one.
    fn turn(&self) -> Expr {
        turns(Expr::name(self.var), self.start, self.bulk.step)
    }
}

impl Around {
    /// Only fresh names; everything else is empty.
    fn named(bulk: &Bulk, names: &mut Names) -> Self {
        let [full, empty, warps, lead, leads, stage] =
            ["full", "empty", "warps", "lead", "leads", "stage"].map(|n| names.fresh(n));
        let mut out = Around {
            before: vec![],
            numbers: vec![],
            copies: vec![],
            stage,
            sources: vec![],
            rings: vec![],
            renamed: vec![],
            allocations: BTreeSet::new(),
            full,
            empty,
            warps,
            lead: (View::of(&bulk.exec.0), View::of(&lead)),
            leads: (View::of(&bulk.exec.0), View::of(&leads)),
            cluster: bulk.cluster.as_ref().map_or(1, |c| c.size),
            peer: String::new(),
            maps: vec![],
        };
        if bulk.cluster.is_some() {
            out.peer = names.fresh("peer");
        }
        out
    }

    /// Names of the mbarriers.
    fn barriers(&self) -> impl Iterator<Item = &String> {
        [&self.full, &self.empty].into_iter()
    }

    /// What the thread that asks for boxes does in an iteration.
    fn by_lead(&self, stmts: Vec<Stmt>) -> Stmt {
        let read = self.sources.iter().chain(self.barriers());
        within(&self.lead, views(read), views(&self.rings), stmts)
    }

    /// Tensor maps are brought near before anything is copied by them.
    fn prefetched(&self) -> Vec<Stmt> {
        let of = |name: &String| sync(SyncOp::Prefetch, Some(View::of(name)), None);
        self.maps.iter().map(of).collect()
    }

    /// Those who have read a stage say so to all who copy to it.
    fn release(&self, stage: &Expr) -> Stmt {
        let bar = staged(&self.empty, stage);
        let stmts = arrivals(bar, self.cluster, &self.peer);
        within(&self.leads, vec![View::of(&self.empty)], vec![], stmts)
    }

    /// The copies of an iteration of the loop, in one of the loop around, into a stage.
    fn copies(
        &self,
        of: (&str, &Expr),
        outer: Option<(&str, &Expr)>,
        stage: &Expr,
        numbers: &Renamed,
    ) -> Option<Vec<Stmt>> {
        let mut by = Substitution { budget: BUDGET, ..Substitution::default() };
        let ((var, at), given) = (of, (self.stage.clone(), stage.clone()));
        by.numbers.extend([(var.to_owned(), at.clone()), given]);
        by.numbers.extend(outer.map(|(var, at)| (var.to_owned(), at.clone())));
        numbers.iter().for_each(|(from, to)| by.rename_number(from, to));
        copied(&mut by, &self.copies)
    }

    /// The numbers that the loop around defines, of one of its iterations.
    fn numbers(&self, (var, at): (&str, &Expr), names: &mut Names) -> Option<(Vec<Stmt>, Renamed)> {
        let mut by = Substitution { budget: BUDGET, ..Substitution::default() };
        by.numbers.insert(var.to_owned(), at.clone());
        let mut renamed = vec![];
        for stmt in &self.numbers {
            let StmtKind::Let(list) = &stmt.kind else { continue };
            for (name, _) in list {
                let own = names.fresh(&name.text);
                by.rename_number(&name.text, &own);
                renamed.push((name.text.clone(), own));
            }
        }
        Some((copied(&mut by, &self.numbers)?, renamed))
    }
}

/// Names of numbers, and what they are called elsewhere.
type Renamed = Vec<(String, String)>;

impl Write<'_> {
    /// Puts what takes the place of a loop into the one around, if there is one; none where a view
    /// is no box.
    fn put(&mut self, bulk: &Bulk, stmt: &mut Stmt) -> Option<Written> {
        let Some(outer) = &bulk.outer else { return self.written(bulk, stmt, None) };
        let StmtKind::For { var, start, end, body, .. } = &stmt.kind else { return None };
        let at = body.stmts.iter().position(|s| s.id.key() == outer.inner)?;
        let inner = &body.stmts[at];
        let turns = match (outer.turns, &inner.kind) {
            (Some(n), _) => Expr::int(n),
            (None, StmtKind::For { start, end, .. }) => {
                let length = match start.kind {
                    ExprKind::Int(0) => end.clone(),
                    _ => Expr::bin(BinOp::Sub, end.clone(), start.clone()),
                };
                match bulk.step {
                    1 => length,
                    step => Expr::bin(BinOp::CeilDiv, length, Expr::int(step)),
                }
            }
            _ => return None,
        };
        let least = outer.turns.unwrap_or(i64::from(outer.turning));
        let outside = Outside {
            var: &var.text,
            start,
            end,
            step: outer.step,
            turns,
            least,
            once: outer.once,
            runs: outer.runs,
            before: &body.stmts[..at],
        };
        let mut out = self.written(bulk, inner, Some(&outside))?;
        let mut here = std::mem::take(&mut out.here);
        inherit(&mut here, inner.id, inner.span);
        if let Some(first) = here.first_mut() {
            (first.blank_above, first.leading) = (inner.blank_above, inner.leading.clone());
        }
        if let StmtKind::For { body, .. } = &mut stmt.kind {
            body.stmts.splice(at..=at, here);
        }
        Some(out)
    }

    /// The statements in the place of a loop; none where a view is no box.
    fn written(
        &mut self,
        bulk: &Bulk,
        stmt: &Stmt,
        outside: Option<&Outside<'_>>,
    ) -> Option<Written> {
        let StmtKind::For { var, start, end, body, .. } = &stmt.kind else { return None };
        // A loop around that has one iteration leaves nothing to run on to.
        let on = outside.filter(|o| !o.once);
        let depth = match (on, bulk.trips) {
            (None, Some(n)) => n.min(bulk.stages),
            _ => bulk.stages,
        };
        if depth < 2 {
            return None;
        }
        let reach = if bulk.last.is_some() { depth - 1 } else { depth };
        let around = self.around(bulk, (&var.text, start, body), depth, outside)?;
        let of = Steps { bulk, around: &around, var: &var.text, start, end, depth, reach };

        let (before, handed) = self.opened(&of, outside)?;

        // An iteration: its number, its stage, and the stage that is filled in it.
        let own = of.turn();
        let (turn, numbered) = match on {
            None => (own.clone(), None),
            Some(o) => {
                let q = Expr::name(self.names.fresh("q"));
                (q.clone(), Some((q, sum(o.before(), own.clone()))))
            }
        };
        let producer = match bulk.consumers {
            0 => None,
            consumers => {
                let numbered = numbered.clone().map(|(q, n)| named(&q, n));
                Some(self.producer(&of, outside, &turn, numbered.as_ref(), consumers)?)
            }
        };
        let [stage, filled] = ["st", "next"].map(|n| Expr::name(self.names.fresh(n)));
        let mut numbers: Vec<(Expr, Expr)> = numbered.into_iter().collect();
        numbers.push((stage.clone(), modulo(turn.clone(), depth)));
        if reach != depth {
            numbers.push((filled.clone(), modulo(plus(turn.clone(), reach), depth)));
        }
        let numbers = numbers.into_iter().map(|(name, e)| (Name::new(name_of(&name)), e));
        let mut all = vec![Stmt::new(StmtKind::Let(numbers.collect()))];
        let used = Expr::bin(BinOp::Div, turn.clone(), Expr::int(depth));
        let bar = |name: &str, stage: &Expr| Some(staged(name, stage));
        let wait = |name: &str, stage: &Expr, parity: Expr| {
            sync(SyncOp::MbarrierWait, bar(name, stage), Some(parity))
        };
        all.push(wait(&around.full, &stage, modulo(used.clone(), 2)));
        all.extend(uses(bulk, &around, body, &stage)?);
        let ahead = plus(turn.clone(), reach);
        let next = if reach == depth { stage } else { filled };
        let mut arrive = around.release(&next);
        let releases = on.filter(|_| bulk.last.is_some() && bulk.consumers > 0);
        if bulk.last.is_some() {
            all.push(sync(SyncOp::WgmmaWait, None, Some(Expr::int(1))));
            // Consumers that take turns release the last stage of an iteration around themselves.
            // What is released at the very beginning is a stage that nobody has filled.
            if bulk.consumers > 0 {
                let first = if releases.is_some() { own } else { turn.clone() };
                arrive = when(first, CmpOp::Gt, Expr::int(0), vec![arrive]);
            }
        }
        // A block of a cluster may be gone when nothing more is copied, unless all stay to the end.
        let mut arrive = Some(arrive);
        if around.cluster == 1 || on.is_some() && bulk.consumers > 0 {
            all.extend(arrive.take());
        }
        if on.is_some() || bulk.trips.is_none_or(|n| n > reach) {
            // A fresh barrier passes parity 1; a stage that has been released at the beginning has
            // a phase more.
            let before = match reach == depth || bulk.consumers == 0 {
                true => used,
                false => plus(Expr::bin(BinOp::Div, ahead, Expr::int(depth)), 1),
            };
            let empty = wait(&around.empty, &next, modulo(before, 2));
            let mut fills = match on {
                None => self.fill(&of, (arrive, empty), &next)?,
                Some(o) => self.fill_on(&of, o, (arrive, empty), &next)?,
            };
            // What is copied is numbered where everything of an iteration is; who only consumes
            // numbers no copies.
            if bulk.consumers == 0 {
                named_together(&mut all, &mut fills);
            }
            all.append(&mut fills);
        }
        let mut here = vec![looped(bulk, stmt, all)?];
        if bulk.last.is_some() {
            here.push(sync(SyncOp::WgmmaWait, None, Some(Expr::int(0))));
        }
        here.extend(releases.into_iter().flat_map(|o| {
            let before = sum(o.before(), minus_one(&o.turns));
            o.where_turning(vec![around.release(&modulo(before, depth))])
        }));
        Some(Written { before, here, handed, producer })
    }

    /// The statements before the loop: mbarriers, and the copies of the first iterations.
    fn opened(
        &mut self,
        of: &Steps<'_>,
        outside: Option<&Outside<'_>>,
    ) -> Option<(Vec<Stmt>, Handed)> {
        let (around, bulk) = (of.around, of.bulk);
        let mut out = around.before.clone();
        let init = sync(SyncOp::MbarrierInit, Some(View::of(&around.full)), Some(Expr::int(1)));
        let handed =
            Handed { rings: around.allocations.clone(), init: init.id.key(), arrivals: vec![] };
        let first = match outside {
            None => vec![self.first(of)?],
            Some(o) => self.first_within(of, o)?,
        };
        let count = Some(Expr::int(bulk.warps * around.cluster));
        let empty = sync(SyncOp::MbarrierInit, Some(View::of(&around.empty)), count);
        let (barriers, rings) = (views(around.barriers()), views(&around.rings));
        if around.cluster > 1 {
            // Blocks must not copy to a block before its mbarriers exist.
            let mut made = around.prefetched();
            made.extend([init, empty, sync(SyncOp::FenceMbarrierInit, None, None)]);
            out.push(within(&around.lead, vec![], barriers, made));
            out.extend(met(true));
            let read = around.sources.iter().chain([&around.full]);
            out.push(within(&around.lead, views(read), rings, first));
        } else {
            let mut all = around.prefetched();
            all.extend([init, empty, sync(SyncOp::FenceAsync, None, None)]);
            all.extend(first);
            let filled = [barriers, rings].concat();
            out.push(within(&around.lead, views(&around.sources), filled, all));
            out.extend(met(false));
        }
        Some((out, handed))
    }

    /// The loops of a producer, which copies one iteration after the other; `numbered` names their
    /// number.
    fn producer(
        &mut self,
        of: &Steps<'_>,
        outside: Option<&Outside<'_>>,
        turn: &Expr,
        numbered: Option<&Stmt>,
        consumers: i64,
    ) -> Option<Producer> {
        let (around, bulk, depth) = (of.around, of.bulk, of.depth);
        let stage = modulo(turn.clone(), depth);
        let used = Expr::bin(BinOp::Div, turn.clone(), Expr::int(depth));
        let empty = Some(staged(&around.empty, &stage));
        // A fresh barrier passes parity 1.
        let wait = sync(SyncOp::MbarrierWait, empty, Some(modulo(plus(used, 1), 2)));
        let mut all: Vec<Stmt> = numbered.cloned().into_iter().chain([wait]).collect();
        let at = (of.var, &Expr::name(of.var));
        all.extend(around.copies(at, None, &stage, &vec![])?);
        let looped = |var: &str, start: &Expr, end: &Expr, step: i64, stmts: Vec<Stmt>| {
            Stmt::new(StmtKind::For {
                var: Name::new(var),
                start: start.clone(),
                end: end.clone(),
                also: vec![],
                step: Expr::int(step),
                unroll: Unroll::Default,
                stages: None,
                body: block(stmts),
            })
        };
        let mut stmts = vec![looped(of.var, of.start, of.end, bulk.step, all)];
        if let Some(o) = outside {
            let own = around.numbers.iter().cloned().chain(stmts).collect();
            stmts = vec![looped(o.var, o.start, o.end, o.step, own)];
        }
        let turns = |o: &Outside<'_>| turns(Expr::name(o.var), o.start, o.step);
        Some(Producer {
            exec: bulk.exec.clone(),
            consumers,
            cluster: (around.cluster, around.peer.clone()),
            maps: around.maps.clone(),
            full: around.full.clone(),
            empty: around.empty.clone(),
            warps: around.warps.clone(),
            lead: around.lead.1.base.text.clone(),
            leads: around.leads.1.base.text.clone(),
            sources: around.sources.clone(),
            rings: around.rings.clone(),
            stmts,
            outer: outside.filter(|o| !o.once).map(|o| (o.var.to_owned(), turns(o))),
        })
    }

    /// The copies of the first iterations.
    fn first(&mut self, of: &Steps<'_>) -> Option<Stmt> {
        let s = self.names.fresh("s");
        let step = Expr::name(&s);
        let at = sum(of.start.clone(), times(step.clone(), of.bulk.step));
        let mut copies = of.around.copies((of.var, &at), None, &step, &vec![])?;
        if of.bulk.trips.is_none_or(|n| n < of.reach) {
            copies = vec![when(at, CmpOp::Lt, of.end.clone(), copies)];
        }
        Some(counted(&s, (0, of.reach), Unroll::Default, copies))
    }

    /// The copies of the first iterations of a loop in a loop.
    fn first_within(&mut self, of: &Steps<'_>, o: &Outside<'_>) -> Option<Vec<Stmt>> {
        let s = self.names.fresh("s");
        let step = Expr::name(&s);
        let first = Expr::int(of.bulk.start?);
        let looped = |body| counted(&s, (0, of.reach), Unroll::Default, body);
        if of.reach <= o.least {
            let at = sum(first, times(step.clone(), of.bulk.step));
            let (mut all, renamed) = of.around.numbers((o.var, o.start), self.names)?;
            let outer = Some((o.var, o.start));
            all.push(looped(of.around.copies((of.var, &at), outer, &step, &renamed)?));
            return Some(match o.runs {
                true => all,
                false => vec![when(o.start.clone(), CmpOp::Lt, o.end.clone(), all)],
            });
        }
        // They are those of more than one iteration of the loop around.
        let mut out = vec![];
        let tile = Expr::name(self.names.fresh("u"));
        let turns = Expr::bin(BinOp::Div, step.clone(), o.turns.clone());
        out.push(named(&tile, sum(o.start.clone(), times(turns, o.step))));
        let u = self.clamped(&tile, o, &mut out);
        let within = Expr::bin(BinOp::Mod, step.clone(), o.turns.clone());
        let at = sum(first, times(within, of.bulk.step));
        let (mut all, renamed) = of.around.numbers((o.var, &u), self.names)?;
        all.extend(of.around.copies((of.var, &at), Some((o.var, &u)), &step, &renamed)?);
        out.push(when(tile, CmpOp::Lt, o.end.clone(), all));
        Some(o.where_turning(vec![looped(out)]))
    }

    /// The copies of a later iteration into a stage, once that is empty; before that what says so
    /// to other blocks.
    fn fill(
        &mut self,
        of: &Steps<'_>,
        (arrive, empty): (Option<Stmt>, Stmt),
        stage: &Expr,
    ) -> Option<Vec<Stmt>> {
        let later = sum(Expr::name(of.var), Expr::int(of.reach.checked_mul(of.bulk.step)?));
        let copies = of.around.copies((of.var, &later), None, stage, &vec![])?;
        let all = std::iter::once(empty).chain(copies).collect();
        let all = arrive.into_iter().chain([of.around.by_lead(all)]).collect();
        Some(vec![when(later, CmpOp::Lt, of.end.clone(), all)])
    }

    /// The same where it may be one of a later iteration of the loop around.
    fn fill_on(
        &mut self,
        of: &Steps<'_>,
        o: &Outside<'_>,
        (arrive, empty): (Option<Stmt>, Stmt),
        stage: &Expr,
    ) -> Option<Vec<Stmt>> {
        let mut out = vec![];
        let tile = Expr::name(self.names.fresh("u"));
        let later = plus(of.turn(), of.reach);
        let turns = Expr::bin(BinOp::Div, later.clone(), o.turns.clone());
        out.push(named(&tile, sum(Expr::name(o.var), times(turns, o.step))));
        let u = self.clamped(&tile, o, &mut out);
        let within = Expr::bin(BinOp::Mod, later, o.turns.clone());
        let at = sum(Expr::int(of.bulk.start?), times(within, of.bulk.step));
        let (mut all, renamed) = of.around.numbers((o.var, &u), self.names)?;
        all.push(empty);
        all.extend(of.around.copies((of.var, &at), Some((o.var, &u)), stage, &renamed)?);
        let all = arrive.into_iter().chain([of.around.by_lead(all)]).collect();
        out.push(when(tile, CmpOp::Lt, o.end.clone(), all));
        Some(out)
    }

    /// The tile that copies are for, as their coordinates name it.
    fn clamped(&mut self, tile: &Expr, o: &Outside<'_>, out: &mut Vec<Stmt>) -> Expr {
        if !self.clamped {
            return tile.clone();
        }
        let u = Expr::name(self.names.fresh("last"));
        let last = Expr::bin(BinOp::Sub, o.end.clone(), Expr::int(1));
        out.push(named(&u, Expr::bin(BinOp::Min, tile.clone(), last)));
        u
    }

    /// Rings, barriers, threads and maps.
    fn around(
        &mut self,
        bulk: &Bulk,
        (var, start, body): (&str, &Expr, &Block),
        depth: i64,
        outside: Option<&Outside<'_>>,
    ) -> Option<Around> {
        let mut inside = count(&body.stmts);
        let mut numbers = Numbers::default();
        if let Some(o) = outside {
            let more: BTreeMap<&str, usize> = count(o.before).into_iter().collect();
            for (name, n) in more {
                *inside.entry(name).or_default() += n;
            }
            numbers = Numbers::of(o.before);
        }
        let (mut before, mut maps) = (vec![], vec![]);
        let mut out = Around::named(bulk, self.names);
        let rank = bulk.cluster.as_ref().map(|c| self.rank(c, &mut before));
        let turn = turns(Expr::name(var), start, bulk.step);
        let bar = staged(&out.full, &Expr::name(&out.stage));
        let bytes: i64 = bulk.rings.values().map(|r| r.boxes.bytes()).sum();
        out.copies.push(sync(SyncOp::MbarrierExpect, Some(bar.clone()), Some(Expr::int(bytes))));
        // What other blocks wait for goes first.
        let (mut shared, mut alone) = (vec![], vec![]);
        for own in &body.stmts {
            let Some(ring) = bulk.rings.get(&own.id.key()) else { continue };
            let StmtKind::Allocate { name, ty } = &own.kind else { return None };
            let (from, attrs) = copied_by(ring, body)?;
            if ty.levels.len() != 1 {
                return None;
            }
            // It now stands beside what is around the loop.
            let own_name = match self.known.defined(&name.text) {
                1 => name.text.clone(),
                _ => self.names.fresh(&name.text),
            };
            let mut ty = ty.clone();
            ring.boxes.lay_out(&mut ty)?;
            ty.levels.insert(0, dims(&[depth], false));
            let allocation = StmtKind::Allocate { name: Name::new(&own_name), ty };
            let allocation = Stmt::derived(allocation, own);
            out.allocations.insert(allocation.id.key());
            before.push(allocation);

            let whole = self.known.whole(from);
            let (tensor, tiles) = mapped(&whole);
            let (sizes, at) = self.known.boxes(&tiles, &ring.boxes)?;
            for e in at.iter().flatten() {
                numbers.need(e, var, &inside)?;
            }
            let map_name = self.map_named(&mut maps, &whole, ring.boxes.map(tensor, &sizes));
            let to = staged(&own_name, &Expr::name(&out.stage));
            let rank = rank.as_ref().filter(|_| ring.multicast).map(|rank| (rank, &turn));
            let multicast = ring.multicast.then_some(out.cluster);
            let copies = ring.boxes.each((&map_name, &at, &to), rank, self.names, |from, to| {
                box_copy(from, to, (&bar, multicast), ring.streamed, attrs)
            });
            match ring.multicast {
                true => shared.extend(copies),
                false => alone.extend(copies),
            }
            if !out.sources.contains(&whole.base.text) {
                out.sources.push(whole.base.text.clone());
            }
            out.rings.push(own_name.clone());
            out.renamed.push((name.text.clone(), own_name));
        }
        out.copies.append(&mut shared);
        out.copies.append(&mut alone);
        for name in [&out.full, &out.empty] {
            before.push(plain(name, &[depth], Scalar::Mbarrier, Memory::Sh));
        }
        before.extend(leads_of(bulk, &out));
        for (name, kind) in maps {
            out.maps.push(name.clone());
            if let StmtKind::DataDef { view, .. } = kind {
                before.push(define(&name, view));
            }
        }
        out.before = before;
        out.numbers = numbers.needed();
        Some(out)
    }

    /// The number of a block in its cluster.
    fn rank(&mut self, c: &Cluster, before: &mut Vec<Stmt>) -> Expr {
        let rank = format!("@{}", self.names.fresh("rank"));
        let every = layout_expr(&mode(c.number, c.size));
        let every = ViewOp::Tile(Tiler::Modes(vec![Some(every)]));
        before.push(indices(&[&rank], View::of(&c.blocks).then(every)));
        Expr::name(rank)
    }

    /// The name of a tensor map. Equal maps share one name.
    fn map_named(&mut self, maps: &mut Vec<(String, StmtKind)>, whole: &View, map: View) -> String {
        let map = define("", map);
        if let Some((name, _)) = maps.iter().find(|(_, m)| *m == map.kind) {
            return name.clone();
        }
        let name = self.names.fresh(&format!("m{}", whole.base.text));
        maps.push((name.clone(), map.kind));
        name
    }
}

/// The statements of an iteration without copies and rings. They read `stage` of the rings.
fn uses(bulk: &Bulk, around: &Around, body: &Block, stage: &Expr) -> Option<Vec<Stmt>> {
    let is_ring = |s: &Stmt| bulk.rings.contains_key(&s.id.key());
    let is_copy = |s: &Stmt| bulk.rings.values().any(|r| r.copy == s.id.key());
    let mut rest: Vec<Stmt> =
        body.stmts.iter().filter(|s| !is_ring(s) && !is_copy(s)).cloned().collect();
    let mut uses = Substitution { budget: BUDGET, ..Default::default() };
    for (name, ring) in &around.renamed {
        uses.data.insert(name.clone(), Given::View(staged(ring, stage)));
    }
    uses.in_place(&mut rest).ok()?;
    Some(rest)
}

/// The loop with these statements in its body.
fn looped(bulk: &Bulk, stmt: &Stmt, all: Vec<Stmt>) -> Option<Stmt> {
    let StmtKind::For { var, start, end, unroll, body, .. } = &stmt.kind else { return None };
    let mut body_of_loop = block(all);
    body_of_loop.footer.clone_from(&body.footer);
    let kind = StmtKind::For {
        var: var.clone(),
        start: start.clone(),
        end: end.clone(),
        also: vec![],
        step: Expr::int(bulk.step),
        unroll: *unroll,
        stages: None,
        body: body_of_loop,
    };
    let trailing = stmt.trailing.clone();
    Some(Stmt { id: stmt.id, from: stmt.from, trailing, ..Stmt::derived(kind, stmt) })
}

/// The source of the copy that fills a ring, and the attributes of the copy; none if the copy
/// writes a part of the ring.
fn copied_by<'b>(ring: &Ring, body: &'b Block) -> Option<(&'b View, &'b [Attr])> {
    let copy = body.stmts.iter().find(|s| s.id.key() == ring.copy)?;
    let StmtKind::Spec(Spec { inputs, outputs, attrs, .. }) = &copy.kind else { return None };
    let [Operand::View(from)] = &inputs[..] else { return None };
    outputs.iter().all(|to| to.ops.is_empty()).then_some((from, attrs))
}

/// A copy of a box, which arrives at the mbarrier `bar`. `multicast` is the number of blocks that
/// one copy serves.
fn box_copy(
    from: View,
    to: View,
    (bar, multicast): (&View, Option<i64>),
    is_streamed: bool,
    attrs: &[Attr],
) -> Stmt {
    let mut copy = Spec::new(SpecKind::Move);
    copy.inputs = vec![Operand::View(from)];
    copy.outputs = vec![to];
    copy.attrs = vec![view(Key::Bar, bar.clone())];
    if let Some(cluster) = multicast {
        copy.attrs.push(number(Key::Multicast, (1 << cluster) - 1));
    }
    let cache = Attr::among(attrs, Key::Cache).cloned();
    let streamed = || word(Key::Cache, CacheHint::EvictFirst.as_str());
    copy.attrs.extend(cache.or_else(|| is_streamed.then(streamed)));
    Stmt::new(StmtKind::Spec(copy))
}

/// Definitions of the warps of the block and of the threads that lead them.
fn leads_of(bulk: &Bulk, around: &Around) -> [Stmt; 3] {
    let all = View::of(&bulk.exec.1);
    let of_warp = Tiler::Sizes(vec![Some(Expr::int(WARP))]);
    let first = ViewOp::Index(vec![Some(Expr::int(0))]);
    let warps = View::of(&around.warps);
    [
        define_threads(&around.warps, all.then(ViewOp::Tile(of_warp))),
        define_threads(&around.lead.1.base.text, warps.clone().then(first).then(ViewOp::Elect)),
        define_threads(&around.leads.1.base.text, warps.then(ViewOp::Elect)),
    ]
}

/// Arrivals at an mbarrier of each block of a cluster.
pub(crate) fn arrivals(bar: View, cluster: i64, peer: &str) -> Vec<Stmt> {
    let arrive = |bar: View| sync(SyncOp::MbarrierArrive, Some(bar), None);
    if cluster == 1 {
        return vec![arrive(bar)];
    }
    let all = vec![arrive(bar.then(ViewOp::Peer(Expr::name(peer))))];
    vec![counted(peer, (0, cluster), Unroll::Full, all)]
}

/// All threads of the block meet, or of the cluster where they arrive at its barrier so.
pub(crate) fn meeting(cluster: Option<SyncOp>) -> Vec<Stmt> {
    match cluster {
        None => vec![barrier(None)],
        Some(arrive) => [arrive, SyncOp::ClusterWait].map(|op| sync(op, None, None)).into(),
    }
}

/// The mbarriers of all blocks are there: `fence.mbarrier_init` has told, so that the arrival need
/// not.
pub(crate) fn met(cluster: bool) -> Vec<Stmt> {
    meeting(cluster.then_some(SyncOp::ClusterArriveRelaxed))
}

fn views<'a>(names: impl IntoIterator<Item = &'a String>) -> Vec<View> {
    names.into_iter().map(View::of).collect()
}

/// Moves the definitions that later statements begin with to those that the first statements begin
/// with.
fn named_together(first: &mut [Stmt], later: &mut Vec<Stmt>) {
    let Some(Stmt { kind: StmtKind::Let(names), .. }) = first.first_mut() else { return };
    while let Some(Stmt { kind: StmtKind::Let(more), .. }) = later.first() {
        names.extend(more.iter().cloned());
        later.remove(0);
    }
}

/// `let name = value`
fn named(name: &Expr, value: Expr) -> Stmt {
    Stmt::new(StmtKind::Let(vec![(Name::new(name_of(name)), value)]))
}

/// The product of two numbers, of which the second may be written out.
fn product(a: Expr, by: &Expr) -> Expr {
    match by.kind {
        ExprKind::Int(n) => times(a, n),
        _ => Expr::bin(BinOp::Mul, a, by.clone()),
    }
}

fn minus_one(e: &Expr) -> Expr {
    match e.kind {
        ExprKind::Int(n) => Expr::int(n - 1),
        _ => Expr::bin(BinOp::Sub, e.clone(), Expr::int(1)),
    }
}

fn name_of(e: &Expr) -> &str {
    if let ExprKind::Name(name) = &e.kind { name } else { "" }
}

/// Numbers that a loop around defines, and which of them copies need.
#[derive(Default)]
struct Numbers<'a> {
    all: Vec<(&'a Name, &'a Expr)>,
    needed: BTreeSet<usize>,
}

impl<'a> Numbers<'a> {
    fn of(stmts: &'a [Stmt]) -> Self {
        let lists = stmts.iter().filter_map(|s| match &s.kind {
            StmtKind::Let(list) => Some(list),
            _ => None,
        });
        Numbers { all: lists.flatten().map(|(n, e)| (n, e)).collect(), ..Numbers::default() }
    }

    /// Notes what an expression needs of them; none where it needs another name from inside.
    fn need(&mut self, e: &Expr, var: &str, inside: &HashMap<&str, usize>) -> Option<()> {
        let mut todo = vec![];
        names_of(e, &mut |name| todo.push(name.to_owned()));
        while let Some(name) = todo.pop() {
            if name == var || !inside.contains_key(name.as_str()) {
                continue;
            }
            let at = self.all.iter().position(|(n, _)| n.text == name)?;
            if inside.get(name.as_str()) != Some(&1) {
                return None;
            }
            if self.needed.insert(at) {
                names_of(self.all[at].1, &mut |name| todo.push(name.to_owned()));
            }
        }
        Some(())
    }

    /// Their definitions.
    fn needed(&self) -> Vec<Stmt> {
        let list: Vec<(Name, Expr)> = self
            .needed
            .iter()
            .map(|at| (self.all[*at].0.clone(), self.all[*at].1.clone()))
            .collect();
        if list.is_empty() { vec![] } else { vec![Stmt::new(StmtKind::Let(list))] }
    }
}

/// The names in an expression.
pub(crate) fn names_of(e: &Expr, each: &mut impl FnMut(&str)) {
    let stmt = Stmt::new(StmtKind::Let(vec![(Name::new(""), e.clone())]));
    referred(&stmt, &mut |name, _| each(name));
}
