//! Compares the body of a spec with what the spec means.
//!
//! The reference is computed when the body begins, from everything written so far by anybody in the block,
//! whether or not the reader may see it yet (races are found elsewhere). When the body ends every element
//! of the outputs is compared, copies under way being taken as arrived: they are there after their wait.
//! Of a replicated element of a distributed tensor every copy is compared.

use super::{Runner, value_text};
use crate::denote::{Computed, Meaning, tolerance};
use crate::num::{decode, encode, ulp};
use crate::plan::{
    Check, Checked, Kernel, Mask, Source, Squad, coordinates, coordinates_text, line_text,
};
use carbyne_atoms::ErrorBound;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::scalar::Scalar;

/// The wanted values of an output.
pub(crate) enum Want {
    /// Exactly these.
    Bits(Vec<u64>),
    /// These, up to the tolerance.
    Values(Computed),
}

/// One element that is right.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Near {
    /// The difference; nothing where the reference, rounded, is the element.
    pub error: f64,
    /// The largest that would be right.
    pub allowed: f64,
    /// The difference from the reference in binary64; nothing where they are not finite.
    pub distance: f64,
    /// The unit in the last place there.
    pub ulp: f64,
    /// The reference.
    pub reference: f64,
}

impl Near {
    /// The very bits.
    const EXACT: Near = Near { error: 0.0, allowed: 0.0, distance: 0.0, ulp: 1.0, reference: 0.0 };
}

/// One element that is wrong.
pub(crate) struct Wrong {
    /// The wanted value, as text.
    pub expected: String,
    /// What would have been allowed.
    pub allowed: f64,
}

impl Want {
    /// The first element, rounded as the spec says.
    pub(crate) fn rounded(&self, meaning: &Meaning, scalar: Scalar) -> u64 {
        match (self, meaning) {
            (Want::Bits(bits), _) => bits.first().copied().unwrap_or(0),
            (Want::Values(c), Meaning::MatMul { acc, .. }) => {
                let value = c.values.first().copied().unwrap_or(0.0);
                encode(scalar, decode(*acc, encode(*acc, value)))
            }
            (Want::Values(c), _) => encode(scalar, c.values.first().copied().unwrap_or(0.0)),
        }
    }

    /// Compares an element: how near it is, or what is wrong.
    ///
    /// # Errors
    /// The element is wrong.
    pub(crate) fn compare(
        &self,
        meaning: &Meaning,
        scalar: Scalar,
        small_ints: bool,
        stated: &[ErrorBound],
        e: usize,
        raw: Option<u64>,
    ) -> Result<Near, Wrong> {
        match self {
            Want::Bits(bits) => {
                let want = bits[e];
                if raw == Some(want) {
                    return Ok(Near::EXACT);
                }
                Err(Wrong { expected: value_text(scalar, want), allowed: 0.0 })
            }
            Want::Values(computed) => {
                let want = computed.values[e];
                let allowed =
                    tolerance(meaning, scalar, want, computed.magnitudes[e], small_ints, stated);
                if let Some(raw) = raw {
                    let got = decode(scalar, raw);
                    // The rounded reference is right by definition: it may be infinite or no number.
                    let same = raw == encode(scalar, want) || (got.is_nan() && want.is_nan());
                    let distance = (got - want).abs();
                    let error = if same { 0.0 } else { distance };
                    if same || error <= allowed {
                        let near = Near { error, allowed, ..Near::EXACT };
                        if !distance.is_finite() {
                            return Ok(near);
                        }
                        return Ok(Near {
                            distance,
                            ulp: ulp(scalar, want),
                            reference: want,
                            ..near
                        });
                    }
                }
                Err(Wrong { expected: format!("{want}"), allowed })
            }
        }
    }
}

impl Runner<'_> {
    /// Evaluates the reference of every active group; `partly`: of those that are active as a whole.
    pub(super) fn expect(
        &mut self,
        check: usize,
        squad: &Squad,
        active: &Mask,
        site: u32,
        partly: bool,
    ) -> Checked<()> {
        let of = &self.kernel.checks[check];
        let groups = match partly {
            false => self.whole_groups(squad, active, site)?,
            true if self.is_shared(check, squad) => {
                self.counts.skipped.insert(of.site);
                Vec::new()
            }
            true => {
                self.counts.skipped.insert(of.site);
                let whole = |g: &&Vec<u16>| g.iter().all(|t| active.has(usize::from(*t)));
                squad.groups.iter().filter(whole).map(|g| &g[..]).collect()
            }
        };
        for group in groups {
            match (self.reference(of, group)?, group.first()) {
                (Some(want), Some(first)) => {
                    self.expected.insert((self.rank, check, *first), want);
                }
                _ => drop(self.counts.skipped.insert(of.site)),
            }
        }
        Ok(())
    }

    /// Whether the groups of a squad compute one output, each a part of it.
    fn is_shared(&self, check: usize, squad: &Squad) -> bool {
        let output = self.kernel.checks[check].outputs[0];
        squad.groups.len() > 1 && self.kernel.views[output].offset.is_uniform()
    }

    /// Threads without which a body cannot be compared: of groups that are active in part; of all groups, where
    /// these compute one output.
    pub(super) fn to_compare(&self, check: usize, squad: &Squad, active: &Mask) -> Mask {
        match self.is_shared(check, squad) {
            true => squad.mask.without(active),
            false => super::schedule::missing(squad, active, 0),
        }
    }

    /// Whether a group with an active thread is to be compared.
    pub(super) fn is_expected(&self, check: usize, squad: &Squad, active: &Mask) -> bool {
        squad.groups.iter().any(|group| {
            group.iter().any(|t| active.has(usize::from(*t)))
                && self.expected.contains_key(&(self.rank, check, group[0]))
        })
    }

    fn reference(&self, check: &Check, group: &[u16]) -> Checked<Option<Want>> {
        let kernel = self.kernel;
        let output = check.outputs[0];
        let out = kernel.scalar(output);
        let n = kernel.views[output].size as usize;
        if self.common_base(output, group, check.site)?.is_none() {
            return Ok(None);
        }
        let (mut inputs, mut kept) = (Vec::with_capacity(check.inputs.len()), Vec::new());
        for input in &check.inputs {
            let view = match input {
                Source::View(v) => *v,
                Source::Number(v) => {
                    if check.meaning == Meaning::Init {
                        return Ok(Some(Want::Bits(vec![encode(out, *v); n])));
                    }
                    inputs.push(vec![*v]);
                    continue;
                }
            };
            let Some(raw) = self.entry_values(check, view, group)? else { return Ok(None) };
            if check.meaning.keeps_bits() {
                kept.push(raw);
                continue;
            }
            let scalar = kernel.scalar(view);
            inputs.push(raw.into_iter().map(|r| decode(scalar, r)).collect::<Vec<f64>>());
        }
        if let Some(bits) = check.meaning.bits(&kept) {
            return Ok(Some(Want::Bits(bits)));
        }
        let mut before = Vec::new();
        if check.meaning.reads_output() {
            let Some(raw) = self.entry_values(check, output, group)? else { return Ok(None) };
            before = raw.into_iter().map(|r| decode(out, r)).collect();
        }
        Ok(Some(Want::Values(check.meaning.compute(&inputs, &before, n))))
    }

    /// The values of an operand for a group; none where each thread has its own view.
    fn entry_values(
        &self,
        check: &Check,
        index: usize,
        group: &[u16],
    ) -> Checked<Option<Vec<u64>>> {
        let kernel = self.kernel;
        let view = &kernel.views[index];
        let Some(base) = self.common_base(index, group, check.site)? else { return Ok(None) };
        let mut values = Vec::with_capacity(view.size as usize);
        for e in 0..view.size as usize {
            let place = self.place(index, base, e, group, 0);
            match place.and_then(|(thread, at)| self.blocks[self.rank].peek(view, at, thread)) {
                Some(raw) => values.push(raw),
                None => {
                    let name = kernel.view_name(index);
                    let at = coordinates_text(&coordinates(&view.modes, e as i64));
                    let span = kernel.sites[check.site as usize].span;
                    return Err(Box::new(
                        Diagnostic::new(
                            Code::Uninitialized,
                            span,
                            format!("{name}{at} is undefined where the spec that reads it begins"),
                        )
                        .label(format!("block {}", self.env.block))
                        .help("write it first: Init for an accumulator, a Move for data"),
                    ));
                }
            }
        }
        Ok(Some(values))
    }

    /// The copies of an element: (thread, offset) number `copy`, if there are so many.
    #[inline]
    fn place(
        &self,
        index: usize,
        base: i64,
        e: usize,
        group: &[u16],
        copy: usize,
    ) -> Option<(usize, i64)> {
        let view = &self.kernel.views[index];
        match view.dist {
            Some(d) => {
                let owner = self.kernel.dists[d].owners(e).get(copy)?;
                Some((usize::from(owner.0), i64::from(owner.1)))
            }
            None if copy == 0 => {
                let thread = group.first().map_or(0, |t| usize::from(*t));
                Some((thread, base.saturating_add(view.element(e))))
            }
            None => None,
        }
    }

    /// Compares the outputs of a body that has ended.
    pub(super) fn compare(&mut self, check: usize, squad: &Squad, active: &Mask) -> Checked<()> {
        let (kernel, number) = (self.kernel, check);
        let check = &kernel.checks[number];
        let output = check.outputs[0];
        let view = &kernel.views[output];
        let mut compared = false;
        for group in &squad.groups {
            if !group.iter().any(|t| active.has(usize::from(*t))) {
                continue;
            }
            let Some(want) = self.expected.remove(&(self.rank, number, group[0])) else { continue };
            if !group.iter().all(|t| active.has(usize::from(*t))) {
                self.counts.skipped.insert(check.site);
                continue;
            }
            compared = true;
            let Some(base) = self.common_base(output, group, check.site)? else { continue };
            for e in 0..view.size as usize {
                for copy in 0.. {
                    let Some((thread, at)) = self.place(output, base, e, group, copy) else {
                        break;
                    };
                    let raw = self.blocks[self.rank].peek(view, at, thread);
                    let result = want.compare(
                        &check.meaning,
                        view.scalar,
                        self.mode.small_ints,
                        &check.stated,
                        e,
                        raw,
                    );
                    match result {
                        Ok(near) => self.counts.compared(number, &near),
                        Err(wrong) => {
                            let element = coordinates_text(&coordinates(&view.modes, e as i64));
                            let found = Found {
                                name: format!("{}{element}", kernel.view_name(output)),
                                value: raw.map(|r| value_text(view.scalar, r)),
                                block: self.env.block,
                                writer: self.blocks[self.rank].writer(view, at, thread),
                            };
                            return Err(wrong_element(kernel, check.site, &found, &wrong));
                        }
                    }
                }
            }
        }
        self.counts.specs += u64::from(compared);
        self.counts.numerics[number].executions += u64::from(compared);
        Ok(())
    }
}

/// A wrong element as it was found.
pub(crate) struct Found {
    /// `%C[3,5]`
    pub name: String,
    /// Its value; none while undefined.
    pub value: Option<String>,
    /// In which block.
    pub block: i64,
    /// Thread and statement of its last write.
    pub writer: Option<(Option<u16>, u32)>,
}

/// `S0501`
pub(crate) fn wrong_element(
    kernel: &Kernel<'_>,
    site: u32,
    found: &Found,
    wrong: &Wrong,
) -> Box<Diagnostic> {
    let Found { name, value, block, writer } = found;
    let span = kernel.sites[site as usize].span;
    let slack =
        if wrong.allowed > 0.0 { format!(" ± {:.1e}", wrong.allowed) } else { String::new() };
    let is = value.as_ref().map_or("undefined".to_owned(), |v| format!("`{v}`"));
    let mut d = Diagnostic::new(
        Code::WrongElement,
        span,
        format!("{name} is {is}, the spec means `{}`{slack}", wrong.expected),
    )
    .label(format!("block {block}: the body of this spec does not compute what the spec means"))
    .help(match writer {
        Some(_) => "correct the statement that wrote it last, or what that reads",
        None => "write every element: compare the tiles of the body with the output's shape",
    });
    match writer {
        Some((thread, at)) => {
            let from = &kernel.sites[*at as usize];
            let who = thread.map_or("a group of warps".to_owned(), |t| format!("thread {t}"));
            d = d.related(from.span, format!("last written here by {who}, {}", line_text(from)));
        }
        None => d = d.note("nothing in the block wrote it"),
    }
    Box::new(d)
}
