//! What is said of a kernel.

use carbyne_ir::ast::NodeId;
use carbyne_ir::program::{BufferId, SpecId};
use carbyne_ir::span::Span;

/// A statement of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Where it is in the text.
    pub span: Span,
    /// 1-based; 0 where there is no text.
    pub line: u32,
    /// The statement of the tree.
    pub node: NodeId,
    /// The spec, where it is one.
    pub spec: Option<SpecId>,
    /// What it is called: `barrier`, `async.wait`, `Move`.
    pub what: String,
}

/// What an access does.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessKind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Accumulates into memory, atomically.
    Accumulate,
}

impl AccessKind {
    /// `reads`
    pub fn verb(self) -> &'static str {
        match self {
            AccessKind::Read => "reads",
            AccessKind::Write => "writes",
            AccessKind::Accumulate => "accumulates into",
        }
    }
}

/// In whose time an access is made.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AgentKind {
    /// In that of the thread.
    Thread,
    /// Of an asynchronous copy that its thread waits for.
    Copy,
    /// Of a bulk copy that an mbarrier counts.
    Counted,
    /// Of a bulk copy that its thread waits for.
    Bulk,
    /// Of an asynchronous MatMul that its warps wait for.
    MatMul,
}

impl AgentKind {
    /// How it is called in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            AgentKind::Thread => "thread",
            AgentKind::Copy => "asynchronous copy of thread",
            AgentKind::Counted => "bulk copy into shared memory, issued by thread",
            AgentKind::Bulk => "bulk copy of thread",
            AgentKind::MatMul => "asynchronous MatMul of the warp of thread",
        }
    }
}

/// An access by a statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Which statement.
    pub place: Place,
    /// The buffer that it names.
    pub buffer: BufferId,
    /// What it does.
    pub kind: AccessKind,
    /// In whose time.
    pub agent: AgentKind,
    /// An example of a thread, counted over the block; over the cluster where there are clusters.
    pub thread: u32,
}

/// Why a pair is not ordered.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Nothing orders the threads.
    Order,
    /// Nobody has waited for the first, which is asynchronous.
    Wait,
    /// They are ordered, and no fence stands between the proxies.
    Fence,
    /// They are made by different blocks, which nothing orders.
    Blocks,
    /// They are ordered, and no fence has passed registers on.
    RegisterFence,
}

/// One way in which a pair is ordered.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordering {
    /// The statements that pass it on, in their order: what waits for the first access, fences,
    /// barriers, arrivals and waits for their phases. None where the order of one thread is enough.
    pub steps: Vec<Place>,
    /// How many turns of a loop around both lie between them: of the outermost one of which there
    /// are any.
    pub distance: Option<(String, i64)>,
    /// Statements of synchronization that have a part in it and pass nothing on themselves: what
    /// ends a group that is waited for, the other arrivals of a phase, the init of its mbarrier and
    /// the fence by which copies see that.
    pub with: Vec<Place>,
}

/// What synchronization keeps in order beside accesses that meet.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Keeps {
    /// A phase of an mbarrier is complete before a statement does something for the next one.
    LastPhase,
    /// A wait for a phase of an mbarrier has gone on before the next one is complete.
    NextPhase,
    /// An mbarrier is ready, before a copy of the same thread counts on it.
    Ready,
    /// What a statement has started is over before its block ends.
    OwnEnd,
    /// An access to another block's shared memory is over before that block ends.
    OtherEnd,
}

/// Something that synchronization keeps in order, and by which statements.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// What.
    pub what: Keeps,
    /// The statement that it is about.
    pub place: Place,
    /// The mbarrier, where it is about phases.
    pub mbarrier: Option<BufferId>,
    /// By these.
    pub ways: Vec<Ordering>,
}

/// What is known of a pair of accesses.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The second comes after the first whenever they meet, each time by one of these.
    Ordered(Vec<Ordering>),
    /// They meet, and something is missing.
    Unordered(Missing),
    /// It cannot be said.
    Undecided(String),
}

/// Why the first access of a pair is under way.
#[derive(Clone, Debug, PartialEq)]
pub enum UnderWay {
    /// No commit has ended its group.
    Uncommitted,
    /// An arrival lets an mbarrier count it, and nobody has waited for that phase.
    Counted(Place),
    /// Nobody has waited for its group.
    Left {
        /// How many groups a wait may leave, so that the access is over.
        needed: u32,
        /// The wait that stands there, and how many it leaves.
        wait: Option<(Place, u32)>,
    },
}

/// Two accesses that meet in an element, one of which writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The one that is made first where the kernel is followed in text order.
    pub first: Access,
    /// The other.
    pub second: Access,
    /// What is known.
    pub verdict: Verdict,
    /// How often they meet in what was followed: granules, not elements.
    pub times: u64,
    /// Values of loop variables at the second, where the verdict was found.
    pub at: String,
    /// Where nobody has waited for the first: why.
    pub under_way: Option<UnderWay>,
    /// Where they are not ordered: the loop of which turns lie between them.
    pub around: Option<Place>,
}

/// A synchronization that does not do what it is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Which statement.
    pub place: Place,
    /// Another that has to do with it.
    pub other: Option<Place>,
    /// What is wrong.
    pub what: String,
    /// What would mend it.
    pub help: String,
    /// Whether it is certain; else it could not be decided.
    pub is_certain: bool,
}

/// An access that is not followed: its pairs are undecided.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfollowed {
    /// Which statement.
    pub place: Place,
    /// What it accesses, where that is known.
    pub buffer: Option<BufferId>,
    /// What it does.
    pub kind: AccessKind,
    /// Why it is not followed.
    pub why: String,
}

impl Unfollowed {
    /// Whether the kernel is not followed because its number of blocks depends on symbols.
    #[must_use]
    pub fn is_of_many_grids(&self) -> bool {
        self.why == MANY_GRIDS
    }
}

/// What is known of a kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Pairs of accesses of different threads or agents, by their statements in text order.
    pub pairs: Vec<Pair>,
    /// Synchronization that is wrong.
    pub faults: Vec<Fault>,
    /// Accesses that are not followed.
    pub unfollowed: Vec<Unfollowed>,
    /// What is in order beside the pairs.
    pub kept: Vec<Kept>,
    /// What is known for some values of symbols, where it is not decided for all of them.
    pub tried: Vec<Report>,
}

impl Report {
    /// Whether every pair is ordered, and nothing is wrong or left out.
    pub fn is_ordered(&self) -> bool {
        self.faults.is_empty()
            && self.unfollowed.is_empty()
            && self.pairs.iter().all(|p| matches!(p.verdict, Verdict::Ordered(_)))
    }

    /// How many pairs are ordered, unordered, and undecided; accesses that are not followed count
    /// as a pair each.
    pub fn counts(&self) -> [usize; 3] {
        let mut n = [0, 0, self.unfollowed.len()];
        for pair in &self.pairs {
            n[match pair.verdict {
                Verdict::Ordered(_) => 0,
                Verdict::Unordered(_) => 1,
                Verdict::Undecided(_) => 2,
            }] += 1;
        }
        n
    }
}

/// Why a kernel is not followed whose grid depends on symbols.
pub(crate) const MANY_GRIDS: &str =
    "how many blocks it has depends on symbols, and each number would have to be followed";
