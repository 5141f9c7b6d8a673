//! [`Sync`] is the synchronization that is written before and after one statement of a body.

use carbyne_ir::ast::NodeKey;

/// What is put at a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sync {
    /// Before the statement: the asynchronous copies since the last commit are one group.
    pub commit_before: bool,
    /// Before the statement, after that: a wait that leaves so many groups in flight.
    pub wait: Option<i64>,
    /// Before the statement, after the wait: a barrier.
    pub barrier: Option<Barrier>,
    /// After the statement: the asynchronous copies since the last commit are one group.
    pub commit: bool,
    /// After the statement, after that: a wait for all groups.
    pub drain: bool,
    /// What the arrival that the statement is becomes, where it does not stay that of asynchronous
    /// copies.
    pub arrival: Option<Arrival>,
    /// The count of the initialization that the statement is.
    pub count: Option<i64>,
}

/// Who waits at a barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Barrier {
    /// The block, all of which comes there.
    Block,
    /// These threads, which are those that come there.
    Here(String),
    /// These threads, of those that come there.
    Of {
        /// The kernel's blocks.
        blocks: String,
        /// The threads.
        threads: String,
    },
}

/// What threads tell by their arrival at an mbarrier.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// What they wrote.
    Plain,
    /// That, and apart from it what their asynchronous copies did.
    Both,
}

/// Where synchronization is put: at a statement that has specs in it, or that synchronizes.
pub(crate) type Place = NodeKey;
