//! Checks views of other blocks' shared memory, `%x.peer(rank)`, for V0231: the rank names a block
//! of the cluster, and no spec with a body has such a view as operand. Leaves and synchronization
//! statements may have one. The `bar=` of a copy is never in another block.

use super::state::{Around, Verifier};
use crate::diag::Code;
use crate::expr::Dim;
use crate::program::{SpecId, TensorId};
use crate::span::Span;

impl Verifier<'_> {
    /// Refuses views of other blocks as operands of specs with a body.
    pub(super) fn peers(&mut self, id: SpecId) {
        let spec = &self.p.specs[id];
        let mut all = spec.input_tensors().chain(spec.outputs.iter().copied());
        let Some(t) = all.find(|t| self.p.tensors[*t].peer.is_some()) else { return };
        if spec.body.is_some() {
            let message =
                format!("an operand of a body, {}, is in another block", self.p.tensor_name(t));
            self.error(Code::Peer, spec.span, message, "use `.peer` in the leaf that accesses it");
        }
    }

    /// Checks the operands of a leaf.
    pub(super) fn in_cluster(&mut self, id: SpecId, around: &Around) {
        let spec = &self.p.specs[id];
        for t in spec.input_tensors().chain(spec.outputs.iter().copied()).chain(spec.bar) {
            self.rank(t, spec.span, around);
        }
        if let Some(t) = spec.bar.filter(|t| self.p.tensors[*t].peer.is_some()) {
            let message =
                format!("`bar=` names {}, which is in another block", self.p.tensor_name(t));
            let help =
                "remove `.peer`: a copy signals an mbarrier in the block that receives the data";
            self.error(Code::Peer, spec.span, message, help);
        }
    }

    /// Checks that a rank is in the cluster.
    pub(super) fn rank(&mut self, t: TensorId, span: Span, around: &Around) {
        let Some(rank) = self.p.tensors[t].peer else { return };
        let Some(n) = self.p.cluster_size(around.kernel) else { return };
        let (lo, hi) = self.p.arena.range(rank);
        let inside = lo.is_some_and(|lo| lo >= 0) && hi.is_some_and(|hi| hi < n);
        if !inside {
            let shown = self.p.arena.display(rank);
            let message = format!("`.peer({shown})` may exceed the {n} blocks of the cluster");
            let help = match rank {
                Dim::Const(_) => format!("write a rank from 0 to {}", n - 1),
                Dim::Expr(_) => format!("bound the rank: `({shown}) % {n}`, or a loop variable"),
            };
            self.error(Code::Peer, span, message, &help);
        }
    }
}
