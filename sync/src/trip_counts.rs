//! Loops that may turn any number of times: the proof holds for each number of turns, whatever it
//! is computed from.
//!
//! A loop from *start* to *end* by *step* turns *n* = ceil((*end* - *start*) / *step*) times. Where
//! *n* depends on a symbol, the block or the caller's memory, the loop counts its turns from 0 to
//! *n*, and *n* becomes a number that is given each of its values. The loop variable is *start* +
//! *step* times the turn. A condition whose room moves by whole steps of such a loop, *end* -
//! *start* - *step* · *y* > 0, is *y* < *n*.
//!
//! A loop that holds nothing but another one, which turns as often as data says, is one loop with
//! it: all turns of the inner one, one after the other. Neither variable has a value then.

use carbyne_ir::ast::CmpOp;
use carbyne_ir::expr::prove::Assumptions;
use carbyne_ir::expr::quotients::is_natural;
use carbyne_ir::expr::{Dim, ExprArena, ExprId, VarId, VarInfo};
use carbyne_ir::program::walk::Step;
use carbyne_ir::program::{Program, SpecId, Stmt, StmtId, StmtKind, VarKind};
use rustc_hash::FxHashMap;

/// A number of turns.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Number {
    pub(crate) id: ExprId,
    pub(crate) least: i64,
    pub(crate) most: Option<i64>,
    /// Loops around those that turn so often, which do so a number of times, too.
    depth: usize,
}

/// How the loops of a kernel turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct TripCounts {
    /// Of loops, by the key of the statement: what counts the turns, and how many there are.
    loops: FxHashMap<StmtId, (VarId, Dim)>,
    /// Conditions in other words.
    conditions: FxHashMap<StmtId, Vec<Condition>>,
    /// What loop variables are; none where that is not known.
    variables: FxHashMap<VarId, Option<Dim>>,
    pub(crate) numbers: Vec<Number>,
}

type Condition = (Dim, CmpOp, Dim);

/// What a loop has before it at its beginning: from start to end, by a step, in so many turns.
struct Room {
    room: Dim,
    step: i64,
    n: Dim,
}

impl TripCounts {
    /// The turns of a kernel's loops; none where a number of turns differs from turn to turn of a
    /// loop around, or among the blocks of a cluster.
    pub(crate) fn of(p: &Program, kernel: SpecId, cluster: i64) -> Option<TripCounts> {
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

    /// A loop as it is counted: variable; first value, end, step.
    pub(crate) fn bounds(&self, stmt: &Stmt) -> Option<(VarId, (Dim, Dim, i64))> {
        let StmtKind::For { var, start, end, step, .. } = &stmt.kind else { return None };
        Some(match self.loops.get(&stmt.id) {
            Some((turn, n)) => (*turn, (Dim::Const(0), *n, 1)),
            None => (*var, (*start, *end, *step)),
        })
    }

    /// A condition in other words, where there are any.
    pub(crate) fn condition_of<'a>(
        &'a self,
        stmt: &Stmt,
        cond: &'a [Condition],
    ) -> &'a [Condition] {
        self.conditions.get(&stmt.id).map_or(cond, Vec::as_slice)
    }

    /// What a loop variable is, where it does not count itself; none within where that is not
    /// known.
    pub(crate) fn variable(&self, var: VarId) -> Option<Option<Dim>> {
        self.variables.get(&var).copied()
    }

    /// Whether a variable counts the turns of a loop.
    pub(crate) fn counts(&self, var: VarId) -> bool {
        self.loops.values().any(|(turn, _)| *turn == var)
    }

    /// Whether what counts turns counts so many.
    pub(crate) fn turns_by(&self, var: VarId, id: ExprId) -> bool {
        let of = |(turn, n): &(VarId, Dim)| *turn == var && matches!(n, Dim::Expr(e) if *e == id);
        self.loops.values().any(of)
    }

    /// Whether an expression is a number of turns.
    pub(crate) fn is_number(&self, dim: Dim) -> bool {
        self.numbers.iter().any(|n| dim == Dim::Expr(n.id))
    }

    /// The two numbers of a nest: that of the outer loops, and that of the loops within them.
    pub(crate) fn nested(&self) -> Option<(Number, Number)> {
        let [a, b] = self.numbers[..] else { return None };
        match a.depth.cmp(&b.depth) {
            std::cmp::Ordering::Less => Some((a, b)),
            std::cmp::Ordering::Greater => Some((b, a)),
            std::cmp::Ordering::Equal => None,
        }
    }

    /// An expression over the block, threads, symbols and turns.
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
            // The number of turns of the outer loop does not matter any more, unless others turn as
            // often.
            if let Some((_, Dim::Expr(id))) = counted {
                let others = self.loops.values().any(|(_, n)| *n == Dim::Expr(id));
                self.numbers.retain(|n| others || n.id != id);
            }
            self.loops.insert(stmt.id, (turn, n));
            return self.number(arena, n, self.depth(around));
        }
        let n = arena.ceil_div(room, Dim::Const(*step)).ok()?;
        // Where it may be below zero, a number stands for it that is not.
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

    /// Loops around a statement that turn a number of times.
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

    /// A condition in the number of turns of a loop.
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

/// Whether the blocks of a cluster have as many turns of a loop with such a room at its beginning:
/// it is a multiple of the cluster's size less the block, and so is the step.
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
    /// What differs from turn to turn of a loop.
    Turn,
}

/// The sources that an expression depends on.
fn roots(p: &Program, dim: Dim, depth: usize) -> Vec<Root> {
    let of = |v: VarId| match p.vars.get(&v) {
        Some(VarKind::Block(_)) => vec![Root::Block],
        Some(VarKind::Symbol) => vec![Root::Symbol],
        Some(VarKind::Thread(_)) => vec![Root::Thread],
        Some(VarKind::Index(of)) if depth < 64 => roots(p, *of, depth + 1),
        // The same for a block as long as its place is.
        Some(VarKind::Element(tensor)) if depth < 64 => {
            let place = roots(p, p.tensors[*tensor].offset, depth + 1);
            [&place[..], &[Root::Symbol, Root::Data]].concat()
        }
        Some(VarKind::Index(_) | VarKind::Element(_)) => {
            vec![Root::Block, Root::Symbol, Root::Data, Root::Thread, Root::Turn]
        }
        Some(VarKind::Loop) | None => vec![Root::Turn],
    };
    p.vars_in(dim).into_iter().flat_map(of).collect()
}

/// Whether an expression differs from block to block.
pub(crate) fn is_of_block(p: &Program, dim: Dim) -> bool {
    roots(p, dim, 0).contains(&Root::Block)
}
