//! The relation of a leaf: for all (t,v), source and destination name the same element; of a product, its
//! factors and its output the same m, n and k.
//!
//! Letters as in Hexcute, Fig. 19(a): p and q are the row's thread-value layouts of source and
//! destination, f and g those of the tensors. The law is f∘p⁻¹ = g∘q⁻¹, evaluated as a relation, since
//! p⁻¹ need not exist: whenever p(t,v) = q(t',v'), f(t,v) and g(t',v') must be the same element of the
//! Move around the leaf.
//!
//! Evaluation needs a Move around the leaf whose operands are the same buffers, a register tensor with
//! a thread-value layout on one side, and addresses that depend on the thread and on loops around the leaf
//! alone once other loops and blocks stand at their first values. Where these do not hold, nothing is claimed and the simulator
//! judges.

use crate::matching::Mismatch;
use carbyne_atoms::{Atom, AtomOp, AtomOperand};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::expr::{Dim, VarId};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::walk::Step;
use carbyne_ir::program::{Program, SpecId, Stmt, StmtKind, Tensor, TensorId, ThreadsId};
use carbyne_ir::scalar::Memory;
use std::collections::HashMap;

/// The largest tensor whose addresses are tabulated.
const MAX_TABLE: i64 = 1 << 16;
/// The most turns of loops that are looked at one by one.
const MAX_TURNS: u64 = 64;

/// The first element that would go astray.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
enum Astray {
    /// One coordinate of the row's product would be two of the tensors'.
    #[error(
        "({},{}) ↦ {name} = {found} where other values of the instruction have {name} = {other}: its {name} = \
         {of_row} would be both",
        at.0,
        at.1
    )]
    Coordinate {
        /// Thread and value.
        at: (i64, usize),
        name: &'static str,
        found: i64,
        other: i64,
        of_row: i64,
    },
    /// Lanes that name one element of the row's tile name two of the tensor.
    #[error("lanes disagree on element {0} of the tile")]
    Lanes(i64),
    /// The row brings another element than the spec says.
    #[error(
        "({},{}) ↦ {want} of the destination, but the row brings {found} there: f∘p⁻¹ ≠ g∘q⁻¹",
        at.0,
        at.1
    )]
    Element {
        /// Thread and value.
        at: (i64, usize),
        want: String,
        found: String,
    },
}

/// Evaluates the relation where it can be evaluated.
///
/// # Errors
/// [`Mismatch::Relation`] with the first element that would go astray.
pub(crate) fn check(
    p: &Program,
    leaf: SpecId,
    enclosing: &[SpecId],
    atom: &Atom,
) -> Result<(), Mismatch> {
    let found = match p.specs[leaf].kind {
        SpecKind::Move | SpecKind::Unary(_) | SpecKind::Binary(_) | SpecKind::Select => {
            mapping(p, leaf, enclosing, atom)
        }
        SpecKind::MatMul | SpecKind::MatMulSet => product(p, leaf, enclosing, atom),
        SpecKind::Accumulate(_)
        | SpecKind::Reduction(_)
        | SpecKind::Shfl(_)
        | SpecKind::Init
        | SpecKind::Iota
        | SpecKind::Generic => None,
    };
    match found {
        Some(Err(astray)) => Err(Mismatch::Relation { detail: astray.to_string() }),
        Some(Ok(())) | None => Ok(()),
    }
}

/// Input tensors, then outputs.
fn tensors(p: &Program, id: SpecId) -> Vec<TensorId> {
    p.specs[id].input_tensors().chain(p.specs[id].outputs.iter().copied()).collect()
}

/// A leaf with the spec around it that it is a part of: both their tensors, and who executes which turns.
struct Part {
    own: Vec<TensorId>,
    of: Vec<TensorId>,
    groups: Vec<Vec<i64>>,
    turns: Vec<Turn>,
}

impl Part {
    fn new(p: &Program, leaf: SpecId, enclosing: &[SpecId], atom: &Atom) -> Option<Self> {
        let spec = &p.specs[leaf];
        let own = tensors(p, leaf);
        let buffers =
            |list: &[TensorId]| list.iter().map(|t| p.tensors[*t].buffer).collect::<Vec<_>>();
        let outer = enclosing.iter().rev().copied().find(|outer| {
            p.specs[*outer].kind == spec.kind && buffers(&tensors(p, *outer)) == buffers(&own)
        })?;
        let groups = groups(p, spec.exec?.threads, atom)?;
        let loops = p.specs[outer].body.as_ref().and_then(|body| path(p, body, leaf));
        // Under a condition, or with too many turns, the first group and turn speak for the others.
        let (turns, groups) = match loops.and_then(|loops| turns(&loops)) {
            Some(turns) => (turns, groups),
            None => (vec![Turn::new()], groups.into_iter().take(1).collect()),
        };
        Some(Part { own, of: tensors(p, outer), groups, turns })
    }

    /// Every instruction: its turn and its threads.
    fn each(&self) -> impl Iterator<Item = (&Turn, &[i64])> {
        self.turns.iter().flat_map(|t| self.groups.iter().map(move |g| (t, g.as_slice())))
    }
}

fn mapping(
    p: &Program,
    leaf: SpecId,
    enclosing: &[SpecId],
    atom: &Atom,
) -> Option<Result<(), Astray>> {
    let part = Part::new(p, leaf, enclosing, atom)?;
    // Rows with literals among their operands are not taken apart here.
    if part.own.len() != atom.operands.len() {
        return None;
    }
    let (to, inputs) = part.own.split_last()?;
    let d = Lanes::new(p, *to, atom.operands.last()?)?;
    let gs = Side::new(p, *to, *part.of.last()?)?;
    for (i, from) in inputs.iter().enumerate() {
        let fs = Side::new(p, *from, part.of[i])?;
        // What stands for several elements has no one index.
        if fs.extents.iter().product::<i64>() != gs.extents.iter().product::<i64>() {
            continue;
        }
        let s = Lanes::new(p, *from, &atom.operands[i])?;
        for (turn, group) in part.each() {
            if let Err(why) = group_fits(p, (&fs, &gs), (&s, &d), group, turn)? {
                return Some(Err(why));
            }
        }
    }
    Some(Ok(()))
}

/// Of a product: along m, n and k, each coordinate of the row is one coordinate of the tensors.
fn product(
    p: &Program,
    leaf: SpecId,
    enclosing: &[SpecId],
    atom: &Atom,
) -> Option<Result<(), Astray>> {
    let AtomOp::MatMul { l: 1, m, k, .. } = atom.op else { return None };
    let described = atom.operands.iter().any(|o| o.matrix_rule().is_some());
    let part = Part::new(p, leaf, enclosing, atom)?;
    if described || part.own.len() != 3 || atom.operands.len() != 3 {
        return None;
    }
    let mut sides = vec![];
    for (i, operand) in atom.operands.iter().enumerate() {
        let side = Side::new(p, part.own[i], part.of[i])?;
        let &[first, _] = side.extents.as_slice() else { return None };
        sides.push((side, Lanes::new(p, part.own[i], operand)?, [m, k, m][i], first));
    }
    for (turn, group) in part.each() {
        let mut known: [HashMap<i64, i64>; 3] = Default::default();
        for ((side, lanes, inner, outer), dims) in sides.iter().zip([[0, 2], [2, 1], [0, 1]]) {
            for (lane, places) in lanes.places.iter().enumerate() {
                let thread = *group.get(lane)?;
                let elements = side.elements(p, thread, turn, places.len())?;
                for (v, (place, element)) in places.iter().zip(elements).enumerate() {
                    let of_row = [place % inner, place / inner];
                    let of_tensor = [element % outer, element / outer];
                    for (i, dim) in dims.into_iter().enumerate() {
                        let other = *known[dim].entry(of_row[i]).or_insert(of_tensor[i]);
                        if other != of_tensor[i] {
                            return Some(Err(Astray::Coordinate {
                                at: (thread, v),
                                name: ["m", "n", "k"][dim],
                                found: of_tensor[i],
                                other,
                                of_row: of_row[i],
                            }));
                        }
                    }
                }
            }
        }
    }
    Some(Ok(()))
}

/// Values of loop variables.
type Turn = HashMap<VarId, i64>;

/// The threads of each instruction, lane by lane; at least one.
fn groups(p: &Program, threads: ThreadsId, atom: &Atom) -> Option<Vec<Vec<i64>>> {
    let t = &p.threads[threads];
    let t = t.each.map_or(t, |each| &p.threads[each]);
    let Dim::Const(offset) = t.offset else { return None };
    let layout = t.concat().to_fixed()?;
    if layout.size() > MAX_TABLE {
        return None;
    }
    let mut ids: Vec<i64> = (0..layout.size()).map(|i| offset + layout.at(i)).collect();
    ids.sort_unstable();
    let n = usize::try_from(atom.group).ok()?.max(1);
    let neighbors = atom.thread_layout.cosize() == atom.group && ids.len().is_multiple_of(n);
    if neighbors && t.elect.is_none() {
        return Some(ids.chunks(n).map(<[i64]>::to_vec).collect());
    }
    let first = *ids.first()?;
    Some(vec![(0..atom.group).map(|t| first + atom.thread_layout.at(t)).collect()])
}

/// The loops on the way to a leaf that is executed in every turn of them; none where it stands in a condition.
fn path<'p>(p: &'p Program, stmts: &'p [Stmt], leaf: SpecId) -> Option<Vec<&'p StmtKind>> {
    let mut walk = p.walk(stmts);
    while let Some(step) = walk.next() {
        match step {
            Step::Enter(Stmt { kind: StmtKind::Spec(id), .. }) if *id == leaf => {
                let loops = walk.around().iter().map(|s| &s.kind);
                return Some(loops.filter(|k| matches!(k, StmtKind::For { .. })).collect());
            }
            Step::Enter(Stmt { kind: StmtKind::For { .. }, .. }) | Step::Leave(_) => {}
            Step::Enter(_) => walk.skip_inside(),
        }
    }
    None
}

/// Every turn of the loops, if they are known and not too many.
fn turns(loops: &[&StmtKind]) -> Option<Vec<Turn>> {
    let mut out = vec![Turn::new()];
    for kind in loops {
        let StmtKind::For { var, start, end, step, .. } = kind else { continue };
        let (Dim::Const(start), Dim::Const(end)) = (*start, *end) else { return None };
        let count = (end.checked_sub(start)?.max(0) as u64).div_ceil(u64::try_from(*step).ok()?);
        if count.checked_mul(out.len() as u64)? > MAX_TURNS {
            return None;
        }
        let values: Vec<i64> = (0..count as i64).map(|i| start + i * step).collect();
        out = out
            .into_iter()
            .flat_map(|turn| {
                values.iter().map(move |v| {
                    let mut next = turn.clone();
                    next.insert(*var, *v);
                    next
                })
            })
            .collect();
    }
    Some(out)
}

/// One operand of a row: places of the tile, by lane and value, in scalars.
struct Lanes {
    places: Vec<Vec<i64>>,
}

impl Lanes {
    fn new(p: &Program, t: TensorId, o: &AtomOperand) -> Option<Self> {
        let per = o.elem.scalars_per_unit(p.scalar_of(t))?;
        let place = |t: i64, v: i64| o.tv.at(t + o.n_threads() * (v / per)) * per + v % per;
        let lane = |t: i64| (0..o.n_values() * per).map(|v| place(t, v)).collect();
        Some(Lanes { places: (0..o.n_threads()).map(lane).collect() })
    }
}

fn group_fits(
    p: &Program,
    (fs, gs): (&Side<'_>, &Side<'_>),
    (s, d): (&Lanes, &Lanes),
    group: &[i64],
    turn: &Turn,
) -> Option<Result<(), Astray>> {
    // Which element of the enclosing Move stands at each place of the row's tile.
    let mut at: HashMap<i64, i64> = HashMap::new();
    for (lane, places) in s.places.iter().enumerate() {
        let elements = fs.elements(p, *group.get(lane)?, turn, places.len())?;
        for (place, element) in places.iter().zip(elements) {
            if let Some(other) = at.insert(*place, element)
                && fs.place(other) != fs.place(element)
            {
                return Some(Err(Astray::Lanes(*place)));
            }
        }
    }
    for (lane, places) in d.places.iter().enumerate() {
        let thread = *group.get(lane)?;
        let elements = gs.elements(p, thread, turn, places.len())?;
        for (v, (place, want)) in places.iter().zip(elements).enumerate() {
            let found = *at.get(place)?;
            if fs.place(want) != fs.place(found) {
                let at = |element: i64| coordinates(&gs.extents, element);
                let (want, found) = (at(want), at(found));
                return Some(Err(Astray::Element { at: (thread, v), want, found }));
            }
        }
    }
    Some(Ok(()))
}

/// `(3,17)`
fn coordinates(extents: &[i64], element: i64) -> String {
    let mut rest = element;
    let each: Vec<String> = extents
        .iter()
        .map(|n| {
            let at = rest % n.max(&1);
            rest /= n.max(&1);
            at.to_string()
        })
        .collect();
    format!("({})", each.join(","))
}

/// One side of the copy: thread and value to the column-major index in the enclosing Move's operand.
struct Side<'p> {
    tensor: &'p Tensor,
    layout: Layout,
    /// Of the enclosing operand's modes.
    extents: Vec<i64>,
    /// Where the enclosing operand begins.
    base: Dim,
    /// Address from there to index in the enclosing operand, for tensors in memory; one of several indices
    /// where modes of stride 0 give them one address.
    by_address: HashMap<i64, i64>,
    /// Index in the enclosing operand to address, for tensors in memory.
    addresses: Option<Layout>,
    /// Register to index, for distributed tensors.
    tv: Option<(Layout, HashMap<i64, i64>)>,
}

impl<'p> Side<'p> {
    fn new(p: &'p Program, leaf: TensorId, outer: TensorId) -> Option<Self> {
        let tensor = &p.tensors[leaf];
        let layout = tensor.concat().to_fixed()?;
        let o = &p.tensors[outer];
        let extents = crate::solve::ops::extents(p, outer)?;
        let mut side = Side {
            tensor,
            layout,
            extents,
            base: o.offset,
            by_address: HashMap::new(),
            addresses: None,
            tv: None,
        };
        if p.buffer_of(leaf).memory == Some(Memory::Rf) {
            // Registers of a part have numbers of the whole.
            let dist = o.dist.as_ref().filter(|d| d.ops.is_empty())?;
            let threads = &p.threads[dist.threads?];
            let order = threads.concat().to_fixed()?;
            let first = threads.offset.as_const()?;
            let index = (0..order.size()).map(|i| (first + order.at(i), i)).collect();
            side.tv = Some((dist.tv.as_ref()?.to_fixed()?, index));
            return Some(side);
        }
        let all = o.concat().to_fixed()?;
        if all.size() > MAX_TABLE {
            return None;
        }
        side.by_address = (0..all.size()).map(|i| (all.at(i), i)).collect();
        side.addresses = Some(all);
        Some(side)
    }

    /// What tells one element from another: elements at one address are one.
    fn place(&self, element: i64) -> i64 {
        self.addresses.as_ref().map_or(element, |a| a.at(element))
    }

    /// The first `n` values of a thread.
    fn elements(&self, p: &Program, thread: i64, turn: &Turn, n: usize) -> Option<Vec<i64>> {
        let at = |d: Dim| p.value_at(d, thread, turn);
        let offset = at(self.tensor.offset)?;
        match &self.tv {
            Some((tv, index)) => {
                let t = tv.mode(0).ok()?;
                let own = *index.get(&thread)?;
                let one = |v| tv.at(own + t.size() * (offset + self.layout.at(v)));
                Some((0..n as i64).map(one).collect())
            }
            None => {
                let offset = offset - at(self.base)?;
                let one = |v| self.by_address.get(&(offset + self.layout.at(v))).copied();
                (0..n as i64).map(one).collect()
            }
        }
    }
}
