//! Plans the Reduction of a tensor that is spread over a block ([`plan`]): each thread reduces its
//! own values, then lanes exchange by shuffles, then the rest goes through shared memory.

use super::digits::{Digit, Projection};
use super::tv::{join, mode};
use super::unfit::Unfit;
use crate::cost::least::lanes_of;
pub(crate) use crate::plan::reduce::{Choice, Through};
use carbyne_atoms::{Atom, AtomOp, AtomTable};
use carbyne_ir::ast::{ReduceOp, ShflOp, SpecKind};
use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::Scalar;

impl Through {
    /// Where all lanes of a warp hold its value, and warps are left: lanes read those of different
    /// warps, and exchange what they have read, if that is faster than if each reads all.
    fn by_lanes(&mut self) -> Result<(), Unfit> {
        let warps = self.threads / 32;
        if self.then.is_some() || self.others.coalesce() != mode(warps, 32) {
            return Ok(());
        }
        let lanes = lanes_of(warps);
        if lanes > 1 {
            // A lane reads its own slot, so that all of them are in different banks.
            let lane = join(&[mode(lanes, 33), mode(32 / lanes, lanes)])?;
            self.first = join(&[lane, mode(warps, 0)])?;
            self.others = mode(warps / lanes, 32 * lanes);
            self.masks = (0..lanes.ilog2()).map(|i| 1 << i).collect();
        }
        Ok(())
    }

    /// Of a thread the one that is first of those that exchange by lanes, and from there to the
    /// others.
    pub(super) fn lanes(&self) -> Result<Option<[Layout; 2]>, Unfit> {
        let lanes = 1i64 << self.masks.len();
        if lanes == 1 {
            return Ok(None);
        }
        let first = join(&[mode(lanes, 0), mode(self.threads / lanes, lanes)])?;
        Ok(Some([first, mode(lanes, 1)]))
    }

    /// The exchanges one after the other.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Through> {
        std::iter::successors(Some(self), |t| t.then.as_deref())
    }
}

impl Choice {
    /// Values of one thread that stay.
    pub(crate) fn n(&self) -> i64 {
        self.values.0.size()
    }
}

/// Plans a Reduction whose input has this layout.
///
/// # Errors
/// Where the layout gives no regular exchange.
pub(super) fn plan(
    table: &AtomTable,
    op: ReduceOp,
    scalar: Scalar,
    input: &Layout,
    projection: &Projection,
) -> Result<Choice, Unfit> {
    let (mut kept, mut removed) = (vec![], vec![]);
    for (d, r) in projection.v.iter().zip(&projection.registers) {
        let to = if r.is_some() { &mut kept } else { &mut removed };
        to.push(mode(d.extent, d.step));
    }
    let gone = gone(projection)?;
    let threads = input.mode(0).map_or(1, |t| t.size());
    let shuffles = threads % 32 == 0
        && table.atoms().iter().any(|a| {
            a.op == AtomOp::Shfl(ShflOp::Bfly) && a.operands.iter().all(|o| o.is_of(scalar))
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
    let rest: Vec<Digit> = gone.into_iter().filter(|d| !in_warp(d)).collect();
    let mut shared = None;
    for group in twice(rest).iter().rev().filter(|g| !g.is_empty()) {
        let first: Vec<Layout> = cut(split(&projection.t), group)
            .iter()
            .map(|d| mode(d.extent, if group.contains(d) { 0 } else { d.step }))
            .collect();
        let others: Vec<Layout> = group.iter().map(|d| mode(d.extent, d.step)).collect();
        let (first, others) = (join(&first)?, join(&others)?);
        let then = shared.map(Box::new);
        shared = Some(Through { threads, first, others, masks: vec![], then });
    }
    if let Some(of) = shared.as_mut().filter(|_| masks.iter().sum::<i64>() == 31) {
        of.by_lanes()?;
    }
    Ok(Choice {
        op: combining(table, op, scalar).ok_or(Unfit::Bits)?,
        scalar,
        values: (join(&kept)?, join(&removed)?),
        masks,
        shared,
        input: input.clone(),
        output: projection.tv.clone(),
    })
}

/// What makes one of two values of one thread: a function of two operands, or a Reduction of a
/// pair.
fn combining(table: &AtomTable, op: ReduceOp, scalar: Scalar) -> Option<SpecKind> {
    let pair = SpecKind::Reduction(op);
    let mut atoms = table.implementing(pair);
    let has = |a: &Atom| a.group == 1 && a.operands.iter().all(|o| o.is_of(scalar));
    op.combining().map(SpecKind::Binary).or_else(|| atoms.any(has).then_some(pair))
}

/// Digits of threads that a Reduction removes. Threads that hold the same elements stay.
fn gone(p: &Projection) -> Result<Vec<Digit>, Unfit> {
    let strides: Vec<i64> = p.tv.mode(0)?.leaves().iter().map(|l| l.1).collect();
    let real: Vec<Digit> = p.t.iter().filter(|d| d.extent > 1).copied().collect();
    if real.len() != strides.len() && !real.is_empty() {
        return Err(Unfit::Threads);
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

/// Threads whose values one exchange combines at most, where two could.
const AT_ONCE: i64 = 32;

/// The digits of one exchange, or of two: of n threads each reads n values, or about 2√n of two
/// exchanges.
fn twice(digits: Vec<Digit>) -> [Vec<Digit>; 2] {
    let all: i64 = digits.iter().map(|d| d.extent).product();
    if all <= AT_ONCE {
        return [digits, vec![]];
    }
    let (mut inner, mut outer, mut n) = (vec![], vec![], 1);
    for d in digits {
        // As much of the digit as brings the first exchange to the root.
        let more = (1..=d.extent).filter(|f| d.extent % f == 0 && (n * f) * (n * f) <= all);
        let f = more.max().unwrap_or(1);
        n *= f;
        if f > 1 {
            inner.push(Digit { extent: f, ..d });
        }
        if d.extent > f {
            outer.push(Digit { extent: d.extent / f, step: d.step * f, ..d });
        }
    }
    [inner, outer]
}

/// The digits, those that begin or end where one of `at` does cut there.
fn cut(digits: Vec<Digit>, at: &[Digit]) -> Vec<Digit> {
    let mut out = vec![];
    for d in digits {
        let mut rest = d;
        let mut ends: Vec<i64> = at.iter().flat_map(|a| [a.step, a.step * a.extent]).collect();
        ends.sort_unstable();
        for end in ends {
            if rest.step < end && end < rest.step * rest.extent {
                let n = end / rest.step;
                out.push(Digit { extent: n, ..rest });
                rest = Digit { extent: rest.extent / n, step: end, ..rest };
            }
        }
        out.push(rest);
    }
    out
}
