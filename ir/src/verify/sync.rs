//! V0228, V0229, V0227: mbarriers and the statements that use them.

use super::{Around, Verifier};
use crate::ast::{SpecKind, SyncTensor};
use crate::diag::{Code, Diagnostic};
use crate::expr::Dim;
use crate::program::{Buffer, SpecId, Sync};
use crate::scalar::{Memory, Scalar};
use crate::span::Span;

impl Verifier<'_> {
    pub(super) fn sync(&mut self, sync: &Sync, span: Span, around: &Around) {
        let Some(t) = sync.tensor else { return };
        let buffer = self.p.buffer_of(t);
        let name = self.p.tensor_name(t);
        if buffer.scalar != Scalar::Mbarrier {
            let message = format!("`{}` of {name}, which holds {}", sync.op, buffer.scalar);
            let help = "name a tensor of `mbarrier` in SH";
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
        let n = self.p.tensors[t].concat().size_in(&self.p.arena);
        if sync.op.signature().tensor == SyncTensor::Mbarrier && n.is_ok_and(|n| n != Dim::Const(1))
        {
            let message = format!("`{}` takes one mbarrier, {name} holds more", sync.op);
            self.error(Code::SyncOperands, span, message, "index the view: `%full[s]`");
        }
    }

    /// V0229 for a buffer.
    pub(super) fn mbarriers(&mut self, buffer: &Buffer) {
        if buffer.scalar != Scalar::Mbarrier {
            return;
        }
        if buffer.memory != Some(Memory::Sh) || buffer.open || buffer.swizzle.is_some() {
            self.error(
                Code::MbarrierAsData,
                buffer.span,
                format!("the mbarriers of `%{}` do not lie plainly in shared memory", buffer.name),
                "allocate them in SH, without `?` and without a swizzle",
            );
        }
    }

    /// V0229 for the operands of a spec: only a generic one hands mbarriers on.
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
                    "{} holds mbarriers, which no {} touches",
                    self.p.tensor_name(t),
                    spec.kind
                ),
                "use `mbarrier.init`, `mbarrier.arrive` and `mbarrier.wait`",
            );
        }
    }
}
