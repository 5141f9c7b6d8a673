//! Defines [`Steps`], the amounts by which the value of an expression changes: from one round of a
//! loop to the next, from one trip count to the next, and, in a proof for all trip counts, by the
//! iterations that are inserted into a loop to reach another trip count. `increments` computes with
//! them.

use crate::value::NOTHING;

/// A direction along which values change.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Along {
    /// From one round of a loop to the next.
    Rounds,
    /// From one trip count of the loops of a nest to another one.
    Number(Nest),
    /// From one trip count to another, after iterations that are inserted into these loops.
    Inserted(Nest),
}

/// The change of a value along each direction; [`NOTHING`] if the change is not constant.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) round: i64,
    /// From one trip count to the next one, for either nest.
    pub(crate) number: [i64; 2],
    /// The additional change by iterations that are inserted into the stretch being followed.
    pub(crate) inserted: [i64; 2],
}

impl Steps {
    pub(crate) const UNKNOWN: Steps =
        Steps { round: NOTHING, number: [NOTHING; 2], inserted: [NOTHING; 2] };

    /// The changes of both; unknown if they differ.
    pub(crate) fn common(self, other: Steps) -> Steps {
        if self == other { self } else { Steps::UNKNOWN }
    }

    /// The change along one direction; none if it is not constant.
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

/// The trip count of the outer or of the inner loops of a nest.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Nest {
    Outer,
    Inner,
}
