//! What has to stand around an atom so that its results can be looked at.

use crate::atom::{Atom, Visibility};
use carbyne_ir::ast::{Expr, Stmt, SyncOp};
use carbyne_ir::build::statements::sync;

/// Statements of the block around the atom.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Protocol {
    /// By all threads, once they have brought the operands; a barrier follows.
    pub(super) brought: Vec<Stmt>,
    /// By all threads, right before the atom.
    pub(super) before: Vec<Stmt>,
    /// By all threads, right after the atom; a barrier follows.
    pub(super) after: Vec<Stmt>,
}

impl Protocol {
    /// By when the atom's results are there.
    pub(super) fn of(atom: &Atom) -> Self {
        let none = Protocol::default();
        let plain = |op| sync(op, None, None);
        // None is under way afterwards.
        let all = |op| sync(op, None, Some(Expr::int(0)));
        match atom.visibility {
            Visibility::Immediate => none,
            Visibility::AsyncGroup => {
                Protocol { after: vec![plain(SyncOp::AsyncCommit), all(SyncOp::AsyncWait)], ..none }
            }
            Visibility::WgmmaGroup => Protocol {
                brought: vec![plain(SyncOp::FenceAsync)],
                before: vec![plain(SyncOp::WgmmaFence)],
                after: vec![plain(SyncOp::WgmmaCommit), all(SyncOp::WgmmaWait)],
            },
            // Theirs is in `bulk`.
            Visibility::Mbarrier | Visibility::BulkGroup => none,
        }
    }
}
