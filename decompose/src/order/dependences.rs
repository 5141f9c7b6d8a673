//! Finds dependences: pairs of accesses of one element, one of which writes, with the number of
//! iterations between them ([`Dependence`]).
//!
//! An access is a relation of iterations, thread and value to elements. Two accesses are compared
//! for iterations that stand for all. In a loop along which both offsets repeat (a ring of stages)
//! or move alike, these are one period and every distance at which the two can still meet; in other
//! loops they are all iterations, if these are few. Accesses that cannot be told apart so depend at
//! any distance.

use super::facts::{Asynchronous, Facts};
use super::tree::{At, Tree, Turns};
use crate::access::increments::{Drift, drift, mentions};
use crate::access::sum::depends;
use crate::order::touched::{Found, Mask, Relation, Target};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::expr::{Dim, VarId};
use carbyne_ir::program::{StmtKind, TensorId};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

/// Loops of so many iterations are looked at one by one.
const FEW: i64 = 32;
/// Pairs of iterations of two accesses that are compared at most.
const MOST_PAIRS: usize = 1 << 14;

/// An access of a leaf to memory that threads share.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// The leaf.
    pub(crate) leaf: At,
    /// Where it takes place: at the leaf, or, of a copy that the text calls asynchronous, as late
    /// as at a wait.
    pub(crate) at: At,
    pub(crate) target: Target,
    tensor: Option<TensorId>,
    pub(crate) write: bool,
    /// Whether it is there only when somebody here has waited for it.
    pub(crate) asynchronous: bool,
    /// Whether the leaf is one of the text, and no operation of the block.
    pub(crate) by_hand: bool,
}

/// What of two accesses must be ordered.
#[derive(Clone, Debug)]
pub(crate) struct Dependence {
    pub(crate) from: At,
    pub(crate) to: At,
    /// The loop that carries it, of which they are in different iterations; none where they are in
    /// the same of all loops around both.
    pub(crate) carried: Option<At>,
    /// Whether two iterations or more lie between them.
    pub(crate) wraps: bool,
    /// A loop around the second access alone whose first iteration does not depend.
    pub(crate) enters: Option<At>,
    /// Whether two threads touch one element.
    pub(crate) threads: bool,
    /// Of an asynchronous access: iterations of both, which stand for all.
    pub(crate) waits: Option<Vec<(Turns, Turns)>>,
}

/// A leaf, in these iterations of loops around it.
type InTurns = (At, Vec<(At, i64)>);

/// Dependences by both accesses, the loop that carries them, and the one that they enter.
type Pairs = BTreeMap<(At, At, Option<At>, Option<At>), Dependence>;

/// Iterations of two accesses that stand for all, and whether conditions on them are told.
struct Sample {
    pairs: Vec<(Turns, Turns)>,
    /// Loops every iteration of which is among them.
    exact: Vec<At>,
    /// Whether others may meet, too.
    more: bool,
}

pub(crate) struct Dependences<'a, 'p> {
    pub(crate) facts: &'a Facts<'p>,
    pub(crate) tree: &'a Tree<'p>,
    pub(crate) found: Found,
    /// The threads that come to a leaf in these iterations, as far as that was asked.
    pub(crate) masks: HashMap<InTurns, Option<Mask>>,
    /// Where a tensor begins in these iterations of loops whose first values are not known, as far
    /// as that was asked.
    pub(crate) offsets: HashMap<(Dim, Vec<(At, i64)>), Dim>,
    /// A copy to a stage that is handed over, and an access of the same threads before that.
    pub(crate) overtaken: Option<(At, At)>,
}

impl Dependences<'_, '_> {
    /// The accesses of all leaves, in text order; those that end at waits last.
    pub(crate) fn accesses(&self) -> Vec<Access> {
        let facts = self.facts;
        let mut out = vec![];
        let mut said = vec![];
        let mut waits = vec![];
        for at in 0..self.tree.nodes.len() {
            waits.extend(super::tree::waits(self.tree.node(at).stmt).then_some(at));
            let Some(id) = self.tree.spec(at).filter(|id| facts.p.specs[*id].body.is_none()) else {
                continue;
            };
            let by_hand = !facts.solution.implements(id);
            if facts.exchanges(id) {
                for write in [true, false] {
                    out.push(Access {
                        leaf: at,
                        at,
                        target: Target::Exchange(id),
                        tensor: None,
                        write,
                        asynchronous: false,
                        by_hand,
                    });
                }
            }
            for (t, write) in facts.operands(id) {
                let target = Target::Buffer(facts.p.tensors[t].buffer);
                let asynchronous = facts.issues_copy(id);
                let tensor = Some(t);
                let access = Access { leaf: at, at, target, tensor, write, asynchronous, by_hand };
                let text = facts.asynchronous.get(&id) == Some(&Asynchronous::Said);
                if text && !facts.hands_copy(id) {
                    said.push(access.clone());
                }
                out.push(access);
            }
        }
        for access in said {
            out.extend(waits.iter().map(|at| Access { at: *at, ..access.clone() }));
        }
        out
    }

    /// All dependences; none where there is too much to compare.
    pub(crate) fn all(&mut self, accesses: &[Access]) -> Vec<Dependence> {
        let mut out = Pairs::new();
        // What touches one place together.
        let place = |a: &Access| match a.target {
            Target::Buffer(b) if !self.facts.shares(b) => Some(b),
            _ => None,
        };
        let mut lists: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (i, a) in accesses.iter().enumerate() {
            lists.entry(place(a)).or_default().push(i);
        }
        for list in lists.values() {
            for &i in list {
                for &j in list {
                    let (a, b) = (&accesses[i], &accesses[j]);
                    // What ends at a wait has begun at its leaf.
                    let starts = b.at == b.leaf;
                    let writes = (a.write || b.write) && !self.commute(a, b);
                    if writes && starts && self.may_touch(a, b) {
                        self.pair(a, b, &mut out);
                    }
                }
            }
        }
        out.into_values().collect()
    }

    /// Whether both add to what they touch, or combine with it by another operation of one kind, so
    /// that their order does not count.
    fn commute(&self, a: &Access, b: &Access) -> bool {
        let operation = |access: &Access| {
            let kind = &self.facts.p.specs[self.tree.spec(access.leaf)?].kind;
            match kind {
                SpecKind::Accumulate(op) if access.write => Some(*op),
                _ => None,
            }
        };
        operation(a).is_some_and(|of| operation(b) == Some(of))
    }

    fn may_touch(&self, a: &Access, b: &Access) -> bool {
        let facts = self.facts;
        match (a.target, b.target) {
            (x, y) if x == y => true,
            (Target::Buffer(x), Target::Buffer(y)) => facts.share(x, y),
            (Target::Exchange(_), Target::Buffer(b)) | (Target::Buffer(b), Target::Exchange(_)) => {
                facts.anywhere.contains(&b)
            }
            (Target::Exchange(_), Target::Exchange(_)) => false,
        }
    }

    /// Adds how one access depends on an earlier one, in the same iterations and in others.
    fn pair(&mut self, a: &Access, b: &Access, out: &mut Pairs) {
        let (from, to) = (self.tree.loops(a.at), self.tree.loops(b.at));
        let common: Vec<At> =
            from.iter().zip(&to).take_while(|(x, y)| x == y).map(|(x, _)| *x).collect();
        let mut scopes = vec![];
        if let Some((x, y)) = self.tree.common(a.at, b.at)
            && x < y
        {
            scopes.push(None);
        }
        // What an operation reads of its exchange it has written before.
        let several = |l: &&At| self.tree.node(**l).of_loop.is_some_and(|l| l.trips != Some(1));
        scopes.extend(common.iter().filter(several).map(|l| Some(*l)));
        let ring = self.ring(a, b);
        if ring {
            // Mbarriers order iterations, those who write with those who read, and what the copy
            // engine writes to a stage.
            let engine = |access: &Access| {
                self.tree.spec(access.leaf).is_some_and(|id| self.facts.p.specs[id].bar.is_some())
            };
            if a.write != b.write || engine(a) && engine(b) {
                return;
            }
            scopes.retain(|l| l.is_none_or(|l| self.in_role(l)));
        }
        for carried in scopes {
            // Leaves of the text with no operation of the block between them are ordered by the
            // text.
            let ordered = a.by_hand && b.by_hand && !self.operations_between(a.leaf, b.at, carried);
            if ordered && !a.asynchronous {
                continue;
            }
            for mut new in self.dependence(a, b, carried, &common) {
                if ring && self.tree.spec(a.leaf).is_some_and(|id| self.facts.hands_copy(id)) {
                    self.overtaken.get_or_insert((a.leaf, b.leaf));
                    continue;
                }
                new.threads &= !ordered;
                match out.entry((new.from, new.to, carried, new.enters)) {
                    Entry::Vacant(e) => drop(e.insert(new)),
                    Entry::Occupied(mut e) => {
                        let known = e.get_mut();
                        known.wraps &= new.wraps;
                        known.threads |= new.threads;
                        match (&mut known.waits, new.waits) {
                            (Some(all), Some(more)) => all.extend(more),
                            (all @ None, more) => *all = more,
                            (Some(_), None) => {}
                        }
                    }
                }
            }
        }
    }

    /// Whether both access a ring that roles hand over.
    fn ring(&self, a: &Access, b: &Access) -> bool {
        let of = |access: &Access| match access.target {
            Target::Buffer(b) => Some(b).filter(|b| self.facts.handed.contains(b)),
            Target::Exchange(_) => None,
        };
        of(a).is_some() && of(a) == of(b)
    }

    /// Whether a loop stands in one whose iterations hand stages over.
    fn in_role(&self, l: At) -> bool {
        let of = |at: At| self.facts.roles.loops.contains(&self.tree.key(at));
        self.tree.chain(l).skip(1).any(of)
    }

    /// Whether an operation of the block is executed between two leaves.
    fn operations_between(&self, a: At, b: At, carried: Option<At>) -> bool {
        let Some((x, y)) = self.tree.common(a, b) else { return true };
        // Later iterations of loops around the first leaf alone, and earlier ones around the
        // second.
        let outermost = |at: At, top: At| {
            let loops = self.tree.chain(at).skip(1).take_while(|l| *l >= top);
            loops.filter(|l| self.tree.node(*l).of_loop.is_some()).last()
        };
        let first = if a == x { None } else { outermost(a, x) }.unwrap_or(a);
        let last = if b == y { None } else { outermost(b, y) };
        let last = last.map_or(b, |l| self.tree.node(l).end);
        let operation =
            |at: At| self.tree.spec(at).is_some_and(|id| self.facts.solution.implements(id));
        match carried {
            None => (first..last).any(operation),
            Some(l) => {
                (l..self.tree.node(l).end).any(|at| (at >= first || at < last) && operation(at))
            }
        }
    }

    /// How the second access depends on the first; apart, where it does in the first iteration of a
    /// loop around it alone and where it does in later ones.
    fn dependence(
        &mut self,
        a: &Access,
        b: &Access,
        carried: Option<At>,
        common: &[At],
    ) -> Vec<Dependence> {
        let known = a.target == b.target && a.tensor.is_some() && b.tensor.is_some();
        let own = self.tree.loops(b.at).get(common.len()).copied();
        let new = |enters: Option<At>| Dependence {
            from: a.at,
            to: b.at,
            carried,
            wraps: carried.is_some(),
            enters,
            threads: false,
            waits: a.asynchronous.then(Vec::new),
        };
        let (sample, known) = match known.then(|| self.sample(a, b, carried, common)).flatten() {
            Some(sample) => (sample, true),
            None => {
                let pairs = vec![self.tree.nearest(a.at, b.at, carried)];
                (Sample { pairs, exact: vec![], more: false }, false)
            }
        };
        let (mut first, mut later): (Option<Dependence>, Option<Dependence>) = (None, None);
        let at = |turns: &Turns| carried.and_then(|l| turns.get(&l).copied()).unwrap_or(0);
        for (x, y) in sample.pairs {
            let relation = match known {
                true => self.relate(a, b, (&x, &y), &sample.exact),
                false => Relation::ALL,
            };
            let copy = self.tree.spec(a.leaf).is_some_and(|id| self.facts.hands_copy(id));
            if relation == Relation::NONE || !relation.threads && !a.asynchronous && !copy {
                continue;
            }
            let enters = own.filter(|l| y.get(l).is_some_and(|turn| *turn > 0));
            let out = if enters.is_some() { &mut later } else { &mut first };
            let out = out.get_or_insert_with(|| new(enters));
            out.threads |= relation.threads;
            out.wraps &= at(&y) - at(&x) >= 2;
            if let Some(waits) = &mut out.waits {
                waits.push((x, y));
            }
        }
        if sample.more {
            // They may meet at a greater distance than any of these.
            let out = first.get_or_insert_with(|| new(None));
            out.threads = true;
            if let Some(waits) = &mut out.waits {
                waits.push(self.tree.nearest(a.at, b.at, carried));
            }
        }
        first.into_iter().chain(later).collect()
    }

    fn relate(
        &mut self,
        a: &Access,
        b: &Access,
        (x, y): (&Turns, &Turns),
        exact: &[At],
    ) -> Relation {
        let mut of = |access: &Access, turns: &Turns| {
            let env = self.tree.values(turns);
            let told = only(turns, |l| exact.contains(&l));
            let mask = self.masks.entry((access.leaf, told)).or_insert_with_key(|(leaf, told)| {
                let told = self.tree.values(&told.iter().copied().collect());
                self.tree.mask(self.facts, *leaf, &told)
            });
            let mask = mask.clone()?;
            let id = self.tree.spec(access.leaf)?;
            let t = access.tensor?;
            let offset = self.facts.p.tensors[t].offset;
            let counted = only(turns, |l| self.tree.counted(l).is_some());
            let offset = *self
                .offsets
                .entry((offset, counted))
                .or_insert_with(|| self.tree.at_turns(self.facts.p, offset, turns));
            Some(self.found.of(self.facts, (id, t, access.write), offset, &env, &mask))
        };
        // Where a condition does not hold, nothing is touched.
        let (Some(x), Some(y)) = (of(a, x), of(b, y)) else { return Relation::NONE };
        match (x, y) {
            (Some(x), Some(y)) => self.found.relation(&x, &y),
            _ => Relation::ALL,
        }
    }

    /// How an access moves with a loop.
    fn drift(&self, a: &Access, l: At) -> Drift {
        let Some(of) = self.tree.node(l).of_loop else { return Drift::NONE };
        let Some(t) = a.tensor else { return Drift::Unknown };
        if self.of_threads(a, of.var) {
            return Drift::Unknown;
        }
        let (offset, var) = self.tree.moving(self.facts.p, self.facts.p.tensors[t].offset, of);
        drift(self.facts.p, offset, var)
    }

    /// Whether the threads that execute a leaf depend on a loop.
    fn of_threads(&self, a: &Access, var: VarId) -> bool {
        let p = self.facts.p;
        self.tree.chain(a.leaf).filter_map(|at| self.tree.spec(at)).any(|id| {
            p.specs[id].exec.is_some_and(|e| mentions(p, p.threads[e.threads].offset, var))
        })
    }

    /// Whether a condition around a leaf depends on a loop.
    fn told(&self, a: &Access, l: At) -> bool {
        let Some(of) = self.tree.node(l).of_loop else { return false };
        let mentions = |d: &Dim| mentions(self.facts.p, *d, of.var);
        self.tree.chain(a.leaf).any(|at| match &self.tree.node(at).stmt.kind {
            StmtKind::If { cond, .. } => cond.iter().any(|(a, _, b)| mentions(a) || mentions(b)),
            _ => false,
        })
    }

    /// Iterations that stand for all; none where there are too many.
    fn sample(&self, a: &Access, b: &Access, carried: Option<At>, common: &[At]) -> Option<Sample> {
        let mut out =
            Sample { pairs: vec![(Turns::new(), Turns::new())], exact: vec![], more: false };
        let (from, to) = (self.tree.loops(a.at), self.tree.loops(b.at));
        let mut inner = false;
        for l in common {
            let (x, y) = (self.drift(a, *l), self.drift(b, *l));
            let told = self.told(a, *l) || self.told(b, *l);
            let trips = self.tree.node(*l).of_loop?.trips;
            let few = trips.filter(|n| *n <= FEW);
            if inner {
                // Any two iterations.
                self.alone(&mut out, *l, (x, told), true)?;
                self.alone(&mut out, *l, (y, told), false)?;
                continue;
            }
            // Iterations of the first, and distances.
            let alike = x.common(y).filter(|(_, a, b)| a == b).map(|(period, by, _)| (period, by));
            let (turns, all) = match (alike, few, told) {
                (Some((period, _)), _, false) => (trips.map_or(period, |n| n.min(period)), false),
                (_, Some(n), _) => (n, true),
                (Some((period, _)), None, true) => (period, false),
                (None, None, _) => return None,
            };
            if all {
                out.exact.push(*l);
            }
            if carried != Some(*l) {
                out.times((0..turns).map(|t| (Some((*l, t)), Some((*l, t)))))?;
                continue;
            }
            inner = true;
            let most = trips.map_or(i64::MAX, |n| n - 1);
            let far = match (alike, all) {
                (_, true) => most,
                (Some((period, 0)), _) => period.min(most),
                _ => FEW.min(most),
            };
            out.more |= !all
                && far < most
                && alike.is_none_or(|(_, by)| by != 0)
                && !self.apart(a, b, (*l, far), alike);
            let pairs = (0..turns).flat_map(|t| (1..=far).map(move |d| (t, t + d)));
            let pairs = pairs.filter(|(_, later)| !all || *later < turns);
            out.times(pairs.map(|(t, later)| (Some((*l, t)), Some((*l, later)))))?;
        }
        for l in from.iter().skip(common.len()) {
            self.alone(&mut out, *l, (self.drift(a, *l), self.told(a, *l)), true)?;
        }
        for l in to.iter().skip(common.len()) {
            self.alone(&mut out, *l, (self.drift(b, *l), self.told(b, *l)), false)?;
        }
        Some(out)
    }

    /// Iterations of a loop around one of the accesses: of the first the last ones, of the second
    /// the first, for these are nearest.
    fn alone(
        &self,
        out: &mut Sample,
        l: At,
        (drift, told): (Drift, bool),
        first: bool,
    ) -> Option<()> {
        let trips = self.tree.node(l).of_loop?.trips;
        let (few, n) = (trips.filter(|n| *n <= FEW), trips.unwrap_or(i64::MAX));
        let period = match drift {
            Drift::Regular { period, by: 0 } => Some(period),
            _ => None,
        };
        let (turns, all) = match (period, few) {
            (Some(period), _) if !told => (period.min(n), false),
            (_, Some(n)) => (n, true),
            (Some(period), None) => (period.min(n), false),
            (None, None) => return None,
        };
        if all {
            out.exact.push(l);
        }
        let from = if first && trips.is_some() { n - turns } else { 0 };
        out.times((from..from + turns).map(|t| match first {
            true => (Some((l, t)), None),
            false => (None, Some((l, t))),
        }))
    }

    /// Whether accesses that are `far` iterations apart, and move alike, are beyond each other's
    /// elements for good.
    fn apart(
        &self,
        a: &Access,
        b: &Access,
        (l, far): (At, i64),
        alike: Option<(i64, i64)>,
    ) -> bool {
        let p = self.facts.p;
        let (Some((period, by)), Some(x), Some(y)) = (alike, a.tensor, b.tensor) else {
            return false;
        };
        let offset = p.tensors[x].offset;
        // The same offset, which moves with this loop alone.
        let still = |access: &Access| {
            let mut loops = self.tree.loops(access.at).into_iter().filter(|other| *other > l);
            loops.all(|other| self.drift(access, other) == Drift::NONE)
        };
        let alone = offset == p.tensors[y].offset && still(a) && still(b);
        let span = |t: TensorId| p.tensors[t].concat().to_fixed().map(|l| l.cosize());
        let (Some(x), Some(y)) = (span(x), span(y)) else { return false };
        let moved = by.unsigned_abs().saturating_mul((far / period) as u64);
        alone && !depends(p, offset).thread && moved >= x.max(y).unsigned_abs()
    }
}

impl Sample {
    /// Every pair so far with each of these; none where they become too many.
    fn times(
        &mut self,
        with: impl Iterator<Item = (Option<(At, i64)>, Option<(At, i64)>)> + Clone,
    ) -> Option<()> {
        let mut out = vec![];
        for (x, y) in &self.pairs {
            for (a, b) in with.clone() {
                if out.len() >= MOST_PAIRS {
                    return None;
                }
                let (mut x, mut y) = (x.clone(), y.clone());
                x.extend(a);
                y.extend(b);
                out.push((x, y));
            }
        }
        self.pairs = out;
        Some(())
    }
}

/// Iterations of some of the loops, in order.
fn only(turns: &Turns, of: impl Fn(At) -> bool) -> Vec<(At, i64)> {
    let mut out: Vec<(At, i64)> =
        turns.iter().filter(|(l, _)| of(**l)).map(|(l, t)| (*l, *t)).collect();
    out.sort_unstable();
    out
}
