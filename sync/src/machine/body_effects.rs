//! Tells two properties of the body of a loop or a branch without following it: whether some
//! statement may make threads wait, and whether its iterations cannot matter to the proof, so that
//! one of them is enough.

use crate::plan::{How, Plan};
use carbyne_ir::expr::Dim;
use carbyne_ir::program::{Program, Stmt, StmtKind};

/// The effects of a list of statements on the threads that execute it.
#[derive(Copy, Clone, Debug)]
pub(super) struct BodyEffects {
    /// Whether some statement may make threads wait.
    pub(super) may_wait: bool,
    /// Whether the iterations of a loop over this body are all alike and have no effect on the
    /// proof: no thread waits, no access can be in a pair, and nothing depends on the iteration.
    pub(super) is_silent: bool,
}

impl BodyEffects {
    pub(super) fn of(p: &Program, plan: &Plan, stmts: &[Stmt]) -> BodyEffects {
        let may_wait = |s: &Stmt| match &s.kind {
            StmtKind::Barrier(_) | StmtKind::Sync(_) => true,
            StmtKind::Spec(id) => plan.leaves.get(id).is_some_and(|l| match &l.how {
                How::Atom { places, .. } => places.len() > 32,
                How::Bulk(_) => true,
                How::Meaning => false,
            }),
            _ => false,
        };
        let constant = |d: &Dim| matches!(d, Dim::Const(_));
        let is_silent = |s: &Stmt| match &s.kind {
            StmtKind::Indices(_) | StmtKind::Element { .. } | StmtKind::Allocate(_) => true,
            StmtKind::For { start, end, also, .. } => {
                constant(start) && constant(end) && also.is_empty()
            }
            StmtKind::Spec(id) => {
                let exec = p.specs[*id].exec;
                let fixed = exec.is_some_and(|e| p.vars_in(p.threads[e.threads].offset).is_empty());
                let matters = match plan.leaves.get(id) {
                    Some(leaf) => leaf.matters,
                    None => p.specs[*id].body.is_none(),
                };
                fixed && !matters
            }
            StmtKind::If { .. }
            | StmtKind::Step { .. }
            | StmtKind::Barrier(_)
            | StmtKind::Sync(_) => false,
        };
        BodyEffects {
            may_wait: p.walk(stmts).stmts().any(may_wait),
            is_silent: p.walk(stmts).stmts().all(is_silent),
        }
    }
}
