//! Computes the elements of a buffer that a leaf touches, and which thread touches each
//! ([`Elements`]).
//!
//! Offsets are sums. Terms that follow from blocks and symbols alone are the same whenever one
//! block evaluates them: two accesses with the same such terms are compared by the rest, and any
//! others may meet anywhere. The rest is evaluated for the loops around and for each thread.

use crate::access::ops::WARP;
use crate::access::sum::{Depends, Sum, depends};
use crate::order::facts::Facts;
use carbyne_ir::expr::{Dim, VarId};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{BufferId, Condition, Program, SpecId, TensorId, ThreadsId, VarKind};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Elements of a tensor that are told apart.
const MOST: i64 = 1 << 18;

/// Stands for several threads, or for one that is not known.
pub(crate) const MANY: u32 = u32::MAX;

/// What is accessed: a buffer, or what a spec exchanges in its body.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Buffer(BufferId),
    Exchange(SpecId),
}

/// Which elements are accessed, ascending, each with the thread that does.
#[derive(Debug)]
pub(crate) struct Elements {
    /// Each of these objects has one of its own.
    id: usize,
    /// The terms of the offset that are the same for a block, with their factors.
    block: Vec<(Dim, i64)>,
    list: Vec<(i64, u32)>,
    /// The same without gaps, from the first element on; none where most of it would be gaps.
    dense: Option<Vec<u32>>,
}

/// Stands for an element that is not accessed.
const NOBODY: u32 = u32::MAX - 1;
/// Of so many elements one is accessed at least where there is a list without gaps.
const SPARSE: usize = 32;
/// Elements that are compared at a time.
const CHUNK: usize = 256;

/// The accessor of an element that `a` and `b` access: [`MANY`] if they differ.
fn together(a: u32, b: u32) -> u32 {
    if a == b { a } else { MANY }
}

impl Elements {
    fn new(id: usize, block: Vec<(Dim, i64)>, mut list: Vec<(i64, u32)>) -> Self {
        if let Some(dense) = Self::dense(&list) {
            let first = list.iter().map(|(at, _)| *at).min().unwrap_or(0);
            let there = dense.iter().zip(first..).filter(|(who, _)| **who != NOBODY);
            let list = there.map(|(who, at)| (at, *who)).collect();
            return Elements { id, block, list, dense: Some(dense) };
        }
        list.sort_unstable();
        list.dedup_by(|next, first| {
            let same = next.0 == first.0;
            if same {
                first.1 = together(first.1, next.1);
            }
            same
        });
        Elements { id, block, list, dense: None }
    }

    /// The accessor of each element from the first to the last; none if gaps would make it much
    /// longer than `list`.
    fn dense(list: &[(i64, u32)]) -> Option<Vec<u32>> {
        let elements = || list.iter().map(|(at, _)| *at);
        let (first, last) = (elements().min()?, elements().max()?);
        let length = usize::try_from(last.checked_sub(first)?.checked_add(1)?).ok()?;
        if length > list.len().saturating_mul(SPARSE) {
            return None;
        }
        let mut all = vec![NOBODY; length];
        for (at, who) in list {
            let known = &mut all[(at - first) as usize];
            *known = if *known == NOBODY { *who } else { together(*known, *who) };
        }
        Some(all)
    }

    /// The first element and the last.
    fn ends(&self) -> Option<(i64, i64)> {
        Some((self.list.first()?.0, self.list.last()?.0))
    }

    /// How accesses of these elements relate.
    fn relation(&self, other: &Elements) -> Relation {
        let (Some((a0, a1)), Some((b0, b1))) = (self.ends(), other.ends()) else {
            return Relation::NONE;
        };
        let (from, to) = (a0.max(b0), a1.min(b1));
        if from > to {
            return Relation::NONE;
        }
        let mut found = Relation::NONE;
        if let (Some(a), Some(b)) = (&self.dense, &other.dense) {
            let a = &a[(from - a0) as usize..=(to - a0) as usize];
            let b = &b[(from - b0) as usize..=(to - b0) as usize];
            for (a, b) in a.chunks(CHUNK).zip(b.chunks(CHUNK)) {
                let (mut meet, mut threads) = (false, false);
                for (x, y) in a.iter().zip(b) {
                    let both = (*x != NOBODY) & (*y != NOBODY);
                    meet |= both;
                    threads |= both & ((x != y) | (*x == MANY));
                }
                found.meet |= meet;
                found.threads |= threads;
                if found.threads {
                    break;
                }
            }
            return found;
        }
        let (mut i, mut j) = (0, 0);
        while let (Some(x), Some(y)) = (self.list.get(i), other.list.get(j)) {
            if x.0 == y.0 {
                found.meet = true;
                found.threads |= x.1 != y.1 || x.1 == MANY;
            }
            i += usize::from(x.0 <= y.0);
            j += usize::from(y.0 <= x.0);
            if found.threads {
                break;
            }
        }
        found
    }
}

/// How two accesses of elements that are known relate.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Relation {
    /// They have an element in common.
    pub(crate) meet: bool,
    /// They have one that two threads touch.
    pub(crate) threads: bool,
}

impl Relation {
    pub(crate) const NONE: Relation = Relation { meet: false, threads: false };
    pub(crate) const ALL: Relation = Relation { meet: true, threads: true };
}

/// An operand of a leaf, whether it is written, where it begins, and the values on which its
/// elements depend.
type Access = (SpecId, TensorId, bool, Dim, Vec<i64>);

/// Finds elements, and compares them; what was found is kept.
#[derive(Default)]
pub(crate) struct Found {
    elements: HashMap<Access, Option<Rc<Elements>>>,
    relations: HashMap<(usize, usize), Relation>,
    made: usize,
    /// Evaluations so far, in units of a leaf's.
    pub(crate) work: usize,
}

impl Found {
    /// How accesses of these elements of one buffer relate.
    pub(crate) fn relation(&mut self, a: &Elements, b: &Elements) -> Relation {
        if a.block != b.block {
            return Relation::ALL;
        }
        let key = (a.id, b.id);
        if let Some(known) = self.relations.get(&key) {
            return *known;
        }
        let found = a.relation(b);
        self.work += a.list.len().min(b.list.len()) / 4096;
        self.relations.insert(key, found);
        found
    }

    /// The elements of an operand that begins there, where they can be known.
    pub(crate) fn of(
        &mut self,
        facts: &Facts<'_>,
        (id, t, write): (SpecId, TensorId, bool),
        begin: Dim,
        env: &HashMap<VarId, i64>,
        mask: &Mask,
    ) -> Option<Rc<Elements>> {
        let p = facts.p;
        self.work += 1;
        let tensor = &p.tensors[t];
        if tensor.map.is_some() || tensor.peer.is_some() {
            return None;
        }
        let offset = Offset::of(p, begin)?;
        let loops: Option<Vec<i64>> = offset.loops(p).iter().map(|v| env.get(v).copied()).collect();
        let mut key = loops?;
        let by_hand = !facts.solution.implements(id);
        if by_hand {
            key.extend(mask.key());
        }
        let key = (id, t, write, begin, key);
        if let Some(known) = self.elements.get(&key) {
            return known.clone();
        }
        let layout = p.tensors[t].concat().to_fixed().filter(|l| l.size() <= MOST);
        let list = layout.and_then(|l| match by_hand {
            false => operation(facts, id, write, &l, offset.at(p, env, None)?),
            true => self.leaf(facts, id, &l, &offset, env, mask),
        });
        self.made += 1;
        let made = self.made;
        let found = list.map(|list| Rc::new(Elements::new(made, offset.block, list)));
        self.elements.insert(key, found.clone());
        found
    }

    /// Of a leaf of the text.
    fn leaf(
        &mut self,
        facts: &Facts<'_>,
        id: SpecId,
        layout: &Layout,
        offset: &Offset,
        env: &HashMap<VarId, i64>,
        mask: &Mask,
    ) -> Option<Vec<(i64, u32)>> {
        let p = facts.p;
        let exec = p.specs[id].exec?;
        let threads = &p.threads[exec.threads];
        let single = threads.each.is_some() || threads.levels.is_empty();
        let own = mask.and(&members(p, exec.threads, env)?);
        let elected = threads.elect.is_some();
        let mut out = vec![];
        // Threads that execute it together touch the same elements.
        let mut together = HashSet::new();
        for t in own.threads() {
            let at = offset.at(p, env, Some(t))?;
            let who = if single && !elected { t } else { MANY };
            if who == MANY && !together.insert(at) {
                continue;
            }
            if out.len() as i64 + layout.size() > MOST {
                return None;
            }
            out.extend((0..layout.size()).map(|i| (at + layout.at(i), who)));
        }
        self.work += out.len() / 64;
        Some(out)
    }
}

/// Of a copy of the block: the thread that accesses each element of the layout from the offset on.
fn operation(
    facts: &Facts<'_>,
    id: SpecId,
    write: bool,
    layout: &Layout,
    offset: i64,
) -> Option<Vec<(i64, u32)>> {
    let everybody = || (0..layout.size()).map(|i| (offset + layout.at(i), MANY)).collect();
    let Some(copy) = facts.solution.copy(id) else {
        return facts.solution.multiplies(id).then(everybody);
    };
    if copy.group != 1 {
        return Some(everybody());
    }
    let tv = if write { &copy.g } else { &copy.f };
    let threads = tv.mode(0).ok()?.size();
    let own = first_of(facts, id)?;
    let thread = |t: i64| (own + copy.part.as_ref().map_or(t, |p| p.at(t))) as u32;
    if tv.size() > MOST {
        return Some(everybody());
    }
    Some((0..tv.size()).map(|i| (offset + layout.at(tv.at(i)), thread(i % threads))).collect())
}

/// The first thread of those that execute an operation.
fn first_of(facts: &Facts<'_>, id: SpecId) -> Option<i64> {
    facts.p.threads[facts.p.specs[id].exec?.threads].offset.as_const()
}

/// An offset: terms that are the same for a block, and others.
struct Offset {
    block: Vec<(Dim, i64)>,
    rest: Sum,
}

/// The value of an expression of one thread, without blocks and symbols.
pub(crate) fn value(
    p: &Program,
    d: Dim,
    env: &HashMap<VarId, i64>,
    thread: Option<u32>,
) -> Option<i64> {
    p.value_with(d, &|v| match p.vars.get(&v)? {
        VarKind::Thread(_) => thread.map(i64::from),
        VarKind::Loop => env.get(&v).copied(),
        _ => None,
    })
}

impl Offset {
    /// None where blocks and threads or loops cannot be told apart.
    fn of(p: &Program, d: Dim) -> Option<Offset> {
        let is_mixed = |on: Depends| (on.block || on.symbol) && (on.thread || on.loops);
        let all = Sum::of(p, d);
        if all.terms.iter().any(|(d, _)| is_mixed(depends(p, *d))) {
            return None;
        }
        let (block, rest) = all.split(|d| depends(p, d).block || depends(p, d).symbol);
        Some(Offset { block, rest })
    }

    /// The loops that it depends on.
    fn loops(&self, p: &Program) -> Vec<VarId> {
        let mut out = self.rest.variables(p);
        out.retain(|v| matches!(p.vars.get(v), Some(VarKind::Loop)));
        out
    }

    /// The rest, for a thread.
    fn at(&self, p: &Program, env: &HashMap<VarId, i64>, thread: Option<u32>) -> Option<i64> {
        self.rest.value(|d| value(p, d, env, thread))
    }
}

/// Threads of a block, a bit each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mask([u64; 16]);

impl Mask {
    /// The first so many.
    pub(crate) fn first(n: i64) -> Self {
        let mut out = Mask([0; 16]);
        (0..n.clamp(0, 1024)).for_each(|t| out.insert(t));
        out
    }

    fn insert(&mut self, thread: i64) {
        if let Some(word) = usize::try_from(thread / 64).ok().and_then(|w| self.0.get_mut(w)) {
            *word |= 1 << (thread % 64);
        }
    }

    pub(crate) fn and(&self, other: &Mask) -> Mask {
        Mask(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    pub(crate) fn or(&self, other: &Mask) -> Mask {
        Mask(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    /// Whether all of the others are among these.
    pub(crate) fn covers(&self, others: &Mask) -> bool {
        self.and(others) == *others
    }

    /// Whether some are among both.
    pub(crate) fn meets(&self, others: &Mask) -> bool {
        self.0.iter().zip(&others.0).any(|(a, b)| a & b != 0)
    }

    /// How many.
    pub(crate) fn count(&self) -> i64 {
        self.0.iter().map(|w| i64::from(w.count_ones())).sum()
    }

    /// The warps that these are in: the first thread of the first, and the number of threads up to
    /// the last's end.
    pub(crate) fn warps(&self) -> Option<(i64, i64)> {
        let first = i64::from(self.threads().next()?) / WARP * WARP;
        let last = i64::from(self.threads().last()?) / WARP * WARP + WARP;
        Some((first, last - first))
    }

    /// Those for which something holds.
    pub(crate) fn filter(&self, holds: impl Fn(u32) -> bool) -> Mask {
        let mut out = Mask([0; 16]);
        self.threads().filter(|t| holds(*t)).for_each(|t| out.insert(i64::from(t)));
        out
    }

    fn threads(&self) -> impl Iterator<Item = u32> + '_ {
        (0..1024u32).filter(|t| self.0[(t / 64) as usize] >> (t % 64) & 1 == 1)
    }

    fn key(&self) -> impl Iterator<Item = i64> + '_ {
        self.0.iter().map(|w| *w as i64)
    }
}

/// The threads of a thread tensor, where they are known.
pub(crate) fn members(p: &Program, id: ThreadsId, env: &HashMap<VarId, i64>) -> Option<Mask> {
    let t = &p.threads[id];
    // A thread for itself is each of those that the tensor was made of.
    if let Some(of) = t.each {
        return members(p, of, env);
    }
    if let Some(of) = t.elect {
        return members(p, of, env);
    }
    let offset = value(p, t.offset, env, None)?;
    let layout = t.concat().to_fixed().filter(|l| l.size() <= 1024)?;
    let mut out = Mask([0; 16]);
    (0..layout.size()).for_each(|i| out.insert(offset + layout.at(i)));
    Some(out)
}

/// Whether a condition holds, blocks and symbols unknown; without a thread where it depends on
/// none.
pub(crate) fn holds(
    p: &Program,
    cond: &[Condition],
    env: &HashMap<VarId, i64>,
    thread: Option<u32>,
) -> Option<bool> {
    let mut all = Some(true);
    for (a, op, b) in cond {
        let (Some(a), Some(b)) = (value(p, *a, env, thread), value(p, *b, env, thread)) else {
            all = None;
            continue;
        };
        if !op.holds(a, b) {
            return Some(false);
        }
    }
    all
}
