//! Certificates: the letters p, q, f, g of every relation the solver used, and a checker that evaluates
//! the relation point by point, with no layout algebra.
//!
//! A thread-value layout here has T = (lanes of a group, groups) and V = (values of an instruction,
//! instructions), both column-major, whatever its nesting.

use super::Solution;
use super::tv::Gemm;
use carbyne_atoms::AtomTable;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{BufferId, Program, SpecId};
use std::collections::BTreeMap;

/// Why a decomposition is right.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// The spec that the relation is about.
    pub spec: SpecId,
    /// The row that implements it.
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
            Relation::Gemm { gemm, row, tensors } => check_gemm(gemm, row, tensors),
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

fn check_gemm(gemm: &Gemm, row: &[Layout; 3], tensors: &[Layout; 3]) -> Result<(), String> {
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
                let ((pt, pv), (ft, _)) = (sizes(&row[o]), sizes(&tensors[o]));
                if ft != pt * gm * gn {
                    return Err("threads of row and tensor do not fit".to_owned());
                }
                for (t, v) in pairs(pt, pv) {
                    let place = row[o].at(t + pt * v);
                    let element = tensors[o].at(t + pt * group + ft * (v + pv * rest[o]));
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
    for (&spec, (name, gemm)) in &solution.matmuls {
        let s = &p.specs[spec];
        let tensors: Option<Vec<Layout>> = s
            .input_tensors()
            .chain(s.outputs.iter().copied())
            .map(|t| known.get(&p.tensors[t].buffer).cloned())
            .collect();
        let row = table.get(name).map(|a| a.operands.iter().map(|o| o.tv.clone()).collect());
        let three = |v: Option<Vec<Layout>>| v.and_then(|v| <[Layout; 3]>::try_from(v).ok());
        if let (Some(row), Some(tensors)) = (three(row), three(tensors)) {
            list.push(Certificate {
                spec,
                atom: name,
                relation: Relation::Gemm { gemm: *gemm, row, tensors },
            });
        }
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
