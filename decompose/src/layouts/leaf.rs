//! Completes a choice of the search when all register layouts are known ([`Solver::leaf`]): it
//! chooses Reductions and operations between registers, has [`super::memory`] choose copies and
//! shared layouts, and computes the cost of all. A leaf here is a leaf of the search tree.

use super::digits::same;
use super::exchange;
use super::memory::Copies;
use super::solver::{Fallible, Solver};
use super::state::{Finished, State};
use super::unfit::Unfit;
use super::want::Want;
use super::work::rearranging;
use super::{cost, matmul, pointwise, reduce, shared, uneven, views};
use crate::access::matching;
use crate::access::matching::Mismatch;
use crate::access::ops;
use crate::access::ops::Known;
use crate::access::ops::Op;
use crate::cost::steady::Grid;
use crate::plan::solution::{Assigned, Assignment, Solution};
use carbyne_ir::ast::{ReduceOp, SpecKind};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::layout::Layout;
use carbyne_ir::limits::MAX_THREAD_BITS;
use carbyne_ir::program::{SpecId, TensorId};

impl Solver<'_> {
    /// Chooses all that follows once the registers are known.
    pub(super) fn leaf(&mut self, state: State) -> Fallible<Finished> {
        let State { known, assignments, wants, anchors, .. } = state;
        self.fits_registers(&known)?;
        let solution = Solution { assignments, ..Solution::default() };
        let mut found = Finished { known, wants, solution, detours: 0.0, anchors };
        let mut copies: Copies<'_> = vec![];
        for op in self.ops {
            let spec = &self.p.specs[op.spec];
            let Some(&to) = spec.outputs.first() else { continue };
            let inside = self.tensors(op.spec).iter().all(|t| self.rf(*t));
            match spec.kind {
                // Decided before.
                SpecKind::MatMul => {}
                SpecKind::Move | SpecKind::Accumulate(_) if !inside => {
                    self.copy(op, &mut copies, &mut found)?;
                }
                SpecKind::Reduction(kind) => self.reduction(op, kind, to, &mut found)?,
                // `shapes` refuses those that are not solved so.
                _ => self.pointwise(op, to, &mut found)?,
            }
        }
        found.detours = self.factors(&found);
        for (id, cycles) in self.memory(&copies, &mut found.solution)? {
            found.wants.push(Want::ThroughRegisters(id));
            found.detours += cycles;
        }
        found.solution.estimate = if self.settled.solution.assignments.is_empty() {
            found.estimate(self.costing, Grid::Full)
        } else {
            let mut all = self.settled.clone();
            all.merge(found.clone());
            all.estimate(self.costing, Grid::Full)
        };
        Ok(found)
    }

    /// Looks up the candidates of a copy from or to memory.
    fn copy<'o>(
        &mut self,
        op: &'o Op,
        copies: &mut Copies<'o>,
        found: &mut Finished,
    ) -> Fallible<()> {
        let Some((src, dst)) = shared::ends(self.p, op) else { return Ok(()) };
        match self.candidates(op, src, dst, &found.known) {
            Ok(list) => copies.push((op, list)),
            // Of registers that no instruction moves, others may be moved.
            Err(_)
                if self.p.specs[op.spec].atom.is_none()
                    && self.p.specs[op.spec].kind == SpecKind::Move
                    && (self.rf(src) || self.rf(dst)) =>
            {
                found.wants.push(Want::ThroughRegisters(op.spec));
                let t = if self.rf(src) { src } else { dst };
                found.detours += rearranging(self.p, t) * op.trips as f64;
            }
            Err(d) => return Err(d),
        }
        Ok(())
    }

    /// Chooses how a Reduction is done.
    fn reduction(
        &self,
        op: &Op,
        kind: ReduceOp,
        to: TensorId,
        found: &mut Finished,
    ) -> Fallible<()> {
        let id = op.spec;
        let spec = &self.p.specs[id];
        if let Some(atom) = &spec.atom {
            return Err(Box::new(matching::many(self.p, id, atom)));
        }
        let Some(input) = spec.input_tensors().next() else { return Ok(()) };
        let Some(tv) = found.known.get(&self.buffer(input)) else {
            return Err(self.unknown(id, input));
        };
        let help = if self.p.buffer_of(input).open {
            "choose a number of threads that divides one of its modes, or pad the tensor"
        } else {
            "leave the layout of its input open"
        };
        let refuse = |why: Unfit| {
            let message = format!("the Reduction is spread in a way that has no exchange: {why}");
            let help = match why {
                Unfit::Bits => {
                    "reduce i32 or u32 instead: convert the input with `cast`, and the result back"
                }
                _ => help,
            };
            self.error(Code::NoAtom, id, message, help)
        };
        let projection = pointwise::reduced(self.p, id, tv).map_err(refuse)?;
        let plan = reduce::plan(self.table, kind, self.p.scalar_of(input), tv, &projection)
            .map_err(refuse)?;
        if !matmul::agrees(&found.known, self.p, to, &projection.tv) {
            found.detours += rearranging(self.p, to) * op.trips as f64;
            found.wants.push(Want::Spread(id));
            return Ok(());
        }
        let work = cost::reduction(self.table, &plan);
        let how = Assignment::Reduction(plan);
        found.solution.assignments.insert(id, Assigned { how, work });
        Ok(())
    }

    /// Chooses how an operation between registers is done; operands that lie elsewhere are brought
    /// over.
    fn pointwise(&mut self, op: &Op, to: TensorId, found: &mut Finished) -> Fallible<()> {
        let id = op.spec;
        // Many leaves ask the same.
        let known = |t: &TensorId| found.known.get(&self.buffer(*t)).cloned();
        let key = (id, self.tensors(id).iter().map(known).collect::<Vec<_>>());
        if let Some(assigned) = self.between.get(&key) {
            found.solution.assignments.insert(id, assigned.clone());
            return Ok(());
        }
        let Some(tv) = self.layout_of(&found.known, to) else {
            return Err(self.without_layout(&found.known, id, to));
        };
        let mut moved = false;
        for (input, t) in self.p.specs[id].input_tensors().enumerate() {
            moved |= self.input(op, (input, t), (to, &tv), found)?;
        }
        if moved {
            return Ok(());
        }
        let by = |calls| {
            pointwise::choose(self.p, self.table, id, &found.known, (self.precision.of(id), calls))
        };
        // One that calls where there is no other is refused when all atoms have names.
        let choice = match by(self.calls) {
            Err(_) if !self.calls => by(true),
            found => found,
        };
        let choice = choice.map_err(|rejected| self.unmatched(id, &rejected))?;
        let work = cost::pointwise(self.table, &choice);
        let assigned = Assigned { how: Assignment::Pointwise(choice), work };
        self.between.insert(key, assigned.clone());
        found.solution.assignments.insert(id, assigned);
        Ok(())
    }

    /// Whether an input does not lie where the output of the operation wants it, and is brought
    /// over.
    fn input(
        &self,
        op: &Op,
        (input, t): (usize, TensorId),
        (to, tv): (TensorId, &Layout),
        found: &mut Finished,
    ) -> Fallible<bool> {
        let (id, trips) = (op.spec, op.trips as f64);
        let spec = &self.p.specs[id];
        let part = views::is_part(self.p, t);
        let Some(own) = &self.layout_of(&found.known, t) else {
            if !part || !found.known.contains_key(&self.buffer(t)) {
                return Err(self.unknown(id, t));
            }
            found.detours += rearranging(self.p, t) * trips;
            found.wants.push(Want::OfShared { spec: id, input });
            return Ok(true);
        };
        let whole = pointwise::whole(self.p, id);
        let wanted = pointwise::operand(self.p, t, to, tv, whole);
        if wanted.as_ref().is_ok_and(|w| same(&w.tv, own)) {
            return Ok(false);
        }
        if part {
            // As its threads have it, in a tensor of its own that is rearranged.
            found.detours += rearranging(self.p, t) * trips;
            let by_lanes = Some(own.clone());
            found.wants.push(Want::Rearranged { spec: id, input, by_lanes });
            return Ok(true);
        }
        let lanes = wanted.ok().and_then(|w| exchange::cheaper(self.p, self.table, t, own, &w.tv));
        let whole = whole && !views::is_part(self.p, to);
        if let (SpecKind::Move, Some(c), true, None) = (spec.kind, &lanes, whole, &spec.atom) {
            let (how, work) = (Assignment::Exchange(c.clone()), cost::exchange(c));
            found.solution.assignments.insert(id, Assigned { how, work });
            return Ok(true);
        }
        if let (SpecKind::Move, Some(atom)) = (spec.kind, &spec.atom) {
            return Err(self.spread_differently(id, atom, (t, to)));
        }
        let cycles =
            lanes.as_ref().map_or_else(|| rearranging(self.p, t), |c| c.cycles(self.table));
        found.detours += cycles * trips;
        let by_lanes = lanes.map(|c| c.output);
        found.wants.push(self.brought(id, input, to, by_lanes));
        Ok(true)
    }

    /// The detour that brings an input to where the output of the operation wants it.
    fn brought(&self, id: SpecId, input: usize, to: TensorId, by_lanes: Option<Layout>) -> Want {
        match self.p.specs[id].kind {
            SpecKind::Move if !views::is_part(self.p, to) => Want::ThroughShared(id),
            _ => Want::Rearranged { spec: id, input, by_lanes },
        }
    }

    /// The error for a Move whose atom keeps elements in their threads.
    fn spread_differently(
        &self,
        id: SpecId,
        atom: &str,
        (from, to): (TensorId, TensorId),
    ) -> Box<Diagnostic> {
        let (from, to) = (self.p.tensor_name(from), self.p.tensor_name(to));
        let detail = format!(
            "it keeps elements in their threads, but {from} and {to} are spread differently"
        );
        let help = "remove `atom=`, or leave one of the layouts open";
        Box::new(matching::not_by(self.p, id, atom, &Mismatch::Relation { detail }).help(help))
    }

    /// The cycles of the detours, with those of factors of MatMuls that are rearranged.
    fn factors(&self, found: &Finished) -> f64 {
        let mut detours = found.detours;
        for want in &found.wants {
            if let Want::Rearranged { spec, input, by_lanes } = want
                && self.p.specs[*spec].kind == SpecKind::MatMul
            {
                let trips = self.ops.iter().find(|o| o.spec == *spec).map_or(1, |o| o.trips);
                let t = self.p.specs[*spec].input_tensors().nth(*input);
                let cycles = |t| match (by_lanes, found.known.get(&self.buffer(t))) {
                    (Some(to), Some(own)) => exchange::cycles(self.p, self.table, t, own, to),
                    _ => rearranging(self.p, t),
                };
                detours += t.map_or(0.0, cycles) * trips as f64;
            }
        }
        detours
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
                "use a loop over smaller tiles, along K if a MatMul reads the tensor, or spread it \
                 over more threads"
                    .to_owned()
            };
            let message = format!("each thread would hold {values} elements of `%{}`", buffer.name);
            let label = format!(
                "{own} bits, but a thread may hold only {MAX_THREAD_BITS} bits of a tensor"
            );
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
        let matmul = |op: &Op| self.p.specs[op.spec].kind.is_product();
        self.ops.iter().any(matmul)
    }

    /// The error for an output whose threads are not known, or do not have as much of it each.
    fn without_layout(&self, known: &Known, id: SpecId, t: TensorId) -> Box<Diagnostic> {
        if !known.contains_key(&self.buffer(t)) {
            return self.unknown(id, t);
        }
        let name = &self.p.buffer_of(t).name;
        let message = format!("only some threads hold the part of `%{name}` that is written");
        let help = "write the parts to a tensor in SH, or to the memory that the tensor goes to";
        self.error(Code::NoStrategy, id, message, help)
    }

    fn unknown(&self, id: SpecId, t: TensorId) -> Box<Diagnostic> {
        self.error(
            Code::NotDecomposed,
            id,
            format!("nothing determines how {} is spread over the threads", self.p.tensor_name(t)),
            "move it from or to memory, or write `tv=`",
        )
    }
}
