//! Between the text of tiles and the search: when what happens may happen.
//!
//! A text says what happens, in order. [`pipeline`] writes loops with `stages=` as loops in which
//! copies of later iterations run ahead, through rings of buffers, and [`lifetime`] lets buffers
//! that are used one after the other share their place; the meaning stays that of the order. Loops
//! whose copies other threads execute than use them become a loop for each role, which hand stages
//! over ([`roles`]). How closely iterations can follow each other [`modulo`] finds, and [`rotate`]
//! lets bodies begin with products of the next iteration. Once instructions and layouts are known,
//! [`order`] derives from dependences what must stand between accesses.
//!
//! The model of a body: [`tree`] numbers its statements and knows loops and conditions around them;
//! [`access`] and [`drift`] say which elements a leaf touches in which iterations; [`depend`]
//! compares accesses; [`paths`] says what is passed between two of them. The plan: [`gaps`] says
//! where a barrier or a wait may stand, [`choice`] which places are the cheapest ([`cover`]),
//! [`groups`] where copies are committed; [`planner`] holds what these share.

mod access;
pub(crate) mod apart;
pub(crate) mod bulk;
mod choice;
pub(crate) mod clusters;
pub(crate) mod consumers;
mod cover;
mod depend;
mod drift;
mod facts;
mod gaps;
mod groups;
pub(crate) mod lifetime;
pub(crate) mod modulo;
mod order;
mod paths;
pub(crate) mod pipeline;
mod planner;
mod refusal;
pub(crate) mod roles;
pub(crate) mod rotate;
mod slices;
pub(crate) mod stores;
mod tree;
mod turns;
mod waits;

use carbyne_ir::ast::NodeKey;

pub(crate) use order::plan;

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
