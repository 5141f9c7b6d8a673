//! [`Planner`] holds the data that the steps of planning share: the body, its dependences, and the
//! groups of copies that were ended early.

use super::dependences::{Access, Dependence};
use super::facts::Facts;
use super::tree::{At, Tree};
use crate::order::touched::Mask;
use crate::plan::sync::{Place, Sync};
use carbyne_ir::program::SpecId;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) struct Planner<'a, 'p> {
    pub(crate) facts: &'a Facts<'p>,
    pub(crate) kernel: SpecId,
    pub(crate) tree: &'a Tree<'p>,
    pub(crate) accesses: &'a [Access],
    pub(crate) dependences: &'a [Dependence],
    /// Statements inside of which groups are committed, and not after them.
    pub(crate) inside: BTreeSet<At>,
    /// Statements after which a group ends.
    pub(crate) ends: BTreeSet<At>,
}

/// A place where a wait may stand, and how many groups it may leave in flight.
pub(crate) type Wait = (At, i64);

/// Where a wait for a copy may stand: at one of these places.
pub(crate) struct Need {
    pub(crate) places: Vec<Wait>,
    /// Whether a barrier must follow before the second access.
    pub(crate) barrier: bool,
    /// The copy, where the wait is for one.
    pub(crate) copy: Option<At>,
}

impl Need {
    /// The places after which a barrier follows, where one must.
    pub(crate) fn before(&self, barriers: &BTreeSet<At>) -> &[Wait] {
        let last = self.places.iter().rposition(|(at, _)| barriers.contains(at));
        match last.filter(|_| self.barrier) {
            Some(last) => &self.places[..=last],
            None => &self.places,
        }
    }
}

impl Planner<'_, '_> {
    /// What is put at a statement.
    pub(crate) fn put<'s>(&self, plan: &'s mut BTreeMap<Place, Sync>, at: At) -> &'s mut Sync {
        plan.entry(self.tree.key(at)).or_default()
    }

    /// The threads that a barrier for a dependence is for.
    pub(crate) fn scope(&self, d: &Dependence) -> Mask {
        self.who(d.from).or(&self.who(d.to))
    }

    /// The threads that execute a statement.
    pub(crate) fn who(&self, at: At) -> Mask {
        self.tree.who(self.facts, at)
    }
}
