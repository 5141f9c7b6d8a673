//! Checks the `lane=` of a Shfl, which exchanges registers between the threads of a group, for
//! V0218: a constant lane, distance or mask stays within the group. The hardware would ignore the
//! high bits of a larger number.

use super::state::Verifier;
use crate::ast::{ShflOp, SpecKind};
use crate::diag::{Code, Diagnostic};
use crate::program::SpecId;

impl Verifier<'_> {
    /// V0218 for the `lane=` of a Shfl: it must be a thread of the group, or a distance or mask
    /// that leads to one. The hardware ignores the high bits of larger numbers (PTX ISA, Data
    /// Movement and Conversion Instructions: shfl.sync).
    pub(super) fn lane(&mut self, id: SpecId) {
        let spec = &self.p.specs[id];
        let (SpecKind::Shfl(op), Some(lane), Some(exec)) = (spec.kind, spec.lane(), spec.exec)
        else {
            return;
        };
        let threads = &self.p.threads[exec.threads];
        let group = threads.levels.last().filter(|_| threads.each.is_none());
        let Some(n) = group.and_then(|l| l.to_fixed()).map(|l| l.size()) else { return };
        if (0..n).contains(&lane) {
            return;
        }
        let what = match op {
            ShflOp::Bfly => "mask",
            ShflOp::Up | ShflOp::Down => "distance",
            ShflOp::Idx => "lane",
        };
        let text = format!("{} with {what} {lane}, but groups have {n} threads", spec.kind);
        self.errors.push(
            Diagnostic::new(Code::Attribute, spec.span, text)
                .label(format!("the {what} exceeds the group"))
                .help(format!("write a `lane=` from 0 to {}", n - 1)),
        );
    }
}
