//! Defines [`Fault`], the reasons why an operation of the calculator fails, such as an operand of
//! the wrong kind. `refusal` makes their messages.

use super::value::{Kind, Misfit};
use carbyne_ir::layout::LayoutError;

/// The reason why an operation fails.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The layout algebra refuses the operands.
    Refused(LayoutError),
    /// The number of operands is wrong.
    Count,
    /// An operand has the wrong kind.
    Type {
        /// The index of the operand, from 0.
        arg: usize,
        /// The kind that is needed.
        wanted: Kind,
    },
    /// An operand has the right kind, but its value is not allowed.
    Range {
        /// The index of the operand, from 0.
        arg: usize,
        /// The condition on the value.
        wanted: &'static str,
    },
    /// The answer has too many numbers.
    TooLarge {
        /// The number of numbers.
        values: i64,
        /// The maximum.
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
    pub(crate) fn fault(self, arg: usize, wanted: Kind) -> Fault {
        match self {
            Misfit::Other => Fault::Type { arg, wanted },
            Misfit::Refused(e) => Fault::Refused(e),
        }
    }
}
