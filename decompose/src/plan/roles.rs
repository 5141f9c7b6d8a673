//! [`Roles`] records the roles that rewrites have made of a kernel, for the planner of
//! synchronization and for the rewrite that adds a producer.

use carbyne_ir::ast::{Expr, NodeKey, Stmt};
use std::collections::BTreeSet;

/// The roles that rewrites have made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roles {
    /// The rings that roles hand over.
    pub(crate) handed: Vec<Handed>,
    /// The loops of roles.
    pub(crate) loops: BTreeSet<NodeKey>,
    /// The statements of all roles but the first of a loop. No barrier may be put before one, as
    /// the roles before it may still run.
    pub(crate) beside: BTreeSet<NodeKey>,
    /// The copies that producers execute in the end.
    pub(crate) producers: Vec<Producer>,
}

/// A loop whose copies are boxes, of a kernel that is to have a producer: what becomes of it in the
/// end.
#[derive(Clone, Debug)]
pub(crate) struct Producer {
    /// Names of the blocks and of their threads.
    pub(crate) exec: (String, String),
    /// How many groups consume, in turn.
    pub(crate) consumers: i64,
    /// How many blocks of a cluster copy for each other, and a name for their numbers.
    pub(crate) cluster: (i64, String),
    /// Names of the tensor maps that it copies by.
    pub(crate) maps: Vec<String>,
    /// The mbarriers of full stages and of empty ones.
    pub(crate) full: String,
    pub(crate) empty: String,
    /// The warps of the block, the thread that asks for boxes, and those that say that a stage is
    /// empty.
    pub(crate) warps: String,
    pub(crate) lead: String,
    pub(crate) leads: String,
    /// Tensors that are copied, and the rings.
    pub(crate) sources: Vec<String>,
    pub(crate) rings: Vec<String>,
    /// The loops of the copies.
    pub(crate) stmts: Vec<Stmt>,
    /// The variable of the loop around, and how many of its iterations came before.
    pub(crate) outer: Option<(String, Expr)>,
}

/// Rings that the same roles fill, and the same ones use.
#[derive(Clone, Debug)]
pub(crate) struct Handed {
    /// The allocations.
    pub(crate) rings: BTreeSet<NodeKey>,
    /// The statement that initializes the mbarriers of full stages.
    pub(crate) init: NodeKey,
    /// Where who fills the stages arrives.
    pub(crate) arrivals: Vec<Filling>,
}

/// A role that fills stages.
#[derive(Clone, Debug)]
pub(crate) struct Filling {
    /// Where it says that a stage is full.
    pub(crate) at: NodeKey,
    /// The statement of the role.
    pub(crate) within: NodeKey,
    /// How many threads it has.
    pub(crate) threads: i64,
}

impl Roles {
    /// Whether an allocation is that of a ring that is handed over.
    pub(crate) fn is_ring(&self, allocation: NodeKey) -> bool {
        self.handed.iter().any(|h| h.rings.contains(&allocation))
    }
}
