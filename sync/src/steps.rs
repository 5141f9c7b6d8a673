//! By how much numbers move from one turn of a loop to another.

use crate::value::NOTHING;

/// A way along which numbers move.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Along {
    /// From one round of a loop to the next.
    Rounds,
    /// From one number of turns of the loops of a nest to another one.
    Number(Nest),
    /// From one number of turns to another, behind turns that are inserted into these loops.
    Inserted(Nest),
}

/// By how much a number moves along each way; [`NOTHING`] where that is not even.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) round: i64,
    /// From one number of turns to the next one, of either nest.
    pub(crate) number: [i64; 2],
    /// By the turns that are inserted into the stretch that is being followed, beside.
    pub(crate) inserted: [i64; 2],
}

impl Steps {
    pub(crate) const UNKNOWN: Steps =
        Steps { round: NOTHING, number: [NOTHING; 2], inserted: [NOTHING; 2] };

    /// Along one way; none where that is not even.
    pub(crate) fn along(&self, along: Along) -> Option<i64> {
        let even = |by: i64| Some(by).filter(|by| *by != NOTHING);
        match along {
            Along::Rounds => even(self.round),
            Along::Number(nest) => even(self.number[nest as usize]),
            Along::Inserted(nest) => {
                even(self.number[nest as usize])?.checked_add(even(self.inserted[nest as usize])?)
            }
        }
    }
}

/// Which of two numbers of turns, of loops within loops.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Nest {
    Outer,
    Inner,
}
