//! What has to stand around a row so that its results can be looked at.

use crate::row::{Atom, Visibility};

/// Statements of the block around the row, and what the row's own statement says of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Protocol {
    /// Before the operands are brought; a barrier follows those.
    pub(super) before: Vec<String>,
    /// Attributes of the row's statement, each with a space before it.
    pub(super) attributes: String,
    /// After the row; a barrier follows.
    pub(super) after: Vec<String>,
}

impl Protocol {
    /// By when the row's results are there.
    pub(super) fn of(row: &Atom) -> Self {
        let mut protocol = Protocol::default();
        match row.visibility {
            Visibility::Immediate => {}
            Visibility::AsyncGroup => {
                protocol.after = ["async.commit", "async.wait(0)"].map(str::to_owned).to_vec();
            }
        }
        protocol
    }
}
