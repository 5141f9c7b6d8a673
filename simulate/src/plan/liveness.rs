//! Computes the number of live registers at each leaf, for the report: the registers of one thread
//! that live buffers occupy.
//!
//! A buffer is live where a later statement may still read a value in it. The analysis goes
//! backward over the statements, joins branches and iterates loops (Aho, Lam, Sethi, Ullman:
//! Compilers, Live-Variable Analysis). Each buffer is live as a whole. A buffer is dead before a
//! statement that writes all of it without reading it; a spec with a body is such a statement if
//! its meaning is. Addresses, indices and predicates need additional registers.

use super::{How, Kernel, LeafSpec, Node, Reference, Space};

/// The largest number of words of all sets together.
const MAX_WORDS: usize = 1 << 20;
/// The largest number of elements of a view that are checked one by one.
const MAX_LISTED: usize = 1 << 10;

/// A set of register buffers, one bit for each.
type Set = Vec<u64>;

/// The effect of a statement and its inner statements on liveness.
struct Fact {
    /// The buffers that are read before they are written.
    reads: Set,
    /// The buffers that are completely written.
    writes: Set,
    inner: Vec<Vec<Fact>>,
}

/// For each leaf, the number of live 32-bit registers of a thread; none if there are too many
/// statements and buffers.
pub(crate) fn live_registers(kernel: &Kernel<'_>) -> Option<Vec<u64>> {
    let words = kernel.registers.len().div_ceil(64);
    if (n_nodes(&kernel.body) + 1).saturating_mul(2 * words.max(1)) > MAX_WORDS {
        return None;
    }
    let mut live = Live { kernel, words, leaves: vec![0; kernel.leaves.len()] };
    let facts = live.facts(&kernel.body).2;
    live.assign(&kernel.body, &facts, live.none());
    Some(live.leaves)
}

fn n_nodes(nodes: &[Node]) -> usize {
    let inner = |node: &Node| match node {
        Node::Body { body, .. } | Node::For { body, .. } => n_nodes(body),
        Node::If { then, otherwise, .. } => n_nodes(then) + n_nodes(otherwise),
        _ => 0,
    };
    nodes.iter().map(|node| 1 + inner(node)).sum()
}

struct Live<'k> {
    kernel: &'k Kernel<'k>,
    words: usize,
    leaves: Vec<u64>,
}

impl Live<'_> {
    fn none(&self) -> Set {
        vec![0; self.words]
    }

    fn buffer(&self, view: usize) -> Option<usize> {
        match self.kernel.views[view].space {
            Space::Registers(i) => Some(i),
            _ => None,
        }
    }

    /// Whether a view contains all of its buffer, for the threads that have it.
    fn is_whole(&self, index: usize) -> bool {
        let (view, Some(buffer)) = (&self.kernel.views[index], self.buffer(index)) else {
            return false;
        };
        let len = self.kernel.registers[buffer].len;
        if let Some(dist) = view.dist {
            return self.kernel.dists[dist].by_thread.iter().all(|(_, v)| v.len() == len);
        }
        if view.size != len as i64 || len > MAX_LISTED || view.offset.known() != Some(0) {
            return false;
        }
        let mut seen = vec![false; len];
        for e in 0..len {
            match usize::try_from(view.element(e)).ok().and_then(|at| seen.get_mut(at)) {
                Some(seen) => *seen = true,
                None => return false,
            }
        }
        seen.into_iter().all(|s| s)
    }

    fn of_leaf(&self, leaf: &LeafSpec) -> (Set, Set) {
        let (mut reads, mut writes) = (self.none(), self.none());
        let accumulates = match &leaf.how {
            How::Atom(atom) => atom.writes.iter().any(|w| !w.reads.is_empty()),
            How::Meaning(meaning) => meaning.reads_output(),
            How::Bulk(_) | How::Shuffle { .. } => false,
        };
        for view in super::site::views_of(&leaf.inputs) {
            self.buffer(view).iter().for_each(|b| insert(&mut reads, *b));
        }
        for view in &leaf.outputs {
            let Some(buffer) = self.buffer(*view) else { continue };
            if accumulates {
                insert(&mut reads, buffer);
            } else if self.is_whole(*view) {
                insert(&mut writes, buffer);
            }
        }
        (reads, writes)
    }

    fn fact(&self, node: &Node) -> Fact {
        match node {
            Node::Leaf(i) => {
                let (reads, writes) = self.of_leaf(&self.kernel.leaves[*i]);
                Fact { reads, writes, inner: vec![] }
            }
            Node::Allocate(buffer) => {
                let mut writes = self.none();
                buffer.iter().for_each(|b| insert(&mut writes, *b));
                Fact { reads: self.none(), writes, inner: vec![] }
            }
            Node::Body { check, body, .. } => {
                let (mut reads, mut writes, inner) = self.facts(body);
                if let Some(check) = check.map(|c| &self.kernel.checks[c])
                    && !check.reference.outputs.iter().any(|v| check.reference.reads(*v))
                {
                    let mut own = self.none();
                    let Reference { inputs, outputs, .. } = &check.reference;
                    for view in outputs.iter().filter(|v| self.is_whole(**v)) {
                        self.buffer(*view).iter().for_each(|b| insert(&mut own, *b));
                    }
                    for view in super::site::views_of(inputs) {
                        self.buffer(view).iter().for_each(|b| remove(&mut own, *b));
                    }
                    subtract(&mut reads, &own);
                    join(&mut writes, &own);
                }
                Fact { reads, writes, inner: vec![inner] }
            }
            Node::For { body, .. } => {
                let (reads, _, inner) = self.facts(body);
                Fact { reads, writes: self.none(), inner: vec![inner] }
            }
            Node::If { then, otherwise, .. } => {
                let (mut reads, mut writes, first) = self.facts(then);
                let (also, too, second) = self.facts(otherwise);
                join(&mut reads, &also);
                writes.iter_mut().zip(&too).for_each(|(a, b)| *a &= b);
                Fact { reads, writes, inner: vec![first, second] }
            }
            Node::Element { .. } | Node::Step { .. } | Node::Barrier { .. } | Node::Sync(_) => {
                Fact { reads: self.none(), writes: self.none(), inner: vec![] }
            }
        }
    }

    /// The facts of a list of statements: the buffers read before they are written, the buffers
    /// completely written, and the facts of each statement.
    fn facts(&self, nodes: &[Node]) -> (Set, Set, Vec<Fact>) {
        let all: Vec<Fact> = nodes.iter().map(|node| self.fact(node)).collect();
        let (mut reads, mut writes) = (self.none(), self.none());
        for fact in all.iter().rev() {
            subtract(&mut reads, &fact.writes);
            join(&mut reads, &fact.reads);
            join(&mut writes, &fact.writes);
        }
        (reads, writes, all)
    }

    /// Records the live buffers at each leaf, given the live buffers after the list.
    fn assign(&mut self, nodes: &[Node], facts: &[Fact], mut live: Set) {
        for (node, fact) in nodes.iter().zip(facts).rev() {
            match node {
                Node::Leaf(i) => {
                    let leaf = &self.kernel.leaves[*i];
                    let written = leaf.outputs.iter().filter_map(|v| self.buffer(*v));
                    let mut here = live.clone();
                    written.for_each(|b| insert(&mut here, b));
                    join(&mut here, &fact.reads);
                    self.leaves[*i] = self.registers(&here);
                }
                Node::Body { body, .. } => self.assign(body, &fact.inner[0], live.clone()),
                Node::For { body, .. } => {
                    let mut around = live.clone();
                    join(&mut around, &fact.reads);
                    self.assign(body, &fact.inner[0], around);
                }
                Node::If { then, otherwise, .. } => {
                    self.assign(then, &fact.inner[0], live.clone());
                    self.assign(otherwise, &fact.inner[1], live.clone());
                }
                Node::Allocate(_)
                | Node::Element { .. }
                | Node::Step { .. }
                | Node::Barrier { .. }
                | Node::Sync(_) => {}
            }
            subtract(&mut live, &fact.writes);
            join(&mut live, &fact.reads);
        }
    }

    fn registers(&self, set: &Set) -> u64 {
        let has = |b: &usize| set[b / 64] >> (b % 64) & 1 == 1;
        let all = (0..self.kernel.registers.len()).filter(has);
        all.map(|b| {
            let buffer = &self.kernel.registers[b];
            (buffer.len as u64).saturating_mul(u64::from(buffer.bits)).div_ceil(32)
        })
        .sum()
    }
}

fn insert(set: &mut Set, i: usize) {
    set[i / 64] |= 1 << (i % 64);
}

fn remove(set: &mut Set, i: usize) {
    set[i / 64] &= !(1 << (i % 64));
}

fn join(set: &mut Set, other: &Set) {
    set.iter_mut().zip(other).for_each(|(a, b)| *a |= b);
}

fn subtract(set: &mut Set, other: &Set) {
    set.iter_mut().zip(other).for_each(|(a, b)| *a &= !b);
}
