//! Executes, by its meaning, a leaf for which no atom has been chosen, if each of its groups is a
//! single thread: the fast path for the most common case of [`super::meaning`]. It also reads
//! elements of tensors as integers, for indices and bounds of loops.

use super::Runner;
use super::errors::{self, ElementAccess};
use super::meaning::selected;
use super::shadow::{narrow, settled};
use crate::denote::Meaning;
use crate::index::LoopValue;
use crate::num::{decode, decode_int, encode};
use crate::plan::{Base, Checked, LeafSpec, Mask, Source, View};
use crate::state::{Tile, Value, Who};
use carbyne_ir::ast::AccumulateOp;
use carbyne_ir::scalar::Scalar;

/// Buffers that are reused between executions.
#[derive(Default)]
pub(super) struct Buffers {
    inputs: Vec<Vec<f64>>,
    exact: Vec<Vec<f64>>,
    raw: Tile,
    before: Vec<f64>,
    exact_before: Vec<f64>,
    results: Tile,
    starts: Vec<i64>,
}

/// A leaf, as every thread executes it.
struct Task<'l> {
    leaf: &'l LeafSpec,
    meaning: &'l Meaning,
    to: &'l View,
    /// The part of the output's offset that is equal for all threads.
    to_start: i64,
    /// The type of the output.
    out: Scalar,
}

impl Task<'_> {
    /// The number of elements that a thread writes.
    fn n(&self) -> usize {
        self.to.size as usize
    }

    fn adds(&self) -> Option<AccumulateOp> {
        match self.meaning {
            Meaning::Accumulate(op, _) => Some(*op),
            _ => None,
        }
    }

    fn is_of_integers(&self) -> bool {
        matches!(self.meaning, Meaning::Integers(..)) && self.meaning.is_of_bits()
    }
}

impl Runner<'_> {
    /// Executes a leaf for each active thread. All lanes of a warp read before any of them writes.
    pub(super) fn single_threads(
        &mut self,
        i: usize,
        leaf: &LeafSpec,
        meaning: &Meaning,
        active: &Mask,
    ) -> Checked<()> {
        let mut buffers = std::mem::take(&mut self.buffers);
        let done = self.alone_with(i, leaf, meaning, active, &mut buffers);
        self.buffers = buffers;
        done
    }

    fn alone_with(
        &mut self,
        i: usize,
        leaf: &LeafSpec,
        meaning: &Meaning,
        active: &Mask,
        buffers: &mut Buffers,
    ) -> Checked<()> {
        let kernel = self.kernel;
        let output = leaf.outputs[0];
        let to = &kernel.views[output];
        // The parts of the offsets that are equal for all threads: inputs, then the output.
        let bad = |e| errors::bad_index(kernel, leaf.site, e);
        buffers.starts.clear();
        for source in &leaf.inputs {
            let start = match source {
                Source::View(v) => kernel.views[*v].offset.base(&self.env).map_err(bad)?,
                Source::Number(_) => 0,
            };
            buffers.starts.push(start);
        }
        let to_start = to.offset.base(&self.env).map_err(bad)?;
        buffers.inputs.resize_with(leaf.inputs.len(), Vec::new);
        buffers.exact.resize_with(leaf.inputs.len(), Vec::new);
        let task = Task { leaf, meaning, to, to_start, out: kernel.scalar(output) };
        for warp in 0..kernel.n_warps {
            let lanes = self.writing(to, warp, active.0[warp], leaf.site)?;
            if lanes == 0 {
                continue;
            }
            let threads = || (0..32).filter(|l| lanes >> l & 1 == 1).map(|l| warp * 32 + l);
            let mut who = self.who(warp, leaf.site);
            buffers.results.clear();
            for thread in threads() {
                who.thread = thread as u16;
                self.compute(&task, &who, thread, buffers)?;
            }
            if let Some(role) = leaf.cast {
                self.counts.ends(leaf.site, narrow(role, task.out, &mut buffers.results.shadows));
            }
            self.measure(i, self.rounds(leaf, meaning), task.out, &buffers.results);
            for (j, thread) in threads().enumerate() {
                who.thread = thread as u16;
                self.write(&task, &who, (j, thread), &buffers.results)?;
            }
        }
        Ok(())
    }

    /// Reads the inputs of a thread, and computes its results.
    fn compute(
        &mut self,
        task: &Task<'_>,
        who: &Who,
        thread: usize,
        buffers: &mut Buffers,
    ) -> Checked<()> {
        let Task { leaf, meaning, to_start, out, .. } = *task;
        let n = task.n();
        let kept = self.read_inputs(task, who, thread, buffers)?;
        if *meaning == Meaning::Move || task.adds().is_some() {
            buffers.results.extend(&buffers.raw);
            return Ok(());
        }
        if let (Meaning::Select, [p, x, y]) = (meaning, &kept[..]) {
            buffers.results.extend(&selected([p, x, y]));
            return Ok(());
        }
        buffers.before.clear();
        buffers.exact_before.clear();
        if meaning.reads_output() {
            let place = (leaf.outputs[0], to_start, thread);
            self.read_all(place, who, &mut buffers.raw, None)?;
            buffers.before.extend(buffers.raw.bits.iter().map(|r| decode(out, *r)));
            buffers.exact_before.extend(&buffers.raw.shadows);
        }
        let rounded = |v: f64| match meaning {
            Meaning::MatMul { acc, .. } if *acc != out => {
                encode(out, decode(*acc, encode(*acc, v)))
            }
            _ => encode(out, v),
        };
        let results = &mut buffers.results;
        let give = |v| results.bits.push(rounded(v));
        if task.is_of_integers() {
            let bits: Vec<Vec<u64>> = kept.into_iter().map(|tile| tile.bits).collect();
            results.bits.extend(meaning.bits(&bits).unwrap_or_default());
        } else {
            each_result(meaning, &buffers.inputs, &buffers.before, n, give);
        }
        if self.mode.shadows {
            let give = |v| {
                results.shadows.push(settled(out, v));
            };
            each_result(meaning, &buffers.exact, &buffers.exact_before, n, give);
        }
        self.counts.multiply_adds += meaning.multiply_adds();
        Ok(())
    }

    /// Reads the inputs of a thread as numbers; returns the bits of the inputs whose bits are
    /// needed.
    fn read_inputs(
        &mut self,
        task: &Task<'_>,
        who: &Who,
        thread: usize,
        buffers: &mut Buffers,
    ) -> Checked<Vec<Tile>> {
        let Task { leaf, meaning, to, out, .. } = *task;
        let kernel = self.kernel;
        let mut kept = Vec::new();
        // An elementwise leaf reads no input at an element that it does not write.
        let wanted = match to.is_bounded() && meaning.is_elementwise() {
            true => Some((to, self.output_base(task, thread)?)),
            false => None,
        };
        for (i, source) in leaf.inputs.iter().enumerate() {
            let (numbers, exact) = (&mut buffers.inputs[i], &mut buffers.exact[i]);
            numbers.clear();
            exact.clear();
            match source {
                Source::Number(literal) => {
                    numbers.push(literal.rounded);
                    exact.push(literal.exact);
                    if task.is_of_integers() {
                        let bits = vec![encode(out, literal.exact); task.n()];
                        kept.push(Tile { bits, ..Tile::default() });
                    }
                }
                Source::View(v) => {
                    let place = (*v, buffers.starts[i], thread);
                    self.read_all(place, who, &mut buffers.raw, wanted.as_ref())?;
                    if task.is_of_integers() || *meaning == Meaning::Select {
                        kept.push(buffers.raw.clone());
                    }
                    let scalar = kernel.scalar(*v);
                    numbers.extend(buffers.raw.bits.iter().map(|r| decode(scalar, *r)));
                    exact.extend(&buffers.raw.shadows);
                }
            }
        }
        Ok(kept)
    }

    /// Writes the results of the `j`-th thread that has results.
    fn write(
        &mut self,
        task: &Task<'_>,
        who: &Who,
        (j, thread): (usize, usize),
        results: &Tile,
    ) -> Checked<()> {
        let (output, n, adds) = (task.leaf.outputs[0], task.n(), task.adds());
        let base = self.output_base(task, thread)?;
        let rank = self.peer(output, thread, task.leaf.site)?;
        self.note_remote(rank, who);
        for e in 0..n {
            let at = task.to.place(&base, e);
            let value: Value = results.get(j * n + e);
            if let Err(f) = self.blocks[rank].put(task.to, at, value, thread, who, adds) {
                let access = ElementAccess { view: output, at, write: true, thread };
                return errors::failed(self.kernel, self.env.block, who, &access, &f);
            }
        }
        Ok(())
    }

    /// The start of the output of a thread.
    fn output_base(&self, task: &Task<'_>, thread: usize) -> Checked<Base> {
        let base = task.to.base(task.to_start, &self.env, thread);
        base.map_err(|e| errors::bad_index(self.kernel, task.leaf.site, e))
    }

    /// Reads a thread's view of a tensor; with `wanted`, only the elements at which that view has
    /// elements.
    fn read_all(
        &mut self,
        (index, start, thread): (usize, i64, usize),
        who: &Who,
        raw: &mut Tile,
        wanted: Option<&(&View, Base)>,
    ) -> Checked<()> {
        let kernel = self.kernel;
        let view = &kernel.views[index];
        let base = view.base(start, &self.env, thread);
        let base = base.map_err(|e| errors::bad_index(kernel, who.site, e))?;
        raw.clear();
        let rank = self.peer(index, thread, who.site)?;
        self.note_remote(rank, who);
        let wanted = wanted.filter(|(of, base)| base.is_partial() && of.size == view.size);
        for e in 0..view.size as usize {
            if wanted.is_some_and(|(of, base)| of.is_outside(of.place(base, e))) {
                raw.push(Value::ZERO, self.mode.shadows);
                continue;
            }
            let at = view.place(&base, e);
            match self.blocks[rank].read(view, at, thread, who) {
                Ok(value) => raw.push(value, self.mode.shadows),
                Err(f) => {
                    let access = ElementAccess { view: index, at, write: false, thread };
                    return errors::failed(kernel, self.env.block, who, &access, &f);
                }
            }
        }
        Ok(())
    }
}

/// Passes the results of a meaning to `each` one by one; a multiply-add needs no list.
#[inline]
fn each_result(
    meaning: &Meaning,
    inputs: &[Vec<f64>],
    before: &[f64],
    n: usize,
    mut give: impl FnMut(f64),
) {
    match meaning.multiply_add(inputs, before) {
        Some(v) => give(v),
        None => meaning.compute(inputs, before, n).values.into_iter().for_each(give),
    }
}

impl Runner<'_> {
    /// An element of a tensor as an integer. It is uniform for all threads, unless loops whose
    /// bounds differ between threads select it.
    pub(super) fn element(
        &mut self,
        index: usize,
        (within, step): (Option<(i64, i64)>, Option<i64>),
        site: u32,
        mask: &Mask,
    ) -> Checked<LoopValue> {
        let kernel = self.kernel;
        let view = &kernel.views[index];
        let uniform = view.offset.is_uniform();
        let mut values = vec![0i64; if uniform { 0 } else { kernel.n_threads }];
        self.serial = self.serial.wrapping_add(1);
        for thread in mask.threads() {
            let (at, value) = self.read_first(index, site, thread)?;
            // An integer that does not fit is refused as an index at its use.
            let value = i64::try_from(decode_int(view.scalar, value.bits)).unwrap_or(i64::MAX);
            // Integers that an earlier kernel wrote are not checked yet.
            let outside = within.is_some_and(|(lo, hi)| value < lo || value >= hi);
            let falls = step.filter(|step| at >= *step).is_some_and(|step| {
                let before = self.blocks[self.rank].peek(view, at - step, thread);
                before.is_some_and(|v| decode_int(view.scalar, v.bits) > i128::from(value))
            });
            let late = step.is_some() && at == 0 && value != 0;
            if outside || falls || late {
                let why = match (within, outside) {
                    (Some((lo, hi)), true) => {
                        format!("its tensor is declared `in {lo}..{hi}`: at least {lo}, below {hi}")
                    }
                    _ if falls => {
                        "the tensor splits a number, and the element is below the previous one"
                            .to_owned()
                    }
                    _ => "the tensor splits a number, and its first element is not 0".to_owned(),
                };
                return Err(errors::no_such_number(kernel, site, (index, at, value), why));
            }
            if uniform {
                return Ok(LoopValue::Uniform(value));
            }
            values[thread] = value;
        }
        Ok(match uniform {
            true => LoopValue::Uniform(0),
            false => LoopValue::ByThread(values),
        })
    }

    /// Reads the first element of a view for a thread. Returns its offset and value.
    pub(super) fn read_first(
        &mut self,
        index: usize,
        site: u32,
        thread: usize,
    ) -> Checked<(i64, Value)> {
        let kernel = self.kernel;
        let view = &kernel.views[index];
        let mut who = self.who(thread / 32, site);
        who.thread = thread as u16;
        let at = self.base(view, thread, site)?.at;
        match self.blocks[self.rank].read(view, at, thread, &who) {
            Ok(value) => Ok((at, value)),
            Err(f) => {
                let access = ElementAccess { view: index, at, write: false, thread };
                errors::failed(kernel, self.env.block, &who, &access, &f)
            }
        }
    }
}
