//! Plans how the lanes of a warp exchange values so that a register tensor changes from one
//! thread-value layout to another ([`plan`]). [`crate::emit`] writes the exchanges.
//!
//! Both layouts are taken apart into bits of the thread and of the register, each of which steps
//! through the tensor by some stride. A butterfly swaps a bit of the lane with a bit of the
//! register: a lane keeps the half of its registers in which the two agree and gets the other half
//! from the lane across. Bits of registers alone are renamed. Such steps reach any order of bits,
//! as long as those of the warps stay.

use super::tv::{join, mode};
use super::work::rearranging;
pub(crate) use crate::plan::exchange::{Choice, Step};
use carbyne_atoms::{Atom, AtomOp, AtomTable, limits};
use carbyne_ir::ast::ShflOp;
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{Program, TensorId};
use carbyne_ir::scalar::{Memory, Scalar};

/// More exchanges than these never pay.
const MOST: usize = 12;
/// Bits of a lane.
const LANES: usize = 5;

/// Some values, one stride apart in the tensor and one register step apart in a thread.
#[derive(Copy, Clone, Debug)]
struct Digit {
    extent: i64,
    stride: i64,
    register: i64,
}

/// A thread-value layout in bits.
struct Bits {
    lanes: [i64; LANES],
    warps: Layout,
    values: Vec<Digit>,
}

/// The exchanges that bring `f` to `g`; none where there are none, or too many.
pub(super) fn plan(table: &AtomTable, scalar: Scalar, f: &Layout, g: &Layout) -> Option<Choice> {
    let (threads, values) = (f.mode(0).ok()?.size(), f.mode(1).ok()?.size());
    if (g.mode(0).ok()?.size(), g.mode(1).ok()?.size()) != (threads, values) {
        return None;
    }
    let unit = (32 / scalar.bits()).max(1);
    let (exchange, select) = rows(table, scalar, unit)?;
    let (mut from, to) = (Bits::of(f)?, Bits::of(g)?);
    if from.warps.coalesce() != to.warps.coalesce() {
        return None;
    }
    // What one instruction moves stays together.
    let packed = unit.trailing_zeros() as usize;
    if from.values.len() < packed || to.values.len() < packed {
        return None;
    }
    let (inner, mut held) = (from.values[..packed].to_vec(), from.values.split_off(packed));
    let wanted = &to.values[packed..];
    let same = |(a, b): (&Digit, &Digit)| a.extent == 2 && b.extent == 2 && a.stride == b.stride;
    if !inner.iter().zip(&to.values).all(same) {
        return None;
    }
    let swaps = swaps(&mut from.lanes, &mut held, &to.lanes)?;
    let (map, steps) = renamed(&held, wanted, &swaps, unit)?;
    let warps = ((threads + 31) / 32) as f64;
    let pairs = (values / unit / 2) as f64 * steps.len() as f64 * warps;
    let count = steps.len() as f64;
    Some(Choice {
        scalar,
        unit,
        values,
        map,
        input: f.clone(),
        output: g.clone(),
        // Of a pair, what is sent is selected, and of both registers what stays.
        issue: pairs * (exchange.cost.issue_cycles + 3.0 * select.cost.issue_cycles),
        completion: count * (exchange.cost.completion_cycles + 2.0 * select.cost.completion_cycles),
        instructions: pairs * 4.0,
        steps,
    })
}

/// The exchanges, if they are cheaper than shared memory.
pub(super) fn cheaper(
    p: &Program,
    table: &AtomTable,
    t: TensorId,
    f: &Layout,
    g: &Layout,
) -> Option<Choice> {
    plan(table, p.scalar_of(t), f, g).filter(|c| c.cycles(table) < rearranging(p, t))
}

/// Cycles of the cheaper way.
pub(super) fn cycles(p: &Program, table: &AtomTable, t: TensorId, f: &Layout, g: &Layout) -> f64 {
    match cheaper(p, table, t, f, g) {
        Some(c) => c.cycles(table),
        None => rearranging(p, t),
    }
}

impl Choice {
    /// Cycles until all is exchanged, in the measure of [`rearranging`].
    pub(super) fn cycles(&self, table: &AtomTable) -> f64 {
        self.issue / limits(table.arch).timing.schedulers + self.completion
    }
}

/// The rows that exchange and that copy `unit` values of a type.
fn rows(table: &AtomTable, scalar: Scalar, unit: i64) -> Option<(&Atom, &Atom)> {
    let takes = |a: &&Atom, op: AtomOp| {
        a.op == op
            && a.operands.iter().all(|o| {
                let per = o.elem.scalars_per_unit(scalar);
                o.allows(Memory::Rf) && per.is_some_and(|per| per * o.n_values() == unit)
            })
    };
    let find = |op: AtomOp| table.atoms().iter().find(|a| takes(a, op));
    Some((find(AtomOp::Shfl(ShflOp::Bfly))?, find(AtomOp::Move)?))
}

impl Bits {
    fn of(tv: &Layout) -> Option<Self> {
        let (mut lanes, mut warps) = (vec![], vec![]);
        for &(extent, stride) in tv.mode(0).ok()?.leaves() {
            let (mut n, mut s) = (extent, stride);
            while n > 1 && lanes.len() < LANES {
                if n % 2 != 0 {
                    return None;
                }
                lanes.push(s);
                (n, s) = (n / 2, s.checked_mul(2)?);
            }
            warps.push(mode(n, s));
        }
        let mut values = vec![];
        let mut register = 1;
        for &(extent, stride) in tv.mode(1).ok()?.leaves() {
            let (mut n, mut s) = (extent, stride);
            while n > 1 {
                let extent = if n % 2 == 0 { 2 } else { n };
                values.push(Digit { extent, stride: s, register });
                (n, s, register) = (n / extent, s.checked_mul(extent)?, register * extent);
            }
        }
        Some(Bits { lanes: lanes.try_into().ok()?, warps: join(&warps).ok()?, values })
    }
}

/// Swaps of a bit of the lane with a digit of the values, by their places, after which the lanes
/// are as wanted.
fn swaps(
    lanes: &mut [i64; LANES],
    values: &mut [Digit],
    wanted: &[i64; LANES],
) -> Option<Vec<(usize, usize)>> {
    let mut out = vec![];
    while lanes != wanted {
        let wrong = |i: &usize| lanes[*i] != wanted[*i];
        let held = |s: i64| values.iter().position(|d| d.extent == 2 && d.stride == s);
        let direct = (0..LANES).filter(wrong).find_map(|i| Some((i, held(wanted[i])?)));
        let (lane, value) = match direct {
            Some(found) => found,
            None => {
                // Lanes among themselves: one of them waits in a register.
                let i = (0..LANES).find(wrong)?;
                let k = (0..LANES).filter(wrong).find(|k| lanes[*k] == wanted[i])?;
                (k, values.iter().position(|d| d.extent == 2)?)
            }
        };
        std::mem::swap(&mut lanes[lane], &mut values[value].stride);
        out.push((lane, value));
        if out.len() > MOST {
            return None;
        }
    }
    Some(out)
}

/// The order of registers in which the digits are those that are wanted, and the swaps in it.
fn renamed(
    held: &[Digit],
    wanted: &[Digit],
    swaps: &[(usize, usize)],
    unit: i64,
) -> Option<(Layout, Vec<Step>)> {
    if held.len() != wanted.len() {
        return None;
    }
    let mut places: Vec<Option<i64>> = vec![None; held.len()];
    let mut modes = vec![];
    for w in wanted {
        let fits = |(i, d): (usize, &Digit)| {
            places[i].is_none() && (d.extent, d.stride) == (w.extent, w.stride)
        };
        let i = held.iter().enumerate().position(fits)?;
        places[i] = Some(w.register);
        modes.push(mode(w.extent, held[i].register));
    }
    let rest = join(&modes).ok()?;
    let map = Layout::concat(&[mode(unit, 1), rest]).ok()?;
    let step =
        |&(lane, value): &(usize, usize)| Some(Step { mask: 1 << lane, register: places[value]? });
    Some((map, swaps.iter().map(step).collect::<Option<_>>()?))
}
