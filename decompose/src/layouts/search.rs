//! Searches the choices for a kernel by branch and bound ([`Solver::search`]). MatMuls are decided
//! first, then the layouts that copies spread, then the rest.

use super::shared::{self, Budget};
use super::solver::{Fallible, Solver};
use super::state::{Detours, Finished, State};
use super::tv::{self};
use super::{cost, matmul, work};
use crate::access::ops;
use crate::access::ops::Known;
use crate::access::ops::Op;
use crate::plan::solution::{Assigned, Assignment};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::TensorId;
use carbyne_ir::progress::Stage;

/// Complete choices that are compared by costs of which those of detours are rough. MatMuls are
/// tried in the order of theirs, so that the first are the likely ones. An exhaustive search looks
/// at no more of them.
const ROUGH_LEAVES: u64 = 8;

/// So many failed choices with one common reason: the reason is the error, not the budget.
const AGREED: u64 = 64;

impl<'a> Solver<'a> {
    /// The best leaves of each part, best first.
    pub(super) fn search(&mut self, parts: &'a [Vec<Op>]) -> Fallible<Vec<Vec<Finished>>> {
        let mut left = self.search.budget;
        let mut found = vec![];
        let stage = Stage::new("solving", Some(parts.len() as u64));
        for (i, ops) in parts.iter().enumerate() {
            self.ops = ops;
            // What one part leaves of its share goes to the next.
            let share = left.div_ceil((parts.len() - i) as u64);
            self.budget = Budget { left: share, cut_off: false };
            self.branch(State { known: self.pins(), ..State::default() });
            self.searched.cut_off |= self.budget.cut_off;
            left -= share - self.budget.left;
            let Some(best) = self.best.first() else { return Err(self.nothing()) };
            self.settled.merge(best.clone());
            found.push(std::mem::take(&mut self.best));
            stage.step();
        }
        Ok(found)
    }

    /// Why there is no solution.
    pub(super) fn nothing(&mut self) -> Box<Diagnostic> {
        let first = self.failure.take();
        if self.searched.cut_off {
            let budget = self.search.budget;
            // A reason that all of many choices share is hardly a matter of the budget.
            let agreed = self.unanimous && self.searched.dead >= AGREED;
            if let Some(first) = first.as_ref().filter(|_| agreed) {
                let note = format!(
                    "all of the first {budget} choices fail like this; `--budget N` tries more"
                );
                return Box::new((**first).clone().note(note));
            }
            let d = self.error(
                Code::Budget,
                self.kernel,
                format!("no solution among the first {budget} choices"),
                "pin an atom or a layout in the text, or run `carbyne decompose --budget N` and \
                 continue with the text that it prints",
            );
            return match first {
                Some(first) => Box::new(d.note(format!("the first fails: {}", first.message))),
                None => d,
            };
        }
        first.unwrap_or_else(|| {
            let message = "no choice implements the body".to_owned();
            self.error(Code::NoAtom, self.kernel, message, "pin fewer layouts")
        })
    }

    /// Looks at everything below a node.
    fn branch(&mut self, mut state: State) {
        let enough = self.detours == Detours::Cheapest && self.searched.leaves >= ROUGH_LEAVES;
        if enough || !self.budget.take() {
            return;
        }
        self.spread(&mut state);
        let worst = self.best.get(self.search.top.max(1) - 1).map(|f| f.rank(self.detours).0);
        let least = self.detours.rank(state.wants.len(), state.bound.cycles());
        if worst.is_some_and(|worst| least > worst) && !self.search.exhaustive {
            self.passed_over(state.wants.len(), state.bound.cycles());
            self.searched.pruned += 1;
            return;
        }
        if let Some(op) = self.undecided(&state) {
            return self.decide(&state, op);
        }
        if let Some((op, t)) = self.anchor(&state.known) {
            return self.spread_by(&state, op, t);
        }
        // What no copy brings from or to memory is spread evenly.
        if let Some((t, tv)) = self.loose(&state.known) {
            state.known.insert(self.buffer(t), tv);
            return self.branch(state);
        }
        match self.leaf(state) {
            Ok(found) => {
                self.searched.leaves += 1;
                self.passed_over(found.wants.len(), found.solution.estimate.cycles);
                let rank = found.rank(self.detours);
                let at = self.best.partition_point(|b| b.rank(self.detours) <= rank);
                self.best.insert(at, found);
                self.best.truncate(self.search.top.max(1));
            }
            Err(d) => self.dead(d),
        }
    }

    /// Notes whether a choice with more detours than the best may be cheaper than it.
    fn passed_over(&mut self, detours: usize, cycles: f64) {
        let Some(best) = self.best.first() else { return };
        let cheaper = work::grade(cycles) < work::grade(best.solution.estimate.cycles);
        self.others |= cheaper && detours > best.wants.len();
    }

    /// The first MatMul that is not decided.
    pub(super) fn undecided(&self, state: &State) -> Option<&'a Op> {
        let is_matmul = |op: &&Op| self.p.specs[op.spec].kind == SpecKind::MatMul;
        let mut matmuls = self.ops.iter().filter(is_matmul);
        matmuls.find(|op| !state.assignments.contains_key(&op.spec))
    }

    /// Branches over the ways to implement a MatMul.
    fn decide(&mut self, state: &State, op: &Op) {
        let options = matmul::options(self.p, self.table, op, &state.known);
        let options = match options {
            Ok(options) => options,
            Err(d) => return self.dead(d),
        };
        for o in options {
            let mut next = state.clone();
            // No leaf below is cheaper than its multiplications and detours.
            let work = cost::matmul(self.table, &o.choice).unwrap_or_default();
            next.bound.add(self.costing.least_of(&work, o.detours, op.trips));
            for (t, tv) in self.tensors(op.spec).into_iter().zip(&o.layouts) {
                if let Some(tv) = tv {
                    next.known.entry(self.buffer(t)).or_insert_with(|| tv.clone());
                }
            }
            next.wants.extend(o.wants);
            let how = Assignment::MatMul(o.choice);
            next.assignments.insert(op.spec, Assigned { how, work });
            self.branch(next);
        }
    }

    /// Branches over the ways in which a copy spreads a register tensor.
    fn spread_by(&mut self, state: &State, op: &Op, t: TensorId) {
        let Some((src, dst)) = shared::ends(self.p, op) else { return };
        let list = match self.candidates(op, src, dst, &state.known) {
            Ok(list) => list,
            Err(d) => return self.dead(d),
        };
        let mut any = false;
        for c in list.iter() {
            let tv = if t == src { &c.f } else { &c.g };
            // Every thread must own some of it.
            let Ok(tv) = tv::replicated(tv, op.group.threads) else { continue };
            any = true;
            let mut next = state.clone();
            next.known.insert(self.buffer(t), tv);
            next.anchors.push(op.spec);
            self.branch(next);
        }
        if !any {
            let d = self.error(
                Code::NoAtom,
                op.spec,
                format!("{} threads cannot share the tensor evenly", op.group.threads),
                "choose a number of threads that divides the tensor's vectors",
            );
            self.dead(d);
        }
    }

    fn dead(&mut self, d: Box<Diagnostic>) {
        self.searched.dead += 1;
        let first = self.failure.get_or_insert_with(|| d.clone());
        self.unanimous &= (first.code, first.span, &first.message) == (d.code, d.span, &d.message);
    }

    /// The copy that spreads an open register tensor: of those with global memory the largest, else
    /// of all.
    fn anchor(&self, known: &Known) -> Option<(&'a Op, TensorId)> {
        let mut best: Option<((bool, i64), &Op, TensorId)> = None;
        for op in self.ops {
            if !matches!(self.p.specs[op.spec].kind, SpecKind::Move | SpecKind::Accumulate(_)) {
                continue;
            }
            let Some((src, dst)) = shared::ends(self.p, op) else { continue };
            let (t, memory) = match (self.rf(src), self.rf(dst)) {
                (true, false) => (src, dst),
                (false, true) => (dst, src),
                _ => continue,
            };
            if known.contains_key(&self.buffer(t)) {
                continue;
            }
            let size = ops::whole(self.p, t).map_or(0, |l| l.size());
            let bits = size.saturating_mul(self.p.scalar_of(t).bits());
            let global = self.p.buffer_of(memory).is_global();
            if best.as_ref().is_none_or(|(rank, ..)| (global, bits) > *rank) {
                best = Some(((global, bits), op, t));
            }
        }
        best.map(|(_, op, t)| (op, t))
    }

    /// A register tensor of which nothing is known, and a layout for it.
    fn loose(&self, known: &Known) -> Option<(TensorId, Layout)> {
        let all = self.ops.iter().flat_map(|op| self.tensors(op.spec));
        let t = all.into_iter().find(|t| self.rf(*t) && !known.contains_key(&self.buffer(*t)))?;
        let whole = ops::whole(self.p, self.p.buffer_of(t).tensor)?;
        let threads = self.held.get(&self.buffer(t))?.threads;
        Some((t, tv::spread_evenly(&whole, threads)?))
    }
}
