//! Finds the statements that are executed between two accesses for certain ([`Tree::way`]), where
//! something can be put between them, and how many groups of copies are committed on the way.

use super::dependences::Dependence;
use super::tree::{At, Tree, Turns};
use crate::plan::sync::{Place, Sync};
use carbyne_ir::ast::SyncOp;
use carbyne_ir::program::StmtKind;
use std::collections::BTreeMap;

/// A place on every way from one access to another, seen from its last execution before the second.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Step {
    /// Before this statement, or this statement itself.
    pub(crate) at: At,
    /// In whose iterations.
    pub(crate) side: Side,
}

/// Whose iterations of the loops around both accesses a place is executed in.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// The first access's.
    First,
    /// The iteration before the second access's, of the loop that carries the dependence.
    Before,
    /// The iteration before the second access's, of a loop around that one alone.
    Early(At),
    /// The second access's.
    Second,
}

/// What every way from one access to another passes, in order.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// The gap before a statement.
    Gap(Step),
    /// A statement, whole.
    Whole(Step),
}

impl Passed {
    /// The gap that it is.
    pub(crate) fn gap(&self) -> Option<Step> {
        match self {
            Passed::Gap(step) => Some(*step),
            Passed::Whole(_) => None,
        }
    }
}

impl Tree<'_> {
    /// What every way from the first access to the second passes.
    pub(crate) fn way(&self, d: &Dependence) -> Vec<Passed> {
        let mut out = vec![];
        let Some((x, y)) = self.top(d) else { return out };
        // Out of the first access.
        for at in self.chain(d.from).take_while(|at| *at != x) {
            let later = &self.siblings(at)[self.node(at).index + 1..];
            later.iter().for_each(|s| self.pass(*s, Side::First, &mut out));
        }
        let list = self.siblings(x);
        let (i, j) = (self.node(x).index, self.node(y).index);
        let mut pass = |range: std::ops::Range<usize>, side: Side| {
            list[range].iter().for_each(|s| self.pass(*s, side, &mut out));
        };
        match (d.carried, d.wraps) {
            (None, _) => pass(i + 1..j, Side::Second),
            // The rest of the iteration, and the beginning of the next.
            (Some(_), false) => {
                pass(i + 1..list.len(), Side::First);
                pass(0..j, Side::Second);
            }
            // All of an iteration between, and the beginning of the last.
            (Some(_), true) => {
                pass(j..list.len(), Side::Before);
                pass(0..j, Side::Second);
            }
        }
        out.push(Passed::Gap(Step { at: y, side: Side::Second }));
        // Into the second access.
        let inner: Vec<At> = self.chain(d.to).take_while(|at| *at != y).collect();
        for at in inner.into_iter().rev() {
            if let Some(l) = d.enters.filter(|l| self.node(at).parent == Some(*l)) {
                let before = &self.siblings(at)[self.node(at).index..];
                before.iter().for_each(|s| self.pass(*s, Side::Early(l), &mut out));
            }
            let earlier = &self.siblings(at)[..self.node(at).index];
            earlier.iter().for_each(|s| self.pass(*s, Side::Second, &mut out));
            out.push(Passed::Gap(Step { at, side: Side::Second }));
        }
        out
    }

    /// The statements of the list that the way goes through: of the body of the loop that carries
    /// the dependence, or the innermost that both accesses are in.
    fn top(&self, d: &Dependence) -> Option<(At, At)> {
        let Some(l) = d.carried else { return self.common(d.from, d.to) };
        let of = |at: At| self.chain(at).find(|a| self.node(*a).parent == Some(l));
        Some((of(d.from)?, of(d.to)?))
    }

    /// A statement that is passed whole, with all in it that is executed for certain.
    fn pass(&self, at: At, side: Side, out: &mut Vec<Passed>) {
        out.push(Passed::Gap(Step { at, side }));
        let node = self.node(at);
        let certain = match &node.stmt.kind {
            StmtKind::If { .. } => false,
            StmtKind::For { .. } => node.of_loop.and_then(|l| l.trips).is_some_and(|n| n > 0),
            StmtKind::Spec(_)
            | StmtKind::Allocate(_)
            | StmtKind::Indices(_)
            | StmtKind::Element { .. }
            | StmtKind::Step { .. }
            | StmtKind::Barrier(_)
            | StmtKind::Sync(_) => true,
        };
        if certain {
            node.lists[0].iter().for_each(|inner| self.pass(*inner, side, out));
        }
        out.push(Passed::Whole(Step { at, side }));
    }

    /// The last iterations of the loops around a step that come before the second access, where the
    /// accesses have these.
    pub(crate) fn turns_at(&self, d: &Dependence, step: Step, (x, y): (&Turns, &Turns)) -> Turns {
        let around = |l: At, of: At| self.holds(l, of);
        let mut out = Turns::new();
        for l in self.loops(step.at) {
            let last = self.node(l).of_loop.and_then(|l| l.trips).map_or(0, |n| (n - 1).max(0));
            let of = |turns: &Turns| turns.get(&l).copied().unwrap_or(0);
            let turn = match step.side {
                Side::First if around(l, d.from) => of(x),
                Side::Second if around(l, d.to) => of(y),
                Side::Early(own) if l == own => (of(y) - 1).max(0),
                Side::Early(own) if self.holds(l, own) => of(y),
                Side::Before if d.carried == Some(l) => of(y) - 1,
                Side::Before if d.carried.is_some_and(|c| self.holds(l, c)) => of(y),
                _ => last,
            };
            out.insert(l, turn);
        }
        out
    }
}

/// How many groups of asynchronous copies are committed where; at least so many where it depends.
pub(crate) struct Commits {
    /// In a statement and right after it.
    of: Vec<i64>,
    /// Right after it.
    after: Vec<i64>,
    /// Right before it.
    before: Vec<i64>,
}

impl Commits {
    pub(crate) fn new(tree: &Tree<'_>, plan: &BTreeMap<Place, Sync>) -> Self {
        let n = tree.nodes.len();
        let mut out = Commits { of: vec![0; n], after: vec![0; n], before: vec![0; n] };
        // What is in a statement comes after it.
        for at in (0..n).rev() {
            let node = tree.node(at);
            let sum = |list: &[At]| out.sum(list);
            let inside = match &node.stmt.kind {
                StmtKind::If { .. } => sum(&node.lists[0]).min(sum(&node.lists[1])),
                StmtKind::For { .. } => {
                    let trips = node.of_loop.and_then(|l| l.trips).unwrap_or(0);
                    sum(&node.lists[0]).saturating_mul(trips)
                }
                StmtKind::Sync(s) => {
                    i64::from(s.op == SyncOp::AsyncCommit && node.threads.is_some())
                }
                // Others than those that come to it may not execute what is in it.
                StmtKind::Spec(_) if !tree.all_go_on(at) => 0,
                _ => sum(&node.lists[0]),
            };
            let put = plan.get(&tree.key(at)).cloned().unwrap_or_default();
            out.after[at] = i64::from(put.commit);
            out.before[at] = i64::from(put.commit_before);
            out.of[at] = inside.saturating_add(out.after[at] + out.before[at]);
        }
        out
    }

    /// Of one iteration of a loop.
    fn body(&self, tree: &Tree<'_>, l: At) -> i64 {
        self.sum(&tree.node(l).lists[0])
    }

    fn sum(&self, list: &[At]) -> i64 {
        list.iter().map(|s| self.of[*s]).fold(0, i64::saturating_add)
    }

    /// After a statement, in these iterations, and up to what stands before another: at least so
    /// many.
    pub(crate) fn between(
        &self,
        tree: &Tree<'_>,
        (from, first): (At, &Turns),
        (to, second): (At, &Turns),
    ) -> i64 {
        let (a, b) = (tree.loops(from), tree.loops(to));
        // The outermost loop around both of which they are in different iterations.
        let both = a.iter().zip(&b).take_while(|(x, y)| x == y).map(|(x, _)| *x);
        let turn = |turns: &Turns, l: At| turns.get(&l).copied().unwrap_or(0);
        let carried = both.into_iter().find(|l| turn(first, *l) != turn(second, *l));
        let of = |at: At, l: At| tree.chain(at).find(|a| tree.node(*a).parent == Some(l));
        let tops = match carried {
            Some(l) => of(from, l).zip(of(to, l)),
            None => tree.common(from, to),
        };
        let Some((x, y)) = tops else { return 0 };
        let mut n = self.before[to];
        // Out of the first.
        let mut inner = None;
        for at in tree.chain(from).take_while(|at| *at != x) {
            n += self.leaving(tree, at, inner, first);
            n += self.sum(&tree.siblings(at)[tree.node(at).index + 1..]);
            inner = Some(at);
        }
        n += self.leaving(tree, x, inner, first);
        let list = tree.siblings(x);
        let (i, j) = (tree.node(x).index, tree.node(y).index);
        n += match carried {
            None if i < j => self.sum(&list[i + 1..j]),
            None => 0,
            Some(l) => {
                let turns = (turn(second, l) - turn(first, l) - 1).max(0);
                self.sum(&list[i + 1..])
                    + turns.saturating_mul(self.body(tree, l))
                    + self.sum(&list[..j])
            }
        };
        // Into the second.
        for at in tree.chain(to).take_while(|at| *at != y) {
            n += self.sum(&tree.siblings(at)[..tree.node(at).index]);
            if let Some(l) = tree.node(at).parent.filter(|l| tree.node(*l).of_loop.is_some()) {
                n += turn(second, l).saturating_mul(self.body(tree, l));
            }
        }
        n
    }

    /// After a statement, in these iterations, and up to the end of the block: at least so many.
    pub(crate) fn to_end(&self, tree: &Tree<'_>, (from, turns): (At, &Turns)) -> i64 {
        let mut n = 0i64;
        let mut inner = None;
        for at in tree.chain(from) {
            n = n.saturating_add(self.leaving(tree, at, inner, turns));
            n = n.saturating_add(self.sum(&tree.siblings(at)[tree.node(at).index + 1..]));
            inner = Some(at);
        }
        n
    }

    /// Of a statement around the first, or that one, what is left of it: the commit after it, and
    /// of a loop the iterations that follow.
    fn leaving(&self, tree: &Tree<'_>, at: At, inner: Option<At>, first: &Turns) -> i64 {
        let mut n = self.after[at];
        if let (Some(_), Some(l)) = (inner, tree.node(at).of_loop) {
            let turn = first.get(&at).copied().unwrap_or(0);
            let rest = l.trips.map_or(0, |n| (n - 1 - turn).max(0));
            n += rest.saturating_mul(self.body(tree, at));
        }
        n
    }
}
