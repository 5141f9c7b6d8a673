//! What has to stand around an atom so that its results can be looked at.

use crate::atom::{Atom, Visibility};

/// Statements of the block around the atom.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Protocol {
    /// By all threads, once they have brought the operands; a barrier follows.
    pub(super) brought: &'static [&'static str],
    /// By all threads, right before the atom.
    pub(super) before: &'static [&'static str],
    /// By all threads, right after the atom; a barrier follows.
    pub(super) after: &'static [&'static str],
}

impl Protocol {
    /// By when the atom's results are there.
    pub(super) fn of(atom: &Atom) -> Self {
        let none = Protocol::default();
        match atom.visibility {
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
