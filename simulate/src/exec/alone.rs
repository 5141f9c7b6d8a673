//! Executes a leaf without an atom whose groups are single threads: the common case of
//! [`super::meaning`], without its generality.

use super::Runner;
use super::blame::{self, Access};
use crate::denote::Meaning;
use crate::num::{decode, encode};
use crate::plan::{Checked, Leaf, Mask, Source};
use crate::state::Who;

/// Buffers kept from one execution to the next.
#[derive(Default)]
pub(super) struct Buffers {
    inputs: Vec<Vec<f64>>,
    raw: Vec<u64>,
    before: Vec<f64>,
    results: Vec<u64>,
    starts: Vec<i64>,
}

impl Runner<'_> {
    /// Executes a leaf for each active thread; the lanes of a warp all read before any writes.
    pub(super) fn alone(&mut self, leaf: &Leaf, meaning: &Meaning, active: &Mask) -> Checked<()> {
        let mut buffers = std::mem::take(&mut self.buffers);
        let done = self.alone_with(leaf, meaning, active, &mut buffers);
        self.buffers = buffers;
        done
    }

    fn alone_with(
        &mut self,
        leaf: &Leaf,
        meaning: &Meaning,
        active: &Mask,
        buffers: &mut Buffers,
    ) -> Checked<()> {
        let kernel = self.kernel;
        let bad = |e| blame::bad_index(kernel, leaf.site, e);
        let output = leaf.outputs[0];
        let (to, out) = (&kernel.views[output], kernel.scalar(output));
        let n = to.size as usize;
        let adds = match meaning {
            Meaning::Accumulate(op, _) => Some(*op),
            _ => None,
        };
        // The parts of the offsets that all threads share: inputs, then the output.
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
        for warp in 0..kernel.n_warps {
            let lanes = active.0[warp];
            if lanes == 0 {
                continue;
            }
            let threads = || (0..32).filter(|l| lanes >> l & 1 == 1).map(|l| warp * 32 + l);
            let mut who = self.who(warp, leaf.site);
            buffers.results.clear();
            for thread in threads() {
                who.thread = thread as u16;
                let mut kept = Vec::new();
                for (i, source) in leaf.inputs.iter().enumerate() {
                    match source {
                        Source::Number(v) => {
                            buffers.inputs[i].clear();
                            buffers.inputs[i].push(*v);
                        }
                        Source::View(v) => {
                            self.read_all(*v, buffers.starts[i], thread, &who, &mut buffers.raw)?;
                            if *meaning == Meaning::Select {
                                kept.push(buffers.raw.clone());
                            }
                            let scalar = kernel.scalar(*v);
                            let numbers = buffers.raw.iter().map(|r| decode(scalar, *r));
                            buffers.inputs[i].clear();
                            buffers.inputs[i].extend(numbers);
                        }
                    }
                }
                if *meaning == Meaning::Move || adds.is_some() {
                    buffers.results.extend(&buffers.raw);
                    continue;
                }
                if let Some(bits) = meaning.bits(&kept) {
                    buffers.results.extend(bits);
                    continue;
                }
                buffers.before.clear();
                if meaning.reads_output() {
                    self.read_all(output, to_start, thread, &who, &mut buffers.raw)?;
                    buffers.before.extend(buffers.raw.iter().map(|r| decode(out, *r)));
                }
                let rounded = |v: f64| match meaning {
                    Meaning::MatMul { acc, .. } if *acc != out => {
                        encode(out, decode(*acc, encode(*acc, v)))
                    }
                    _ => encode(out, v),
                };
                match meaning.multiply_add(&buffers.inputs, &buffers.before) {
                    Some(v) => buffers.results.push(rounded(v)),
                    None => {
                        let computed = meaning.compute(&buffers.inputs, &buffers.before, n);
                        buffers.results.extend(computed.values.into_iter().map(rounded));
                    }
                }
                self.counts.multiply_adds += meaning.multiply_adds();
            }
            for (j, thread) in threads().enumerate() {
                who.thread = thread as u16;
                let base = to.offset.at(to_start, &self.env, thread).map_err(bad)?;
                let rank = self.peer(output, thread, leaf.site)?;
                self.note_remote(rank, &who);
                for e in 0..n {
                    let at = base.saturating_add(to.element(e));
                    let raw = buffers.results[j * n + e];
                    if let Err(f) = self.blocks[rank].put(to, at, raw, thread, &who, adds) {
                        let access = Access { view: output, at, write: true, thread };
                        return blame::failed(kernel, self.env.block, &who, &access, &f);
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads a thread's view of a tensor.
    fn read_all(
        &mut self,
        index: usize,
        start: i64,
        thread: usize,
        who: &Who,
        raw: &mut Vec<u64>,
    ) -> Checked<()> {
        let kernel = self.kernel;
        let view = &kernel.views[index];
        let base = view.offset.at(start, &self.env, thread);
        let base = base.map_err(|e| blame::bad_index(kernel, who.site, e))?;
        raw.clear();
        let rank = self.peer(index, thread, who.site)?;
        self.note_remote(rank, who);
        for e in 0..view.size as usize {
            let at = base.saturating_add(view.element(e));
            match self.blocks[rank].read(view, at, thread, who) {
                Ok(value) => raw.push(value),
                Err(f) => {
                    let access = Access { view: index, at, write: false, thread };
                    return blame::failed(kernel, self.env.block, who, &access, &f);
                }
            }
        }
        Ok(())
    }
}
