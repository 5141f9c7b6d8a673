//! The relation of a copy: for all (t,v), source and destination name the same element.
//!
//! Letters as in Hexcute, Fig. 19(a): p and q are the row's thread-value layouts of source and
//! destination, f and g those of the tensors. The law is f∘p⁻¹ = g∘q⁻¹, evaluated as a relation, since
//! p⁻¹ need not exist: whenever p(t,v) = q(t',v'), f(t,v) and g(t',v') must be the same element of the
//! Move around the leaf.
//!
//! Evaluation needs a Move around the leaf whose operands are the same buffers, a register tensor with
//! a thread-value layout on one side, and addresses that depend on the thread alone once loops and
//! blocks stand at their first values. Where these do not hold, nothing is claimed and the simulator
//! judges.

use crate::matching::Mismatch;
use carbyne_atoms::{Atom, AtomOp};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::expr::{Dim, VarId};
use carbyne_ir::program::{Operand, Program, SpecId, Tensor, TensorId, VarKind};
use carbyne_ir::scalar::Memory;
use std::collections::HashMap;

/// The largest tensor whose addresses are tabulated.
const MAX_TABLE: i64 = 1 << 16;

/// Evaluates the relation where it can be evaluated.
///
/// # Errors
/// [`Mismatch::Relation`] with the first element that would go astray.
pub fn check(p: &Program, leaf: SpecId, enclosing: &[SpecId], atom: &Atom) -> Result<(), Mismatch> {
    if atom.op != AtomOp::Move || atom.group == 1 {
        return Ok(());
    }
    match mapping(p, leaf, enclosing, atom) {
        Some(Err(detail)) => Err(Mismatch::Relation { detail }),
        Some(Ok(())) | None => Ok(()),
    }
}

fn mapping(
    p: &Program,
    leaf: SpecId,
    enclosing: &[SpecId],
    atom: &Atom,
) -> Option<Result<(), String>> {
    let spec = &p.specs[leaf];
    let Operand::Tensor(src) = spec.inputs.first()? else { return None };
    let (src, dst) = (*src, *spec.outputs.first()?);
    let buffer = |t: TensorId| p.tensors[t].buffer;
    let outer = enclosing.iter().rev().find_map(|s| {
        let outer = &p.specs[*s];
        let Some(Operand::Tensor(from)) = outer.inputs.first() else { return None };
        let to = *outer.outputs.first()?;
        (outer.kind == SpecKind::Move && buffer(*from) == buffer(src) && buffer(to) == buffer(dst))
            .then_some((*from, to))
    })?;
    let threads = p.specs[leaf].exec?.threads;
    let first = {
        let t = &p.threads[threads];
        let Dim::Const(o) = t.offset else { return None };
        let layout = t.concat().to_fixed()?;
        (0..layout.size()).map(|i| o + layout.at(i)).min()?
    };
    let (s, d) = (atom.operands.first()?, atom.operands.get(1)?);
    let units =
        |t: TensorId, o: &carbyne_atoms::AtomOperand| o.elem.scalars_per_unit(p.scalar_of(t));
    let (fs, gs) = (Side::new(p, src, outer.0)?, Side::new(p, dst, outer.1)?);
    // Which element of the enclosing Move stands at each place of the row's tile.
    let mut at: HashMap<i64, i64> = HashMap::new();
    let per = units(src, s)?;
    for t in 0..s.n_threads() {
        for v in 0..s.n_values() * per {
            let place = s.tv.at(t + s.n_threads() * (v / per)) * per + v % per;
            let element = fs.element(p, first + t, v)?;
            if let Some(other) = at.insert(place, element)
                && other != element
            {
                return Some(Err(format!("lanes disagree on element {place} of the tile")));
            }
        }
    }
    let per = units(dst, d)?;
    for t in 0..d.n_threads() {
        for v in 0..d.n_values() * per {
            let place = d.tv.at(t + d.n_threads() * (v / per)) * per + v % per;
            let (want, found) = (gs.element(p, first + t, v)?, *at.get(&place)?);
            if want != found {
                let at = |element: i64| coordinates(&gs.extents, element);
                return Some(Err(format!(
                    "({t},{v}) ↦ {} of the destination, but the row brings {} there: f∘p⁻¹ ≠ g∘q⁻¹",
                    at(want),
                    at(found)
                )));
            }
        }
    }
    Some(Ok(()))
}

/// `(3,17)`
fn coordinates(extents: &[i64], element: i64) -> String {
    let mut rest = element;
    let each: Vec<String> = extents
        .iter()
        .map(|n| {
            let at = rest % n.max(&1);
            rest /= n.max(&1);
            at.to_string()
        })
        .collect();
    format!("({})", each.join(","))
}

/// One side of the copy: thread and value to the column-major index in the enclosing Move's operand.
struct Side<'p> {
    tensor: &'p Tensor,
    /// Of the enclosing operand's modes.
    extents: Vec<i64>,
    /// Address in the buffer to index in the enclosing operand, for tensors in memory.
    by_address: HashMap<i64, i64>,
    /// Register to index, for distributed tensors.
    tv: Option<(carbyne_ir::layout::Layout, HashMap<i64, i64>)>,
}

impl<'p> Side<'p> {
    fn new(p: &'p Program, leaf: TensorId, outer: TensorId) -> Option<Self> {
        let tensor = &p.tensors[leaf];
        let o = &p.tensors[outer];
        let extents = crate::solve::ops::extents(p, outer)?;
        if p.buffer_of(leaf).memory == Some(Memory::Rf) {
            let dist = o.dist.as_ref()?;
            let threads = &p.threads[dist.threads?];
            let order = threads.concat().to_fixed()?;
            let Dim::Const(0) = threads.offset else { return None };
            let index = (0..order.size()).map(|i| (order.at(i), i)).collect();
            return Some(Side {
                tensor,
                extents,
                by_address: HashMap::new(),
                tv: Some((dist.tv.as_ref()?.to_fixed()?, index)),
            });
        }
        let layout = o.concat().to_fixed()?;
        if layout.size() > MAX_TABLE {
            return None;
        }
        let base = eval(p, o.offset, 0)?;
        let by_address = (0..layout.size()).map(|i| (base + layout.at(i), i)).collect();
        Some(Side { tensor, extents, by_address, tv: None })
    }

    fn element(&self, p: &Program, thread: i64, v: i64) -> Option<i64> {
        let layout = self.tensor.concat().to_fixed()?;
        let address = eval(p, self.tensor.offset, thread)? + layout.at(v);
        match &self.tv {
            Some((tv, index)) => {
                let t = tv.mode(0).ok()?;
                Some(tv.at(index.get(&thread)? + t.size() * address))
            }
            None => self.by_address.get(&address).copied(),
        }
    }
}

/// The value of an index expression for a thread, loops and blocks at their first values.
pub(crate) fn eval(p: &Program, d: Dim, thread: i64) -> Option<i64> {
    fn value(p: &Program, v: VarId, thread: i64) -> Option<i64> {
        match p.vars.get(&v)? {
            VarKind::Thread(_) => Some(thread),
            VarKind::Block(_) => Some(0),
            VarKind::Loop => Some(p.arena.var_info(v).lo),
            VarKind::Index(def) => eval(p, *def, thread),
            VarKind::Symbol => None,
        }
    }
    p.arena.eval(d, &|v| value(p, v, thread)).ok()
}
