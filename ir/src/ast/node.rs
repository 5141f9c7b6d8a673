//! Defines [`NodeId`], the id of a statement. With ids, a report or a plan refers to a statement of
//! the syntax tree, and a program to the statements from which it was made, also after the tree was
//! rewritten.
//!
//! Invariant: equality ignores ids, as it ignores spans, and texts contain none. Ids are unique in
//! a process but differ between runs, so no output may depend on their order.

use std::sync::atomic::{AtomicU64, Ordering};

/// Identifies a statement as long as the process lives, even if the tree around it changes.
///
/// All ids are equal under `==`, so that modules with equal text are equal. [`NodeId::same`]
/// compares ids, and [`NodeKey`] can be the key of a map. A copy of a statement has its id;
/// [`super::Module::separate`] gives copies in one module ids of their own.
#[derive(Copy, Clone)]
pub struct NodeId(NodeKey);

/// The comparable form of a [`NodeId`], for keys of maps.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeKey(u64);

impl NodeId {
    /// An id that no statement has.
    pub fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NodeId(NodeKey(NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Whether both identify one statement; `==` is always true.
    pub fn same(self, other: NodeId) -> bool {
        self.0 == other.0
    }

    /// The comparable form.
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
