//! Checks mbarriers, tensor maps, and the statements that use them.
//!
//! - V0228: a synchronization statement has the operands that its operation takes: one mbarrier,
//!   several, or a tensor map; and `after=` names one 32-bit register of the thread.
//! - V0229: mbarriers are in shared memory, and only synchronization statements and the `bar=` of a
//!   copy use them.
//! - V0230: only leaves that copy have boxes of a tensor map as operands.
//! - V0227: the enclosing spec names the mbarrier, and the register of `after=`, that a statement
//!   uses.
//! - V0213, V0220: if one elected thread executes a statement, its effect does not depend on which
//!   thread it is.

use super::state::{Around, Verifier};
use crate::ast::{SpecKind, SyncTensor};
use crate::diag::{Code, Diagnostic};
use crate::expr::Dim;
use crate::program::{Buffer, SpecId, Sync};
use crate::scalar::Scalar;
use crate::span::Span;

impl Verifier<'_> {
    pub(super) fn sync(&mut self, sync: &Sync, span: Span, around: &Around) {
        self.elected(sync, span, around);
        self.register_before(sync, span, around);
        let Some(t) = sync.tensor else { return };
        let buffer = self.p.buffer_of(t);
        let name = self.p.tensor_name(t);
        if sync.op.signature().tensor == SyncTensor::TensorMap {
            if self.p.tensors[t].map.is_none() {
                let message = format!("`{}` takes a tensor map, found {name}", sync.op);
                let help = "name a tensor map: `%mA = %A.tensormap([128,64])`";
                self.error(Code::SyncOperands, span, message, help);
            }
            return;
        }
        if buffer.scalar != Scalar::Mbarrier {
            let message =
                format!("`{}` takes mbarriers, but {name} has type {}", sync.op, buffer.scalar);
            let help = "name a tensor of type `mbarrier` in SH";
            return self.error(Code::MbarrierAsData, span, message, help);
        }
        if !around.readable.contains(&self.p.tensors[t].buffer) {
            self.errors.push(
                Diagnostic::new(
                    Code::ReadOnly,
                    span,
                    format!(
                        "`{}` uses `%{}`, which the enclosing spec does not name",
                        sync.op, buffer.name
                    ),
                )
                .related(self.p.specs[around.spec].span, "the enclosing spec")
                .help(format!("make `%{}` an input of the enclosing spec", buffer.name)),
            );
        }
        self.rank(t, span, around);
        let n = self.p.tensors[t].concat().size_in(&self.p.arena);
        if sync.op.signature().tensor == SyncTensor::Mbarrier && n.is_ok_and(|n| n != Dim::Const(1))
        {
            let message = format!("`{}` takes one mbarrier, but {name} has several", sync.op);
            let help = format!("index the view, such as `%{}[0]`", buffer.name);
            self.error(Code::SyncOperands, span, message, &help);
        }
    }

    /// V0227, V0228: `after=` names one register of the thread, of 32 bits, that the enclosing spec
    /// may read.
    fn register_before(&mut self, sync: &Sync, span: Span, around: &Around) {
        let Some(t) = sync.after else { return };
        let (buffer, name) = (self.p.buffer_of(t), self.p.tensor_name(t));
        let n = self.p.tensors[t].concat().size_in(&self.p.arena);
        let one = self.p.is_private(t) && n.is_ok_and(|n| n == Dim::Const(1));
        if !one || buffer.scalar.bits() != 32 {
            self.errors.push(
                Diagnostic::new(
                    Code::SyncOperands,
                    span,
                    format!("`after=` takes one register of 32 bits, found {name}"),
                )
                .label(format!("{name} has type {}", buffer.scalar))
                .help(match (buffer.is_per_thread(), self.p.is_private(t)) {
                    (true, false) => {
                        format!("name one register of the thread: `after=%{}.mine[0]`", buffer.name)
                    }
                    (_, true) if buffer.scalar.bits() == 32 => {
                        format!("name one register: `after=%{}[0]`", buffer.name)
                    }
                    _ => "name an element of 32 bits of a tensor in RF: `after=%x[0]`".to_owned(),
                }),
            );
        } else if !around.readable.contains(&self.p.tensors[t].buffer) {
            self.errors.push(
                Diagnostic::new(
                    Code::ReadOnly,
                    span,
                    format!(
                        "`after=` uses `%{}`, which the enclosing spec does not name",
                        buffer.name
                    ),
                )
                .related(self.p.specs[around.spec].span, "the enclosing spec")
                .help(format!("make `%{}` an input of the enclosing spec", buffer.name)),
            );
        }
    }

    /// V0213, V0220: the effect of a statement of an elected thread must not depend on the thread.
    fn elected(&mut self, sync: &Sync, span: Span, around: &Around) {
        let exec = self.p.specs[around.spec].exec;
        let Some(groups) = exec.and_then(|e| self.elects_of(e.threads)) else { return };
        let groups = groups.as_deref();
        if let Some(t) = sync.tensor.filter(|t| self.place_differs(*t, groups)) {
            self.error(
                Code::ExecConfig,
                span,
                super::executors::differs(self.p, t),
                super::executors::SAME_FOR_ALL,
            );
        } else if sync.number.is_some_and(|n| self.differs_in(n, groups)) {
            let message = format!(
                "the number of `{}` depends on the thread, but any thread may be elected",
                sync.op
            );
            self.error(Code::ExecConfig, span, message, super::executors::SAME_FOR_ALL);
        } else if let Some(at) = self.parts(around, groups) {
            let message =
                format!("whether `{}` is executed depends on the elected thread", sync.op);
            let d = Diagnostic::new(Code::Divergent, span, message)
                .related(at, "threads diverge here")
                .help("use a condition with one result for all threads of the group");
            self.errors.push(d);
        }
    }

    /// V0229 for a buffer.
    pub(super) fn mbarriers(&mut self, buffer: &Buffer) {
        if buffer.scalar != Scalar::Mbarrier {
            return;
        }
        if !buffer.is_shared() || buffer.open || buffer.swizzle.is_some() {
            self.error(
                Code::MbarrierAsData,
                buffer.span,
                format!("the mbarriers of `%{}` are not plain shared memory", buffer.name),
                "allocate them in SH, without `?` and without a swizzle",
            );
        }
    }

    /// V0228, V0229 for the `bar=` of a Move.
    pub(super) fn completes_on(&mut self, id: SpecId, around: &Around) {
        let spec = &self.p.specs[id];
        let Some(t) = spec.bar else { return };
        let buffer = self.p.buffer_of(t);
        let name = self.p.tensor_name(t);
        if buffer.scalar != Scalar::Mbarrier {
            let message =
                format!("`bar=` takes an mbarrier, but {name} has type {}", buffer.scalar);
            let help = "name one mbarrier, such as `bar=%full[0]`";
            return self.error(Code::MbarrierAsData, spec.span, message, help);
        }
        let n = self.p.tensors[t].concat().size_in(&self.p.arena);
        if n.is_ok_and(|n| n != Dim::Const(1)) {
            let message = format!("`bar=` takes one mbarrier, but {name} has several");
            let help = format!("index the view, such as `bar=%{}[0]`", buffer.name);
            self.error(Code::SyncOperands, spec.span, message, &help);
        }
        if !around.readable.contains(&self.p.tensors[t].buffer) {
            self.stray(id, t, around, "signals", "an input");
        }
    }

    /// V0230: only leaves copy boxes of a tensor map. Returns whether the operands pass.
    pub(super) fn boxes(&mut self, id: SpecId) -> bool {
        let spec = &self.p.specs[id];
        let mut all = spec.input_tensors().chain(spec.outputs.iter().copied());
        let Some(t) = all.find(|t| self.p.tensors[*t].map.is_some()) else { return true };
        let copies = matches!(spec.kind, SpecKind::Move | SpecKind::Accumulate(_));
        let leaf = copies && spec.body.is_none();
        let name = self.p.tensor_name(t);
        if !leaf {
            let message =
                format!("{name} is a tensor map, but the spec is not a leaf that copies a box");
            let help = "name the tensor itself here, and a box of the map in a Move without a body";
            self.error(Code::TensorMapUse, spec.span, message, help);
            return false;
        }
        if self.p.tensors[t].map.as_ref().is_some_and(|m| m.at.is_none()) {
            let message = format!("{name} is a tensor map, but the copy needs a box of the map");
            self.error(Code::TensorMapUse, spec.span, message, "index it: `%mA[i,j]`");
            return false;
        }
        true
    }

    /// V0229 for the operands of a spec: only a generic spec passes mbarriers to its body.
    pub(super) fn no_mbarriers(&mut self, id: SpecId) {
        let spec = &self.p.specs[id];
        if spec.kind == SpecKind::Generic {
            return;
        }
        let all = spec.input_tensors().chain(spec.outputs.iter().copied());
        let found = all.into_iter().find(|t| self.p.scalar_of(*t) == Scalar::Mbarrier);
        if let Some(t) = found {
            self.error(
                Code::MbarrierAsData,
                spec.span,
                format!(
                    "{} has mbarriers, which {} cannot use",
                    self.p.tensor_name(t),
                    spec.kind.with_article()
                ),
                "use `mbarrier.init`, `mbarrier.arrive` and `mbarrier.wait`",
            );
        }
    }
}
