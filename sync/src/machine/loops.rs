//! Data types for loops that are being followed: the progress of each loop, states at the
//! beginnings of iterations, and rounds, which are the iterations between two equal states.

use crate::fingerprint::Fingerprint;
use crate::value::Value;
use carbyne_ir::expr::VarId;
use carbyne_ir::program::StmtId;
use std::collections::{HashMap, VecDeque};

/// The changing parts of a set of threads: the variable, the end and the iteration of each
/// enclosing loop.
pub(super) type Moving = Vec<(Value, Value, u64)>;

/// A state at the beginning of an iteration.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) fingerprint: Fingerprint,
    pub(super) moving: Vec<Moving>,
    /// The number of iterations that had begun.
    pub(super) turn: u64,
}

/// For each set of threads and each loop, the change in a round: of the variable, of the end, of
/// the iteration.
pub(super) type Moves = Vec<Vec<(i64, i64, u64)>>;

/// A round that is followed so that later rounds can be left out.
#[derive(Clone)]
pub(super) struct Round {
    pub(super) body: Option<StmtId>,
    pub(super) fingerprint: Fingerprint,
    pub(super) moving: Vec<Moving>,
    pub(super) moves: Moves,
    /// The length of the round in iterations, and the iteration at which it ends.
    pub(super) length: u64,
    pub(super) until: u64,
    /// The number of iterations of each loop at the beginning of the round.
    pub(super) iterations: HashMap<Option<StmtId>, u64>,
}

/// The progress of a loop.
#[derive(Clone, Default)]
pub(super) struct LoopProgress {
    /// The number of iterations begun by all threads, each time that the loop was entered.
    pub(super) n: u64,
    /// The iteration that threads reached last, and the step at which the first of them reached it.
    pub(super) trip: u64,
    pub(super) at: u64,
    /// The cost of an iteration, in accesses.
    pub(super) takes: u64,
    /// The interval of iterations at which the state is examined; 0 while unknown.
    pub(super) every: u64,
    /// The number of examinations since a state was last found again.
    pub(super) in_vain: u64,
    /// The moves and the length of the last round that replaced others. The loop may repeat them
    /// when it is entered again.
    pub(super) guess: Option<(Moves, u64)>,
    pub(super) seen: Vec<Seen>,
}

/// An iteration that begins.
#[derive(Copy, Clone, Debug)]
pub(super) struct Turned {
    pub(super) body: Option<StmtId>,
    pub(super) var: VarId,
    /// The index of the iteration, and the most iterations that may follow.
    pub(super) turn: u64,
    pub(super) left: u64,
}

/// The state of all loops.
#[derive(Clone, Default)]
pub(crate) struct Rounds {
    /// The iteration that has just begun.
    pub(super) turned: Option<Turned>,
    pub(super) loops: HashMap<Option<StmtId>, LoopProgress>,
    /// For each state whose round is known: the moves and the length of the round.
    pub(super) known: HashMap<(Option<StmtId>, Fingerprint), (Moves, u64)>,
    pub(super) round: Option<Round>,
    /// Whether every iteration is followed.
    pub(crate) every_iteration: bool,
    /// Whether every iteration is examined, which finds the shortest rounds.
    pub(crate) are_shortest: bool,
    /// The cost of all examinations of states.
    pub(super) looked: u64,
    /// The distances by which loop variables advanced over rounds that were left out.
    pub(crate) strides: Vec<i64>,
    /// The stretch of each nest.
    pub(super) stretch: [Stretch; 2],
}

impl Rounds {
    pub(super) fn new(every_iteration: bool) -> Self {
        Rounds { every_iteration, ..Rounds::default() }
    }
}

/// The change of each loop between two states; none if threads of a set differ in it.
pub(super) fn moves(before: &[Moving], now: &[Moving]) -> Option<Moves> {
    if before.len() != now.len() {
        return None;
    }
    let of = |(a, b): (&Moving, &Moving)| {
        if a.len() != b.len() {
            return None;
        }
        let one = |((v, end, trip), (w, later, iterations)): (
            &(Value, Value, u64),
            &(Value, Value, u64),
        )| {
            Some((v.until(w)?, end.until(later)?, iterations.checked_sub(*trip)?))
        };
        a.iter().zip(b).map(one).collect::<Option<Vec<_>>>()
    };
    before.iter().zip(now).map(of).collect()
}

/// Consecutive iterations of a nest's loops, so that further ones can be inserted. Holds the state
/// at each iteration, the latest last.
#[derive(Clone, Default)]
pub(super) struct Stretch {
    pub(super) states: VecDeque<(Fingerprint, Vec<Moving>)>,
    /// The last iteration.
    pub(super) turn: u64,
}
