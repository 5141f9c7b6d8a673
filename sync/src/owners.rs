//! Proves that no two threads access the same element of a buffer in global memory, for all sizes.
//!
//! The offset of an access is a sum of multiples of coordinates: of the block, the thread,
//! iterations of loops and elements of the view. Two accesses to the same element have equal sums.
//! If the small terms of the sums stay below the unit of the large terms, the sums are equal term
//! by term, like numbers digit by digit. A quotient and a remainder by the same number determine
//! their dividend. If the block and the thread follow from the offset in this way, no two threads
//! access the same element, and the checker need not follow the buffer.
//!
//! Example: thread `t` of 128 threads of block `b` writes at offset 128·b + t. As t < 128, the
//! offset determines b and t.
//!
//! The derivation collects expressions that have the same value in both accesses ([`Known`]).
//! Symbols do, and so do expressions over such expressions. The prover decides inequalities under
//! the facts of the program, the conditions around the access and the bounds of its view.

use crate::gcd::gcd;
use carbyne_atoms::AtomTable;
use carbyne_ir::expr::prove::{self, Assumptions};
use carbyne_ir::expr::quotients::{at_most, factors, is_natural, quotients};
use carbyne_ir::expr::{Dim, ExprArena, ExprId, Node, VarId, VarInfo};
use carbyne_ir::program::{
    BufferId, MapId, MapView, Program, SpecId, Stmt, StmtKind, Tensor, TensorId, ThreadsId,
    VarKind, differences,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The most statements that access a buffer.
const MAX_ACCESSES: usize = 64;
/// The most rounds of deriving known expressions from others.
const MAX_ROUNDS: usize = 16;
/// The deepest expression that is examined.
const MAX_DEPTH: usize = 32;

/// The buffers in global memory that a kernel writes and in which no two threads access the same
/// element.
pub(crate) fn owned(p: &Program, kernel: SpecId, atoms: &AtomTable) -> BTreeSet<BufferId> {
    let Some(exec) = p.specs[kernel].exec else { return BTreeSet::new() };
    let mut finder = Finder {
        p,
        atoms,
        around: p.assumptions(),
        loops: HashMap::new(),
        role: None,
        iterations: vec![],
        ends: vec![],
        found: Found::default(),
    };
    if let (Some(block), Some(n)) = (p.threads[exec.blocks].var, finder.size(exec.blocks)) {
        finder.below(p.arena.dim_of(block), n);
    }
    if let (Some(thread), Some(n)) = (p.threads[exec.threads].var, finder.size(exec.threads)) {
        finder.below(p.arena.dim_of(thread), n);
    }
    finder.stmts(p.specs[kernel].body.as_deref().unwrap_or(&[]), 0);
    let found = finder.found;
    if found.too_deep {
        return BTreeSet::new();
    }
    let n_blocks = p.threads[exec.blocks].concat().size_in(&p.arena).ok();
    let one_block = n_blocks.and_then(Dim::as_const) == Some(1);
    let is_owned = |buffer: &BufferId| {
        let Some(all) = found.accesses.get(buffer) else { return false };
        let few = all.len() <= MAX_ACCESSES && !found.lost.contains(buffer);
        few && Known::new(p, all, &found).decide(one_block)
    };
    found.written.iter().copied().filter(is_owned).collect()
}

/// An access of a statement to a buffer.
#[derive(Clone)]
struct Access {
    /// The offset, in scalars of the buffer, as an expression of the block, the thread, iterations
    /// and elements of the view.
    place: Dim,
    /// Expressions that are at least zero where the access happens.
    holds: Assumptions,
    /// The iteration counters of the enclosing loops.
    iterations: Vec<VarId>,
    /// The executing threads and the number of a thread among them, if there is one thread or if
    /// the threads have a stride.
    part: Option<(ThreadsId, Dim)>,
    /// Cached answers of the prover: whether an expression is at least zero and below another one.
    within: RefCell<HashMap<(Dim, Dim), bool>>,
    /// Whether two such accesses of a thread are in program order: the access is synchronous, and
    /// the executing thread is certain.
    certain: bool,
}

impl Access {
    /// Whether an expression is at least zero and below another one where the access happens.
    fn is_within(&self, arena: &ExprArena, dim: Dim, end: Dim) -> bool {
        *self.within.borrow_mut().entry((dim, end)).or_insert_with(|| {
            is_natural(arena, dim, &self.holds)
                && prove::less(arena, dim, end, &self.holds).is_true()
        })
    }
}

/// Threads at equal distances.
#[derive(Copy, Clone)]
struct Role {
    /// The variable of the block's threads.
    thread: VarId,
    /// The first thread.
    first: Dim,
    /// The distance of consecutive threads.
    step: i64,
    /// The number of a thread: a variable with a known range.
    behind: (VarId, Dim),
}

/// Finds accesses, statement by statement.
struct Finder<'p> {
    p: &'p Program,
    atoms: &'p AtomTable,
    around: Assumptions,
    /// Loop variables as expressions of iteration counters.
    loops: HashMap<VarId, Dim>,
    /// The threads that execute the statement, if they are a part of the block.
    role: Option<Role>,
    iterations: Vec<VarId>,
    /// Upper bounds of coordinates.
    ends: Vec<Dim>,
    found: Found,
}

/// The accesses of a kernel by buffer, and the buffers that cannot be decided.
#[derive(Default)]
struct Found {
    /// Integers of the caller's memory: variable, buffer and index.
    elements: Vec<(VarId, BufferId, Dim)>,
    accesses: BTreeMap<BufferId, Vec<Access>>,
    written: BTreeSet<BufferId>,
    /// Buffers with an access at an unknown offset.
    lost: HashSet<BufferId>,
    /// Whether statements were left out.
    too_deep: bool,
}

impl<'p> Finder<'p> {
    fn size(&self, threads: ThreadsId) -> Option<Dim> {
        self.p.threads[threads].concat().size_in(&self.p.arena).ok()
    }

    /// Assumes that an expression is below another one.
    fn below(&mut self, a: Option<Dim>, b: Dim) {
        let arena = &self.p.arena;
        let Some((a, room)) = a.and_then(|a| Some((a, room(arena, a, b)?))) else { return };
        self.around.push(arena, room);
        self.ends.push(b);
        // If a product is positive, none of its factors is zero.
        let ids = factors(arena, b).1;
        let natural = |id: &ExprId| arena.range(Dim::Expr(*id)).0.is_some_and(|lo| lo >= 0);
        if ids.iter().all(natural) && is_natural(arena, a, &self.around) {
            let more = ids.iter().filter_map(|id| arena.sub(Dim::Expr(*id), Dim::Const(1)).ok());
            more.for_each(|dim| self.around.push(arena, dim));
        }
    }

    /// Facts about quotients by sizes: if *x* is below *s·v*, then *k* times the quotient of *x* by
    /// *k·s* is below *v*.
    fn divisions(&self, dim: Dim, holds: &mut Assumptions) {
        let arena = &self.p.arena;
        for (x, by) in quotients(arena, dim) {
            let Ok(quotient) = arena.div(x, by) else { continue };
            let (times, sizes) = factors(arena, by);
            for end in &self.ends {
                let (n, all) = factors(arena, *end);
                let Some(rest) = without(&all, &sizes) else { continue };
                let product = |n: i64, ids: &[ExprId]| {
                    ids.iter().try_fold(Dim::Const(n), |all, id| arena.mul(all, Dim::Expr(*id)))
                };
                // The bound itself, or that of a quotient by the numeric factor of the bound.
                let found = [1, n].into_iter().find_map(|n| {
                    let end = product(n, &all).ok()?;
                    let is_below = prove::less(arena, x, end, holds).is_true();
                    is_below.then(|| product(n, &rest).ok()).flatten()
                });
                let counted = arena.mul(quotient, Dim::Const(times)).ok();
                if let Some(room) = found.zip(counted).and_then(|(v, q)| room(arena, q, v)) {
                    holds.push(arena, room);
                }
            }
        }
    }

    /// A fresh coordinate, counted from zero.
    fn fresh(&self, extent: Option<i64>) -> Option<(VarId, Dim)> {
        let hi = extent.map(|n| n.saturating_sub(1));
        let arena = &self.p.arena;
        let dim = arena.var(VarInfo { name: "~".to_owned(), lo: 0, hi, div: 1 }).ok()?;
        Some((arena.var_id(dim)?, dim))
    }

    /// An expression in terms of the block, the thread and iterations.
    fn rooted(&self, dim: Dim, depth: usize) -> Option<Dim> {
        let own = |v: VarId| match self.p.vars.get(&v) {
            _ if depth > MAX_DEPTH => None,
            Some(VarKind::Index(of)) => self.rooted(*of, depth + 1),
            Some(VarKind::Loop) => self.loops.get(&v).copied(),
            _ => None,
        };
        let arena = &self.p.arena;
        let dim = arena.substitute(dim, &own).ok()?;
        // Substituting the number of the thread removes remainders whose dividend is below the
        // divisor.
        let Some(role @ Role { thread, first, step, behind: (var, behind) }) = self.role else {
            return Some(dim);
        };
        let inside = arena.add(first, arena.mul(behind, Dim::Const(step)).ok()?).ok()?;
        let inside = arena.substitute(dim, &|v| (v == thread).then_some(inside)).ok()?;
        let number = self.number(&role)?;
        arena.substitute(inside, &|v| (v == var).then_some(number)).ok()
    }

    /// The number of the thread among those of a role.
    fn number(&self, role: &Role) -> Option<Dim> {
        let arena = &self.p.arena;
        let from = arena.sub(arena.dim_of(role.thread)?, role.first).ok()?;
        arena.div(from, Dim::Const(role.step)).ok()
    }

    fn stmts(&mut self, stmts: &'p [Stmt], depth: usize) {
        if depth >= MAX_DEPTH {
            self.found.too_deep |= !stmts.is_empty();
            return;
        }
        stmts.iter().for_each(|stmt| self.stmt(stmt, depth));
    }

    fn stmt(&mut self, stmt: &'p Stmt, depth: usize) {
        let held = self.around.len();
        match &stmt.kind {
            StmtKind::For { var, start, end, step, body, .. } => {
                let mut turn = *var;
                if let (Some(start), Some((number, counted))) =
                    (self.rooted(*start, 0), self.fresh(None))
                {
                    turn = number;
                    let arena = &self.p.arena;
                    let value = arena.mul(counted, Dim::Const(*step));
                    if let Ok(value) = value.and_then(|by| arena.add(start, by)) {
                        self.loops.insert(*var, value);
                        if let Some(end) = self.rooted(*end, 0) {
                            self.below(Some(value), end);
                        }
                    }
                }
                self.iterations.push(turn);
                self.stmts(body, depth + 1);
                self.iterations.pop();
            }
            StmtKind::If { cond, then, otherwise } => {
                for (a, op, b) in cond {
                    let sides = self.rooted(*a, 0).zip(self.rooted(*b, 0));
                    let all = sides.map(|(a, b)| differences(&self.p.arena, a, *op, b));
                    for dim in all.into_iter().flatten() {
                        self.around.push(&self.p.arena, dim);
                    }
                }
                self.stmts(then, depth + 1);
                self.around.truncate(held);
                self.stmts(otherwise, depth + 1);
            }
            StmtKind::Element { var, tensor } => {
                let of = &self.p.tensors[*tensor];
                if let Some(place) = self.rooted(of.offset, 0) {
                    self.found.elements.push((*var, of.buffer, place));
                }
            }
            StmtKind::Spec(id) => {
                let spec = &self.p.specs[*id];
                match &spec.body {
                    Some(body) => self.stmts(body, depth + 1),
                    None => {
                        self.executing(*id);
                        let outputs = spec.outputs.iter().map(|t| (*t, true));
                        let inputs = spec.input_tensors().map(|t| (t, false));
                        outputs.chain(inputs).for_each(|(t, writes)| self.access(*id, t, writes));
                        self.role = None;
                    }
                }
            }
            StmtKind::Allocate(_)
            | StmtKind::Indices(_)
            | StmtKind::Step { .. }
            | StmtKind::Barrier(_)
            | StmtKind::Sync(_) => {}
        }
        self.around.truncate(held);
    }

    /// Assumes that the thread is one of those that execute a spec.
    fn executing(&mut self, id: SpecId) {
        let (p, arena) = (self.p, &self.p.arena);
        let Some(each) = p.specs[id].exec.and_then(|exec| p.threads[exec.threads].each) else {
            return;
        };
        let threads = &p.threads[each];
        let root = &p.threads[threads.root];
        if threads.own > 0 {
            return;
        }
        let layout = threads.concat();
        let leaves = layout.leaves();
        let end = leaves.iter().try_fold(1, |end: i64, (extent, stride)| {
            let last = extent.as_const()?.checked_sub(1)?;
            end.checked_add(last.checked_mul(stride.as_const().filter(|by| *by >= 0)?)?)
        });
        let several = || leaves.iter().filter(|(extent, _)| *extent != Dim::Const(1));
        let (step, n) = match (several().next(), several().count()) {
            (Some((n, Dim::Const(by @ 2..))), 1) => (*by, n.as_const()),
            _ => (1, end),
        };
        let first = self.rooted(threads.offset, 0).zip(root.var);
        let found = first.zip(end).and_then(|((first, thread), end)| {
            let from = arena.sub(arena.dim_of(thread)?, first).ok()?;
            Some((from, end, Role { thread, first, step, behind: self.fresh(n)? }))
        });
        if let Some((from, end, role)) = found {
            self.around.push(arena, from);
            self.below(Some(from), Dim::Const(end));
            self.role = Some(role);
        }
    }

    fn access(&mut self, id: SpecId, t: TensorId, writes: bool) {
        let p = self.p;
        let tensor = &p.tensors[t];
        let gathered = p.buffers[tensor.buffer].gather.map(|g| g.source);
        let buffer = gathered.unwrap_or(tensor.buffer);
        if !p.buffers[buffer].is_global() {
            return;
        }
        if writes {
            self.found.written.insert(buffer);
        }
        let made = match gathered {
            Some(_) => None,
            None => self.made(id, tensor),
        };
        match made {
            Some(access) => self.found.accesses.entry(buffer).or_default().push(access),
            None => drop(self.found.lost.insert(buffer)),
        }
    }

    /// Assumes that the element of a box lies in the tensor of its tensor map, since nothing else
    /// is accessed.
    fn inside(
        &self,
        map: MapId,
        at: &[Dim],
        elements: &[(usize, Dim)],
        holds: &mut Assumptions,
    ) -> Option<()> {
        let (arena, map) = (&self.p.arena, &self.p.maps[map]);
        for (mode, (at, extent)) in at.iter().zip(&map.extents).enumerate() {
            // The modes of the view are in the order of the text.
            let own =
                if map.first_fastest { mode } else { map.extents.len().checked_sub(mode + 1)? };
            let element = elements.iter().find(|(i, _)| *i == own).map_or(Dim::Const(0), |e| e.1);
            let coordinate = arena.add(self.rooted(*at, 0)?, element).ok()?;
            holds.push(arena, coordinate);
            holds.push(arena, room(arena, coordinate, *extent)?);
        }
        Some(())
    }

    fn made(&self, id: SpecId, tensor: &Tensor) -> Option<Access> {
        let p = self.p;
        let spec = &p.specs[id];
        let by = spec.exec?.threads;
        let threads = &p.threads[by];
        let each = threads.each.is_some();
        // The executor is one thread, and the same thread in each iteration.
        let of = threads.each.unwrap_or(by);
        let all = &p.threads[of];
        let alone = all.own == 0
            && all.offset.as_const().is_some()
            && all.concat().size_in(&p.arena).ok()?.as_const() == Some(1);
        if !each && !alone || tensor.peer.is_some() {
            return None;
        }
        let mut holds = self.around.clone();
        let arena = &p.arena;
        let mut place = self.rooted(tensor.offset, 0)?;
        // For each bound, the coordinate of an element.
        let mut along: Vec<Dim> = vec![];
        for bound in &tensor.bounds {
            along.push(self.rooted(bound.offset, 0)?);
        }
        let bounds: Vec<_> = tensor.bounds.iter().map(|b| b.concat()).collect();
        let bounds: Vec<_> = bounds.iter().map(|l| l.leaves()).collect();
        let layout = tensor.concat();
        let mut coordinates = vec![];
        for (i, &(extent, stride)) in layout.leaves().iter().enumerate() {
            if extent == Dim::Const(1) {
                continue;
            }
            let (_, element) = self.fresh(extent.as_const())?;
            if extent.as_const().is_none() {
                let last = arena.sub(extent, Dim::Const(1)).ok()?;
                holds.push(arena, arena.sub(last, element).ok()?);
            }
            coordinates.push((i, element));
            let moved = |to: Dim, by: Dim| arena.add(to, arena.mul(element, by).ok()?).ok();
            place = moved(place, stride)?;
            for (along, leaves) in along.iter_mut().zip(&bounds) {
                *along = moved(*along, leaves.get(i)?.1)?;
            }
        }
        for (along, bound) in along.iter().zip(&tensor.bounds) {
            let extent = self.rooted(bound.extent, 0)?;
            let room = arena.sub(arena.sub(extent, *along).ok()?, Dim::Const(1)).ok()?;
            holds.push(arena, room);
        }
        if let Some(MapView { map, at }) = &tensor.map {
            let (at, n) = (at.as_ref()?, self.p.maps[*map].extents.len());
            if layout.rank() != n || layout.leaves().len() != n || at.len() != n {
                return None;
            }
            self.inside(*map, at, &coordinates, &mut holds)?;
        }
        self.divisions(place, &mut holds);
        let atom = spec.atom.as_deref().and_then(|name| self.atoms.get(name));
        let at_once = atom.is_none_or(|a| a.visibility.is_immediate());
        let part = match (alone, &self.role) {
            (true, _) => Some((of, Dim::Const(0))),
            (false, Some(role)) if each && role.step > 1 && role.first.as_const().is_some() => {
                Some((of, self.number(role)?))
            }
            _ => None,
        };
        let certain = at_once && threads.elect.is_none() && all.elect.is_none();
        let (iterations, within) = (self.iterations.clone(), RefCell::default());
        Some(Access { place, holds, iterations, part, within, certain })
    }
}

/// A sum of multiples of base expressions, grouped by the product of sizes that multiplies them.
/// The constant belongs to the empty product.
type Sum = BTreeMap<Vec<ExprId>, Terms>;

/// Multiples of base expressions, and the constant. A base is an expression that is not a sum.
type Terms = BTreeMap<Base, i64>;

/// An expression that is not a sum; none stands for 1.
type Base = Option<ExprId>;

fn dim_of(base: Base) -> Dim {
    base.map_or(Dim::Const(1), Dim::Expr)
}

/// Expressions that have the same value in any two accesses to the same element.
struct Known<'a> {
    p: &'a Program,
    accesses: &'a [Access],
    found: &'a Found,
    vars: HashSet<VarId>,
    dims: BTreeSet<ExprId>,
    /// Equal sums of which no term is known: one for each access.
    open: Vec<Vec<Terms>>,
}

impl<'a> Known<'a> {
    fn new(p: &'a Program, accesses: &'a [Access], found: &'a Found) -> Self {
        let (vars, dims, open) = (HashSet::new(), BTreeSet::new(), vec![]);
        Known { p, accesses, found, vars, dims, open }
    }

    /// Whether the offset of an access determines the block and the thread, and for accesses
    /// without program order also which access it is.
    fn decide(mut self, one_block: bool) -> bool {
        let accesses = self.accesses;
        let sums: Option<Vec<Sum>> = accesses.iter().map(|a| self.sum(a.place, 0)).collect();
        let Some(()) = sums.and_then(|sums| self.scales(&sums)) else { return false };
        for _ in 0..MAX_ROUNDS {
            let before = (self.vars.len(), self.dims.len());
            self.follow();
            if before == (self.vars.len(), self.dims.len()) {
                break;
            }
        }
        let has =
            |is: fn(&VarKind) -> bool| self.vars.iter().any(|v| self.p.vars.get(v).is_some_and(is));
        let block = one_block || has(|kind| matches!(kind, VarKind::Block(_)));
        let part = accesses[0].part;
        let by_number = part.is_some_and(|(_, number)| {
            self.is_known(number, 0) && accesses.iter().all(|a| a.part == part)
        });
        let by_thread = has(|kind| matches!(kind, VarKind::Thread(_)))
            && accesses.iter().all(|a| a.part.is_none_or(|(_, number)| number != Dim::Const(0)));
        let iterations =
            || accesses.iter().flat_map(|a| &a.iterations).all(|v| self.vars.contains(v));
        let ordered = accesses.iter().all(|a| a.certain) || accesses.len() == 1 && iterations();
        block && (by_number || by_thread) && ordered
    }

    /// An expression as a sum.
    fn sum(&self, dim: Dim, depth: usize) -> Option<Sum> {
        if depth > MAX_DEPTH {
            return None;
        }
        let one = |scale: Vec<ExprId>, base: Base, by: i64| {
            Some(Sum::from([(scale, Terms::from([(base, by)]))]))
        };
        let id = match dim {
            Dim::Const(0) => return Some(Sum::new()),
            Dim::Const(by) => return one(vec![], None, by),
            Dim::Expr(id) => id,
        };
        match self.p.arena.node(id) {
            Node::Linear { terms, constant } => {
                let mut out = self.sum(Dim::Const(constant), depth)?;
                for (term, by) in terms.iter() {
                    add(&mut out, self.sum(Dim::Expr(*term), depth + 1)?, *by)?;
                }
                Some(out)
            }
            Node::Mul(a, b) => {
                let (left, right) = (self.sum(a, depth + 1)?, self.sum(b, depth + 1)?);
                let mut out = Sum::new();
                for (s, x, i) in each(&left) {
                    for (t, y, j) in each(&right) {
                        let base = match (x, y) {
                            (x, None) => x,
                            (None, y) => y,
                            _ => return one(vec![], Some(id), 1),
                        };
                        let mut scale = [s, t].concat();
                        scale.sort_unstable();
                        add(&mut out, one(scale, base, i.checked_mul(j)?)?, 1)?;
                    }
                }
                Some(out)
            }
            _ if self.is_size(dim) => one(vec![id], None, 1),
            _ => one(vec![], Some(id), 1),
        }
    }

    /// Whether an expression depends on symbols alone.
    fn is_size(&self, dim: Dim) -> bool {
        let is_symbol = |v: &VarId| matches!(self.p.vars.get(v), Some(VarKind::Symbol));
        self.p.arena.vars_of(dim).iter().all(is_symbol)
    }

    /// Splits equal sums by sizes: the multiples of each size are equal if the terms with smaller
    /// sizes stay below it.
    fn scales(&mut self, sums: &[Sum]) -> Option<()> {
        let mut scales: Vec<&Vec<ExprId>> = sums.iter().flat_map(|s| s.keys()).collect();
        scales.sort_by_key(|s| (s.len(), *s));
        scales.dedup();
        // If a size may be 0, its multiples are equal whatever their factors are.
        let is_positive = |id: &ExprId| {
            let arena = &self.p.arena;
            let holds = |a: &Access| at_most(arena, Dim::Const(1), Dim::Expr(*id), &a.holds);
            self.accesses.iter().all(holds)
        };
        scales.first().is_none_or(|least| least.iter().all(is_positive)).then_some(())?;
        let none = Terms::new();
        let of = |sum: &'_ Sum, scale: &Vec<ExprId>| sum.get(scale).unwrap_or(&none).clone();
        let unit = |scale: &Vec<ExprId>| {
            let all = sums.iter().filter_map(|s| s.get(scale)).flat_map(|t| t.values());
            all.fold(0, |g, by| gcd(g, *by))
        };
        for pair in scales.windows(2) {
            let (small, large) = (pair[0], pair[1]);
            let mut ratio = Dim::Const(unit(large));
            for id in without(large, small)? {
                ratio = self.p.arena.mul(ratio, Dim::Expr(id)).ok()?;
            }
            // The sum of all smaller terms is below one unit of the larger ones.
            let unit = unit(small);
            for (sum, access) in sums.iter().zip(self.accesses) {
                let own = self.dim(&of(sum, small))?;
                let with = self.p.arena.add(own, Dim::Const(unit)).ok()?;
                let cx = &self.p.arena;
                let fits = is_natural(cx, own, &access.holds)
                    && prove::at_most(cx, with, ratio, &access.holds).is_true();
                fits.then_some(())?;
            }
        }
        for scale in scales {
            self.terms(sums.iter().map(|s| of(s, scale)).collect(), 0);
        }
        Some(())
    }

    /// Terms as one expression.
    fn dim(&self, terms: &Terms) -> Option<Dim> {
        let arena = &self.p.arena;
        terms.iter().try_fold(Dim::Const(0), |sum, (base, by)| {
            arena.add(sum, arena.mul(dim_of(*base), Dim::Const(*by)).ok()?).ok()
        })
    }

    /// Derives known expressions from terms whose sums are equal in all accesses.
    fn terms(&mut self, mut all: Vec<Terms>, depth: usize) {
        let mut constant = None;
        if let [first, others @ ..] = &all[..] {
            let is_out = |(base, by): &(&Base, &i64)| {
                self.is_known(dim_of(**base), 0) && others.iter().all(|t| t.get(*base) == Some(*by))
            };
            let out: Vec<Base> = first.iter().filter(is_out).map(|(base, _)| *base).collect();
            constant = first.get(&None).copied().filter(|_| out.contains(&None));
            all.iter_mut().for_each(|t| t.retain(|base, _| !out.contains(base)));
        }
        let same = all.iter().all(|t| *t == all[0]);
        if depth > MAX_DEPTH || all.iter().all(Terms::is_empty) {
            return;
        }
        if same && let Some((base, _)) = all[0].first_key_value().filter(|_| all[0].len() == 1) {
            if let Some(id) = *base {
                self.base(id, depth + 1);
            }
            return;
        }
        if same && self.splits(&all[0], depth) {
            return;
        }
        let mut cuts: Vec<i64> = all.iter().flat_map(|t| t.values()).map(|by| by.abs()).collect();
        cuts.sort_unstable_by(|a, b| b.cmp(a));
        cuts.dedup();
        for cut in cuts.into_iter().filter(|cut| *cut > 1) {
            let parts: Vec<(Terms, Terms)> = all.iter().map(|t| cut_at(t, cut)).collect();
            let are_below = |constant: Option<i64>| {
                parts.iter().zip(self.accesses).all(|((_, low), access)| {
                    let mut low = low.clone();
                    low.extend(constant.map(|c| (None, c)));
                    self.is_below(&low, cut, access)
                })
            };
            let moves =
                parts.iter().any(|p| !p.0.is_empty()) && parts.iter().any(|p| !p.1.is_empty());
            // The common constant may belong to the low part: offsets of a role count from its
            // first thread. All accesses have the constant, or none.
            let is_cut = || are_below(None) || constant.is_some() && are_below(constant);
            if moves && is_cut() {
                let (high, low) = parts.into_iter().unzip();
                self.terms(high, depth + 1);
                return self.terms(low, depth + 1);
            }
        }
        if !self.open.contains(&all) {
            self.open.push(all);
        }
    }

    /// Whether a sum is at least zero and below a number.
    fn is_below(&self, terms: &Terms, most: i64, access: &Access) -> bool {
        let cx = &self.p.arena;
        let range = terms.iter().try_fold((0i64, 0i64), |(lo, hi), (base, by)| {
            let (a, b) = cx.range(dim_of(*base));
            let (a, b) = (a?.checked_mul(*by)?, b?.checked_mul(*by)?);
            Some((lo.checked_add(a.min(b))?, hi.checked_add(a.max(b))?))
        });
        if let Some((lo, hi)) = range
            && lo >= 0
            && hi < most
        {
            return true;
        }
        let Some(dim) = self.dim(terms) else { return false };
        access.is_within(cx, dim, Dim::Const(most))
    }

    /// Handles terms of consecutive parts (`splits`): the beginning of a part plus a number below
    /// its length determine the part.
    fn splits(&mut self, terms: &Terms, depth: usize) -> bool {
        let cx = &self.p.arena;
        let place = |v: VarId| self.found.elements.iter().find(|(var, ..)| *var == v).copied();
        let begin = terms.iter().filter(|(_, by)| **by == 1).find_map(|(base, _)| {
            let (_, buffer, at) = place(cx.var_id(dim_of(*base))?)?;
            let fixed = self.p.buffers[buffer].splits && !self.found.written.contains(&buffer);
            fixed.then_some((*base, buffer, at))
        });
        let Some((begin, buffer, at)) = begin else { return false };
        let next = |(var, other, place): &(VarId, BufferId, Dim)| {
            let one = *other == buffer && cx.sub(*place, at).ok() == Some(Dim::Const(1));
            one.then(|| cx.dim_of(*var)).flatten()
        };
        let Some(end) = self.found.elements.iter().find_map(next) else { return false };
        let mut rest = terms.clone();
        rest.remove(&begin);
        let Some(own) = self.dim(&rest) else { return false };
        let Ok(length) = cx.sub(end, dim_of(begin)) else { return false };
        let inside = self.accesses.iter().all(|a| a.is_within(cx, own, length));
        if inside {
            self.equal(at, depth + 1);
            let n = self.accesses.len();
            self.terms(vec![rest; n], depth + 1);
        }
        inside
    }

    /// Records that an expression has one value.
    fn equal(&mut self, dim: Dim, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        match self.sum(dim, depth).map(|s| s.into_iter().collect::<Vec<_>>()).as_deref() {
            Some([(scale, terms)]) if scale.is_empty() => {
                let n = self.accesses.len();
                self.terms(vec![terms.clone(); n], depth + 1);
            }
            _ => self.dims.extend(match dim {
                Dim::Expr(id) => Some(id),
                Dim::Const(_) => None,
            }),
        }
    }

    /// Records that a base expression has one value.
    fn base(&mut self, id: ExprId, depth: usize) {
        if depth > MAX_DEPTH || !self.dims.insert(id) {
            return;
        }
        let cx = &self.p.arena;
        let proved = |a: Dim, b: Dim| self.accesses.iter().all(|x| at_most(cx, a, b, &x.holds));
        match cx.node(id) {
            Node::Var(v) => {
                self.vars.insert(v);
                // If the elements of a tensor are distinct, equal elements have equal indices.
                let element = self.found.elements.iter().find(|(var, ..)| *var == v);
                if let Some((_, _, at)) = element.filter(|(_, buffer, _)| self.differ(*buffer)) {
                    self.equal(*at, depth + 1);
                }
            }
            Node::Min(a, b) if proved(a, b) => self.equal(a, depth + 1),
            Node::Min(a, b) if proved(b, a) => self.equal(b, depth + 1),
            Node::Max(a, b) if proved(b, a) => self.equal(a, depth + 1),
            Node::Max(a, b) if proved(a, b) => self.equal(b, depth + 1),
            _ => {}
        }
    }

    /// Whether the integers of a buffer are pairwise distinct: the tensor states `distinct`, and no
    /// kernel writes it.
    fn differ(&self, buffer: BufferId) -> bool {
        let writes = |k: &SpecId| {
            self.p.specs[*k].outputs.iter().any(|t| self.p.tensors[*t].buffer == buffer)
        };
        self.p.buffers[buffer].distinct && !self.p.kernels.iter().any(writes)
    }

    /// Whether an expression has one value.
    fn is_known(&self, dim: Dim, depth: usize) -> bool {
        let Dim::Expr(id) = dim else { return true };
        if self.dims.contains(&id) {
            return true;
        }
        let node = self.p.arena.node(id);
        match node {
            Node::Var(v) => match self.p.vars.get(&v) {
                Some(VarKind::Symbol) => true,
                Some(VarKind::Element(_)) => self.found.elements.iter().any(|(var, buffer, at)| {
                    let fixed = *var == v && !self.found.written.contains(buffer);
                    fixed && depth < MAX_DEPTH && self.is_known(*at, depth + 1)
                }),
                _ => self.vars.contains(&v),
            },
            node => {
                depth < MAX_DEPTH && node.operands().iter().all(|d| self.is_known(*d, depth + 1))
            }
        }
    }

    /// Derives further expressions from known quotients, remainders and sums.
    fn follow(&mut self) {
        let cx = &self.p.arena;
        // For each expression, the divisors by which its remainders are known.
        let mut remainders: BTreeMap<ExprId, Vec<Dim>> = BTreeMap::new();
        let note = |x: ExprId, by: Dim, all: &mut BTreeMap<ExprId, Vec<Dim>>| {
            let own = all.entry(x).or_default();
            if !own.contains(&by) {
                own.push(by);
            }
        };
        let nodes: Vec<Node> = self.dims.iter().map(|id| cx.node(*id)).collect();
        let mut found = vec![];
        for _ in 0..3 {
            for node in &nodes {
                let Node::Mod(Dim::Expr(x), by) = node else { continue };
                if !self.is_known(*by, 0) {
                    continue;
                }
                note(*x, *by, &mut remainders);
                // A quotient by a number by which the remainder is known, too.
                if let Node::Div(Dim::Expr(whole), unit) = cx.node(*x)
                    && remainders.get(&whole).is_some_and(|all| all.contains(&unit))
                    && let Ok(both) = cx.mul(unit, *by)
                {
                    note(whole, both, &mut remainders);
                }
            }
        }
        for node in &nodes {
            if let Node::Div(Dim::Expr(x), by) = node
                && remainders.get(x).is_some_and(|all| all.contains(by))
            {
                found.push(Dim::Expr(*x));
            }
        }
        for (x, all) in &remainders {
            let x = Dim::Expr(*x);
            for by in all {
                let whole = self.accesses.iter().all(|a| a.is_within(cx, x, *by));
                if whole {
                    found.push(x);
                } else if let Some(base) = self.turned(x, *by) {
                    found.push(base);
                }
            }
        }
        for x in found {
            self.equal(x, 0);
        }
        for all in std::mem::take(&mut self.open) {
            self.terms(all, 0);
        }
    }

    /// The single unknown term of a sum whose remainder is known, if the term has no more values
    /// than there are remainders.
    fn turned(&self, x: Dim, by: Dim) -> Option<Dim> {
        let sum = self.sum(x, 0)?;
        let open: Vec<(&[ExprId], Dim, i64)> = each(&sum)
            .map(|(scale, base, by)| (scale, dim_of(base), by))
            .filter(|(_, base, _)| !self.is_known(*base, 0))
            .collect();
        let [(scale, base, 1 | -1)] = open[..] else { return None };
        let (lo, hi) = self.p.arena.range(base);
        let fits = hi?.checked_sub(lo?)? < by.as_const()?;
        (scale.is_empty() && fits).then_some(base)
    }
}

/// The terms of a sum: product of sizes, base expression, factor.
fn each(sum: &Sum) -> impl Iterator<Item = (&[ExprId], Base, i64)> {
    sum.iter().flat_map(|(scale, terms)| terms.iter().map(move |(a, by)| (&scale[..], *a, *by)))
}

/// Adds a multiple of a sum to another one.
fn add(to: &mut Sum, more: Sum, by: i64) -> Option<()> {
    for (scale, terms) in more {
        let own = to.entry(scale).or_default();
        for (base, n) in terms {
            let old = own.entry(base).or_insert(0);
            *old = old.checked_add(n.checked_mul(by)?)?;
        }
        own.retain(|_, n| *n != 0);
    }
    to.retain(|_, terms| !terms.is_empty());
    Some(())
}

/// Splits terms into multiples of a number, divided by the number, and the rest. The constant is
/// split, too.
fn cut_at(terms: &Terms, cut: i64) -> (Terms, Terms) {
    let (mut high, mut low) = (Terms::new(), Terms::new());
    for (base, by) in terms {
        let (times, rest) = (by.div_euclid(cut), by.rem_euclid(cut));
        match rest {
            0 => drop(high.insert(*base, times)),
            _ if base.is_none() => {
                low.insert(None, rest);
                if times != 0 {
                    high.insert(None, times);
                }
            }
            _ => drop(low.insert(*base, *by)),
        }
    }
    (high, low)
}

/// Factors without some of them; none if those are not among them.
fn without(all: &[ExprId], some: &[ExprId]) -> Option<Vec<ExprId>> {
    let mut rest = all.to_vec();
    for id in some {
        let at = rest.iter().position(|other| other == id)?;
        rest.remove(at);
    }
    Some(rest)
}

/// `b - a - 1`, which is at least zero if `a` is below `b`.
fn room(arena: &ExprArena, a: Dim, b: Dim) -> Option<Dim> {
    arena.sub(arena.sub(b, a).ok()?, Dim::Const(1)).ok()
}
