//! What differs from block to block: which way threads take, which stage they use; and which elements of global memory
//! the blocks of a grid write.
//!
//! The statements are walked without synchronization, for each block. What decides nothing of that is left out.

use crate::expr::{Env, Exprs, NOTHING, Value};
use crate::memory::{Does, sum};
use crate::plan::{Bulk, How, LeafPlan, Plan, Space};
use crate::threads::{Groups, Mask};
use carbyne_ir::ast::CmpOp;
use carbyne_ir::expr::{Dim, VarId, VarInfo};
use carbyne_ir::program::{Program, SpecId, Stmt, StmtKind, VarKind};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Granules of global memory that are followed across blocks.
const MAX_CELLS: i64 = 1 << 23;

/// The statements that matter.
pub(crate) struct Differences<'p> {
    /// Expressions that decide what a block does, and differ from block to block.
    deciding: HashMap<usize, Vec<Dim>>,
    /// Statements with such an expression or an access to global memory inside, and themselves.
    decides: HashSet<usize>,
    touches: HashSet<usize>,
    body: &'p [Stmt],
}

fn key(stmt: &Stmt) -> usize {
    std::ptr::from_ref(stmt).addr()
}

impl<'p> Differences<'p> {
    pub(crate) fn new(exprs: &Exprs<'p>, plan: &Plan, kernel: SpecId) -> Self {
        let p = exprs.program;
        let body = p.specs[kernel].body.as_deref().unwrap_or(&[]);
        let mut out = Differences {
            deciding: HashMap::new(),
            decides: HashSet::new(),
            touches: HashSet::new(),
            body,
        };
        let mut loops: HashMap<VarId, Dim> = HashMap::new();
        let mut walk = p.walk(body);
        while let Some(step) = walk.next() {
            let carbyne_ir::program::walk::Step::Enter(stmt) = step else { continue };
            let mut dims = vec![];
            let mut is_leaf = false;
            let mut view = |dims: &mut Vec<Dim>, i: usize| {
                let v = &plan.views[i];
                match v.space {
                    Space::Shared(_) | Space::Registers(_) => dims.push(v.offset),
                    Space::Global(_) => is_leaf = true,
                    Space::Free | Space::Gathered => {}
                }
                dims.extend(v.peer);
            };
            match &stmt.kind {
                StmtKind::For { var, start, end, step, .. } => {
                    dims.extend([*start, *end]);
                    // A variable counts its turns: what is left of the block in it matters.
                    let turn = p.arena.var(VarInfo {
                        name: String::new(),
                        lo: 0,
                        hi: None,
                        div: 1,
                    });
                    let counted = turn.and_then(|turn| {
                        let start = put(p, &loops, *start);
                        p.arena.add(start, p.arena.mul(turn, Dim::Const(*step))?)
                    });
                    if let Ok(counted) = counted {
                        loops.insert(*var, counted);
                    }
                    // The first value itself is no decision, only how many turns there are.
                    if let Ok(n) = p.arena.sub(*end, *start) {
                        dims = vec![n];
                    }
                }
                StmtKind::If { cond, .. } => {
                    // Sides that differ by the same are compared alike.
                    for (a, _, b) in cond {
                        match p.arena.sub(*a, *b) {
                            Ok(d) => dims.push(d),
                            Err(_) => dims.extend([*a, *b]),
                        }
                    }
                }
                StmtKind::Sync(sync) => {
                    dims.extend(sync.number);
                    if let Some(t) = sync.tensor
                        && let Ok(i) = plan.view(t)
                    {
                        view(&mut dims, i);
                    }
                }
                StmtKind::Spec(id) => {
                    if let Some(exec) = p.specs[*id].exec {
                        dims.push(p.threads[exec.threads].offset);
                    }
                    if let Some(leaf) = plan.leaves.get(id) {
                        dims.extend(leaf.valid);
                        leaf.operands.iter().for_each(|o| view(&mut dims, o.view));
                        if let How::Bulk(bulk) = &leaf.how {
                            dims.extend(bulk.mask);
                            let all = [Some(bulk.source), Some(bulk.target), bulk.bar];
                            all.iter().flatten().for_each(|v| view(&mut dims, *v));
                        }
                    }
                }
                StmtKind::Barrier(Some(t)) => dims.push(p.threads[*t].offset),
                StmtKind::Barrier(None) | StmtKind::Allocate(_) | StmtKind::Indices(_) => {}
            }
            dims.retain(|d| of_block(p, put(p, &loops, *d), 0));
            if !dims.is_empty() {
                out.deciding.insert(key(stmt), dims);
                out.decides.extend(walk.around().iter().map(|s| key(s)));
            }
            if is_leaf {
                out.touches.extend(walk.around().iter().map(|s| key(s)));
            }
        }
        out
    }

    /// Whether all blocks do the same.
    pub(crate) fn are_none(&self) -> bool {
        self.deciding.is_empty()
    }
}

/// An expression with the loop variables as what they count.
fn put(p: &Program, loops: &HashMap<VarId, Dim>, dim: Dim) -> Dim {
    p.arena.substitute(dim, &|v| loops.get(&v).copied()).unwrap_or(dim)
}

/// Whether an expression depends on the block.
fn of_block(p: &Program, dim: Dim, depth: usize) -> bool {
    p.vars_in(dim).iter().any(|v| match p.vars.get(v) {
        Some(VarKind::Block(_)) => true,
        Some(VarKind::Index(of)) => depth > 64 || of_block(p, *of, depth + 1),
        _ => false,
    })
}

/// What blocks touch of a buffer of global memory.
pub(crate) struct Touched {
    /// Of each granule who touched it last.
    cells: Vec<u64>,
}

/// Two threads that touch one element.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Meeting {
    pub(crate) buffer: usize,
    pub(crate) blocks: (i64, i64),
    pub(crate) threads: (u32, u32),
    pub(crate) sites: (u32, u32),
    pub(crate) does: (Does, Does),
}

/// Several readers.
const SEVERAL: u64 = (1 << 24) - 1;

fn packed(block: i64, thread: usize, site: u32, does: Does) -> u64 {
    let does = match does {
        Does::Read => 0,
        Does::Write => 1,
        Does::Sum(op) => 2 + u64::from(op),
    };
    (block as u64 + 1) | (thread as u64) << 24 | u64::from(site.min(0xffff)) << 35 | does << 52
}

fn unpacked(v: u64) -> (u64, u32, u32, Does) {
    let does = match v >> 52 {
        0 => Does::Read,
        1 => Does::Write,
        op => Does::Sum((op - 2) as u8),
    };
    (v & SEVERAL, (v >> 24 & 0x7ff) as u32, (v >> 35 & 0xffff) as u32, does)
}

/// A walk through the statements for one block.
pub(crate) struct Walker<'p, 'a> {
    exprs: &'a Exprs<'p>,
    plan: &'a Plan,
    differences: &'a Differences<'p>,
    elected: usize,
    hash: [DefaultHasher; 2],
    touching: bool,
    touched: Vec<Touched>,
    pub(crate) meetings: Vec<Meeting>,
    pub(crate) too_large: HashSet<usize>,
    steps: u64,
    max_steps: u64,
}

/// The walk is longer than the limit, or needs what is not known.
pub(crate) struct Unwalked;

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
        for (i, g) in plan.globals.iter().enumerate() {
            let size = exprs.constant(exprs.program.buffers[g.id].cosize).unwrap_or(i64::MAX);
            let n = size / g.granule + 1;
            if !(0..=MAX_CELLS).contains(&n) {
                too_large.insert(i);
            }
            let n = if too_large.contains(&i) { 0 } else { n as usize };
            touched.push(Touched { cells: vec![0; n] });
        }
        Walker {
            exprs,
            plan,
            differences,
            elected,
            hash: [DefaultHasher::new(), DefaultHasher::new()],
            touching: false,
            touched,
            meetings: vec![],
            too_large,
            steps: 0,
            max_steps,
        }
    }

    /// What decides the ways of a block's threads, as a number that two blocks have in common if they go the same.
    pub(crate) fn decisions(&mut self, block: i64) -> Result<(u64, u64), Unwalked> {
        self.hash = [DefaultHasher::new(), DefaultHasher::new()];
        1u8.hash(&mut self.hash[1]);
        self.touching = false;
        self.block(block)?;
        Ok((self.hash[0].finish(), self.hash[1].finish()))
    }

    /// Notes what a block touches of global memory that is written.
    pub(crate) fn touches(&mut self, block: i64) -> Result<(), Unwalked> {
        self.touching = true;
        self.block(block)
    }

    fn block(&mut self, block: i64) -> Result<(), Unwalked> {
        let mut env = Env { block, loops: vec![] };
        let mask = Mask::first(self.exprs.n_threads);
        self.stmts(self.differences.body, &mut env, &mask)
    }

    fn spend(&mut self, n: u64) -> Result<(), Unwalked> {
        self.steps += n;
        if self.steps > self.max_steps { Err(Unwalked) } else { Ok(()) }
    }

    fn note(&mut self, value: &Value, mask: &Mask) {
        for hash in &mut self.hash {
            match value {
                Value::Same(v) => v.hash(hash),
                Value::Each(all) => mask.threads().for_each(|t| all.get(t).hash(hash)),
            }
        }
    }

    fn stmts(&mut self, stmts: &'p [Stmt], env: &mut Env, mask: &Mask) -> Result<(), Unwalked> {
        for stmt in stmts {
            let matters = match self.touching {
                true => self.differences.touches.contains(&key(stmt)),
                false => self.differences.decides.contains(&key(stmt)),
            };
            if matters {
                self.stmt(stmt, env, mask)?;
            }
        }
        Ok(())
    }

    fn stmt(&mut self, stmt: &'p Stmt, env: &mut Env, mask: &Mask) -> Result<(), Unwalked> {
        self.spend(1)?;
        let deciding = match &stmt.kind {
            StmtKind::For { .. } | StmtKind::If { .. } => None,
            _ => self.differences.deciding.get(&key(stmt)),
        };
        if let (Some(dims), false) = (deciding, self.touching) {
            for dim in dims {
                let value = self.exprs.value(*dim, env);
                self.note(&value, mask);
            }
        }
        match &stmt.kind {
            StmtKind::For { var, start, end, step, body, .. } => {
                let mut value = self.exprs.value(*start, env);
                let end = self.exprs.value(*end, env);
                let mut going = *mask;
                loop {
                    let mut next = Mask::default();
                    for t in going.threads() {
                        let (a, b) = (value.of(t), end.of(t));
                        if a == NOTHING || b == NOTHING {
                            return Err(Unwalked);
                        }
                        if a < b {
                            next.insert(t);
                        }
                    }
                    going = next;
                    if !self.touching {
                        self.hash.iter_mut().for_each(|h| going.hash(h));
                    }
                    if going.is_empty() {
                        return Ok(());
                    }
                    self.spend(1)?;
                    env.set(*var, value.clone());
                    self.stmts(body, env, &going)?;
                    value = match &value {
                        Value::Same(v) => Value::Same(v.saturating_add(*step)),
                        Value::Each(all) => Value::Each(std::rc::Rc::new(
                            all.iter().map(|v| v.saturating_add(*step)).collect(),
                        )),
                    };
                }
            }
            StmtKind::If { cond, then, otherwise } => {
                let mut yes = *mask;
                for (a, op, b) in cond {
                    let (a, b) = (self.exprs.value(*a, env), self.exprs.value(*b, env));
                    let mut holding = Mask::default();
                    for t in mask.threads() {
                        let (a, b) = (a.of(t), b.of(t));
                        if a == NOTHING || b == NOTHING {
                            return Err(Unwalked);
                        }
                        if holds(a, *op, b) {
                            holding.insert(t);
                        }
                    }
                    yes = yes.and(&holding);
                }
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
            }
            StmtKind::Spec(id) => {
                let spec = &self.exprs.program.specs[*id];
                let Some(exec) = spec.exec else { return Err(Unwalked) };
                let groups = Groups::of(self.exprs, exec.threads, env, self.elected);
                let active = groups.map_err(|_| Unwalked)?.mask.and(mask);
                if active.is_empty() {
                    return Ok(());
                }
                if let Some(body) = &spec.body {
                    return self.stmts(body, env, &active);
                }
                if self.touching
                    && let Some(leaf) = self.plan.leaves.get(id)
                {
                    self.leaf(leaf, env, &active, self.plan.site(stmt))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn leaf(&mut self, leaf: &'a LeafPlan, env: &Env, active: &Mask, site: u32) -> Result<(), Unwalked> {
        let plan = self.plan;
        if let How::Bulk(bulk) = &leaf.how {
            return self.bulk(leaf, bulk, env, active, site);
        }
        let window = match &leaf.how {
            How::Atom { window, .. } => *window,
            _ => 32,
        };
        let groups = match &leaf.how {
            How::Atom { groups, size, .. } if *size > 1 => Some(groups),
            _ => None,
        };
        for o in &leaf.operands {
            let view = &plan.views[o.view];
            let Space::Global(g) = view.space else { continue };
            let does = match (o.writes, leaf.accumulates) {
                (true, Some(op)) => sum(op),
                (true, None) => Does::Write,
                (false, _) => Does::Read,
            };
            let valid = match does {
                Does::Read => leaf.valid.map(|d| self.exprs.value(d, env)),
                _ => None,
            };
            let bases = self.exprs.value(view.offset, env);
            self.spend((active.len() * view.first.len()) as u64)?;
            for t in active.threads() {
                let place = groups.and_then(|groups| {
                    let lane = (t % window) as u16;
                    groups.iter().find_map(|g| g.iter().position(|l| *l == lane))
                });
                let list: &[u32] = match (&o.of_thread, place) {
                    (Some(all), Some(place)) => all.get(place).map_or(&[], |l| l.as_slice()),
                    _ => &view.first,
                };
                let most = valid.as_ref().map(|v| v.of(t));
                for e in list.iter().filter(|e| most.is_none_or(|n| i64::from(**e) < n)) {
                    let at = bases.of(t).saturating_add(view.places[*e as usize]);
                    self.touch(g, at, env.block, t, site, does);
                }
            }
        }
        Ok(())
    }

    fn bulk(
        &mut self,
        leaf: &LeafPlan,
        bulk: &'a Bulk,
        env: &Env,
        active: &Mask,
        site: u32,
    ) -> Result<(), Unwalked> {
        for (v, is_target) in [(bulk.source, false), (bulk.target, true)] {
            let view = &self.plan.views[v];
            let Space::Global(g) = view.space else { continue };
            let does = match (is_target, leaf.accumulates) {
                (true, Some(op)) => sum(op),
                (true, None) => Does::Write,
                (false, _) => Does::Read,
            };
            for t in active.threads() {
                let base = self.exprs.at(view.offset, env, t).ok_or(Unwalked)?;
                let place = match &bulk.boxed {
                    Some(b) => {
                        let at = b.at.iter().map(|d| self.exprs.at(*d, env, t));
                        Some((at.collect::<Option<Vec<i64>>>().ok_or(Unwalked)?, &b.extents))
                    }
                    None => None,
                };
                self.spend(view.first.len() as u64)?;
                for e in &view.first {
                    if let Some((at, extents)) = &place
                        && !crate::machine::is_inside(i64::from(*e), &view.modes, at, extents)
                    {
                        continue;
                    }
                    let at = base.saturating_add(view.places[*e as usize]);
                    self.touch(g, at, env.block, t, site, does);
                }
            }
        }
        Ok(())
    }

    fn touch(&mut self, g: usize, at: i64, block: i64, thread: usize, site: u32, does: Does) {
        /// Meetings that are kept.
        const MAX_MEETINGS: usize = 1 << 10;
        let cell = at.div_euclid(self.plan.globals[g].granule);
        let cells = &mut self.touched[g].cells;
        let Some(old) = usize::try_from(cell).ok().and_then(|c| cells.get_mut(c)) else { return };
        let new = packed(block, thread, site, does);
        if *old == 0 {
            *old = new;
            return;
        }
        let (other, other_thread, other_site, did) = unpacked(*old);
        if other == block as u64 + 1 && other_thread == thread as u32 {
            if did == Does::Read {
                *old = new;
            }
            return;
        }
        if did == does && does != Does::Write {
            if does == Does::Read {
                *old |= SEVERAL;
            }
            return;
        }
        let meeting = Meeting {
            buffer: g,
            blocks: (if other == SEVERAL { -1 } else { other as i64 - 1 }, block),
            threads: (other_thread, thread as u32),
            sites: (other_site, site),
            does: (did, does),
        };
        let same = |m: &Meeting| {
            m.sites == meeting.sites && (m.blocks.0 == m.blocks.1) == (meeting.blocks.0 == block)
        };
        if self.meetings.len() < MAX_MEETINGS && !self.meetings.iter().any(same) {
            self.meetings.push(meeting);
        }
        *old = new;
    }
}

/// Whether a comparison holds.
pub(crate) fn holds(a: i64, op: CmpOp, b: i64) -> bool {
    match op {
        CmpOp::Lt => a < b,
        CmpOp::Le => a <= b,
        CmpOp::Gt => a > b,
        CmpOp::Ge => a >= b,
        CmpOp::Eq => a == b,
        CmpOp::Ne => a != b,
    }
}
