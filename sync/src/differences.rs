//! Finds the statements in which blocks of a grid may behave differently: in control flow, in the
//! shared memory and registers that they access (such as the stage of a ring), and in the elements
//! of a partial tile that exist. Different addresses in global memory alone are no such difference.
//! If there are none, the checker follows one cluster in place of all. Otherwise `blocks` walks
//! through these statements to find the clusters that behave alike. The file also lists the
//! statements that access global memory, for the comparison of all blocks.

use crate::expr::Exprs;
use crate::plan::{How, LeafPlan, Plan, Space};
use crate::trip_counts::{TripCounts, is_of_block};
use carbyne_ir::expr::{Dim, VarId, VarInfo};
use carbyne_ir::program::walk::Step;
use carbyne_ir::program::{Program, SpecId, Stmt, StmtId, StmtKind, VarKind, sides};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{HashMap, HashSet};

/// The statements in which blocks may differ.
#[derive(Default)]
pub(crate) struct Differences<'p> {
    /// For each statement, the expressions that decide what it does and that differ between blocks.
    pub(crate) deciding: FxHashMap<StmtId, Vec<Dim>>,
    /// For each statement, the views whose existing elements differ between blocks.
    pub(crate) limited: FxHashMap<StmtId, Vec<usize>>,
    /// The statements that contain such expressions, and those that contain accesses to global
    /// memory, with their enclosing statements.
    pub(crate) decides: FxHashSet<StmtId>,
    pub(crate) touches: FxHashSet<StmtId>,
    /// Loops in which one iteration accesses the same global memory as all others.
    pub(crate) alike: FxHashSet<StmtId>,
    /// Loop variables as expressions of iteration counters.
    loops: HashMap<VarId, Dim>,
    pub(crate) body: &'p [Stmt],
}

impl<'p> Differences<'p> {
    pub(crate) fn new(exprs: &Exprs<'p>, plan: &Plan, kernel: SpecId) -> Self {
        let p = exprs.program;
        let body = p.specs[kernel].body.as_deref().unwrap_or(&[]);
        let out = Differences { body, ..Differences::default() };
        let mut finder = Finder {
            p,
            plan,
            out,
            counters: vec![],
            needed: HashSet::new(),
            needs_all: false,
            bounds: HashMap::new(),
            loops: HashMap::new(),
            exprs,
        };
        let mut walk = p.walk(body);
        while let Some(step) = walk.next() {
            if let Step::Enter(stmt) = step {
                finder.stmt(stmt, walk.around());
            }
        }
        // A free trip count takes all of its values in every block.
        let is_free = |d: &Dim| finder.exprs.trip_counts.is_number(*d);
        finder.out.deciding.values_mut().for_each(|all| all.retain(|d| !is_free(d)));
        finder.out.deciding.retain(|_, all| !all.is_empty());
        let Finder { mut out, counters, needed, needs_all, loops, .. } = finder;
        out.loops = loops;
        let is_alike = |turn: &VarId| !needs_all && !needed.contains(turn);
        let alike = counters.iter().filter(|(_, turn)| is_alike(turn)).map(|(key, _)| *key);
        out.alike = alike.collect();
        out
    }

    /// Whether all blocks behave alike.
    pub(crate) fn are_none(&self) -> bool {
        self.deciding.is_empty() && self.limited.is_empty()
    }

    /// Whether all clusters of `cluster` blocks behave alike: each block does the same as the block
    /// with the same rank in any other cluster.
    pub(crate) fn are_within_clusters(&self, exprs: &Exprs<'_>, cluster: i64) -> bool {
        let p = exprs.program;
        let next = |v: VarId| match p.vars.get(&v) {
            Some(VarKind::Block(_)) => p.arena.add(p.arena.dim_of(v)?, Dim::Const(cluster)).ok(),
            _ => None,
        };
        let alike = |dim: &Dim| {
            let rooted = put(p, &exprs.trip_counts, &self.loops, *dim);
            rooted.is_some_and(|d| p.arena.substitute(d, &next) == Ok(d))
        };
        self.limited.is_empty() && self.deciding.values().flatten().all(alike)
    }
}

/// The findings, statement by statement.
struct Finder<'p, 'a> {
    p: &'p Program,
    plan: &'a Plan,
    out: Differences<'p>,
    /// Loops with their iteration counters.
    counters: Vec<(StmtId, VarId)>,
    /// The iteration counters on which accesses to global memory depend.
    needed: HashSet<VarId>,
    /// Whether such an access depends on a counter, which any loop may step.
    needs_all: bool,
    /// For each statement, the expressions that decide how often and by which threads its body is
    /// executed.
    bounds: HashMap<StmtId, Vec<Dim>>,
    /// Loop variables as expressions of iteration counters.
    loops: HashMap<VarId, Dim>,
    exprs: &'a Exprs<'p>,
}

/// The expressions that a statement depends on.
#[derive(Default)]
struct Reads {
    /// Expressions that decide its control flow and its accesses within a block.
    dims: Vec<Dim>,
    /// Views of global memory, with their buffers.
    global: Vec<(usize, usize)>,
    /// Expressions that decide which elements of these views it accesses.
    places: Vec<Dim>,
    /// Views of global memory whose tile may reach over the end of a mode.
    limited: Vec<usize>,
    /// The coordinates of a box.
    boxed: Vec<Dim>,
}

impl Reads {
    fn view(&mut self, plan: &Plan, i: usize) {
        let v = &plan.views[i];
        match v.space {
            Space::Shared(_) | Space::Registers(_) => self.dims.push(v.offset),
            Space::Global(g) => {
                self.global.push((i, g));
                self.places.push(v.offset);
                let ends = v.limits.iter().flat_map(|l| [l.offset, l.extent]);
                self.places.extend(ends);
                if !v.limits.is_empty() {
                    self.limited.push(i);
                }
            }
            Space::Free | Space::Gathered => {}
        }
        self.dims.extend(v.peer);
    }
}

impl<'p, 'a> Finder<'p, 'a> {
    /// Replaces loop variables by iteration counters. Returns none if a loop variable cannot be
    /// replaced.
    fn put(&self, dim: Dim) -> Option<Dim> {
        let is_open = |v: &VarId| {
            matches!(self.p.vars.get(v), Some(VarKind::Loop))
                && self.exprs.trip_counts.variable(*v).is_none()
        };
        let dim = put(self.p, &self.exprs.trip_counts, &self.loops, dim)?;
        (!self.p.vars_in(dim).iter().any(is_open)).then_some(dim)
    }

    /// Whether an expression may differ between blocks.
    fn is_of_block(&self, dim: Dim) -> bool {
        self.put(dim).is_none_or(|dim| is_of_block(self.p, dim))
    }

    /// `around` are the enclosing statements and the statement itself.
    fn stmt(&mut self, stmt: &'p Stmt, around: &[&'p Stmt]) {
        let mut reads = self.reads(stmt);
        let holds = match &stmt.kind {
            StmtKind::Step { .. } => true,
            StmtKind::Element { var, .. } => self.exprs.is_held(*var),
            _ => false,
        };
        if holds {
            let around = || around.iter().map(|s| s.id);
            self.out.touches.extend(around());
            self.out.decides.extend(around());
        }
        if !reads.global.is_empty() {
            self.global(&mut reads, around);
            self.out.touches.extend(around.iter().map(|s| s.id));
        }
        let mut limited = reads.limited;
        limited.retain(|v| self.ends_by_block(*v));
        if !limited.is_empty() {
            self.out.limited.insert(stmt.id, limited);
            self.out.decides.extend(around.iter().map(|s| s.id));
        }
        let mut deciding = reads.dims;
        deciding.retain(|d| self.is_of_block(*d));
        if !deciding.is_empty() {
            self.out.deciding.insert(stmt.id, deciding);
            self.out.decides.extend(around.iter().map(|s| s.id));
        }
    }

    fn reads(&mut self, stmt: &'p Stmt) -> Reads {
        let p = self.p;
        let mut reads = Reads::default();
        match &stmt.kind {
            StmtKind::For { also, .. } => {
                let Some((var, (start, end, step))) = self.exprs.trip_counts.bounds(stmt) else {
                    return reads;
                };
                self.count(stmt, var, start, step);
                self.bounds.insert(stmt.id, [start, end].into_iter().chain(sides(also)).collect());
                // Only the trip count is a decision, not the first value.
                reads.dims = match p.arena.sub(end, start) {
                    Ok(n) => vec![n],
                    Err(_) => vec![start, end],
                };
                reads.dims.extend(sides(also));
            }
            StmtKind::If { cond, .. } => {
                let cond = self.exprs.trip_counts.condition_of(stmt, cond);
                self.bounds.insert(stmt.id, sides(cond).collect());
                // Sides of a comparison that differ by the same amount compare alike.
                for (a, _, b) in cond {
                    if self.exprs.trip_counts.is_number(*b) {
                        reads.dims.push(*a);
                        continue;
                    }
                    match p.arena.sub(*a, *b) {
                        Ok(d) => reads.dims.push(d),
                        Err(_) => reads.dims.extend([*a, *b]),
                    }
                }
            }
            StmtKind::Sync(sync) => {
                reads.dims.extend(sync.number);
                if let Some(i) = sync.tensor.and_then(|t| self.plan.view(t).ok()) {
                    reads.view(self.plan, i);
                }
            }
            StmtKind::Spec(id) => {
                if let Some(exec) = p.specs[*id].exec {
                    let offset = p.threads[exec.threads].offset;
                    reads.dims.push(offset);
                    self.bounds.insert(stmt.id, vec![offset]);
                }
                if let Some(leaf) = self.plan.leaves.get(id) {
                    self.leaf(leaf, &mut reads);
                }
            }
            StmtKind::Barrier(Some(t)) => reads.dims.push(p.threads[*t].offset),
            // The walk over blocks computes the values of counters.
            StmtKind::Step { .. } => {}
            StmtKind::Barrier(None)
            | StmtKind::Allocate(_)
            | StmtKind::Indices(_)
            | StmtKind::Element { .. } => {}
        }
        reads
    }

    /// Replaces a loop variable by an iteration counter; only the remaining dependence on the block
    /// matters.
    fn count(&mut self, stmt: &Stmt, var: VarId, start: Dim, step: i64) {
        let arena = &self.p.arena;
        let turn = arena.var(VarInfo { name: String::new(), lo: 0, hi: None, div: 1 });
        let Ok(turn) = turn else { return };
        if let Some(start) = self.put(start)
            && let Ok(steps) = arena.mul(turn, Dim::Const(step))
            && let Ok(counted) = arena.add(start, steps)
        {
            self.loops.insert(var, counted);
        }
        if let Some(turn) = arena.var_id(turn) {
            self.counters.push((stmt.id, turn));
        }
    }

    fn leaf(&self, leaf: &'a LeafPlan, reads: &mut Reads) {
        reads.dims.extend(leaf.valid);
        for o in &leaf.operands {
            reads.view(self.plan, o.view);
            reads.boxed.extend(o.boxed.iter().flat_map(|b| &b.at));
        }
        if let How::Bulk(bulk) = &leaf.how {
            reads.dims.extend(bulk.mask);
            bulk.bar.iter().for_each(|v| reads.view(self.plan, *v));
        }
        if !reads.global.is_empty() {
            reads.places.extend(leaf.valid);
            reads.places.extend(&reads.boxed);
        }
    }

    /// Whether the existing elements of a view may differ between blocks.
    fn ends_by_block(&self, view: usize) -> bool {
        let mut limits = self.plan.views[view].limits.iter();
        limits.any(|l| self.is_of_block(l.offset) || self.is_of_block(l.extent))
    }

    /// Records the iteration counters on which the accessed elements of global memory depend.
    fn global(&mut self, reads: &mut Reads, around: &[&'p Stmt]) {
        for stmt in around {
            reads.places.extend(self.bounds.get(&stmt.id).into_iter().flatten());
        }
        for dim in &reads.places {
            match self.put(*dim) {
                _ if self.exprs.has_counter(*dim) => self.needs_all = true,
                Some(dim) => self.needed.extend(self.p.vars_in(dim)),
                None => self.needed.extend(self.counters.iter().map(|(_, turn)| *turn)),
            }
        }
    }
}

/// An expression with loop variables and coordinates replaced by their definitions.
fn put(
    p: &Program,
    trip_counts: &TripCounts,
    loops: &HashMap<VarId, Dim>,
    dim: Dim,
) -> Option<Dim> {
    p.arena.substitute(trip_counts.rooted(p, dim)?, &|v| loops.get(&v).copied()).ok()
}
