//! Implements operations between registers, in which every thread works on its own values: the
//! layouts that their operands need ([`operand`]) and the best row ([`choose`]). Operands have one
//! thread-value layout; an operand whose mode has extent 1 stands for all of it, and reductions
//! project modes away (Hexcute, Fig. 19(c), (d)).

use super::digits::{Projection, project};
use super::tv;
use super::unfit::Unfit;
use super::views::{self};
use crate::access::matching::Mismatch;
use crate::access::ops;
use crate::access::ops::Known;
use crate::access::precision::Accuracy;
pub(crate) use crate::plan::pointwise::Choice;
use carbyne_atoms::bind;
use carbyne_atoms::{Atom, AtomOperand, AtomTable, OperandAccess};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{Operand, Program, Spec, SpecId, TensorId};
use carbyne_ir::scalar::Memory;
use num_integer::gcd;

/// Which modes of the output an operand has; none where its shape does not fit.
pub(super) fn kept(p: &Program, operand: TensorId, out: TensorId) -> Option<Vec<bool>> {
    let (own, all) = (ops::extents(p, operand)?, ops::extents(p, out)?);
    let size = |e: &[i64]| e.iter().fold(1i64, |a, b| a.saturating_mul(*b));
    if size(&own) == size(&all) {
        return Some(vec![true; all.len()]);
    }
    if own.is_empty() {
        return Some(vec![false; all.len()]);
    }
    (own.len() == all.len() && own.iter().zip(&all).all(|(o, a)| o == a || *o == 1))
        .then(|| own.iter().zip(&all).map(|(o, a)| o == a).collect())
}

/// What an operand's layout must be where the output's is this. Where `whole`, all operands have
/// all modes, and which digit lies in which mode does not matter.
///
/// # Errors
/// Where the layout does not come apart.
pub(super) fn operand(
    p: &Program,
    t: TensorId,
    out: TensorId,
    tv: &Layout,
    whole: bool,
) -> Result<Projection, Unfit> {
    let kept = kept(p, t, out).ok_or(Unfit::Shapes)?;
    let extents = ops::extents(p, out).unwrap_or_default();
    if whole {
        let size = extents.iter().fold(1i64, |a, b| a.saturating_mul(*b));
        return project(tv, &[size], &[true]);
    }
    project(tv, &extents, &kept)
}

/// Whether all operands have all elements of the output.
pub(super) fn whole(p: &Program, id: SpecId) -> bool {
    let spec = &p.specs[id];
    let Some(&out) = spec.outputs.first() else { return true };
    spec.input_tensors().all(|t| kept(p, t, out).is_some_and(|k| k.iter().all(|k| *k)))
}

/// What a Reduction's output is where its input is this.
///
/// # Errors
/// Where the layout does not come apart.
pub(super) fn reduced(p: &Program, id: SpecId, tv: &Layout) -> Result<Projection, Unfit> {
    let spec = &p.specs[id];
    let input = spec.input_tensors().next().ok_or(Unfit::NoInput)?;
    let extents = ops::extents(p, input).ok_or(Unfit::Sizes)?;
    let axes = spec.axes().ok_or(Unfit::NoAxis)?;
    let kept: Vec<bool> = (0..extents.len()).map(|i| !axes.contains(&i)).collect();
    project(tv, &extents, &kept)
}

/// The best row for an operation whose operands all lie in registers and are known, of those exact
/// enough the cheapest; or each row's reason. Of which ptxas makes a call is taken where `calls`,
/// or where it is pinned.
pub(super) fn choose(
    p: &Program,
    table: &AtomTable,
    id: SpecId,
    known: &Known,
    (accuracy, calls): (Accuracy, bool),
) -> Result<Choice, Vec<(&'static str, Mismatch)>> {
    let spec = &p.specs[id];
    let wrong = |found: String| {
        vec![("-", Mismatch::Order { operand: "D", want: "one thread-value layout".into(), found })]
    };
    let Some(&out) = spec.outputs.first() else { return Err(wrong("nothing".into())) };
    let mut parts = vec![];
    let mut layout = |t: TensorId| -> Option<Layout> {
        let whole = known.get(&p.tensors[t].buffer)?;
        let (tv, part) = match views::is_part(p, t) {
            true => views::part(p, t, whole).map(|(tv, part)| (tv, Some(part))).ok()?,
            false => (whole.clone(), None),
        };
        parts.push(part);
        Some(tv)
    };
    let Some(tv) = layout(out) else { return Err(wrong("an open one".into())) };
    let whole = whole(p, id);
    let mut layouts = vec![];
    let mut inputs = vec![];
    for t in spec.input_tensors() {
        inputs.push(operand(p, t, out, &tv, whole).map_err(|e| wrong(e.to_string()))?);
        layouts.push(layout(t).ok_or_else(|| wrong("an open one".into()))?);
    }
    let Ok(own) = operand(p, out, out, &tv, whole) else { return Err(wrong(tv.to_string())) };
    // The output was the first.
    parts.rotate_left(1);
    layouts.push(tv.clone());
    inputs.push(own);
    let tensors: Vec<TensorId> = spec.input_tensors().chain([out]).collect();
    let mut rejected = vec![];
    // Approximations that are too coarse last, then cycles, then spread.
    type Rank = ((bool, f64), f64, i64);
    let mut best: Option<(Rank, Choice)> = None;
    for atom in table.implementing(spec.kind) {
        if spec.atom.as_ref().is_some_and(|a| a != atom.name) {
            continue;
        }
        if atom.calls && !calls && spec.atom.is_none() {
            continue;
        }
        let fit = fits(p, spec, atom, &tensors, &inputs).and_then(|fit| {
            match parts.iter().flatten().all(|part| views::side_by_side(part, fit.0)) {
                true => Ok(fit),
                false => Err(Mismatch::Order {
                    operand: atom.operands[0].name,
                    want: format!("{} values side by side", fit.0),
                    found: "values of a part, which are not".to_owned(),
                }),
            }
        });
        match fit.and_then(|fit| bind::literals(spec, atom).map(|()| fit)) {
            Ok((n, loops, steps)) => {
                let total: i64 = loops.iter().product();
                let cost = total as f64 * atom.cost.issue_cycles;
                let rank = (accuracy.rank(atom), cost, -n);
                if best.as_ref().is_none_or(|(least, _)| rank < *least) {
                    let (layouts, parts) = (layouts.clone(), parts.clone());
                    let atom = atom.name;
                    best = Some((rank, Choice { atom, n, loops, steps, layouts, parts, cost }));
                }
            }
            Err(m) => rejected.push((atom.name, m)),
        }
    }
    best.map(|(_, c)| c).ok_or(rejected)
}

type Fit = (i64, Vec<i64>, Vec<(Vec<Option<i64>>, i64)>);

fn fits(
    p: &Program,
    spec: &Spec,
    atom: &Atom,
    tensors: &[TensorId],
    inputs: &[Projection],
) -> Result<Fit, Mismatch> {
    let reads = atom.operands.iter().filter(|o| o.access == OperandAccess::Read).count();
    let want = (reads, atom.operands.len() - reads);
    if atom.operands.len() < tensors.len() {
        return Err(Mismatch::Arity { want, found: (spec.inputs.len(), spec.outputs.len()) });
    }
    // A literal fills an operand of the row, and is no tensor.
    let number = |i: usize| matches!(spec.inputs.get(i), Some(Operand::Number(_)));
    let read = atom.operands.iter().filter(|o| o.access == OperandAccess::Read);
    let read = read.enumerate().filter(|(i, _)| !number(*i)).map(|(_, o)| o);
    let written = atom.operands.iter().filter(|o| o.access != OperandAccess::Read);
    let rows: Vec<_> = read.take(tensors.len() - 1).chain(written.take(1)).collect();
    let mut n = 1;
    for (row, t) in rows.iter().zip(tensors) {
        let per = bind::unit(p.scalar_of(*t), row)?;
        bind::memory(Some(Memory::Rf), row)?;
        // Registers must start where a register of that width starts.
        n = n.max(row.n_values() * per);
    }
    // After the types: which threads an atom of others needs helps nobody.
    if atom.group != 1 {
        return Err(Mismatch::Threads {
            want: format!("groups of {} threads", atom.group),
            found: "each thread on its own values".into(),
        });
    }
    let out = &inputs[inputs.len() - 1];
    let values: i64 = out.v.iter().map(|d| d.extent).product();
    if rows.iter().zip(tensors).any(|(row, t)| {
        row.n_values() * row.elem.scalars_per_unit(p.scalar_of(*t)).unwrap_or(1) != n
    }) || values % n != 0
    {
        return Err(Mismatch::Values {
            operand: rows[0].name,
            want: n,
            found: values,
            shared: false,
        });
    }
    // All operands have one layout here: a row that brings elements to other places needs two.
    let order = |row: &AtomOperand, t: &TensorId| {
        let per = row.elem.scalars_per_unit(p.scalar_of(*t))?;
        let v = tv::in_scalars(&row.tv, per).and_then(|l| l.mode(1)).ok()?;
        Some((0..n).map(|i| v.at(i)).collect::<Vec<_>>())
    };
    let first = order(rows[0], &tensors[0]);
    if let Some((row, _)) = rows.iter().zip(tensors).find(|(row, t)| order(row, t) != first) {
        return Err(Mismatch::Order {
            operand: row.name,
            want: format!("its elements in the order `{}`", row.tv),
            found: "those of the other operands".to_owned(),
        });
    }
    let (loops, steps) = joined(loops(out, inputs, n, rows[0].name)?);
    Ok((n, loops, steps))
}

/// The loops around an instruction: their iterations, and for each input its step in each loop.
type Loops = (Vec<i64>, Vec<(Vec<Option<i64>>, i64)>);

/// Loops over the digits of the values. The first digits are split so that an instruction takes `n`
/// values.
fn loops(
    out: &Projection,
    inputs: &[Projection],
    n: i64,
    operand: &'static str,
) -> Result<Loops, Mismatch> {
    let mut left = n;
    let mut loops = vec![];
    let mut steps: Vec<(Vec<Option<i64>>, i64)> = inputs.iter().map(|_| (vec![], n)).collect();
    for (i, d) in out.v.iter().enumerate() {
        let taken = gcd(left, d.extent);
        if left > 1 && taken != left.min(d.extent) {
            return Err(Mismatch::Values { operand, want: n, found: d.extent, shared: false });
        }
        if taken > 1 && inputs.iter().any(|input| input.registers[i].is_none()) {
            return Err(Mismatch::Order {
                operand,
                want: format!("{n} values side by side"),
                found: "one value for all of them".to_owned(),
            });
        }
        left /= taken;
        if d.extent > taken {
            loops.push(d.extent / taken);
            for (to, input) in steps.iter_mut().zip(inputs) {
                to.0.push(input.registers[i].map(|r| r * taken));
            }
        }
    }
    Ok((loops, steps))
}

/// Joins each loop with the one before if it continues where that ends.
fn joined((mut loops, mut steps): Loops) -> Loops {
    let mut i = 1;
    while i < loops.len() {
        let joins = steps.iter().all(|(s, _)| match (s[i - 1], s[i]) {
            (Some(inner), Some(outer)) => outer == inner * loops[i - 1],
            (None, None) => true,
            _ => false,
        });
        if joins {
            loops[i - 1] *= loops[i];
            loops.remove(i);
            for (s, _) in &mut steps {
                s.remove(i);
            }
        } else {
            i += 1;
        }
    }
    (loops, steps)
}
