//! Rewrites unrolled loops with `stages=R` so that the operands of a slice are in registers R - 1
//! slices before it multiplies.
//!
//! A tensor in registers that each slice fills anew from shared memory becomes R tensors; slice `j`
//! uses number `j % R`, so that the loads of a slice and the readers of the slice before have
//! nothing in common, and are under way together. The loop is written out. If it stands in a loop
//! with stages of its own and loads from that one's rings, its last slices load the first of the
//! next iteration: no iteration begins with waiting for shared memory, and the barrier between
//! iterations stands before the last slices, while there is something left to compute. That needs a
//! number of slices that R divides, as a slice must use the same tensors in every iteration. The
//! loads of the last iteration are read by nothing; they come from a stage that was filled before.

use super::pipeline::{MANY, Parts, Stages, copied};
use super::turns::{plus, referred};
use crate::access::staged_loops::Loop;
use crate::access::staged_loops::Why;
use crate::build::when;
use carbyne_ir::ast::*;
use std::collections::BTreeSet;

/// Slices that are written out at most.
const MOST: i64 = 64;

/// The stage of a ring, by its name.
pub(crate) type StageOf<'a> = &'a dyn Fn(&str) -> View;

/// A loop of slices.
struct Slices {
    parts: Parts,
    /// The first value of its variable, its step, and how many slices there are.
    start: i64,
    step: i64,
    trips: i64,
    /// Names of the tensors that take the place of each.
    rings: Vec<Vec<String>>,
}

/// Where slices of the next iteration are loaded from.
struct Next {
    /// The loop of slices as it stood before the stages of this iteration were written into it.
    slices: Slices,
    /// The variable of the loop around it, and what it is in the next iteration.
    var: String,
    at: Expr,
    /// Tensors with stages, each with the view of its next one.
    rings: Vec<(String, View)>,
    /// Whether there is a next iteration, where that is not known.
    guard: Option<Expr>,
}

/// A loop of slices that runs through the iterations of the loop around it.
pub(crate) struct Through {
    /// Allocations, and the loads of the first slices of the first iteration.
    pub(crate) before: Vec<Stmt>,
    /// What takes its place.
    pub(crate) body: Vec<Stmt>,
}

impl Stages<'_> {
    /// The loop of slices among the statements of a loop with stages, if there is one.
    pub(crate) fn slices_in(&self, stmts: &[Stmt]) -> Option<usize> {
        let is = |s: &Stmt| self.loops.get(&s.id.key()).is_some_and(Loop::is_of_slices);
        let mut found = stmts.iter().enumerate().filter(|(_, s)| is(s)).map(|(i, _)| i);
        found.next().filter(|_| found.next().is_none())
    }

    /// A loop of slices, written out.
    pub(crate) fn sliced(&mut self, facts: &Loop, stmt: &Stmt) -> Result<Vec<Stmt>, Why> {
        let slices = self.slices(facts, stmt, None)?;
        let depth = slices.depth();
        let mut out = slices.allocations();
        for j in 0..(depth - 1).min(slices.trips) {
            out.extend(self.load(&slices, j, j, None)?);
        }
        out.extend(self.all_slices(&slices, None)?);
        Ok(out)
    }

    /// A loop of slices that loads the first of the next iteration of the loop around it. `now` is
    /// the loop with this iteration's stages, `plain` the loop without; none where a part of it
    /// forbids that.
    pub(crate) fn through(
        &mut self,
        facts: &Loop,
        around: &Parts,
        (plain, now): (&Stmt, &Stmt),
        (first, next): (StageOf<'_>, StageOf<'_>),
        (step, known): (i64, bool),
        defined: &BTreeSet<&str>,
    ) -> Result<Option<Through>, Why> {
        let slices = self.slices(facts, now, None)?;
        let depth = slices.depth();
        let names = slices.rings.clone();
        let plain = self.slices(facts, plain, Some(names))?;
        let of_ring = |name: &str| around.rings.iter().any(|(_, own, _)| own == name);
        let names = names_of(&plain.parts.ahead);
        // What the loop around computes is not there in the iteration before.
        let lasting = names.iter().all(|name| of_ring(name) || !defined.contains(name));
        if slices.trips % depth != 0 || depth > slices.trips || !lasting {
            return Ok(None);
        }
        let at = plus(Expr::name(&around.var.text), step);
        let rings = |of: StageOf<'_>| -> Vec<(String, View)> {
            around.rings.iter().map(|(_, name, ring)| (name.clone(), of(ring))).collect()
        };
        let guard = |at: &Expr| (!known).then(|| at.clone());
        let start = around.start.clone();
        let first = Next {
            slices: plain,
            var: around.var.text.clone(),
            guard: guard(&start),
            at: start,
            rings: rings(first),
        };
        let mut before = slices.allocations();
        let mut loads = vec![];
        for j in 0..depth - 1 {
            loads.extend(self.load(&slices, j, j, Some(&first))?);
        }
        before.extend(guarded(&first, around, loads));
        let next = Next { guard: guard(&at), at, rings: rings(next), ..first };
        let body = self.all_slices(&slices, Some((&next, around)))?;
        Ok(Some(Through { before, body }))
    }

    fn slices(
        &mut self,
        facts: &Loop,
        stmt: &Stmt,
        names: Option<Vec<Vec<String>>>,
    ) -> Result<Slices, Why> {
        let parts = self.parts(facts, stmt)?;
        let (Some(start), Some(trips)) = (facts.start, facts.trips) else {
            return Err(Why::Unknown);
        };
        let depth = facts.stages.min(trips);
        if depth < 2 {
            return Err(Why::Once);
        }
        if trips > MOST {
            return Err(Why::Slices);
        }
        let fresh = |own: &mut Self| {
            let of = |(_, name, _): &(Stmt, String, String)| {
                (0..depth).map(|_| own.names.fresh(name)).collect()
            };
            parts.rings.iter().map(of).collect()
        };
        let rings = names.unwrap_or_else(|| fresh(self));
        Ok(Slices { parts, start, step: facts.step, trips, rings })
    }

    /// All slices, each after the loads of a later one.
    fn all_slices(
        &mut self,
        slices: &Slices,
        next: Option<(&Next, &Parts)>,
    ) -> Result<Vec<Stmt>, Why> {
        let mut out = vec![];
        let ahead = slices.depth() - 1;
        for j in 0..slices.trips {
            match next {
                _ if j + ahead < slices.trips => {
                    out.extend(self.load(slices, j + ahead, j + ahead, None)?);
                }
                Some((next, around)) => {
                    let loads =
                        self.load(slices, j + ahead - slices.trips, j + ahead, Some(next))?;
                    out.extend(guarded(next, around, loads));
                }
                None => {}
            }
            let mut by = self.slice(&slices.parts, &slices.parts.rest.stmts, &slices.at(j));
            slices.give(&mut by, j);
            let rest = copied(&mut by, &slices.parts.rest.stmts);
            out.extend(rest.ok_or(MANY)?);
        }
        Ok(out)
    }

    /// The loads of a slice into the tensors that slice number `turn` uses.
    fn load(
        &mut self,
        slices: &Slices,
        j: i64,
        turn: i64,
        next: Option<&Next>,
    ) -> Result<Vec<Stmt>, Why> {
        let from = next.map_or(slices, |next| &next.slices);
        let mut by = self.slice(&from.parts, &from.parts.ahead, &slices.at(j));
        slices.give(&mut by, turn);
        if let Some(next) = next {
            by.numbers.insert(next.var.clone(), next.at.clone());
            for (name, view) in &next.rings {
                by.data.insert(name.clone(), Given::View(view.clone()));
            }
        }
        copied(&mut by, &from.parts.ahead).ok_or(MANY)
    }
}

impl Slices {
    fn depth(&self) -> i64 {
        self.rings.first().map_or(1, |names| names.len() as i64)
    }

    /// The loop's variable in a slice.
    fn at(&self, j: i64) -> Expr {
        Expr::int(self.start.saturating_add(j.saturating_mul(self.step)))
    }

    /// Gives a slice its tensors.
    fn give(&self, by: &mut Substitution, turn: i64) {
        for ((_, name, _), own) in self.parts.rings.iter().zip(&self.rings) {
            let own = own.get(turn.rem_euclid(self.depth()) as usize);
            let Some(own) = own else { continue };
            by.data.insert(name.clone(), Given::View(View::of(own)));
        }
    }

    /// The tensors that slices take in turn.
    fn allocations(&self) -> Vec<Stmt> {
        let mut out = vec![];
        for turn in 0..self.depth() as usize {
            for ((allocation, ..), own) in self.parts.rings.iter().zip(&self.rings) {
                let mut allocation = Stmt::derived(allocation.kind.clone(), allocation);
                if let (StmtKind::Allocate { name, .. }, Some(own)) =
                    (&mut allocation.kind, own.get(turn))
                {
                    name.text.clone_from(own);
                }
                out.push(allocation);
            }
        }
        out
    }
}

/// Loads for an iteration that there may not be.
fn guarded(next: &Next, around: &Parts, loads: Vec<Stmt>) -> Vec<Stmt> {
    match &next.guard {
        Some(at) => vec![when(at.clone(), CmpOp::Lt, around.end.clone(), loads)],
        None => loads,
    }
}

/// The names that statements refer to.
fn names_of(stmts: &[Stmt]) -> BTreeSet<&str> {
    let mut out = BTreeSet::new();
    for stmt in stmts {
        referred(stmt, &mut |name, _| {
            out.insert(name);
        });
    }
    out
}
