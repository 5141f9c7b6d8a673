//! Spreads known layouts of register tensors through operations between registers, until nothing
//! new follows ([`Solver::spread`]).

use super::solver::Solver;
use super::state::State;
use super::{pointwise, views};
use crate::access::ops::Known;
use crate::access::ops::Op;
use carbyne_ir::ast::SpecKind;
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{SpecId, TensorId};

impl Solver<'_> {
    /// The layouts that the text states.
    pub(super) fn pins(&self) -> Known {
        let mut known = Known::new();
        for op in self.ops {
            for t in self.tensors(op.spec) {
                let dist = self.p.tensors[t].dist.as_ref();
                if let Some(tv) = dist.and_then(|d| d.tv.as_ref()).and_then(|tv| tv.to_fixed()) {
                    known.insert(self.buffer(t), tv);
                }
            }
        }
        known
    }

    /// The thread-value layout of a register tensor, or of a part of one.
    pub(super) fn layout_of(&self, known: &Known, t: TensorId) -> Option<Layout> {
        let whole = known.get(&self.buffer(t))?;
        if !views::is_part(self.p, t) {
            return Some(whole.clone());
        }
        let key = (t, whole.clone());
        if let Some(found) = self.of_parts.borrow().get(&key) {
            return found.clone();
        }
        let found = views::part(self.p, t, whole).ok().map(|(tv, _)| tv);
        self.of_parts.borrow_mut().insert(key, found.clone());
        found
    }

    /// Takes down the layout of a register tensor, or of the one that this is a part of; whether
    /// that is new.
    fn learn(&self, known: &mut Known, t: TensorId, tv: Layout) -> bool {
        if known.contains_key(&self.buffer(t)) {
            return false;
        }
        let whole = match views::is_part(self.p, t) {
            true => views::whole(self.p, t, &tv),
            false => Some(tv),
        };
        whole.is_some_and(|tv| known.insert(self.buffer(t), tv).is_none())
    }

    /// Spreads what is known as far as it goes. A Move to registers of a stated layout may be an
    /// exchange: it says nothing of its source while a MatMul may.
    pub(super) fn spread(&self, state: &mut State) {
        let open = self.undecided(state).is_some();
        let mut progress = true;
        while progress {
            progress = false;
            for op in self.ops {
                progress |= self.spread_through(op, open, &mut state.known);
            }
        }
    }

    /// Spreads what is known of the operands of an operation between registers; whether anything is
    /// new. `open`: a MatMul may still say something.
    fn spread_through(&self, op: &Op, open: bool, known: &mut Known) -> bool {
        let spec = &self.p.specs[op.spec];
        let Some(&out) = spec.outputs.first() else { return false };
        if !self.tensors(op.spec).iter().all(|t| self.rf(*t)) {
            return false;
        }
        match spec.kind {
            kind if kind.is_pointwise() => {
                let forward = self.spread_forward(op.spec, out, known);
                let stated = !self.p.buffer_of(out).open;
                if open && stated && spec.kind == SpecKind::Move {
                    return forward;
                }
                forward | self.spread_back(op.spec, out, known)
            }
            SpecKind::Reduction(_) => {
                let input = spec.input_tensors().next().and_then(|t| self.layout_of(known, t));
                let (Some(tv), None) = (input, self.layout_of(known, out)) else { return false };
                let Ok(p) = pointwise::reduced(self.p, op.spec, &tv) else { return false };
                known.insert(self.buffer(out), p.tv);
                true
            }
            _ => false,
        }
    }

    /// From an input of all modes to the output.
    fn spread_forward(&self, id: SpecId, out: TensorId, known: &mut Known) -> bool {
        if self.layout_of(known, out).is_some() {
            return false;
        }
        let full = self.p.specs[id].input_tensors().find_map(|t| {
            let kept = pointwise::kept(self.p, t, out)?;
            if kept.iter().all(|k| *k) { self.layout_of(known, t) } else { None }
        });
        full.is_some_and(|tv| self.learn(known, out, tv))
    }

    /// From the output to inputs, of all modes or projected.
    fn spread_back(&self, id: SpecId, out: TensorId, known: &mut Known) -> bool {
        let Some(tv) = self.layout_of(known, out) else { return false };
        let whole = pointwise::whole(self.p, id);
        let mut progress = false;
        for t in self.p.specs[id].input_tensors() {
            if self.layout_of(known, t).is_some() {
                continue;
            }
            let full = pointwise::kept(self.p, t, out).is_some_and(|k| k.iter().all(|k| *k));
            let follows = if full {
                Some(tv.clone())
            } else {
                pointwise::operand(self.p, t, out, &tv, whole).ok().map(|p| p.tv)
            };
            if let Some(tv) = follows {
                progress |= self.learn(known, t, tv);
            }
        }
        progress
    }
}
