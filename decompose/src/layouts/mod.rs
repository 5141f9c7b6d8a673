//! Solves a tile-level body ([`solve`]): thread-value layouts, shared-memory layouts, instructions.
//!
//! The search (Hexcute, algorithm 1, with backtracking over every choice) has five steps:
//!
//! 1. MatMuls are anchors: atom and spread of the threads over the block, cheapest first; Fig.
//!    19(b) gives f_a, f_b, f_c. A MatMul that follows another accepts the known layouts of its
//!    operands in any order of values.
//! 2. Layouts spread through operations between registers: equal, repeated or projected (Fig.
//!    19(c), (d)). A part of a tensor is spread as its tensor is ([`views`]).
//! 3. Layouts that are then open are anchored by the largest copy, from or to global memory if
//!    there is one.
//! 4. With all registers known, every copy gets candidates, one per row, with the other side by
//!    Fig. 19(a). Each shared tensor gets the choice whose runs unify and that costs least, by
//!    counted conflicts.
//! 5. A leaf of the search is ranked by its detours ([`Detours`] says in which order), and costed
//!    ([`cost`], [`crate::cost`]). A branch that cannot be better is left out.
//!
//! If a module cannot be solved as it is written, the solver asks for a [`Want`]: a copy through
//! registers, a detour by exchanges between lanes or through shared memory. The module is rewritten
//! so and solved again.
//!
//! [`solver`] holds the state that the steps share: [`shapes`] asks for detours that are needed in
//! any case, [`search`] branches, [`spread`] spreads known register layouts, [`leaf`] and
//! [`memory`] choose the rest. [`crate::plan::solution`] is the result.
//!
//! Invariant: every layout that a person wrote stands in the solution as written, or the solver
//! says which of them cannot hold.

mod banks;
pub(crate) mod calls;
pub(crate) mod canonical;
pub(crate) mod certificate;
pub mod copy;
pub(crate) mod cost;
pub(crate) mod digits;
pub(crate) mod exchange;
mod held;
mod idle;
mod leaf;
pub(crate) mod matmul;
mod memory;
mod offset;
pub(crate) mod other_tensors;
mod partial;
mod parts;
pub(crate) mod pointwise;
pub(crate) mod reduce;
mod search;
mod shapes;
mod shared;
pub mod smem;
pub(crate) mod solver;
mod spills;
mod spread;
pub(crate) mod state;
pub mod tv;
mod uneven;
mod unfit;
pub(crate) mod views;
pub(crate) mod want;
pub(crate) mod work;

use crate::access::ops;
use crate::plan::solution::{Leaf, Placement, Solution};
pub(crate) use solver::Search;
pub(crate) use state::Detours;
use want::Want;

use crate::cost::Costing;
use crate::cost::steady::Grid;
use carbyne_atoms::{AtomTable, machine};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{Program, SpecId};
use solver::Solver;
use state::Finished;

/// What became of a kernel.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// Everything is chosen.
    Solved(Box<Solution>),
    /// To be rewritten and solved again.
    Wants(Vec<Want>),
}

/// What a search has seen.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Looked {
    /// Cycles of the best choice, those of its detours roughly.
    pub cycles: f64,
    /// Whether a choice with more detours than that may be cheaper.
    pub others: bool,
}

impl Looked {
    /// Adds another kernel.
    pub(crate) fn add(&mut self, other: Looked) {
        self.cycles += other.cycles;
        self.others |= other.others;
    }
}

/// Solves the tile operations of a kernel. The solution of a kernel without any is empty.
///
/// # Errors
/// The first operation that cannot be implemented, with the nearest atoms; pins that conflict; a
/// budget that was too small.
pub(crate) fn solve(
    p: &Program,
    kernel: SpecId,
    table: &AtomTable,
    (search, detours): (Search, Detours),
) -> Result<(Outcome, Looked), Box<Diagnostic>> {
    let ops = ops::collect(p, kernel);
    let machine = search
        .sms
        .map_or_else(|| machine(table.arch), |sms| machine(table.arch).with_sms(i64::from(sms)));
    let costing = Costing::new(p, kernel, table, &machine);
    if ops.is_empty() {
        let mut out = Solution::default();
        out.estimates.extend(costing.least().map(|e| (kernel, e)));
        return Ok((Outcome::Solved(Box::new(out)), Looked::default()));
    }
    let held = held::by(p, &ops)?;
    let parts = parts::split(p, &ops);
    let mut s = Solver::new(p, &costing, table, (search, detours), &ops, &held);
    s.calls = !calls::keeps_factor(p, kernel, table, None);
    s.check_block()?;
    let wants = s.shapes()?;
    if !wants.is_empty() {
        return Ok((Outcome::Wants(wants), Looked::default()));
    }
    // Where factors cannot be read as they lie in shared memory, they go through registers.
    let described: Vec<SpecId> =
        ops.iter().filter(|op| s.is_described(op)).map(|op| op.spec).collect();
    let mut found = match s.search(&parts) {
        Err(_) if !described.is_empty() && !s.searched.cut_off => {
            let wants = described.into_iter().map(Want::ThroughRegisters).collect();
            return Ok((Outcome::Wants(wants), Looked::default()));
        }
        found => found?,
    };
    // Which MatMuls are taken is known of all parts now.
    let keeps = |f: &Finished| calls::keeps_factor(p, kernel, table, Some(&f.solution));
    if s.calls && found.iter().filter_map(|part| part.first()).any(keeps) {
        s = Solver::new(p, &costing, table, (search, detours), &ops, &held);
        s.calls = false;
        found = s.search(&parts)?;
    }
    let best = parts::together(&found, (search.top, detours), |f| f.estimate(&costing, Grid::Full));
    let mut leaves: Vec<Leaf> = best.iter().map(|f| f.leaf(p)).collect();
    let Some(best) = best.into_iter().next() else { return Err(s.nothing()) };
    let looked = Looked { cycles: best.solution.estimate.cycles, others: s.others };
    if !best.wants.is_empty() {
        return Ok((Outcome::Wants(best.wants), looked));
    }
    one_mode_for_warps(p, kernel, &best.solution, table)?;
    let uneven = uneven::warnings(p, &ops, &best);
    let (conflicts, banks) = banks::conflicts(p, table, &ops, &best);
    if let Some(first) = leaves.first_mut() {
        first.conflicts = conflicts;
    }
    let own = best.estimate(&costing, Grid::Own);
    let spills = spills::warning(p, kernel, &best, &own, carbyne_atoms::limits(table.arch));
    let mut out = best.solution;
    out.cycles = out.estimate.cycles;
    out.estimates.push((kernel, own));
    let idle = idle::warning(p, kernel);
    out.warnings = uneven.into_iter().chain(banks).chain(spills).chain(idle).collect();
    if !s.calls {
        out.warnings.extend(calls::inexact(p, kernel, table, &out, &s.precision));
    }
    for (b, tv) in &best.known {
        if let Some(group) = held.get(b).filter(|_| p.buffers[*b].open) {
            let (tv, threads) = (tv.clone(), group.name.clone());
            out.placements.insert(*b, Placement::Registers { tv, threads });
        }
    }
    (out.leaves, out.searched) = (leaves, s.searched);
    if s.searched.cut_off {
        let message = format!("the search ended at its budget of {} choices", search.budget);
        out.warnings.push(
            Diagnostic::warning(Code::Budget, p.specs[kernel].span, message)
                .label("the best choice so far is used; others were not tried")
                .help(
                    "pin an atom or a layout in the text, or run `carbyne decompose --budget N` \
                     and continue with the text that it prints",
                ),
        );
    }
    certificate::certify(p, &best.known, &mut out, table);
    Ok((Outcome::Solved(Box::new(out)), looked))
}

/// Refuses operations that take whole warps in a block of several modes.
fn one_mode_for_warps(
    p: &Program,
    kernel: SpecId,
    solution: &Solution,
    table: &AtomTable,
) -> Result<(), Box<Diagnostic>> {
    let modes = p.specs[kernel].exec.map_or(0, |e| p.threads[e.threads].concat().modes().len());
    let Some(id) = solution.whole_warps(table).filter(|_| modes > 1) else { return Ok(()) };
    let message = format!(
        "this {} needs whole warps, but the threads of the block have several modes",
        p.specs[id].kind
    );
    let help = "declare the block's threads as `[n].thread`";
    Err(Box::new(Diagnostic::new(Code::NoStrategy, p.specs[id].span, message).help(help)))
}
