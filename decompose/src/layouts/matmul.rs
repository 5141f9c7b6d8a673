//! Lists the ways to implement a MatMul ([`options`]): every row that multiplies the types, with
//! every spread of groups of threads over M, N and K.
//!
//! Rows that read factors from shared memory by descriptors take them where they lie
//! ([`described`]); the others multiply registers.

use super::canonical::{self, Demand};
use super::digits::{reordered, same};
use super::exchange;
use super::tv::{Gemm, flat, join};
use super::want::Want;
use super::work::rearranging;
use crate::access::matching;
use crate::access::matching::Mismatch;
use crate::access::matmul_atoms::{is_described, matmul_rows};
use crate::access::ops;
use crate::access::ops::Known;
use crate::access::ops::Op;
use crate::cost::constants::{SPILL_CYCLES, UNSPILLED};
use crate::cost::work::Work;
pub(crate) use crate::plan::matmul::Choice;
use carbyne_atoms::{Atom, AtomOp, AtomTable, limits};
use carbyne_ir::ast::{BinaryOp, Key, SpecKind, SyncOp};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{Program, Spec, SpecId, Stmt, StmtKind, TensorId};
use carbyne_ir::scalar::{Memory, Scalar};

/// One way, with what follows from it.
#[derive(Clone, Debug)]
pub(crate) struct Option3 {
    pub(crate) choice: Choice,
    /// f_a, f_b, f_c; none for a factor in shared memory.
    pub(super) layouts: [Option<Layout>; 3],
    /// Operands that must be brought into these layouts first.
    pub(super) wants: Vec<Want>,
    /// Cycles of one execution by one warp, roughly.
    pub(super) cost: f64,
    /// Cycles of the detours.
    pub(super) detours: f64,
}

/// Bytes of shared memory that the exchange of partial sums may take.
const MOST_PARTIAL: i64 = 1 << 15;

/// Ways to spread groups over M, N and K; without partial sums first.
fn spreads(groups: i64) -> impl Iterator<Item = (i64, i64, i64)> {
    let divisors = move |n: i64| (1..=n).filter(move |d| n % d == 0);
    divisors(groups).flat_map(move |k| {
        let each = groups / k;
        divisors(each).map(move |m| (m, each / m, k))
    })
}

/// Where the groups of an atom stand among so many threads: from (thread of a group, group) to the
/// thread. Groups that are no neighbors, as quad-pairs, fill what others leave.
pub(super) fn placed(atom: &Atom, threads: i64) -> Option<Layout> {
    let own = &atom.thread_layout;
    let all = join(&[own.clone(), own.complement(threads).ok()?]).ok()?;
    all.is_bijective_onto(threads).then_some(all)
}

/// A layout over (thread of a group, group) as one over the threads, or the other way round where
/// `order` is the inverse.
pub(super) fn over(layout: &Layout, order: &Layout) -> Option<Layout> {
    let threads = layout.mode(0).ok()?.compose(order).ok()?;
    Layout::concat(&[threads, layout.mode(1).ok()?]).ok()
}

/// Every way that agrees with what is known, those without detours first, then by cost.
pub(super) fn options(
    p: &Program,
    table: &AtomTable,
    op: &Op,
    known: &Known,
) -> Result<Vec<Option3>, Box<Diagnostic>> {
    let (id, threads) = (op.spec, op.group.threads);
    let spec = &p.specs[id];
    let fail = |code, message: String, help: &str| {
        Err(Box::new(Diagnostic::new(code, spec.span, message).help(help)))
    };
    let tensors: Vec<TensorId> = spec.input_tensors().chain(spec.outputs.iter().copied()).collect();
    let [a, b, c] = tensors[..] else {
        return fail(Code::NoAtom, "a MatMul has three operands".into(), "correct it");
    };
    let (sa, sb, sc) = (p.scalar_of(a), p.scalar_of(b), p.scalar_of(c));
    if [a, b].into_iter().any(|t| in_shared(p, t)) {
        return Ok(described(p, table, op, known));
    }
    let rows = matmul_rows(table, sa, sb, sc);
    if rows.is_empty() {
        return Err(Box::new(no_rows(p, table, id)));
    }
    let (ea, ec) = (ops::extents(p, a), ops::extents(p, c));
    let (Some(&[_, k]), Some(&[m, n])) = (ea.as_deref(), ec.as_deref()) else {
        return fail(
            Code::NoAtom,
            "only MatMuls of two modes and known sizes are decomposed".into(),
            "index the batch in a loop: `%A[b, _, _]`; and give sizes as numbers or with `let`",
        );
    };
    if let Some(atom) = spec.atom.as_ref().and_then(|name| table.get(name))
        && !rows.iter().any(|r| r.name == atom.name)
    {
        return Err(Box::new(not_by(p, id, atom, &rows)));
    }
    let pin = pinned(spec);
    let mut found = vec![];
    let mut clash = false;
    for atom in &rows {
        let AtomOp::MatMul { m: im, n: inn, k: ik, .. } = atom.op else { continue };
        let groups = threads / atom.group;
        if groups < 1
            || threads % atom.group != 0
            || spec.atom.as_ref().is_some_and(|name| name != atom.name)
        {
            continue;
        }
        for spread in spreads(groups) {
            let gemm = Gemm { inst: (im, inn, ik), block: (m, n, k), groups: spread };
            let Some((rm, rn, _)) = gemm.rest() else { continue };
            // Partial sums are exchanged: by whole warps that fit into shared memory and are added.
            let slots = atom.operands[2].n_values() * rm * rn * threads;
            let sums = slots.saturating_mul(sc.bits()) / 8 <= MOST_PARTIAL
                && atom.group == 32
                && table
                    .implementing(SpecKind::Binary(BinaryOp::Add))
                    .any(|a| a.operands.iter().all(|o| o.is_of(sc)));
            if pin.is_some_and(|w| w != spread) || (spread.2 > 1 && !sums) {
                continue;
            }
            match option(p, table, id, atom, gemm, [a, b, c], known) {
                Some(o) => found.push(o),
                None => clash = true,
            }
        }
    }
    if found.is_empty() {
        let pinned = spec.atom.as_ref();
        let rows: Vec<&Atom> =
            rows.into_iter().filter(|r| pinned.is_none_or(|name| *name == r.name)).collect();
        let names: Vec<String> = rows.iter().map(|r| format!("`{}`", r.name)).collect();
        let names = names.join(" or ");
        if clash {
            return fail(
                Code::PinsConflict,
                format!("the thread-value layouts of the operands fit none of {names}"),
                "leave some or all of them open",
            );
        }
        let (label, help) = unfit(&rows, (m, n, k), threads, pin);
        let message = format!("{threads} threads do not tile a MatMul of {m}x{n}x{k} with {names}");
        let d = Diagnostic::new(Code::PinsConflict, spec.span, message);
        return Err(Box::new(d.label(label).help(help)));
    }
    found.sort_by(|x, y| x.wants.len().cmp(&y.wants.len()).then(x.cost.total_cmp(&y.cost)));
    // A block has many quad-pairs: of the ways to spread them over M and N the cheapest of each
    // row.
    let mut taken = vec![];
    found.retain(|o| {
        let atom = table.get(o.choice.atom);
        let neighbors = atom.is_none_or(|a| a.thread_layout.cosize() == a.group);
        let first = !taken.contains(&o.choice.atom);
        taken.push(o.choice.atom);
        neighbors || first
    });
    Ok(found)
}

/// The warps along M, N and K that a spec names.
fn pinned(spec: &Spec) -> Option<(i64, i64, i64)> {
    match spec.ints(Key::Warps) {
        Some([m, n]) => Some((*m, *n, 1)),
        Some([m, n, k]) => Some((*m, *n, *k)),
        _ => None,
    }
}

fn in_shared(p: &Program, t: TensorId) -> bool {
    p.buffer_of(t).is_shared()
}

/// Every way to multiply factors that lie in shared memory, the second or both, into registers: by
/// instructions that read them there. Of those along N the widest that divides the tile, since each
/// reads its part of A again.
pub(crate) fn described(p: &Program, table: &AtomTable, op: &Op, known: &Known) -> Vec<Option3> {
    let spec = &p.specs[op.spec];
    let tensors: Vec<TensorId> = spec.input_tensors().chain(spec.outputs.iter().copied()).collect();
    let [a, b, c] = tensors[..] else { return vec![] };
    let memory = |t: TensorId| p.buffer_of(t).memory;
    let (ea, ec) = (ops::extents(p, a), ops::extents(p, c));
    let (Some(&[_, k]), Some(&[m, n])) = (ea.as_deref(), ec.as_deref()) else { return vec![] };
    if !in_shared(p, b) || !memory(c).is_some_and(Memory::is_per_thread) {
        return vec![];
    }
    let scalars = [p.scalar_of(a), p.scalar_of(b), spec.acc.unwrap_or(p.scalar_of(c))];
    let fits = |atom: &&Atom| {
        let mut operands = atom.operands.iter().zip([a, b, c]);
        is_described(atom, scalars, in_shared(p, a))
            && operands.all(|(o, t)| memory(t).is_some_and(|memory| o.allows(memory)))
            && spec.atom.as_ref().is_none_or(|name| *name == atom.name)
            && op.group.first % atom.group == 0
            && op.group.threads % atom.group == 0
    };
    let mut rows: Vec<(&Atom, (i64, i64, i64))> = vec![];
    for atom in table.implementing(SpecKind::MatMul).filter(fits) {
        if let AtomOp::MatMul { l: 1, m, n, k } = atom.op {
            rows.push((atom, (m, n, k)));
        }
    }
    rows.sort_by_key(|(_, (_, n, _))| std::cmp::Reverse(*n));
    let (mut found, mut taken) = (vec![], vec![]);
    for (atom, inst) in rows {
        let groups = op.group.threads / atom.group;
        for spread in spreads(groups).filter(|(_, _, k)| *k == 1) {
            let warps = (spread.0 * atom.group / ops::WARP, spread.1, 1);
            let gemm = Gemm { inst, block: (m, n, k), groups: spread };
            if pinned(spec).is_some_and(|own| own != warps)
                || taken.contains(&spread)
                || gemm.rest().is_none()
            {
                continue;
            }
            if let Some(o) = option(p, table, op.spec, atom, gemm, [a, b, c], known) {
                taken.push(spread);
                found.push(o);
            }
        }
    }
    found.sort_by(|x, y| x.wants.len().cmp(&y.wants.len()).then(x.cost.total_cmp(&y.cost)));
    found
}

/// Whether the text waits for the asynchronous instructions of a MatMul: behind it, in the same
/// block, stands such a wait.
pub(crate) fn is_waited_for(p: &Program, id: SpecId) -> bool {
    let waits = |stmt: &Stmt| matches!(&stmt.kind, StmtKind::Sync(s) if s.op == SyncOp::WgmmaWait);
    let is_own = |stmt: &Stmt| matches!(stmt.kind, StmtKind::Spec(own) if own == id);
    let mut todo: Vec<&[Stmt]> = p.kernels.iter().map(|kernel| body_of(p, *kernel)).collect();
    while let Some(list) = todo.pop() {
        if let Some(at) = list.iter().position(is_own) {
            return list[at + 1..].iter().any(waits);
        }
        for stmt in list {
            match &stmt.kind {
                StmtKind::For { body, .. } => todo.push(body),
                StmtKind::If { then, otherwise, .. } => todo.extend([&then[..], &otherwise[..]]),
                StmtKind::Spec(inner) => todo.push(body_of(p, *inner)),
                StmtKind::Allocate(_)
                | StmtKind::Indices(_)
                | StmtKind::Element { .. }
                | StmtKind::Step { .. }
                | StmtKind::Barrier(_)
                | StmtKind::Sync(_) => {}
            }
        }
    }
    false
}

fn body_of(p: &Program, id: SpecId) -> &[Stmt] {
    p.specs[id].body.as_deref().unwrap_or_default()
}

/// Whether threads write a tensor in shared memory, and not bulk copies alone.
fn written_by_threads(p: &Program, t: TensorId) -> bool {
    let own = p.tensors[t].buffer;
    let writes = |spec: &Spec| {
        spec.body.is_none()
            && spec.bar.is_none()
            && spec.outputs.iter().any(|o| p.tensors[*o].buffer == own)
    };
    p.specs.iter().any(|(_, spec)| writes(spec))
}

fn option(
    p: &Program,
    table: &AtomTable,
    id: SpecId,
    atom: &Atom,
    gemm: Gemm,
    tensors: [TensorId; 3],
    known: &Known,
) -> Option<Option3> {
    let rows = &atom.operands;
    let (gm, gn, gk) = gemm.groups;
    let mut nested = gemm.nested(&rows[0].tv, &rows[1].tv, &rows[2].tv).ok()?;
    let order = placed(atom, atom.group * gm * gn * gk)?;
    if order.coalesce().leaves().len() > 1 {
        let inverse = order.right_inverse();
        for l in &mut nested {
            *l = over(l, &inverse)?;
        }
    }
    let mut maps = vec![];
    let mut layouts: Vec<Option<Layout>> = vec![];
    let mut wants = vec![];
    let mut detours = 0.0;
    let mut fenced = false;
    for (i, (wanted, t)) in nested.iter().zip(tensors).enumerate() {
        if rows[i].matrix_rule().is_some() {
            if !canonical::is_served(p, &Demand::new(t, &rows[i])?) {
                return None;
            }
            fenced |= written_by_threads(p, t);
            maps.push(None);
            layouts.push(None);
            continue;
        }
        let own = flat(wanted).ok()?;
        let buffer = p.tensors[t].buffer;
        // A tensor that is both factors has one layout.
        let other = (i == 1 && p.tensors[tensors[0]].buffer == buffer && wants.is_empty())
            .then(|| layouts.first().cloned().flatten())
            .flatten();
        let fixed = known.get(&buffer).or(other.as_ref());
        let map = reordered(fixed.unwrap_or(&own), wanted);
        match (map, i) {
            (Some(map), _) => {
                layouts.push(Some(fixed.cloned().unwrap_or(own)));
                maps.push(Some(map));
            }
            (None, 2) => return None,
            (None, input) => {
                let lanes = fixed.and_then(|f| exchange::cheaper(p, table, t, f, &own));
                detours += lanes.as_ref().map_or_else(|| rearranging(p, t), |c| c.cycles(table));
                let by_lanes = lanes.map(|c| c.output);
                wants.push(Want::Rearranged { spec: id, input, by_lanes });
                maps.push(Some(reordered(&own, wanted)?));
                layouts.push(Some(own));
            }
        }
    }
    let waits = maps.iter().all(Option::is_some) || !is_waited_for(p, id);
    let maps: [Option<Layout>; 3] = maps.try_into().ok()?;
    let layouts: [Option<Layout>; 3] = layouts.try_into().ok()?;
    let scalars: Vec<(Option<&Layout>, Scalar)> =
        layouts.iter().zip(tensors).map(|(l, t)| (l.as_ref(), p.scalar_of(t))).collect();
    let sum = scalars[2].1;
    let (im, inn, ik) = gemm.inst;
    let of_factor = |i: usize| match maps[i] {
        Some(_) => 0,
        None => [im, inn][i] * ik * p.scalar_of(tensors[i]).bits() / 8,
    };
    let read = of_factor(0) + of_factor(1);
    let partial = partial(&gemm, rows[2].n_values(), sum, table);
    let cost = cycles(&gemm, atom, &scalars) + partial.map_or(0.0, |w| w.completion) + detours;
    Some(Option3 {
        choice: Choice { atom: atom.name, gemm, maps, waits, fenced, sum, read },
        layouts,
        wants,
        cost,
        detours,
    })
}

/// What the exchange of partial sums costs; none where there are none. `values` of one instruction.
pub(super) fn partial(gemm: &Gemm, values: i64, sum: Scalar, table: &AtomTable) -> Option<Work> {
    let (gm, gn, gk) = gemm.groups;
    let (rm, rn, _) = gemm.rest().filter(|_| gk > 1)?;
    let t = &limits(table.arch).timing;
    let (n, warps) = ((values * rm * rn) as f64, (gm * gn * gk) as f64);
    let words = n * warps * (sum.bits() as f64 / 32.0).max(1.0);
    let adds = n * warps * (gk + 1) as f64;
    Some(Work {
        instructions: words * (gk + 1) as f64 + adds,
        issue: words * (gk + 1) as f64 + adds,
        wavefronts: words * (gk + 1) as f64,
        completion: t.shared_store_cycles + t.shared_load_cycles + n * gk as f64 * 4.0,
        ..Work::default()
    })
}

/// Whether the layouts are known to be the same.
pub(super) fn agrees(known: &Known, p: &Program, t: TensorId, tv: &Layout) -> bool {
    known.get(&p.tensors[t].buffer).is_none_or(|k| same(k, tv))
}

/// The error for element types that no row multiplies.
fn no_rows(p: &Program, table: &AtomTable, id: SpecId) -> Diagnostic {
    let rejected: Vec<(&'static str, Mismatch)> = table
        .implementing(p.specs[id].kind)
        .filter_map(|atom| Some((atom.name, matching::match_atom(p, id, &[], atom).err()?)))
        .collect();
    matching::no_atom(p, id, table, &rejected)
}

/// Why no row tiles the block for so many threads, and what would let one.
fn unfit(
    rows: &[&Atom],
    block: (i64, i64, i64),
    threads: i64,
    pin: Option<(i64, i64, i64)>,
) -> (String, String) {
    let inst = |atom: &Atom| atom.op.matmul_extents().map_or((1, 1, 1), |(_, m, n, k)| (m, n, k));
    let odd = |atom: &Atom| -> Vec<(&str, i64, i64)> {
        let i = inst(atom);
        let all = [("M", block.0, i.0), ("N", block.1, i.1), ("K", block.2, i.2)];
        all.into_iter().filter(|(_, size, i)| size % i != 0).collect()
    };
    let volume = |a: &Atom| {
        let (m, n, k) = inst(a);
        m * n * k
    };
    let Some(atom) = rows.iter().min_by_key(|a| (odd(a).len(), volume(a))) else {
        return (String::new(), "write its body".to_owned());
    };
    let (odd, (im, inn, ik)) = (odd(atom), inst(atom));
    if !odd.is_empty() {
        let said = odd.iter().map(|(n, size, i)| format!("{n} = {size} is not a multiple of {i}"));
        let label = said.collect::<Vec<_>>().join(", ");
        return (label, format!("make the tile a multiple of {im}x{inn}x{ik}, padded with zeros"));
    }
    if threads % atom.group != 0 {
        let label = format!("`{}` is executed by {} threads", atom.name, atom.group);
        return (label, format!("give the block a multiple of {} threads", atom.group));
    }
    let warps = threads / atom.group;
    let each = format!("({}, {}, {})", block.0 / im, block.1 / inn, block.2 / ik);
    let label = match pin {
        Some((m, n, k)) => {
            format!("there are {each} instructions along M, N, K for `warps=({m},{n},{k})`")
        }
        None => {
            format!("there are {each} instructions along M, N, K for {warps} groups of threads")
        }
    };
    let help = "choose a number of threads, or `warps=`, whose parts along M, N and K divide these";
    (label, help.to_owned())
}

/// The error for a pinned row that multiplies no registers of these types.
fn not_by(p: &Program, id: SpecId, atom: &Atom, rows: &[&Atom]) -> Diagnostic {
    let from = Mismatch::from_memory(atom);
    let of_tile = |m: &Mismatch| matches!(m, Mismatch::Op { .. } | Mismatch::Scalar { .. });
    let types = matching::match_atom(p, id, &[], atom).err().filter(of_tile);
    let other = Mismatch::Op { want: "it by threads that are not neighbors".to_owned() };
    let d = matching::not_by(p, id, atom.name, &types.or(from).unwrap_or(other));
    let can: Vec<String> = rows.iter().map(|r| format!("`atom={}`", r.name)).collect();
    match (rows, p.specs[id].word(Key::Atom)) {
        ([first, ..], Some(word)) => {
            d.better(format!("write {}", can.join(" or "))).edit(word, first.name)
        }
        _ => d,
    }
}

/// Cycles of one execution by one warp: multiplications and the loads of both factors, with a
/// penalty where registers would spill.
fn cycles(gemm: &Gemm, atom: &Atom, tensors: &[(Option<&Layout>, Scalar)]) -> f64 {
    let Some((rm, rn, rk)) = gemm.rest() else { return f64::INFINITY };
    let warps = 32.0 / atom.group as f64;
    let multiply = (rm * rn * rk) as f64 * atom.cost.issue_cycles / warps;
    let registers = |(l, s): &(Option<&Layout>, Scalar)| {
        l.and_then(|l| l.mode(1).ok()).map_or(0, |v| v.size()) * s.bits() / 32
    };
    let each: Vec<i64> = tensors.iter().map(registers).collect();
    // A warp of 32 threads loads one 32-bit register a thread per wavefront of shared memory.
    let loads = each[..2].iter().sum::<i64>() as f64;
    let spill = (each.iter().sum::<i64>() - UNSPILLED).max(0) as f64 * SPILL_CYCLES;
    multiply + loads + spill
}
