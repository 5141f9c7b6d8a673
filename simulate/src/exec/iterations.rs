//! Finds the loop iteration in which an access was made, so that the error about it can say
//! `k = 3, i = 0`.
//!
//! The loop variables of the access that failed are known. For the earlier access of a race, only
//! the number of its statement's execution is known. Therefore the cluster runs again, exactly as
//! before, and the loop variables at this execution are recorded.

use super::converged::{ConvergedSet, Kind};
use super::{Mode, Runner};
use crate::index::LoopValue;
use crate::plan::{Kernel, Node};
use crate::state::GlobalMemory;
use crate::state::clash::Clash;
use carbyne_ir::diag::{Code, Diagnostic};

/// The execution of a statement to find.
pub(super) struct Watch {
    /// The number of the execution.
    serial: u32,
    /// A lane of the executing warps. Values that differ between lanes are omitted if several lanes
    /// execute the statement.
    lane: u8,
    /// The iteration, once found.
    pub(super) found: Option<String>,
}

impl Watch {
    /// The earlier access of a race; none if no statement of a thread made it.
    pub(super) fn of(clash: &Clash) -> Option<Self> {
        (clash.serial > 0).then_some(Watch { serial: clash.serial, lane: clash.lane, found: None })
    }
}

impl<'k> Runner<'k> {
    /// Records the iteration, if this is the execution to find.
    pub(super) fn note_iteration(&mut self, set: &ConvergedSet<'k>) {
        let serial = self.serial;
        let Some(watch) = self.watch.as_mut().filter(|w| w.serial == serial) else { return };
        let lanes = set.mask();
        let thread = lanes.threads().find(|t| t % 32 == usize::from(watch.lane));
        watch.found = Some(iteration(self.kernel, set, &self.env.loops, thread));
    }

    /// Adds the iteration of the converged set to an error.
    pub(super) fn in_iteration(
        &self,
        mut error: Box<Diagnostic>,
        set: &ConvergedSet<'k>,
    ) -> Box<Diagnostic> {
        let accused = self.blocks.iter().find_map(|b| b.accused);
        let thread = accused.map(|(thread, _)| usize::from(thread));
        let at = iteration(self.kernel, set, &self.env.loops, thread);
        error.label = match error.is_labeled() {
            _ if at.is_empty() => error.label,
            false => at,
            true => format!("{}, {at}", error.label),
        };
        error
    }
}

/// Adds the iteration of the earlier access to the error of a race.
pub(super) fn earlier<'k>(
    kernel: &'k Kernel<'k>,
    memory: &[&'k GlobalMemory],
    first: i64,
    mode: Mode,
    clash: &Clash,
    error: &mut Diagnostic,
) {
    if !matches!(error.code, Code::Race | Code::MissingFence) {
        return;
    }
    let Some(watch) = Watch::of(clash) else { return };
    let mut runner = super::runner(kernel, memory, first, mode);
    runner.watch = Some(watch);
    // The run ends with the same error as before.
    drop(runner.run());
    let found = runner.watch.and_then(|w| w.found).filter(|at| !at.is_empty());
    if let (Some(at), Some((_, why))) = (found, error.related.first_mut()) {
        why.push_str(&format!(", {at}"));
    }
}

/// The loop variables at the position of a converged set, outer loops first: `k = 3, i = 0`.
fn iteration(
    kernel: &Kernel<'_>,
    set: &ConvergedSet<'_>,
    loops: &[LoopValue],
    thread: Option<usize>,
) -> String {
    let around = set.frames.windows(2).filter(|f| matches!(f[1].kind, Kind::Loop { .. }));
    let values = around.filter_map(|f| {
        let Some(Node::For { slot, .. }) = f[0].nodes.get(f[0].at) else { return None };
        let value = match loops.get(*slot)? {
            LoopValue::Uniform(value) => *value,
            LoopValue::ByThread(values) => *values.get(thread?)?,
        };
        Some(format!("{} = {value}", kernel.loops.get(*slot)?))
    });
    values.collect::<Vec<_>>().join(", ")
}
