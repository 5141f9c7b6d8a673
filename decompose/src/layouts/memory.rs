//! Chooses the copies of a leaf of the search ([`Solver::memory`]): their instructions, and the
//! layouts of the shared tensors that they access.

use super::canonical::Demand;
use super::copy::Candidate;
use super::solver::{Fallible, Solver};
use super::unfit::Unfit;
use super::work::rearranging;
use super::{canonical, cost, shared};
use crate::access::ops::Op;
use crate::plan::solution::{Assigned, Assignment, Placement, Solution};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{BufferId, SpecId};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Copies, each with its candidates.
pub(super) type Copies<'o> = Vec<(&'o Op, Rc<Vec<Candidate>>)>;

impl Solver<'_> {
    /// Chooses candidates, shared tensor by shared tensor. What it returns are copies between
    /// memories that take narrower instructions by way of registers, where no layout serves those
    /// without, and what that costs.
    pub(super) fn memory(
        &mut self,
        copies: &Copies<'_>,
        out: &mut Solution,
    ) -> Fallible<Vec<(SpecId, f64)>> {
        let mut groups: BTreeMap<BufferId, Vec<(&Op, &[Candidate])>> = BTreeMap::new();
        for (op, list) in copies {
            match shared::open_shared(self.p, op) {
                Some(b) => groups.entry(b).or_default().push((op, list)),
                None => self.cheapest(op, list, out),
            }
        }
        let mut demands = self.demands(out);
        for id in demands.keys() {
            groups.entry(*id).or_default();
        }
        let mut through = vec![];
        for (id, group) in groups {
            match self.lay_out(id, &group, demands.remove(&id).unwrap_or_default()) {
                Ok(found) => {
                    let picks = found.picks.iter().zip(&found.wavefronts);
                    for ((op, list), (i, wavefronts)) in group.iter().zip(picks) {
                        self.assign(op, &list[*i], *wavefronts, out);
                    }
                    let (layout, swizzle) = (found.layout.clone(), found.swizzle);
                    out.placements.insert(id, Placement::Shared { layout, swizzle });
                }
                Err(why) => {
                    let narrower = self.through_registers(&group);
                    if narrower.is_empty() {
                        return Err(self.unserved(id, &group, &why));
                    }
                    through.extend(narrower);
                }
            }
        }
        Ok(through)
    }

    /// What descriptors of MatMuls must name of open shared tensors.
    fn demands(&self, found: &Solution) -> BTreeMap<BufferId, Vec<Demand>> {
        let mut out: BTreeMap<BufferId, Vec<Demand>> = BTreeMap::new();
        for (id, a) in &found.assignments {
            let Assignment::MatMul(c) = &a.how else { continue };
            let Some(atom) = self.table.get(c.atom) else { continue };
            let inputs = self.p.specs[*id].input_tensors();
            for ((t, operand), map) in inputs.zip(&atom.operands).zip(&c.maps) {
                let open = self.p.buffer_of(t).open;
                if let Some(demand) = Demand::new(t, operand).filter(|_| open && map.is_none()) {
                    let own = out.entry(self.buffer(t)).or_default();
                    if !own.contains(&demand) {
                        own.push(demand);
                    }
                }
            }
        }
        out
    }

    /// Takes the cheapest candidate of a copy that accesses no open shared tensor.
    fn cheapest(&self, op: &Op, list: &[Candidate], out: &mut Solution) {
        let Some((src, dst)) = shared::ends(self.p, op) else { return };
        let in_shared = |t| self.p.buffer_of(t).is_shared();
        let sh = [src, dst].into_iter().find(|t| in_shared(*t)).map(|t| self.buffer(t));
        let mut best: Option<(f64, &Candidate, f64)> = None;
        for c in list {
            let wavefronts = sh.map_or(0.0, |b| shared::fixed(self.p, self.table, op, c, b));
            let rank = cost::copy(self.table, op, c, wavefronts).busy();
            if best.is_none_or(|(b, ..)| rank < b) {
                best = Some((rank, c, wavefronts));
            }
        }
        if let Some((_, c, wavefronts)) = best {
            self.assign(op, c, wavefronts, out);
        }
    }

    fn assign(&self, op: &Op, c: &Candidate, wavefronts: f64, out: &mut Solution) {
        let work = cost::copy(self.table, op, c, wavefronts);
        let how = Assignment::Copy(c.clone());
        out.assignments.insert(op.spec, Assigned { how, work });
    }

    /// The best layout of an open shared tensor.
    fn lay_out(
        &mut self,
        id: BufferId,
        group: &[(&Op, &[Candidate])],
        demands: Vec<Demand>,
    ) -> Result<Rc<shared::Found>, Unfit> {
        // Many leaves ask the same: the candidates follow from the registers on the other side.
        let numbers = group.iter().map(|(op, list)| Some((op.spec, self.number(list)?)));
        let key = numbers.collect::<Option<Vec<_>>>().map(|all| (id, all, demands.clone()));
        if let Some(found) = key.as_ref().and_then(|key| self.layouts.get(key)) {
            return found.clone();
        }
        let found = match demands.is_empty() {
            true => shared::open(self.p, self.table, id, group, &mut self.budget),
            false => canonical::open(self.p, self.table, id, group, &demands),
        };
        let found = found.map(Rc::new);
        if let Some(key) = key {
            self.layouts.insert(key, found.clone());
        }
        found
    }

    /// The copies between memories that could go through registers, and what that costs.
    fn through_registers(&self, group: &[(&Op, &[Candidate])]) -> Vec<(SpecId, f64)> {
        let direct = group.iter().filter_map(|(op, _)| {
            let (src, dst) = shared::ends(self.p, op)?;
            let narrower = self.p.specs[op.spec].atom.is_none() && !self.budget.cut_off;
            let cycles = rearranging(self.p, dst) * op.trips as f64;
            (narrower && !self.rf(src) && !self.rf(dst)).then_some((op.spec, cycles))
        });
        direct.collect()
    }

    /// The error for a shared tensor of which no layout serves all accesses.
    fn unserved(
        &self,
        id: BufferId,
        group: &[(&Op, &[Candidate])],
        why: &Unfit,
    ) -> Box<Diagnostic> {
        let buffer = &self.p.buffers[id];
        let message = format!("no layout of `%{}` serves all its accesses", buffer.name);
        let mut d =
            Diagnostic::new(Code::PinsConflict, buffer.span, message).label(why.to_string()).help(
                "pin a narrower instruction on one of the accesses, or copy to a second tensor for \
                 it",
            );
        for (op, _) in group {
            d = d.related(self.p.specs[op.spec].span, "this accesses it");
        }
        Box::new(d)
    }
}
