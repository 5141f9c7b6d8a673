//! Derives which values of an operand a leaf accesses if its tile is partial, that is, reaches over
//! the end of a tensor's mode. Elements beyond the end do not exist and must not be accessed. A
//! value that is not read becomes 0.
//!
//! A leaf accesses all values of a thread at once, or the first n of them if its atom counts, that
//! is, takes the number n (`zfill`). So three cases are possible. Either all values are inside or
//! all are outside; this follows from divisors of extents and coordinates. Or the atom counts, and
//! the values end where one mode ends. Or the leaf is a copy, which is split: it copies all values
//! at once if all are inside, and one by one otherwise.

use super::mismatch::{Mismatch, Why};
use crate::atom::{Atom, OperandAccess};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::expr::{Dim, ExprArena};
use carbyne_ir::leaf::Fact;
use carbyne_ir::program::{Bound, Operand, Program, Spec, TensorId};

/// The largest number of elements of a vector. Larger divisors say nothing about vectors.
const MAX_DIVISOR: i64 = 1024;

/// The conditions under which values of an operand are inside.
#[derive(Clone, Debug, Default, PartialEq)]
struct Inside {
    /// All values are inside if each first number is below its second number. Otherwise all are
    /// outside.
    whole: Vec<(Dim, Dim)>,
    /// In addition, the coordinate of each value must be below the extent of each of these bounds.
    apart: Vec<Apart>,
}

/// A condition: the first number is below the second.
type Pair = (Dim, Dim);

/// Values of which some may be inside and others outside, along one bounded mode.
#[derive(Clone, Debug, PartialEq)]
struct Apart {
    /// If the values inside are always the first ones: their number. None is inside if it is 0 or
    /// less, all are if it exceeds their number.
    leading: Option<Dim>,
    /// Coordinates, counted from the bound's offset.
    at: Vec<i64>,
    offset: Dim,
    extent: Dim,
}

impl Apart {
    /// The condition that value `v` is inside.
    fn pair(&self, cx: &ExprArena, v: usize) -> Option<(Dim, Dim)> {
        let at = self.at.get(v).copied()?;
        Some((cx.add(self.offset, Dim::Const(at)).ok()?, self.extent))
    }

    /// The condition that the last value is inside, and with it all others.
    fn last(&self, cx: &ExprArena) -> Option<(Dim, Dim)> {
        let (last, _) = self.at.iter().enumerate().max_by_key(|(_, at)| **at)?;
        self.pair(cx, last)
    }
}

/// The conditions under which the first `n` values of a tensor are inside. `None` if their
/// distances are unknown.
fn inside_of(p: &Program, t: TensorId, n: i64) -> Option<Inside> {
    let cx = &p.arena;
    let mut all = Inside::default();
    for bound in &p.tensors[t].bounds {
        let (offset, extent) = (bound.offset, bound.extent);
        let at = coordinates(cx, bound, n)?;
        let last = at.iter().copied().max().unwrap_or(0);
        if at.iter().all(|c| *c == 0)
            || at.iter().all(|c| *c >= 0) && keeps_together(cx, bound, last, &[])
        {
            all.whole.push((offset, extent));
            continue;
        }
        let leading = cx.sub(extent, offset).ok().filter(|_| at.iter().copied().eq(0..n));
        all.apart.push(Apart { leading, at, offset, extent });
    }
    all.whole.dedup();
    Some(all)
}

/// The distances along a bounded mode from the first value to the first `n` values.
fn coordinates(cx: &ExprArena, bound: &Bound, n: i64) -> Option<Vec<i64>> {
    let layout = bound.concat();
    let at = |i| layout.at_in(cx, Dim::Const(i)).ok()?.as_const();
    (0..n).map(at).collect()
}

/// Whether all values up to distance `last` are inside whenever the first one is. This holds if no
/// multiple of a divisor of the extent lies between them. The first value is at the bound's offset
/// plus any multiples of `steps`: pairs of a number of positions and their distance.
pub fn keeps_together(cx: &ExprArena, bound: &Bound, last: i64, steps: &[(i64, i64)]) -> bool {
    let divides = |g: &i64| cx.divisor(bound.extent) % g == 0;
    let powers = (0..).map(|k| 1i64 << k).take_while(|g| *g <= MAX_DIVISOR);
    powers.filter(|g| *g > last).take_while(divides).any(|g| {
        let most = || -> Option<i64> {
            let first = cx.rem(bound.offset, Dim::Const(g)).ok()?;
            let mut most = cx.range(first).1?.checked_add(last)?;
            for (extent, step) in steps.iter().filter(|(_, step)| step % g != 0) {
                most = most.checked_add(step.checked_abs()?.checked_mul(extent - 1)?)?;
            }
            Some(most)
        };
        most().is_some_and(|most| most < g)
    })
}

/// Checks that an atom can access the partial tiles of a leaf.
///
/// # Errors
/// [`Mismatch::Partial`]
pub(super) fn check(p: &Program, spec: &Spec, atom: &Atom) -> Result<(), Mismatch> {
    accesses(p, spec, atom).map(drop)
}

fn reads_or_writes_partly(p: &Program, spec: &Spec) -> bool {
    let mut tensors = spec.input_tensors().chain(spec.outputs.iter().copied());
    tensors.any(|t| !p.tensors[t].bounds.is_empty())
}

/// The condition that the aligned vectors around an operand ([`AtomOperand::around`]) lie within
/// its buffer. `None` if the atom has no such operand.
fn around(p: &Program, spec: &Spec, atom: &Atom) -> Option<Result<Pair, Mismatch>> {
    let read = atom.operands.iter().filter(|o| o.access == OperandAccess::Read);
    let (operand, t) = read.zip(spec.input_tensors()).find(|(o, _)| o.around > 0)?;
    let cx = &p.arena;
    let (tensor, buffer) = (&p.tensors[t], p.buffer_of(t));
    let ends = || {
        let n = tensor.concat().cosize_in(cx).ok()?;
        let reach = Dim::Const(operand.reach(buffer.scalar.bits()) - 1);
        let last = cx.add(cx.add(tensor.offset, n).ok()?, reach).ok()?;
        Some((last, p.tensors[buffer.tensor].concat().cosize_in(cx).ok()?))
    };
    let refused =
        || Mismatch::Partial { tensor: p.tensor_name(t), why: Why::Cut { n: 0, fact: None } };
    Some(match may_split(p, spec, atom) {
        true => ends().ok_or_else(refused),
        false => Err(refused()),
    })
}

/// The conditions under which a leaf accesses its operands. In each pair the first number is below
/// the second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accesses {
    /// The leaf is executed if these hold.
    pub executed: Vec<(Dim, Dim)>,
    /// The source is read if these hold, too. Otherwise the output is set to zero.
    pub source: Vec<(Dim, Dim)>,
    /// For an atom that counts: upper limits on the number of elements that it reads.
    pub leading: Vec<Dim>,
    /// For a copy whose elements may be partly inside.
    pub parts: Option<Parts>,
}

/// A copy that is made at once if all elements are inside, and element by element otherwise. In
/// each pair the first number is below the second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parts {
    /// The conditions that all elements are inside.
    pub whole: Vec<(Dim, Dim)>,
    /// For each element: the conditions under which it is written.
    pub executed: Vec<Vec<(Dim, Dim)>>,
    /// For each element: the conditions under which its source is read. Otherwise it is set to
    /// zero.
    pub source: Vec<Vec<(Dim, Dim)>>,
}

/// The conditions under which a leaf with this atom accesses its operands.
///
/// # Errors
/// [`Mismatch::Partial`] if some values of an access may be inside and others outside, and the atom
/// can neither count nor split.
pub fn accesses(p: &Program, spec: &Spec, atom: &Atom) -> Result<Accesses, Mismatch> {
    let mut all = Accesses::default();
    let around = around(p, spec, atom).transpose()?;
    if !reads_or_writes_partly(p, spec) {
        all.parts = around.map(|pair| Parts { whole: vec![pair], ..Parts::default() });
        return Ok(all);
    }
    let cx = &p.arena;
    let n_of = |t: TensorId| p.tensors[t].concat().size_in(cx).ok().and_then(Dim::as_const);
    let partial = |t: TensorId, why: Why| Mismatch::Partial { tensor: p.tensor_name(t), why };
    let refuse = |t: TensorId, why: Why| Err(partial(t, why));
    let counts = atom.counts();
    let inside = |t: TensorId| {
        let found = n_of(t).and_then(|n| Some((n, inside_of(p, t, n)?)));
        found.ok_or_else(|| partial(t, Why::Cut { n: 0, fact: None }))
    };
    let split = |t: TensorId, n: i64, apart: &[Apart]| {
        let own = may_split(p, spec, atom).then(|| each(cx, apart, n)).flatten();
        own.ok_or_else(|| partial(t, Why::Cut { n, fact: fact(p, t, n) }))
    };
    let mut parts = Parts::default();
    for &t in &spec.outputs {
        let (n, Inside { whole, apart }) = inside(t)?;
        all.executed.extend(whole);
        if !apart.is_empty() {
            let (whole, each) = split(t, n, &apart)?;
            parts.whole.extend(whole);
            parts.executed = each;
        }
    }
    for input in &spec.inputs {
        let Operand::Tensor(t) = *input else { continue };
        let (n, Inside { whole, apart }) = inside(t)?;
        all.source.extend(whole);
        // An atom that counts reads the first values by itself.
        let counted = |apart: &Apart| apart.leading.filter(|_| counts);
        all.leading.extend(apart.iter().filter_map(counted));
        if apart.iter().any(|apart| counted(apart).is_none()) {
            let (whole, each) = split(t, n, &apart)?;
            let left = apart.iter().zip(whole).filter(|(apart, _)| counted(apart).is_none());
            parts.whole.extend(left.map(|(_, pair)| pair));
            parts.source = each;
        }
    }
    parts.whole.extend(around);
    if parts != Parts::default() {
        all.parts = Some(parts);
    }
    all.source.retain(|pair| !all.executed.contains(pair));
    for list in [&mut all.executed, &mut all.source] {
        let mut seen = vec![];
        list.retain(|pair| {
            let new = !seen.contains(pair);
            seen.push(*pair);
            new
        });
    }
    let has_zeros =
        !all.source.is_empty() || all.parts.as_ref().is_some_and(|parts| !parts.source.is_empty());
    if !has_zeros || counts {
        return Ok(all);
    }
    // Setting the output to zero needs a copy to registers.
    let to_registers = spec.outputs.first().is_some_and(|t| p.buffer_of(*t).is_per_thread());
    let from = spec.input_tensors().find(|t| !p.tensors[*t].bounds.is_empty());
    match (spec.kind, to_registers, from) {
        (SpecKind::Move, true, _) | (.., None) => Ok(all),
        (SpecKind::Move, _, Some(t)) => refuse(t, Why::Registers),
        (_, _, Some(t)) => refuse(t, Why::Copy),
    }
}

/// Whether the elements of a leaf may be copied one by one: they must be whole bytes, and the spec
/// must have no `valid=`.
pub fn may_split(p: &Program, spec: &Spec, atom: &Atom) -> bool {
    let of_bytes = |t: &TensorId| p.scalar_of(*t).bits() % 8 == 0;
    atom.splits() && spec.valid.is_none() && spec.outputs.iter().all(of_bytes)
}

/// The conditions that all values are inside, and those for each value.
fn each(cx: &ExprArena, apart: &[Apart], n: i64) -> Option<(Vec<Pair>, Vec<Vec<Pair>>)> {
    let whole = apart.iter().map(|a| a.last(cx)).collect::<Option<Vec<_>>>()?;
    let of = |v| apart.iter().map(|a| a.pair(cx, v)).collect::<Option<Vec<_>>>();
    let each = (0..usize::try_from(n).ok()?).map(of).collect::<Option<_>>()?;
    Some((whole, each))
}

/// A fact under which `n` values are inside or outside together.
fn fact(p: &Program, t: TensorId, n: i64) -> Option<Fact> {
    let cx = &p.arena;
    let g = i64::try_from(u64::try_from(n).ok()?.checked_next_power_of_two()?).ok()?;
    let cut = p.tensors[t].bounds.iter().find(|bound| {
        let at = coordinates(cx, bound, n);
        let last = at.and_then(|at| at.into_iter().max()).unwrap_or(0);
        last > 0 && !keeps_together(cx, bound, last, &[])
    })?;
    let aligned = cx.rem(cut.offset, Dim::Const(g)).ok()? == Dim::Const(0);
    let symbolic = cut.extent.as_const().is_none();
    let (divisor, value) = (g.to_string(), cx.display(cut.extent));
    (aligned && symbolic).then_some(Fact::Divides { divisor, value })
}
