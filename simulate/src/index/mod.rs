//! Compiles index expressions, so that every thread of a block evaluates them in little time.
//!
//! An expression of the program becomes an [`Index`] with three parts: a part that is uniform for
//! all threads (constants, the block, loop variables), a part that depends only on the thread,
//! tabulated once for the kernel, and the rest, evaluated for each thread. Most addresses have no
//! rest.
//!
//! Invariant: an index that exceeds 64 bits or divides by a number below 1 is an error
//! ([`BadIndex`]), never a wrapped number.

mod code;
mod compare;
mod sizes;

use code::Code;
pub(crate) use code::{BadIndex, Env, LoopValue};
pub(crate) use compare::Compare;
pub(crate) use sizes::Sizes;

use carbyne_ir::expr::{Dim, ExprArena, Node, VarId, VarInfo};
use carbyne_ir::layout::{Layout, LayoutError};
use carbyne_ir::program::{Program, VarKind};
use std::collections::HashMap;
use std::sync::Arc;

/// The values of the variables of one kernel during its run.
pub(crate) struct Variables<'p> {
    program: &'p Program,
    loops: HashMap<VarId, usize>,
    symbols: &'p HashMap<VarId, i64>,
    n_threads: usize,
    /// Numbers read from memory, restricted to their range for these values of symbols.
    within: HashMap<VarId, Dim>,
    /// For each loop slot, whether its value differs between threads.
    varying: Vec<bool>,
}

/// An index into a buffer, a bound of a loop, or one side of a condition.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    uniform: Code,
    by_thread: Option<Arc<[i64]>>,
    mixed: Option<Code>,
}

/// The reason why an expression has no value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum NoIndex {
    #[error("`{0}` has no value here")]
    NoValue(String),
    #[error("the expression is too long")]
    TooLong,
    #[error("coordinates are defined by each other")]
    Circular,
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error(transparent)]
    Bad(#[from] BadIndex),
}

/// The kinds of variables in an expression.
#[derive(Copy, Clone, Default, PartialEq)]
struct Holds {
    thread: bool,
    uniform: bool,
    varying: bool,
}

impl<'p> Variables<'p> {
    /// The variables of a kernel with `n_threads` threads per block.
    pub(crate) fn new(
        program: &'p Program,
        symbols: &'p HashMap<VarId, i64>,
        n_threads: usize,
    ) -> Self {
        let (loops, within) = (HashMap::new(), HashMap::new());
        Variables { program, loops, symbols, n_threads, within, varying: Vec::new() }
    }

    /// The slot of a new loop variable.
    pub(crate) fn add_loop(&mut self, var: VarId, varying: bool) -> usize {
        self.varying.push(varying);
        self.loops.insert(var, self.varying.len() - 1);
        self.varying.len() - 1
    }

    /// The slot of a loop variable or of a counter.
    pub(crate) fn slot_of(&self, var: VarId) -> Option<usize> {
        self.loops.get(&var).copied()
    }

    /// Records the declared range of a tensor whose element this variable is.
    pub(crate) fn narrow(&mut self, var: VarId, range: (Dim, Dim)) {
        let (Ok(lo), Ok(end)) = (self.constant(range.0), self.constant(range.1)) else { return };
        let VarInfo { name, .. } = self.arena().var_info(var);
        let info = VarInfo { name, lo, hi: end.checked_sub(1), div: 1 };
        if let Ok(dim) = self.arena().var(info) {
            self.within.insert(var, dim);
        }
    }

    /// The value of an expression that contains no variables except symbols with a value.
    ///
    /// # Errors
    /// The name of a variable without a value, or an arithmetic error.
    pub(crate) fn constant(&self, dim: Dim) -> Result<i64, NoIndex> {
        let value = |v: VarId| self.symbols.get(&v).copied();
        Ok(self.arena().eval(dim, &value)?)
    }

    /// The value of a symbol.
    pub(crate) fn constant_of(&self, var: VarId) -> Option<i64> {
        self.symbols.get(&var).copied()
    }

    /// A layout that contains no variables except symbols with a value.
    ///
    /// # Errors
    /// The name of a variable without a value, or an arithmetic error.
    pub(crate) fn layout(&self, layout: &Layout<Dim>) -> Result<Layout<i64>, NoIndex> {
        Ok(layout.eval(self.arena(), &|v| self.constant_of(v))?)
    }

    /// The sizes of a tensor that may have no elements; see [`Variables::layout`].
    ///
    /// # Errors
    /// The errors of [`Variables::layout`].
    pub(crate) fn sizes(&self, layout: &Layout<Dim>) -> Result<Sizes, NoIndex> {
        Ok(Sizes::eval(layout, self.arena(), &|v| self.constant_of(v))?)
    }

    /// The smallest and the largest value of an expression over any variables.
    pub(crate) fn bounds(&self, dim: Dim) -> (Option<i64>, Option<i64>) {
        let value =
            |v: VarId| self.constant_of(v).map(Dim::Const).or_else(|| self.within.get(&v).copied());
        let known = self.arena().substitute(dim, &value).unwrap_or(dim);
        self.arena().range(known)
    }

    /// Compiles an expression.
    ///
    /// # Errors
    /// A variable without a meaning in this kernel, or arithmetic that fails for some thread.
    pub(crate) fn index(&self, dim: Dim) -> Result<Index, NoIndex> {
        let mut terms: Vec<(i64, Dim)> = Vec::new();
        let mut constant = 0;
        match dim {
            Dim::Const(v) => constant = v,
            Dim::Expr(id) => match self.arena().node(id) {
                Node::Linear { terms: parts, constant: c } => {
                    terms = parts.iter().map(|(id, coef)| (*coef, Dim::Expr(*id))).collect();
                    constant = c;
                }
                _ => terms.push((1, dim)),
            },
        }
        let mut by_thread: Option<Vec<i64>> = None;
        let (mut uniform, mut mixed) = (Code::constant(constant), None::<Code>);
        for (coef, term) in terms {
            let mut code = Code::default();
            self.emit(term, &mut code, 0)?;
            code.scale(coef);
            let holds = self.holds(&code);
            if !holds.thread && !holds.varying {
                uniform.plus(code);
            } else if holds.thread && !holds.uniform && !holds.varying {
                let table = by_thread.get_or_insert_with(|| vec![0; self.n_threads]);
                for (t, sum) in table.iter_mut().enumerate() {
                    let value = code.eval(&Env::none(), t)?;
                    *sum = sum.checked_add(value).ok_or(BadIndex)?;
                }
            } else {
                match &mut mixed {
                    Some(sum) => sum.plus(code),
                    none => *none = Some(code),
                }
            }
        }
        Ok(Index { uniform, by_thread: by_thread.map(Arc::from), mixed })
    }

    fn arena(&self) -> &ExprArena {
        &self.program.arena
    }

    /// The kinds of variables that the code depends on.
    fn holds(&self, code: &Code) -> Holds {
        let mut holds = Holds::default();
        for op in code.ops() {
            match op {
                code::Op::Thread => holds.thread = true,
                code::Op::Block => holds.uniform = true,
                code::Op::Loop(slot) if self.varying[*slot] => holds.varying = true,
                code::Op::Loop(_) => holds.uniform = true,
                _ => {}
            }
        }
        holds
    }

    /// Appends code that pushes the value of `dim` on the stack.
    fn emit(&self, dim: Dim, code: &mut Code, depth: usize) -> Result<(), NoIndex> {
        use code::Op;
        if code.len() > MAX_CODE {
            return Err(NoIndex::TooLong);
        }
        let id = match dim {
            Dim::Const(v) => {
                code.push(Op::Const(v));
                return Ok(());
            }
            Dim::Expr(id) => id,
        };
        let (a, b, op) = match self.arena().node(id) {
            Node::Var(var) => {
                match self.meaning(var, depth)? {
                    Meaning::Thread => code.push(Op::Thread),
                    Meaning::Block => code.push(Op::Block),
                    Meaning::Loop(slot) => code.push(Op::Loop(slot)),
                    Meaning::Is(dim) => self.emit(dim, code, depth + 1)?,
                }
                return Ok(());
            }
            Node::Linear { terms, constant } => {
                code.push(Op::Const(constant));
                for (term, coef) in terms.iter() {
                    self.emit(Dim::Expr(*term), code, depth)?;
                    code.scale(*coef);
                    code.push(Op::Add);
                }
                return Ok(());
            }
            Node::Mul(a, b) => (a, b, Op::Mul),
            Node::Div(a, b) => (a, b, Op::Div),
            Node::Mod(a, b) => (a, b, Op::Mod),
            Node::CeilDiv(a, b) => (a, b, Op::CeilDiv),
            Node::Min(a, b) => (a, b, Op::Min),
            Node::Max(a, b) => (a, b, Op::Max),
        };
        self.emit(a, code, depth)?;
        self.emit(b, code, depth)?;
        code.push(op);
        Ok(())
    }

    fn meaning(&self, var: VarId, depth: usize) -> Result<Meaning, NoIndex> {
        if depth > MAX_CHAIN {
            return Err(NoIndex::Circular);
        }
        if let Some(v) = self.symbols.get(&var) {
            return Ok(Meaning::Is(Dim::Const(*v)));
        }
        if let Some(slot) = self.loops.get(&var) {
            return Ok(Meaning::Loop(*slot));
        }
        match self.program.vars.get(&var) {
            Some(VarKind::Thread(_)) => Ok(Meaning::Thread),
            Some(VarKind::Block(_)) => Ok(Meaning::Block),
            Some(VarKind::Index(dim)) => Ok(Meaning::Is(*dim)),
            Some(VarKind::Counter(id)) if self.loops.contains_key(id) => {
                Ok(Meaning::Loop(self.loops[id]))
            }
            Some(VarKind::Loop | VarKind::Element(_) | VarKind::Counter(_) | VarKind::Symbol)
            | None => Err(NoIndex::NoValue(self.arena().var_info(var).name.clone())),
        }
    }
}

enum Meaning {
    Thread,
    Block,
    Loop(usize),
    Is(Dim),
}

/// The longest code of one expression.
const MAX_CODE: usize = 1 << 16;
/// The longest chain of coordinates that are defined by others.
const MAX_CHAIN: usize = 64;

impl Index {
    /// Whether the index depends on the loop variable of this slot.
    pub(crate) fn mentions(&self, slot: usize) -> bool {
        self.uniform.mentions(slot) || self.mixed.as_ref().is_some_and(|c| c.mentions(slot))
    }

    /// Whether all threads have one value.
    pub(crate) fn is_uniform(&self) -> bool {
        self.by_thread.is_none() && self.mixed.is_none()
    }

    /// The value, if it is constant.
    pub(crate) fn known(&self) -> Option<i64> {
        if self.is_uniform() { self.uniform.known() } else { None }
    }

    /// The part that is uniform for all threads.
    ///
    /// # Errors
    /// [`BadIndex`].
    pub(crate) fn base(&self, env: &Env) -> Result<i64, BadIndex> {
        self.uniform.eval(env, 0)
    }

    /// The value for a thread, given [`Index::base`].
    ///
    /// # Errors
    /// [`BadIndex`].
    #[inline]
    pub(crate) fn at(&self, base: i64, env: &Env, thread: usize) -> Result<i64, BadIndex> {
        let mut value = base;
        if let Some(table) = &self.by_thread {
            value = value.checked_add(table[thread]).ok_or(BadIndex)?;
        }
        if let Some(code) = &self.mixed {
            value = value.checked_add(code.eval(env, thread)?).ok_or(BadIndex)?;
        }
        Ok(value)
    }
}
