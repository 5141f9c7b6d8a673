//! Lets warp groups store their parts of a tile without waiting for each other ([`apply`]).
//!
//! If a tile that leaves by the copy engine ([`super::stores`]) is staged by several warp groups,
//! and each of them holds rows of its own, a group needs only its own rows when it sends them. So
//! the group meets at a barrier of its own, and one of its threads asks for its boxes. In a loop
//! over tiles one group can then begin with the next tile while another still stores, and the
//! products of one hide the other work of the other.
//!
//! The rows of each group are known only when layouts are, so this rewrite changes the written
//! module.

use super::clusters::number;
use super::consumers::{commits, waits_read};
use super::pipeline::BUDGET;
use crate::access::ops::WARP;
use crate::build::{barrier, define_threads, indices};
use crate::cost::capacity::GROUP;
use crate::names::Names;
use crate::numbers::{Numbers, eval};
use carbyne_ir::ast::visit::{self, Walk};
use carbyne_ir::ast::*;
use carbyne_ir::program::{Dist, Program};
use std::collections::HashMap;

/// The module with such stores; none where there are none. `p` is what the module resolves to.
pub(crate) fn apply(module: &Module, p: &Program, names: &mut Names) -> Option<Module> {
    let mut out = module.clone();
    let mut any = false;
    for item in &mut out.items {
        let StmtKind::Spec(spec) = &mut item.kind else { continue };
        let Some((blocks, threads)) = spec.both().map(|(b, t)| (b.clone(), t.clone())) else {
            continue;
        };
        // Groups that take tiles in turn stage them at one place, for which all threads of one
        // wait.
        let in_turn = spec.attr(Key::Consumers).and_then(number) == Some(2);
        let Some(body) = spec.body.as_mut().filter(|_| !in_turn) else { continue };
        let whole = threads.ops.is_empty() && blocks.ops.is_empty();
        let n = threads_of(p, &threads.base.text).filter(|n| whole && n % GROUP == 0);
        let Some(groups @ 2..) = n.map(|n| n / GROUP) else { continue };
        let names = [names.fresh("group"), names.fresh("g"), names.fresh("own")];
        let mut kernel = Kernel { p, blocks, threads, groups, names };
        if kernel.changes(&mut body.stmts).is_some() {
            any = true;
        }
    }
    any.then_some(out)
}

/// The name and the view of a definition of threads whose type is not stated.
fn threads_defined(stmt: &Stmt) -> Option<(&str, &View)> {
    match &stmt.kind {
        StmtKind::ThreadDef { name, ty: None, view } => Some((&name.text, view)),
        _ => None,
    }
}

fn threads_of(p: &Program, name: &str) -> Option<i64> {
    let kernel = p.kernels.iter().filter_map(|k| p.specs[*k].exec);
    let mut all = kernel.map(|exec| &p.threads[exec.threads]);
    let own = all.find(|t| t.name.as_deref() == Some(name))?;
    Some(own.concat().to_fixed()?.size())
}

struct Kernel<'p> {
    p: &'p Program,
    blocks: View,
    threads: View,
    groups: i64,
    /// Of all groups, of a thread's own number among them, and of its own group.
    names: [String; 3],
}

/// What stages a tile, and what sends it away: where these stand in a list of statements.
#[derive(Clone, Copy)]
struct Stored {
    /// The wait until what was staged before has been read, and the barrier behind that wait or
    /// behind one of another part.
    waits: Option<usize>,
    begins: Option<usize>,
    writes: usize,
    meets: usize,
    sends: usize,
}

impl Kernel<'_> {
    /// Changes all stores of a kernel's body; none, and nothing, where one of them cannot be.
    fn changes(&mut self, stmts: &mut Vec<Stmt>) -> Option<()> {
        let mut maps = lines(stmts);
        let mut changed = stmts.clone();
        let mut first = self.list(&mut changed, &mut maps)?;
        for (i, stmt) in changed.iter_mut().enumerate() {
            if let StmtKind::For { body, .. } = &mut stmt.kind
                && self.list(&mut body.stmts, &mut maps)?.is_some()
            {
                first = Some(first.map_or(i, |first: usize| first.min(i)));
            }
        }
        let first = first?;
        for (name, of) in maps.iter().filter(|(_, of)| of.used) {
            narrow(&mut changed, name, of.line, self.groups)?;
        }
        // Whoever has asked for boxes waits for them at the end, too.
        for stmt in &mut changed {
            if waits_read(stmt)
                && let StmtKind::Spec(spec) = &mut stmt.kind
                && self.is_lead(spec)
            {
                spec.exec = Some(self.by(self.own_lead()));
            }
        }
        let [group, g, own] = &self.names;
        let tiles = Tiler::Sizes(vec![Some(Expr::int(GROUP))]);
        let at = format!("@{g}");
        let defined = [
            define_threads(group, self.threads.clone().then(ViewOp::Tile(tiles))),
            indices(&[&at], View::of(group)),
            define_threads(own, View::of(group).then(ViewOp::Index(vec![Some(Expr::name(&at))]))),
        ];
        changed.splice(first..first, defined);
        self.reuse(&mut changed[first..]);
        *stmts = changed;
        Some(())
    }

    /// What leaves call the groups again, and the number of a thread's own one, is called as here.
    fn reuse(&self, stmts: &mut [Stmt]) {
        let [group, g, _] = &self.names;
        let Some(groups) = stmts.first().and_then(threads_defined).map(|(_, view)| view.clone())
        else {
            return;
        };
        visit::each_mut(stmts, &mut |stmt| {
            let StmtKind::Spec(spec) = &mut stmt.kind else { return };
            let multiplies = spec.kind.is_product();
            let Some(body) = spec.body.as_mut().filter(|_| multiplies) else { return };
            let Some([first, second]) = body.stmts.get(..2) else { return };
            let again = threads_defined(first).filter(|(_, view)| **view == groups);
            let (Some((own, _)), StmtKind::Indices { names, threads }) = (again, &second.kind)
            else {
                return;
            };
            let [number] = &names[..] else { return };
            if threads.base.text != own || !threads.ops.is_empty() {
                return;
            }
            let mut by = Substitution { budget: BUDGET, ..Substitution::default() };
            by.threads.insert(own.to_owned(), group.clone());
            by.numbers.insert(number.text.clone(), Expr::name(format!("@{g}")));
            let mut rest = body.stmts[2..].to_vec();
            if by.in_place(&mut rest).is_ok() {
                body.stmts = rest;
            }
        });
    }

    /// Changes the stores in a list of statements; where the first begins, if there is one. None
    /// where one cannot be changed.
    fn list(&self, stmts: &mut [Stmt], maps: &mut HashMap<String, Lines>) -> Option<Option<usize>> {
        let found: Vec<Stored> = (0..stmts.len()).filter_map(|i| self.stored(stmts, i)).collect();
        let of_lead = |s: &Stmt| match &s.kind {
            StmtKind::Spec(spec) => spec.body.is_some() && commits(spec),
            _ => false,
        };
        if stmts.iter().filter(|s| of_lead(s)).count() != found.len() {
            return None;
        }
        for stored in found.iter().rev() {
            self.change(stmts, *stored, maps)?;
        }
        Some(found.first().map(|first| first.waits.unwrap_or(first.writes)))
    }

    /// The statements of a store, if what stages it stands there, and groups write rows of their
    /// own.
    fn stored(&self, stmts: &[Stmt], writes: usize) -> Option<Stored> {
        let StmtKind::Spec(spec) = &stmts[writes].kind else { return None };
        let ([Operand::View(_)], [to]) = (&spec.inputs[..], &spec.outputs[..]) else { return None };
        if spec.kind != SpecKind::Move || spec.body.is_none() || !to.ops.is_empty() {
            return None;
        }
        let mut behind = writes + 1;
        while matches!(stmts.get(behind)?.kind, StmtKind::DataDef { .. }) {
            behind += 1;
        }
        let fence = &stmts[behind].kind;
        let meets = behind + 1;
        let sends = stmts.get(meets + 1)?;
        let StmtKind::Spec(sent) = &sends.kind else { return None };
        let sends = matches!(fence, StmtKind::Sync { op: SyncOp::FenceAsync, .. })
            && matches!(stmts[meets].kind, StmtKind::Barrier(None))
            && commits(sent)
            && self.is_lead(sent)
            && sent.inputs == [Operand::View(to.clone())];
        self.parted(spec, to).filter(|_| sends)?;
        let before = |n: usize| writes.checked_sub(n).map(|i| &stmts[i]);
        let met = before(1).is_some_and(|s| matches!(s.kind, StmtKind::Barrier(None)));
        let waits = before(2).is_some_and(|s| met && waits_read(s));
        let part = before(2).is_some_and(|s| match &s.kind {
            StmtKind::Spec(spec) => met && commits(spec) && self.is_lead(spec),
            _ => false,
        });
        let begins = (waits || part).then(|| writes - 1);
        let waits = waits.then(|| writes - 2);
        Some(Stored { waits, begins, writes, meets, sends: meets + 1 })
    }

    /// Whether each group holds rows of its own of what a Move stages.
    fn parted(&self, spec: &Spec, to: &View) -> Option<()> {
        let [Operand::View(from)] = &spec.inputs[..] else { return None };
        let buffer = |view: &View| {
            let (_, b) = self.p.buffers.iter().find(|(_, b)| b.name == view.base.text)?;
            Some(b)
        };
        let (from, to) = (buffer(from)?, buffer(to)?);
        let held = &self.p.tensors[from.tensor];
        let Some(Dist { tv: Some(tv), .. }) = &held.dist else { return None };
        let tv = tv.to_fixed()?;
        let extents = |t| crate::access::ops::extents(self.p, t);
        let (rows, staged) = (*extents(from.tensor)?.first()?, *extents(to.tensor)?.first()?);
        let fits = from.is_per_thread() && to.is_shared() && rows == staged;
        let (threads, values) = (tv.mode(0).ok()?, tv.mode(1).ok()?);
        if !fits || threads.size() != self.groups * GROUP || rows % self.groups != 0 {
            return None;
        }
        let own = rows / self.groups;
        let all = (0..threads.size()).all(|t| {
            let at = threads.at(t);
            (0..values.size()).all(|v| (at + values.at(v)) % rows / own == t / GROUP)
        });
        all.then_some(())
    }

    /// Puts barriers and boxes of the groups in the places of the block's.
    fn change(
        &self,
        stmts: &mut [Stmt],
        at: Stored,
        maps: &mut HashMap<String, Lines>,
    ) -> Option<()> {
        let own = || Some(View::of(&self.names[2]));
        let StmtKind::Spec(sent) = &mut stmts[at.sends].kind else { return None };
        sent.exec = Some(self.by(self.own_lead()));
        let staged = sent.inputs.clone();
        let mut all = true;
        if let Some(body) = &mut sent.body {
            visit::each_mut(&mut body.stmts, &mut |stmt| {
                let StmtKind::Spec(copy) = &mut stmt.kind else { return };
                all &= self.sent(copy, &staged, maps).is_some();
            });
        }
        if !all {
            return None;
        }
        stmts[at.meets].kind = barrier(own()).kind;
        if let Some(begins) = at.begins {
            stmts[begins].kind = barrier(own()).kind;
        }
        if let Some(waits) = at.waits
            && let StmtKind::Spec(spec) = &mut stmts[waits].kind
        {
            spec.exec = Some(self.by(self.own_lead()));
        }
        Some(())
    }

    /// A box of the rows of a group in the place of one of all rows.
    fn sent(
        &self,
        copy: &mut Spec,
        staged: &[Operand],
        maps: &mut HashMap<String, Lines>,
    ) -> Option<()> {
        let ([Operand::View(from)], [to]) = (&mut copy.inputs[..], &mut copy.outputs[..]) else {
            return None;
        };
        let none = Numbers::new();
        let line;
        let mut tile = from.clone();
        let index = match (tile.ops.pop(), tile.ops.pop()) {
            (Some(ViewOp::Index(index)), Some(ViewOp::Tile(Tiler::Sizes(sizes)))) => {
                let [Some(rows), columns @ Some(_)] = &sizes[..] else { return None };
                let all = eval(rows, &none).filter(|n| n % self.groups == 0)?;
                let own = all / self.groups;
                let of = maps.get_mut(&to.base.text).filter(|of| of.number == all)?;
                (of.used, line) = (true, of.line);
                tile.ops
                    .push(ViewOp::Tile(Tiler::Sizes(vec![Some(Expr::int(own)), columns.clone()])));
                index
            }
            // One box is all of the tile.
            (None, None) => {
                let of = maps.get_mut(&to.base.text)?;
                (of.used, line) = (true, of.line);
                let sizes = [of.number / self.groups, of.width].map(|n| Some(Expr::int(n)));
                tile.ops.push(ViewOp::Tile(Tiler::Sizes(sizes.to_vec())));
                vec![Some(Expr::int(0)); 2]
            }
            _ => return None,
        };
        let [Some(first), column] = &index[..] else { return None };
        let whole = staged == [Operand::View(View::of(&tile.base.text))] && tile.ops.len() == 1;
        let [ViewOp::Index(place)] = &mut to.ops[..] else { return None };
        if !whole || eval(first, &none) != Some(0) {
            return None;
        }
        let number = Expr::name(format!("@{}", self.names[1]));
        tile.ops.push(ViewOp::Index(vec![Some(number.clone()), column.clone()]));
        *from = tile;
        let Some(Some(e)) = place.get_mut(line) else { return None };
        let all = match &e.kind {
            ExprKind::Int(0) => number,
            _ => {
                let first = Expr::bin(BinOp::Mul, e.clone(), Expr::int(self.groups));
                Expr::bin(BinOp::Add, first, number)
            }
        };
        *e = all;
        Some(())
    }

    fn by(&self, threads: View) -> Exec {
        Exec::Both(self.blocks.clone(), threads)
    }

    fn is_lead(&self, spec: &Spec) -> bool {
        spec.both().is_some_and(|(_, threads)| *threads == self.lead())
    }

    /// The thread of the block that asks for boxes.
    fn lead(&self) -> View {
        first_of(self.threads.clone())
    }

    /// That of a group.
    fn own_lead(&self) -> View {
        first_of(View::of(&self.names[2]))
    }
}

fn first_of(threads: View) -> View {
    let of_warp = ViewOp::Tile(Tiler::Sizes(vec![Some(Expr::int(WARP))]));
    threads.then(of_warp).then(ViewOp::Index(vec![Some(Expr::int(0))])).then(ViewOp::Elect)
}

/// Of a tensor map: which mode counts the lines of a box, how many a box has and how long they are,
/// and whether groups store by it.
struct Lines {
    line: usize,
    number: i64,
    width: i64,
    used: bool,
}

/// The tensor maps that statements define, by their names.
fn lines(stmts: &[Stmt]) -> HashMap<String, Lines> {
    let of = |stmt: &Stmt| {
        let StmtKind::DataDef { name, view, .. } = &stmt.kind else { return None };
        let Some(ViewOp::TensorMap { sizes, .. }) = view.ops.last() else { return None };
        let line = sizes.len().checked_sub(2)?;
        let size = |mode: usize| eval(&sizes[mode], &Numbers::new());
        let (number, width) = (size(line)?, size(line + 1)?);
        Some((name.text.clone(), Lines { line, number, width, used: false }))
    };
    Walk::new(stmts).stmts().filter_map(of).collect()
}

/// Boxes of a map have as many lines as a group has.
fn narrow(stmts: &mut [Stmt], map: &str, line: usize, groups: i64) -> Option<()> {
    let mut done = None;
    visit::each_mut(stmts, &mut |stmt| {
        let StmtKind::DataDef { name, view, .. } = &mut stmt.kind else { return };
        if let Some(ViewOp::TensorMap { sizes, .. }) = view.ops.last_mut()
            && name.text == map
            && let Some(size) = sizes.get_mut(line)
            && let Some(n) = eval(size, &Numbers::new())
        {
            *size = Expr::int(n / groups);
            done = Some(());
        }
    });
    done
}
