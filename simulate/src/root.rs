//! Compares what a block wrote with what the kernel's spec means.
//!
//! The reference of an element is computed from the memory before the kernel, for the elements that were
//! written; rows of A and columns of B are read once and kept while there is room. A kernel without a body
//! is executed here, element by element.

use crate::denote::{Computed, Meaning, dot};
use crate::exec::{Counts, Found, Want, value_text, wrong_element};
use crate::num::{decode, encode};
use crate::plan::{
    Checked, Inverse, Kernel, RootSpec, Source, Space, View, coordinates, coordinates_text,
};
use crate::state::{GlobalMemory, PAGE, Page};
use carbyne_ir::diag::{Code, Diagnostic};
use std::collections::HashMap;
use std::sync::Arc;

/// Most numbers kept of rows and columns.
const MAX_KEPT: usize = 1 << 22;
/// Most multiply-adds of comparing one block; beyond, elements are skipped evenly.
const MAX_WORK: u64 = 1 << 32;

/// The meaning of a kernel on the memory before it.
pub(crate) struct Oracle<'k> {
    kernel: &'k Kernel<'k>,
    memory: &'k [&'k GlobalMemory],
    root: &'k RootSpec,
    rows: HashMap<u64, Arc<[f64]>>,
    columns: HashMap<u64, Arc<[f64]>>,
    kept: usize,
}

impl<'k> Oracle<'k> {
    /// An oracle that knows nothing yet.
    pub(crate) fn new(
        kernel: &'k Kernel<'k>,
        memory: &'k [&'k GlobalMemory],
        root: &'k RootSpec,
    ) -> Self {
        Oracle { kernel, memory, root, rows: HashMap::new(), columns: HashMap::new(), kept: 0 }
    }

    /// The reference of one element of the output.
    ///
    /// # Errors
    /// `S0503` where an input is undefined.
    pub(crate) fn want(&mut self, e: i64) -> Checked<Want> {
        let kernel = self.kernel;
        let output = self.root.outputs[0];
        let scalar = kernel.scalar(output);
        let first = self.root.inputs.first().copied();
        let one = |value: f64, magnitude: f64| {
            Want::Values(Computed { values: vec![value], magnitudes: vec![magnitude] })
        };
        match &self.root.meaning {
            Meaning::Init => {
                let Some(Source::Number(v)) = first else { return Ok(one(0.0, 0.0)) };
                Ok(Want::Bits(vec![encode(scalar, v)]))
            }
            Meaning::Move => match first {
                Some(Source::View(v)) => Ok(Want::Bits(vec![self.raw(v, e)?])),
                _ => Ok(one(0.0, 0.0)),
            },
            Meaning::Select => {
                let raw = |s: &Source| match s {
                    Source::View(v) => Ok(vec![self.raw(*v, e)?]),
                    Source::Number(v) => Ok(vec![encode(scalar, *v)]),
                };
                let inputs = self.root.inputs.iter().map(raw).collect::<Checked<Vec<_>>>()?;
                Ok(Want::Bits(self.root.meaning.bits(&inputs).unwrap_or_default()))
            }
            Meaning::Accumulate(..) => {
                let Some(Source::View(v)) = first else { return Ok(one(0.0, 0.0)) };
                let (input, before) = (vec![self.number(v, e)?], [self.number(output, e)?]);
                Ok(Want::Values(self.root.meaning.compute(&[input], &before, 1)))
            }
            Meaning::Unary(_) | Meaning::Binary(_) | Meaning::Integers(..) => {
                let inputs = self
                    .root
                    .inputs
                    .iter()
                    .map(|s| match s {
                        Source::View(v) => Ok(vec![self.number(*v, e)?]),
                        Source::Number(v) => Ok(vec![*v]),
                    })
                    .collect::<Checked<Vec<_>>>()?;
                Ok(Want::Values(self.root.meaning.compute(&inputs, &[], 1)))
            }
            Meaning::Reduction { op, modes, removed } => {
                let Some(Source::View(input)) = first else { return Ok(one(0.0, 0.0)) };
                let elements = removed_elements(modes, removed, e);
                let numbers =
                    elements.map(|e| self.number(input, e)).collect::<Checked<Vec<f64>>>()?;
                let all =
                    Meaning::Reduction { op: *op, modes: vec![numbers.len()], removed: vec![true] };
                Ok(Want::Values(all.compute(&[numbers], &[], 1)))
            }
            Meaning::MatMul { l, m, n: _, k, set, .. } => {
                let (&[Source::View(a), Source::View(b)], lm) = (&self.root.inputs[..], l * m)
                else {
                    return Ok(one(0.0, 0.0));
                };
                let (row, column) = (e as usize % lm, e as usize / lm);
                let batch = row % l;
                let left = self.kept_line(true, a, row as u64, *k, &|i| (row + lm * i) as i64)?;
                let line = (column * l + batch) as u64;
                let right =
                    self.kept_line(false, b, line, *k, &|i| (batch + l * (i + k * column)) as i64)?;
                let (mut value, mut magnitude) = dot(&left, &right);
                if !set {
                    let before = self.number(output, e)?;
                    value += before;
                    magnitude += before.abs();
                }
                Ok(one(value, magnitude))
            }
        }
    }

    fn kept_line(
        &mut self,
        left: bool,
        view: usize,
        line: u64,
        k: usize,
        element: &dyn Fn(usize) -> i64,
    ) -> Checked<Arc<[f64]>> {
        let kept = if left { &self.rows } else { &self.columns };
        if let Some(numbers) = kept.get(&line) {
            return Ok(Arc::clone(numbers));
        }
        let numbers: Arc<[f64]> =
            (0..k).map(|i| self.number(view, element(i))).collect::<Checked<_>>()?;
        if self.kept + k > MAX_KEPT {
            self.rows.clear();
            self.columns.clear();
            self.kept = 0;
        }
        self.kept += k;
        let kept = if left { &mut self.rows } else { &mut self.columns };
        kept.insert(line, Arc::clone(&numbers));
        Ok(numbers)
    }

    fn number(&self, view: usize, e: i64) -> Checked<f64> {
        Ok(decode(self.kernel.scalar(view), self.raw(view, e)?))
    }

    fn raw(&self, index: usize, e: i64) -> Checked<u64> {
        let view = &self.kernel.views[index];
        let raw = match view.space {
            Space::Global(i) => self.memory[i].read(offset(view, e)),
            Space::Shared(_) | Space::Registers(_) => None,
        };
        raw.ok_or_else(|| {
            let at = coordinates_text(&coordinates(&view.modes, e));
            let name = self.kernel.view_name(index);
            let span = self.kernel.program.specs[self.kernel.spec].span;
            Box::new(
                Diagnostic::new(
                    Code::Uninitialized,
                    span,
                    format!("{name}{at} is undefined where the kernel begins"),
                )
                .help("a kernel before it must write it, or the kernel must name it as an input"),
            )
        })
    }
}

/// Compares what all blocks together put to elements of the output.
///
/// # Errors
/// `S0501`
pub(crate) fn check_sums(
    oracle: &mut Oracle<'_>,
    inverse: &Inverse,
    sums: impl Iterator<Item = (i64, u64)>,
    small_ints: bool,
    counts: &mut Counts,
) -> Checked<()> {
    let (kernel, root) = (oracle.kernel, oracle.root);
    let output = root.outputs[0];
    let view = &kernel.views[output];
    let base = view.offset.known().unwrap_or(0);
    let named = |(at, raw): (i64, u64)| inverse.element(at - base).map(|e| (e, raw));
    let mut elements: Vec<(i64, u64)> = sums.filter_map(named).collect();
    elements.sort_unstable();
    for (e, raw) in elements {
        let (meaning, stated) = (&root.meaning, &root.stated);
        let want = oracle.want(e)?;
        match want.compare(meaning, view.scalar, small_ints, stated, 0, Some(raw)) {
            Ok(near) => counts.compared(kernel.checks.len(), &near),
            Err(wrong) => {
                let at = coordinates_text(&coordinates(&view.modes, e));
                let found = Found {
                    name: format!("{}{at}", kernel.view_name(output)),
                    value: Some(value_text(view.scalar, raw)),
                    block: 0,
                    writer: None,
                };
                return Err(wrong_element(kernel, root.site, &found, &wrong));
            }
        }
    }
    Ok(())
}

/// Where an element of a caller's tensor is.
pub(crate) fn offset(view: &View, e: i64) -> i64 {
    view.offset.known().unwrap_or(0).saturating_add(view.element(e as usize))
}

/// The elements of the input that an element of a reduction is made of.
fn removed_elements<'m>(
    modes: &'m [usize],
    removed: &'m [bool],
    e: i64,
) -> impl Iterator<Item = i64> + 'm {
    let n: usize = modes.iter().zip(removed).filter(|(_, r)| **r).map(|(n, _)| n).product();
    (0..n).map(move |i| {
        let (mut kept, mut gone, mut at, mut weight) = (e as usize, i, 0, 1);
        for (extent, r) in modes.iter().zip(removed) {
            let from = if *r { &mut gone } else { &mut kept };
            at += *from % extent * weight;
            *from /= extent;
            weight *= extent;
        }
        at as i64
    })
}

/// Compares what one block wrote to the output of the kernel's spec.
///
/// # Errors
/// `S0501` for the first wrong element, column-major.
pub(crate) fn check_block(
    oracle: &mut Oracle<'_>,
    inverse: &Inverse,
    pages: &[(u64, Box<Page>)],
    block: i64,
    small_ints: bool,
    counts: &mut Counts,
) -> Checked<()> {
    let kernel = oracle.kernel;
    let output = oracle.root.outputs[0];
    let view = &kernel.views[output];
    let base = view.offset.known().unwrap_or(0);
    let mut elements: Vec<(i64, usize, usize)> = Vec::new();
    for (p, (number, page)) in pages.iter().enumerate() {
        // What other blocks may have put to an element is known when all are through.
        let own = |i: &usize| page.only_sum(*i).is_none();
        let written = (0..PAGE).filter(|i| page.written.mask >> i & 1 == 1).filter(own);
        elements.extend(written.filter_map(|i| {
            let at = (number * PAGE as u64) as i64 + i as i64 - base;
            inverse.element(at).map(|e| (e, p, i))
        }));
    }
    elements.sort_unstable();
    let each = match &oracle.root.meaning {
        Meaning::MatMul { k, .. } => *k as u64,
        Meaning::Reduction { modes, removed, .. } => {
            modes.iter().zip(removed).filter(|(_, r)| **r).map(|(n, _)| *n as u64).product()
        }
        _ => 1,
    };
    let work = each.saturating_mul(elements.len() as u64);
    let step = (work / MAX_WORK + 1) as usize;
    for (e, p, i) in elements.into_iter().step_by(step) {
        let want = oracle.want(e)?;
        let page = &pages[p].1;
        let raw = page.written.values[i];
        match want.compare(
            &oracle.root.meaning,
            view.scalar,
            small_ints,
            &oracle.root.stated,
            0,
            Some(raw),
        ) {
            Ok(near) => counts.compared(kernel.checks.len(), &near),
            Err(wrong) => {
                let at = coordinates_text(&coordinates(&view.modes, e));
                let last = page.shadow.last_write(i);
                let found = Found {
                    name: format!("{}{at}", kernel.view_name(output)),
                    value: Some(value_text(view.scalar, raw)),
                    block,
                    writer: last.map(|w| ((w.thread != u16::MAX).then_some(w.thread), w.site)),
                };
                return Err(wrong_element(kernel, oracle.root.site, &found, &wrong));
            }
        }
    }
    Ok(())
}
