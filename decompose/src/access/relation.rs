//! Checks that an atom moves or multiplies the elements that the spec around its leaf asks for
//! ([`check`]). A copy must name the same element in source and destination for all (t,v); a
//! product must name the same m, n and k in its factors and its output.
//!
//! Letters as in Hexcute, Fig. 19(a): p and q are the row's thread-value layouts of source and
//! destination, f and g those of the tensors. The law is f∘p⁻¹ = g∘q⁻¹, evaluated as a relation,
//! since p⁻¹ need not exist: whenever p(t,v) = q(t',v'), f(t,v) and g(t',v') must be the same
//! element of the Move around the leaf.
//!
//! The law can be evaluated under three conditions: the operands of the Move around the leaf are
//! the same buffers; a register tensor on one side has a thread-value layout; and addresses depend
//! only on the thread and on loops around the leaf once other loops and blocks have their first
//! values. Otherwise nothing is claimed, and the simulator judges.

use super::sum::{Sum, depends, variables};
use crate::access::matching::Mismatch;
use carbyne_atoms::{Atom, AtomOp, AtomOperand};
use carbyne_ir::expr::{Dim, VarId};
use carbyne_ir::layout::Layout;
use carbyne_ir::limits::MAX_BLOCK_THREADS;
use carbyne_ir::program::walk::Step;
use carbyne_ir::program::{Program, SpecId, Stmt, StmtKind, TensorId, ThreadsId, VarKind};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

/// The largest tensor whose addresses are tabulated.
const MAX_TABLE: i64 = 1 << 16;
/// The most turns of loops that are looked at one by one.
const MAX_TURNS: u64 = 64;

/// The first element that would go astray.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
enum Astray {
    /// One coordinate of the row's product would be two of the tensors'.
    #[error(
        "({},{}) ↦ {name} = {found} where other values of the instruction have {name} = {other}: \
         its {name} = {of_row} would be both",
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
    /// It moves with a loop or block around the spec that it is a part of otherwise than that.
    #[error(
        "with other values of {var} than {first} its view names other elements than the operand of \
         the {kind} around it"
    )]
    Moves { kind: String, var: String, first: i64 },
    /// A value stands elsewhere than in the operand of the spec that it is a part of.
    #[error("element ({},{}) lies outside of {of}, the operand of the spec around it", at.0, at.1)]
    Outside {
        /// Thread and value.
        at: (i64, usize),
        of: String,
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
        kind if kind.is_pointwise() => mapping(p, leaf, enclosing, atom),
        kind if kind.is_product() => product(p, leaf, enclosing, atom),
        _ => None,
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

/// A leaf with the spec around it that it is a part of: both their tensors, and who executes which
/// turns.
struct Part {
    own: Vec<TensorId>,
    of: Vec<TensorId>,
    groups: Vec<Vec<i64>>,
    turns: Vec<Turn>,
    /// The first turn again, with another value of each loop and block around by which the two move
    /// apart.
    apart: Vec<(VarId, Turn)>,
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
        let of = tensors(p, outer);
        let (turns, groups, apart) = match loops.and_then(|loops| turns(&loops)) {
            Some(turns) => {
                let first = turns.first().cloned().unwrap_or_default();
                let apart = apart(p, &own, &of, &first);
                (turns, groups, apart)
            }
            None => (vec![Turn::new()], groups.into_iter().take(1).collect(), vec![]),
        };
        Some(Part { own, of, groups, turns, apart })
    }

    /// Evaluates a relation in all turns, for the threads of each instruction.
    fn each(
        &self,
        p: &Program,
        leaf: SpecId,
        holds: impl Fn(&Turn, &[i64]) -> Option<Result<(), Astray>>,
    ) -> Option<Result<(), Astray>> {
        for turn in &self.turns {
            for group in &self.groups {
                if let Err(why) = holds(turn, group)? {
                    return Some(Err(why));
                }
            }
        }
        for (var, turn) in &self.apart {
            for group in &self.groups {
                let var = p.arena.var_info(*var);
                let leaves = || {
                    let kind = p.specs[leaf].kind.to_string();
                    Err(Astray::Moves { kind, var: var.name.clone(), first: var.lo })
                };
                // What holds in the first turn goes astray by what moves.
                if holds(turn, group).is_some_and(|found| found.is_err()) {
                    return Some(leaves());
                }
            }
        }
        Some(Ok(()))
    }
}

/// The first turn with a second value of each loop or block by which views move otherwise than the
/// operands that they are parts of.
fn apart(p: &Program, own: &[TensorId], of: &[TensorId], first: &Turn) -> Vec<(VarId, Turn)> {
    let offset = |t: &TensorId| p.tensors[*t].offset;
    let between = |(own, of)| p.arena.sub(offset(own), offset(of)).ok();
    let between = own.iter().zip(of).filter_map(between);
    let vars: BTreeSet<VarId> = between.flat_map(|d| variables(p, d)).collect();
    let moves = |var: &VarId| {
        matches!(p.vars.get(var), Some(VarKind::Loop | VarKind::Element(_) | VarKind::Block(_)))
            && !first.contains_key(var)
    };
    let second = |var: VarId| {
        let info = p.arena.var_info(var);
        let next = info.lo.checked_add(info.div.max(1))?;
        let turn = || first.iter().map(|(v, n)| (*v, *n)).chain([(var, next)]).collect();
        info.hi.is_none_or(|hi| next <= hi).then(|| (var, turn()))
    };
    vars.into_iter().filter(moves).filter_map(second).collect()
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
        let fits = |turn: &Turn, group: &[i64]| group_fits((&fs, &gs), (&s, &d), group, turn);
        if let Err(why) = part.each(p, leaf, fits)? {
            return Some(Err(why));
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
    part.each(p, leaf, |turn, group| multiplies(&sides, group, turn))
}

/// Whether each coordinate of a row's product is one of the tensors', of one instruction.
fn multiplies(sides: &[Factor<'_>], group: &[i64], turn: &Turn) -> Option<Result<(), Astray>> {
    let mut known: [Vec<Option<i64>>; 3] = Default::default();
    let dims = [[0, 2], [2, 1], [0, 1]];
    for ((side, lanes, inner, outer), dims) in sides.iter().zip(dims) {
        let moved = side.offset.of_turn(side.p, turn)?;
        for (lane, places) in lanes.places.iter().enumerate() {
            let thread = *group.get(lane)?;
            let elements = side.elements(thread, (turn, moved), places.len())?;
            for (v, (place, element)) in places.iter().zip(elements).enumerate() {
                let Some(element) = element else { return Some(Err(side.outside((thread, v)))) };
                let of_row = [place % inner, place / inner];
                let of_tensor = [element % outer, element / outer];
                for (i, dim) in dims.iter().enumerate() {
                    let at = usize::try_from(of_row[i]).ok()?;
                    let known = &mut known[*dim];
                    if known.len() <= at {
                        known.resize(at + 1, None);
                    }
                    let other = *known[at].get_or_insert(of_tensor[i]);
                    if other != of_tensor[i] {
                        return Some(Err(Astray::Coordinate {
                            at: (thread, v),
                            name: ["m", "n", "k"][*dim],
                            found: of_tensor[i],
                            other,
                            of_row: of_row[i],
                        }));
                    }
                }
            }
        }
    }
    Some(Ok(()))
}

/// An operand of a product: its elements, its row's, and the extents of the first modes of the
/// row's and of its own.
type Factor<'p> = (Side<'p>, Lanes, i64, i64);

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

/// The loops on the way to a leaf that is executed in every turn of them; none where it stands in a
/// condition.
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
    (fs, gs): (&Side<'_>, &Side<'_>),
    (s, d): (&Lanes, &Lanes),
    group: &[i64],
    turn: &Turn,
) -> Option<Result<(), Astray>> {
    let moved = (fs.offset.of_turn(fs.p, turn)?, gs.offset.of_turn(gs.p, turn)?);
    // Which element of the enclosing Move stands at each place of the row's tile.
    let all = s.places.iter().flatten().copied().max().and_then(|last| usize::try_from(last).ok());
    let mut at: Vec<Option<i64>> = vec![None; all.map_or(0, |last| last + 1)];
    for (lane, places) in s.places.iter().enumerate() {
        let thread = *group.get(lane)?;
        let elements = fs.elements(thread, (turn, moved.0), places.len())?;
        for (v, (place, element)) in places.iter().zip(elements).enumerate() {
            let Some(element) = element else { return Some(Err(fs.outside((thread, v)))) };
            if let Some(other) = at.get_mut(usize::try_from(*place).ok()?)?.replace(element)
                && fs.place(other) != fs.place(element)
            {
                return Some(Err(Astray::Lanes(*place)));
            }
        }
    }
    for (lane, places) in d.places.iter().enumerate() {
        let thread = *group.get(lane)?;
        let elements = gs.elements(thread, (turn, moved.1), places.len())?;
        for (v, (place, want)) in places.iter().zip(elements).enumerate() {
            let Some(want) = want else { return Some(Err(gs.outside((thread, v)))) };
            let found = at.get(usize::try_from(*place).ok()?).copied().flatten()?;
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

/// Addresses of a tensor's elements. Where tiles reach over the end of a mode, elements outside
/// have addresses of others; so each coordinate along a bounded mode counts, too.
struct Numbers {
    layouts: Vec<(Layout, i64)>,
    /// Of element zero.
    first: Dim,
}

impl Numbers {
    fn at(&self, i: i64) -> Option<i64> {
        self.layouts
            .iter()
            .try_fold(0i64, |sum, (l, weight)| sum.checked_add(l.at(i).checked_mul(*weight)?))
    }
}

fn apart_by_bounds(p: &Program, t: TensorId) -> Option<Numbers> {
    /// Numbers of which no small multiples add up to each other, each more than the addresses that
    /// a tile spans.
    const APART: [i64; 8] = [
        0x1a3_5f2b_97d1,
        0x1f0_94c6_3ae5,
        0x14b_e871_05cf,
        0x1c9_2d3e_f60b,
        0x16e_07b9_8d47,
        0x1e7_5a14_c2f9,
        0x128_c9fd_3b61,
        0x1b6_81e5_70a3,
    ];
    let tensor = &p.tensors[t];
    let mut layouts = vec![(tensor.concat().to_fixed()?, 1)];
    let mut first = tensor.offset;
    if tensor.bounds.len() > APART.len() {
        return None;
    }
    for (bound, weight) in tensor.bounds.iter().zip(APART) {
        layouts.push((bound.concat().to_fixed()?, weight));
        let own = p.arena.mul(bound.offset, Dim::Const(weight)).ok()?;
        first = p.arena.add(first, own).ok()?;
    }
    Some(Numbers { layouts, first })
}

/// One side of the copy: thread and value to the column-major index in the enclosing Move's
/// operand.
struct Side<'p> {
    p: &'p Program,
    /// The enclosing operand.
    of: TensorId,
    /// Where each value of a thread stands from its first.
    values: Vec<i64>,
    /// Of the enclosing operand's modes.
    extents: Vec<i64>,
    /// Where a thread's first value stands, from the first of the enclosing operand.
    offset: Offset,
    found: Elements,
}

/// How places become indices in the enclosing operand.
enum Elements {
    /// Of a tensor in memory.
    Memory {
        /// Address from the first of the enclosing operand to index; one of several where modes of
        /// stride 0 give them one address.
        by_address: HashMap<i64, i64>,
        /// Index to address.
        addresses: Vec<i64>,
    },
    /// Of registers: their number to index.
    Registers {
        /// For each thread in the order of the tensor, register by register.
        tv: Vec<i64>,
        /// Place of each thread in that order.
        index: HashMap<i64, i64>,
        /// How many threads the order counts: those of a group, where each has a tensor of its own.
        threads: i64,
    },
}

impl<'p> Side<'p> {
    fn new(p: &'p Program, leaf: TensorId, outer: TensorId) -> Option<Self> {
        let tensor = &p.tensors[leaf];
        let layout = tensor.concat().to_fixed()?;
        let o = &p.tensors[outer];
        let extents = crate::access::ops::extents(p, outer)?;
        // Bounds that one of them has alone say nothing of the elements of the other.
        if tensor.bounds.len() != o.bounds.len() {
            return None;
        }
        let (own, all) = (apart_by_bounds(p, leaf)?, apart_by_bounds(p, outer)?);
        let count = layout.size().min(MAX_TABLE);
        let values = (0..count).map(|v| own.at(v)).collect::<Option<_>>()?;
        let found = if p.buffer_of(leaf).is_per_thread() {
            // Registers of a part have numbers of the whole.
            let dist = o.dist.as_ref().filter(|d| d.ops.is_empty())?;
            let threads = &p.threads[dist.threads?];
            let groups = threads.own_groups()?;
            let index = groups.into_iter().flat_map(|group| group.into_iter().zip(0..)).collect();
            let tv = dist.tv.as_ref()?.to_fixed()?;
            if tv.size() > MAX_TABLE {
                return None;
            }
            let threads = tv.mode(0).ok()?.size();
            let tv = (0..tv.size()).map(|i| tv.at(i)).collect();
            Elements::Registers { tv, index, threads }
        } else {
            let size = o.concat().to_fixed()?.size();
            if size > MAX_TABLE {
                return None;
            }
            let addresses: Vec<i64> = (0..size).map(|i| all.at(i)).collect::<Option<_>>()?;
            let by_address = addresses.iter().zip(0..).map(|(at, i)| (*at, i)).collect();
            Elements::Memory { by_address, addresses }
        };
        let offset = match &found {
            Elements::Memory { .. } => p.arena.sub(own.first, all.first).ok()?,
            Elements::Registers { .. } => tensor.offset,
        };
        Some(Side { p, of: outer, values, extents, offset: Offset::new(p, offset), found })
    }

    /// What tells one element from another: elements at one address are one.
    fn place(&self, element: i64) -> i64 {
        match &self.found {
            Elements::Memory { addresses, .. } => {
                addresses.get(element as usize).copied().unwrap_or(element)
            }
            Elements::Registers { .. } => element,
        }
    }

    fn outside(&self, at: (i64, usize)) -> Astray {
        Astray::Outside { at, of: self.p.tensor_name(self.of) }
    }

    /// The first `n` values of a thread, in a turn that has moved it so far; none for what is not
    /// in the operand.
    fn elements(
        &self,
        thread: i64,
        (turn, moved): (&Turn, i64),
        n: usize,
    ) -> Option<impl Iterator<Item = Option<i64>>> {
        let from = moved.checked_add(self.offset.of_thread(self.p, thread, turn)?)?;
        let values = self.values.get(..n)?.iter();
        let (mut own, mut step) = (0, 1);
        match &self.found {
            Elements::Registers { index, threads, .. } => {
                (own, step) = (*index.get(&thread)?, *threads);
            }
            Elements::Memory { .. } => {}
        }
        Some(values.map(move |v| {
            let at = from.checked_add(*v)?;
            match &self.found {
                Elements::Registers { tv, .. } => {
                    let at = own.checked_add(step.checked_mul(at)?)?;
                    tv.get(usize::try_from(at).ok()?).copied()
                }
                Elements::Memory { by_address, .. } => by_address.get(&at).copied(),
            }
        }))
    }
}

/// An expression as the sum of what depends on the thread alone, which is evaluated once for each,
/// of what depends on turns of loops alone, and of what depends on both.
struct Offset {
    of_threads: Sum,
    known: RefCell<Vec<Option<i64>>>,
    of_turns: Sum,
    rest: Sum,
}

impl Offset {
    fn new(p: &Program, d: Dim) -> Self {
        let uses_turns = |d: Dim| depends(p, d).loops || depends(p, d).block;
        let (of_thread, of_turns) = Sum::of(p, d).split(|d| depends(p, d).thread);
        let (rest, of_threads) = Sum { constant: 0, terms: of_thread }.split(uses_turns);
        let rest = Sum { constant: 0, terms: rest };
        Offset { of_threads, known: RefCell::default(), of_turns, rest }
    }

    fn of_turn(&self, p: &Program, turn: &Turn) -> Option<i64> {
        self.of_turns.value(|d| p.value_at(d, 0, turn))
    }

    fn of_thread(&self, p: &Program, thread: i64, turn: &Turn) -> Option<i64> {
        let rest = self.rest.value(|d| p.value_at(d, thread, turn))?;
        let at = usize::try_from(thread).ok().filter(|at| *at < MAX_BLOCK_THREADS as usize)?;
        let mut known = self.known.borrow_mut();
        if known.len() <= at {
            known.resize(at + 1, None);
        }
        if known[at].is_none() {
            known[at] = self.of_threads.value(|d| p.value_at(d, thread, turn));
        }
        known[at]?.checked_add(rest)
    }
}
