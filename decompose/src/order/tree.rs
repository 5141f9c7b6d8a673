//! [`Tree`] numbers the statements of a kernel's body in text order, and knows where something can
//! be put between them.

use super::facts::Facts;
use crate::access::increments::mentions;
use crate::access::ops;
use crate::access::sum::depends;
use crate::order::touched::{Mask, members};
use carbyne_ir::ast::{NodeKey, SyncOp};
use carbyne_ir::expr::{Dim, VarId, VarInfo};
use carbyne_ir::program::{Program, SpecId, Stmt, StmtKind};
use std::collections::HashMap;

/// A statement of the body, by its place in text order.
pub(crate) type At = usize;

/// Iterations of loops, counted from 0, by the statements that are these loops.
pub(crate) type Turns = HashMap<At, i64>;

/// A loop.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Loop {
    pub(crate) var: VarId,
    /// Its first value, if it is known.
    start: Option<i64>,
    step: i64,
    /// Where the first value is not known, what it is, and a variable for the number of the
    /// iteration.
    counted: Option<(Dim, VarId)>,
    /// How many iterations it has, if that is known.
    pub(crate) trips: Option<i64>,
}

/// A statement.
pub(crate) struct Node<'p> {
    pub(crate) stmt: &'p Stmt,
    /// The statement that it is in.
    pub(crate) parent: Option<At>,
    /// In which of that one's lists, and where in it.
    pub(crate) list: usize,
    pub(crate) index: usize,
    /// What is in it.
    pub(crate) lists: [Vec<At>; 2],
    /// Its number after all that is in it.
    pub(crate) end: At,
    pub(crate) of_loop: Option<Loop>,
    /// The threads of the block that come to it together, as far as the text says; none where
    /// threads have parted.
    pub(crate) threads: Option<Mask>,
    /// Whether an operation of the block is in it.
    pub(crate) operation: bool,
    /// The outermost statement around it, or itself, that has no operation of the block in it.
    pub(crate) by_hand: Option<At>,
    /// Whether something is put before and after it: whether it has specs in it, or synchronizes.
    pub(crate) place: bool,
}

/// The body of a kernel.
pub(crate) struct Tree<'p> {
    pub(crate) nodes: Vec<Node<'p>>,
    /// The outermost list.
    pub(crate) roots: Vec<At>,
}

impl<'p> Tree<'p> {
    pub(crate) fn new(facts: &Facts<'p>, body: &'p [Stmt]) -> Self {
        let mut tree = Tree { nodes: vec![], roots: vec![] };
        let all = Mask::first(facts.threads);
        tree.roots = tree.list(facts, body, (None, 0), Some(&all), None);
        tree
    }

    fn list(
        &mut self,
        facts: &Facts<'p>,
        stmts: &'p [Stmt],
        (parent, list): (Option<At>, usize),
        threads: Option<&Mask>,
        by_hand: Option<At>,
    ) -> Vec<At> {
        let mut out = vec![];
        for (index, stmt) in stmts.iter().enumerate() {
            let at = self.nodes.len();
            out.push(at);
            let operation = facts.has_operation(stmt);
            let place = synchronizes(stmt) || facts.first(stmt).is_some();
            let by_hand = by_hand.or((place && !operation).then_some(at));
            self.nodes.push(Node {
                stmt,
                parent,
                list,
                index,
                lists: [vec![], vec![]],
                end: at + 1,
                of_loop: of_loop(facts, stmt),
                threads: threads.cloned(),
                operation,
                by_hand,
                place,
            });
            let (first, second) = facts.p.inside(stmt);
            let inner = threads.and_then(|threads| go_on(facts, stmt, threads));
            let first = self.list(facts, first, (Some(at), 0), inner.as_ref(), by_hand);
            let second = self.list(facts, second, (Some(at), 1), inner.as_ref(), by_hand);
            self.nodes[at].lists = [first, second];
            self.nodes[at].end = self.nodes.len();
        }
        out
    }

    pub(crate) fn node(&self, at: At) -> &Node<'p> {
        &self.nodes[at]
    }

    pub(crate) fn key(&self, at: At) -> NodeKey {
        self.nodes[at].stmt.node.key()
    }

    /// The spec that a statement is.
    pub(crate) fn spec(&self, at: At) -> Option<SpecId> {
        match self.nodes[at].stmt.kind {
            StmtKind::Spec(id) => Some(id),
            _ => None,
        }
    }

    /// The list that a statement stands in.
    pub(crate) fn siblings(&self, at: At) -> &[At] {
        let node = self.node(at);
        node.parent.map_or(&self.roots, |p| &self.nodes[p].lists[node.list])
    }

    /// A statement and those around it, from the inside out.
    pub(crate) fn chain(&self, at: At) -> impl Iterator<Item = At> + '_ {
        std::iter::successors(Some(at), |at| self.nodes[*at].parent)
    }

    /// The loops around a statement, itself not among them, from the outside in.
    pub(crate) fn loops(&self, at: At) -> Vec<At> {
        let mut out: Vec<At> =
            self.chain(at).skip(1).filter(|a| self.nodes[*a].of_loop.is_some()).collect();
        out.reverse();
        out
    }

    /// Whether a statement is in another, or is that one.
    pub(crate) fn holds(&self, outer: At, at: At) -> bool {
        (outer..self.nodes[outer].end).contains(&at)
    }

    /// The statements of one list that two statements are in or are: the innermost such list.
    pub(crate) fn common(&self, a: At, b: At) -> Option<(At, At)> {
        let of_a: Vec<At> = self.chain(a).collect();
        self.chain(b).find_map(|y| {
            let (parent, list) = (self.nodes[y].parent, self.nodes[y].list);
            let x = of_a
                .iter()
                .find(|x| (self.nodes[**x].parent, self.nodes[**x].list) == (parent, list))?;
            Some((*x, y))
        })
    }

    /// The values of loop variables in these iterations, where they are known.
    pub(crate) fn values(&self, turns: &Turns) -> HashMap<VarId, i64> {
        let value = |(at, turn): (&At, &i64)| {
            let l = self.nodes[*at].of_loop?;
            Some((l.var, l.start?.checked_add(turn.checked_mul(l.step)?)?))
        };
        turns.iter().filter_map(value).collect()
    }

    /// An expression with the numbers of iterations in the places of the variables of loops whose
    /// first values are not known, and whether it is another one then.
    fn in_turns(&self, p: &Program, d: Dim) -> (Dim, bool) {
        let counted = || {
            let all = self.nodes.iter().rev().filter_map(|n| n.of_loop);
            all.filter_map(|l| Some((l, l.counted?)))
        };
        if !counted().any(|(l, _)| mentions(p, d, l.var)) {
            return (d, false);
        }
        // Inner loops first: where they begin may follow from those around them.
        let put = |d: Dim, (l, (start, turn)): (Loop, (Dim, VarId))| {
            let turns = p.arena.mul(p.arena.dim_of(turn)?, Dim::Const(l.step)).ok()?;
            let value = p.arena.add(start, turns).ok()?;
            p.arena.substitute(d, &|v| (v == l.var).then_some(value)).ok()
        };
        let put = counted().try_fold(d, put);
        // Names of indices stand for expressions of the variables themselves.
        match put.filter(|d| !counted().any(|(l, _)| mentions(p, *d, l.var))) {
            Some(put) => (put, true),
            None => (d, false),
        }
    }

    /// An expression, and the variable with which it moves with a loop: what counts iterations,
    /// where the loop's own does not begin at a number.
    pub(crate) fn moving(&self, p: &Program, d: Dim, of: Loop) -> (Dim, VarId) {
        match (self.in_turns(p, d), of.counted) {
            ((put, true), Some((_, turn))) => (put, turn),
            ((d, _), _) => (d, of.var),
        }
    }

    /// The variable that counts iterations of a loop whose first value is not known.
    pub(crate) fn counted(&self, at: At) -> Option<VarId> {
        self.nodes[at].of_loop?.counted.map(|(_, turn)| turn)
    }

    /// An expression in these iterations, as far as it follows from loops whose first values are
    /// not known.
    pub(crate) fn at_turns(&self, p: &Program, d: Dim, turns: &Turns) -> Dim {
        let (put, true) = self.in_turns(p, d) else { return d };
        let number = |v: VarId| {
            let counts = |(at, _): &(&At, &i64)| self.counted(**at) == Some(v);
            turns.iter().find(counts).map(|(_, n)| Dim::Const(*n))
        };
        let all = self.nodes.iter().filter_map(|n| n.of_loop?.counted);
        let here = p.arena.substitute(put, &number).ok();
        let here = here.filter(|d| {
            let left = p.vars_in(*d);
            all.clone().all(|(_, turn)| !left.contains(&turn))
        });
        here.unwrap_or(d)
    }

    /// The nearest iterations of two statements: the last of loops around the first alone, the
    /// first of those around the second, and of a loop that carries a dependence one after the
    /// other.
    pub(crate) fn nearest(&self, from: At, to: At, carried: Option<At>) -> (Turns, Turns) {
        let last =
            |l: At| self.nodes[l].of_loop.and_then(|l| l.trips).map_or(0, |n| (n - 1).max(0));
        let second = self.loops(to);
        let (mut first, mut both) = (Turns::new(), true);
        for (i, l) in self.loops(from).into_iter().enumerate() {
            both &= second.get(i) == Some(&l);
            first.insert(l, if both { 0 } else { last(l) });
            both &= carried != Some(l);
        }
        let second = second.into_iter().map(|l| (l, i64::from(carried == Some(l)))).collect();
        (first, second)
    }

    /// The threads that may execute a statement.
    pub(crate) fn who(&self, facts: &Facts<'_>, at: At) -> Mask {
        let mut out = Mask::first(facts.threads);
        for at in self.chain(at) {
            let exec = self.spec(at).and_then(|id| facts.p.specs[id].exec);
            if let Some(own) = exec.and_then(|e| members(facts.p, e.threads, &HashMap::new())) {
                out = out.and(&own);
            }
        }
        out
    }

    /// Whether all threads that come to a statement execute what is in it, in order.
    pub(crate) fn all_go_on(&self, at: At) -> bool {
        let inner = self.node(at).lists[0].first().map(|s| &self.node(*s).threads);
        inner.is_none_or(|inner| *inner == self.node(at).threads)
    }

    /// Whether these threads come to a statement together.
    pub(crate) fn meet(&self, at: At, threads: &Mask) -> bool {
        self.node(at).threads.as_ref().is_some_and(|here| here.covers(threads))
    }

    /// How often a statement is executed, about.
    pub(crate) fn times(&self, at: At) -> f64 {
        /// Turns of a loop of unknown length.
        const SOME: i64 = 32;
        let trips = |l: &At| self.nodes[*l].of_loop.and_then(|l| l.trips).unwrap_or(SOME) as f64;
        self.loops(at).iter().map(trips).product()
    }

    /// The threads that come to a leaf in these iterations; none where nobody does.
    pub(crate) fn mask(
        &self,
        facts: &Facts<'_>,
        at: At,
        env: &HashMap<VarId, i64>,
    ) -> Option<Mask> {
        let mut mask = Mask::first(facts.threads);
        let mut inner = at;
        for outer in self.chain(at).skip(1) {
            let list = self.nodes[inner].list;
            inner = outer;
            match &self.nodes[outer].stmt.kind {
                StmtKind::Spec(id) => {
                    let exec = facts.p.specs[*id].exec;
                    if let Some(own) = exec.and_then(|e| members(facts.p, e.threads, env)) {
                        mask = mask.and(&own);
                    }
                }
                StmtKind::If { cond, .. } => {
                    let of_threads = cond
                        .iter()
                        .any(|(a, _, b)| [a, b].iter().any(|d| depends(facts.p, **d).thread));
                    // The first list where it may hold, the second where it may not.
                    let comes = |t: Option<u32>| {
                        crate::order::touched::holds(facts.p, cond, env, t) != Some(list == 1)
                    };
                    if of_threads {
                        mask = mask.filter(|t| comes(Some(t)));
                    } else if !comes(None) {
                        return None;
                    }
                }
                _ => {}
            }
        }
        Some(mask)
    }
}

fn of_loop(facts: &Facts<'_>, stmt: &Stmt) -> Option<Loop> {
    let StmtKind::For { var, start, end, step, .. } = &stmt.kind else { return None };
    let trips = ops::trips(*start, *end, *step);
    let arena = &facts.p.arena;
    let counted = match start {
        Dim::Const(_) => None,
        Dim::Expr(_) => {
            let name = format!("turns of {}", arena.var_info(*var).name);
            let info = VarInfo { name, lo: 0, hi: None, div: 1 };
            let turn = arena.var(info).ok().and_then(|turn| arena.var_id(turn));
            turn.map(|turn| (*start, turn))
        }
    };
    Some(Loop { var: *var, start: start.as_const(), step: *step, counted, trips })
}

/// Whether a statement waits for copies or multiplications of the threads' own, or for a phase of
/// an mbarrier.
pub(crate) fn waits(stmt: &Stmt) -> bool {
    let StmtKind::Sync(s) = &stmt.kind else { return false };
    matches!(
        s.op,
        SyncOp::AsyncWait
            | SyncOp::MbarrierWait
            | SyncOp::BulkWait
            | SyncOp::BulkWaitRead
            | SyncOp::WgmmaWait
    )
}

/// Whether a statement is a barrier or another synchronization of the text.
pub(crate) fn synchronizes(stmt: &Stmt) -> bool {
    matches!(stmt.kind, StmtKind::Barrier(_) | StmtKind::Sync(_))
}

/// The threads that go on together inside of a statement, of those that come to it together; none
/// where they part.
fn go_on(facts: &Facts<'_>, stmt: &Stmt, threads: &Mask) -> Option<Mask> {
    let p = facts.p;
    let same = |d: &Dim| !depends(p, *d).thread;
    let all = match &stmt.kind {
        StmtKind::Spec(id) if p.specs[*id].body.is_some() => {
            let own = p.specs[*id].exec?.threads;
            // Of a warp whoever is elected is alone.
            let alone = p.threads[own].elect.is_some();
            return members(p, own, &HashMap::new()).filter(|own| !alone && threads.covers(own));
        }
        StmtKind::For { start, end, .. } => same(start) && same(end),
        StmtKind::If { cond, .. } => cond.iter().all(|(a, _, b)| same(a) && same(b)),
        StmtKind::Spec(_)
        | StmtKind::Allocate(_)
        | StmtKind::Indices(_)
        | StmtKind::Element { .. }
        | StmtKind::Step { .. }
        | StmtKind::Barrier(_)
        | StmtKind::Sync(_) => true,
    };
    all.then(|| threads.clone())
}
