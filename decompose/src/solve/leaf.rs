//! A leaf of the search: with all registers known, the copies, the layouts of shared tensors and the operations
//! between registers, and what all of it costs.

use super::copy::Candidate;
use super::digits::same;
use super::ops::Op;
use super::unfit::Unfit;
use super::{Fallible, Finished, Known, Solution, Solver, State, Want, sides};
use super::{cost, exchange, matmul, ops, pointwise, reduce, shared, uneven, views};
use crate::matching::{self, Mismatch};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::limits::MAX_THREAD_BITS;
use carbyne_ir::program::{BufferId, SpecId, TensorId};
use carbyne_ir::scalar::Memory;
use std::collections::BTreeMap;
use std::rc::Rc;

impl Solver<'_> {
    /// Chooses all that follows once the registers are known.
    pub(super) fn leaf(&mut self, state: State) -> Fallible<Finished> {
        let State { known, matmuls, mut wants, anchors, .. } = state;
        self.fits_registers(&known)?;
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
                            wants.push(Want::ThroughRegisters(id));
                            let t = if self.rf(src) { src } else { dst };
                            detours += matmul::rearranging(self.p, t) * op.trips as f64;
                        }
                        Err(d) => return Err(d),
                    }
                    continue;
                }
                SpecKind::Reduction(kind) => {
                    if let Some(atom) = &spec.atom {
                        return Err(Box::new(matching::many(self.p, id, atom)));
                    }
                    let Some(input) = spec.input_tensors().next() else { continue };
                    let Some(tv) = known.get(&self.buffer(input)) else {
                        return Err(self.unknown(id, input));
                    };
                    let help = if self.p.buffer_of(input).open {
                        "choose a number of threads that divides one of its modes, or pad the tensor"
                    } else {
                        "leave the layout of its input open"
                    };
                    let refuse = |why: Unfit| {
                        self.error(
                            Code::NoAtom,
                            id,
                            format!("the Reduction is spread in a way that has no exchange: {why}"),
                            help,
                        )
                    };
                    let projection = pointwise::reduced(self.p, id, tv).map_err(refuse)?;
                    let plan =
                        reduce::plan(self.table, kind, self.p.scalar_of(input), tv, &projection)
                            .map_err(refuse)?;
                    if !matmul::agrees(&known, self.p, to, &projection.tv) {
                        detours += matmul::rearranging(self.p, to) * op.trips as f64;
                        wants.push(Want::Spread(id));
                        continue;
                    }
                    work.insert(id, cost::reduction(self.table, &plan));
                    out.reductions.insert(id, plan);
                    continue;
                }
                SpecKind::Move
                | SpecKind::Accumulate(_)
                | SpecKind::MatMulSet
                | SpecKind::Unary(_)
                | SpecKind::Binary(_)
                | SpecKind::Select
                | SpecKind::Shfl(_)
                | SpecKind::Init
                | SpecKind::Iota
                | SpecKind::Generic => {}
            }
            // Between registers: operands that lie elsewhere are brought over.
            let Some(tv) = &self.layout_of(&known, to) else {
                return Err(self.without_layout(&known, id, to));
            };
            let whole = pointwise::whole(self.p, id);
            let mut moved = false;
            for (input, t) in spec.input_tensors().enumerate() {
                let part = views::is_part(self.p, t);
                let Some(own) = &self.layout_of(&known, t) else {
                    if !part || !known.contains_key(&self.buffer(t)) {
                        return Err(self.unknown(id, t));
                    }
                    moved = true;
                    detours += matmul::rearranging(self.p, t) * op.trips as f64;
                    wants.push(Want::OfShared { spec: id, input });
                    continue;
                };
                let wanted = pointwise::operand(self.p, t, to, tv, whole);
                if wanted.as_ref().is_ok_and(|w| same(&w.tv, own)) {
                    continue;
                }
                moved = true;
                if part {
                    // As its threads have it, in a tensor of its own that is rearranged.
                    detours += matmul::rearranging(self.p, t) * op.trips as f64;
                    let by_lanes = Some(own.clone());
                    wants.push(Want::Rearranged { spec: id, input, by_lanes });
                    continue;
                }
                let to_part = views::is_part(self.p, to);
                let lanes =
                    wanted.ok().and_then(|w| exchange::cheaper(self.p, self.table, t, own, &w.tv));
                if let (SpecKind::Move, Some(c), true, None) =
                    (spec.kind, &lanes, whole && !to_part, &spec.atom)
                {
                    work.insert(id, cost::exchange(c));
                    out.exchanges.insert(id, c.clone());
                    continue;
                }
                if let (SpecKind::Move, Some(atom)) = (spec.kind, &spec.atom) {
                    let m = Mismatch::Relation {
                        detail: format!(
                            "it keeps elements in their threads, and {} and {} are spread differently",
                            self.p.tensor_name(t),
                            self.p.tensor_name(to)
                        ),
                    };
                    let help = "remove `atom=`, or leave one of the layouts open";
                    return Err(Box::new(matching::not_by(self.p, id, atom, &m).help(help)));
                }
                let cycles = lanes
                    .as_ref()
                    .map_or_else(|| matmul::rearranging(self.p, t), |c| c.cycles(self.table));
                detours += cycles * op.trips as f64;
                wants.push(match spec.kind {
                    SpecKind::Move if !to_part => Want::ThroughShared(id),
                    SpecKind::Move
                    | SpecKind::Accumulate(_)
                    | SpecKind::MatMul
                    | SpecKind::MatMulSet
                    | SpecKind::Unary(_)
                    | SpecKind::Binary(_)
                    | SpecKind::Select
                    | SpecKind::Reduction(_)
                    | SpecKind::Shfl(_)
                    | SpecKind::Init
                    | SpecKind::Iota
                    | SpecKind::Generic => {
                        Want::Rearranged { spec: id, input, by_lanes: lanes.map(|c| c.output) }
                    }
                });
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
            if let Want::Rearranged { spec, input, by_lanes } = want
                && self.p.specs[*spec].kind == SpecKind::MatMul
            {
                let trips = self.ops.iter().find(|o| o.spec == *spec).map_or(1, |o| o.trips);
                let t = self.p.specs[*spec].input_tensors().nth(*input);
                let cycles = |t| match (by_lanes, known.get(&self.buffer(t))) {
                    (Some(to), Some(own)) => exchange::cycles(self.p, self.table, t, own, to),
                    _ => matmul::rearranging(self.p, t),
                };
                detours += t.map_or(0.0, cycles) * trips as f64;
            }
        }
        for (id, cycles) in self.memory(&copies, &mut out, &mut work)? {
            wants.push(Want::ThroughRegisters(id));
            detours += cycles;
        }
        let mut found = Finished { known, wants, solution: out, work, detours, anchors };
        found.solution.estimate = if self.settled.work.is_empty() {
            self.estimate(&found)
        } else {
            let mut all = self.settled.clone();
            all.merge(found.clone());
            self.estimate(&all)
        };
        Ok(found)
    }

    /// Refuses a register tensor of which one thread would hold more than it has registers.
    fn fits_registers(&self, known: &Known) -> Fallible<()> {
        for (id, tv) in known {
            let buffer = &self.p.buffers[*id];
            let values = tv.mode(1).map_or(0, |v| v.size());
            let bits = buffer.scalar.bits();
            let own = values.saturating_mul(bits);
            if own <= MAX_THREAD_BITS {
                continue;
            }
            let elements = ops::whole(self.p, buffer.tensor).map_or(0, |l| l.size());
            let threads = self.held.get(id).map_or(1, |g| g.threads);
            // What a thread would hold if no other held the same.
            let even = elements / threads.max(1) * bits;
            let near = uneven::near(threads, elements, bits, false);
            // Warps share the factors of a MatMul.
            let help = if !self.warps() && even <= own / 2 && !near.is_empty() {
                format!("choose a number of threads that shares it evenly: {}", uneven::or(&near))
            } else {
                "go over it in a loop of smaller tiles, along K where a MatMul reads it; or spread it over \
                 more threads"
                    .to_owned()
            };
            let message = format!("each thread would hold {values} elements of `%{}`", buffer.name);
            let label =
                format!("{own} bits, of {MAX_THREAD_BITS} that a thread may hold of a tensor");
            let mut d =
                Diagnostic::new(Code::TooLarge, buffer.span, message).label(label).help(help);
            // The tensor may be one that was added.
            let ends = self.ops.iter().filter_map(|op| shared::ends(self.p, op));
            if let Some((from, _)) = ends.into_iter().find(|(_, to)| self.buffer(*to) == *id) {
                d = d.note(format!(
                    "`%{}` is filled from {}",
                    buffer.name,
                    self.p.tensor_name(from)
                ));
            }
            return Err(Box::new(d));
        }
        Ok(())
    }

    /// Whether instructions of whole warps may be needed.
    fn warps(&self) -> bool {
        let matmul =
            |op: &Op| matches!(self.p.specs[op.spec].kind, SpecKind::MatMul | SpecKind::MatMulSet);
        self.ops.iter().any(matmul)
    }

    /// The error for an output whose threads are not known, or do not have as much of it each.
    fn without_layout(&self, known: &Known, id: SpecId, t: TensorId) -> Box<Diagnostic> {
        if !known.contains_key(&self.buffer(t)) {
            return self.unknown(id, t);
        }
        let name = &self.p.buffer_of(t).name;
        let message = format!("a part of `%{name}` is written that only some of its threads hold");
        let help = "write the parts to a tensor in SH, or to the memory that the tensor goes to";
        self.error(Code::NoStrategy, id, message, help)
    }

    fn unknown(&self, id: SpecId, t: TensorId) -> Box<Diagnostic> {
        self.error(
            Code::NotDecomposed,
            id,
            format!("nothing says how {} is spread over the threads", self.p.tensor_name(t)),
            "move it from or to memory, or write `tv=`",
        )
    }

    /// Chooses candidates, shared tensor by shared tensor. What it returns are copies between memories that take
    /// narrower instructions by way of registers, where no layout serves those without, and what that costs.
    fn memory(
        &mut self,
        copies: &[(&Op, Rc<Vec<Candidate>>)],
        out: &mut Solution,
        work: &mut BTreeMap<SpecId, cost::Work>,
    ) -> Fallible<Vec<(SpecId, f64)>> {
        let mut through = vec![];
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
                    let direct = group.iter().filter_map(|(op, _)| {
                        let (src, dst) = shared::ends(self.p, op)?;
                        let narrower = self.p.specs[op.spec].atom.is_none() && !self.budget.cut_off;
                        let cycles = matmul::rearranging(self.p, dst) * op.trips as f64;
                        (narrower && !self.rf(src) && !self.rf(dst)).then_some((op.spec, cycles))
                    });
                    let before = through.len();
                    through.extend(direct);
                    if through.len() > before {
                        continue;
                    }
                    let buffer = &self.p.buffers[id];
                    let mut d = Diagnostic::new(
                        Code::PinsConflict,
                        buffer.span,
                        format!("no layout of `%{}` serves all its accesses", buffer.name),
                    )
                    .label(why.to_string())
                    .help(
                        "pin a narrower instruction on one of the accesses, or copy to a second tensor for it",
                    );
                    for (op, _) in &group {
                        d = d.related(self.p.specs[op.spec].span, "accesses it");
                    }
                    return Err(Box::new(d));
                }
            }
        }
        Ok(through)
    }
}
