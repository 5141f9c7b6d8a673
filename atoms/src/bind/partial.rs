//! Values that there are not: which of an operand's values a leaf accesses where tiles reach over
//! the end of a mode.
//!
//! A leaf accesses all values of a thread at once, or the first so many of them where its atom
//! counts. So either all of them are inside or none is, which follows from divisors of extents and
//! coordinates, or they end where one mode does. A copy whose values may end between each other is
//! made of each of them alone where they do not all exist.

use super::mismatch::{Mismatch, Why};
use crate::atom::{Atom, OperandAccess};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::expr::{Dim, ExprArena};
use carbyne_ir::leaf::Fact;
use carbyne_ir::program::{Bound, Operand, Program, Spec, TensorId};

/// Vectors have no more elements: larger divisors say nothing about them.
const MAX_DIVISOR: i64 = 1024;

/// Which values of an operand there are.
#[derive(Clone, Debug, Default, PartialEq)]
struct Inside {
    /// All of them, where each of these numbers is below the other; else none.
    whole: Vec<(Dim, Dim)>,
    /// Of those each whose coordinate is below an extent.
    apart: Vec<Apart>,
}

/// The first is below the second.
type Pair = (Dim, Dim);

/// Values of which some may be inside and others not.
#[derive(Clone, Debug, PartialEq)]
struct Apart {
    /// Where the first so many are inside, how many: none where this is not positive, all where it
    /// is more than there are.
    leading: Option<Dim>,
    /// Coordinates, counted from the bound's offset.
    at: Vec<i64>,
    offset: Dim,
    extent: Dim,
}

impl Apart {
    /// Of a value its coordinate and what it must be below.
    fn pair(&self, cx: &ExprArena, v: usize) -> Option<(Dim, Dim)> {
        let at = self.at.get(v).copied()?;
        Some((cx.add(self.offset, Dim::Const(at)).ok()?, self.extent))
    }

    /// The same of the value that is outside if any is.
    fn last(&self, cx: &ExprArena) -> Option<(Dim, Dim)> {
        let (last, _) = self.at.iter().enumerate().max_by_key(|(_, at)| **at)?;
        self.pair(cx, last)
    }
}

/// Which of the first `n` values of a tensor there are; none where it is not known how far they are
/// from each other.
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

/// How far along a bounded mode the first `n` values are from the first one.
fn coordinates(cx: &ExprArena, bound: &Bound, n: i64) -> Option<Vec<i64>> {
    let layout = bound.concat();
    let at = |i| layout.at_in(cx, Dim::Const(i)).ok()?.as_const();
    (0..n).map(at).collect()
}

/// Whether values up to `last` from the first one are inside where the first one is: no multiple of
/// a divisor of the extent lies between them. The first one is at the bound's offset, and may be
/// further by any number of these steps (how many places there are, how far they are apart).
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

/// Which values of the tensors of a leaf there are: of each tensor the leaf names, what its
/// accesses depend on.
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

/// What must hold for all that is read around the values of an operand to lie within its buffer;
/// none where nothing is read around them.
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

/// When a leaf accesses what.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accesses {
    /// The leaf is executed where these hold: of each pair the first is below the second.
    pub executed: Vec<(Dim, Dim)>,
    /// The source is there where these hold, too; the output becomes zero where not.
    pub source: Vec<(Dim, Dim)>,
    /// Of an atom that counts the elements it reads: no more than these.
    pub leading: Vec<Dim>,
    /// Of a copy whose elements may end between each other.
    pub parts: Option<Parts>,
}

/// A copy that is made at once where all elements are there, and of each element alone where not.
/// Of each pair the first is below the second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parts {
    /// What holds where all are.
    pub whole: Vec<(Dim, Dim)>,
    /// Of each element what holds where it is to be written.
    pub executed: Vec<Vec<(Dim, Dim)>>,
    /// Of each element what holds where its source is there; it becomes zero where not.
    pub source: Vec<Vec<(Dim, Dim)>>,
}

/// When a leaf by an atom accesses its operands.
///
/// # Errors
/// [`Mismatch::Partial`] where not all values of an operand are inside or outside together.
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
        // What counts reads the first so many by itself.
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
    // The output becomes zero: it is a copy, to registers.
    let to_registers = spec.outputs.first().is_some_and(|t| p.buffer_of(*t).is_per_thread());
    let from = spec.input_tensors().find(|t| !p.tensors[*t].bounds.is_empty());
    match (spec.kind, to_registers, from) {
        (SpecKind::Move, true, _) | (.., None) => Ok(all),
        (SpecKind::Move, _, Some(t)) => refuse(t, Why::Registers),
        (_, _, Some(t)) => refuse(t, Why::Copy),
    }
}

/// Whether elements of a leaf may be copied each alone: of whole bytes, and all of them where the
/// text says no number.
pub fn may_split(p: &Program, spec: &Spec, atom: &Atom) -> bool {
    let of_bytes = |t: &TensorId| p.scalar_of(*t).bits() % 8 == 0;
    atom.splits() && spec.valid.is_none() && spec.outputs.iter().all(of_bytes)
}

/// What must hold for all values to be inside, and for each.
fn each(cx: &ExprArena, apart: &[Apart], n: i64) -> Option<(Vec<Pair>, Vec<Vec<Pair>>)> {
    let whole = apart.iter().map(|a| a.last(cx)).collect::<Option<Vec<_>>>()?;
    let of = |v| apart.iter().map(|a| a.pair(cx, v)).collect::<Option<Vec<_>>>();
    let each = (0..usize::try_from(n).ok()?).map(of).collect::<Option<_>>()?;
    Some((whole, each))
}

/// What would keep `n` values together.
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
