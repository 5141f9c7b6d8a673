//! Finds the iterations of an unrolled loop in which a condition is known to hold, so that the
//! compiler can remove the condition from them. A condition compares a coordinate with an extent,
//! or coordinates that were copied to registers with a number.
//!
//! If a thread reads a row in vectors, only the first and the last vector may reach over the ends
//! of the row. The printed condition includes the loop variable, as in `i >= 1 || ..`, so the
//! compiler removes it from all other iterations.

use super::state::Lowering;
use crate::Fallible;
use crate::cpp::ast::{Assign, Binary, Expr, Stmt, StmtKind};
use carbyne_ir::ast::{BinaryOp, SpecKind};
use carbyne_ir::expr::{Dim, VarId};
use carbyne_ir::program::{Operand, Spec, Tensor, TensorId};
use carbyne_ir::scalar::Memory;

/// The most iterations of a loop that are examined.
const MOST: usize = 256;

/// The iterations in which a condition is known to hold.
pub(super) enum Known {
    /// It holds in all iterations.
    Always,
    /// It holds in the iterations that satisfy this expression.
    Where(Expr),
    /// Nothing is known.
    Nothing,
}

impl Lowering<'_> {
    /// The iterations of an unrolled loop in which `a < b` is known to hold.
    pub(super) fn known_less(&self, a: Dim, b: Dim) -> Known {
        let Ok(difference) = self.p.arena.sub(b, a) else { return Known::Nothing };
        self.known(difference, |known| Some(self.p.arena.range(known).0? > 0))
    }

    /// The iterations in which a property of an index is known to hold, for the innermost unrolled
    /// loop on which the index depends.
    fn known(&self, index: Dim, holds: impl Fn(Dim) -> Option<bool>) -> Known {
        let Some((var, iterations)) = self.iterations_of(index) else { return Known::Nothing };
        let known: Vec<(i64, bool)> = iterations
            .map(|at| (at, self.at_iteration(index, (var, at)).and_then(&holds) == Some(true)))
            .collect();
        let Some(first) = known.iter().position(|k| k.1) else { return Known::Nothing };
        let n = known[first..].iter().take_while(|k| k.1).count();
        let Some(var) = self.indices.variable(var) else { return Known::Nothing };
        let bound = |op, (at, _): &(i64, bool)| var.clone().binary(op, Expr::Int(*at));
        let from = (first > 0).then(|| bound(Binary::Ge, &known[first]));
        let to = known.get(first + n).map(|after| bound(Binary::Lt, after));
        let both = from.into_iter().chain(to).reduce(|a, b| a.binary(Binary::And, b));
        both.map_or(Known::Always, Known::Where)
    }

    /// The innermost unrolled loop on which an index depends: its variable, and the values of the
    /// variable.
    fn iterations_of(&self, index: Dim) -> Option<(VarId, impl Iterator<Item = i64> + use<>)> {
        let vars = self.p.vars_in(index);
        let mut loops = self.outers.iter().rev().filter(|l| vars.contains(&l.var));
        let (var, iterations) = loops.find_map(|l| Some((l.var, l.iterations.clone()?)))?;
        iterations.clone().nth(MOST).is_none().then_some((var, iterations))
    }

    /// An index for a value of a loop variable.
    fn at_iteration(&self, index: Dim, (var, at): (VarId, i64)) -> Option<Dim> {
        self.p.arena.substitute(index, &|v| (v == var).then_some(Dim::Const(at))).ok()
    }

    /// Records coordinates that are copied to registers.
    pub(super) fn note_coordinates(&mut self, spec: &Spec) {
        let ([Operand::Tensor(from)], [to]) = (&spec.inputs[..], &spec.outputs[..]) else { return };
        let (from, to) = (&self.p.tensors[*from], &self.p.tensors[*to]);
        let memory = |t: &Tensor| self.p.buffers[t.buffer].memory;
        let copies = spec.kind == SpecKind::Move && memory(from).is_some_and(Memory::is_computed);
        let one = |t: &Tensor| {
            let n = t.concat().size_in(&self.p.arena).ok().and_then(Dim::as_const);
            n == Some(1) && t.bounds.is_empty()
        };
        if !copies
            || !memory(to).is_some_and(Memory::is_per_thread)
            || !one(from)
            || !one(to)
            || !self.written_once.contains(&to.buffer)
        {
            return;
        }
        let place = |at: Dim, is| Some((at.as_const()?, is));
        let found: Option<Vec<(i64, Dim)>> = match self.iterations_of(to.offset) {
            Some((var, iterations)) => iterations
                .map(|at| {
                    let iteration = (var, at);
                    place(
                        self.at_iteration(to.offset, iteration)?,
                        self.at_iteration(from.offset, iteration)?,
                    )
                })
                .collect(),
            None => place(to.offset, from.offset).map(|one| vec![one]),
        };
        // A write at an unknown index may change any element.
        let all = self.coordinates.entry(to.buffer).or_default();
        for (at, is) in found.unwrap_or_default() {
            let same = all.entry(at).or_insert(Some(is));
            *same = same.filter(|other| *other == is);
        }
    }

    /// A comparison of coordinates with a number, simplified in the iterations in which it is known
    /// to hold.
    pub(super) fn compared(&mut self, spec: &Spec, stmt: Stmt) -> Fallible<Stmt> {
        let SpecKind::Binary(op) = spec.kind else { return Ok(stmt) };
        let op = match op {
            BinaryOp::Lt => Binary::Lt,
            BinaryOp::Ge => Binary::Ge,
            _ => return Ok(stmt),
        };
        let ([Operand::Tensor(a), Operand::Number(number)], [to]) =
            (&spec.inputs[..], &spec.outputs[..])
        else {
            return Ok(stmt);
        };
        let n = *number as i64;
        let from = &self.p.tensors[*a];
        let Some(coordinates) = self.coordinates.get(&from.buffer).filter(|_| n as f64 == *number)
        else {
            return Ok(stmt);
        };
        let known = self.known(from.offset, |at| {
            let (lo, hi) = self.p.arena.range((*coordinates.get(&at.as_const()?)?)?);
            Some(if op == Binary::Lt { hi? < n } else { lo? >= n })
        });
        let (Some(a), Some(to)) = (self.single(*a)?, self.single(*to)?) else { return Ok(stmt) };
        let value = match known {
            Known::Always => Expr::name("true"),
            Known::Where(known) => known.binary(Binary::Or, a.binary(op, Expr::Int(n))),
            Known::Nothing => return Ok(stmt),
        };
        Ok(Stmt { kind: StmtKind::Assign { to, op: Assign::Set, value }, ..stmt })
    }

    /// The element of a tensor with a single element.
    fn single(&mut self, t: TensorId) -> Fallible<Option<Expr>> {
        let values = self.values(t)?;
        match values.at[..] {
            [at] if values.stored.memory.is_per_thread() => {
                self.element(&values.stored, at).map(Some)
            }
            _ => Ok(None),
        }
    }
}
