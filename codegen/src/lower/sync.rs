//! Statements between specs: the text of their atoms with mbarriers and numbers filled in.

use super::Lowering;
use super::access::Values;
use super::leaf::Filled;
use super::stmts::line_comment;
use super::who::Who;
use crate::cpp::ast::{Expr, Piece, Stmt, StmtKind};
use crate::{Fallible, errors};
use carbyne_atoms::{Atom, BarrierScope, Handover, Part};
use carbyne_ir::diag::Code;
use carbyne_ir::expr::Dim;
use carbyne_ir::program::{Sync, ThreadsId};
use carbyne_ir::span::Span;

/// Threads of a warp.
const WARP: i64 = 32;

impl Lowering<'_> {
    /// The statements of a synchronization: one for each mbarrier of its view.
    pub(super) fn sync(&mut self, sync: &Sync, who: &Who, line: u32) -> Fallible<Vec<Stmt>> {
        let arena = &self.p.arena;
        let range = sync.number.map(|n| {
            let (lo, hi) = arena.range(n);
            (lo, hi, arena.divisor(n))
        });
        let rank = sync.tensor.and_then(|t| self.p.tensors[t].peer);
        let atom = self.atoms.sync(sync.op, range, rank.is_some());
        let atom = atom.map_err(|e| Box::new(e.diagnostic(Span::default())))?;
        if !who.fills(atom.group) {
            return Err(errors::new(
                Code::Divergent,
                Span::default(),
                format!("`{}` is executed by whole groups of {} threads", sync.op, atom.group),
                "move it to the body of a spec that such threads run",
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
                at.into_iter().map(|at| vec![Filled::Values(one(at))]).collect()
            }
            _ => vec![vec![]],
        };
        let mut stmts = vec![];
        for filled in all {
            let mut stmt = self.ptx(atom, &filled, &numbers, vec![], false)?;
            // Where there are operands it takes several lines.
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
        let Some(set) = self.members(id) else {
            return Err(errors::unprintable(
                "a barrier's threads must be known",
                "name threads of constant number and place, `barrier(#w[0])`",
            ));
        };
        if self.members(t.root).as_ref() == Some(&set) {
            return plain(BarrierScope::Block);
        }
        let (Some(first), Some(last)) = (set.first(), set.last()) else {
            return plain(BarrierScope::Block);
        };
        if first / WARP == last / WARP {
            let mask = set.iter().fold(0u32, |m, t| m | 1 << (t % WARP));
            if mask == u32::MAX {
                return plain(BarrierScope::Warp);
            }
            let lanes = Expr::Literal(format!("{mask:#010x}u"));
            return Ok(filled(atoms.barrier(BarrierScope::Lanes)?, &[("lanes", lanes)]));
        }
        let atom = atoms.barrier(BarrierScope::Warps)?;
        let warps = set.chunks(WARP as usize);
        let whole = |w: &[i64]| w.len() == WARP as usize && w[0] % WARP == 0 && w[31] - w[0] == 31;
        if !warps.into_iter().all(whole) {
            return Err(errors::unprintable(
                format!("a barrier of several warps takes whole warps, not {} threads", set.len()),
                "name whole warps, `barrier(#cta.tile([64])[0])`, or lanes of one warp",
            ));
        }
        let n = set.len() as i64;
        let id = match self.barriers.iter().position(|b| *b == set) {
            Some(i) => i,
            None => {
                self.barriers.push(set);
                self.barriers.len() - 1
            }
        };
        let named = atom.number("barrier");
        let id = named.map_or(0, |n| n.least) + id as i64;
        if let Some(named) = named.filter(|n| id > n.most) {
            return Err(errors::unprintable(
                format!(
                    "a block has {} named barriers; this kernel has more sets of threads that wait",
                    named.most
                ),
                "let more barriers name the same threads, or use mbarriers",
            ));
        }
        let numbers = [("barrier", Dim::Const(id)), ("threads", Dim::Const(n))];
        self.ptx(atom, &[], &numbers, vec![], false).map(|stmt| stmt.kind)
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
        Part::Register(..) | Part::Major(_) | Part::Accumulate => None,
    });
    StmtKind::Filled(pieces.collect())
}
