//! What has to stand around a row so that its results can be looked at.

use crate::row::{Atom, Visibility};

/// Statements of the block around the row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Protocol {
    /// By all threads, once they have brought the operands; a barrier follows.
    pub(super) brought: &'static [&'static str],
    /// By all threads, right before the row.
    pub(super) before: &'static [&'static str],
    /// By all threads, right after the row; a barrier follows.
    pub(super) after: &'static [&'static str],
}

impl Protocol {
    /// By when the row's results are there.
    pub(super) fn of(row: &Atom) -> Self {
        let none = Protocol::default();
        match row.visibility {
            Visibility::Immediate => none,
            Visibility::AsyncGroup => {
                Protocol { after: &["async.commit", "async.wait(0)"], ..none }
            }
            Visibility::WgmmaGroup => Protocol {
                brought: &["fence.async"],
                before: &["wgmma.fence"],
                after: &["wgmma.commit", "wgmma.wait(0)"],
            },
            // Theirs is in `bulk`.
            Visibility::Mbarrier | Visibility::BulkGroup => none,
        }
    }
}
