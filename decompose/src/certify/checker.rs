//! Checks certificates: [`check()`] evaluates a relation point by point, and [`check_row`] compares
//! a layout with that of a row of the atom table.
//!
//! Invariant: it shares no code with the solver and does not use the layout algebra. It reads the
//! extents and strides of a layout, and multiplies and adds itself.

use super::relation::Relation;
use carbyne_ir::layout::Layout;
use std::collections::HashSet;
use std::fmt;

/// Evaluates a relation.
///
/// # Errors
/// The first point at which the relation does not hold.
pub fn check(relation: &Relation) -> Result<(), Wrong> {
    match relation {
        Relation::Copy { p, q, f, g } => {
            check_copy(&Tv::of(p)?, &Tv::of(q)?, &Tv::of(f)?, &Tv::of(g)?)
        }
        Relation::Gemm { inst, block, groups, row, tensors, maps } => {
            check_gemm([*inst, *block], *groups, &all(row)?, &all(tensors)?, &all(maps)?)
        }
        Relation::Pointwise { extents, layouts, n, loops, steps } => {
            let layouts: Result<Vec<Tv>, Wrong> = layouts.iter().map(Tv::of).collect();
            check_pointwise(extents, &layouts?, *n, loops, steps)
        }
        Relation::Reduction { extents, axes, layouts, values, masks, through } => {
            let through: Vec<[Tv; 2]> = through.iter().map(all).collect::<Result<_, _>>()?;
            check_reduction(extents, axes, &all(layouts)?, &all(values)?, masks, &through)
        }
        Relation::Part { f, g, view, offset, registers, first } => {
            check_part(&Tv::of(f)?, &Tv::of(g)?, (&Tv::of(view)?, *offset), (registers, *first))
        }
        Relation::Exchange { f, g, map, steps } => check_exchange([f, g, map], steps),
    }
}

/// Checks that `p` is the layout `row` of the row, in scalars. A unit of the row may hold several
/// scalars.
///
/// # Errors
/// The first thread and value at which they differ.
pub fn check_row(p: &Layout, row: &Layout) -> Result<(), Wrong> {
    let (p, row) = (Tv::of(p)?, Tv::of(row)?);
    let ((threads, values), (t_row, v_row)) = (p.sizes(), row.sizes());
    if threads != t_row || values % v_row != 0 {
        return Err(Wrong::At("threads or values are not those of the row".to_owned()));
    }
    let per = values / v_row;
    for (t, v) in pairs(threads, values) {
        if p.at(t + threads * v) != row.at(t + threads * (v / per)) * per + v % per {
            return Err(Wrong::At(format!("({t},{v}) is elsewhere in the row")));
        }
    }
    Ok(())
}

/// Why a relation could not be confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It does not hold, at this point.
    At(String),
    /// It has too many points to check each of them.
    TooLarge,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::At(point) => f.write_str(point),
            Wrong::TooLarge => f.write_str("it has too many points to check each of them"),
        }
    }
}

impl From<String> for Wrong {
    fn from(point: String) -> Self {
        Wrong::At(point)
    }
}

/// A layout as extents and strides.
#[derive(Debug)]
struct Tv {
    leaves: Vec<(i64, i64)>,
    /// Products of the extents of the first mode, and of the second.
    sizes: (i64, i64),
    /// The values, of a layout that is small.
    values: Vec<i64>,
}

/// The most elements that are looked at one by one.
const MOST: i64 = 1 << 26;
/// The most values that are written down.
const WRITTEN: i64 = 1 << 18;

impl Tv {
    fn of(l: &Layout) -> Result<Self, Wrong> {
        let product = |l: Option<&Layout>| -> Result<i64, Wrong> {
            let mut leaves = l.iter().flat_map(|l| l.leaves());
            let size = leaves.try_fold(1i64, |p, (n, _)| p.checked_mul(*n));
            size.filter(|n| (1..=MOST).contains(n)).ok_or(Wrong::TooLarge)
        };
        let modes = l.modes();
        let sizes = (product(modes.first())?, product(modes.get(1))?);
        let leaves = l.leaves().to_vec();
        let reach =
            leaves.iter().try_fold(1i64, |r, (n, s)| r.checked_add((n - 1).checked_mul(*s)?));
        match reach {
            Some(r) if r <= MOST && leaves.iter().all(|(_, s)| *s >= 0) => {
                let values = values(&leaves);
                Ok(Tv { leaves, sizes, values })
            }
            _ => Err(Wrong::TooLarge),
        }
    }

    fn sizes(&self) -> (i64, i64) {
        self.sizes
    }

    /// Whether an index has the same value as the next one wherever both are of the same `threads`.
    fn is_still(&self, threads: i64) -> bool {
        let mut n = 1;
        for (extent, stride) in &self.leaves {
            if n >= threads {
                break;
            }
            if *extent > 1 && *stride != 0 {
                return false;
            }
            n *= extent;
        }
        n % threads.max(1) == 0
    }

    fn size(&self) -> i64 {
        self.leaves.iter().map(|(n, _)| n).product()
    }

    /// One past the largest value.
    fn cosize(&self) -> i64 {
        1 + self.leaves.iter().map(|(n, s)| (n - 1) * s).sum::<i64>()
    }

    /// The value at a column-major index.
    fn at(&self, index: i64) -> i64 {
        if let Some(value) = self.values.get(index as usize) {
            return *value;
        }
        let (mut rest, mut at) = (index, 0);
        for (n, s) in &self.leaves {
            at += rest % n * s;
            rest /= n;
        }
        at
    }
}

/// The values in order, of a layout that is small.
fn values(leaves: &[(i64, i64)]) -> Vec<i64> {
    let size = leaves.iter().try_fold(1i64, |size, (n, _)| size.checked_mul(*n));
    if size.is_none_or(|size| size > WRITTEN) {
        return vec![];
    }
    let mut out = vec![0];
    for (n, s) in leaves {
        let inner = out.len();
        for i in 1..*n {
            out.extend_from_within(..inner);
            let from = out.len() - inner;
            out[from..].iter_mut().for_each(|value| *value += i * s);
        }
    }
    out
}

fn all<const N: usize>(layouts: &[Layout; N]) -> Result<[Tv; N], Wrong> {
    let list: Result<Vec<Tv>, Wrong> = layouts.iter().map(Tv::of).collect();
    list?.try_into().map_err(|_| Wrong::At("layouts are missing".to_owned()))
}

fn check_copy(p: &Tv, q: &Tv, f: &Tv, g: &Tv) -> Result<(), Wrong> {
    let ((pt, pv), (qt, qv)) = (p.sizes(), q.sizes());
    let ((ft, fv), (gt, gv)) = (f.sizes(), g.sizes());
    if pt != qt || ft != gt || ft % pt != 0 || fv % pv != 0 || gv % qv != 0 || fv / pv != gv / qv {
        return Err(Wrong::At("the sizes of row and tensors do not fit".to_owned()));
    }
    let tile = p.cosize().max(q.cosize()) as usize;
    for group in 0..ft / pt {
        for r in 0..fv / pv {
            let mut at: Vec<Option<i64>> = vec![None; tile];
            for (t, v) in pairs(pt, pv) {
                let element = f.at(t + pt * group + ft * (v + pv * r));
                let place = p.at(t + pt * v) as usize;
                if at[place].is_some_and(|e| e != element) {
                    return Err(Wrong::At(format!("place {place} of the tile has two sources")));
                }
                at[place] = Some(element);
            }
            for (t, v) in pairs(qt, qv) {
                let element = g.at(t + qt * group + gt * (v + qv * r));
                let place = q.at(t + qt * v) as usize;
                if at[place] != Some(element) {
                    return Err(Wrong::At(format!(
                        "thread {} value {} is element {element}, the row brings {:?}",
                        t + qt * group,
                        v + qv * r,
                        at[place]
                    )));
                }
            }
        }
    }
    Ok(())
}

fn check_gemm(
    extents: [(i64, i64, i64); 2],
    (gm, gn, gk): (i64, i64, i64),
    row: &[Tv; 3],
    tensors: &[Tv; 3],
    places: &[Tv; 3],
) -> Result<(), Wrong> {
    let [(im, inn, ik), (bm, bn, bk)] = extents;
    let whole = |block: i64, inst: i64, groups: i64| {
        let one = inst.checked_mul(groups).filter(|n| inst > 0 && *n > 0 && block % n == 0);
        one.map(|n| block / n).ok_or_else(|| "the tiles do not divide".to_owned())
    };
    let (rm, rn, rk) = (whole(bm, im, gm)?, whole(bn, inn, gn)?, whole(bk, ik, gk)?);
    // Extent of the first mode of each operand: of the row's tile, of the tensor.
    let pitch = [(im, bm), (ik, bk), (im, bm)];
    let dims = [[0, 2], [2, 1], [0, 1]];
    for o in 0..3 {
        let ((pt, _), (ft, fv)) = (row[o].sizes(), tensors[o].sizes());
        if places[o].size() != fv || places[o].cosize() > fv {
            return Err(Wrong::At("values of row and tensor do not fit".to_owned()));
        }
        if ft != pt * gm * gn * gk {
            return Err(Wrong::At("threads of row and tensor do not fit".to_owned()));
        }
    }
    // Threads that all have the same are looked at once.
    let threads = [0, 1, 2].map(|o| {
        let (pt, _) = row[o].sizes();
        if row[o].is_still(pt) && tensors[o].is_still(pt) { 1 } else { pt }
    });
    // M, N, K: coordinates of the instruction's tile to those of the tensor.
    let reach = |dim: usize| {
        let along =
            (0..3).flat_map(|o| dims[o].iter().zip([0, 1]).map(move |(d, part)| (o, *d, part)));
        let of = |(o, part): (usize, usize)| match part {
            0 => pitch[o].0.min(row[o].cosize()),
            _ => (row[o].cosize() - 1) / pitch[o].0 + 1,
        };
        let reach = along.filter(|(_, d, _)| *d == dim).map(|(o, _, part)| of((o, part))).max();
        vec![NOWHERE; reach.unwrap_or(0).max(0) as usize]
    };
    let mut maps: [Vec<i64>; 3] = [0, 1, 2].map(reach);
    // Every k of every element of C, once: by whom.
    let parts = [gn, rm, rn].iter().try_fold(gm, |all, n| all.checked_mul(*n));
    let parts = parts.filter(|n| *n <= MOST).ok_or(Wrong::TooLarge)?;
    let mut seen: Vec<Vec<i64>> = vec![vec![]; parts as usize];
    for group in 0..gm * gn * gk {
        for (m, n, k) in triples(rm, rn, rk) {
            maps.iter_mut().for_each(|map| map.fill(NOWHERE));
            let rest = [m + rm * k, n + rn * k, m + rm * n];
            for o in 0..3 {
                let ((pt, pv), (ft, _)) = (row[o].sizes(), tensors[o].sizes());
                for (t, v) in pairs(threads[o], pv) {
                    let place = row[o].at(t + pt * v);
                    let register = places[o].at(v + pv * rest[o]);
                    let element = tensors[o].at(t + pt * group + ft * register);
                    let (inner, outer) = pitch[o];
                    let coordinates =
                        [(place % inner, element % outer), (place / inner, element / outer)];
                    for (dim, (from, to)) in dims[o].into_iter().zip(coordinates) {
                        let known = &mut maps[dim][from as usize];
                        if *known == NOWHERE {
                            *known = to;
                        }
                        if *known != to {
                            let name = ["m", "n", "k"][dim];
                            return Err(Wrong::At(format!(
                                "{name} = {from} of the instruction is both {known} and {to} of \
                                 the block"
                            )));
                        }
                    }
                    // Groups along k hold the same elements of C, register by register.
                    let first = || tensors[2].at(t + pt * (group % (gm * gn)) + ft * register);
                    if o == 2 && element != first() {
                        return Err(Wrong::At(
                            "partial sums of different elements meet".to_owned(),
                        ));
                    }
                }
            }
            let at = group % (gm * gn) + gm * gn * (m + rm * n);
            let ks = maps[2].iter().filter(|to| **to != NOWHERE);
            seen[at as usize].extend(ks);
        }
    }
    for ks in &mut seen {
        ks.sort_unstable();
        if !ks.iter().copied().eq(0..bk) {
            return Err(Wrong::At("an element of C misses some k, or has it twice".to_owned()));
        }
    }
    Ok(())
}

/// What no coordinate is.
const NOWHERE: i64 = -1;

fn check_pointwise(
    extents: &[Vec<i64>],
    layouts: &[Tv],
    n: i64,
    loops: &[i64],
    steps: &[Vec<i64>],
) -> Result<(), Wrong> {
    let (Some(all), Some(out)) = (extents.last(), layouts.last()) else {
        return Err(Wrong::At("there is no output".to_owned()));
    };
    let (threads, values) = out.sizes();
    let positive = loops.iter().chain(extents.iter().flatten()).all(|n| (1..=MOST).contains(n));
    if !positive || steps.len() != layouts.len() || extents.len() != layouts.len() {
        return Err(Wrong::At("loops, steps or extents do not fit the operands".to_owned()));
    }
    let turns = loops.iter().try_fold(1i64, |p, n| p.checked_mul(*n)).ok_or(Wrong::TooLarge)?;
    if turns.checked_mul(n) != Some(values) {
        return Err(Wrong::At(format!(
            "{turns} instructions of {n} values are not {values} values"
        )));
    }
    let mut written = vec![false; values as usize];
    for turn in 0..turns {
        let registers = |o: usize| {
            let (mut rest, mut at) = (turn, 0);
            for (extent, step) in loops.iter().zip(&steps[o]) {
                at += rest % extent * step;
                rest /= extent;
            }
            at
        };
        let to = registers(layouts.len() - 1);
        for v in 0..n {
            match written.get_mut((to + v) as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(Wrong::At(format!("register {} is not written once", to + v))),
            }
            for (o, f) in layouts.iter().enumerate() {
                let (t_own, v_own) = f.sizes();
                let from = registers(o) + v;
                if t_own != threads || from >= v_own {
                    return Err(Wrong::At(
                        "threads or values of the operands do not fit".to_owned(),
                    ));
                }
                for t in 0..threads {
                    let wanted = within(out.at(t + threads * (to + v)), all, &extents[o]);
                    let found = f.at(t + threads * from);
                    if wanted != found {
                        return Err(Wrong::At(format!(
                            "thread {t} reads element {found} of operand {o}, wanted is {wanted}"
                        )));
                    }
                }
            }
        }
    }
    Ok(())
}

/// The element of a smaller tensor that stands for an element of a larger one.
fn within(element: i64, all: &[i64], own: &[i64]) -> i64 {
    if all.iter().product::<i64>() == own.iter().product::<i64>() {
        return element;
    }
    let (mut rest, mut at, mut unit) = (element, 0, 1);
    for (a, o) in all.iter().zip(own) {
        if *o > 1 {
            at += rest % a * unit;
        }
        unit *= o;
        rest /= a;
    }
    at
}

fn check_reduction(
    extents: &[i64],
    axes: &[usize],
    [f, g]: &[Tv; 2],
    [stay, reduced]: &[Tv; 2],
    masks: &[i64],
    through: &[[Tv; 2]],
) -> Result<(), Wrong> {
    let ((threads, values), (out_threads, out_values)) = (f.sizes(), g.sizes());
    if threads != out_threads || stay.size() != out_values || stay.size() * reduced.size() != values
    {
        return Err(Wrong::At("threads or values of input and output do not fit".to_owned()));
    }
    let size = |n: Option<i64>, e: &i64| n?.checked_mul(*e).filter(|n| (1..=MOST).contains(n));
    let all = extents.iter().fold(Some(1i64), size).ok_or(Wrong::TooLarge)?;
    // Threads whose values a thread has after the exchanges.
    let lanes = |t: i64| {
        let mut met = vec![t];
        for mask in masks {
            let more: Vec<i64> = met.iter().map(|t| t ^ mask).collect();
            met.extend(more);
        }
        met
    };
    // The last exchange first: what it meets has met others in those before.
    let met = |t: i64| -> Vec<i64> {
        let mut met = vec![t];
        for [first, others] in through.iter().rev() {
            let inside = met.iter().filter(|t| (0..threads).contains(*t));
            let next = |t: &i64| (0..others.size()).map(|o| first.at(*t) + others.at(o)).collect();
            let more: Vec<Vec<i64>> = inside.map(next).collect();
            if more.len() < met.len() || more.iter().map(Vec::len).sum::<usize>() > threads as usize
            {
                return vec![threads];
            }
            met = more.concat();
        }
        met.into_iter().flat_map(lanes).collect()
    };
    let kept_of = |element: i64| {
        let (mut rest, mut at, mut unit) = (element, 0, 1);
        for (m, e) in extents.iter().enumerate() {
            if !axes.contains(&m) {
                at += rest % e * unit;
                unit *= e;
            }
            rest /= e;
        }
        at
    };
    let out: i64 =
        extents.iter().enumerate().filter(|(m, _)| !axes.contains(m)).map(|(_, e)| e).product();
    // Threads that have met the same ones and keep the same element need to be looked at once.
    let mut right = HashSet::new();
    for t in 0..threads {
        let mut partners = met(t);
        partners.sort_unstable();
        if partners.iter().any(|t| !(0..threads).contains(t)) {
            return Err(Wrong::At(format!(
                "thread {t} exchanges with a thread outside of the block"
            )));
        }
        for v in 0..out_values {
            let wanted = g.at(t + threads * v);
            if right.contains(&(v, wanted, partners.clone())) {
                continue;
            }
            let mut seen = HashSet::new();
            for partner in &partners {
                for r in 0..reduced.size() {
                    let element = f.at(partner + threads * (stay.at(v) + reduced.at(r)));
                    if kept_of(element) != wanted || !seen.insert(element) {
                        return Err(Wrong::At(format!(
                            "thread {t} adds element {element} to element {wanted} wrongly"
                        )));
                    }
                }
            }
            if seen.len() as i64 != all / out.max(1) {
                return Err(Wrong::At(format!("thread {t} misses elements of element {wanted}")));
            }
            right.insert((v, wanted, partners.clone()));
        }
    }
    Ok(())
}

fn check_exchange([f, g, map]: [&Layout; 3], steps: &[(i64, i64)]) -> Result<(), Wrong> {
    let (f, g, map) = (Tv::of(f)?, Tv::of(g)?, Tv::of(map)?);
    let (threads, values) = f.sizes();
    let n = Some(threads * values).filter(|n| *n <= MOST).ok_or(Wrong::TooLarge)?;
    if g.sizes() != (threads, values) || map.size() != values || map.cosize() != values {
        return Err(Wrong::At("threads or values of the layouts do not fit".to_owned()));
    }
    let first = |i: i64| f.at(i % threads + threads * map.at(i / threads));
    let mut held: Vec<i64> = (0..n).map(first).collect();
    for &(mask, step) in steps {
        let lanes = threads % 32 == 0 && [1, 2, 4, 8, 16].contains(&mask);
        if !lanes || !(1..values).contains(&step) || values % (2 * step) != 0 {
            return Err(Wrong::At(format!("lanes {mask} and registers {step} apart do not swap")));
        }
        for i in (0..n).filter(|i| i % threads / mask % 2 == 0 && i / threads / step % 2 == 1) {
            held.swap(i as usize, (i + mask - threads * step) as usize);
        }
    }
    let wrong = (0..n).find(|i| held[*i as usize] != g.at(*i));
    wrong.map_or(Ok(()), |i| Err(Wrong::At(format!("({},{}) differs", i % threads, i / threads))))
}

fn check_part(
    f: &Tv,
    g: &Tv,
    (view, offset): (&Tv, i64),
    (registers, first): (&Layout, i64),
) -> Result<(), Wrong> {
    let registers = Tv::of(registers)?;
    let ((threads, all), (t_own, values)) = (f.sizes(), g.sizes());
    let size = |l: &Tv| l.leaves.iter().try_fold(1i64, |p, (n, _)| p.checked_mul(*n));
    if t_own != threads || size(&registers) != Some(values) {
        return Err(Wrong::At("threads or values of the layouts do not fit".to_owned()));
    }
    let n = threads.checked_mul(values).filter(|n| *n <= MOST).ok_or(Wrong::TooLarge)?;
    let elements = size(view).filter(|n| *n <= MOST).ok_or(Wrong::TooLarge)?;
    let mut held = vec![false; elements as usize];
    for i in 0..n {
        let (t, v) = (i % threads, i / threads);
        let register = first.checked_add(registers.at(v)).filter(|r| (0..all).contains(r));
        let element = g.at(i);
        let (Some(register), Some(seen)) = (register, held.get_mut(element as usize)) else {
            return Err(Wrong::At(format!("({t},{v}) is outside")));
        };
        *seen = true;
        if offset.checked_add(view.at(element)) != Some(f.at(t + threads * register)) {
            return Err(Wrong::At(format!("({t},{v}) is another element of the tensor")));
        }
    }
    match held.iter().position(|h| !h) {
        Some(e) => Err(Wrong::At(format!("nobody holds element {e}"))),
        None => Ok(()),
    }
}

fn pairs(a: i64, b: i64) -> impl Iterator<Item = (i64, i64)> {
    (0..b).flat_map(move |j| (0..a).map(move |i| (i, j)))
}

fn triples(a: i64, b: i64, c: i64) -> impl Iterator<Item = (i64, i64, i64)> {
    (0..c).flat_map(move |k| pairs(a, b).map(move |(i, j)| (i, j, k)))
}
