//! Evaluates index expressions for all threads of a block at once, with given values of loop
//! variables, the block and symbols. Offsets, conditions and numbers of the machine come from here.
//! While the checker tries values, an integer of the caller's memory has a drawn value ([`Draw`]).
//! While it proves a kernel for all trip counts, a trip count is a given number ([`Given`]).

use crate::steps::{Nest, Steps};
use crate::threads::Mask;
use crate::trip_counts::TripCounts;
use crate::value::{NOTHING, Value, each};
use carbyne_ir::ast::CmpOp;
use carbyne_ir::expr::{Dim, ExprId, Node, VarId};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{Program, TensorId, VarKind};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The longest chain of coordinates that are defined by other coordinates.
const MAX_CHAIN: usize = 64;

/// The value of a loop variable at a statement.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) var: VarId,
    pub(crate) value: Value,
    /// The amounts by which the value changes.
    pub(crate) by: Steps,
}

/// The values of loop variables at a statement, and the block that executes the statement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Env {
    pub(crate) block: i64,
    pub(crate) loops: Vec<Held>,
}

impl Env {
    pub(crate) fn set(&mut self, var: VarId, value: Value, by: Steps) {
        match self.loops.iter_mut().find(|held| held.var == var) {
            Some(held) => (held.value, held.by) = (value, by),
            None => self.loops.push(Held { var, value, by }),
        }
    }

    /// Sets the value of a variable for some of the threads that hold it; the others keep theirs.
    pub(crate) fn set_of(
        &mut self,
        threads: &Mask,
        holders: &Mask,
        var: VarId,
        value: &Value,
        by: Steps,
    ) {
        match self.get_mut(var).filter(|_| threads != holders) {
            Some(held) => {
                held.value = held.value.with(value, threads);
                held.by = held.by.common(by);
            }
            None => self.set(var, value.clone(), by),
        }
    }

    /// Removes the variable of a loop that is over.
    pub(crate) fn remove(&mut self, var: VarId) {
        self.loops.retain(|held| held.var != var);
    }

    pub(crate) fn get(&self, var: VarId) -> Option<&Held> {
        self.loops.iter().find(|held| held.var == var)
    }

    pub(crate) fn get_mut(&mut self, var: VarId) -> Option<&mut Held> {
        self.loops.iter_mut().find(|held| held.var == var)
    }
}

/// A trip count with a given value.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Given {
    pub(crate) id: Option<ExprId>,
    pub(crate) value: i64,
    /// The difference to the next trip count that behaves alike; 0 if none is sought.
    pub(crate) by: i64,
}

#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Op {
    Mul,
    Div,
    Mod,
    CeilDiv,
    Min,
    Max,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Const(i64),
    Thread,
    Block,
    Loop(VarId),
    /// A trip count with a given value.
    Given(Nest),
    /// A variable without a value.
    Unknown,
    /// A drawn integer of the caller's memory, at an index.
    Drawn(Rc<Ex>, Draw),
    Sum(Vec<(i64, Rc<Ex>)>, i64),
    Bin(Op, Rc<Ex>, Rc<Ex>),
}

/// Values that are drawn for the integers of a tensor of the caller.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Draw {
    /// Values from the first number up to, but not including, the second one.
    Within(i64, i64),
    /// Values from the first number up to, but not including, the second one; all distinct.
    Distinct(i64, i64),
    /// The boundaries of `parts` consecutive parts of `n` elements.
    Splits { n: i64, parts: i64 },
}

impl Draw {
    /// The value at an index; neighbors differ. [`NOTHING`] if the index is unknown.
    fn at(self, place: i64) -> i64 {
        if place == NOTHING {
            return NOTHING;
        }
        self.drawn(place).unwrap_or(NOTHING)
    }

    fn drawn(self, place: i64) -> Option<i64> {
        match self {
            Draw::Within(lo, hi) => {
                let room = hi.checked_sub(lo).filter(|room| *room > 0)?;
                hi.checked_sub(1 + place.rem_euclid(room.min(7)) * 3 % room)
            }
            Draw::Distinct(lo, hi) => {
                hi.checked_sub(1)?.checked_sub(place).filter(|value| *value >= lo)
            }
            Draw::Splits { n, parts } => {
                let place = i128::from(place.clamp(0, parts));
                // The lengths of parts differ by at most one.
                i64::try_from(place * i128::from(n) / i128::from(parts.max(1))).ok()
            }
        }
    }
}

/// An expression with its dependences.
#[derive(Debug)]
pub(crate) struct Ex {
    pub(crate) kind: Kind,
    thread: bool,
    pub(crate) block: bool,
    pub(crate) loops: bool,
    table: OnceCell<Value>,
}

impl Ex {
    fn new(kind: Kind) -> Rc<Ex> {
        let has = |own: bool, of: fn(&Ex) -> bool| {
            own || match &kind {
                Kind::Drawn(a, _) => of(a),
                Kind::Sum(parts, _) => parts.iter().any(|(_, part)| of(part)),
                Kind::Bin(_, a, b) => of(a) || of(b),
                _ => false,
            }
        };
        let thread = has(matches!(kind, Kind::Thread), |ex| ex.thread);
        let block = has(matches!(kind, Kind::Block), |ex| ex.block);
        let loops = has(matches!(kind, Kind::Loop(_) | Kind::Given(_)), |ex| ex.loops);
        Rc::new(Ex { kind, thread, block, loops, table: OnceCell::new() })
    }
}

/// The expressions of a program, for a block of `n_threads` threads.
#[derive(Clone)]
pub(crate) struct Exprs<'p> {
    pub(crate) program: &'p Program,
    pub(crate) symbols: HashMap<VarId, i64>,
    pub(crate) n_threads: usize,
    /// The given trip counts of both nests.
    given: [Given; 2],
    pub(crate) trip_counts: Rc<TripCounts>,
    /// Whether integers of the caller's memory have drawn values.
    drawn: bool,
    /// Whether the outer trip count has been used as a part of another expression.
    pub(crate) is_within: Cell<bool>,
    /// Prepared expressions, by index.
    known: Rc<RefCell<Vec<Option<Rc<Ex>>>>>,
}

impl<'p> Exprs<'p> {
    pub(crate) fn new(
        program: &'p Program,
        symbols: HashMap<VarId, i64>,
        n_threads: usize,
        drawn: bool,
    ) -> Self {
        Exprs {
            program,
            symbols,
            n_threads,
            given: Default::default(),
            trip_counts: Rc::default(),
            drawn,
            is_within: Cell::new(false),
            known: Rc::default(),
        }
    }

    /// The trip count given to loops of a nest.
    pub(crate) fn given(&self, nest: Nest) -> Given {
        self.given[nest as usize]
    }

    /// A copy in which loops of a nest have a given trip count.
    pub(crate) fn with(&self, nest: Nest, given: Given) -> Self {
        let mut out = self.anew();
        out.given[nest as usize] = given;
        out
    }

    /// A copy with another value of the outer trip count.
    pub(crate) fn valued(&self, value: i64, by: i64) -> Self {
        let given = Given { value, by, ..self.given(Nest::Outer) };
        Exprs { known: Rc::clone(&self.known), ..self.with(Nest::Outer, given) }
    }

    /// A copy with rewritten loops.
    pub(crate) fn counted(&self, trip_counts: TripCounts) -> Self {
        Exprs { trip_counts: Rc::new(trip_counts), ..self.anew() }
    }

    /// A copy without cached expressions.
    fn anew(&self) -> Self {
        Exprs { is_within: Cell::new(false), known: Rc::default(), ..self.clone() }
    }

    /// The nest whose trip count is the end of a variable.
    pub(crate) fn nest_of(&self, var: VarId) -> Option<Nest> {
        let is = |nest: &Nest| {
            self.given(*nest).id.is_some_and(|id| self.trip_counts.counts_to(var, id))
        };
        [Nest::Inner, Nest::Outer].into_iter().find(is)
    }

    /// Prepares an expression for evaluation.
    pub(crate) fn ready(&self, dim: Dim) -> Rc<Ex> {
        self.ready_at(dim, 0)
    }

    fn ready_at(&self, dim: Dim, chain: usize) -> Rc<Ex> {
        let id = match dim {
            Dim::Const(v) => return Ex::new(Kind::Const(v)),
            Dim::Expr(id) => id,
        };
        if let Some(Some(found)) = self.known.borrow().get(id.index()) {
            return Rc::clone(found);
        }
        let both = |op, a, b| Kind::Bin(op, self.ready_at(a, chain), self.ready_at(b, chain));
        let is_given = |nest: &Nest| self.given(*nest).id == Some(id);
        let kind = match self.program.arena.node(id) {
            _ if let Some(nest) = [Nest::Outer, Nest::Inner].into_iter().find(is_given) => {
                Kind::Given(nest)
            }
            Node::Var(var) => return self.keep(id, self.variable(var, chain)),
            Node::Linear { terms, constant } => {
                let part =
                    |(term, by): &(ExprId, i64)| (*by, self.ready_at(Dim::Expr(*term), chain));
                Kind::Sum(terms.iter().map(part).collect(), constant)
            }
            Node::Mul(a, b) => both(Op::Mul, a, b),
            Node::Div(a, b) => both(Op::Div, a, b),
            Node::Mod(a, b) => both(Op::Mod, a, b),
            Node::CeilDiv(a, b) => both(Op::CeilDiv, a, b),
            Node::Min(a, b) => both(Op::Min, a, b),
            Node::Max(a, b) => both(Op::Max, a, b),
        };
        self.keep(id, Ex::new(kind))
    }

    fn keep(&self, id: ExprId, made: Rc<Ex>) -> Rc<Ex> {
        let mut known = self.known.borrow_mut();
        if known.len() <= id.index() {
            known.resize(id.index() + 1, None);
        }
        known[id.index()] = Some(Rc::clone(&made));
        made
    }

    fn variable(&self, var: VarId, chain: usize) -> Rc<Ex> {
        if let Some(v) = self.symbols.get(&var) {
            return Ex::new(Kind::Const(*v));
        }
        let of = |dim: Dim| self.ready_at(dim, chain + 1);
        match self.trip_counts.variable(var) {
            Some(Some(counted)) if chain < MAX_CHAIN => return of(counted),
            Some(_) => return Ex::new(Kind::Unknown),
            None => {}
        }
        Ex::new(match self.program.vars.get(&var) {
            Some(VarKind::Thread(_)) => Kind::Thread,
            Some(VarKind::Block(_)) => Kind::Block,
            Some(VarKind::Loop) => Kind::Loop(var),
            Some(VarKind::Counter(id)) => Kind::Loop(*id),
            Some(VarKind::Index(dim)) if chain < MAX_CHAIN => return of(*dim),
            Some(VarKind::Element(tensor)) if self.drawn && chain < MAX_CHAIN => {
                match self.draw(*tensor) {
                    Some(_) if self.is_held(var) => Kind::Loop(var),
                    Some(draw) => Kind::Drawn(of(self.program.tensors[*tensor].offset), draw),
                    None => Kind::Unknown,
                }
            }
            None if self.trip_counts.counts(var) => Kind::Loop(var),
            Some(VarKind::Index(_) | VarKind::Element(_) | VarKind::Symbol) | None => Kind::Unknown,
        })
    }

    /// Whether an expression, or the index of an integer in it, depends on a counter.
    pub(crate) fn has_counter(&self, dim: Dim) -> bool {
        let p = self.program;
        let (mut seen, mut todo) = (HashSet::new(), p.vars_in(dim));
        while let Some(var) = todo.pop() {
            match p.vars.get(&var) {
                Some(VarKind::Counter(_)) => return true,
                Some(VarKind::Element(tensor)) if seen.insert(var) => {
                    todo.extend(p.vars_in(p.tensors[*tensor].offset));
                }
                _ => {}
            }
        }
        false
    }

    /// Whether an integer of the caller's memory keeps the value of its definition although a
    /// counter in its index changes.
    pub(crate) fn is_held(&self, var: VarId) -> bool {
        match self.program.vars.get(&var) {
            Some(VarKind::Element(tensor)) => {
                self.drawn && self.has_counter(self.program.tensors[*tensor].offset)
            }
            _ => false,
        }
    }

    /// The integer at an element, if it has drawn values.
    pub(crate) fn element(&self, tensor: TensorId) -> Option<Rc<Ex>> {
        let place = self.ready(self.program.tensors[tensor].offset);
        Some(Ex::new(Kind::Drawn(place, self.draw(tensor)?)))
    }

    /// The range of drawn values of a tensor, if the symbols of its range have values.
    fn draw(&self, tensor: TensorId) -> Option<Draw> {
        let p = self.program;
        let of = |d: Dim| p.arena.eval(d, &|v| self.symbols.get(&v).copied()).ok();
        let buffer = p.buffer_of(tensor);
        let (lo, hi) = buffer.range?;
        let (lo, hi) = (of(lo)?, of(hi)?);
        Some(match buffer.splits {
            true => {
                Draw::Splits { n: hi.checked_sub(1)?, parts: of(buffer.cosize)?.checked_sub(1)? }
            }
            false if buffer.distinct => Draw::Distinct(lo, hi),
            false => Draw::Within(lo, hi),
        })
    }

    /// The value of an expression for each thread.
    pub(crate) fn value(&self, dim: Dim, env: &Env) -> Value {
        match dim {
            Dim::Const(v) => Value::Same(v),
            Dim::Expr(id) if self.is_number(id) => Value::Same(self.given(Nest::Outer).value),
            Dim::Expr(_) => self.eval(&self.ready(dim), env),
        }
    }

    /// Whether an expression is the outer trip count.
    pub(crate) fn is_number(&self, id: ExprId) -> bool {
        self.given(Nest::Outer).id == Some(id)
    }

    pub(crate) fn eval(&self, ex: &Ex, env: &Env) -> Value {
        let of_thread_alone = ex.thread && !ex.loops && !ex.block;
        if of_thread_alone && let Some(known) = ex.table.get() {
            return known.clone();
        }
        let value = match &ex.kind {
            Kind::Const(v) => Value::Same(*v),
            Kind::Thread => Value::Each(Rc::new((0..self.n_threads as i64).collect()), 0),
            Kind::Block => Value::Same(env.block),
            Kind::Loop(var) => env.get(*var).map_or(Value::Same(NOTHING), |h| h.value.clone()),
            Kind::Given(nest) => {
                self.is_within.set(self.is_within.get() || *nest == Nest::Outer);
                Value::Same(self.given(*nest).value)
            }
            Kind::Unknown => Value::Same(NOTHING),
            Kind::Drawn(of, draw) => self.eval(of, env).map(|place| draw.at(place)),
            Kind::Sum(parts, constant) => {
                let mut sum = Value::Same(*constant);
                for (by, part) in parts {
                    let part = self.eval(part, env);
                    sum = each(&sum, &part, |s, p| s.checked_add(p.checked_mul(*by)?));
                }
                sum
            }
            Kind::Bin(op, a, b) => {
                let (a, b) = (self.eval(a, env), self.eval(b, env));
                each(&a, &b, |a, b| apply(*op, a, b))
            }
        };
        if of_thread_alone {
            return ex.table.get_or_init(|| value.narrowed()).clone();
        }
        value
    }

    /// Evaluates a layout that depends on symbols alone.
    pub(crate) fn layout(&self, layout: &Layout<Dim>) -> Option<Layout<i64>> {
        layout.eval(&self.program.arena, &|v| self.symbols.get(&v).copied()).ok()
    }

    /// Evaluates an expression that depends on symbols alone.
    pub(crate) fn constant(&self, dim: Dim) -> Option<i64> {
        self.program.arena.eval(dim, &|v| self.symbols.get(&v).copied()).ok()
    }
}

fn apply(op: Op, a: i64, b: i64) -> Option<i64> {
    let positive = |b: i64| (b > 0).then_some(b);
    match op {
        Op::Mul => a.checked_mul(b),
        Op::Div => Some(a.div_euclid(positive(b)?)),
        Op::Mod => Some(a.rem_euclid(positive(b)?)),
        Op::CeilDiv => {
            let b = positive(b)?;
            a.div_euclid(b).checked_add(i64::from(a.rem_euclid(b) != 0))
        }
        Op::Min => Some(a.min(b)),
        Op::Max => Some(a.max(b)),
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

/// The threads for which a comparison holds; none if a side is unknown.
pub(crate) fn holding(threads: &Mask, a: &Value, op: CmpOp, b: &Value) -> Option<Mask> {
    if let (Value::Same(a), Value::Same(b)) = (a, b) {
        let is_known = *a != NOTHING && *b != NOTHING;
        return is_known.then(|| if holds(*a, op, *b) { *threads } else { Mask::default() });
    }
    let mut out = Mask::default();
    for t in threads.threads() {
        let (a, b) = (a.of(t), b.of(t));
        if a == NOTHING || b == NOTHING {
            return None;
        }
        if holds(a, op, b) {
            out.insert(t);
        }
    }
    Some(out)
}
