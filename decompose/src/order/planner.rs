//! What the steps of planning share: the body, its dependences, and the groups of copies that were
//! ended early.

use super::access::Mask;
use super::depend::{Access, Dependence};
use super::facts::Facts;
use super::tree::{At, Tree};
use super::{Place, Sync};
use carbyne_ir::program::SpecId;
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct Planner<'a, 'p> {
    pub(super) facts: &'a Facts<'p>,
    pub(super) kernel: SpecId,
    pub(super) tree: &'a Tree<'p>,
    pub(super) accesses: &'a [Access],
    pub(super) dependences: &'a [Dependence],
    /// Statements inside of which groups are committed, and not after them.
    pub(super) inside: BTreeSet<At>,
    /// Statements after which a group ends.
    pub(super) ends: BTreeSet<At>,
}

/// A place where a wait may stand, and how many groups it may leave in flight.
pub(super) type Wait = (At, i64);

/// Where a wait for a copy may stand: at one of these places.
pub(super) struct Need {
    pub(super) places: Vec<Wait>,
    /// Whether a barrier must follow before the second access.
    pub(super) barrier: bool,
    /// The copy, where the wait is for one.
    pub(super) copy: Option<At>,
}

impl Need {
    /// The places after which a barrier follows, where one must.
    pub(super) fn before(&self, barriers: &BTreeSet<At>) -> &[Wait] {
        let last = self.places.iter().rposition(|(at, _)| barriers.contains(at));
        match last.filter(|_| self.barrier) {
            Some(last) => &self.places[..=last],
            None => &self.places,
        }
    }
}

impl Planner<'_, '_> {
    /// What is put at a statement.
    pub(super) fn put<'s>(&self, plan: &'s mut BTreeMap<Place, Sync>, at: At) -> &'s mut Sync {
        plan.entry(self.tree.key(at)).or_default()
    }

    /// The threads that a barrier for a dependence is for.
    pub(super) fn scope(&self, d: &Dependence) -> Mask {
        self.who(d.from).or(&self.who(d.to))
    }

    /// The threads that execute a statement.
    pub(super) fn who(&self, at: At) -> Mask {
        self.tree.who(self.facts, at)
    }
}
