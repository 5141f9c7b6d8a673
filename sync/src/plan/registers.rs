//! Merges registers that every access takes together, so that the machine tracks them as one.
//!
//! A loop in which a thread processes its own registers, one element per iteration, would split
//! them into as many parts as it has iterations. Only asynchronous MatMuls share these registers,
//! and they are issued before or after the loop. So the first iteration gets the elements of all
//! iterations, and the other iterations are left out.

use super::{How, LeafPlan, Plan, Space, View};
use crate::expr::Exprs;
use carbyne_ir::expr::Dim;
use carbyne_ir::program::{SpecId, Stmt, StmtKind};
use std::collections::{BTreeMap, BTreeSet};

/// The most iterations of a loop whose accesses are merged.
const MAX_ITERATIONS: i64 = 1 << 10;

impl Plan {
    /// Merges the iterations of loops over registers, and the registers that all accesses take
    /// together.
    pub(super) fn join_registers(&mut self, exprs: &Exprs<'_>, kernel: SpecId) {
        let p = exprs.program;
        for stmt in p.walk_body(kernel).stmts() {
            if let StmtKind::For { also, body, .. } = &stmt.kind
                && also.is_empty()
                && self.joined(exprs, stmt, body).is_some()
            {
                self.once.insert(super::first_of(body));
            }
        }
        for r in 0..self.registers.len() {
            self.group(exprs, r);
        }
    }

    /// Gives each leaf of a loop the elements of all iterations. Returns none if a leaf may access
    /// anything but registers.
    fn joined(&mut self, exprs: &Exprs<'_>, stmt: &Stmt, body: &[Stmt]) -> Option<()> {
        let (var, (start, end, step)) = exprs.trip_counts.bounds(stmt)?;
        let (start, end) = (exprs.constant(start)?, exprs.constant(end)?);
        let step = usize::try_from(step).ok().filter(|s| *s > 0)?;
        let iterations = start..end.min(start.checked_add(MAX_ITERATIONS)?);
        if iterations.is_empty() || end > iterations.end {
            return None;
        }
        let at = |dim: Dim, iteration: i64| {
            let value = |v| if v == var { Some(iteration) } else { exprs.symbols.get(&v).copied() };
            exprs.program.arena.eval(dim, &value).ok()
        };
        let mut wide = vec![];
        for stmt in body {
            let StmtKind::Spec(id) = &stmt.kind else { return None };
            let leaf = self.leaves.get(id).filter(|leaf| is_at_once(leaf))?;
            for (i, o) in leaf.operands.iter().enumerate() {
                let view = &self.views[o.view];
                match view.space {
                    Space::Free => continue,
                    Space::Registers(_) if view.limits.is_empty() => {}
                    _ => return None,
                }
                let mut places = BTreeSet::new();
                for iteration in iterations.clone().step_by(step) {
                    let offset = at(view.offset, iteration)?;
                    places.extend(view.places.iter().map(|p| p.saturating_add(offset)));
                }
                let places = places.into_iter().collect();
                wide.push((*id, i, View { places, offset: Dim::Const(0), ..view.clone() }));
            }
        }
        for (id, operand, view) in wide {
            if let Some(leaf) = self.leaves.get_mut(&id) {
                leaf.operands[operand].view = self.views.len();
                self.views.push(view);
            }
        }
        Some(())
    }

    /// Treats registers that all accesses of a buffer take together as one register.
    fn group(&mut self, exprs: &Exprs<'_>, r: usize) {
        let used: BTreeSet<usize> = self
            .leaves
            .values()
            .chain(self.afters.values())
            .flat_map(|leaf| leaf.operands.iter().map(|o| o.view))
            .filter(|v| self.views[*v].space == Space::Registers(r))
            .collect();
        // For each register, the views that contain it.
        let n = usize::try_from(self.registers[r].1).unwrap_or(0);
        let mut takers: Vec<Vec<usize>> = vec![vec![]; n];
        for v in used.iter().filter(|v| !self.views[**v].spread) {
            let view = &self.views[*v];
            let Some(offset) = exprs.constant(view.offset) else { return };
            let places: BTreeSet<i64> = view.places.iter().copied().collect();
            for place in places {
                let at = usize::try_from(place.saturating_add(offset)).ok();
                if let Some(takers) = at.and_then(|at| takers.get_mut(at)) {
                    takers.push(*v);
                }
            }
        }
        let mut groups: BTreeMap<Vec<usize>, i64> = BTreeMap::new();
        for takers in takers {
            let next = groups.len() as i64;
            groups.entry(takers).or_insert(next);
        }
        for v in used {
            let of = groups.iter().filter(|(takers, _)| takers.contains(&v)).map(|(_, g)| *g);
            (self.views[v].places, self.views[v].offset) = (of.collect(), Dim::Const(0));
        }
        self.registers[r].1 = groups.len() as i64;
    }
}

/// Whether each thread executes a leaf by itself and synchronously.
fn is_at_once(leaf: &LeafPlan) -> bool {
    let alone = match &leaf.how {
        How::Atom { size, .. } => *size == 1,
        How::Meaning => true,
        How::Bulk(_) => false,
    };
    let immediate = alone && leaf.visibility.is_immediate();
    immediate && leaf.accumulates.is_none() && leaf.valid.is_none()
}
