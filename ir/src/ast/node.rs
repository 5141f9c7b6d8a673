//! Ids of statements.
//!
//! Invariant: like spans, ids never take part in equality, and no text holds them. They are unique
//! in a process and not the same from one run to the next, so that no output may depend on their
//! order.

use std::sync::atomic::{AtomicU64, Ordering};

/// Names a statement for as long as the process lives, whatever happens to the tree around it.
///
/// `==` holds between all ids, so that two modules that say the same are equal: [`NodeId::same`]
/// compares them, and [`NodeKey`] is one that maps and sets can hold. Copies of a statement have
/// its id; those that are to stand in one module with it get their own from
/// [`super::Module::separate`].
#[derive(Copy, Clone)]
pub struct NodeId(NodeKey);

/// A [`NodeId`] that compares: the key of a map.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeKey(u64);

impl NodeId {
    /// An id that no statement has.
    pub fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NodeId(NodeKey(NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Whether both name the same statement, which `==` does not ask.
    pub fn same(self, other: NodeId) -> bool {
        self.0 == other.0
    }

    /// The same id as a key that compares.
    pub fn key(self) -> NodeKey {
        self.0
    }
}

impl std::fmt::Debug for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "n{}", self.0.0)
    }
}

impl PartialEq for NodeId {
    fn eq(&self, _: &NodeId) -> bool {
        true
    }
}

impl Eq for NodeId {}
