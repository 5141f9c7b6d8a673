//! Prepares a leaf for following: the views that it reads and writes, which thread of a group
//! accesses which elements, and how a bulk copy completes.

use super::{BoxPlace, Bulk, How, LeafPlan, Obstacle, OperandPlan, Plan, Space};
use crate::expr::Exprs;
use carbyne_atoms::bulk::{BulkCopy, bulk_copy};
use carbyne_atoms::{Atom, AtomOp, AtomOperand, AtomTable, OperandAccess, Visibility};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::program::{Operand, Program, Spec, SpecId, TensorId};
use std::collections::BTreeSet;

impl Plan {
    /// The operands of a leaf, and the way in which threads execute it.
    pub(super) fn leaf(
        &mut self,
        exprs: &Exprs<'_>,
        id: SpecId,
        atoms: &AtomTable,
    ) -> Result<LeafPlan, Obstacle> {
        let spec = &exprs.program.specs[id];
        let Some(name) = spec.atom.as_deref() else { return self.meaning(exprs, spec) };
        let atom = atoms.get(name).ok_or_else(|| Obstacle::UnknownAtom {
            arch: atoms.arch.as_str(),
            name: name.to_owned(),
        })?;
        if atom.visibility.is_bulk() {
            return self.bulk(exprs, id, atom);
        }
        self.atom(exprs, spec, atom)
    }

    /// A leaf without an atom: every executing thread may access all of its operands.
    fn meaning(&mut self, exprs: &Exprs<'_>, spec: &Spec) -> Result<LeafPlan, Obstacle> {
        let mut operands = vec![];
        for t in spec.input_tensors() {
            operands.push(self.whole(exprs, t, true, false)?);
        }
        for t in &spec.outputs {
            let reads = matches!(spec.kind, SpecKind::MatMul);
            operands.push(self.whole(exprs, *t, reads, true)?);
        }
        let mut all = spec.input_tensors().chain(spec.outputs.iter().copied());
        let has_map = all.any(|t| exprs.program.tensors[t].map.is_some());
        if spec.bar.is_some() || has_map {
            return Err(Obstacle::NoAtom);
        }
        Ok(self.made(spec, How::Meaning, Visibility::Immediate, operands))
    }

    /// A leaf that groups of the size of an atom execute.
    fn atom(&mut self, exprs: &Exprs<'_>, spec: &Spec, atom: &Atom) -> Result<LeafPlan, Obstacle> {
        let inputs: Vec<Option<TensorId>> = spec.inputs.iter().map(Operand::tensor).collect();
        let read: Vec<_> =
            atom.operands.iter().filter(|o| o.access == OperandAccess::Read).collect();
        let written: Vec<_> = atom.writes().collect();
        if read.len() != inputs.len() || written.len() != spec.outputs.len() {
            return Err(Obstacle::Operands { atom: atom.name.to_string() });
        }
        let lanes: Vec<u16> = (0..atom.thread_layout.size().min(1024))
            .map(|t| u16::try_from(atom.thread_layout.at(t)).unwrap_or(u16::MAX))
            .collect();
        let places = places(&lanes).ok_or(Obstacle::Threads)?;
        let mut operands = vec![];
        for (operand, t) in read.iter().zip(&inputs) {
            let Some(t) = t else { continue };
            operands.push(self.bind(exprs, operand, *t, lanes.len(), (true, false))?);
        }
        for (operand, t) in written.iter().zip(&spec.outputs) {
            let reads =
                operand.access == OperandAccess::ReadWrite && spec.kind != SpecKind::MatMulSet;
            operands.push(self.bind(exprs, operand, *t, lanes.len(), (reads, true))?);
        }
        let shape = match atom.op {
            AtomOp::MatMul { m, n, .. } => (m, n),
            _ => (0, 0),
        };
        let how = How::Atom { places, size: lanes.len() };
        Ok(LeafPlan { shape, ..self.made(spec, how, atom.visibility, operands) })
    }

    /// The read of the register that an arrival names by `after=`.
    pub(super) fn after(&mut self, exprs: &Exprs<'_>, t: TensorId) -> Result<LeafPlan, Obstacle> {
        let operands = vec![self.whole(exprs, t, true, false)?];
        let (how, visibility) = (How::Meaning, Visibility::Immediate);
        let (accumulates, valid, shape) = (None, None, (0, 0));
        Ok(LeafPlan { how, visibility, operands, accumulates, valid, shape, matters: true })
    }

    fn made(
        &self,
        spec: &Spec,
        how: How,
        visibility: Visibility,
        operands: Vec<OperandPlan>,
    ) -> LeafPlan {
        let is_free = |o: &OperandPlan| matches!(self.views[o.view].space, Space::Free);
        let accumulates = match spec.kind {
            SpecKind::Accumulate(op) => Some(op),
            _ => None,
        };
        let matters = !operands.iter().all(is_free);
        let (valid, shape) = (spec.valid, (0, 0));
        LeafPlan { how, visibility, operands, accumulates, valid, shape, matters }
    }

    /// An operand that is accessed as a whole.
    fn whole(
        &mut self,
        exprs: &Exprs<'_>,
        t: TensorId,
        reads: bool,
        writes: bool,
    ) -> Result<OperandPlan, Obstacle> {
        let view = self.add_view(exprs, t)?;
        if self.views[view].space == Space::Gathered {
            return Err(Obstacle::Gathered);
        }
        Ok(OperandPlan { view, of_thread: None, described: false, boxed: None, reads, writes })
    }

    /// An operand of an atom.
    fn bind(
        &mut self,
        exprs: &Exprs<'_>,
        operand: &AtomOperand,
        t: TensorId,
        group: usize,
        (reads, writes): (bool, bool),
    ) -> Result<OperandPlan, Obstacle> {
        let mut plan = self.whole(exprs, t, reads, writes)?;
        let view = &self.views[plan.view];
        plan.described = operand.matrix_rule().is_some();
        let in_memory = matches!(view.space, Space::Shared(_) | Space::Global(_));
        if group == 1 || plan.described || !in_memory {
            return Ok(plan);
        }
        const ODD: Obstacle = Obstacle::Elements;
        let per_unit = operand.elem.scalars_per_unit(exprs.program.scalar_of(t)).ok_or(ODD)?;
        let (tm, vm) = (operand.tv.mode(0), operand.tv.mode(1));
        let (Ok(tm), Ok(vm)) = (tm, vm) else { return Err(ODD) };
        let n_units = operand.tile_size();
        if vm.size() * per_unit != view.places.len() as i64 || tm.size() != group as i64 {
            return Err(ODD);
        }
        let mut taken = BTreeSet::new();
        let mut of_thread = vec![vec![]; group];
        for (t, list) in of_thread.iter_mut().enumerate() {
            for v in 0..vm.size() {
                let unit = tm.at(t as i64).saturating_add(vm.at(v));
                if !(0..n_units).contains(&unit) {
                    return Err(ODD);
                }
                // If several threads name an element, the first of them accesses the element.
                if taken.insert(unit) {
                    list.extend((0..per_unit).map(|j| (v * per_unit + j) as u32));
                }
            }
        }
        plan.of_thread = Some(of_thread);
        Ok(plan)
    }

    /// A bulk copy.
    fn bulk(&mut self, exprs: &Exprs<'_>, id: SpecId, atom: &Atom) -> Result<LeafPlan, Obstacle> {
        let p = exprs.program;
        let copy =
            bulk_copy(p, &p.specs[id], atom).map_err(|m| Obstacle::Refused(m.to_string()))?;
        let mut operands = vec![
            self.whole(exprs, copy.source, true, false)?,
            self.whole(exprs, copy.target, false, true)?,
        ];
        let boxed = match copy.boxed {
            None => None,
            // The part of a box that lies in its tensor matters only if the tensor is written.
            Some(_) if self.is_free(p, &copy) => None,
            Some((map, mut at)) => {
                let map = &p.maps[map];
                let mut extents = map.extents.clone();
                if !map.first_fastest {
                    at.reverse();
                    extents.reverse();
                }
                let extents: Option<Vec<i64>> =
                    extents.iter().map(|d| exprs.constant(*d)).collect();
                let extents = extents.ok_or(Obstacle::Map)?;
                Some(BoxPlace { at, extents })
            }
        };
        let of_source = p.tensors[copy.source].map.is_some();
        operands[usize::from(!of_source)].boxed = boxed;
        let bar = copy.bar.map(|t| self.add_view(exprs, t)).transpose()?;
        let how = How::Bulk(Bulk { bar, bytes: copy.bytes, mask: copy.mask });
        let made = self.made(&p.specs[id], how, atom.visibility, operands);
        Ok(LeafPlan { valid: None, matters: true, ..made })
    }

    /// Whether the tensor of the tensor map cannot be in a pair.
    fn is_free(&self, p: &Program, copy: &BulkCopy) -> bool {
        let mapped = [copy.source, copy.target].into_iter().find(|t| p.tensors[*t].map.is_some());
        mapped
            .is_some_and(|t| self.view(t).is_ok_and(|v| matches!(self.views[v].space, Space::Free)))
    }
}

/// Fills a window of whole warps with groups of these lanes, each from the first free thread on.
/// Returns for each thread its index in its group, or none if the groups do not fill the window.
fn places(lanes: &[u16]) -> Option<Vec<usize>> {
    let reach = lanes.iter().max().map_or(1, |l| usize::from(*l) + 1);
    if reach > 1024 {
        return None;
    }
    let mut places = vec![None; reach.next_multiple_of(32)];
    while let Some(first) = places.iter().position(Option::is_none) {
        for (place, lane) in lanes.iter().enumerate() {
            match places.get_mut(first + usize::from(*lane)) {
                Some(free @ None) => *free = Some(place),
                _ => return None,
            }
        }
    }
    places.into_iter().collect()
}
