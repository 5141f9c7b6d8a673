//! Defines the checker's [`Report`]: pairs of accesses with verdicts, faults of synchronization
//! statements (errors in their use, certain or possible), accesses that could not be followed,
//! orders beside those of pairs (such as a copy that is complete before its block ends), and
//! reports for values of symbols that were tried. `check` builds it.

use carbyne_ir::ast::NodeId;
use carbyne_ir::expr::VarId;
use carbyne_ir::program::{BufferId, Program, SpecId};
use carbyne_ir::span::Span;

/// A statement of the program, or the kernel itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The span in the text.
    pub span: Span,
    /// The line, 1-based; 0 without a text.
    pub line: u32,
    /// The node of the syntax tree.
    pub node: NodeId,
    /// The spec, if the statement is one.
    pub spec: Option<SpecId>,
    /// The name of the statement: `barrier`, `async.wait`, `Move`.
    pub what: String,
}

/// The kinds of access.
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
    /// The verb of an error message: `reads`.
    pub fn verb(self) -> &'static str {
        match self {
            AccessKind::Read => "reads",
            AccessKind::Write => "writes",
            AccessKind::Accumulate => "accumulates into",
        }
    }
}

/// The agent that makes an access.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AgentKind {
    /// The thread itself.
    Thread,
    /// An asynchronous copy for which its thread waits (`cp.async`).
    Copy,
    /// A bulk copy that an mbarrier counts.
    Counted,
    /// A bulk copy for whose group its thread waits.
    Bulk,
    /// An asynchronous MatMul for which its warps wait (`wgmma`).
    MatMul,
}

impl AgentKind {
    /// The name of the agent in a message; the number of the thread follows it.
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
    /// The statement.
    pub place: Place,
    /// The buffer that the statement names.
    pub buffer: BufferId,
    /// The kind of access.
    pub kind: AccessKind,
    /// The agent that makes the access.
    pub agent: AgentKind,
    /// One of the threads that make the access: an index in the block, or in the cluster if the
    /// kernel has clusters.
    pub thread: u32,
}

/// The reason why a pair is not ordered.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Nothing orders the threads.
    Order,
    /// No thread has waited for the first access, which is asynchronous.
    Wait,
    /// The accesses are ordered, but no fence stands between their proxies.
    Fence,
    /// Different blocks make the accesses, and nothing orders blocks.
    Blocks,
    /// The accesses are ordered, but no `wgmma.fence` stands between them.
    RegisterFence,
}

/// A chain of statements that orders a pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordering {
    /// The statements of the chain in their order: the wait for the first access, fences, barriers,
    /// arrivals and waits for their phases. Empty if the program order of one thread suffices.
    pub steps: Vec<Place>,
    /// The number of iterations between the two accesses, and the variable of the loop: the
    /// outermost loop around both in which they are in different iterations.
    pub distance: Option<(String, i64)>,
    /// Synchronization statements that contribute to the chain without being a part of it: the
    /// commit of a group, the other arrivals of a phase, the init of its mbarrier, and the fence
    /// that makes the init visible to copies.
    pub with: Vec<Place>,
}

/// The orders that the checker proves beside those of pairs.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Keeps {
    /// A phase of an mbarrier is complete before a statement arrives or counts in the next phase.
    LastPhase,
    /// A wait for a phase of an mbarrier returns before the next phase is complete.
    NextPhase,
    /// An mbarrier is initialized before a copy of the same thread uses it.
    Ready,
    /// Asynchronous work of a statement is complete before its block ends.
    OwnEnd,
    /// An access to the shared memory of another block is complete before that block ends.
    OtherEnd,
}

/// An order beside those of pairs, and the statements that guarantee it.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// The kind of order.
    pub what: Keeps,
    /// The statement that must be ordered.
    pub place: Place,
    /// The mbarrier, if the order is about phases.
    pub mbarrier: Option<BufferId>,
    /// The chains of statements that guarantee the order.
    pub ways: Vec<Ordering>,
}

/// The verdict on a pair of accesses.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// In every execution, the second access comes after the first one, by one of these chains of
    /// statements.
    Ordered(Vec<Ordering>),
    /// The accesses touch the same element, and this is missing between them.
    Unordered(Missing),
    /// The checker cannot decide, for this reason.
    Undecided(String),
}

/// The reason why the first access of a pair is not complete.
#[derive(Clone, Debug, PartialEq)]
pub enum UnderWay {
    /// No commit has closed its group.
    Uncommitted,
    /// An arrival makes an mbarrier count the access, but no thread has waited for that phase.
    Counted(Place),
    /// No thread has waited for its group.
    Left {
        /// The most groups that a wait may leave in flight so that the access is complete.
        needed: u32,
        /// The wait that precedes the second access, and the number of groups that it leaves in
        /// flight.
        wait: Option<(Place, u32)>,
    },
}

/// The iteration, or the blocks, of two accesses.
#[derive(Clone, Debug, PartialEq)]
pub enum Instance {
    /// The loop variables and their values at the second access, outermost first.
    Loops(Vec<(VarId, i64)>),
    /// One block that makes both accesses.
    Block(i64),
    /// The blocks of the first and of the second access.
    Blocks(i64, i64),
    /// A block, and other blocks that were not identified.
    AndOthers(i64),
}

impl Instance {
    /// As error messages name it: `k = 3, s = 1` or `blocks 0 and 1`. Empty outside of loops.
    pub fn text(&self, p: &Program) -> String {
        match self {
            Instance::Loops(values) => {
                let one = |(var, value): &(VarId, i64)| {
                    format!("{} = {value}", p.arena.var_info(*var).name)
                };
                values.iter().map(one).collect::<Vec<_>>().join(", ")
            }
            Instance::Block(block) => format!("block {block}"),
            Instance::Blocks(first, second) => format!("blocks {first} and {second}"),
            Instance::AndOthers(block) => format!("block {block} and others"),
        }
    }
}

impl Default for Instance {
    fn default() -> Self {
        Instance::Loops(vec![])
    }
}

/// Two accesses to the same element, at least one of which writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The access that comes first when the kernel is followed in text order.
    pub first: Access,
    /// The other access.
    pub second: Access,
    /// The verdict.
    pub verdict: Verdict,
    /// The number of times that the two statements were seen to access the same granule.
    pub times: u64,
    /// The iteration or the blocks for which the verdict was found.
    pub at: Instance,
    /// The reason why the first access is not complete, if no thread has waited for it.
    pub under_way: Option<UnderWay>,
    /// The loop whose iterations lie between the accesses, if the pair is not ordered.
    pub around: Option<Place>,
}

/// An error in the use of synchronization.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The statement.
    pub place: Place,
    /// The thread that executes it, the iteration, and for a wait its phase; empty if unknown.
    pub label: String,
    /// Another statement of the error, and its part in it.
    pub other: Option<(Place, String)>,
    /// A description of the error.
    pub what: String,
    /// An action that fixes the error.
    pub help: String,
    /// Whether the error is certain. If not, the checker could not decide.
    pub is_certain: bool,
}

/// An access that the checker does not follow. Its pairs are undecided.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfollowed {
    /// The statement.
    pub place: Place,
    /// The accessed buffer, if known.
    pub buffer: Option<BufferId>,
    /// The kind of access.
    pub kind: AccessKind,
    /// The reason.
    pub why: String,
}

impl Unfollowed {
    /// Whether the kernel is not followed because its number of blocks depends on symbols.
    #[must_use]
    pub fn is_of_many_grids(&self) -> bool {
        self.why == MANY_GRIDS
    }
}

/// The result of checking a kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The pairs of accesses by different threads or agents, in the text order of their statements.
    pub pairs: Vec<Pair>,
    /// Errors in the use of synchronization.
    pub faults: Vec<Fault>,
    /// Accesses that were not followed.
    pub unfollowed: Vec<Unfollowed>,
    /// Orders that were proved beside those of the pairs.
    pub kept: Vec<Kept>,
    /// The reports for some values of symbols, if the kernel could not be decided for all values.
    pub tried: Vec<Report>,
}

impl Report {
    /// Whether every pair is ordered, no fault was found and no access was left out.
    pub fn is_ordered(&self) -> bool {
        self.faults.is_empty()
            && self.unfollowed.is_empty()
            && self.pairs.iter().all(|p| matches!(p.verdict, Verdict::Ordered(_)))
    }

    /// The numbers of ordered, unordered and undecided pairs. Each access that was not followed
    /// counts as an undecided pair, and so does each undecided fault.
    pub fn counts(&self) -> [usize; 3] {
        let open = self.faults.iter().filter(|f| !f.is_certain).count();
        let mut n = [0, 0, self.unfollowed.len() + open];
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

/// The reason of [`Unfollowed`] for a kernel whose grid depends on symbols.
pub(crate) const MANY_GRIDS: &str =
    "its number of blocks depends on symbols, and the checker cannot try every number";
