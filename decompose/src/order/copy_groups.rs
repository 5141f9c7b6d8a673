//! Forms the groups of asynchronous copies: where they are committed ([`Planner::commits`]), and
//! which copies are still in flight when the block ends ([`Planner::end`]).

use super::dependences::Dependence;
use super::paths::{Commits, Side, Step};
use super::planner::{Planner, Wait};
use super::tree::{At, Turns, synchronizes, waits};
use crate::plan::sync::{Place, Sync};
use carbyne_ir::ast::SyncOp;
use carbyne_ir::program::StmtKind;
use std::collections::{BTreeMap, BTreeSet, HashMap};

impl Planner<'_, '_> {
    /// Ends the group of a copy before a statement that needs it; whether that is news.
    pub(crate) fn end_group(&mut self, d: &Dependence) -> bool {
        if self.facts.by_hand {
            return false;
        }
        let path = |at: At| {
            let mut out: Vec<At> =
                self.tree.chain(at).filter(|a| self.tree.node(*a).place).collect();
            out.reverse();
            out
        };
        let (issuer, needs) = (path(d.from), path(d.to));
        let common = issuer.iter().zip(&needs).take_while(|(a, b)| a == b).count();
        let mut news = false;
        for at in &issuer[..common.min(issuer.len().saturating_sub(1))] {
            news |= self.inside.insert(*at);
        }
        if let Some(own) = issuer.get(common) {
            news |= self.ends.insert(*own);
        }
        news
    }

    /// Whether a statement issues asynchronous copies, other than in loops of its own.
    fn issues(&self, at: At) -> bool {
        if self.inside.contains(&at) {
            return false;
        }
        let node = self.tree.node(at);
        match &node.stmt.kind {
            StmtKind::Spec(id) if self.facts.p.specs[*id].body.is_none() => {
                self.facts.issues_copy(*id)
            }
            StmtKind::For { .. } if node.operation => false,
            _ => node.lists.iter().flatten().any(|s| self.issues(*s)),
        }
    }

    /// Commits after every run of statements that issue asynchronous copies.
    pub(crate) fn commits(&self, list: &[At], plan: &mut BTreeMap<Place, Sync>) {
        if self.facts.by_hand {
            return;
        }
        for (i, &at) in list.iter().enumerate() {
            let node = self.tree.node(at);
            if node.place && self.issues(at) {
                // An allocation does nothing.
                let mut rest = list[i + 1..].iter();
                let next =
                    rest.find(|s| !matches!(self.tree.node(**s).stmt.kind, StmtKind::Allocate(_)));
                let goes_on = next.is_some_and(|next| self.issues(*next));
                if !goes_on || self.ends.contains(&at) {
                    self.put(plan, at).commit = true;
                }
                continue;
            }
            node.lists.iter().for_each(|list| self.commits(list, plan));
        }
    }

    /// Waits where threads tell others of what they have done: what the text does not call
    /// asynchronous is done there.
    pub(crate) fn told(&self, commits: &Commits, plan: &mut BTreeMap<Place, Sync>) -> Vec<Wait> {
        let mut out = vec![];
        for at in 0..self.tree.nodes.len() {
            let stmt = self.tree.node(at).stmt;
            let commits_only =
                matches!(&stmt.kind, StmtKind::Sync(s) if s.op == SyncOp::AsyncCommit);
            let tells = synchronizes(stmt) && !waits(stmt) && !commits_only;
            if !tells {
                continue;
            }
            let unsaid = self.accesses.iter().filter(|a| a.asynchronous && a.by_hand && a.write);
            for a in unsaid {
                let loops = self.tree.loops(at);
                let of = self.tree.loops(a.leaf);
                let both = of.iter().zip(&loops).take_while(|(x, y)| x == y).map(|(x, _)| *x);
                let same = self.tree.common(a.leaf, at).filter(|(x, y)| x < y).map(|_| None);
                for carried in both.map(Some).chain(same) {
                    let d = Dependence {
                        from: a.leaf,
                        to: at,
                        carried,
                        wraps: false,
                        enters: None,
                        threads: false,
                        waits: Some(vec![self.tree.nearest(a.leaf, at, carried)]),
                    };
                    let step = Step { at, side: Side::Second };
                    let n = self.flying(&d, step, commits);
                    if n.is_none() {
                        self.put(plan, at).commit_before = true;
                    }
                    out.push((at, n.unwrap_or(0)));
                }
            }
        }
        out
    }

    /// Nothing is in flight when the block ends: after the last statement a wait, unless every copy
    /// has been waited for.
    pub(crate) fn end(&self, waits: &BTreeMap<At, i64>, plan: &mut BTreeMap<Place, Sync>) {
        let commits = Commits::new(self.tree, plan);
        let copies: BTreeSet<At> =
            self.accesses.iter().filter(|a| a.asynchronous).map(|a| a.leaf).collect();
        if copies.iter().all(|at| self.is_done(*at, waits, self.tree.nodes.len(), &commits)) {
            return;
        }
        let last = self
            .tree
            .roots
            .iter()
            .rev()
            .find(|at| self.facts.first(self.tree.node(**at).stmt).is_some());
        let Some(&last) = last else { return };
        let open = copies.iter().any(|at| !self.is_committed(*at, &commits));
        let put = self.put(plan, last);
        put.drain = true;
        put.commit |= open;
    }

    /// Whether a copy belongs to a group when the block ends.
    fn is_committed(&self, at: At, commits: &Commits) -> bool {
        let turns = self.last_turns(at);
        turns.is_none_or(|turns| commits.to_end(self.tree, (at, &turns)) > 0)
    }

    /// The last iterations in which a copy is issued, as far as they are known; none where it never
    /// is.
    fn last_turns(&self, at: At) -> Option<Turns> {
        /// Iterations that are looked at from the end of a loop.
        const LOOK: i64 = 64;
        let loops = self.tree.loops(at);
        let mut turns: Turns = HashMap::new();
        for l in &loops {
            let n = self.tree.node(*l).of_loop.and_then(|l| l.trips).unwrap_or(1);
            turns.insert(*l, (n - 1).max(0));
        }
        // Conditions mostly depend on the innermost loop.
        let Some(inner) = loops.last() else {
            let env = self.tree.values(&turns);
            return self.tree.mask(self.facts, at, &env).map(|_| turns);
        };
        let from = turns[inner];
        for turn in (0..=from).rev().take(LOOK as usize) {
            turns.insert(*inner, turn);
            let env = self.tree.values(&turns);
            if self.tree.mask(self.facts, at, &env).is_some() {
                return Some(turns);
            }
        }
        turns.insert(*inner, from);
        Some(turns)
    }

    /// Whether a copy is waited for on every way to a statement, or to the end of the block.
    pub(crate) fn is_done(
        &self,
        at: At,
        waits: &BTreeMap<At, i64>,
        end: At,
        commits: &Commits,
    ) -> bool {
        let Some(turns) = self.last_turns(at) else { return true };
        let who = self.who(at);
        let of_text = |at: At| match &self.tree.node(at).stmt.kind {
            StmtKind::Sync(s) if s.op == SyncOp::AsyncWait && self.tree.meet(at, &who) => {
                Some(s.number.map_or(Some(0), |n| n.as_const()).unwrap_or(i64::MAX))
            }
            _ => None,
        };
        let all = (0..end).filter_map(|w| {
            let own = waits.get(&w).copied();
            let text = of_text(w);
            own.into_iter().chain(text).min().map(|n| (w, n))
        });
        all.into_iter().any(|(w, n)| {
            [true, false]
                .into_iter()
                .filter_map(|last| self.passes(at, &turns, w, last))
                .any(|there| commits.between(self.tree, (at, &turns), (w, &there)) > n)
        })
    }

    /// The iterations in which a statement is passed for certain after a copy in these: the last of
    /// loops, or the same.
    fn passes(&self, from: At, turns: &Turns, to: At, last: bool) -> Option<Turns> {
        if !self.tree.meet(to, &self.who(from)) {
            return None;
        }
        let mut there = Turns::new();
        let mut after = false;
        for l in self.tree.loops(to) {
            let own = turns.get(&l).filter(|_| self.tree.holds(l, from));
            let turn = match (self.tree.node(l).of_loop?.trips, own) {
                (Some(n), Some(_)) if n > 0 && last => n - 1,
                (Some(n), None) if n > 0 => n - 1,
                (_, Some(turn)) => *turn,
                _ => return None,
            };
            after |= own.is_some_and(|t| *t < turn);
            there.insert(l, turn);
        }
        // Under no condition but those that the copy stands under, in the same iteration.
        let certain = self.tree.chain(to).skip(1).all(|a| {
            let is_if = matches!(self.tree.node(a).stmt.kind, StmtKind::If { .. });
            let same = || self.tree.loops(a).iter().all(|l| there.get(l) == turns.get(l));
            !is_if || self.tree.holds(a, from) && same()
        });
        let later = self.tree.common(from, to).is_some_and(|(x, y)| x < y);
        (certain && (after || later)).then_some(there)
    }
}
