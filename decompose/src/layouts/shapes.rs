//! Checks operations before the search, by the memories and shapes of their operands, whatever
//! their layouts will be: it asks for detours that are needed in any case, and refuses what has no
//! body ([`Solver::shapes`]).

use super::copy::{self, Side};
use super::solver::{Fallible, Solver};
use super::want::Want;
use super::{matmul, shared, views};
use crate::access::ops;
use crate::access::ops::Op;
use carbyne_ir::ast::SpecKind;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{SpecId, TensorId};

impl Solver<'_> {
    /// Threads must be numbered as the hardware numbers them.
    pub(super) fn check_block(&self) -> Fallible<()> {
        let whole = self.p.specs[self.kernel]
            .exec
            .and_then(|e| self.p.threads[e.threads].concat().to_fixed());
        if whole.is_some_and(|l| (0..l.size()).all(|i| l.at(i) == i)) {
            return Ok(());
        }
        Err(self.error(
            Code::NoStrategy,
            self.kernel,
            "tile operations need threads in the hardware's order".to_owned(),
            "declare the block's threads as `[n].thread`, or first mode fastest",
        ))
    }

    /// Detours that follow from where the operands lie, whatever their layouts are.
    pub(super) fn shapes(&self) -> Fallible<Vec<Want>> {
        let mut wants = vec![];
        for op in self.ops {
            self.has_decomposition(op.spec)?;
            let singles = self.broadcast_singles(op.spec);
            if singles.is_empty() {
                self.no_single(op.spec)?;
                wants.extend(self.shape(op)?);
            }
            wants.extend(singles);
        }
        Ok(wants)
    }

    /// Refuses what no body can be found for.
    fn has_decomposition(&self, id: SpecId) -> Fallible<()> {
        let spec = &self.p.specs[id];
        let (kind, n) = (spec.kind, spec.outputs.len());
        if n != 1 {
            let message = format!("a {kind} of {n} outputs has no decomposition");
            let help = "write its body, or a spec for each output";
            return Err(self.error(Code::NotDecomposed, id, message, help));
        }
        if spec.valid.is_some() {
            let message = "a Move of the whole block reads all of its source".to_owned();
            let help = "write its body, with `valid=` at the Move of each thread";
            return Err(self.error(Code::NotDecomposed, id, message, help));
        }
        if self.tensors(id).iter().any(|t| self.p.tensors[*t].map.is_some()) {
            let message = format!("a group of threads executes this {kind} of a box");
            let help = "let one thread execute it: `<<<#one>>>`, where `#one = \
                        #cta.tile([32])[0].elect()`";
            return Err(self.error(Code::NotDecomposed, id, message, help));
        }
        let unknown = |t: &TensorId| ops::whole(self.p, *t).is_none();
        if let Some(t) = self.tensors(id).into_iter().find(unknown) {
            let message = format!("the extents of {} are not known", self.p.tensor_name(t));
            let help = "use a loop over tiles of known extents: `%A.tile([64,32])[@i, k]`";
            return Err(self.error(Code::NotDecomposed, id, message, help));
        }
        Ok(())
    }

    /// Whether an operand is one element in memory.
    fn is_single(&self, t: TensorId) -> bool {
        self.p.tensors[t].levels.is_empty() && !self.rf(t)
    }

    /// Single elements that are broadcast to an output that is none.
    fn broadcast_singles(&self, id: SpecId) -> Vec<Want> {
        let spec = &self.p.specs[id];
        if !spec.kind.is_pointwise() || spec.outputs.iter().any(|t| self.is_single(*t)) {
            return vec![];
        }
        let singles = spec.input_tensors().enumerate().filter(|(_, t)| self.is_single(*t));
        singles.map(|(input, _)| Want::Single { spec: id, input }).collect()
    }

    /// Refuses a single element as an operand of the whole block.
    fn no_single(&self, id: SpecId) -> Fallible<()> {
        let single = self.tensors(id).into_iter().find(|t| self.is_single(*t));
        let Some(t) = single else { return Ok(()) };
        let (name, kind) = (self.p.tensor_name(t), self.p.specs[id].kind);
        let message =
            format!("{name} is a single element, and the whole block executes this {kind}");
        let help = "let one thread execute it, `#cta[0]`, or write a tile, `.tile([1])[i]`";
        Err(self.error(Code::NotDecomposed, id, message, help))
    }

    /// The detour that an operation needs.
    fn shape(&self, op: &Op) -> Fallible<Option<Want>> {
        let spec = &self.p.specs[op.spec];
        let inside = self.tensors(op.spec).iter().all(|t| self.rf(*t));
        // What lies in memory is brought to registers, where parts of others can stay.
        let direct = inside || spec.kind != SpecKind::Move;
        if self.has_parts(op.spec) && !(direct && self.takes_parts(op.spec)) {
            return Ok(Some(Want::Own(op.spec)));
        }
        if let SpecKind::MatMul | SpecKind::MatMulSet = spec.kind
            && let Some(input) = self.overwritten(op.spec)
        {
            return Ok(Some(Want::Rearranged { spec: op.spec, input, by_lanes: None }));
        }
        match spec.kind {
            SpecKind::Move => self.shape_of_copy(op, inside),
            SpecKind::MatMulSet => Ok(Some(Want::FromZero(op.spec))),
            SpecKind::MatMul
                if (inside || self.is_described(op))
                    && spec.acc.is_some_and(|a| a != self.p.scalar_of(spec.outputs[0])) =>
            {
                Ok(Some(Want::Converted(op.spec)))
            }
            SpecKind::MatMul if !inside && self.is_described(op) => Ok(None),
            SpecKind::Unary(_)
            | SpecKind::Binary(_)
            | SpecKind::Select
            | SpecKind::Reduction(_)
            | SpecKind::MatMul
            | SpecKind::Init => Ok((!inside).then_some(Want::ThroughRegisters(op.spec))),
            SpecKind::Accumulate(_) => self.shape_of_accumulation(op),
            SpecKind::Shfl(_) => {
                let help = "let warps exchange registers of their lanes: `#cta.tile([32])` and \
                            `.mine`; or write a Move between two thread-value layouts";
                Err(self.by_hand(op.spec, help))
            }
            SpecKind::Generic => {
                let help = "write its body: only the body defines what a Spec computes";
                Err(self.by_hand(op.spec, help))
            }
            kind => {
                let help = format!("write its body: the solver knows none for a {kind}");
                Err(self.by_hand(op.spec, &help))
            }
        }
    }

    /// The detour that an accumulation into memory needs: it takes registers of the output's shape.
    fn shape_of_accumulation(&self, op: &Op) -> Fallible<Option<Want>> {
        let Some((src, dst)) = shared::ends(self.p, op) else { return Ok(None) };
        if self.rf(dst) {
            let help = "write the function of both instead: `%sum = %sum + %x`";
            return Err(self.by_hand(op.spec, help));
        }
        let size = |t| ops::whole(self.p, t).map(|l| l.size());
        let direct = self.rf(src) && size(src) == size(dst);
        Ok((!direct).then_some(Want::ThroughRegisters(op.spec)))
    }

    /// The detour that a Move needs.
    fn shape_of_copy(&self, op: &Op, inside: bool) -> Fallible<Option<Want>> {
        let Some((src, dst)) = shared::ends(self.p, op) else { return Ok(None) };
        let size = |t| ops::whole(self.p, t).map(|l| l.size());
        if !inside && size(src) != size(dst) {
            return Ok(Some(Want::Broadcast(op.spec)));
        }
        if self.rf(src) || self.rf(dst) {
            return Ok(None);
        }
        let (from, to, n) = (Side::Memory, Side::Memory, op.group.threads);
        match copy::candidates(self.p, op.spec, from, to, self.table, n) {
            Ok(_) => Ok(None),
            Err(rejected) if self.p.specs[op.spec].atom.is_some() => {
                Err(self.unmatched(op.spec, &rejected))
            }
            Err(_) => Ok(Some(Want::ThroughRegisters(op.spec))),
        }
    }

    /// Whether an instruction reads the factors of a MatMul where they lie.
    pub(super) fn is_described(&self, op: &Op) -> bool {
        let any = || !matmul::described(self.p, self.table, op, &self.pins()).is_empty();
        self.p.specs[op.spec].kind == SpecKind::MatMul && any()
    }

    fn by_hand(&self, id: SpecId, help: &str) -> Box<Diagnostic> {
        let message =
            format!("a {} of the whole block has no decomposition", self.p.specs[id].kind);
        self.error(Code::NotDecomposed, id, message, help)
    }

    /// Whether operands are parts of tensors in registers.
    fn has_parts(&self, id: SpecId) -> bool {
        self.tensors(id).into_iter().any(|t| views::is_part(self.p, t))
    }

    /// Whether each thread can do it on the registers that it has, whatever they are parts of.
    fn takes_parts(&self, id: SpecId) -> bool {
        let spec = &self.p.specs[id];
        let mut pairs =
            spec.outputs.iter().flat_map(|o| spec.input_tensors().map(move |i| (i, *o)));
        spec.kind.is_elementwise() && !pairs.any(|(i, o)| views::overlap(self.p, i, o))
    }

    /// The first input in registers that the spec writes.
    fn overwritten(&self, id: SpecId) -> Option<usize> {
        let spec = &self.p.specs[id];
        let written = |t: TensorId| {
            self.rf(t) && spec.outputs.iter().any(|o| self.buffer(*o) == self.buffer(t))
        };
        spec.input_tensors().position(written)
    }
}
