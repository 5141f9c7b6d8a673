//! A leaf of the search: with all registers known, the copies, the layouts of shared tensors and the operations
//! between registers, and what all of it costs.

use super::copy::Candidate;
use super::digits::same;
use super::ops::Op;
use super::{Fallible, Finished, Solution, Solver, State, Want, sides};
use super::{cost, matmul, pointwise, reduce, shared};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{BufferId, SpecId, TensorId};
use carbyne_ir::scalar::Memory;
use std::collections::BTreeMap;
use std::rc::Rc;

impl Solver<'_> {
    /// Chooses all that follows once the registers are known.
    pub(super) fn leaf(&mut self, state: State) -> Fallible<Finished> {
        let State { known, matmuls, mut wants, .. } = state;
        let mut out = Solution { matmuls, ..Solution::default() };
        let mut work: BTreeMap<SpecId, cost::Work> = BTreeMap::new();
        let mut copies: Vec<(&Op, Rc<Vec<Candidate>>)> = vec![];
        let mut detours = 0.0;
        for op in self.ops {
            let id = op.spec;
            let spec = &self.p.specs[id];
            let Some(&to) = spec.outputs.first() else { continue };
            let inside = self.tensors(id).iter().all(|t| self.rf(*t));
            match spec.kind {
                SpecKind::MatMul => {
                    if let Some(c) = out.matmuls.get(&id)
                        && let Some(w) = cost::matmul(self.table, c)
                    {
                        work.insert(id, w);
                    }
                    continue;
                }
                SpecKind::Move if !inside => {
                    let Some((src, dst)) = shared::ends(self.p, op) else { continue };
                    match self.candidates(op, src, dst, &known) {
                        Ok(list) => copies.push((op, list)),
                        // Of registers that no instruction moves, others may be moved.
                        Err(_) if spec.atom.is_none() && (self.rf(src) || self.rf(dst)) => {
                            wants.insert(Want::ThroughRegisters(id));
                            let t = if self.rf(src) { src } else { dst };
                            detours += matmul::rearranging(self.p, t) * op.trips as f64;
                        }
                        Err(d) => return Err(d),
                    }
                    continue;
                }
                SpecKind::Reduction(kind) => {
                    let Some(input) = spec.input_tensors().next() else { continue };
                    let Some(tv) = known.get(&self.buffer(input)) else {
                        return Err(self.unknown(id, input));
                    };
                    let refuse = |why: String| {
                        self.error(
                            Code::NoAtom,
                            id,
                            format!("the Reduction is spread in a way that has no exchange: {why}"),
                            "leave the layout of its input open",
                        )
                    };
                    let projection = pointwise::reduced(self.p, id, tv).map_err(refuse)?;
                    let plan =
                        reduce::plan(self.table, kind, self.p.scalar_of(input), tv, &projection)
                            .map_err(refuse)?;
                    if !matmul::agrees(&known, self.p, to, &projection.tv) {
                        return Err(self.error(
                            Code::PinsConflict,
                            id,
                            "the layout of the output is not that of the reduced input".to_owned(),
                            "leave one of them open",
                        ));
                    }
                    work.insert(id, cost::reduction(self.table, &plan));
                    out.reductions.insert(id, plan);
                    continue;
                }
                _ => {}
            }
            // Between registers: operands that lie elsewhere are brought over.
            let Some(tv) = known.get(&self.buffer(to)) else { return Err(self.unknown(id, to)) };
            let whole = pointwise::whole(self.p, id);
            let mut moved = false;
            for (input, t) in spec.input_tensors().enumerate() {
                let Some(own) = known.get(&self.buffer(t)) else {
                    return Err(self.unknown(id, t));
                };
                let wanted = pointwise::operand(self.p, t, to, tv, whole);
                let fits = wanted.is_ok_and(|w| same(&w.tv, own));
                if !fits {
                    moved = true;
                    detours += matmul::rearranging(self.p, t) * op.trips as f64;
                    wants.insert(match spec.kind {
                        SpecKind::Move => Want::ThroughShared(id),
                        _ => Want::Rearranged { spec: id, input },
                    });
                }
            }
            if moved {
                continue;
            }
            match pointwise::choose(self.p, self.table, id, &known) {
                Ok(c) => {
                    work.insert(id, cost::pointwise(self.table, &c));
                    out.pointwise.insert(id, c);
                }
                Err(rejected) => return Err(self.unmatched(id, &rejected)),
            }
        }
        for want in &wants {
            if let Want::Rearranged { spec, input } = want
                && self.p.specs[*spec].kind == SpecKind::MatMul
            {
                let trips = self.ops.iter().find(|o| o.spec == *spec).map_or(1, |o| o.trips);
                let t = self.p.specs[*spec].input_tensors().nth(*input);
                detours += t.map_or(0.0, |t| matmul::rearranging(self.p, t)) * trips as f64;
            }
        }
        self.memory(&copies, &mut out, &mut work)?;
        out.estimate = cost::estimate(self.p, self.kernel, self.table, &work, &known, &out);
        out.estimate.cycles += detours;
        Ok(Finished { known, wants: wants.into_iter().collect(), solution: out })
    }

    fn unknown(&self, id: SpecId, t: TensorId) -> Box<Diagnostic> {
        self.error(
            Code::NotDecomposed,
            id,
            format!("nothing says how {} is spread over the threads", self.p.tensor_name(t)),
            "move it from or to memory, or write `tv=`",
        )
    }

    /// Chooses candidates, shared tensor by shared tensor.
    fn memory(
        &mut self,
        copies: &[(&Op, Rc<Vec<Candidate>>)],
        out: &mut Solution,
        work: &mut BTreeMap<SpecId, cost::Work>,
    ) -> Fallible<()> {
        let mut groups: BTreeMap<BufferId, Vec<(&Op, &[Candidate])>> = BTreeMap::new();
        for (op, list) in copies {
            if let Some(b) = shared::open_shared(self.p, op) {
                groups.entry(b).or_default().push((op, list));
                continue;
            }
            let Some((src, dst)) = shared::ends(self.p, op) else { continue };
            let sh = [src, dst]
                .into_iter()
                .find(|t| self.p.buffer_of(*t).memory == Some(Memory::Sh))
                .map(|t| self.buffer(t));
            let mut best: Option<(f64, usize, cost::Work)> = None;
            for (i, c) in list.iter().enumerate() {
                let wavefronts = sh.map_or(0.0, |b| shared::fixed(self.p, self.table, op, c, b));
                let w = cost::copy(self.table, op, c, wavefronts);
                let rank = w.busy();
                if best.as_ref().is_none_or(|(b, ..)| rank < *b) {
                    best = Some((rank, i, w));
                }
            }
            if let Some((_, i, w)) = best {
                out.copies.insert(op.spec, list[i].clone());
                work.insert(op.spec, w);
            }
        }
        for (id, group) in groups {
            // Many leaves ask the same: the candidates follow from the registers on the other side.
            let key = (id, group.iter().map(|(op, list)| (op.spec, sides(list))).collect());
            let found = match self.layouts.get(&key) {
                Some(found) => found.clone(),
                None => {
                    let found =
                        shared::open(self.p, self.table, id, &group, &mut self.budget).map(Rc::new);
                    self.layouts.insert(key, found.clone());
                    found
                }
            };
            match found {
                Ok(found) => {
                    for (((op, list), i), w) in
                        group.iter().zip(&found.picks).zip(&found.wavefronts)
                    {
                        let c = list[*i].clone();
                        work.insert(op.spec, cost::copy(self.table, op, &c, *w));
                        out.copies.insert(op.spec, c);
                    }
                    out.shared.insert(id, (found.layout.clone(), found.swizzle));
                }
                Err(why) => {
                    let buffer = &self.p.buffers[id];
                    let mut d = Diagnostic::new(
                        Code::PinsConflict,
                        buffer.span,
                        format!("no layout of `%{}` serves all its accesses", buffer.name),
                    )
                    .label(why)
                    .help("copy through registers, or pin a scalar atom on one of the accesses");
                    for (op, _) in &group {
                        d = d.related(self.p.specs[op.spec].span, "accesses it");
                    }
                    return Err(Box::new(d));
                }
            }
        }
        Ok(())
    }
}
