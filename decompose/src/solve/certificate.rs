//! Certificates: the letters p, q, f, g of every relation the solver used, and a checker that evaluates
//! the relation point by point, with no layout algebra.
//!
//! A thread-value layout here has T = (lanes of a group, groups) and V = (values of an instruction,
//! instructions), both column-major, whatever its nesting.

use super::Solution;
use super::ops::extents;
use super::tv::Gemm;
use carbyne_atoms::AtomTable;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{BufferId, Program, SpecId};
use std::collections::{BTreeMap, BTreeSet};

/// Why a decomposition is right.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// The spec that the relation is about.
    pub spec: SpecId,
    /// The row that implements it; `-` of several.
    pub atom: &'static str,
    /// What holds.
    pub relation: Relation,
}

/// A relation of Hexcute, Fig. 19.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a kernel has a few, each kept once")]
pub enum Relation {
    /// f∘p⁻¹ = g∘q⁻¹
    Copy {
        /// The row's source.
        p: Layout,
        /// The row's destination.
        q: Layout,
        /// The source tensor.
        f: Layout,
        /// The destination tensor.
        g: Layout,
    },
    /// μ∘(f_c∘p_c⁻¹)∘η = μ∘(f_a∘p_a⁻¹)∘η along M, and so on along N and K.
    Gemm {
        /// The tiling.
        gemm: Gemm,
        /// p_a, p_b, p_c.
        row: [Layout; 3],
        /// f_a, f_b, f_c.
        tensors: [Layout; 3],
        /// Of each, where the values of the instructions lie among those of a thread.
        maps: [Layout; 3],
    },
    /// f = g, or f = μ∘g where an operand's modes of extent 1 stand for all.
    Pointwise {
        /// Extents of each operand, the output last.
        extents: Vec<Vec<i64>>,
        /// The thread-value layout of each.
        layouts: Vec<Layout>,
        /// Scalars of one instruction.
        n: i64,
        /// Instructions of a thread, as loops.
        loops: Vec<i64>,
        /// For each operand, the registers from one turn of each loop to the next.
        steps: Vec<Vec<i64>>,
    },
    /// g = μ∘f: each element of the output gets each of its elements once.
    Reduction {
        /// Extents of the input.
        extents: Vec<i64>,
        /// Modes that are removed.
        axes: Vec<usize>,
        /// The thread-value layouts of input and output.
        layouts: [Layout; 2],
        /// Registers of the values that stay and, from each, of those that are reduced.
        values: [Layout; 2],
        /// Threads whose values meet: by exchanges between lanes, and through shared memory.
        masks: Vec<i64>,
        /// See `masks`: the first one for each thread, and from there to the others.
        through: Option<[Layout; 2]>,
    },
}

impl Certificate {
    /// Evaluates the relation.
    ///
    /// # Errors
    /// The first point at which it does not hold.
    pub fn check(&self) -> Result<(), String> {
        match &self.relation {
            Relation::Copy { p, q, f, g } => check_copy(p, q, f, g),
            Relation::Gemm { gemm, row, tensors, maps } => check_gemm(gemm, row, tensors, maps),
            Relation::Pointwise { extents, layouts, n, loops, steps } => {
                check_pointwise(extents, layouts, *n, loops, steps)
            }
            Relation::Reduction { extents, axes, layouts, values, masks, through } => {
                check_reduction(extents, axes, layouts, values, masks, through.as_ref())
            }
        }
    }
}

fn sizes(l: &Layout) -> (i64, i64) {
    (l.mode(0).map_or(1, |m| m.size()), l.mode(1).map_or(1, |m| m.size()))
}

fn check_copy(p: &Layout, q: &Layout, f: &Layout, g: &Layout) -> Result<(), String> {
    let ((pt, pv), (qt, qv)) = (sizes(p), sizes(q));
    let ((ft, fv), (gt, gv)) = (sizes(f), sizes(g));
    if pt != qt || ft != gt || ft % pt != 0 || fv % pv != 0 || gv % qv != 0 || fv / pv != gv / qv {
        return Err("the sizes of row and tensors do not fit".to_owned());
    }
    let tile = p.cosize().max(q.cosize()) as usize;
    for group in 0..ft / pt {
        for r in 0..fv / pv {
            let mut at: Vec<Option<i64>> = vec![None; tile];
            for (t, v) in pairs(pt, pv) {
                let element = f.at(t + pt * group + ft * (v + pv * r));
                let place = p.at(t + pt * v) as usize;
                if at[place].is_some_and(|e| e != element) {
                    return Err(format!("place {place} of the tile has two sources"));
                }
                at[place] = Some(element);
            }
            for (t, v) in pairs(qt, qv) {
                let element = g.at(t + qt * group + gt * (v + qv * r));
                let place = q.at(t + qt * v) as usize;
                if at[place] != Some(element) {
                    return Err(format!(
                        "thread {} value {} is element {element}, the row brings {:?}",
                        t + qt * group,
                        v + qv * r,
                        at[place]
                    ));
                }
            }
        }
    }
    Ok(())
}

fn check_gemm(
    gemm: &Gemm,
    row: &[Layout; 3],
    tensors: &[Layout; 3],
    places: &[Layout; 3],
) -> Result<(), String> {
    let (rm, rn, rk) = gemm.rest().ok_or("the tiles do not divide")?;
    let (gm, gn) = gemm.groups;
    let (im, _, ik) = gemm.inst;
    let (bm, _, bk) = gemm.block;
    // Extent of the first mode of each operand: of the row's tile, of the tensor.
    let pitch = [(im, bm), (ik, bk), (im, bm)];
    for group in 0..gm * gn {
        for (m, n, k) in triples(rm, rn, rk) {
            let mut maps: [BTreeMap<i64, i64>; 3] = Default::default(); // M, N, K: tile to tensor.
            let rest = [m + rm * k, n + rn * k, m + rm * n];
            let dims = [[0, 2], [2, 1], [0, 1]];
            for o in 0..3 {
                let ((pt, pv), (ft, fv)) = (sizes(&row[o]), sizes(&tensors[o]));
                if places[o].size() != fv || places[o].cosize() > fv {
                    return Err("values of row and tensor do not fit".to_owned());
                }
                if ft != pt * gm * gn {
                    return Err("threads of row and tensor do not fit".to_owned());
                }
                for (t, v) in pairs(pt, pv) {
                    let place = row[o].at(t + pt * v);
                    let register = places[o].at(v + pv * rest[o]);
                    let element = tensors[o].at(t + pt * group + ft * register);
                    let (inner, outer) = pitch[o];
                    let coordinates =
                        [(place % inner, element % outer), (place / inner, element / outer)];
                    for (dim, (from, to)) in dims[o].into_iter().zip(coordinates) {
                        let known = *maps[dim].entry(from).or_insert(to);
                        if known != to {
                            let name = ["m", "n", "k"][dim];
                            return Err(format!(
                                "{name} = {from} of the instruction is both {known} and {to} of the block"
                            ));
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

fn check_pointwise(
    extents: &[Vec<i64>],
    layouts: &[Layout],
    n: i64,
    loops: &[i64],
    steps: &[Vec<i64>],
) -> Result<(), String> {
    let (Some(all), Some(out)) = (extents.last(), layouts.last()) else {
        return Err("there is no output".to_owned());
    };
    let (threads, values) = sizes(out);
    let turns: i64 = loops.iter().product();
    if turns * n != values {
        return Err(format!("{turns} instructions of {n} values are not {values} values"));
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
                _ => return Err(format!("register {} is not written once", to + v)),
            }
            for (o, f) in layouts.iter().enumerate() {
                let (t_own, v_own) = sizes(f);
                let from = registers(o) + v;
                if t_own != threads || from >= v_own {
                    return Err("threads or values of the operands do not fit".to_owned());
                }
                for t in 0..threads {
                    let wanted = within(out.at(t + threads * (to + v)), all, &extents[o]);
                    let found = f.at(t + threads * from);
                    if wanted != found {
                        return Err(format!(
                            "thread {t} reads element {found} of operand {o}, wanted is {wanted}"
                        ));
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
    [f, g]: &[Layout; 2],
    [stay, reduced]: &[Layout; 2],
    masks: &[i64],
    through: Option<&[Layout; 2]>,
) -> Result<(), String> {
    let ((threads, values), (out_threads, out_values)) = (sizes(f), sizes(g));
    if threads != out_threads || stay.size() != out_values || stay.size() * reduced.size() != values
    {
        return Err("threads or values of input and output do not fit".to_owned());
    }
    // Threads whose values a thread has after the exchanges.
    let lanes = |t: i64| {
        let mut met = vec![t];
        for mask in masks {
            let more: Vec<i64> = met.iter().map(|t| t ^ mask).collect();
            met.extend(more);
        }
        met
    };
    let met = |t: i64| -> Vec<i64> {
        match through {
            None => lanes(t),
            Some([first, others]) => {
                (0..others.size()).flat_map(|o| lanes(first.at(t) + others.at(o))).collect()
            }
        }
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
    let all: i64 = extents.iter().product();
    let out: i64 =
        extents.iter().enumerate().filter(|(m, _)| !axes.contains(m)).map(|(_, e)| e).product();
    for t in 0..threads {
        let partners = met(t);
        if partners.iter().any(|t| !(0..threads).contains(t)) {
            return Err(format!("thread {t} exchanges with a thread outside of the block"));
        }
        for v in 0..out_values {
            let wanted = g.at(t + threads * v);
            let mut seen = BTreeSet::new();
            for partner in &partners {
                for r in 0..reduced.size() {
                    let element = f.at(partner + threads * (stay.at(v) + reduced.at(r)));
                    if kept_of(element) != wanted || !seen.insert(element) {
                        return Err(format!(
                            "thread {t} adds element {element} to element {wanted} wrongly"
                        ));
                    }
                }
            }
            if seen.len() as i64 != all / out.max(1) {
                return Err(format!("thread {t} misses elements of element {wanted}"));
            }
        }
    }
    Ok(())
}

fn pairs(a: i64, b: i64) -> impl Iterator<Item = (i64, i64)> {
    (0..b).flat_map(move |j| (0..a).map(move |i| (i, j)))
}

fn triples(a: i64, b: i64, c: i64) -> impl Iterator<Item = (i64, i64, i64)> {
    (0..c).flat_map(move |k| pairs(a, b).map(move |(i, j)| (i, j, k)))
}

/// Writes a certificate for every relation of the solution and checks it.
///
/// # Errors
/// [`Code::Internal`] where a relation does not hold: the solver would be wrong.
pub fn certify(
    p: &Program,
    known: &BTreeMap<BufferId, Layout>,
    solution: &mut Solution,
    table: &AtomTable,
) -> Result<(), Box<Diagnostic>> {
    let mut list = vec![];
    for (&spec, c) in &solution.copies {
        list.push(Certificate {
            spec,
            atom: c.atom,
            relation: Relation::Copy {
                p: c.p.clone(),
                q: c.q.clone(),
                f: c.f.clone(),
                g: c.g.clone(),
            },
        });
    }
    for (&spec, c) in &solution.matmuls {
        let s = &p.specs[spec];
        let tensors: Option<Vec<Layout>> = s
            .input_tensors()
            .chain(s.outputs.iter().copied())
            .map(|t| known.get(&p.tensors[t].buffer).cloned())
            .collect();
        let row = table.get(c.atom).map(|a| a.operands.iter().map(|o| o.tv.clone()).collect());
        let three = |v: Option<Vec<Layout>>| v.and_then(|v| <[Layout; 3]>::try_from(v).ok());
        if let (Some(row), Some(tensors)) = (three(row), three(tensors)) {
            let maps = c.maps.clone();
            let relation = Relation::Gemm { gemm: c.gemm, row, tensors, maps };
            list.push(Certificate { spec, atom: c.atom, relation });
        }
    }
    for (&spec, c) in &solution.pointwise {
        let s = &p.specs[spec];
        let extents: Option<Vec<Vec<i64>>> =
            s.input_tensors().chain(s.outputs.iter().copied()).map(|t| extents(p, t)).collect();
        let Some(extents) = extents else { continue };
        let steps = c
            .steps
            .iter()
            .map(|(steps, _)| steps.iter().map(|s| s.unwrap_or(0)).collect())
            .collect();
        let relation = Relation::Pointwise {
            extents,
            layouts: c.layouts.clone(),
            n: c.n,
            loops: c.loops.clone(),
            steps,
        };
        list.push(Certificate { spec, atom: c.atom, relation });
    }
    for (&spec, c) in &solution.reductions {
        let s = &p.specs[spec];
        let Some(extents) = s.input_tensors().next().and_then(|t| extents(p, t)) else { continue };
        let relation = Relation::Reduction {
            extents,
            axes: s.axes().unwrap_or_default(),
            layouts: [c.input.clone(), c.output.clone()],
            values: [c.values.0.clone(), c.values.1.clone()],
            masks: c.masks.clone(),
            through: c.shared.as_ref().map(|t| [t.first.clone(), t.others.clone()]),
        };
        list.push(Certificate { spec, atom: "-", relation });
    }
    for certificate in &list {
        if let Err(why) = certificate.check() {
            let span = p.specs[certificate.spec].span;
            return Err(Box::new(
                Diagnostic::new(
                    Code::Internal,
                    span,
                    format!("the relation for `{}` does not hold: {why}", certificate.atom),
                )
                .help("please report this with the file"),
            ));
        }
    }
    solution.certificates = list;
    Ok(())
}
