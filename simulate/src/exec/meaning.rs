//! Executes a leaf without an atom by what it means, group by group.
//!
//! All groups read before any writes. An operand in memory is one view for the whole group; registers are
//! a distributed tensor's, or those of a thread that is a group of its own.
//!
//! Which thread of a group of several warps touches an element of memory is not said. Where one operand is
//! distributed and the spec works element by element, the owner of the element does; otherwise the
//! *collective* does (see [`crate::state::race`]).

use super::Runner;
use super::blame::{self, Access};
use crate::denote::Meaning;
use crate::num::{decode, encode};
use crate::plan::{Checked, Dist, Leaf, Mask, Source, Squad};
use crate::state::Who;
use carbyne_ir::ast::AccumulateOp;
use carbyne_ir::diag::{Code, Diagnostic};

/// Who touches the elements of memory.
enum By<'k> {
    /// One agent.
    Agent(Box<Who>, usize),
    /// The owners in a distributed operand.
    Owners(&'k Dist),
}

impl<'k> Runner<'k> {
    pub(super) fn meaning(
        &mut self,
        leaf: &'k Leaf,
        meaning: &'k Meaning,
        squad: &Squad,
        active: &Mask,
    ) -> Checked<()> {
        let groups = self.whole_groups(squad, active, leaf.site)?;
        let mut whos: Vec<Who> = (0..self.kernel.n_warps).map(|w| self.who(w, leaf.site)).collect();
        let mut results: Vec<(Vec<u64>, i64, By<'k>)> = Vec::with_capacity(groups.len());
        let output = leaf.outputs[0];
        for group in &groups {
            let by = self.by(leaf, meaning, group);
            let base = self.group_base(output, group, leaf.site)?;
            let values = self.evaluate(leaf, meaning, group, &by, base, &mut whos)?;
            results.push((values, base, by));
            self.counts.multiply_adds += meaning.multiply_adds();
        }
        let adds = match meaning {
            Meaning::Accumulate(op, _) => Some(*op),
            _ => None,
        };
        for (values, base, by) in &results {
            for (e, raw) in values.iter().enumerate() {
                self.store(output, *base, e, *raw, by, &mut whos, leaf.site, adds)?;
            }
        }
        Ok(())
    }

    fn evaluate(
        &mut self,
        leaf: &'k Leaf,
        meaning: &Meaning,
        group: &[u16],
        by: &By<'k>,
        base: i64,
        whos: &mut [Who],
    ) -> Checked<Vec<u64>> {
        let output = leaf.outputs[0];
        let (n, out) = (self.kernel.views[output].size as usize, self.kernel.scalar(output));
        let mut inputs = Vec::with_capacity(leaf.inputs.len());
        // What is put to the output it gets when it is stored.
        let adds = matches!(meaning, Meaning::Accumulate(..));
        let (keeps, mut kept) = (adds || meaning.keeps_bits(), Vec::new());
        for input in &leaf.inputs {
            let view = match input {
                Source::View(v) => *v,
                Source::Number(v) => {
                    inputs.push(vec![*v]);
                    continue;
                }
            };
            let base = self.group_base(view, group, leaf.site)?;
            let size = self.kernel.views[view].size as usize;
            let mut raw = Vec::with_capacity(size);
            for e in 0..size {
                raw.push(self.fetch(view, base, e, by, whos)?);
            }
            if keeps {
                kept.push(raw);
                continue;
            }
            let scalar = self.kernel.scalar(view);
            inputs.push(raw.into_iter().map(|r| decode(scalar, r)).collect());
        }
        if let Some(bits) = meaning.bits(&kept) {
            return Ok(bits);
        }
        if adds {
            return Ok(kept.pop().unwrap_or_default());
        }
        let mut before = Vec::new();
        if meaning.reads_output() {
            for e in 0..n {
                before.push(decode(out, self.fetch(output, base, e, by, whos)?));
            }
        }
        let computed = meaning.compute(&inputs, &before, n);
        let rounded = |v: f64| match meaning {
            // Summed in the accumulator's type, then rounded to the output's.
            Meaning::MatMul { acc, .. } => encode(out, decode(*acc, encode(*acc, v))),
            _ => encode(out, v),
        };
        Ok(computed.values.into_iter().map(rounded).collect())
    }

    fn by(&mut self, leaf: &Leaf, meaning: &Meaning, group: &[u16]) -> By<'k> {
        let kernel = self.kernel;
        let inputs = leaf.inputs.iter().filter_map(|s| match s {
            Source::View(v) => Some(*v),
            Source::Number(_) => None,
        });
        let spread = leaf.outputs.iter().copied().chain(inputs).find_map(|v| kernel.views[v].dist);
        let elementwise = !matches!(meaning, Meaning::MatMul { .. } | Meaning::Reduction { .. });
        match spread {
            Some(d) if elementwise => By::Owners(&kernel.dists[d]),
            _ => {
                let who = self.clocks.group(self.rank, group, leaf.site, self.serial);
                By::Agent(Box::new(who), group.first().map_or(0, |t| usize::from(*t)))
            }
        }
    }

    /// The offset of a view that is the same for a whole group.
    fn group_base(&self, view: usize, group: &[u16], site: u32) -> Checked<i64> {
        let kernel = self.kernel;
        let refuse = |why: &str| {
            Err(Box::new(
                Diagnostic::new(
                    Code::NoDenotation,
                    kernel.sites[site as usize].span,
                    "the spec has no meaning of its own",
                )
                .label(format!("{}: {why}", kernel.view_name(view)))
                .help("give it a body or an atom"),
            ))
        };
        if let Some(d) = kernel.views[view].dist {
            let ours = |(t, _): &(u16, Vec<u32>)| group.contains(t);
            return match kernel.dists[d].by_thread.iter().all(ours) {
                true => Ok(0),
                false => refuse("part of it is held by threads that do not take part"),
            };
        }
        match self.common_base(view, group, site)? {
            Some(base) => Ok(base),
            None => refuse("each thread of the group has its own view"),
        }
    }

    /// The offset of a view, if it is the same for a whole group.
    pub(super) fn common_base(
        &self,
        view: usize,
        group: &[u16],
        site: u32,
    ) -> Checked<Option<i64>> {
        let offset = &self.kernel.views[view].offset;
        let first = group.first().map_or(0, |t| usize::from(*t));
        let base = self.index(offset, first, site)?;
        if !offset.is_uniform() {
            for t in &group[1..] {
                if self.index(offset, usize::from(*t), site)? != base {
                    return Ok(None);
                }
            }
        }
        Ok(Some(base))
    }

    fn fetch(
        &mut self,
        index: usize,
        base: i64,
        e: usize,
        by: &By<'k>,
        whos: &mut [Who],
    ) -> Checked<u64> {
        let kernel = self.kernel;
        let view = &kernel.views[index];
        let mut access = Access { view: index, at: 0, write: false, thread: 0 };
        let mut value = 0;
        let owners = match (view.dist, by) {
            (Some(d), _) => &kernel.dists[d].owners(e)[..1],
            (None, By::Owners(dist)) => dist.owners(e),
            (None, By::Agent(who, thread)) => {
                let at = base.saturating_add(view.element(e));
                (access.at, access.thread) = (at, *thread);
                return match self.blocks[self.rank].read(view, at, *thread, who) {
                    Ok(raw) => Ok(raw),
                    Err(f) => blame::failed(kernel, self.env.block, who, &access, &f),
                };
            }
        };
        for (thread, register) in owners {
            let at = match view.dist {
                Some(_) => i64::from(*register),
                None => base.saturating_add(view.element(e)),
            };
            let who = &mut whos[usize::from(*thread) / 32];
            who.thread = *thread;
            (access.at, access.thread) = (at, usize::from(*thread));
            value = match self.blocks[self.rank].read(view, at, access.thread, who) {
                Ok(raw) => raw,
                Err(f) => return blame::failed(kernel, self.env.block, who, &access, &f),
            };
        }
        Ok(value)
    }

    #[expect(clippy::too_many_arguments, reason = "the mirror image of fetch")]
    fn store(
        &mut self,
        index: usize,
        base: i64,
        e: usize,
        raw: u64,
        by: &By<'k>,
        whos: &mut [Who],
        site: u32,
        adds: Option<AccumulateOp>,
    ) -> Checked<()> {
        let kernel = self.kernel;
        let view = &kernel.views[index];
        let owners = match (view.dist, by) {
            (Some(d), _) => kernel.dists[d].owners(e),
            (None, By::Owners(dist)) => &dist.owners(e)[..1],
            (None, By::Agent(who, thread)) => {
                let at = base.saturating_add(view.element(e));
                let mut who = Who::clone(who);
                if who.thread != u16::MAX {
                    who.thread = *thread as u16;
                }
                return match self.blocks[self.rank].put(view, at, raw, *thread, &who, adds) {
                    Ok(_) => Ok(()),
                    Err(f) => {
                        let access = Access { view: index, at, write: true, thread: *thread };
                        blame::failed(kernel, self.env.block, &who, &access, &f)
                    }
                };
            }
        };
        for (thread, register) in owners {
            let at = match view.dist {
                Some(_) => i64::from(*register),
                None => base.saturating_add(view.element(e)),
            };
            let who = &mut whos[usize::from(*thread) / 32];
            (who.thread, who.site) = (*thread, site);
            let thread = usize::from(*thread);
            if let Err(f) = self.blocks[self.rank].put(view, at, raw, thread, who, adds) {
                let access = Access { view: index, at, write: true, thread };
                return blame::failed(kernel, self.env.block, who, &access, &f);
            }
        }
        Ok(())
    }
}
