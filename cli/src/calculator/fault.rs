//! Why an operation did not answer.

use super::value::{Kind, Misfit};
use carbyne_ir::layout::LayoutError;

/// Why an operation did not answer.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The algebra refuses.
    Refused(LayoutError),
    /// Too few or too many operands.
    Count,
    /// An operand is something else than what is wanted.
    Type {
        /// Which, from 0.
        arg: usize,
        /// What is wanted.
        wanted: Kind,
    },
    /// An operand is of the right kind, with a value that has no meaning here.
    Range {
        /// Which, from 0.
        arg: usize,
        /// What it would have to be.
        wanted: &'static str,
    },
    /// The answer would have too many numbers.
    TooLarge {
        /// How many there would be.
        values: i64,
        /// How many there may be.
        limit: i64,
    },
}

impl From<LayoutError> for Fault {
    fn from(e: LayoutError) -> Self {
        Fault::Refused(e)
    }
}

impl Misfit {
    /// The fault of operand `arg`.
    pub(crate) fn of(self, arg: usize, wanted: Kind) -> Fault {
        match self {
            Misfit::Other => Fault::Type { arg, wanted },
            Misfit::Refused(e) => Fault::Refused(e),
        }
    }
}
