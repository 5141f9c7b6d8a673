//! Executes a leaf without an atom by its meaning, group by group. Texts in which atoms are still
//! open can therefore run.
//!
//! All groups read before any of them writes. An operand in memory is one view for the whole group.
//! Registers belong to a distributed tensor, or to a thread that is a group of its own.
//!
//! Each access to memory needs an agent, so that races can be found. A group within one warp
//! accesses memory as that warp. For a group of several warps, the text does not say which thread
//! accesses an element. If an operand is distributed and the spec works element by element, the
//! thread that holds the element accesses it; otherwise the *collective*, an agent of its own, does
//! (see [`crate::state::race`]).

use super::Runner;
use super::deviation::Rounds;
use super::errors::{self, ElementAccess};
use super::shadow::{narrow, settled};
use crate::denote::Meaning;
use crate::num::{decode, encode};
use crate::plan::{Base, Checked, Dist, LeafSpec, Mask, Partition, Source};
use crate::state::{Tile, Value, Who, same_shadow};
use carbyne_ir::ast::AccumulateOp;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::scalar::Scalar;

/// The agents that access the elements of memory.
enum By<'k> {
    /// One agent accesses all elements.
    Agent(Box<Who>, usize),
    /// The owners in a distributed operand, for the group of a thread, access their elements.
    Owners(&'k Dist, usize),
}

impl By<'_> {
    /// A thread of the executing group.
    fn thread(&self) -> usize {
        match self {
            By::Agent(_, thread) | By::Owners(_, thread) => *thread,
        }
    }
}

/// The operands of a meaning as numbers, with their shadows.
#[derive(Default)]
pub(super) struct Numbers {
    /// The numbers of each operand.
    pub values: Vec<Vec<f64>>,
    /// The shadows of each operand; empty without shadows.
    pub shadows: Vec<Vec<f64>>,
}

impl Numbers {
    /// Appends an operand.
    pub(super) fn push(&mut self, scalar: Scalar, tile: &Tile, shadows: bool) {
        self.values.push(tile.bits.iter().map(|r| decode(scalar, *r)).collect());
        if shadows {
            self.shadows.push(tile.shadows.clone());
        }
    }

    /// Whether every shadow equals its number.
    pub(super) fn are_exact(&self) -> bool {
        let same = |(v, s): (&Vec<f64>, &Vec<f64>)| {
            v.len() == s.len() && v.iter().zip(s).all(|(v, s)| same_shadow(*v, *s))
        };
        self.values.iter().zip(&self.shadows).all(same)
    }
}

/// The results of a meaning that computes numbers, rounded to the output's type, with their
/// shadows.
pub(super) fn results(
    meaning: &Meaning,
    out: Scalar,
    inputs: &Numbers,
    before: &Numbers,
    n: usize,
    shadows: bool,
) -> Tile {
    let rounded = |v: &f64| match meaning {
        // The sum is rounded to the accumulator's type, then to the output's.
        Meaning::MatMul { acc, .. } if *acc != out => encode(out, decode(*acc, encode(*acc, *v))),
        _ => encode(out, *v),
    };
    let none = Vec::new();
    let old = |of: &[Vec<f64>]| of.first().unwrap_or(&none).clone();
    let computed = meaning.compute(&inputs.values, &old(&before.values), n);
    let bits = computed.values.iter().map(rounded).collect();
    if !shadows {
        return Tile { bits, shadows: Vec::new() };
    }
    let exact = match inputs.are_exact() && before.are_exact() {
        true => computed.values,
        false => meaning.compute(&inputs.shadows, &old(&before.shadows), n).values,
    };
    Tile { bits, shadows: exact.into_iter().map(|v| settled(out, v)).collect() }
}

/// The elements that a Select chooses: bits and shadows.
pub(super) fn selected([p, x, y]: [&Tile; 3]) -> Tile {
    let bits = p.bits.iter().zip(x.bits.iter().zip(&y.bits));
    let shadows = p.shadows.iter().zip(x.shadows.iter().zip(&y.shadows));
    Tile {
        bits: bits.map(|(p, (x, y))| if *p == 0 { *y } else { *x }).collect(),
        shadows: shadows.map(|(p, (x, y))| if *p == 0.0 { *y } else { *x }).collect(),
    }
}

impl<'k> Runner<'k> {
    pub(super) fn meaning(
        &mut self,
        i: usize,
        leaf: &'k LeafSpec,
        meaning: &'k Meaning,
        partition: &Partition,
        active: &Mask,
        together: &Mask,
    ) -> Checked<()> {
        let groups = self.whole_groups(partition, active, leaf.site)?;
        let mut whos: Vec<Who> = (0..self.kernel.n_warps).map(|w| self.who(w, leaf.site)).collect();
        let mut results: Vec<(Tile, Base, By<'k>)> = Vec::with_capacity(groups.len());
        let output = leaf.outputs[0];
        for group in &groups {
            let by = self.by(leaf, meaning, group);
            let base = self.group_base(output, group, leaf.site)?;
            let values = self.evaluate(leaf, meaning, group, &by, &base, &mut whos)?;
            self.measure(i, self.rounds(leaf, meaning), self.kernel.scalar(output), &values);
            results.push((values, base, by));
            self.counts.multiply_adds += meaning.multiply_adds();
        }
        let adds = match meaning {
            Meaning::Accumulate(op, _) => Some(*op),
            _ => None,
        };
        if leaf.ordered && results.iter().any(|(.., by)| matches!(by, By::Owners(..))) {
            // When the solver decomposes a spec that needs it, a barrier separates reads and
            // writes.
            self.synchronize(together);
            whos = (0..self.kernel.n_warps).map(|w| self.who(w, leaf.site)).collect();
        }
        for (values, base, by) in &results {
            for e in 0..values.bits.len() {
                self.store(output, base, e, values.get(e), by, &mut whos, leaf.site, adds)?;
            }
        }
        Ok(())
    }

    fn evaluate(
        &mut self,
        leaf: &'k LeafSpec,
        meaning: &Meaning,
        group: &[u16],
        by: &By<'k>,
        to: &Base,
        whos: &mut [Who],
    ) -> Checked<Tile> {
        let output = leaf.outputs[0];
        let (n, out) = (self.kernel.views[output].size as usize, self.kernel.scalar(output));
        let on = self.mode.shadows;
        // An accumulation into the output happens when the results are stored.
        let adds = matches!(meaning, Meaning::Accumulate(..));
        let keeps = adds || matches!(meaning, Meaning::Move | Meaning::Select);
        let (mut inputs, mut kept) = (Numbers::default(), Vec::new());
        let mut bits = Vec::new();
        for input in &leaf.inputs {
            let view = match input {
                Source::View(v) => *v,
                Source::Number(literal) => {
                    inputs.values.push(vec![literal.rounded]);
                    inputs.shadows.push(vec![literal.exact]);
                    if meaning.is_of_bits() {
                        bits.push(vec![encode(out, literal.exact); n]);
                    }
                    continue;
                }
            };
            let base = self.group_base(view, group, leaf.site)?;
            let wanted = meaning.is_elementwise().then_some((output, to));
            let tile = self.fetch_all(view, &base, by, whos, wanted)?;
            match keeps {
                true => kept.push(tile),
                false => {
                    inputs.push(self.kernel.scalar(view), &tile, on);
                    bits.push(tile.bits);
                }
            }
        }
        if let (Meaning::Select, [p, x, y]) = (meaning, &kept[..]) {
            return Ok(selected([p, x, y]));
        }
        if keeps {
            return Ok(kept.pop().unwrap_or_default());
        }
        let mut before = Numbers::default();
        if meaning.reads_output() {
            before.push(out, &self.fetch_all(output, to, by, whos, None)?, on);
        }
        let mut all = results(meaning, out, &inputs, &before, n, on);
        if let Some(bits) = meaning.bits(&bits) {
            all.bits = bits;
        }
        if let Some(role) = leaf.cast {
            self.counts.ends(leaf.site, narrow(role, out, &mut all.shadows));
        }
        Ok(all)
    }

    /// The kind of rounding that a meaning applies to values, but not to shadows.
    pub(super) fn rounds(&self, leaf: &LeafSpec, meaning: &Meaning) -> Rounds {
        let out = self.kernel.scalar(leaf.outputs[0]);
        let from = crate::plan::views_of(&leaf.inputs).next();
        let from = from.map_or(out, |v| self.kernel.scalar(v));
        match meaning {
            Meaning::Unary(op) => Rounds::unary(*op, from, out),
            Meaning::Binary(op) | Meaning::Integers(op, _) => Rounds::binary(*op, from),
            _ if meaning.is_elementwise() => Rounds::Not,
            _ => Rounds::sum(out),
        }
    }

    /// All elements of a view; with `wanted`, only the elements at which that view has elements.
    fn fetch_all(
        &mut self,
        view: usize,
        base: &Base,
        by: &By<'k>,
        whos: &mut [Who],
        wanted: Option<(usize, &Base)>,
    ) -> Checked<Tile> {
        let mut tile = Tile::default();
        let n = self.kernel.views[view].size;
        let wanted = wanted.map(|(of, base)| (&self.kernel.views[of], base));
        let wanted = wanted.filter(|(of, base)| base.is_partial() && of.size == n);
        for e in 0..n as usize {
            if wanted.is_some_and(|(of, base)| of.is_outside(of.place(base, e))) {
                tile.push(Value::ZERO, self.mode.shadows);
                continue;
            }
            tile.push(self.fetch(view, base, e, by, whos)?, self.mode.shadows);
        }
        Ok(tile)
    }

    fn by(&mut self, leaf: &LeafSpec, meaning: &Meaning, group: &[u16]) -> By<'k> {
        let kernel = self.kernel;
        let inputs = leaf.inputs.iter().filter_map(|s| match s {
            Source::View(v) => Some(*v),
            Source::Number(_) => None,
        });
        let spread = leaf.outputs.iter().copied().chain(inputs).find_map(|v| kernel.views[v].dist);
        let first = group.first().map_or(0, |t| usize::from(*t));
        match spread {
            Some(d) if meaning.is_elementwise() => By::Owners(&kernel.dists[d], first),
            _ => {
                let who = self.clocks.group(self.rank, group, leaf.site, self.serial);
                By::Agent(Box::new(who), first)
            }
        }
    }

    /// The start of a view that is uniform for a group.
    fn group_base(&self, view: usize, group: &[u16], site: u32) -> Checked<Base> {
        let kernel = self.kernel;
        let refuse = |why: &str| {
            Err(Box::new(
                Diagnostic::new(
                    Code::NoDenotation,
                    kernel.sites[site as usize].span,
                    "the spec cannot be executed by its meaning",
                )
                .label(format!("{}: {why}", kernel.view_name(view)))
                .help("give it a body or an atom"),
            ))
        };
        if let Some(d) = kernel.views[view].dist {
            let first = group.first().map_or(0, |t| usize::from(*t));
            return match kernel.dists[d].holders(first).all(|t| group.contains(&t)) {
                true => Ok(Base::whole(0)),
                false => refuse("threads that do not execute the spec hold part of an operand"),
            };
        }
        match self.common_base(view, group, site)? {
            Some(base) => Ok(base),
            None => refuse("the threads of the group have different views of an operand"),
        }
    }

    /// The start of a view, if it is uniform for a group.
    pub(super) fn common_base(
        &self,
        view: usize,
        group: &[u16],
        site: u32,
    ) -> Checked<Option<Base>> {
        let view = &self.kernel.views[view];
        let first = group.first().map_or(0, |t| usize::from(*t));
        let base = self.base(view, first, site)?;
        if !view.is_uniform() {
            for t in &group[1..] {
                if self.base(view, usize::from(*t), site)? != base {
                    return Ok(None);
                }
            }
        }
        Ok(Some(base))
    }

    fn fetch(
        &mut self,
        index: usize,
        base: &Base,
        e: usize,
        by: &By<'k>,
        whos: &mut [Who],
    ) -> Checked<Value> {
        let kernel = self.kernel;
        let view = &kernel.views[index];
        let mut access = ElementAccess { view: index, at: 0, write: false, thread: 0 };
        let mut value = Value::ZERO;
        let owners = match (view.dist, by) {
            (Some(d), _) => &kernel.dists[d].owners(e, by.thread())[..1],
            (None, By::Owners(dist, thread)) => dist.owners(e, *thread),
            (None, By::Agent(who, thread)) => {
                let at = view.place(base, e);
                (access.at, access.thread) = (at, *thread);
                return match self.blocks[self.rank].read(view, at, *thread, who) {
                    Ok(value) => Ok(value),
                    Err(f) => errors::failed(kernel, self.env.block, who, &access, &f),
                };
            }
        };
        for (thread, register) in owners {
            let at = match view.dist {
                Some(_) => i64::from(*register),
                None => view.place(base, e),
            };
            let who = &mut whos[usize::from(*thread) / 32];
            who.thread = *thread;
            (access.at, access.thread) = (at, usize::from(*thread));
            value = match self.blocks[self.rank].read(view, at, access.thread, who) {
                Ok(value) => value,
                Err(f) => return errors::failed(kernel, self.env.block, who, &access, &f),
            };
        }
        Ok(value)
    }

    #[expect(clippy::too_many_arguments, reason = "the mirror image of fetch")]
    fn store(
        &mut self,
        index: usize,
        base: &Base,
        e: usize,
        value: Value,
        by: &By<'k>,
        whos: &mut [Who],
        site: u32,
        adds: Option<AccumulateOp>,
    ) -> Checked<()> {
        let kernel = self.kernel;
        let view = &kernel.views[index];
        let owners = match (view.dist, by) {
            (Some(d), _) => kernel.dists[d].owners(e, by.thread()),
            (None, By::Owners(dist, thread)) => &dist.owners(e, *thread)[..1],
            (None, By::Agent(who, thread)) => {
                let at = view.place(base, e);
                let mut who = Who::clone(who);
                if who.thread != u16::MAX {
                    who.thread = *thread as u16;
                }
                return match self.blocks[self.rank].put(view, at, value, *thread, &who, adds) {
                    Ok(_) => Ok(()),
                    Err(f) => {
                        let access =
                            ElementAccess { view: index, at, write: true, thread: *thread };
                        errors::failed(kernel, self.env.block, &who, &access, &f)
                    }
                };
            }
        };
        for (thread, register) in owners {
            let at = match view.dist {
                Some(_) => i64::from(*register),
                None => view.place(base, e),
            };
            let who = &mut whos[usize::from(*thread) / 32];
            (who.thread, who.site) = (*thread, site);
            let thread = usize::from(*thread);
            if let Err(f) = self.blocks[self.rank].put(view, at, value, thread, who, adds) {
                let access = ElementAccess { view: index, at, write: true, thread };
                return errors::failed(kernel, self.env.block, who, &access, &f);
            }
        }
        Ok(())
    }
}
