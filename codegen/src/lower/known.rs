//! Conditions of which it is known in which iterations of a loop they hold.
//!
//! Of the vectors that a thread reads of a row, only the first and the last may reach over its ends. Where such a loop is written
//! out, the condition says so by the loop's variable, `i >= 1 || ..`, and is gone where the compiler writes the others out.

use super::Lowering;
use crate::Fallible;
use crate::cpp::ast::{Assign, Binary, Expr, Stmt, StmtKind};
use carbyne_ir::ast::{BinaryOp, CmpOp, SpecKind};
use carbyne_ir::expr::Dim;
use carbyne_ir::program::{BufferId, Operand, Spec, TensorId};
use carbyne_ir::scalar::Memory;
use std::collections::HashMap;

/// Loops of more iterations are not looked into.
const MOST: i64 = 256;

/// A loop that is being lowered and is written out.
#[derive(Copy, Clone)]
pub(super) struct WrittenOut {
    pub(super) var: carbyne_ir::expr::VarId,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) step: i64,
}

/// Registers that hold coordinates: what each element is.
pub(super) type Coordinates = HashMap<(BufferId, i64), Dim>;

/// What is known of a condition.
pub(super) enum Known {
    /// It holds in all iterations.
    Always,
    /// It holds where this does.
    Where(Expr),
    /// Nothing.
    Nothing,
}

impl Lowering<'_> {
    /// In which iterations of a loop that is written out `a < b` is known to hold.
    pub(super) fn known_less(&self, a: Dim, b: Dim) -> Known {
        let Ok(difference) = self.p.arena.sub(b, a) else { return Known::Nothing };
        self.known(&[difference], |known| Some(self.p.arena.range(known[0]).0? > 0))
    }

    /// In which iterations of the innermost loop written out that these depend on something is known to hold.
    fn known(&self, dims: &[Dim], holds: impl Fn(&[Dim]) -> Option<bool>) -> Known {
        let depends = |l: &&WrittenOut| dims.iter().any(|d| self.p.vars_in(*d).contains(&l.var));
        let Some(of) = self.written_out_loops.iter().rev().find(depends) else {
            return Known::Nothing;
        };
        if (of.end - of.start) / of.step > MOST {
            return Known::Nothing;
        }
        let mut known = vec![];
        let mut at = of.start;
        while at < of.end {
            let put = |var| (var == of.var).then_some(Dim::Const(at));
            let dims: Result<Vec<Dim>, _> =
                dims.iter().map(|d| self.p.arena.substitute(*d, &put)).collect();
            known.push((at, dims.is_ok_and(|d| holds(&d) == Some(true))));
            at += of.step;
        }
        let first = known.iter().position(|k| k.1);
        let Some(first) = first else { return Known::Nothing };
        let n = known[first..].iter().take_while(|k| k.1).count();
        let last = first + n;
        if n == known.len() {
            return Known::Always;
        }
        let Some(var) = self.indices.variable(of.var) else { return Known::Nothing };
        let bound =
            |op, n: usize| known.get(n).map(|(at, _)| var.clone().binary(op, Expr::Int(*at)));
        let from = if first > 0 { bound(Binary::Ge, first) } else { None };
        let to = bound(Binary::Lt, last);
        match (from, to) {
            (Some(from), Some(to)) => Known::Where(from.binary(Binary::And, to)),
            (Some(one), None) | (None, Some(one)) => Known::Where(one),
            (None, None) => Known::Always,
        }
    }

    /// Keeps in mind which coordinates are put into registers.
    pub(super) fn note_coordinates(&mut self, spec: &Spec) {
        let ([Operand::Tensor(from)], [to]) = (&spec.inputs[..], &spec.outputs[..]) else { return };
        let (from, to) = (&self.p.tensors[*from], &self.p.tensors[*to]);
        let is_index = self.p.buffers[from.buffer].memory == Some(Memory::Ix);
        let is_register = self.p.buffers[to.buffer].memory == Some(Memory::Rf);
        if spec.kind != SpecKind::Move || !is_index || !is_register {
            return;
        }
        let one = |t: &carbyne_ir::program::Tensor| {
            let n = t.concat().size_in(&self.p.arena).ok().and_then(Dim::as_const);
            n == Some(1) && t.bounds.is_empty()
        };
        if !one(from) || !one(to) || !self.written_once.contains(&to.buffer) {
            return;
        }
        let turns = self.turns_of(to.offset);
        for put in turns {
            let value = |dim| {
                let put = |var| put.filter(|(v, _)| *v == var).map(|(_, at)| Dim::Const(at));
                self.p.arena.substitute(dim, &put).ok()
            };
            if let (Some(Dim::Const(at)), Some(is)) = (value(to.offset), value(from.offset)) {
                self.coordinates.insert((to.buffer, at), is);
            }
        }
    }

    /// The iterations of the innermost loop written out that an index depends on; one, of nothing, where it depends on none.
    fn turns_of(&self, dim: Dim) -> Vec<Option<(carbyne_ir::expr::VarId, i64)>> {
        let vars = self.p.vars_in(dim);
        match self.written_out_loops.iter().rev().find(|l| vars.contains(&l.var)) {
            Some(l) if (l.end - l.start) / l.step <= MOST => (l.start..l.end)
                .step_by(usize::try_from(l.step).unwrap_or(1))
                .map(|at| Some((l.var, at)))
                .collect(),
            _ => vec![None],
        }
    }

    /// A comparison of coordinates with a number, where it is known in which iterations it holds.
    pub(super) fn compared(&mut self, spec: &Spec, stmt: Stmt) -> Fallible<Stmt> {
        let SpecKind::Binary(op) = spec.kind else { return Ok(stmt) };
        let (op, text) = match op {
            BinaryOp::Lt => (CmpOp::Lt, Binary::Lt),
            BinaryOp::Ge => (CmpOp::Ge, Binary::Ge),
            _ => return Ok(stmt),
        };
        let ([Operand::Tensor(a), Operand::Number(n)], [to]) =
            (&spec.inputs[..], &spec.outputs[..])
        else {
            return Ok(stmt);
        };
        let number = *n;
        let n = number as i64;
        if n as f64 != number {
            return Ok(stmt);
        }
        let (from, at) = (&self.p.tensors[*a], self.p.tensors[*a].offset);
        let buffer = from.buffer;
        let holds = |known: &[Dim]| {
            let at = known[0].as_const()?;
            let (lo, hi) = self.p.arena.range(*self.coordinates.get(&(buffer, at))?);
            match op {
                CmpOp::Lt => Some(hi? < n),
                _ => Some(lo? >= n),
            }
        };
        if !self.coordinates.keys().any(|(b, _)| *b == buffer) {
            return Ok(stmt);
        }
        let known = match self.known(&[at], holds) {
            Known::Where(known) => known,
            Known::Always => Expr::name("true"),
            Known::Nothing => return Ok(stmt),
        };
        let (Some(a), Some(to)) = (self.single(*a)?, self.single(*to)?) else { return Ok(stmt) };
        let value = known.binary(Binary::Or, a.binary(text, Expr::Int(n)));
        Ok(Stmt { kind: StmtKind::Assign { to, op: Assign::Set, value }, ..stmt })
    }

    /// The element of a tensor that has one.
    fn single(&mut self, t: TensorId) -> Fallible<Option<Expr>> {
        let values = self.values(t)?;
        match values.at[..] {
            [at] if values.stored.memory == Memory::Rf => {
                self.element(&values.stored, at).map(Some)
            }
            _ => Ok(None),
        }
    }
}
