//! Chooses the synchronization statements that a probe (a test program that executes one atom)
//! needs around an atom with asynchronous results, for example `wgmma.fence` before it and
//! `wgmma.commit` and `wgmma.wait` after it. `bulk.rs` writes those of bulk copies.

use crate::atom::{Atom, Visibility};
use carbyne_ir::ast::{Expr, Stmt, SyncOp};
use carbyne_ir::build::statements::sync;

/// The statements of a block around the atom.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Protocol {
    /// Executed by all threads after they have loaded the operands. A barrier follows.
    pub(super) brought: Vec<Stmt>,
    /// Executed by all threads directly before the atom.
    pub(super) before: Vec<Stmt>,
    /// Executed by all threads directly after the atom. A barrier follows.
    pub(super) after: Vec<Stmt>,
}

impl Protocol {
    /// The statements that the visibility of the atom needs.
    pub(super) fn for_atom(atom: &Atom) -> Self {
        let none = Protocol::default();
        let plain = |op| sync(op, None, None);
        // Waits until no group is in flight.
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
            // `bulk` writes the statements of these.
            Visibility::Mbarrier | Visibility::BulkGroup => none,
        }
    }
}
