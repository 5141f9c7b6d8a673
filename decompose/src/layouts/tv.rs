//! Computes thread-value layouts from the relations of Hexcute, Fig. 19, with the layout algebra.
//!
//! Letters as in the paper: p, q are a row's thread-value layouts, f, g those of tensors; a layout
//! maps (t,v) to the column-major index of an element.
//!
//! - copy, Fig. 19(a): f∘p⁻¹ = g∘q⁻¹, so with the side k known and the other side u wanted, u =
//!   k∘r_k⁻¹∘r_u, where r_k and r_u are the row's layouts of the two sides ([`other_side`] calls
//!   [`solve()`]).
//! - gemm, Fig. 19(b): along M, the maps from instruction tile to tensor of C and A agree; along N
//!   those of C and B; along K those of A and B ([`Gemm`]).
//!
//! Invariant: the algebra is exact or refuses, so a layout found here satisfies its relation;
//! certificates evaluate it once more.

use super::unfit::Unfit;
pub use crate::plan::matmul::Gemm;
use carbyne_ir::layout::{Layout, LayoutError, solve};
use carbyne_ir::tuple::IntTuple;

/// `n:s`
pub fn mode(n: i64, s: i64) -> Layout {
    Layout::new(IntTuple::Leaf(n), IntTuple::Leaf(s)).expect("an extent of at least 1")
}

/// One flat mode that holds all leaves of `modes`; none is `1:0`. Leaves of extent 1 go.
///
/// # Errors
/// Too many leaves.
pub fn join(modes: &[Layout]) -> Result<Layout, LayoutError> {
    let leaves = modes.iter().flat_map(|m| m.leaves().iter().copied());
    let real: Vec<Layout> = leaves.filter(|(n, _)| *n != 1).map(|(n, s)| mode(n, s)).collect();
    match real.as_slice() {
        [] => Ok(mode(1, 0)),
        [one] => Ok(one.clone()),
        more => Layout::concat(more),
    }
}

/// (T,V) of the modes.
pub fn tv(t: &Layout, v: &Layout) -> Result<Layout, LayoutError> {
    Layout::concat(&[t.clone(), v.clone()])
}

/// A thread-value layout taken apart for instructions of `group` threads and `n` values each.
#[derive(Clone, Debug)]
pub struct Split {
    /// Lanes of one group.
    pub lanes: Layout,
    /// Groups.
    pub groups: Layout,
    /// Values of one instruction.
    pub inst: Layout,
    /// Instructions of one thread.
    pub rest: Layout,
}

/// Splits threads into groups and values into instructions.
///
/// # Errors
/// Where values or threads do not divide evenly.
pub fn split(layout: &Layout, group: i64, n: i64) -> Result<Split, LayoutError> {
    let (t, v) = (layout.mode(0)?, layout.mode(1)?);
    let part = |l: &Layout, n: i64| -> Result<(Layout, Layout), LayoutError> {
        if n < 1 || l.size() % n != 0 {
            let fix = format!("choose groups whose size divides {}", l.size());
            return Err(LayoutError::clash(l.to_string(), format!("{n}:1"), fix));
        }
        let rest = l.size() / n;
        let inner = if n == 1 { mode(1, 0) } else { l.compose(&mode(n, 1))? };
        let outer = if rest == 1 { mode(1, 0) } else { l.compose(&mode(rest, n))? };
        Ok((inner, outer))
    };
    let (lanes, groups) = part(&t, group)?;
    let (inst, rest) = part(&v, n)?;
    Ok(Split { lanes, groups, inst, rest })
}

/// A row's layout in units of `per` scalars, counted in scalars: (t,(j,v)) ↦ row(t,v)·per + j.
///
/// # Errors
/// Overflow.
pub fn in_scalars(row: &Layout, per: i64) -> Result<Layout, LayoutError> {
    if per == 1 {
        return Ok(row.clone());
    }
    let scale = |l: &Layout| Layout::new(l.shape().clone(), l.stride().map(&mut |s| s * per));
    let (t, v) = (scale(&row.mode(0)?)?, scale(&row.mode(1)?)?);
    Layout::concat(&[t, join(&[mode(per, 1), v])?])
}

/// u = k∘r_k⁻¹∘r_u for one instruction: the unknown side from the known one. `known` has the lanes
/// and values of one instruction.
///
/// # Errors
/// Where r_k is no bijection or a composition has no exact result.
pub fn other_side(
    lanes: &Layout,
    inst: &Layout,
    row_known: &Layout,
    row_unknown: &Layout,
) -> Result<Layout, LayoutError> {
    solve(&tv(lanes, inst)?, row_known, row_unknown)
}

impl Gemm {
    /// Instructions of one group along m, n, k; none where the tiles do not divide.
    pub fn rest(&self) -> Option<(i64, i64, i64)> {
        let along = |block: i64, inst: i64, groups: i64| {
            let unit = inst.checked_mul(groups)?;
            (unit > 0 && block % unit == 0).then(|| block / unit)
        };
        Some((
            along(self.block.0, self.inst.0, self.groups.0)?,
            along(self.block.1, self.inst.1, self.groups.1)?,
            along(self.block.2, self.inst.2, self.groups.2)?,
        ))
    }

    /// The thread-value layouts f_a, f_b, f_c of A\[m,k\], B\[k,n\], C\[m,n\] from p_a, p_b, p_c, T
    /// and V flat.
    ///
    /// # Errors
    /// Where tiles do not divide, or overflow.
    pub fn layouts(
        &self,
        p_a: &Layout,
        p_b: &Layout,
        p_c: &Layout,
    ) -> Result<(Layout, Layout, Layout), LayoutError> {
        let [a, b, c] = self.nested(p_a, p_b, p_c)?;
        Ok((flat(&a)?, flat(&b)?, flat(&c)?))
    }

    /// The same with V in three modes: values of an instruction, and instructions along the two
    /// modes of the tensor, K last.
    ///
    /// C is tiled with the instruction: each group owns a contiguous block of it. Its map from
    /// (group, instruction) to the tensor, projected to M (to N), is that of A (of B); K has one
    /// map for both.
    ///
    /// # Errors
    /// Where tiles do not divide, or overflow.
    pub fn nested(
        &self,
        p_a: &Layout,
        p_b: &Layout,
        p_c: &Layout,
    ) -> Result<[Layout; 3], LayoutError> {
        let (bm, bn, bk) = self.block;
        let (im, inn, ik) = self.inst;
        let (gm, gn, gk) = self.groups;
        let (rm, rn, rk) = self.rest().ok_or_else(|| {
            let inner = format!("({im},{inn},{ik})");
            let fix = format!("make the tile a multiple of {inner} for every group");
            LayoutError::clash(format!("({bm},{bn},{bk})"), inner, fix)
        })?;
        // Steps along each dimension, in elements of that dimension: of groups, and of
        // instructions.
        let m = (mode(gm, im * rm), mode(rm, im));
        let n = (mode(gn, inn * rn), mode(rn, inn));
        let k = (mode(gk, ik * rk), mode(rk, ik));
        let scaled = |l: &Layout, by: i64| mode(l.size(), l.stride().flatten()[0] * by);
        let still = |l: &Layout| mode(l.size(), 0);
        // η: the instruction tile inside the tensor, column-major.
        let place = |p: &Layout, rows: i64, cols: i64, pitch: i64| -> Result<Layout, LayoutError> {
            let eta = Layout::concat(&[mode(rows, 1), mode(cols, pitch)])?;
            eta.compose(p)
        };
        let build =
            |p: Layout, groups: [Layout; 3], rest: [Layout; 2]| -> Result<Layout, LayoutError> {
                let [m, n, k] = groups;
                let t = join(&[p.mode(0)?, m, n, k])?;
                let v = Layout::concat(&[p.mode(1)?, rest[0].clone(), rest[1].clone()])?;
                tv(&t, &v)
            };
        let c = build(
            place(p_c, im, inn, bm)?,
            [m.0.clone(), scaled(&n.0, bm), still(&k.0)],
            [m.1.clone(), scaled(&n.1, bm)],
        )?;
        let a = build(
            place(p_a, im, ik, bm)?,
            [m.0.clone(), still(&n.0), scaled(&k.0, bm)],
            [m.1.clone(), scaled(&k.1, bm)],
        )?;
        let b = build(
            place(p_b, ik, inn, bk)?,
            [still(&m.0), scaled(&n.0, bk), k.0.clone()],
            [scaled(&n.1, bk), k.1.clone()],
        )?;
        Ok([a, b, c])
    }
}

/// Each mode with its leaves side by side.
///
/// # Errors
/// Too many leaves.
pub fn flat(layout: &Layout) -> Result<Layout, LayoutError> {
    tv(&join(&[layout.mode(0)?])?, &join(&[layout.mode(1)?])?)
}

/// A grid of threads over the vectors of a tensor, consecutive threads at consecutive addresses.
///
/// `memory` maps the tensor's column-major index to addresses. Each thread moves vectors of `n`
/// elements that are consecutive in memory. The number of threads divides `threads`, is as large as
/// possible, and then as many as possible stand along the contiguous direction.
/// At most `most` threads stand side by side there.
///
/// # Errors
/// Where no vector of `n` consecutive elements exists.
pub fn coalesced(memory: &Layout, n: i64, threads: i64, most: i64) -> Result<Layout, Unfit> {
    spread(memory, n, threads, most, &[])
}

/// The same, where vectors, threads and what one thread has of each end where a mode of the tensor
/// ends, so that modes can be reduced and repeated.
///
/// # Errors
/// As [`coalesced`].
pub fn coalesced_by_modes(
    memory: &Layout,
    n: i64,
    threads: i64,
    most: i64,
) -> Result<Layout, Unfit> {
    spread(memory, n, threads, most, &ends(memory))
}

/// Whether a digit of the thread-value layout goes on from one mode of the tensor into the next,
/// and not by whole multiples of the mode.
pub fn crosses(tv: &Layout, memory: &Layout) -> bool {
    let ends = ends(memory);
    let over = |n: i64, s: i64, end: i64| {
        s < end && end < s.saturating_mul(n) && (end % s != 0 || n % (end / s) != 0)
    };
    let leaves = tv.leaves().iter().filter(|(n, s)| *n > 1 && *s > 0);
    leaves.into_iter().any(|&(n, s)| ends.iter().any(|end| over(n, s, *end)))
}

/// Where modes end, in the column-major index.
fn ends(memory: &Layout) -> Vec<i64> {
    let mut end = 1i64;
    let sizes = memory.modes().iter().map(Layout::size).collect::<Vec<_>>();
    let each = sizes.into_iter().map(|n| {
        end = end.saturating_mul(n);
        end
    });
    each.collect()
}

/// A grid of threads over vectors; digits that end at one of `ends` are not joined with the next.
fn spread(memory: &Layout, n: i64, threads: i64, most: i64, ends: &[i64]) -> Result<Layout, Unfit> {
    // Digits of the index space: (extent, step in the tensor, step in memory).
    let flat = memory.flatten();
    let mut digits = vec![];
    let mut step = 1;
    for &(extent, stride) in flat.leaves() {
        if extent > 1 {
            digits.push((extent, step, stride));
        }
        step *= extent;
    }
    digits.sort_by_key(|d| d.2);
    // Adjacent digits that continue each other in tensor and memory are one.
    digits.dedup_by(|next, prev| {
        let joins =
            next.2 == prev.2 * prev.0 && next.1 == prev.1 * prev.0 && !ends.contains(&next.1);
        if joins {
            prev.0 *= next.0;
        }
        joins
    });
    // The vector: whole digits as long as one continues the other in memory, then a part of the
    // next.
    let mut inst = vec![];
    let mut taken = 1;
    while taken < n {
        let left = n / taken;
        match digits.first().copied() {
            Some((extent, step, stride)) if stride == taken && extent % left == 0 => {
                inst.push(mode(left, step));
                digits[0] = (extent / left, step * left, stride * left);
                taken = n;
            }
            Some((extent, step, stride)) if stride == taken && left % extent == 0 => {
                inst.push(mode(extent, step));
                digits.remove(0);
                taken *= extent;
            }
            Some((extent, _, stride)) if stride == taken => {
                let all = taken * extent;
                return Err(Unfit::Divides { n, of: all });
            }
            _ if taken == 1 => return Err(Unfit::NoDirection),
            _ => return Err(Unfit::Few(taken)),
        }
    }
    let inst = join(&inst)?;
    let extents: Vec<i64> = digits.iter().map(|d| d.0).collect();
    let best = match extents.split_first() {
        Some((&first, rest)) if first > most => {
            let along = (1..=most).rev().find(|d| first % d == 0 && threads % d == 0).unwrap_or(1);
            let mut all = vec![along];
            all.extend(grid(rest, threads / along));
            all
        }
        _ => grid(&extents, threads),
    };
    let (mut t, mut v) = (vec![], vec![inst]);
    for (&(extent, step, _), along) in digits.iter().zip(best) {
        t.push(mode(along, step));
        v.push(mode(extent / along, step * along));
    }
    Ok(tv(&join(&t)?, &join(&v)?)?)
}

/// A tensor spread evenly over the threads of a block, as it lies in memory, all of them holding
/// some; none where it has no such layout.
pub fn spread_evenly(memory: &Layout, threads: i64) -> Option<Layout> {
    replicated(&coalesced(memory, 1, threads, i64::MAX).ok()?, threads).ok()
}

/// The layout with every element held by so many threads, the block's, that all of them hold some.
///
/// # Errors
/// Where the threads of the layout do not divide the block's.
pub fn replicated(layout: &Layout, threads: i64) -> Result<Layout, LayoutError> {
    let t = layout.mode(0)?;
    if t.size() == threads {
        return Ok(layout.clone());
    }
    if t.size() < 1 || threads % t.size() != 0 {
        let fix = "choose a number of threads that divides the tensor's vectors";
        return Err(LayoutError::clash(t.to_string(), format!("{threads}:1"), fix));
    }
    tv(&join(&[t.clone(), mode(threads / t.size(), 0)])?, &layout.mode(1)?)
}

/// Divisors of the extents whose product divides `threads`, as large as possible, early ones first.
fn grid(extents: &[i64], threads: i64) -> Vec<i64> {
    fn go(extents: &[i64], left: i64) -> (i64, Vec<i64>) {
        let Some((&first, rest)) = extents.split_first() else { return (1, vec![]) };
        let mut best = (0, vec![]);
        for along in (1..=first.min(left)).rev().filter(|d| first % d == 0 && left % d == 0) {
            let (count, mut others) = go(rest, left / along);
            if along * count > best.0 {
                others.insert(0, along);
                best = (along * count, others);
            }
        }
        best
    }
    go(extents, threads).1
}
