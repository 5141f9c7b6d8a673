//! Walks the statements of each block of a grid, and compares accesses to global memory: those of
//! all blocks with each other, and those of the threads of one block. Nothing in a kernel orders
//! blocks of different clusters, so their accesses must not conflict. Blocks of one cluster are
//! treated in the same way.
//!
//! A separate walk computes the control path of each block: its conditions, trip counts and other
//! values that decide how its threads run. Clusters whose blocks have equal paths behave alike, so
//! that `machine` follows only one of them. Each walk skips the statements that do not matter to
//! it: those without influence on the path, or those without access to global memory.

mod cells;
mod touched;

pub(crate) use cells::Meeting;

use crate::differences::Differences;
use crate::expr::{Env, Exprs, holding};
use crate::groups::Groups;
use crate::memory::Does;
use crate::pages::Pages;
use crate::plan::Plan;
use crate::threads::Mask;
use crate::value::Value;
use carbyne_ir::ast::CmpOp;
use carbyne_ir::program::{Condition, SpecId, Stmt, StmtKind};
use cells::{Mine, Touched};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The most granules of global memory that are compared between blocks.
const MAX_CELLS: i64 = 1 << 24;

/// The number of blocks that are always walked. If two blocks race, the walk ends after them,
/// because the kernel is refused.
const ENOUGH: i64 = 64;

/// The cost of a statement per eight threads, in accesses.
const STATEMENT: u64 = 4;

/// The walk through the statements of one block after another.
pub(crate) struct Walker<'p, 'a> {
    exprs: &'a Exprs<'p>,
    plan: &'a Plan,
    differences: &'a Differences<'p>,
    elected: usize,
    hash: [DefaultHasher; 2],
    touching: bool,
    touched: Vec<Touched>,
    /// Statements with their effects on global memory. The position in the list is the number of
    /// the effect.
    acts: Vec<(u32, Does)>,
    numbers: HashMap<(u32, Does), u32>,
    meetings: Vec<Meeting>,
    too_large: HashSet<usize>,
    /// For each buffer, whether no granule has been accessed twice.
    once: Vec<bool>,
    /// The threads that execute the innermost body of a spec, by whose threads a counter is held.
    holders: Mask,
    /// The number of enclosing loops that are left after one iteration although they may have more.
    cut: usize,
    /// Whether there are more statements than can be numbered.
    too_many: bool,
    /// Whether some access may not happen, because the set of existing elements is unknown.
    unsure: bool,
    steps: u64,
    max_steps: u64,
}

/// The findings about global memory after a walk.
pub(crate) struct Met {
    pub(crate) meetings: Vec<Meeting>,
    /// Whether a buffer is too large to be tracked.
    pub(crate) too_large: bool,
    /// For each buffer, whether no granule is accessed twice, by any threads.
    pub(crate) once: Vec<bool>,
}

impl Met {
    pub(crate) fn of(walker: Walker<'_, '_>) -> Self {
        let too_large = !walker.too_large.is_empty();
        Met { meetings: walker.meetings, too_large, once: walker.once }
    }
}

/// The reason why a walk does not reach its end.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unwalked {
    /// The walk exceeds the limit.
    TooLong,
    /// The walk needs an unknown value.
    Unknown,
}

impl<'p, 'a> Walker<'p, 'a> {
    pub(crate) fn new(
        exprs: &'a Exprs<'p>,
        plan: &'a Plan,
        differences: &'a Differences<'p>,
        elected: usize,
        max_steps: u64,
    ) -> Self {
        let mut too_large = HashSet::new();
        let mut touched = vec![];
        let mut all = 0;
        for (i, g) in plan.globals.iter().enumerate() {
            let cosize = exprs.program.buffers[g.id].cosize;
            let most = || exprs.program.arena.range(cosize).1;
            let size = exprs.constant(cosize).or_else(most).unwrap_or(i64::MAX);
            let n = (size / g.granule).saturating_add(1);
            all += n.clamp(0, MAX_CELLS + 1);
            if !(0..=MAX_CELLS).contains(&n) || all > 2 * MAX_CELLS {
                too_large.insert(i);
            }
            let n = if too_large.contains(&i) { 0 } else { n as usize };
            touched.push(Touched {
                cells: vec![0; n],
                mine: vec![Mine::default(); n],
                outside: Pages::default(),
                n: 0,
                sites: BTreeMap::new(),
            });
        }
        let once = (0..plan.globals.len()).map(|g| !too_large.contains(&g)).collect();
        Walker {
            exprs,
            plan,
            differences,
            elected,
            hash: [DefaultHasher::new(), DefaultHasher::new()],
            touching: false,
            touched,
            acts: vec![],
            numbers: HashMap::new(),
            meetings: vec![],
            too_large,
            once,
            holders: Mask::default(),
            cut: 0,
            too_many: false,
            unsure: false,
            steps: 0,
            max_steps,
        }
    }

    /// A hash of the control path of a block's threads. Blocks with equal hashes take the same
    /// path.
    pub(crate) fn decisions(&mut self, block: i64) -> Result<(u64, u64), Unwalked> {
        self.hash = [DefaultHasher::new(), DefaultHasher::new()];
        1u8.hash(&mut self.hash[1]);
        self.touching = false;
        self.block(block)?;
        Ok((self.hash[0].finish(), self.hash[1].finish()))
    }

    /// Records the accesses of all blocks to global memory that the kernel writes.
    pub(crate) fn touches(&mut self, n_blocks: i64) -> Result<(), Unwalked> {
        self.touching = true;
        if self.plan.globals.is_empty() {
            return Ok(());
        }
        for block in 0..n_blocks {
            for t in &mut self.touched {
                t.outside = Pages::default();
                t.n = 0;
            }
            self.block(block)?;
            if self.is_refused_by(block) {
                return Ok(());
            }
            if self.too_many || self.touched.iter().any(|t| t.n > 1 << 21) {
                return Err(Unwalked::TooLong);
            }
        }
        // The colliding accesses may not happen.
        if self.unsure && !self.meetings.is_empty() {
            self.meetings.clear();
            return Err(Unwalked::Unknown);
        }
        Ok(())
    }

    /// Whether the walk may end after a block: enough blocks have been walked, and two of them
    /// certainly access the same element, at least one writing.
    fn is_refused_by(&self, block: i64) -> bool {
        block >= ENOUGH && !self.unsure && self.meetings.iter().any(|m| m.blocks.0 != m.blocks.1)
    }

    fn block(&mut self, block: i64) -> Result<(), Unwalked> {
        let mut env = Env { block, loops: vec![] };
        let mask = Mask::first(self.exprs.n_threads);
        self.holders = mask;
        self.stmts(self.differences.body, &mut env, &mask)
    }

    fn spend(&mut self, n: u64) -> Result<(), Unwalked> {
        self.steps += n;
        if self.steps > self.max_steps { Err(Unwalked::TooLong) } else { Ok(()) }
    }

    fn note(&mut self, value: &Value, mask: &Mask) {
        for hash in &mut self.hash {
            match value {
                Value::Same(v) => v.hash(hash),
                Value::Each(..) => mask.threads().for_each(|t| value.of(t).hash(hash)),
            }
        }
    }

    fn stmts(&mut self, stmts: &'p [Stmt], env: &mut Env, mask: &Mask) -> Result<(), Unwalked> {
        for stmt in stmts {
            let matters = match self.touching {
                true => self.differences.touches.contains(&stmt.id),
                false => self.differences.decides.contains(&stmt.id),
            };
            if matters {
                self.stmt(stmt, env, mask)?;
            }
        }
        Ok(())
    }

    fn stmt(&mut self, stmt: &'p Stmt, env: &mut Env, mask: &Mask) -> Result<(), Unwalked> {
        self.spend(STATEMENT * (1 + self.exprs.n_threads as u64 / 8))?;
        let deciding = match &stmt.kind {
            StmtKind::For { .. } | StmtKind::If { .. } => None,
            _ => self.differences.deciding.get(&stmt.id),
        };
        if let (Some(dims), false) = (deciding, self.touching) {
            for dim in dims {
                let value = self.exprs.value(*dim, env);
                self.note(&value, mask);
            }
        }
        if let (Some(views), false) = (self.differences.limited.get(&stmt.id), self.touching) {
            for limit in views.iter().flat_map(|v| &self.plan.views[*v].limits) {
                self.note(&limit.clamped(self.exprs, env), mask);
            }
        }
        match &stmt.kind {
            StmtKind::For { .. } => self.iterations(stmt, env, mask),
            StmtKind::If { cond, then, otherwise } => {
                let yes = self.holding(cond, env, mask)?;
                if !self.touching {
                    self.hash.iter_mut().for_each(|h| yes.hash(h));
                }
                let no = mask.without(&yes);
                if !yes.is_empty() {
                    self.stmts(then, env, &yes)?;
                }
                if !no.is_empty() {
                    self.stmts(otherwise, env, &no)?;
                }
                Ok(())
            }
            StmtKind::Spec(id) => self.spec(*id, env, mask, self.plan.site(stmt)),
            StmtKind::Allocate(_)
            | StmtKind::Indices(_)
            | StmtKind::Barrier(_)
            | StmtKind::Sync(_) => Ok(()),
            StmtKind::Element { var, tensor } => {
                if self.exprs.is_held(*var)
                    && let Some(value) = self.exprs.element(*tensor)
                {
                    let value = self.exprs.eval(&value, env);
                    env.set_of(mask, &self.holders, *var, &value, Default::default());
                }
                Ok(())
            }
            StmtKind::Step { counter, var, value } => {
                let value = self.exprs.value(*value, env);
                let threads = if counter == var { self.holders } else { *mask };
                env.set_of(&threads, &self.holders, *counter, &value, Default::default());
                Ok(())
            }
        }
    }

    /// Walks the iterations of a loop.
    fn iterations(&mut self, stmt: &'p Stmt, env: &mut Env, mask: &Mask) -> Result<(), Unwalked> {
        let StmtKind::For { var, start, end, also, step, body, .. } = &stmt.kind else {
            return Ok(());
        };
        let mut value = self.exprs.value(*start, env);
        let end = self.exprs.value(*end, env);
        let mut going = *mask;
        loop {
            going = holding(&going, &value, CmpOp::Lt, &end).ok_or(Unwalked::Unknown)?;
            if !also.is_empty() {
                env.set(*var, value.clone(), Default::default());
                going = self.holding(also, env, &going)?;
            }
            if !self.touching {
                self.hash.iter_mut().for_each(|h| going.hash(h));
            }
            if going.is_empty() {
                return Ok(());
            }
            self.spend(STATEMENT * (1 + self.exprs.n_threads as u64 / 8))?;
            env.set(*var, value.clone(), Default::default());
            let cut = self.touching && self.differences.alike.contains(&stmt.id);
            self.cut += usize::from(cut);
            let walked = self.stmts(body, env, &going);
            self.cut -= usize::from(cut);
            walked?;
            if cut {
                return Ok(());
            }
            value = value.map(|v| v.saturating_add(*step));
        }
    }

    /// The threads for which a condition holds.
    fn holding(&self, cond: &[Condition], env: &Env, mask: &Mask) -> Result<Mask, Unwalked> {
        let mut yes = *mask;
        for (a, op, b) in cond {
            let (a, b) = (self.exprs.value(*a, env), self.exprs.value(*b, env));
            yes = yes.and(&holding(mask, &a, *op, &b).ok_or(Unwalked::Unknown)?);
        }
        Ok(yes)
    }

    fn spec(&mut self, id: SpecId, env: &mut Env, mask: &Mask, site: u32) -> Result<(), Unwalked> {
        let spec = &self.exprs.program.specs[id];
        let Some(exec) = spec.exec else { return Err(Unwalked::Unknown) };
        let groups = Groups::of(self.exprs, exec.threads, env, self.elected);
        let active = groups.map_err(|_| Unwalked::Unknown)?.mask.and(mask);
        if active.is_empty() {
            return Ok(());
        }
        if let Some(body) = &spec.body {
            let around = std::mem::replace(&mut self.holders, active);
            let walked = self.stmts(body, env, &active);
            self.holders = around;
            return walked;
        }
        match self.plan.leaves.get(&id) {
            Some(leaf) if self.touching => self.leaf(leaf, env, &active, site),
            _ => Ok(()),
        }
    }
}
