//! Defines the data of a loop whose copies are boxes ([`Bulk`]): its rings, the loop around it, and
//! its cluster.

use super::boxes::Boxes;
use carbyne_ir::ast::NodeKey;
use carbyne_ir::program::TensorId;
use std::collections::BTreeMap;

/// A loop whose copies are boxes.
pub(super) struct Bulk {
    pub(super) stages: i64,
    pub(super) start: Option<i64>,
    pub(super) step: i64,
    pub(super) trips: Option<i64>,
    /// The loop that it stands in.
    pub(super) outer: Option<Outer>,
    /// Warps of the block.
    pub(super) warps: i64,
    /// How many groups like the block shall consume what a producer copies; 0 where the block
    /// copies for itself.
    pub(super) consumers: i64,
    /// Names of the blocks and of the block's threads.
    pub(super) exec: (String, String),
    /// The blocks of a cluster that copy for each other, where they do.
    pub(super) cluster: Option<Cluster>,
    pub(super) rings: BTreeMap<NodeKey, Ring>,
    /// The MatMul at the end of an iteration, if it may be left under way.
    pub(super) last: Option<NodeKey>,
}

/// Blocks of a cluster that copy for each other.
pub(super) struct Cluster {
    /// How many they are.
    pub(super) size: i64,
    /// How many clusters there are, and the name of all blocks.
    pub(super) number: i64,
    pub(super) blocks: String,
}

/// A loop around the one whose copies are boxes, which it executes in each iteration.
pub(super) struct Outer {
    pub(super) step: i64,
    pub(super) inner: NodeKey,
    /// How often it executes that one's body, as far as is known: else the bounds of that loop say
    /// it.
    pub(super) turns: Option<i64>,
    /// Whether that is at least once.
    pub(super) turning: bool,
    /// Whether a block executes its own body once at most, and whether every block does so once at
    /// least.
    pub(super) once: bool,
    pub(super) runs: bool,
}

/// A tensor of the loop that becomes a ring.
pub(super) struct Ring {
    /// The copy that fills it.
    pub(super) copy: NodeKey,
    /// What it copies.
    pub(super) from: TensorId,
    pub(super) boxes: Boxes,
    /// Whether each block of the cluster copies a part of it for all of them.
    pub(super) multicast: bool,
    /// Whether what it copies is not read again.
    pub(super) streamed: bool,
}
