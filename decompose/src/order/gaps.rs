//! Lists the places of a barrier or a wait for a dependence ([`Planner::taken`]), unless one
//! already stands between its accesses.

use super::dependences::Dependence;
use super::paths::{Commits, Passed, Step};
use super::planner::{Planner, Wait};
use super::refusal;
use super::tree::{At, Turns};
use crate::access::ops;
use crate::order::touched::{Mask, members};
use crate::plan::sync::Barrier;
use carbyne_ir::ast::SyncOp;
use carbyne_ir::diag::Diagnostic;
use carbyne_ir::program::StmtKind;
use std::collections::HashMap;

/// What a dependence takes.
pub(crate) enum Taken {
    /// What stands there already.
    Nothing,
    /// A barrier at one of these, with a wait before it for an asynchronous access.
    Barrier(Vec<At>, Vec<Wait>),
    /// A wait alone at one of these, in the order of the way.
    Wait(Vec<Wait>),
}

impl Planner<'_, '_> {
    /// What a dependence takes; none where its copy has no group in time.
    pub(crate) fn taken(
        &self,
        d: &Dependence,
        commits: &Commits,
    ) -> Result<Option<Taken>, Box<Diagnostic>> {
        let way = self.tree.way(d);
        let scope = self.scope(d);
        let barrier = |p: &Passed| matches!(p, Passed::Whole(s) if self.is_barrier(s.at, &scope));
        let takes_barrier = |at: At| self.takes_barrier(at, &scope);
        let gaps = || way.iter().filter_map(Passed::gap);
        let open: Vec<At> = gaps().map(|s| s.at).filter(|at| takes_barrier(*at)).collect();
        if d.waits.is_none() {
            if way.iter().any(barrier) {
                return Ok(Some(Taken::Nothing));
            }
            if open.is_empty() {
                return Err(refusal::unordered(self, d));
            }
            return Ok(Some(Taken::Barrier(open, vec![])));
        }
        // Where the text waits for it.
        let waited = way.iter().position(|p| {
            let Passed::Whole(step) = p else { return false };
            let StmtKind::Sync(s) = &self.tree.node(step.at).stmt.kind else { return false };
            let n = s.number.map_or(Some(i64::MAX), |n| n.as_const());
            s.op == SyncOp::AsyncWait
                && self.tree.meet(step.at, &self.who(d.from))
                && self.flying(d, *step, commits).zip(n).is_some_and(|(all, n)| n <= all)
        });
        if let Some(i) = waited {
            if !d.threads || way[i..].iter().any(barrier) {
                return Ok(Some(Taken::Nothing));
            }
            let later = way[i..].iter().filter_map(Passed::gap).map(|s| s.at);
            let later: Vec<At> = later.filter(|at| takes_barrier(*at)).collect();
            return match later.is_empty() {
                true => Err(refusal::unordered(self, d)),
                false => Ok(Some(Taken::Barrier(later, vec![]))),
            };
        }
        let in_time = |s: Step| Some((s.at, self.flying(d, s, commits)?));
        if !d.threads {
            let waits: Vec<Wait> =
                gaps().filter(|s| self.takes_wait(d, s.at)).filter_map(in_time).collect();
            if waits.is_empty() && !gaps().any(|s| self.takes_wait(d, s.at)) {
                return Err(refusal::unordered(self, d));
            }
            return Ok((!waits.is_empty()).then_some(Taken::Wait(waits)));
        }
        // Before a barrier that stands there.
        if let Some(last) = way.iter().rposition(barrier) {
            let places = way[..last].iter().filter_map(Passed::gap);
            let places: Vec<Wait> =
                places.filter(|s| self.takes_wait(d, s.at)).filter_map(in_time).collect();
            if !places.is_empty() {
                return Ok(Some(Taken::Wait(places)));
            }
        }
        if open.is_empty() {
            return Err(refusal::unordered(self, d));
        }
        let waits: Vec<Wait> = gaps().filter(|s| takes_barrier(s.at)).filter_map(in_time).collect();
        let gaps = waits.iter().map(|(at, _)| *at).collect();
        Ok((!waits.is_empty()).then_some(Taken::Barrier(gaps, waits)))
    }

    /// The last place for a wait before the second access.
    pub(crate) fn last_gap(&self, d: &Dependence) -> Option<At> {
        let way = self.tree.way(d);
        let mut gaps = way.iter().filter_map(Passed::gap).map(|step| step.at);
        let fits = |at: &At| match d.threads {
            true => self.takes_barrier(*at, &self.scope(d)),
            false => self.takes_wait(d, *at),
        };
        gaps.rfind(fits)
    }

    /// The barrier before a statement for these threads: of the fewest warps that have a name; none
    /// where no name stands for those that are there.
    pub(crate) fn barrier(&self, at: At, threads: &Mask) -> Option<Barrier> {
        let here = self.tree.node(at).threads.clone()?;
        let (whole, here) = ((0, self.facts.threads), (here.warps()?, here));
        let own = threads.warps()?;
        let everybody = here.1.count() == self.facts.threads;
        if own == whole || everybody && threads.count() == self.facts.threads {
            return Some(Barrier::Block);
        }
        let named = |range: (i64, i64)| {
            let name = ops::name_of(self.facts.p, self.kernel, range);
            (!name.is_empty()).then_some(name)
        };
        match named(own) {
            Some(name) if own == here.0 && !everybody => Some(Barrier::Here(name)),
            Some(threads) => {
                let p = self.facts.p;
                let blocks = p.threads[p.specs[self.kernel].exec?.blocks].root;
                Some(Barrier::Of { blocks: p.threads[blocks].name.clone()?, threads })
            }
            None if everybody => Some(Barrier::Block),
            None => named(here.0).map(Barrier::Here),
        }
    }

    /// Whether a barrier of the text, or in the body of an operation, stands there for all these
    /// threads.
    fn is_barrier(&self, at: At, scope: &Mask) -> bool {
        let node = self.tree.node(at);
        match &node.stmt.kind {
            StmtKind::Barrier(threads) => {
                let all = Mask::first(self.facts.threads);
                let waiting =
                    threads.map_or(Some(all), |t| members(self.facts.p, t, &HashMap::new()));
                // Groups that wait each for itself are no barrier of all of them.
                let whole = threads.is_none_or(|t| self.facts.p.threads[t].own == 0);
                whole && waiting.is_some_and(|w| w.covers(scope) && self.tree.meet(at, &w))
            }
            StmtKind::Spec(id) => self.facts.exchanges(*id) && self.who(at).covers(scope),
            // Of the cluster, where nothing stands between arriving and waiting.
            StmtKind::Sync(s) if s.op == SyncOp::ClusterWait => {
                let all = Mask::first(self.facts.threads);
                let before = node.index.checked_sub(1).and_then(|i| self.tree.siblings(at).get(i));
                let arrives = before.is_some_and(|before| {
                    matches!(&self.tree.node(*before).stmt.kind,
                        StmtKind::Sync(s) if s.op == SyncOp::ClusterArrive)
                });
                arrives && self.tree.meet(at, &all)
            }
            StmtKind::Allocate(_)
            | StmtKind::Indices(_)
            | StmtKind::Element { .. }
            | StmtKind::Step { .. }
            | StmtKind::For { .. }
            | StmtKind::If { .. }
            | StmtKind::Sync(_) => false,
        }
    }

    /// Whether a barrier for these threads may be put before a statement.
    pub(crate) fn takes_barrier(&self, at: At, scope: &Mask) -> bool {
        let node = self.tree.node(at);
        node.place
            && self.tree.meet(at, scope)
            && !self.facts.roles.beside.contains(&self.tree.key(at))
            && node.by_hand.is_none_or(|outermost| outermost == at)
    }

    /// Whether a wait for a copy may be: also inside of what a person wrote, for a copy in there.
    fn takes_wait(&self, d: &Dependence, at: At) -> bool {
        let node = self.tree.node(at);
        let beside = || {
            node.by_hand.is_some_and(|outermost| self.tree.holds(outermost, d.from)) && at == d.to
        };
        self.takes_barrier(at, &self.who(d.from)) || node.place && beside()
    }

    /// How many groups are committed after that of an access, where it has one by then.
    pub(crate) fn flying(&self, d: &Dependence, step: Step, commits: &Commits) -> Option<i64> {
        let waits = d.waits.as_ref()?;
        let of = |(x, y): &(Turns, Turns)| {
            let there = self.tree.turns_at(d, step, (x, y));
            commits.between(self.tree, (d.from, x), (step.at, &there))
        };
        let n = waits.iter().map(of).min()? - 1;
        (n >= 0).then_some(n)
    }
}
