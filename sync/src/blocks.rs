//! Which elements of global memory the blocks of a grid write, and which way the threads of each take.
//!
//! The statements are walked without synchronization, for each block. What decides nothing of that is left out.

use crate::differences::{Differences, key};
use crate::expr::{Env, Exprs, NOTHING, Value, holds};
use crate::memory::{Does, sum};
use crate::plan::{Bulk, How, LeafPlan, Plan, Space};
use crate::threads::{Groups, Mask};
use carbyne_ir::ast::CmpOp;
use carbyne_ir::expr::Dim;
use carbyne_ir::program::{SpecId, Stmt, StmtKind};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

/// Granules of global memory that are followed across blocks.
const MAX_CELLS: i64 = 1 << 24;

/// What a statement takes of an eighth of its threads, in accesses.
const STATEMENT: u64 = 4;

/// What a block touches, to be moved to where others do: the buffer, the part of the offset that moves it, what it does;
/// the statement and the granules.
type Moved = BTreeMap<(usize, u64, Does), (Dim, u32, Vec<i64>)>;

/// What blocks touch of a buffer of global memory.
struct Touched {
    /// Of each granule one more than the block that touched it last, and what it did.
    cells: Vec<u32>,
    /// What the block that is walked does there: by a thread, or several.
    of_block: HashMap<i64, (u32, Does, u32), BuildHasherDefault<OfCell>>,
    /// A statement that does so.
    sites: HashMap<Does, u32>,
}

/// Spreads the numbers of granules, which nobody chooses to collide: there are millions of them.
#[derive(Default)]
struct OfCell(u64);

impl Hasher for OfCell {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_i64(i64::from(*b)));
    }

    fn write_i64(&mut self, n: i64) {
        // The golden ratio, as a fraction of 2^64; tables look at both ends of a hash.
        let mixed = (self.0 ^ n.cast_unsigned()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
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
    pub(crate) plan: &'a Plan,
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

/// Why a walk does not come to its end.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unwalked {
    /// It is longer than the limit.
    TooLong,
    /// It needs a number that is not known.
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
            let size = exprs.constant(exprs.program.buffers[g.id].cosize).unwrap_or(i64::MAX);
            let n = size / g.granule + 1;
            all += n.clamp(0, MAX_CELLS + 1);
            if !(0..=MAX_CELLS).contains(&n) || all > 2 * MAX_CELLS {
                too_large.insert(i);
            }
            let n = if too_large.contains(&i) { 0 } else { n as usize };
            let (of_block, sites) = (HashMap::default(), HashMap::new());
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
                return Err(Unwalked::TooLong);
            }
        }
        for ((g, _, does), (part, site, mut cells)) in std::mem::take(&mut self.moved) {
            cells.sort_unstable();
            cells.dedup();
            let value = |block: i64| {
                let env = Env { block, loops: vec![] };
                self.exprs.value(part, &env).same().ok_or(Unwalked::Unknown)
            };
            let granule = self.plan.globals[g].granule;
            let first = value(0)?;
            self.touched[g].sites.insert(does, site);
            for block in 0..n_blocks {
                let by = value(block)?.saturating_sub(first);
                if by.rem_euclid(granule) != 0 {
                    return Err(Unwalked::Unknown);
                }
                self.spend(cells.len() as u64 / 8)?;
                for cell in &cells {
                    self.own(g, cell.saturating_add(by / granule), block, (0, 0), site, does);
                }
            }
        }
        Ok(())
    }

    /// How many accesses were walked.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    fn block(&mut self, block: i64) -> Result<(), Unwalked> {
        let mut env = Env { block, loops: vec![] };
        let mask = Mask::first(self.exprs.n_threads);
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
        self.spend(STATEMENT * (1 + self.exprs.n_threads as u64 / 8))?;
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
            StmtKind::For { .. } => self.turns(stmt, env, mask),
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
        }
    }

    /// The turns of a loop.
    fn turns(&mut self, stmt: &'p Stmt, env: &mut Env, mask: &Mask) -> Result<(), Unwalked> {
        let StmtKind::For { var, start, end, step, body, .. } = &stmt.kind else { return Ok(()) };
        let mut value = self.exprs.value(*start, env);
        let end = self.exprs.value(*end, env);
        let mut going = *mask;
        loop {
            going = compared(CmpOp::Lt, &value, &end, &going)?;
            if !self.touching {
                self.hash.iter_mut().for_each(|h| going.hash(h));
            }
            if going.is_empty() {
                return Ok(());
            }
            self.spend(STATEMENT * (1 + self.exprs.n_threads as u64 / 8))?;
            env.set(*var, value.clone(), Default::default());
            self.stmts(body, env, &going)?;
            if self.touching && self.differences.alike.contains(&key(stmt)) {
                return Ok(());
            }
            value = value.map(|v| v.saturating_add(*step));
        }
    }

    /// The threads for which a condition holds.
    fn holding(
        &self,
        cond: &[(Dim, CmpOp, Dim)],
        env: &Env,
        mask: &Mask,
    ) -> Result<Mask, Unwalked> {
        let mut yes = *mask;
        for (a, op, b) in cond {
            let (a, b) = (self.exprs.value(*a, env), self.exprs.value(*b, env));
            yes = yes.and(&compared(*op, &a, &b, mask)?);
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
            return self.stmts(body, env, &active);
        }
        match self.plan.leaves.get(&id) {
            Some(leaf) if self.touching => self.leaf(leaf, env, &active, site),
            _ => Ok(()),
        }
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
                let base = self.exprs.at(view.offset, env, t).ok_or(Unwalked::Unknown)?;
                let place = match &bulk.boxed {
                    Some(b) => {
                        let at = b.at.iter().map(|d| self.exprs.at(*d, env, t));
                        Some((
                            at.collect::<Option<Vec<i64>>>().ok_or(Unwalked::Unknown)?,
                            &b.extents,
                        ))
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

/// Those of these threads for which a comparison holds.
fn compared(op: CmpOp, a: &Value, b: &Value, threads: &Mask) -> Result<Mask, Unwalked> {
    let mut out = Mask::default();
    for t in threads.threads() {
        let (a, b) = (a.of(t), b.of(t));
        if a == NOTHING || b == NOTHING {
            return Err(Unwalked::Unknown);
        }
        if holds(a, op, b) {
            out.insert(t);
        }
    }
    Ok(out)
}
