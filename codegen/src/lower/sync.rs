//! Lowers synchronization statements: prints the text of their atoms with mbarriers, tensor maps
//! and numbers in its placeholders.
//!
//! A `barrier` of named threads becomes `__syncthreads()` if they are the whole block, and a
//! `__syncwarp` if they are lanes of one warp. Several warps get one of the 15 other numbered
//! barriers of the hardware, which this file assigns. It is an error if a kernel needs more.

use super::access::Values;
use super::guards::Executors;
use super::leaf::Filled;
use super::state::{Lowering, WARP};
use super::stmts::line_comment;
use crate::cpp::ast::{Binary, Expr, Piece, Stmt, StmtKind};
use crate::{Fallible, errors};
use carbyne_atoms::{Atom, BarrierScope, Handover, Part, SyncForm};
use carbyne_ir::diag::Code;
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::LayoutError;
use carbyne_ir::program::{Sync, Threads, ThreadsId};
use carbyne_ir::span::Span;

impl Lowering<'_> {
    /// The statements of a synchronization: one for each mbarrier of its view.
    pub(super) fn sync(
        &mut self,
        sync: &Sync,
        executors: &Executors,
        line: u32,
    ) -> Fallible<Vec<Stmt>> {
        let arena = &self.p.arena;
        let range = sync.number.map(|n| {
            let (lo, hi) = arena.range(n);
            (lo, hi, arena.divisor(n))
        });
        let rank = sync.tensor.and_then(|t| self.p.tensors[t].peer);
        let atom = self.atoms.sync(sync.op, range, SyncForm::of_stmt(self.p, sync));
        let atom = atom.map_err(|e| Box::new(e.diagnostic(Span::default())))?;
        if !executors.fills(atom.group) {
            return Err(errors::new(
                Code::Divergent,
                Span::default(),
                format!("`{}` must be executed by whole groups of {} threads", sync.op, atom.group),
                "move the statement to the body of a spec that such groups execute",
            ));
        }
        let mut numbers: Vec<(&'static str, Dim)> =
            atom.numbers.first().map(|n| n.name).zip(sync.number).into_iter().collect();
        numbers.extend(rank.map(|r| ("rank", r)));
        if let Some(view) = sync.tensor.and_then(|t| self.p.tensors[t].map.as_ref()) {
            let given = vec![("map", self.map_address(view.map)?)];
            let mut stmt = self.ptx(atom, &[], &numbers, given, false)?;
            stmt.comment = line_comment(line, sync.op.as_str());
            return Ok(vec![stmt]);
        }
        let all = match (atom.operands.first(), sync.tensor) {
            (Some(_), Some(t)) => {
                let Values { stored, at, text } = self.values(t)?;
                let one = |at| Values { stored: stored.clone(), at: vec![at], text: text.clone() };
                let mut all = vec![];
                for at in at {
                    let after = sync.after.map(|t| self.values(t).map(Filled::Values));
                    let own = std::iter::once(Ok(Filled::Values(one(at))));
                    all.push(own.chain(after).collect::<Fallible<Vec<_>>>()?);
                }
                all
            }
            _ => vec![vec![]],
        };
        let mut stmts = vec![];
        for filled in all {
            let mut stmt = self.ptx(atom, &filled, &numbers, vec![], false)?;
            // A statement with operands takes several lines, so its comment names the operation.
            let what = if filled.is_empty() { "" } else { sync.op.as_str() };
            stmt.comment = line_comment(line, what);
            stmts.push(stmt);
        }
        match atom.handover {
            Some(Handover::ToAtoms) => stmts.splice(0..0, self.fence_registers()).for_each(drop),
            Some(Handover::ToThreads) => stmts.extend(self.fence_registers()),
            None => {}
        }
        Ok(stmts)
    }

    /// The statement of a `barrier`.
    pub(super) fn barrier(&mut self, threads: Option<ThreadsId>) -> Fallible<StmtKind> {
        let atoms = self.atoms;
        let plain = |scope| atoms.barrier(scope).map(|atom| filled(atom, &[]));
        let Some(id) = threads else { return plain(BarrierScope::Block) };
        let t = &self.p.threads[id];
        let Some(mut groups) = t.own_groups() else {
            return Err(errors::unprintable(
                "the threads of a barrier must be constant",
                "name a constant set of threads: `barrier(#w[0])`",
            ));
        };
        groups.iter_mut().for_each(|group| group.sort_unstable());
        let root = t.root;
        let Some(set) = groups.first() else { return plain(BarrierScope::Block) };
        if groups.len() == 1 && self.members(t.root).as_ref() == Some(set) {
            return plain(BarrierScope::Block);
        }
        let of_one_warp = |set: &Vec<i64>| {
            set.first().zip(set.last()).is_some_and(|(first, last)| first / WARP == last / WARP)
        };
        if groups.iter().all(of_one_warp) {
            return self.barrier_of_lanes(id, &groups);
        }
        let atom = atoms.barrier(BarrierScope::Warps)?;
        let whole = |w: &[i64]| w.len() == WARP as usize && w[0] % WARP == 0 && w[31] - w[0] == 31;
        if let Some(set) = groups.iter().find(|set| !set.chunks(WARP as usize).all(whole)) {
            let n = set.len() as i64;
            let whole = (n + WARP - 1) / WARP * WARP;
            let d = errors::unprintable(
                format!(
                    "a barrier of several warps needs whole warps, found groups of {n} threads"
                ),
                format!("make groups of whole warps, `.tile([{whole}])`, or of lanes of one warp"),
            );
            let has_groups = |t: &&Threads| {
                let group = t.levels.last().and_then(|l| l.to_fixed());
                t.name.is_some() && group.is_some_and(|l| l.size() == n) && t.root == root
            };
            let made = self.p.threads.iter().map(|(_, t)| t).filter(has_groups).last();
            let why = format!("groups of {n} threads are made here");
            return Err(match made {
                Some(made) => Box::new(d.related(made.span, why)),
                None => d,
            });
        }
        let n = set.len() as i64;
        // Groups that may wait at the same time have barriers of their own; the groups of one
        // statement have consecutive numbers.
        let at = self.barriers.windows(groups.len()).position(|known| known == groups);
        let at = at.unwrap_or_else(|| {
            self.barriers.extend(groups.iter().cloned());
            self.barriers.len() - groups.len()
        });
        let named = atom.number("barrier");
        let first = named.map_or(0, |n| n.least).saturating_add(at as i64);
        let last = first.saturating_add(groups.len() as i64 - 1);
        if let Some(named) = named.filter(|n| last > n.most) {
            return Err(errors::unprintable(
                format!(
                    "a block has {} named barriers; this kernel has more sets of threads that wait",
                    named.most
                ),
                "let more barriers name the same threads, or use mbarriers",
            ));
        }
        let own = self.p.threads[id].own_number;
        let number = self.p.arena.add(own, Dim::Const(first)).map_err(errors::layout)?;
        let numbers = [("barrier", number), ("threads", Dim::Const(n))];
        self.ptx(atom, &[], &numbers, vec![], false).map(|stmt| stmt.kind)
    }

    /// A barrier of lanes within each warp; the groups are sorted.
    fn barrier_of_lanes(&mut self, id: ThreadsId, groups: &[Vec<i64>]) -> Fallible<StmtKind> {
        let atoms = self.atoms;
        let mask = |set: &Vec<i64>| set.iter().fold(0u32, |m, t| m | 1 << t.rem_euclid(WARP));
        if groups.iter().all(|set| mask(set) == u32::MAX) {
            return atoms.barrier(BarrierScope::Warp).map(|atom| filled(atom, &[]));
        }
        let literal = |mask: u32| Expr::Literal(format!("{mask:#010x}u"));
        let first = groups.first().map_or(0, mask);
        let lanes = if groups.iter().all(|set| mask(set) == first) {
            literal(first)
        } else {
            // The lanes of a group that begins with lane 0, shifted to the beginning of the
            // thread's group.
            let place = self.own_place(id)?;
            let offset = self.p.threads[id].offset;
            let place = self.p.arena.add(place, offset).map_err(errors::layout)?;
            let lane = self.p.arena.rem(place, Dim::Const(WARP)).map_err(errors::layout)?;
            let start = offset.as_const().unwrap_or(0).rem_euclid(WARP);
            literal(first >> start).binary(Binary::Shl, self.index(lane)?)
        };
        Ok(filled(atoms.barrier(BarrierScope::Lanes)?, &[("lanes", lanes)]))
    }

    /// The beginning of the executing thread's group, relative to the tensor's offset.
    fn own_place(&self, id: ThreadsId) -> Fallible<Dim> {
        let (cx, t) = (&self.p.arena, &self.p.threads[id]);
        let place = || -> Result<Dim, LayoutError> {
            let (mut sum, mut left) = (Dim::Const(0), t.own_number);
            for level in t.levels.iter().take(t.own) {
                let Some(level) = level.to_fixed() else { continue };
                for &(n, s) in level.leaves().iter().filter(|(n, _)| *n > 1) {
                    let digit = cx.rem(left, Dim::Const(n))?;
                    sum = cx.add(sum, cx.mul(digit, Dim::Const(s))?)?;
                    left = cx.div(left, Dim::Const(n))?;
                }
            }
            Ok(sum)
        };
        place().map_err(errors::layout)
    }
}

/// A C++ statement with its numbers.
fn filled(atom: &Atom, numbers: &[(&str, Expr)]) -> StmtKind {
    let pieces = atom.template.parts().into_iter().filter_map(|part| match part {
        Part::Text(text) => Some(Piece::Text(text)),
        Part::Operand(name) => {
            let found = numbers.iter().find(|(n, _)| *n == name);
            found.map(|(_, e)| Piece::Operand(e.clone()))
        }
        Part::Register(..)
        | Part::Major(_)
        | Part::Array(_)
        | Part::At(_)
        | Part::Before(_)
        | Part::Reciprocal(_)
        | Part::Accumulate => None,
    });
    StmtKind::Filled(pieces.collect())
}
