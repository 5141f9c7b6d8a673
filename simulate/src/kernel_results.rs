//! Compares the elements that blocks wrote to global memory with the meaning of the kernel's spec.
//! A wrong element is an error. (`exec/check.rs` compares the bodies of specs inside a kernel.)
//!
//! The reference is evaluated from the memory before the kernel, on the elements that were written,
//! as regions of the outputs: the evaluation of a tile reads the rows and columns of its elements
//! once. If a comparison of all elements would take too long, evenly spread elements are compared.
//! A kernel without a body is also executed here, by its meaning.

use crate::denote::{Computed, Exact, Meaning, Region, SLACK, are_integers, cover};
use crate::exec::{Counts, Elements, Found, Want, Wanted, value_text, wrong_element};
use crate::num::{decode, encode};
use crate::plan::{
    Checked, Inverse, Kernel, Reference, RootSpec, Source, Space, View, coordinates,
    coordinates_text,
};
use crate::state::{GlobalMemory, PAGE, Page, Value};
use crate::workers::Workers;
use carbyne_ir::diag::{Code, Diagnostic, count};
use carbyne_ir::scalar::Scalar;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The largest work of comparing one block, in computed numbers. Beyond this limit, a sample of
/// evenly spread elements is compared.
const MAX_WORK: u64 = 1 << 32;
/// The largest work of one evaluation; larger regions are split.
const MAX_STEP: u64 = 1 << 28;
/// The largest number of numbers in one evaluation.
const MAX_NUMBERS: u64 = 1 << 25;

/// The numbers of an operand on a region: stored values, or shadows.
type Kept = ((usize, bool, Region), Arc<[f64]>);

/// Evaluates the meaning of a kernel on the memory before the kernel.
pub(crate) struct Oracle<'k> {
    kernel: &'k Kernel<'k>,
    memory: &'k [&'k GlobalMemory],
    root: &'k RootSpec,
    /// The operands that were read last, the latest at the end. Parts of one output often read the
    /// same rows and columns.
    kept: Mutex<Vec<Kept>>,
    in_parts: AtomicBool,
    /// The largest error of a number, relative to its scale.
    slack: f64,
    /// Whether values are computed from stored values instead of shadows. The two differ if shadows
    /// persist where an earlier kernel rounded values.
    by_both: bool,
}

impl<'k> Oracle<'k> {
    /// The meaning of the kernel's spec on this memory.
    pub(crate) fn new(
        kernel: &'k Kernel<'k>,
        memory: &'k [&'k GlobalMemory],
        root: &'k RootSpec,
    ) -> Self {
        let (kept, in_parts) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        Oracle { kernel, memory, root, kept, in_parts, slack: SLACK, by_both: false }
    }

    /// The oracle for memory whose shadows may differ from its values.
    pub(crate) fn by_both(self) -> Self {
        Oracle { by_both: true, ..self }
    }

    /// The oracle for results whose allowed error is `slack`, relative to their scale.
    pub(crate) fn within(self, slack: f64) -> Self {
        Oracle { slack, ..self }
    }

    fn reference(&self) -> &'k Reference {
        &self.root.reference
    }

    /// Whether one evaluation can hold everything that a region of an output needs.
    fn fits(&self, output: usize, region: &Region) -> bool {
        let chain = &self.reference().chain;
        chain.work(output, region) <= MAX_STEP && chain.numbers(output, region) <= MAX_NUMBERS
    }

    /// The expected elements of an output on a region.
    ///
    /// # Errors
    /// `S0503` if an input is undefined; `X0007` if a single element needs too many numbers.
    pub(crate) fn wanted(&self, output: usize, region: &Region) -> Checked<Wanted> {
        let chain = &self.reference().chain;
        if chain.numbers(output, region) > MAX_NUMBERS && region.size() == 1 {
            let site = &self.kernel.sites[self.root.site as usize];
            let text = "the meaning of one output element takes too many numbers to evaluate";
            return Err(Box::new(
                Diagnostic::new(Code::TooLarge, site.span, text)
                    .help("choose smaller sizes, or pass `--no-check`"),
            ));
        }
        let exact = match self.shadows() {
            true => Some(self.exact(output, region, true)?),
            false => None,
        };
        let values = match &self.reference().meaning {
            Some(meaning) => Some(self.by_values(meaning, region, exact.as_ref())?),
            None => None,
        };
        Ok(Wanted { values, exact: exact.map(|(exact, _)| exact) })
    }

    fn shadows(&self) -> bool {
        self.memory.iter().all(|m| m.shadows)
    }

    /// Whether shadows equal values, because no earlier kernel rounded any.
    fn is_fresh(&self) -> bool {
        self.memory.iter().all(|m| m.pages.is_empty())
    }

    /// The exact elements, and whether all numbers that they are computed from are integers.
    fn exact(&self, output: usize, region: &Region, shadows: bool) -> Checked<(Exact, bool)> {
        let reference = self.reference();
        let mut integers = true;
        let mut fetch = |operand: usize, part: &Region| -> Checked<Vec<f64>> {
            let numbers = self.numbers(operand, shadows, part)?;
            integers = integers && are_integers(&numbers);
            Ok(numbers)
        };
        let exact = reference.chain.evaluate(output, region, self.slack, &mut fetch)?;
        Ok((exact, integers))
    }

    /// The numbers of an operand on a region.
    fn numbers(&self, operand: usize, shadows: bool, part: &Region) -> Checked<Vec<f64>> {
        /// The largest number of stored numbers.
        const MOST: usize = 1 << 23;
        let is_it = |((o, s, r), _): &Kept| *o == operand && *s == shadows && r == part;
        if let Ok(kept) = self.kept.lock()
            && let Some((_, numbers)) = kept.iter().find(|k| is_it(k))
        {
            return Ok(numbers.to_vec());
        }
        let view = self.reference().operands[operand];
        let scalar = self.kernel.scalar(view);
        let number = |v: Value| if shadows { v.shadow } else { decode(scalar, v.bits) };
        let modes = &self.kernel.views[view].modes;
        let numbers: Vec<f64> = part
            .elements(modes)
            .map(|e| self.value(view, e).map(number))
            .collect::<Checked<_>>()?;
        if let Ok(mut kept) = self.kept.lock()
            && self.in_parts.load(Ordering::Relaxed)
        {
            kept.push(((operand, shadows, part.clone()), numbers.as_slice().into()));
            let size = |kept: &[Kept]| kept.iter().map(|(_, n)| n.len()).sum::<usize>();
            while size(&kept) > MOST {
                kept.remove(0);
            }
        }
        Ok(numbers)
    }

    /// The meaning of the stored values.
    fn by_values(
        &self,
        meaning: &Meaning,
        region: &Region,
        exact: Option<&(Exact, bool)>,
    ) -> Checked<Want> {
        let reference = self.reference();
        let output = reference.outputs[0];
        let scalar = self.kernel.scalar(output);
        let n = region.size() as usize;
        let modes = &self.kernel.views[output].modes;
        // The bits of a tensor that is read at the output's elements.
        let at = |view: usize| -> Checked<Vec<u64>> {
            region.elements(modes).map(|e| Ok(self.value(view, e)?.bits)).collect()
        };
        match meaning {
            _ if !meaning.is_elementwise() => {
                let (sums, integers) = match exact {
                    Some(exact) if self.is_fresh() => exact.clone(),
                    _ => self.exact(0, region, false)?,
                };
                let (values, magnitudes) = (sums.numbers, sums.scales);
                Ok(Want::Values(Computed { values, magnitudes, integers }))
            }
            Meaning::Init => {
                let literal = match reference.inputs.first() {
                    Some(Source::Number(literal)) => literal.exact,
                    _ => 0.0,
                };
                Ok(Want::Bits(vec![encode(scalar, literal); n]))
            }
            _ if meaning.is_of_bits() => {
                let bits = |s: &Source| match s {
                    Source::View(v) => at(*v),
                    Source::Number(literal) => Ok(vec![encode(scalar, literal.exact); n]),
                };
                let inputs = reference.inputs.iter().map(bits).collect::<Checked<Vec<_>>>()?;
                Ok(Want::Bits(meaning.bits(&inputs).unwrap_or_default()))
            }
            _ => {
                let numbers = |v: usize| -> Checked<Vec<f64>> {
                    let scalar = self.kernel.scalar(v);
                    Ok(at(v)?.into_iter().map(|b| decode(scalar, b)).collect())
                };
                let input = |s: &Source| match s {
                    Source::View(v) => numbers(*v),
                    Source::Number(literal) => Ok(vec![literal.rounded]),
                };
                let inputs = reference.inputs.iter().map(input).collect::<Checked<Vec<_>>>()?;
                let before = match meaning.reads_output() {
                    true => numbers(output)?,
                    false => Vec::new(),
                };
                Ok(Want::Values(meaning.compute(&inputs, &before, n)))
            }
        }
    }

    fn value(&self, index: usize, e: i64) -> Checked<Value> {
        let view = &self.kernel.views[index];
        let at = offset(view, e);
        if view.is_outside(at) {
            return Ok(Value::ZERO);
        }
        let value = match view.space {
            Space::Global(i) | Space::Param(i) => self.memory[i].read(at),
            Space::Index => Some(Value::coordinate(at)),
            Space::Shared(_) | Space::Registers(_) | Space::Gathered(_) => None,
        };
        value.ok_or_else(|| {
            let at = coordinates_text(&coordinates(&view.modes, e));
            let name = self.kernel.view_name(index);
            let span = self.kernel.program.specs[self.kernel.spec].span;
            Box::new(
                Diagnostic::new(
                    Code::Uninitialized,
                    span,
                    format!("{name}{at} is undefined at the start of the kernel"),
                )
                .help("write it in an earlier kernel, or name it as an input of this kernel"),
            )
        })
    }

    /// Splits a region into parts that one evaluation can hold, along the slowest mode if no other
    /// mode is clearly better.
    pub(crate) fn parts(&self, output: usize, region: Region) -> Vec<Region> {
        let (mut out, mut todo) = (Vec::new(), vec![region]);
        while let Some(region) = todo.pop() {
            match self.halves(output, &region) {
                Some((first, second)) => {
                    todo.push(second);
                    todo.push(first);
                }
                None => out.push(region),
            }
        }
        self.in_parts.store(out.len() > 1, Ordering::Relaxed);
        out
    }

    /// The two halves of a region, if one evaluation cannot hold the region and the halves together
    /// take less work.
    fn halves(&self, output: usize, region: &Region) -> Option<(Region, Region)> {
        if self.fits(output, region) {
            return None;
        }
        let chain = &self.reference().chain;
        let mut best: Option<(u64, (Region, Region))> = None;
        for mode in (0..region.axes.len()).rev() {
            let Some(halves) = region.halves_along(mode) else { continue };
            let work = chain.work(output, &halves.1);
            // Parts in the order of elements are preferred.
            if best.as_ref().is_none_or(|(least, _)| work < least / 8 * 7) {
                best = Some((work, halves));
            }
        }
        let (work, halves) = best?;
        // Halves are useless if each takes nearly as much work as the region, unless the region is
        // too large to hold.
        let held = chain.numbers(output, region) <= MAX_NUMBERS;
        let useless = work > chain.work(output, region) / 8 * 7;
        (!(held && useless)).then_some(halves)
    }

    /// The work of evaluating an output on a region.
    pub(crate) fn work(&self, output: usize, region: &Region) -> u64 {
        self.reference().chain.work(output, region)
    }
}

/// Evaluates a kernel's meaning and passes each written element to `put`: view, offset and value,
/// in order.
///
/// # Errors
/// The errors of [`Oracle::wanted`].
pub(crate) fn by_meaning(
    oracle: &Oracle<'_>,
    mut put: impl FnMut(usize, i64, Value),
) -> Checked<()> {
    let (kernel, reference) = (oracle.kernel, oracle.reference());
    for (o, output) in reference.outputs.iter().enumerate() {
        let view = &kernel.views[*output];
        let parts = oracle.parts(o, Region::whole(&view.modes));
        // Few parts at a time: each holds the operands that it reads.
        let workers = Workers::get()?;
        for some in parts.chunks(2 * workers.count()) {
            let values = |part: &Region| meant(oracle, o, part);
            let all: Vec<_> = workers.map(some, values);
            for (part, values) in some.iter().zip(all) {
                for (e, value) in part.elements(&view.modes).zip(values?) {
                    let at = offset(view, e);
                    if !view.is_outside(at) {
                        put(*output, at, value);
                    }
                }
            }
        }
    }
    Ok(())
}

/// The new values of the elements of a region.
fn meant(oracle: &Oracle<'_>, output: usize, region: &Region) -> Checked<Vec<Value>> {
    let reference = oracle.reference();
    let scalar = oracle.kernel.scalar(reference.outputs[output]);
    let Wanted { values, exact } = oracle.wanted(output, region)?;
    let exact = match exact {
        Some(exact) => Some(exact),
        None if values.is_none() => Some(oracle.exact(output, region, false)?.0),
        None => None,
    };
    let of_values = match values.is_none() && oracle.by_both && !oracle.is_fresh() {
        true => Some(oracle.exact(output, region, false)?.0),
        false => None,
    };
    let shadow = |i: usize| exact.as_ref().and_then(|x| x.numbers.get(i)).copied().unwrap_or(0.0);
    let bits = |i: usize| match (&values, &reference.meaning) {
        (Some(Want::Bits(list)), _) => list[i],
        (Some(Want::Values(c)), Some(meaning)) => rounded(meaning, scalar, c.values[i]),
        _ => encode(scalar, of_values.as_ref().map_or(shadow(i), |x| x.numbers[i])),
    };
    Ok((0..region.size() as usize).map(|i| Value { bits: bits(i), shadow: shadow(i) }).collect())
}

/// A number, rounded as the spec rounds.
fn rounded(meaning: &Meaning, scalar: Scalar, value: f64) -> u64 {
    match meaning {
        Meaning::MatMul { acc, .. } => encode(scalar, decode(*acc, encode(*acc, value))),
        _ => encode(scalar, value),
    }
}

/// An output of a kernel's spec, with the map from offsets to its elements.
pub(crate) struct Output {
    /// The index among the outputs.
    number: usize,
    /// The index of the view.
    pub view: usize,
    /// The kernel's index of the buffer.
    pub global: usize,
    /// The map from offsets, counted from `base`, to elements.
    inverse: Inverse,
    base: i64,
}

impl Output {
    /// The outputs of the kernel's spec that can be compared.
    pub(crate) fn all(kernel: &Kernel<'_>, root: &RootSpec) -> Vec<Output> {
        let outputs = root.reference.outputs.iter().enumerate();
        let of = |(number, view): (usize, &usize)| {
            let Space::Global(global) = kernel.views[*view].space else { return None };
            let (inverse, base) = Inverse::of_view(&kernel.views[*view])?;
            Some(Output { number, view: *view, global, inverse, base })
        };
        outputs.filter_map(of).collect()
    }
}

/// Compares elements of an output. `found` returns the value of an element and its writer, and is
/// called in the order of elements. Elements are skipped if a comparison of all would take too
/// long.
///
/// # Errors
/// `S0501` for the first wrong element, column-major.
fn compare<'p>(
    oracle: &Oracle<'_>,
    output: &Output,
    elements: &[i64],
    found: impl Fn(i64) -> Option<(Value, Option<(Option<u16>, u32)>)> + 'p,
    (block, small_ints): (Option<i64>, bool),
    counts: &mut Counts,
) -> Checked<()> {
    let (kernel, root) = (oracle.kernel, oracle.root);
    let view = &kernel.views[output.view];
    let regions = cover(&view.modes, elements);
    let work = regions.iter().map(|r| oracle.work(output.number, r));
    let share = work.fold(0u64, u64::saturating_add) / MAX_WORK + 1;
    let thinned = |region: Region| match share {
        1 => region,
        n => region.thinned(region.size() / n),
    };
    let parts = regions.into_iter().flat_map(|r| oracle.parts(output.number, thinned(r)));
    let parts: Vec<Region> = parts.collect();
    // Few parts at a time: each holds the operands that it reads.
    let workers = Workers::get()?;
    for some in parts.chunks(workers.count()) {
        let wanted = |part: &Region| oracle.wanted(output.number, part);
        let all: Vec<_> = workers.map(some, wanted);
        for (part, wanted) in some.iter().zip(all) {
            let wanted = wanted?;
            for (i, e) in part.elements(&view.modes).enumerate() {
                let Some((value, writer)) = found(e) else { continue };
                let judged =
                    wanted.compare(&root.reference, view.scalar, small_ints, i, Some(value));
                match judged {
                    Ok(near) => counts.compared(kernel.checks.len(), &near),
                    Err(wrong) => {
                        let at = coordinates_text(&coordinates(&view.modes, e));
                        let wrong_one = Found {
                            name: format!("{}{at}", kernel.view_name(output.view)),
                            value: Some(value_text(view.scalar, value.bits)),
                            block,
                            writer,
                        };
                        let d = wrong_element(kernel, root.site, (&wrong_one, &wrong), counts);
                        // A picture of a sample of elements would show no pattern.
                        return Err(match share {
                            1 => {
                                let note = pattern(oracle, output, elements, found, small_ints)?;
                                Box::new(d.note(note))
                            }
                            _ => d,
                        });
                    }
                }
            }
        }
    }
    Ok(())
}

/// Describes the positions of all wrong elements of an output, among the compared ones.
fn pattern<'p>(
    oracle: &Oracle<'_>,
    output: &Output,
    elements: &[i64],
    found: impl Fn(i64) -> Option<(Value, Option<(Option<u16>, u32)>)> + 'p,
    small_ints: bool,
) -> Checked<String> {
    let view = &oracle.kernel.views[output.view];
    let mut all = Elements::of(&view.modes);
    for region in cover(&view.modes, elements) {
        for part in oracle.parts(output.number, region) {
            let wanted = oracle.wanted(output.number, &part)?;
            for (i, e) in part.elements(&view.modes).enumerate() {
                let Some((value, writer)) = found(e) else { continue };
                let reference = &oracle.root.reference;
                let wrong = wanted.compare(reference, view.scalar, small_ints, i, Some(value));
                if !all.add(e, wrong.is_err(), writer.and_then(|(thread, _)| thread)) {
                    return Ok(all.note());
                }
            }
        }
    }
    Ok(all.note())
}

/// Compares the elements that one block wrote to an output of the kernel's spec.
///
/// # Errors
/// `S0501` for the first wrong element, column-major.
pub(crate) fn check_block(
    oracle: &Oracle<'_>,
    output: &Output,
    pages: &[(u64, Box<Page>)],
    block: i64,
    small_ints: bool,
    counts: &mut Counts,
) -> Checked<()> {
    let view = &oracle.kernel.views[output.view];
    let mut elements = Vec::new();
    for (number, page) in pages {
        // The final value of an element that blocks accumulate into is known when all blocks have
        // ended.
        let own = |i: &usize| page.written.has(*i) && page.only_sum(*i).is_none();
        elements.extend((0..PAGE).filter(own).filter_map(|i| {
            let at = (number * PAGE as u64) as i64 + i as i64 - output.base;
            output.inverse.element(at)
        }));
    }
    elements.sort_unstable();
    let found = |e: i64| {
        let at = offset(view, e);
        let number = u64::try_from(at).ok()? / PAGE as u64;
        let place = pages.binary_search_by_key(&number, |(n, _)| *n).ok()?;
        let (page, i) = (&pages[place].1, at as usize % PAGE);
        let value = page.written.get(i).filter(|_| page.only_sum(i).is_none())?;
        let last = page.history.last_write(i);
        Some((value, last.map(|w| ((w.thread != u16::MAX).then_some(w.thread), w.site))))
    };
    compare(oracle, output, &elements, found, (Some(block), small_ints), counts)
}

/// Compares the elements of an output that several blocks accumulated into.
///
/// # Errors
/// `S0501`
pub(crate) fn check_sums(
    oracle: &Oracle<'_>,
    output: &Output,
    sums: impl Iterator<Item = (i64, Value)>,
    small_ints: bool,
    counts: &mut Counts,
) -> Checked<()> {
    let named =
        |(at, value): (i64, Value)| output.inverse.element(at - output.base).map(|e| (e, value));
    let mut all: Vec<(i64, Value)> = sums.filter_map(named).collect();
    all.sort_unstable_by_key(|(e, _)| *e);
    let elements: Vec<i64> = all.iter().map(|(e, _)| *e).collect();
    let found = |e: i64| {
        let i = all.binary_search_by_key(&e, |(e, _)| *e).ok()?;
        Some((all[i].1, None))
    };
    compare(oracle, output, &elements, found, (None, small_ints), counts)
}

/// Compares elements of an output, in ascending order, that no block has written, so that they have
/// their previous values.
///
/// # Errors
/// `S0501`
pub(crate) fn check_unwritten(
    oracle: &Oracle<'_>,
    output: &Output,
    memory: &GlobalMemory,
    elements: &[i64],
    small_ints: bool,
    counts: &mut Counts,
) -> Checked<()> {
    let view = &oracle.kernel.views[output.view];
    let found = |e: i64| Some((memory.read(offset(view, e))?, None));
    compare(oracle, output, elements, found, (None, small_ints), counts).map_err(|mut d| {
        d.message = format!("no block writes an element that must change: {}", d.message);
        let n = count(elements.len(), "element");
        d.label = format!("the body of this spec does not write {n} of the output");
        d.notes.clear();
        d.help = Some("let the grid, the loops and the tiles cover the whole output".to_owned());
        d
    })
}

/// The offset of an element of a caller's tensor; [`OUTSIDE`](crate::plan::OUTSIDE) if the element
/// does not exist.
pub(crate) fn offset(view: &View, e: i64) -> i64 {
    match view.known() {
        Some(base) => view.place(base, e as usize),
        None => view.element(e as usize),
    }
}
