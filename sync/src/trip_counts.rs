//! Rewrites loops whose trip count is unknown, so that the checker can prove a kernel for every
//! trip count. This is not possible for a kernel with counters, nor for one whose trip counts
//! differ between threads or between the blocks of a cluster.
//!
//! A loop from *start* to *end* by *step* has *n* = ceil((*end* - *start*) / *step*) iterations. If
//! *n* depends on a symbol, on the block or on the caller's memory, the checker rewrites the loop
//! so that it counts from 0 to *n*, and proves the kernel for every *n*. The loop variable becomes
//! *start* + *step* times the iteration. A condition *end* - *start* - *step* · *y* > 0 becomes *y*
//! < *n*.
//!
//! A loop whose body is nothing but another loop, with a trip count that data determines, is merged
//! with that loop: all iterations of the inner loop, one after another. Neither loop variable has a
//! known value then.

use carbyne_ir::ast::CmpOp;
use carbyne_ir::expr::prove::Assumptions;
use carbyne_ir::expr::quotients::is_natural;
use carbyne_ir::expr::{Dim, ExprArena, ExprId, VarId, VarInfo};
use carbyne_ir::program::walk::Step;
use carbyne_ir::program::{Condition, Program, SpecId, Stmt, StmtId, StmtKind, VarKind};
use rustc_hash::FxHashMap;

/// A trip count that is treated as a free number.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Number {
    pub(crate) id: ExprId,
    pub(crate) least: i64,
    pub(crate) most: Option<i64>,
    /// The number of enclosing loops with free trip counts.
    depth: usize,
}

/// The rewritten loops of a kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct TripCounts {
    /// For each loop: the variable that counts its iterations, and its trip count.
    loops: FxHashMap<StmtId, (VarId, Dim)>,
    /// The rewritten conditions.
    conditions: FxHashMap<StmtId, Vec<Condition>>,
    /// The loop variables as expressions of iterations; none if the value is unknown.
    variables: FxHashMap<VarId, Option<Dim>>,
    pub(crate) numbers: Vec<Number>,
}

/// The distance from start to end of a loop, its step and its trip count.
struct Room {
    room: Dim,
    step: i64,
    n: Dim,
}

impl TripCounts {
    /// Rewrites the loops of a kernel. Returns none if a trip count differs between iterations of
    /// an enclosing loop, or between the blocks of a cluster, or if the kernel has counters.
    pub(crate) fn of(p: &Program, kernel: SpecId, cluster: i64) -> Option<TripCounts> {
        let has_counters = |s: &Stmt| match &s.kind {
            StmtKind::Step { .. } => true,
            StmtKind::For { also, .. } => !also.is_empty(),
            _ => false,
        };
        if p.walk_body(kernel).stmts().any(has_counters) {
            return None;
        }
        let mut out = TripCounts::default();
        let mut rooms = vec![];
        let mut walk = p.walk_body(kernel);
        while let Some(step) = walk.next() {
            if let Step::Enter(stmt) = step
                && let StmtKind::For { .. } = stmt.kind
            {
                out.count(p, stmt, walk.around(), cluster, &mut rooms)?;
            }
        }
        for stmt in p.walk_body(kernel).stmts() {
            if let StmtKind::If { cond, .. } = &stmt.kind {
                let said: Vec<Condition> =
                    cond.iter().map(|c| out.condition(p, *c, &rooms).unwrap_or(*c)).collect();
                if said != *cond {
                    out.conditions.insert(stmt.id, said);
                }
            }
        }
        Some(out)
    }

    /// The variable of a loop after rewriting, and its first value, end and step.
    pub(crate) fn bounds(&self, stmt: &Stmt) -> Option<(VarId, (Dim, Dim, i64))> {
        let StmtKind::For { var, start, end, step, .. } = &stmt.kind else { return None };
        Some(match self.loops.get(&stmt.id) {
            Some((turn, n)) => (*turn, (Dim::Const(0), *n, 1)),
            None => (*var, (*start, *end, *step)),
        })
    }

    /// The rewritten condition of a statement, or else `cond`.
    pub(crate) fn condition_of<'a>(
        &'a self,
        stmt: &Stmt,
        cond: &'a [Condition],
    ) -> &'a [Condition] {
        self.conditions.get(&stmt.id).map_or(cond, Vec::as_slice)
    }

    /// The expression of a loop variable that was rewritten. The inner option is none if the value
    /// is unknown.
    pub(crate) fn variable(&self, var: VarId) -> Option<Option<Dim>> {
        self.variables.get(&var).copied()
    }

    /// Whether a variable counts the iterations of a rewritten loop.
    pub(crate) fn counts(&self, var: VarId) -> bool {
        self.loops.values().any(|(turn, _)| *turn == var)
    }

    /// Whether a variable counts the iterations of a loop with this trip count.
    pub(crate) fn counts_to(&self, var: VarId, id: ExprId) -> bool {
        let of = |(turn, n): &(VarId, Dim)| *turn == var && matches!(n, Dim::Expr(e) if *e == id);
        self.loops.values().any(of)
    }

    /// Whether an expression is a free trip count.
    pub(crate) fn is_number(&self, dim: Dim) -> bool {
        self.numbers.iter().any(|n| dim == Dim::Expr(n.id))
    }

    /// The two trip counts of a nest: that of the outer and that of the inner loops.
    pub(crate) fn nested(&self) -> Option<(Number, Number)> {
        let [a, b] = self.numbers[..] else { return None };
        match a.depth.cmp(&b.depth) {
            std::cmp::Ordering::Less => Some((a, b)),
            std::cmp::Ordering::Greater => Some((b, a)),
            std::cmp::Ordering::Equal => None,
        }
    }

    /// Rewrites an expression in terms of the block, threads, symbols and iterations.
    pub(crate) fn rooted(&self, p: &Program, dim: Dim) -> Option<Dim> {
        self.rooted_at(p, dim, 0)
    }

    fn rooted_at(&self, p: &Program, dim: Dim, depth: usize) -> Option<Dim> {
        let own = |v: VarId| match (self.variables.get(&v), p.vars.get(&v)) {
            _ if depth > 64 => None,
            (Some(of), _) => of.and_then(|d| self.rooted_at(p, d, depth + 1)),
            (None, Some(VarKind::Index(of))) => self.rooted_at(p, *of, depth + 1),
            (None, _) => None,
        };
        p.arena.substitute(dim, &own).ok()
    }

    fn count(
        &mut self,
        p: &Program,
        stmt: &Stmt,
        around: &[&Stmt],
        cluster: i64,
        rooms: &mut Vec<Room>,
    ) -> Option<()> {
        let StmtKind::For { var, start, end, step, .. } = &stmt.kind else { return Some(()) };
        let arena = &p.arena;
        let of = |dim: Dim| self.rooted(p, dim);
        let room = arena.sub(of(*end)?, of(*start)?).ok()?;
        let roots = roots(p, room, 0);
        let has = |root: Root| roots.contains(&root);
        if !has(Root::Block) && !has(Root::Symbol) {
            return Some(());
        }
        let name = arena.var_info(*var).name;
        let count = |name: String| arena.var(VarInfo { name, lo: 0, hi: None, div: 1 }).ok();
        let turn = arena.var_id(count(name)?)?;
        let is_apart = || has(Root::Data) || !is_common(p, room, *step, cluster);
        if has(Root::Thread) || cluster > 1 && is_apart() {
            return None;
        }
        if has(Root::Turn) {
            let mut loops =
                around.iter().rev().skip(1).filter(|s| matches!(s.kind, StmtKind::For { .. }));
            let (Some(outer), None) = (loops.next(), loops.next()) else { return None };
            let StmtKind::For { var: other, body, .. } = &outer.kind else { return None };
            let declares =
                |s: &Stmt| matches!(s.kind, StmtKind::Indices(_) | StmtKind::Element { .. });
            if !body.iter().all(|s| declares(s) || s.id == stmt.id) {
                return None;
            }
            let once = arena.var_id(count(String::new())?)?;
            let n = count(String::from("turns"))?;
            self.variables.insert(*other, None);
            self.variables.insert(*var, None);
            let counted = self.loops.insert(outer.id, (once, Dim::Const(1)));
            // The trip count of the outer loop no longer matters, unless other loops have the same
            // trip count.
            if let Some((_, Dim::Expr(id))) = counted {
                let others = self.loops.values().any(|(_, n)| *n == Dim::Expr(id));
                self.numbers.retain(|n| others || n.id != id);
            }
            self.loops.insert(stmt.id, (turn, n));
            return self.number(arena, n, self.depth(around));
        }
        let n = arena.ceil_div(room, Dim::Const(*step)).ok()?;
        // If the expression may be negative, a fresh variable that is not negative replaces it.
        let n = match is_natural(arena, n, &Assumptions::default()) {
            true => n,
            false => match rooms.iter().find(|of| (of.room, of.step) == (room, *step)) {
                Some(known) => known.n,
                None => count(String::from("turns"))?,
            },
        };
        let steps = arena.mul(arena.dim_of(turn)?, Dim::Const(*step)).ok()?;
        self.variables.insert(*var, Some(arena.add(*start, steps).ok()?));
        self.loops.insert(stmt.id, (turn, n));
        rooms.push(Room { room, step: *step, n });
        self.number(arena, n, self.depth(around))
    }

    /// The number of enclosing loops with free trip counts.
    fn depth(&self, around: &[&Stmt]) -> usize {
        let is_counted = |s: &&&Stmt| matches!(self.loops.get(&s.id), Some((_, Dim::Expr(_))));
        around.iter().rev().skip(1).filter(is_counted).count()
    }

    fn number(&mut self, arena: &ExprArena, n: Dim, depth: usize) -> Option<()> {
        let Dim::Expr(id) = n else { return Some(()) };
        let (least, most) = arena.range(n);
        let least = least.unwrap_or(0).max(0);
        match self.numbers.iter().find(|own| own.id == id) {
            Some(known) if known.depth != depth => return None,
            Some(_) => {}
            None => self.numbers.push(Number { id, least, most, depth }),
        }
        Some(())
    }

    /// Rewrites a condition as a comparison with the trip count of a loop.
    fn condition(&self, p: &Program, (a, op, b): Condition, rooms: &[Room]) -> Option<Condition> {
        let arena = &p.arena;
        let (from, to, holds) = match op {
            CmpOp::Lt => (a, b, CmpOp::Lt),
            CmpOp::Ge => (a, b, CmpOp::Ge),
            CmpOp::Gt => (b, a, CmpOp::Lt),
            CmpOp::Le => (b, a, CmpOp::Ge),
            CmpOp::Eq | CmpOp::Ne => return None,
        };
        let left = arena.sub(self.rooted(p, to)?, self.rooted(p, from)?).ok()?;
        rooms.iter().find_map(|of| {
            let passed = arena.sub(of.room, left).ok()?;
            let y = arena.div(passed, Dim::Const(of.step)).ok()?;
            let is_whole = arena.divisor(passed) % of.step == 0;
            let is_natural = is_natural(arena, y, &Assumptions::default());
            (is_whole && is_natural).then_some((y, holds, of.n))
        })
    }
}

/// Whether the blocks of a cluster execute the same number of iterations of a loop with this room:
/// the room is a multiple of the cluster size less the block index, and the step is a multiple of
/// the cluster size.
fn is_common(p: &Program, room: Dim, step: i64, cluster: i64) -> bool {
    let arena = &p.arena;
    let blocks = arena.vars_of(room).into_iter().filter(|v| is_block(p, *v));
    let whole = blocks.filter_map(|v| arena.dim_of(v)).try_fold(room, |all, b| arena.add(all, b));
    whole.is_ok_and(|whole| {
        let is_free = !arena.vars_of(whole).into_iter().any(|v| is_block(p, v));
        is_free && (whole == room || arena.divisor(whole) % cluster == 0 && step % cluster == 0)
    })
}

fn is_block(p: &Program, var: VarId) -> bool {
    matches!(p.vars.get(&var), Some(VarKind::Block(_)))
}

/// A source of an expression's value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Root {
    Block,
    Symbol,
    /// An integer of the caller's memory.
    Data,
    Thread,
    /// A value that differs between iterations of a loop.
    Turn,
}

/// The sources of an expression's value.
fn roots(p: &Program, dim: Dim, depth: usize) -> Vec<Root> {
    let of = |v: VarId| match p.vars.get(&v) {
        Some(VarKind::Block(_)) => vec![Root::Block],
        Some(VarKind::Symbol) => vec![Root::Symbol],
        Some(VarKind::Thread(_)) => vec![Root::Thread],
        Some(VarKind::Index(of)) if depth < 64 => roots(p, *of, depth + 1),
        // The integer is the same for all threads of a block if its index is.
        Some(VarKind::Element(tensor)) if depth < 64 => {
            let place = roots(p, p.tensors[*tensor].offset, depth + 1);
            [&place[..], &[Root::Symbol, Root::Data]].concat()
        }
        Some(VarKind::Index(_) | VarKind::Element(_)) => {
            vec![Root::Block, Root::Symbol, Root::Data, Root::Thread, Root::Turn]
        }
        Some(VarKind::Counter(id)) if depth < 64 => {
            let sources = p.counters.get(id).into_iter().flatten();
            let dims = sources.filter_map(|v| p.arena.dim_of(*v));
            dims.flat_map(|dim| roots(p, dim, depth + 1)).chain([Root::Turn]).collect()
        }
        Some(VarKind::Loop | VarKind::Counter(_)) | None => vec![Root::Turn],
    };
    p.vars_in(dim).into_iter().flat_map(of).collect()
}

/// Whether an expression differs between blocks.
pub(crate) fn is_of_block(p: &Program, dim: Dim) -> bool {
    roots(p, dim, 0).contains(&Root::Block)
}
