//! Reductions of a tensor that is spread over a block: each thread over its own values, then lanes by
//! shuffles, then what is left through shared memory.

use super::digits::{Digit, Projection};
use super::tv::{join, mode};
use carbyne_atoms::{AtomOp, AtomTable};
use carbyne_ir::ast::{BinaryOp, ReduceOp, ShflOp};
use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::Scalar;

/// How a Reduction is done.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The function of two values.
    pub op: BinaryOp,
    /// The scalar type.
    pub scalar: Scalar,
    /// Values of one thread: those that stay and those that are reduced, as steps between registers.
    pub values: (Layout, Layout),
    /// Masks of the lanes that exchange, one exchange each.
    pub masks: Vec<i64>,
    /// What is left: the threads that exchange through shared memory.
    pub shared: Option<Through>,
    /// The thread-value layout of the input.
    pub input: Layout,
    /// That of the output.
    pub output: Layout,
}

/// An exchange through shared memory, a slot for each thread and value.
#[derive(Clone, Debug)]
pub struct Through {
    /// Threads of the block.
    pub threads: i64,
    /// The thread whose slot a thread reads first.
    pub first: Layout,
    /// From there to the others.
    pub others: Layout,
}

impl Choice {
    /// Values of one thread that stay.
    pub fn n(&self) -> i64 {
        self.values.0.size()
    }
}

/// Plans a Reduction whose input has this layout.
///
/// # Errors
/// A sentence where the layout gives no regular exchange.
pub(super) fn plan(
    table: &AtomTable,
    op: ReduceOp,
    scalar: Scalar,
    input: &Layout,
    projection: &Projection,
) -> Result<Choice, String> {
    let joined = |m: &[Layout]| join(m).map_err(|e| e.to_string());
    let (mut kept, mut removed) = (vec![], vec![]);
    for (d, r) in projection.v.iter().zip(&projection.registers) {
        let to = if r.is_some() { &mut kept } else { &mut removed };
        to.push(mode(d.extent, d.step));
    }
    let gone = gone(projection)?;
    let threads = input.mode(0).map_or(1, |t| t.size());
    let shuffles = threads % 32 == 0
        && table.rows().iter().any(|a| {
            a.op == AtomOp::Shfl(ShflOp::Bfly)
                && a.operands.iter().all(|o| o.elem.scalars_per_unit(scalar) == Some(1))
        });
    let in_warp = |d: &Digit| {
        shuffles && d.step * d.extent <= 32 && d.extent & (d.extent - 1) == 0 && 32 % d.step == 0
    };
    let mut masks = vec![];
    for d in gone.iter().filter(|d| in_warp(d)) {
        let mut at = d.step;
        while at < d.step * d.extent {
            masks.push(at);
            at *= 2;
        }
    }
    let rest: Vec<&Digit> = gone.iter().filter(|d| !in_warp(d)).collect();
    let shared = if rest.is_empty() {
        None
    } else {
        let mut first = vec![];
        for d in split(&projection.t) {
            let is_gone = rest.iter().any(|r| r.step == d.step);
            first.push(mode(d.extent, if is_gone { 0 } else { d.step }));
        }
        let others: Vec<Layout> = rest.iter().map(|d| mode(d.extent, d.step)).collect();
        Some(Through { threads, first: joined(&first)?, others: joined(&others)? })
    };
    Ok(Choice {
        op: op
            .combining()
            .ok_or_else(|| "no operation between registers combines bits".to_owned())?,
        scalar,
        values: (joined(&kept)?, joined(&removed)?),
        masks,
        shared,
        input: input.clone(),
        output: projection.tv.clone(),
    })
}

/// Digits of threads that a Reduction removes. Threads that hold the same elements stay.
fn gone(p: &Projection) -> Result<Vec<Digit>, String> {
    let strides: Vec<i64> =
        p.tv.mode(0).map_err(|e| e.to_string())?.leaves().iter().map(|l| l.1).collect();
    let real: Vec<Digit> = p.t.iter().filter(|d| d.extent > 1).copied().collect();
    if real.len() != strides.len() && !real.is_empty() {
        return Err("the threads do not come apart".to_owned());
    }
    let removed: Vec<Digit> = real
        .iter()
        .zip(strides)
        .filter(|(d, s)| d.along.is_some() && *s == 0)
        .map(|(d, _)| *d)
        .collect();
    Ok(split(&removed))
}

/// Digits split where warps begin.
fn split(digits: &[Digit]) -> Vec<Digit> {
    let mut out = vec![];
    for d in digits {
        let inner = if d.step < 32 && 32 % d.step == 0 { 32 / d.step } else { d.extent };
        if d.extent > inner && d.extent % inner == 0 {
            out.push(Digit { extent: inner, ..*d });
            out.push(Digit { extent: d.extent / inner, step: d.step * inner, ..*d });
        } else {
            out.push(*d);
        }
    }
    out
}
