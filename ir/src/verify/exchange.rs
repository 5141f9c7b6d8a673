//! Exchanges of registers between the threads of a group.

use super::state::Verifier;
use crate::ast::SpecKind;
use crate::diag::{Code, Diagnostic};
use crate::program::SpecId;

impl Verifier<'_> {
    /// V0218 for the `lane=` of a Shfl: a thread of the group, or a distance or mask that leads to
    /// one. Hardware takes the low bits of what is larger (PTX ISA, Data Movement and Conversion
    /// Instructions: shfl.sync).
    pub(super) fn lane(&mut self, id: SpecId) {
        let spec = &self.p.specs[id];
        let (SpecKind::Shfl(_), Some(lane), Some(exec)) = (spec.kind, spec.lane(), spec.exec)
        else {
            return;
        };
        let threads = &self.p.threads[exec.threads];
        let group = threads.levels.last().filter(|_| threads.each.is_none());
        let Some(n) = group.and_then(|l| l.to_fixed()).map(|l| l.size()) else { return };
        if (0..n).contains(&lane) {
            return;
        }
        let text = format!("{} with lane {lane} in groups of {n} threads", spec.kind);
        self.errors.push(
            Diagnostic::new(Code::Attribute, spec.span, text)
                .label("no thread of a group is so far from another")
                .help(format!("write a `lane=` from 0 to {}", n - 1)),
        );
    }
}
