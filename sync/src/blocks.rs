//! What differs from block to block: which way threads take, which stage they use; and which elements of global memory
//! the blocks of a grid write.
//!
//! The statements are walked without synchronization, for each block. What decides nothing of that is left out.

use crate::expr::{Env, Exprs, NOTHING, Value};
use crate::memory::{Does, sum};
use crate::plan::{Bulk, How, LeafPlan, Plan, Space};
use crate::threads::{Groups, Mask};
use carbyne_ir::ast::CmpOp;
use carbyne_ir::expr::{Dim, Node, VarId, VarInfo};
use carbyne_ir::program::{Program, SpecId, Stmt, StmtKind, VarKind};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Granules of global memory that are followed across blocks.
const MAX_CELLS: i64 = 1 << 24;

/// The statements that matter.
pub(crate) struct Differences<'p> {
    /// Expressions that decide what a block does, and differ from block to block.
    deciding: HashMap<usize, Vec<Dim>>,
    /// Statements with such an expression or an access to global memory inside, and themselves.
    decides: HashSet<usize>,
    touches: HashSet<usize>,
    /// Loops of which one turn touches all that the others do.
    alike: HashSet<usize>,
    /// Of views of global memory the part of the offset that depends on the block, where that only moves what is touched.
    moves: HashMap<usize, Dim>,
    /// Buffers of global memory of which that is not so, for some view.
    pub(crate) walked: HashSet<usize>,
    /// Expressions that decide something and differ from block to block, or with a symbol.
    pub(crate) open: Vec<Dim>,
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
            alike: HashSet::new(),
            moves: HashMap::new(),
            walked: HashSet::new(),
            open: vec![],
            body,
        };
        // Loops with the variables that count their turns, and which of these what is touched depends on.
        let mut turns: Vec<(usize, VarId)> = vec![];
        let mut needed: HashSet<VarId> = HashSet::new();
        let mut bounds: HashMap<usize, Vec<Dim>> = HashMap::new();
        let mut loops: HashMap<VarId, Dim> = HashMap::new();
        let mut walk = p.walk(body);
        while let Some(step) = walk.next() {
            let carbyne_ir::program::walk::Step::Enter(stmt) = step else { continue };
            let mut dims = vec![];
            let mut is_leaf = false;
            let mut global: Vec<(usize, usize)> = vec![];
            let mut places: Vec<Dim> = vec![];
            let mut boxed = None;
            let mut view = |dims: &mut Vec<Dim>, i: usize| {
                let v = &plan.views[i];
                match v.space {
                    Space::Shared(_) | Space::Registers(_) => dims.push(v.offset),
                    Space::Global(g) => {
                        is_leaf = true;
                        global.push((i, g));
                        places.push(v.offset);
                    }
                    Space::Free | Space::Gathered => {}
                }
                dims.extend(v.peer);
            };
            match &stmt.kind {
                StmtKind::For { var, start, end, step, .. } => {
                    dims.extend([*start, *end]);
                    // A variable counts its turns: what is left of the block in it matters.
                    let turn =
                        p.arena.var(VarInfo { name: String::new(), lo: 0, hi: None, div: 1 });
                    let counted = turn.clone().and_then(|turn| {
                        let start = put(p, &loops, *start);
                        p.arena.add(start, p.arena.mul(turn, Dim::Const(*step))?)
                    });
                    if let Ok(counted) = counted {
                        loops.insert(*var, counted);
                    }
                    if let Some(turn) = turn.ok().and_then(|t| p.arena.var_id(t)) {
                        turns.push((key(stmt), turn));
                    }
                    bounds.insert(key(stmt), vec![*start, *end]);
                    // The first value itself is no decision, only how many turns there are.
                    if let Ok(n) = p.arena.sub(*end, *start) {
                        dims = vec![n];
                    }
                }
                StmtKind::If { cond, .. } => {
                    let both = cond.iter().flat_map(|(a, _, b)| [*a, *b]);
                    bounds.insert(key(stmt), both.collect());
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
                            if let Some(b) = &bulk.boxed {
                                boxed =
                                    Some((b, if b.of_source { bulk.source } else { bulk.target }));
                            }
                        }
                    }
                }
                StmtKind::Barrier(Some(t)) => dims.push(p.threads[*t].offset),
                StmtKind::Barrier(None) | StmtKind::Allocate(_) | StmtKind::Indices(_) => {}
            }
            if let StmtKind::Spec(id) = &stmt.kind
                && let Some(exec) = p.specs[*id].exec
            {
                bounds.entry(key(stmt)).or_default().push(p.threads[exec.threads].offset);
            }
            if is_leaf {
                if let StmtKind::Spec(id) = &stmt.kind
                    && let Some(leaf) = plan.leaves.get(id)
                {
                    places.extend(leaf.valid);
                }
                if let Some((b, _)) = boxed {
                    places.extend(&b.at);
                }
                for around in walk.around() {
                    places.extend(bounds.get(&key(around)).into_iter().flatten());
                }
                needed.extend(places.iter().flat_map(|d| p.vars_in(put(p, &loops, *d))));
                let free = |a: &&Stmt| !out.deciding.contains_key(&key(a));
                let alike = walk.around().iter().all(free);
                for (v, g) in &global {
                    let whole = match boxed {
                        Some((b, of)) if of == *v => {
                            b.at.iter().zip(&b.extents).zip(&plan.views[*v].modes).all(
                                |((at, extent), n)| {
                                    let (lo, hi) = p.arena.range(*at);
                                    lo.is_some_and(|lo| lo >= 0)
                                        && hi.is_some_and(|hi| hi.saturating_add(*n) <= *extent)
                                },
                            )
                        }
                        _ => true,
                    };
                    let part = part_of_block(p, put(p, &loops, plan.views[*v].offset));
                    match part.filter(|_| whole && alike) {
                        Some(part) => drop(out.moves.insert(*v, part)),
                        None => drop(out.walked.insert(*g)),
                    }
                }
            }
            if let StmtKind::For { start, end, .. } = &stmt.kind {
                out.open.extend([*start, *end]);
            }
            out.open.extend(&dims);
            dims.retain(|d| of_block(p, put(p, &loops, *d), 0));
            if !dims.is_empty() {
                out.deciding.insert(key(stmt), dims);
                out.decides.extend(walk.around().iter().map(|s| key(s)));
            }
            if is_leaf {
                out.touches.extend(walk.around().iter().map(|s| key(s)));
            }
        }
        out.open.retain(|d| crate::family::is_open(p, *d));
        let alike = turns.iter().filter(|(_, turn)| !needed.contains(turn)).map(|(key, _)| *key);
        out.alike = alike.collect();
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

/// The part of an offset that depends on the block; none where it is mixed with the thread or a loop.
fn part_of_block(p: &Program, dim: Dim) -> Option<Dim> {
    let Dim::Expr(id) = dim else { return Some(Dim::Const(0)) };
    let terms: Vec<(Dim, i64)> = match p.arena.node(id) {
        Node::Linear { terms, .. } => terms.iter().map(|(t, c)| (Dim::Expr(*t), *c)).collect(),
        _ => vec![(dim, 1)],
    };
    let mut part = Dim::Const(0);
    for (term, by) in terms {
        if of_block(p, term, 0) {
            if of_thread(p, term, 0) {
                return None;
            }
            part = p.arena.add(part, p.arena.mul(term, Dim::Const(by)).ok()?).ok()?;
        }
    }
    Some(part)
}

/// Whether an expression depends on the thread or on a loop.
fn of_thread(p: &Program, dim: Dim, depth: usize) -> bool {
    p.vars_in(dim).iter().any(|v| match p.vars.get(v) {
        Some(VarKind::Block(_) | VarKind::Symbol) => false,
        Some(VarKind::Index(of)) => depth > 64 || of_thread(p, *of, depth + 1),
        // What counts turns is known to nobody else.
        Some(VarKind::Thread(_) | VarKind::Loop) | None => true,
    })
}

/// What a block touches, to be moved to where others do: the buffer, the part of the offset that moves it, what it does;
/// the statement and the granules.
type Moved = BTreeMap<(usize, u64, Does), (Dim, u32, Vec<i64>)>;

/// What blocks touch of a buffer of global memory.
struct Touched {
    /// Of each granule one more than the block that touched it last, and what it did.
    cells: Vec<u32>,
    /// What the block that is walked does there: by a thread, or several.
    of_block: HashMap<i64, (u32, Does, u32)>,
    /// A statement that does so.
    sites: HashMap<Does, u32>,
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

/// In the place of a block: several, which read or accumulate.
const SEVERAL: u32 = (1 << 24) - 1;

fn packed(block: u32, does: Does) -> u32 {
    let does = match does {
        Does::Read => 0,
        Does::Write => 1,
        Does::Sum(op) => 2 + u32::from(op),
    };
    block | does << 24
}

fn unpacked(v: u32) -> (u32, Does) {
    let does = match v >> 24 {
        0 => Does::Read,
        1 => Does::Write,
        op => Does::Sum((op - 2) as u8),
    };
    (v & SEVERAL, does)
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
    moved: Moved,
    pub(crate) meetings: Vec<Meeting>,
    pub(crate) too_large: HashSet<usize>,
    /// Whether more is touched than is kept.
    too_many: bool,
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
        let mut all = 0;
        for (i, g) in plan.globals.iter().enumerate() {
            let size = exprs.constant(exprs.program.buffers[g.id].cosize).unwrap_or(i64::MAX);
            let n = size / g.granule + 1;
            all += n.clamp(0, MAX_CELLS + 1);
            if !(0..=MAX_CELLS).contains(&n) || all > 2 * MAX_CELLS {
                too_large.insert(i);
            }
            let n = if too_large.contains(&i) { 0 } else { n as usize };
            let (of_block, sites) = (HashMap::new(), HashMap::new());
            touched.push(Touched { cells: vec![0; n], of_block, sites });
        }
        Walker {
            exprs,
            plan,
            differences,
            elected,
            hash: [DefaultHasher::new(), DefaultHasher::new()],
            touching: false,
            touched,
            moved: Moved::new(),
            meetings: vec![],
            too_large,
            too_many: false,
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

    /// Notes what the blocks of a grid touch of global memory that is written.
    pub(crate) fn touches(&mut self, n_blocks: i64) -> Result<(), Unwalked> {
        self.touching = true;
        if self.plan.globals.is_empty() {
            return Ok(());
        }
        for block in 0..n_blocks {
            if block > 0 && self.differences.walked.is_empty() {
                break;
            }
            self.touched.iter_mut().for_each(|t| t.of_block.clear());
            self.block(block)?;
            if self.too_many || self.touched.iter().any(|t| t.of_block.len() > 1 << 21) {
                return Err(Unwalked);
            }
        }
        for ((g, _, does), (part, site, mut cells)) in std::mem::take(&mut self.moved) {
            cells.sort_unstable();
            cells.dedup();
            let value = |block: i64| {
                let env = Env { block, loops: vec![] };
                self.exprs.value(part, &env).same().ok_or(Unwalked)
            };
            let granule = self.plan.globals[g].granule;
            let first = value(0)?;
            self.touched[g].sites.insert(does, site);
            for block in 0..n_blocks {
                let by = value(block)?.saturating_sub(first);
                if by.rem_euclid(granule) != 0 {
                    return Err(Unwalked);
                }
                self.spend(cells.len() as u64 / 8)?;
                for cell in &cells {
                    self.own(g, cell.saturating_add(by / granule), block, (0, 0), site, does);
                }
            }
        }
        Ok(())
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
        self.spend(1 + self.exprs.n_threads as u64 / 8)?;
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
                    self.spend(1 + self.exprs.n_threads as u64 / 8)?;
                    env.set(*var, value.clone(), Default::default());
                    self.stmts(body, env, &going)?;
                    if self.touching && self.differences.alike.contains(&key(stmt)) {
                        return Ok(());
                    }
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

    fn leaf(
        &mut self,
        leaf: &'a LeafPlan,
        env: &Env,
        active: &Mask,
        site: u32,
    ) -> Result<(), Unwalked> {
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
                    self.touch(g, o.view, at, env.block, t, site, does);
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
                    self.touch(g, v, at, env.block, t, site, does);
                }
            }
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "one access, and what is known of it")]
    fn touch(
        &mut self,
        g: usize,
        view: usize,
        at: i64,
        block: i64,
        thread: usize,
        site: u32,
        does: Does,
    ) {
        /// Granules of one statement that are kept before they are looked at again.
        const MAX_KEPT: usize = 1 << 20;
        let cell = at.div_euclid(self.plan.globals[g].granule);
        if !self.differences.walked.contains(&g) {
            if block == 0
                && let Some(part) = self.differences.moves.get(&view)
            {
                let of = match part {
                    Dim::Const(_) => 0,
                    Dim::Expr(id) => id.index() as u64 + 1,
                };
                let kept = self.moved.entry((g, of, does)).or_insert((*part, site, vec![]));
                kept.2.push(cell);
                if kept.2.len() > MAX_KEPT && kept.2.len().is_power_of_two() {
                    kept.2.sort_unstable();
                    kept.2.dedup();
                    self.too_many |= kept.2.len() > 4 * MAX_KEPT;
                }
            }
            return;
        }
        self.touched[g].sites.insert(does, site);
        // Several threads of the block.
        let of_block = &mut self.touched[g].of_block;
        let new = (thread as u32, does, site);
        let old = *of_block.entry(cell).or_insert(new);
        let both = old.1 == does && does != Does::Write;
        if old.0 != thread as u32 && !both {
            self.meet(g, (block, block), (old.0, thread as u32), (old.2, site), (old.1, does));
        }
        if old.1 == Does::Read || does == Does::Write {
            self.touched[g].of_block.insert(cell, new);
        }
        self.own(g, cell, block, (0, thread as u32), site, does);
    }

    /// A block touches a granule.
    #[inline]
    fn own(&mut self, g: usize, cell: i64, block: i64, threads: (u32, u32), site: u32, does: Does) {
        let touched = &mut self.touched[g];
        let Some(old) = usize::try_from(cell).ok().and_then(|c| touched.cells.get_mut(c)) else {
            return;
        };
        let me = block as u32 + 1;
        if *old == 0 {
            *old = packed(me, does);
            return;
        }
        let (other, did) = unpacked(*old);
        let both = did == does && does != Does::Write;
        if other == me || both {
            if other != me {
                *old = packed(SEVERAL, does);
            } else if did == Does::Read {
                *old = packed(me, does);
            }
            return;
        }
        *old = packed(me, does);
        let other_block = if other == SEVERAL { -1 } else { i64::from(other) - 1 };
        let other_site = touched.sites.get(&did).copied().unwrap_or(site);
        self.meet(g, (other_block, block), threads, (other_site, site), (did, does));
    }

    fn meet(
        &mut self,
        buffer: usize,
        blocks: (i64, i64),
        threads: (u32, u32),
        sites: (u32, u32),
        does: (Does, Does),
    ) {
        /// Meetings that are kept.
        const MAX_MEETINGS: usize = 1 << 10;
        let new = Meeting { buffer, blocks, threads, sites, does };
        let inside = |m: &Meeting| m.blocks.0 == m.blocks.1;
        let same = |m: &Meeting| m.sites == sites && inside(m) == inside(&new);
        if self.meetings.len() < MAX_MEETINGS && !self.meetings.iter().any(same) {
            self.meetings.push(new);
        }
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
