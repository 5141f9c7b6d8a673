//! Records of loops while they turn.

use crate::fingerprint::Fingerprint;
use crate::value::Value;
use carbyne_ir::expr::VarId;
use carbyne_ir::program::StmtId;
use std::collections::{HashMap, VecDeque};

/// The moving parts of a strand: the variable, the end and the turns of each loop around it.
pub(super) type Moving = Vec<(Value, Value, u64)>;

/// A state at the turn of a loop.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) fingerprint: Fingerprint,
    pub(super) moving: Vec<Moving>,
    /// How often the loop had turned.
    pub(super) turn: u64,
}

/// By how much each loop of each strand moves in a round: variable, end, turns.
pub(super) type Moves = Vec<Vec<(i64, i64, u64)>>;

/// A round that is followed in order to leave out others.
#[derive(Clone)]
pub(super) struct Round {
    pub(super) body: Option<StmtId>,
    pub(super) fingerprint: Fingerprint,
    pub(super) moving: Vec<Moving>,
    pub(super) moves: Moves,
    /// How many turns it takes, and the one at which it is over.
    pub(super) length: u64,
    pub(super) until: u64,
    /// How often each loop had turned at its beginning.
    pub(super) turns: HashMap<Option<StmtId>, u64>,
}

/// How a loop turns.
#[derive(Clone, Default)]
pub(super) struct LoopProgress {
    /// How often it has, by all threads, each time that it was entered.
    pub(super) n: u64,
    /// The turn to which threads came last, and when the first of them did.
    pub(super) trip: u64,
    pub(super) at: u64,
    /// The cost of a turn, in accesses.
    pub(super) takes: u64,
    /// Each how many-th turn is looked at; 0 where that is not known yet.
    pub(super) every: u64,
    /// How many looks since the last one that found a state again.
    pub(super) in_vain: u64,
    /// How the last round moved that left others out, and how many turns it took: the next time
    /// that the loop is entered it may do so again.
    pub(super) guess: Option<(Moves, u64)>,
    pub(super) seen: Vec<Seen>,
}

/// A loop that has turned.
#[derive(Copy, Clone, Debug)]
pub(super) struct Turned {
    pub(super) body: Option<StmtId>,
    pub(super) var: VarId,
    /// Which turn begins, and how many more there may be.
    pub(super) turn: u64,
    pub(super) left: u64,
}

/// The state of all loops.
#[derive(Clone, Default)]
pub(crate) struct Rounds {
    /// The loop that has turned just now, and how often these threads have gone through it.
    pub(super) turned: Option<Turned>,
    pub(super) loops: HashMap<Option<StmtId>, LoopProgress>,
    /// How states of which rounds are known move, and after how many turns.
    pub(super) known: HashMap<(Option<StmtId>, Fingerprint), (Moves, u64)>,
    pub(super) round: Option<Round>,
    /// Whether none are left out.
    pub(crate) every_turn: bool,
    /// Whether every turn is looked at, which finds the shortest rounds.
    pub(crate) are_shortest: bool,
    /// The cost of all looks at states.
    pub(super) looked: u64,
    /// By how much rounds that were left out moved loop variables.
    pub(crate) strides: Vec<i64>,
    /// A stretch of each nest.
    pub(super) stretch: [Stretch; 2],
}

impl Rounds {
    pub(super) fn new(every_turn: bool) -> Self {
        Rounds { every_turn, ..Rounds::default() }
    }
}

/// By how much each loop has moved; none where that is not even.
pub(super) fn moves(before: &[Moving], now: &[Moving]) -> Option<Moves> {
    if before.len() != now.len() {
        return None;
    }
    let of = |(a, b): (&Moving, &Moving)| {
        if a.len() != b.len() {
            return None;
        }
        let one =
            |((v, end, trip), (w, later, turns)): (&(Value, Value, u64), &(Value, Value, u64))| {
                Some((v.until(w)?, end.until(later)?, turns.checked_sub(*trip)?))
            };
        a.iter().zip(b).map(one).collect::<Option<Vec<_>>>()
    };
    before.iter().zip(now).map(of).collect()
}

/// Turns of a nest's loops that are followed, in order to insert others like them: the state at
/// each, the latest last.
#[derive(Clone, Default)]
pub(super) struct Stretch {
    pub(super) states: VecDeque<(Fingerprint, Vec<Moving>)>,
    /// The last turn.
    pub(super) turn: u64,
}
