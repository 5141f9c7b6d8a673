//! Compares the body of a spec inside a kernel with the meaning of the spec, so that an error names
//! the innermost spec that is wrong. (`kernel_results.rs` compares complete kernels.)
//!
//! The reference is computed when the body begins, from all earlier writes of all threads of the
//! block, whether or not the reader may see them yet (other code detects races). When the body
//! ends, every element of the outputs is compared. If a pending copy writes an element, the value
//! that it will write is compared. If several threads hold an element of a distributed tensor, all
//! of their copies are compared.
//!
//! Each element has two comparisons. The shadow (the value without rounding) must equal the meaning
//! of the shadows at the beginning of the body, up to rounding errors of binary64 ([`Exact::is`]).
//! The stored value must equal the meaning of the stored values within the tolerance of the kind of
//! spec ([`mod@crate::denote`]). The results of a `means` block have no tolerance: only their
//! shadows are compared, and a stored infinity or NaN is an error if the type can hold the shadow.

use super::pattern::Elements;
use super::{Counts, Runner, value_text};
use crate::denote::{Computed, Exact, Meaning, Region, SLACK, tolerance};
use crate::num::{decode, decode_all, encode, exact_integers, ulp};
use crate::plan::{
    Base, Check, Checked, Kernel, Mask, Partition, Reference, Source, coordinates,
    coordinates_text, line_text,
};
use crate::state::{Registers, Tile, Value, same_shadow};
use carbyne_ir::ast::ReduceOp;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{CastRole, Means, Operand};
use carbyne_ir::scalar::Scalar;
use std::collections::BTreeSet;

/// The expected elements of an output.
pub(crate) struct Wanted {
    /// The reference from the stored values; none for a `means` block.
    pub values: Option<Want>,
    /// The reference from the shadows; none without shadows.
    pub exact: Option<Exact>,
}

/// The expected values of an output.
pub(crate) enum Want {
    /// Exactly these bits.
    Bits(Vec<u64>),
    /// These numbers, up to the tolerance.
    Values(Computed),
}

/// The comparison of a correct element.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Near {
    /// The difference; 0 if the element is the rounded reference.
    pub error: f64,
    /// The largest allowed difference.
    pub allowed: f64,
    /// The difference from the shadow, or from the reference in binary64; 0 if that is not finite.
    pub distance: f64,
    /// The unit in the last place of the reference.
    pub ulp: f64,
    /// The shadow, or the reference.
    pub reference: f64,
    /// 1 if the element passes only because several numbers are acceptable, else 0.
    pub undecided: u64,
}

impl Near {
    /// The bits are equal.
    const EXACT: Near =
        Near { error: 0.0, allowed: 0.0, distance: 0.0, ulp: 1.0, reference: 0.0, undecided: 0 };
}

/// The comparison of a wrong element.
pub(crate) struct Wrong {
    /// The expected value, as text.
    pub expected: String,
    /// The largest allowed difference.
    pub allowed: f64,
    /// The result of the body without rounding, if that is wrong.
    pub exact: Option<f64>,
}

impl Want {
    /// Compares an element: returns its difference and the allowed difference, or the error.
    #[inline]
    fn compare(
        &self,
        reference: &Reference,
        scalar: Scalar,
        small_ints: bool,
        e: usize,
        bits: Option<u64>,
    ) -> Result<(f64, f64), Wrong> {
        let wrong = |expected: String, allowed: f64| Wrong { expected, allowed, exact: None };
        match (self, &reference.meaning) {
            (Want::Values(computed), Some(meaning)) => {
                let want = computed.values[e];
                let magnitude = computed.magnitudes[e];
                let allowed = || {
                    let stated = &reference.stated;
                    let ints = small_ints && computed.integers;
                    tolerance(meaning, scalar, want, magnitude, ints, stated)
                };
                if let Some(bits) = bits {
                    let got = decode(scalar, bits);
                    // The rounded reference is correct by definition; it may be infinite or NaN.
                    if bits == encode(scalar, want) || (got.is_nan() && want.is_nan()) {
                        return Ok((0.0, 0.0));
                    }
                    let (error, allowed) = ((got - want).abs(), allowed());
                    if error <= allowed {
                        return Ok((error, allowed));
                    }
                }
                let allowed = allowed();
                Err(wrong(format!("{want}"), allowed))
            }
            (Want::Values(_), None) => Ok((0.0, 0.0)),
            (Want::Bits(list), _) => match (list[e], bits) {
                (want, Some(bits)) if want == bits => Ok((0.0, 0.0)),
                (want, _) => Err(wrong(value_text(scalar, want), 0.0)),
            },
        }
    }
}

/// No type rounds numbers up to this one to infinity.
const HELD_BY_ALL: f64 = 65504.0;

/// The largest number of a type that has infinities.
fn largest(scalar: Scalar) -> f64 {
    decode(scalar, encode(scalar, f64::INFINITY).wrapping_sub(1))
}

/// The distance of a number from the expected one.
fn near(scalar: Scalar, got: f64, want: f64) -> Near {
    let distance = (got - want).abs();
    match distance.is_finite() {
        true => Near { distance, ulp: ulp(scalar, want), reference: want, ..Near::EXACT },
        false => Near::EXACT,
    }
}

impl Wanted {
    /// Compares the value and the shadow of an element.
    ///
    /// # Errors
    /// The element is wrong.
    pub(crate) fn compare(
        &self,
        reference: &Reference,
        scalar: Scalar,
        small_ints: bool,
        e: usize,
        value: Option<Value>,
    ) -> Result<Near, Wrong> {
        let exact = self.exact.as_ref();
        let Some(value) = value else {
            let of_exact = exact.and_then(|x| x.numbers.get(e)).map(|v| format!("{v}"));
            let of_values = self.values.as_ref().map(|w| match w {
                Want::Bits(list) => value_text(scalar, list[e]),
                Want::Values(c) => format!("{}", c.values[e]),
            });
            let expected = of_values.or(of_exact).unwrap_or_default();
            return Err(Wrong { expected, allowed: 0.0, exact: None });
        };
        let by_value = match &self.values {
            Some(want) => Some(want.compare(reference, scalar, small_ints, e, Some(value.bits))?),
            None => None,
        };
        let (error, allowed) = by_value.unwrap_or_default();
        let got = decode(scalar, value.bits);
        let Some(exact) = exact else {
            let near = match (&self.values, &reference.meaning) {
                (Some(Want::Values(c)), Some(_)) => near(scalar, got, c.values[e]),
                _ => Near::EXACT,
            };
            return Ok(Near { error, allowed, ..near });
        };
        let want = exact.numbers.get(e).copied().unwrap_or(f64::NAN);
        // Integers beyond 53 bits are compared by their bits.
        let large =
            !scalar.is_float() && scalar.bits() > 53 && want.abs() >= exact_integers(Scalar::F64);
        if !large && !exact.is(e, scalar, value.shadow, reference.rounded.contains(&scalar)) {
            let (expected, allowed) = (format!("{want}"), 0.0);
            return Err(Wrong { expected, allowed, exact: Some(value.shadow) });
        }
        if !value.shadow.is_nan() {
            // The value is wrong if it overflowed although the type can hold the shadow. If the
            // type cannot hold the shadow, the value must be an infinity or one of the largest
            // numbers.
            let is_held = || decode(scalar, encode(scalar, value.shadow)).is_finite();
            let is_wrong = match value.shadow.abs() <= HELD_BY_ALL || is_held() {
                true => by_value.is_none() && !got.is_finite(),
                false => got.is_nan() || got * value.shadow.signum() < largest(scalar) / 2.0,
            };
            if is_wrong {
                let expected = format!("{want}");
                return Err(Wrong { expected, allowed: 0.0, exact: None });
            }
        }
        let rounds = reference.rounded.contains(&scalar);
        let undecided = by_value.is_none() && !rounds && exact.is_undecided(e, value.shadow);
        let undecided = u64::from(undecided);
        Ok(Near { error, allowed, undecided, ..near(scalar, got, value.shadow) })
    }
}

impl Runner<'_> {
    /// Evaluates the reference of every active group; with `partly`, of every group that is
    /// completely active.
    pub(super) fn expect(
        &mut self,
        check: usize,
        partition: &Partition,
        active: &Mask,
        site: u32,
        partly: bool,
    ) -> Checked<()> {
        let of = &self.kernel.checks[check];
        let groups = match partly {
            false => self.whole_groups(partition, active, site)?,
            true if self.is_shared(check, partition) => {
                self.counts.skipped.insert(of.site);
                Vec::new()
            }
            true => {
                self.counts.skipped.insert(of.site);
                let whole = |g: &&Vec<u16>| g.iter().all(|t| active.has(usize::from(*t)));
                partition.groups.iter().filter(whole).map(|g| &g[..]).collect()
            }
        };
        self.blocks[self.rank].registers.iter_mut().for_each(Registers::store);
        for group in groups {
            match (self.wanted(of, group)?, group.first()) {
                (Some(want), Some(first)) => {
                    self.expected.insert((self.rank, check, *first), want);
                }
                _ => drop(self.counts.skipped.insert(of.site)),
            }
        }
        Ok(())
    }

    /// Whether several groups of a partition together compute one output, each a part of it.
    fn is_shared(&self, check: usize, partition: &Partition) -> bool {
        let shared = |v: &usize| self.kernel.views[*v].is_uniform();
        partition.groups.len() > partition.own.len()
            && self.kernel.checks[check].reference.outputs.iter().any(shared)
    }

    /// The absent threads that a comparison of the body needs: those of partially active groups, or
    /// of all groups if the groups share one output.
    pub(super) fn to_compare(&self, check: usize, partition: &Partition, active: &Mask) -> Mask {
        match self.is_shared(check, partition) {
            true => {
                let here = partition.own.iter().filter(|own| !own.and(active).is_empty());
                here.fold(Mask::NONE, |all, own| all.or(own)).without(active)
            }
            false => super::schedule::missing(partition, active, 0),
        }
    }

    /// Whether a group with an active thread will be compared.
    pub(super) fn is_expected(&self, check: usize, partition: &Partition, active: &Mask) -> bool {
        partition.groups.iter().any(|group| {
            group.iter().any(|t| active.has(usize::from(*t)))
                && self.expected.contains_key(&(self.rank, check, group[0]))
        })
    }

    /// The expected outputs of a spec for a group; none if the threads have different views of an
    /// operand.
    fn wanted(&self, check: &Check, group: &[u16]) -> Checked<Option<Vec<Wanted>>> {
        let (kernel, reference) = (self.kernel, &check.reference);
        for output in &reference.outputs {
            if self.common_base(*output, group, check.site)?.is_none() {
                return Ok(None);
            }
        }
        let mut entry: Vec<Option<Tile>> = Vec::with_capacity(reference.operands.len());
        for (i, view) in reference.operands.iter().enumerate() {
            entry.push(match reference.chain.reads(i) {
                false => None,
                true => match self.entry_values(check, *view, group)? {
                    None => return Ok(None),
                    tile => tile,
                },
            });
        }
        let values = self.wanted_values(reference, &entry);
        let mut exact = |o: usize| -> Option<Exact> {
            if !self.mode.shadows {
                return None;
            }
            // Whether every shadow equals its number.
            let unchanged = || {
                let same = |(tile, view): (&Option<Tile>, &usize)| {
                    let scalar = kernel.scalar(*view);
                    tile.as_ref().is_none_or(|t| {
                        let mut each = t.bits.iter().zip(&t.shadows);
                        each.all(|(bits, s)| same_shadow(decode(scalar, *bits), *s))
                    })
                };
                entry.iter().zip(&reference.operands).rev().all(same)
            };
            match (&reference.meaning, &values) {
                (Some(Meaning::Move), _) => {
                    let numbers = entry.first()?.as_ref()?.shadows.clone();
                    let scales = vec![0.0; numbers.len()];
                    return Some(Exact { numbers, scales });
                }
                (
                    Some(
                        meaning @ (Meaning::MatMul { .. }
                        | Meaning::Reduction { op: ReduceOp::Sum, .. }),
                    ),
                    Some(Want::Values(c)),
                ) if kernel.scalar(reference.outputs[0]).is_float() => {
                    // The sums have been computed already.
                    if unchanged() {
                        return Some(Exact::of_sums(c.values.clone(), c.magnitudes.clone()));
                    }
                    if let Some(sums) = sums(reference, meaning, &mut entry, c.values.len()) {
                        return Some(sums);
                    }
                }
                _ => {}
            }
            let region = Region::whole(&kernel.views[reference.outputs[o]].modes);
            let mut fetch = |operand: usize, part: &Region| -> Result<Vec<f64>, ()> {
                let modes = &kernel.views[reference.operands[operand]].modes;
                let tile = entry[operand].as_ref().ok_or(())?;
                let of = |e: i64| tile.shadows.get(e as usize).copied().ok_or(());
                match *part == Region::whole(modes) {
                    true => Ok(tile.shadows.clone()),
                    false => part.elements(modes).map(of).collect(),
                }
            };
            reference.chain.evaluate(o, &region, SLACK, &mut fetch).ok()
        };
        let exact: Vec<Option<Exact>> = (0..reference.outputs.len()).map(&mut exact).collect();
        let mut values = values;
        Ok(Some(exact.into_iter().map(|exact| Wanted { values: values.take(), exact }).collect()))
    }

    /// The meaning of the stored values, for a spec with a specific kind.
    fn wanted_values(&self, reference: &Reference, entry: &[Option<Tile>]) -> Option<Want> {
        let (kernel, meaning) = (self.kernel, reference.meaning.as_ref()?);
        let output = reference.outputs[0];
        let (out, n) = (kernel.scalar(output), kernel.views[output].size as usize);
        let mut tiles = entry.iter().zip(&reference.operands);
        let mut inputs = Vec::with_capacity(reference.inputs.len());
        let mut kept = Vec::new();
        for input in &reference.inputs {
            match input {
                Source::Number(literal) if *meaning == Meaning::Init => {
                    return Some(Want::Bits(vec![encode(out, literal.exact); n]));
                }
                Source::Number(literal) if meaning.is_of_bits() => {
                    kept.push(vec![encode(out, literal.exact); n]);
                }
                Source::Number(literal) => inputs.push(vec![literal.rounded]),
                Source::View(_) => {
                    let (tile, view) = tiles.next()?;
                    let tile = tile.as_ref()?;
                    if meaning.is_of_bits() {
                        kept.push(tile.bits.clone());
                        continue;
                    }
                    let scalar = kernel.scalar(*view);
                    inputs.push(decode_all(scalar, &tile.bits));
                }
            }
        }
        if let Some(bits) = meaning.bits(&kept) {
            return Some(Want::Bits(bits));
        }
        let mut before = Vec::new();
        if meaning.reads_output() {
            let (tile, _) = tiles.next()?;
            before = decode_all(out, &tile.as_ref()?.bits);
        }
        Some(Want::Values(meaning.compute(&inputs, &before, n)))
    }

    /// The elements of an operand for a group; none if the threads have different views.
    fn entry_values(&self, check: &Check, index: usize, group: &[u16]) -> Checked<Option<Tile>> {
        let kernel = self.kernel;
        let view = &kernel.views[index];
        let Some(base) = self.common_base(index, group, check.site)? else { return Ok(None) };
        let mut values = Tile::default();
        for e in 0..view.size as usize {
            let place = self.place(index, &base, e, group, 0);
            match place.and_then(|(thread, at)| self.blocks[self.rank].peek(view, at, thread)) {
                Some(value) => values.push(value, self.mode.shadows),
                None => {
                    let name = kernel.view_name(index);
                    let at = coordinates_text(&coordinates(&view.modes, e as i64));
                    let span = kernel.sites[check.site as usize].span;
                    return Err(Box::new(
                        Diagnostic::new(
                            Code::Uninitialized,
                            span,
                            format!("{name}{at} is undefined when the spec that reads it begins"),
                        )
                        .label(format!("block {}", self.env.block))
                        .help("write it first: with Init for an accumulator, with Move for data"),
                    ));
                }
            }
        }
        Ok(Some(values))
    }

    /// Copy number `copy` of an element, as (thread, offset), if it exists.
    #[inline]
    fn place(
        &self,
        index: usize,
        base: &Base,
        e: usize,
        group: &[u16],
        copy: usize,
    ) -> Option<(usize, i64)> {
        let view = &self.kernel.views[index];
        match view.dist {
            Some(d) => {
                let first = group.first().map_or(0, |t| usize::from(*t));
                let owner = self.kernel.dists[d].owners(e, first).get(copy)?;
                Some((usize::from(owner.0), i64::from(owner.1)))
            }
            None if copy == 0 => {
                let thread = group.first().map_or(0, |t| usize::from(*t));
                Some((thread, view.place(base, e)))
            }
            None => None,
        }
    }

    /// Compares the outputs of a body that has ended.
    pub(super) fn compare(
        &mut self,
        check: usize,
        partition: &Partition,
        active: &Mask,
    ) -> Checked<()> {
        let (kernel, number) = (self.kernel, check);
        let check = &kernel.checks[number];
        let mut compared = false;
        self.blocks[self.rank].registers.iter_mut().for_each(Registers::store);
        for group in &partition.groups {
            if !group.iter().any(|t| active.has(usize::from(*t))) {
                continue;
            }
            let Some(all) = self.expected.remove(&(self.rank, number, group[0])) else { continue };
            if !group.iter().all(|t| active.has(usize::from(*t))) {
                self.counts.skipped.insert(check.site);
                continue;
            }
            compared = true;
            for (output, wanted) in check.reference.outputs.iter().zip(&all) {
                self.compare_output(number, *output, wanted, group)?;
            }
        }
        self.counts.specs += u64::from(compared);
        self.counts.numerics[number].executions += u64::from(compared);
        Ok(())
    }

    fn compare_output(
        &mut self,
        number: usize,
        output: usize,
        wanted: &Wanted,
        group: &[u16],
    ) -> Checked<()> {
        let kernel = self.kernel;
        let check = &kernel.checks[number];
        let view = &kernel.views[output];
        let Some(base) = self.common_base(output, group, check.site)? else { return Ok(()) };
        let ints = self.mode.small_ints;
        for e in 0..view.size as usize {
            for copy in 0.. {
                let Some((thread, at)) = self.place(output, &base, e, group, copy) else { break };
                if view.is_outside(at) {
                    continue;
                }
                let value = self.blocks[self.rank].peek(view, at, thread);
                match wanted.compare(&check.reference, view.scalar, ints, e, value) {
                    Ok(near) => self.counts.compared(number, &near),
                    Err(wrong) => {
                        let element = coordinates_text(&coordinates(&view.modes, e as i64));
                        let found = Found {
                            name: format!("{}{element}", kernel.view_name(output)),
                            value: value.map(|v| value_text(view.scalar, v.bits)),
                            block: Some(self.env.block),
                            writer: self.blocks[self.rank].writer(view, at, thread),
                        };
                        let d = wrong_element(kernel, check.site, (&found, &wrong), &self.counts);
                        let note = self.pattern(number, output, wanted, group, &base);
                        return Err(Box::new(d.note(note)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Describes the positions of all wrong elements of an output.
    fn pattern(
        &self,
        number: usize,
        output: usize,
        wanted: &Wanted,
        group: &[u16],
        base: &Base,
    ) -> String {
        let (check, view) = (&self.kernel.checks[number], &self.kernel.views[output]);
        let mut all = Elements::of(&view.modes);
        for e in 0..view.size as usize {
            let Some((thread, at)) = self.place(output, base, e, group, 0) else { continue };
            if view.is_outside(at) {
                continue;
            }
            let block = &self.blocks[self.rank];
            let value = block.peek(view, at, thread);
            let (reference, ints) = (&check.reference, self.mode.small_ints);
            let wrong = wanted.compare(reference, view.scalar, ints, e, value).is_err();
            let writer = block.writer(view, at, thread).and_then(|(thread, _)| thread);
            if !all.add(e as i64, wrong, writer) {
                break;
            }
        }
        all.note()
    }
}

/// The sums of the shadows; none if an operand is not a tile. The function takes the tiles.
fn sums(
    reference: &Reference,
    meaning: &Meaning,
    entry: &mut [Option<Tile>],
    n: usize,
) -> Option<Exact> {
    let n_inputs = reference.inputs.len();
    if reference.inputs.iter().any(|s| matches!(s, Source::Number(_))) || entry.len() < n_inputs {
        return None;
    }
    let mut shadows = entry.iter_mut().map(|t| std::mem::take(t).map(|t| t.shadows));
    let inputs: Vec<Vec<f64>> = shadows.by_ref().take(n_inputs).collect::<Option<_>>()?;
    let before = if meaning.reads_output() { shadows.next()?? } else { Vec::new() };
    let Computed { values, magnitudes, .. } = meaning.compute(&inputs, &before, n);
    Some(Exact::of_sums(values, magnitudes))
}

/// A wrong element.
pub(crate) struct Found {
    /// The element's name, `%C[3,5]`.
    pub name: String,
    /// The value; none if the element is undefined.
    pub value: Option<String>,
    /// The block; none for an element that several blocks accumulate into.
    pub block: Option<i64>,
    /// The thread and the statement of the last write.
    pub writer: Option<(Option<u16>, u32)>,
}

/// The most units in the last place by which a cast within the body may change a result.
const CAST_ULPS: f64 = 8.0;
/// The largest relative difference that a literal with too few digits may explain.
const FEW_DIGITS: f64 = 1e-2;

/// The casts that only one of the kernel's meaning and body contains, and that explain a difference
/// from the expected number.
fn other_casts(kernel: &Kernel<'_>, difference: f64, want: f64) -> Vec<String> {
    let program = kernel.program;
    let means = program.specs[kernel.spec].means.as_ref();
    let wanted: BTreeSet<Scalar> =
        means.map(Means::roundings).into_iter().flatten().flatten().collect();
    let casts = program.casts(kernel.spec);
    let meant = casts.iter().filter(|(_, role)| **role == CastRole::Meant);
    let found: BTreeSet<Scalar> = meant
        .filter_map(|(id, _)| Some(program.scalar_of(*program.specs[*id].outputs.first()?)))
        .collect();
    let explains = |to: &&Scalar| difference <= CAST_ULPS * ulp(**to, want);
    let lacks = wanted.difference(&found).filter(explains).map(|to| {
        format!("the meaning casts to {to}: write `cast(.., {to})` in the body, without `meant=no`")
    });
    let more = found.difference(&wanted).filter(explains).map(|to| {
        format!("a cast to {to} has `meant=yes`, and the meaning has no such cast: remove `meant=`")
    });
    lacks.chain(more).collect()
}

/// `S0501`
pub(crate) fn wrong_element(
    kernel: &Kernel<'_>,
    site: u32,
    (found, wrong): (&Found, &Wrong),
    counts: &Counts,
) -> Box<Diagnostic> {
    let Found { name, value, block, writer } = found;
    let span = kernel.sites[site as usize].span;
    let slack =
        if wrong.allowed > 0.0 { format!(" ± {:.1e}", wrong.allowed) } else { String::new() };
    let is = value.as_ref().map_or("undefined".to_owned(), |v| format!("`{v}`"));
    // Casts that saturate at the range of their type explain a difference without rounding.
    let beyond = wrong.exact.map(|_| &counts.beyond).filter(|b| !b.is_empty());
    let rounds = |exact: f64| value.as_ref().is_none_or(|v| *v != exact.to_string());
    let message = match wrong.exact {
        Some(exact) if beyond.is_none() && rounds(exact) => {
            format!("{name} is `{exact}` before rounding, the spec means `{}`", wrong.expected)
        }
        _ => format!("{name} is {is}, the spec means `{}`{slack}", wrong.expected),
    };
    let label = "the body of this spec does not compute what the spec means";
    let by = block.map_or("all blocks together".to_owned(), |block| format!("block {block}"));
    let mut d = Diagnostic::new(Code::WrongElement, span, message).label(format!("{by}: {label}"));
    let is_nan = wrong.exact.is_some_and(f64::is_nan) && beyond.is_none();
    let nan = counts.first_nan.filter(|_| is_nan).map(|at| &kernel.sites[at as usize]);
    d = d.help(match (nan, writer) {
        _ if beyond.is_some() => {
            "cast to a type that can hold the number, scale the number before the cast, or also \
             write the cast in `means`"
                .to_owned()
        }
        (Some(nan), _) => format!(
            "correct {} first, which computes the first NaN: keep its operands finite",
            line_text(nan)
        ),
        (None, Some((_, at))) => format!(
            "correct {}, which wrote the element last; if it only copies a value, correct the \
             statement that computes the value",
            line_text(&kernel.sites[*at as usize])
        ),
        (None, None) => {
            "write every element: compare the tiles of the body with the output's shape".to_owned()
        }
    });
    let no_number = f64::NAN.to_string();
    let want = wrong.expected.parse().unwrap_or(f64::NAN);
    let casts = wrong.exact.map_or(vec![], |x| other_casts(kernel, (x - want).abs(), want));
    match wrong.exact {
        Some(_) if beyond.is_some() => {}
        Some(_) if is_nan => {
            d = d.note(
                "`-inf - -inf`, `0 / 0` and `inf * 0` are NaN: does a mask remove all elements of \
                 a row? Then its maximum is `-inf`, and its sum 0",
            );
        }
        Some(_) if wrong.expected == no_number => {
            d = d.note(
                "the meaning is NaN here, and the body loses it: `min` and `max` ignore NaN, \
                 `minimum` and `maximum` propagate it",
            );
        }
        Some(_) if !casts.is_empty() => d = casts.into_iter().fold(d, Diagnostic::note),
        Some(exact) => {
            let is_near = (exact - want).abs() <= FEW_DIGITS * want.abs() && want.is_finite();
            if rounds(exact) {
                d = d.note(format!(
                    "the stored element is {is}; rounding is not the cause: the body computes \
                     another number than the spec means"
                ));
            }
            let mut specs = kernel.program.walk_body(kernel.spec).specs();
            let is_fraction = |o: &Operand| matches!(o, Operand::Number(n) if n.fract() != 0.0);
            if is_near && specs.any(|id| kernel.program.specs[id].inputs.iter().any(is_fraction)) {
                d = d.note("a literal of the body may have too few digits");
            }
        }
        None => {}
    }
    for (site, (number, result)) in beyond.into_iter().flatten() {
        let span = kernel.sites[*site as usize].span;
        d = d.related(
            span,
            format!("this cast converts `{number}` to `{result}`; `means` has no such cast"),
        );
    }
    if let Some(nan) = nan {
        d = d.related(nan.span, "computes the first NaN");
    }
    match writer {
        Some((thread, at)) => {
            let from = &kernel.sites[*at as usize];
            let who = thread.map_or("a group of warps".to_owned(), |t| format!("thread {t}"));
            d = d.related(from.span, format!("last written here by {who}, {}", line_text(from)));
        }
        None if block.is_none() => {
            d = d.help("check that the blocks add each part to the element exactly once");
        }
        None => d = d.note("no statement of the block wrote it"),
    }
    Box::new(d)
}
