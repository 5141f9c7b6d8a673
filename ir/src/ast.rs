//! Defines the syntax tree of a module ([`Module`]), the form in which it is written. One tree
//! serves texts at every level, from a kernel without tiles and threads down to single
//! instructions.
//!
//! [`crate::text`] parses texts to this tree and prints it; builders and the solver construct it.
//! The tree keeps names of `let` constants, omitted types, comments and blank lines.
//! [`crate::resolve`] turns it into a [`crate::program::Program`], in which every type is known;
//! the verifier, the simulator and the code generator read that program.
//!
//! Invariants:
//! - `parse(print(m)) == m` for every well-formed module; equality ignores spans and ids.
//! - The parser or a builder gives each statement an id, and rewriting a tree keeps it. A statement
//!   made from another one refers to that one's id. The text contains no ids.
//! - [`crate::text::well_formed()`] refuses trees that no text can express.
//!   [`crate::resolve::resolve`] calls it first, and [`crate::resolve::resolve_read`] trusts that
//!   the tree came from a text.
//! - Dropping and printing never recurse. `clone`, `==` and `{:?}` recurse as deep as the tree is
//!   nested.
//! - Names contain only ASCII letters, digits and `_`. Names of data and threads do not include the
//!   sigil (`%`, `#`); names of indices include the `@` (`@tid_m`, or bare `k`).

mod attr;
mod kind;
mod node;
mod short;
mod substitute;
mod sync;
pub mod visit;

pub use attr::{Attr, AttrValue, Chosen, Key, Role, Takes};
pub use kind::{AccumulateOp, BinaryOp, ExtentRule, Numbers, ReduceOp, ShflOp, SpecKind, UnaryOp};
pub use node::{NodeId, NodeKey};
pub(crate) use short::operator;
pub use short::{
    Apply, BLOCK_SHARED, Call, Choices, Def, Exec, Group, Launch, MULTIPROCESSORS, Param, Pick,
    ResultType, Strategy, Symbols, TensorExpr, WIDEST_GROUP,
};
pub use substitute::{Given, Substitution, Unfit};
pub(crate) use substitute::{literal, nodes};
pub use sync::{SyncNumber, SyncOp, SyncSignature, SyncTensor};

use crate::layout::LayoutError;
use crate::leaf::Leaf;
use crate::scalar::{Memory, Scalar, spelled};
use crate::span::Span;
use crate::tuple::IntTuple;

/// The format version, written in the first line of a text.
pub const FORMAT_VERSION: u32 = 2;

/// A name and its place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Letters, digits and `_`; index names may begin with `@`.
    pub text: String,
    /// Its place in the text.
    pub span: Span,
}

impl Name {
    /// A name that is not in a text yet.
    pub fn new(text: impl Into<String>) -> Self {
        Name { text: text.into(), span: Span::default() }
    }
}

/// A complete file.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// Comment lines above the version line, and a comment on it.
    pub header: Vec<String>,
    /// Top-level statements: constants, symbols, tensors, threads, kernels.
    pub items: Vec<Stmt>,
    /// Comment lines after the last item.
    pub footer: Vec<String>,
}

impl Module {
    /// Gives a fresh id to every statement whose id occurs earlier in the module, as in a copy. The
    /// statement then counts as made from the earlier one.
    pub fn separate(&mut self) {
        let mut seen = std::collections::HashSet::new();
        let mut lists = vec![&mut self.items];
        while let Some(list) = lists.pop() {
            let mut inner = vec![];
            for stmt in list {
                if !seen.insert(stmt.id.key()) {
                    stmt.from = Some(std::mem::replace(&mut stmt.id, NodeId::fresh()));
                    seen.insert(stmt.id.key());
                }
                inner.extend(stmt.kind.blocks_mut().map(|b| &mut b.stmts));
            }
            lists.extend(inner.into_iter().rev());
        }
    }

    /// Copies the ids and origins of an equal module, for a module that was printed and parsed
    /// again.
    pub fn take_ids(&mut self, of: &Module) {
        let mut lists = vec![(&mut self.items, &of.items)];
        while let Some((list, of)) = lists.pop() {
            for (stmt, of) in list.iter_mut().zip(of) {
                (stmt.id, stmt.from) = (of.id, of.from);
                let blocks = stmt.kind.blocks_mut().zip(of.kind.blocks());
                lists.extend(blocks.map(|(block, of)| (&mut block.stmts, &of.stmts)));
            }
        }
    }
}

/// A statement with its comments. `==` ignores spans and ids.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// Whether an empty line is above the statement and its comments. The first statement of a
    /// block has no empty line above; the first of a module may have one.
    pub blank_above: bool,
    /// Comment lines above, without `//` and one space after it, and without trailing spaces.
    pub leading: Vec<String>,
    /// The comment at the end of the statement's last line (for a body: after its `{`).
    pub trailing: Option<String>,
    /// The statement itself.
    pub kind: StmtKind,
    /// The statement's text without comments.
    pub span: Span,
    /// The id of this statement, unique in its module.
    pub id: NodeId,
    /// The statement from which this one was made, which may no longer exist. `None` for a
    /// statement that a person wrote or a builder made.
    pub from: Option<NodeId>,
}

impl PartialEq for Stmt {
    fn eq(&self, other: &Stmt) -> bool {
        let Stmt { blank_above, leading, trailing, kind, span: _, id: _, from: _ } = self;
        *blank_above == other.blank_above
            && *leading == other.leading
            && *trailing == other.trailing
            && *kind == other.kind
    }
}

impl Stmt {
    /// A statement without comments.
    pub fn new(kind: StmtKind) -> Self {
        Stmt {
            blank_above: false,
            leading: vec![],
            trailing: None,
            kind,
            span: Span::default(),
            id: NodeId::fresh(),
            from: None,
        }
    }

    /// The place in the source program from which a spec was made (`loc=`).
    pub fn loc(&self) -> Option<&str> {
        match &self.kind {
            StmtKind::Spec(spec) => spec.loc(),
            StmtKind::Assign { value: TensorExpr::Apply(apply), .. } => Attr::loc_of(&apply.attrs),
            _ => None,
        }
    }

    /// A statement without comments, made from another one. Errors point at that one's place.
    pub fn derived(kind: StmtKind, from: &Stmt) -> Self {
        Stmt { span: from.span, from: Some(from.id), ..Stmt::new(kind) }
    }
}

/// A list of statements between braces.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Block {
    /// The statements, in text order.
    pub stmts: Vec<Stmt>,
    /// Comment lines before the closing brace.
    pub footer: Vec<String>,
}

impl Drop for Block {
    /// Drops one body after the other, so that deeply nested trees do not overflow the stack.
    fn drop(&mut self) {
        let mut rest = std::mem::take(&mut self.stmts);
        while let Some(mut stmt) = rest.pop() {
            rest.extend(stmt.kind.blocks_mut().flat_map(|b| b.stmts.drain(..)));
        }
    }
}

/// Facts that the caller guarantees about the integer elements of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements {
    /// `in 0..N`: lower bound, and exclusive upper bound.
    Within(Expr, Expr),
    /// `in 0..N distinct`: the same bounds, and no two elements are equal.
    Distinct(Expr, Expr),
    /// `splits N`: the elements never decrease, the first is 0 and the last is N. They are the
    /// bounds of consecutive parts of N elements.
    Splits(Expr),
}

/// The kinds of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `let M = 256, N = 2 * M`
    Let(Vec<(Name, Expr)>),
    /// `sym K{min=64, max=4096, div=64}`: a size known only at launch.
    Sym(SymDecl),
    /// `sym M, N where M % 8 == 0, M <= N typical M=4096`: sizes with facts about them.
    Symbols(Symbols),
    /// `%A:[M,K].f16.GL`: a tensor that the caller provides (top level only). A declaration without
    /// memory and modes, `%alpha:[].f32`, is a number that the caller passes.
    DataDecl {
        /// Without `%`.
        name: Name,
        /// The complete type.
        ty: TensorType,
        /// Facts about its integer elements.
        range: Option<Elements>,
    },
    /// `%a:[..].f16.GL = %A.tile([8,8])[@i,_]`: a view; the type is optional.
    DataDef {
        /// Without `%`.
        name: Name,
        /// Compared with the inferred type; omitted strides follow from the view.
        ty: Option<TensorType>,
        /// The view.
        view: View,
    },
    /// `#cta:[128].thread`, `#grid:[(8,8):(1,8)].block`
    ThreadDecl {
        /// Without `#`.
        name: Name,
        /// The complete type.
        ty: ThreadType,
    },
    /// `#w:[4].[32].thread = #cta.tile([32])`
    ThreadDef {
        /// Without `#`.
        name: Name,
        /// Compared with the inferred type.
        ty: Option<ThreadType>,
        /// The view.
        view: View,
    },
    /// `@m, @n = #w.indices()`: the coordinates of the executing thread (or block) in the outermost
    /// level.
    Indices {
        /// One name for each mode.
        names: Vec<Name>,
        /// The thread tensor.
        threads: View,
    },
    /// `@n = %sizes[@g]`: reads an integer from the caller's memory. The name denotes this number
    /// up to the end of the block.
    Element {
        /// The name, with `@`.
        name: Name,
        /// A view of one element.
        view: View,
    },
    /// `counter @q = 0`: declares an integer that [`StmtKind::Step`] changes. Each thread that
    /// executes the declaration has its own.
    Counter {
        /// The name, with `@`.
        name: Name,
        /// The first value, at least 0.
        start: Expr,
    },
    /// `@q += 1` or `@q = 2 * k`: changes a counter. Views and constants that use the counter keep
    /// its earlier value, so they are not used after the step.
    Step {
        /// The counter, with `@`.
        name: Name,
        /// Whether the value is added to that of the counter (`+=`).
        adds: bool,
        /// The value.
        value: Expr,
    },
    /// `Allocate %As:[128,32].f16.SH{?}`
    Allocate {
        /// Without `%`.
        name: Name,
        /// The type; its layout may be open.
        ty: TensorType,
    },
    /// Any other spec, with or without a body.
    Spec(Spec),
    /// `%p = exp(%s - %max)`: the result of the specs that the expression stands for. If the name
    /// is not yet defined, the statement declares it; otherwise it writes to the existing tensor.
    Assign {
        /// A name, or a view of the tensor to write.
        target: View,
        /// The stated part of the type of a declared name.
        ty: Option<ResultType>,
        /// The expression.
        value: TensorExpr,
    },
    /// `import "parts.cby"`: imports the sub-specs of another file.
    Import(Text),
    /// `def @scale[N] (%x, %y) -> (%z) { .. }`: defines a sub-spec with parameters.
    Def(Def),
    /// `@scale[128] (%a, %b) -> (%c)`: uses a sub-spec.
    Call(Call),
    /// `for (k = 0; k < 8; k += 1) unroll { .. }`, or with conditions that end the loop early:
    /// `for (r = 0; r < N && @tile < N; r += 1) { .. }`.
    For {
        /// The loop variable.
        var: Name,
        /// First value.
        start: Expr,
        /// Exclusive bound.
        end: Expr,
        /// Further conditions of an iteration, which usually compare counters. The loop ends before
        /// the first iteration at whose beginning one of them does not hold.
        also: Vec<Compare>,
        /// Positive step.
        step: Expr,
        /// How the loop is unrolled.
        unroll: Unroll,
        /// `stages=3`: the number of iterations that may be in flight together. The meaning stays
        /// sequential.
        stages: Option<Expr>,
        /// The statements of the loop.
        body: Block,
    },
    /// `if (@w < 2 && k == 0) { .. } else { .. }`
    If {
        /// The comparisons, all of which must hold.
        cond: Vec<Compare>,
        /// The block executed if all hold.
        then: Block,
        /// The block executed if one of them does not hold.
        otherwise: Option<Block>,
    },
    /// `barrier` or `barrier(#warps)`: waits until all named threads have arrived.
    Barrier(Option<View>),
    /// `mbarrier.wait(%full[s], parity)`, `async.commit`: executed by every thread of the enclosing
    /// body for itself, or by its warps together.
    Sync {
        /// The operation.
        op: SyncOp,
        /// The operands, which [`SyncOp::signature`] describes.
        args: Vec<SyncArg>,
    },
}

impl StmtKind {
    /// The blocks of the statement, in text order: for a spec `means`, then the body; for an `if`
    /// both branches.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        let (first, second) = match self {
            StmtKind::Spec(spec) => (spec.means.as_ref(), spec.body.as_ref()),
            StmtKind::Def(def) => match &def.means {
                Some(means) => (Some(means), Some(&def.body)),
                None => (Some(&def.body), None),
            },
            StmtKind::For { body, .. } => (Some(body), None),
            StmtKind::If { then, otherwise, .. } => (Some(then), otherwise.as_ref()),
            StmtKind::Let(_)
            | StmtKind::Sym(_)
            | StmtKind::Symbols(_)
            | StmtKind::DataDecl { .. }
            | StmtKind::DataDef { .. }
            | StmtKind::ThreadDecl { .. }
            | StmtKind::ThreadDef { .. }
            | StmtKind::Indices { .. }
            | StmtKind::Element { .. }
            | StmtKind::Counter { .. }
            | StmtKind::Step { .. }
            | StmtKind::Allocate { .. }
            | StmtKind::Barrier(_)
            | StmtKind::Assign { .. }
            | StmtKind::Import(_)
            | StmtKind::Call(_)
            | StmtKind::Sync { .. } => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// The blocks of [`StmtKind::blocks`] without `means`.
    pub fn bodies(&self) -> impl Iterator<Item = &Block> {
        self.blocks().skip(usize::from(self.has_means()))
    }

    /// Mutable [`StmtKind::bodies`].
    pub fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        let means = usize::from(self.has_means());
        self.blocks_mut().skip(means)
    }

    /// Whether the first block is a `means` block.
    pub fn has_means(&self) -> bool {
        matches!(
            self,
            StmtKind::Spec(Spec { means: Some(_), .. }) | StmtKind::Def(Def { means: Some(_), .. })
        )
    }

    /// Mutable [`StmtKind::blocks`].
    pub fn blocks_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        let (first, second) = match self {
            StmtKind::Spec(spec) => (spec.means.as_mut(), spec.body.as_mut()),
            StmtKind::Def(def) => match &mut def.means {
                Some(means) => (Some(means), Some(&mut def.body)),
                None => (Some(&mut def.body), None),
            },
            StmtKind::For { body, .. } => (Some(body), None),
            StmtKind::If { then, otherwise, .. } => (Some(then), otherwise.as_mut()),
            StmtKind::Let(_)
            | StmtKind::Sym(_)
            | StmtKind::Symbols(_)
            | StmtKind::DataDecl { .. }
            | StmtKind::DataDef { .. }
            | StmtKind::ThreadDecl { .. }
            | StmtKind::ThreadDef { .. }
            | StmtKind::Indices { .. }
            | StmtKind::Element { .. }
            | StmtKind::Counter { .. }
            | StmtKind::Step { .. }
            | StmtKind::Allocate { .. }
            | StmtKind::Barrier(_)
            | StmtKind::Assign { .. }
            | StmtKind::Import(_)
            | StmtKind::Call(_)
            | StmtKind::Sync { .. } => (None, None),
        };
        first.into_iter().chain(second)
    }
}

/// An operand of a synchronization statement.
#[derive(Clone, Debug, PartialEq)]
pub enum SyncArg {
    /// `%full[s]`
    View(View),
    /// `16384`
    Number(Expr),
    /// `after=%alpha`: the statement is executed after this register has its value.
    After(View),
}

/// A symbolic size.
#[derive(Clone, Debug, PartialEq)]
pub struct SymDecl {
    /// Its name.
    pub name: Name,
    /// Smallest value; 1 if omitted.
    pub min: Option<i64>,
    /// Largest value.
    pub max: Option<i64>,
    /// A divisor of its value.
    pub div: Option<i64>,
}

spelled! {
    /// How a loop is unrolled.
    Unroll {
        /// The CUDA compiler decides.
        Default = "",
        /// Fully: `#pragma unroll`.
        Full = "unroll",
        /// Not at all: `#pragma unroll 1`.
        Never = "nounroll",
    }
}

/// A number: an integer in extents, strides and indices; a binary64 number in literals of a spec.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The operator, name or literal.
    pub kind: ExprKind,
    /// Its place in the text.
    pub span: Span,
}

impl Drop for Expr {
    /// Drops one operator after the other, so that deeply nested trees do not overflow the stack.
    fn drop(&mut self) {
        let mut rest = vec![];
        operands(&mut self.kind, &mut rest);
        while let Some(mut kind) = rest.pop() {
            operands(&mut kind, &mut rest);
        }
    }
}

/// Moves the operators below `kind` to `into`.
fn operands(kind: &mut ExprKind, into: &mut Vec<ExprKind>) {
    let mut take = |operand: &mut Expr| {
        if matches!(operand.kind, ExprKind::Bin(..) | ExprKind::Neg(_) | ExprKind::Sqrt(_)) {
            into.push(std::mem::replace(&mut operand.kind, ExprKind::Int(0)));
        }
    };
    match kind {
        ExprKind::Bin(_, a, b) => {
            take(a);
            take(b);
        }
        ExprKind::Neg(a) | ExprKind::Sqrt(a) => take(a),
        ExprKind::Int(_) | ExprKind::Real(_) | ExprKind::Name(_) => {}
    }
}

impl Expr {
    /// A literal.
    pub fn int(v: i64) -> Self {
        Expr { kind: ExprKind::Int(v), span: Span::default() }
    }
    /// All names in the expression, in text order; a repeated name is listed again.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let (mut names, mut todo) = (vec![], vec![self]);
        while let Some(e) = todo.pop() {
            match &e.kind {
                ExprKind::Name(name) => names.push(name.as_str()),
                ExprKind::Neg(a) | ExprKind::Sqrt(a) => todo.push(a),
                ExprKind::Bin(_, a, b) => todo.extend([&**b, &**a]),
                ExprKind::Int(_) | ExprKind::Real(_) => {}
            }
        }
        names
    }

    /// The three numbers of a swizzle, for [`TypeAttr::Swizzle`] and [`ViewOp::TensorMap`].
    pub fn swizzle(b: u32, m: u32, s: u32) -> Box<[Expr; 3]> {
        Box::new([b, m, s].map(|n| Expr::int(n.into())))
    }
    /// A reference to a constant, symbol, index or loop variable.
    pub fn name(n: impl Into<String>) -> Self {
        Expr { kind: ExprKind::Name(n.into()), span: Span::default() }
    }
    /// A binary operation.
    pub fn bin(op: BinOp, a: Expr, b: Expr) -> Self {
        Expr { kind: ExprKind::Bin(op, Box::new(a), Box::new(b)), span: Span::default() }
    }
}

/// The kinds of numbers. Literals are non-negative.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `128`
    Int(i64),
    /// `0.5`, `1e-5`: as written; not allowed in indices. `inf` is a name.
    Real(String),
    /// `M`, `k`, `@tid_m`
    Name(String),
    /// `a + b`, `ceil_div(a, b)`
    Bin(BinOp, Box<Expr>, Box<Expr>),
    /// `-a`
    Neg(Box<Expr>),
    /// `sqrt(a)`; not allowed in indices.
    Sqrt(Box<Expr>),
}

spelled! {
    /// Operators on integers. Division and remainder round down. White space must follow `%`, to
    /// distinguish it from the sigil of a tensor.
    BinOp {
        /// Sum.
        Add = "+",
        /// Difference.
        Sub = "-",
        /// Product.
        Mul = "*",
        /// Quotient, rounded down.
        Div = "/",
        /// Remainder.
        Mod = "%",
        /// Minimum.
        Min = "min",
        /// Maximum.
        Max = "max",
        /// Quotient, rounded up.
        CeilDiv = "ceil_div",
    }
}

impl BinOp {
    /// The precedence, from 1; functions have the highest.
    #[must_use]
    pub fn rank(self) -> u8 {
        match self {
            BinOp::Add | BinOp::Sub => 1,
            BinOp::Mul | BinOp::Div | BinOp::Mod => 2,
            BinOp::Min | BinOp::Max | BinOp::CeilDiv => 3,
        }
    }

    /// Evaluates the operator.
    ///
    /// # Errors
    /// Overflow, a divisor that is not positive, the limits of the arena.
    pub fn apply<L: Leaf>(self, cx: &L::Cx, a: L, b: L) -> Result<L, LayoutError> {
        match self {
            BinOp::Add => L::add(cx, a, b),
            BinOp::Sub => L::sub(cx, a, b),
            BinOp::Mul => L::mul(cx, a, b),
            BinOp::Div => L::div(cx, a, b),
            BinOp::Mod => L::rem(cx, a, b),
            BinOp::Min => <L as Leaf>::min(cx, a, b),
            BinOp::Max => <L as Leaf>::max(cx, a, b),
            BinOp::CeilDiv => L::ceil_div(cx, a, b),
        }
    }

    /// Joins operands by the precedence of the operators between them; operators of equal
    /// precedence group from the left. `next` returns the next operator with the operand after it,
    /// and `None` at the end.
    ///
    /// # Errors
    /// The errors of `next`.
    pub fn grouped<T, E>(
        first: T,
        mut next: impl FnMut() -> Result<Option<(BinOp, T)>, E>,
        join: impl Fn(BinOp, T, T) -> T,
    ) -> Result<T, E> {
        // The stack holds at most two operators of different precedence.
        let mut stack: Vec<(BinOp, T)> = vec![];
        let mut last = first;
        while let Some((op, operand)) = next()? {
            while let Some((above, a)) = stack.pop_if(|(above, _)| above.rank() >= op.rank()) {
                last = join(above, a, last);
            }
            stack.push((op, last));
            last = operand;
        }
        while let Some((above, a)) = stack.pop() {
            last = join(above, a, last);
        }
        Ok(last)
    }
}

spelled! {
    /// Comparisons of integers.
    CmpOp {
        /// Less.
        Lt = "<",
        /// At most.
        Le = "<=",
        /// Equal.
        Eq = "==",
        /// Different.
        Ne = "!=",
        /// At least.
        Ge = ">=",
        /// Greater.
        Gt = ">",
    }
}

impl CmpOp {
    /// The comparison that holds if the sides are exchanged: `<` gives `>`.
    pub fn flipped(self) -> CmpOp {
        match self {
            CmpOp::Lt => CmpOp::Gt,
            CmpOp::Le => CmpOp::Ge,
            CmpOp::Gt => CmpOp::Lt,
            CmpOp::Ge => CmpOp::Le,
            CmpOp::Eq | CmpOp::Ne => self,
        }
    }

    /// Evaluates the comparison.
    pub fn holds(self, a: i64, b: i64) -> bool {
        match self {
            CmpOp::Lt => a < b,
            CmpOp::Le => a <= b,
            CmpOp::Eq => a == b,
            CmpOp::Ne => a != b,
            CmpOp::Ge => a >= b,
            CmpOp::Gt => a > b,
        }
    }
}

/// `a < b`
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// Left side.
    pub lhs: Expr,
    /// Comparison.
    pub op: CmpOp,
    /// Right side.
    pub rhs: Expr,
}

/// A nested tuple of integer expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum TupleExpr {
    /// One number.
    Leaf(Expr),
    /// `(a, b)`
    Tuple(Vec<TupleExpr>),
}

impl Drop for TupleExpr {
    /// Drops one tuple after the other, so that deeply nested trees do not overflow the stack.
    fn drop(&mut self) {
        let nested = |t: &TupleExpr| matches!(t, TupleExpr::Tuple(modes) if !modes.is_empty());
        let TupleExpr::Tuple(modes) = self else { return };
        if !modes.iter().any(nested) {
            return;
        }
        let mut rest = std::mem::take(modes);
        while let Some(mut t) = rest.pop() {
            if let TupleExpr::Tuple(modes) = &mut t {
                rest.append(modes);
            }
        }
    }
}

impl TupleExpr {
    /// The tuple of constants `t`.
    pub fn constant(t: &IntTuple<i64>) -> Self {
        match t {
            IntTuple::Leaf(v) => TupleExpr::Leaf(Expr::int(*v)),
            IntTuple::Tuple(ts) => TupleExpr::Tuple(ts.iter().map(Self::constant).collect()),
        }
    }
}

/// `shape:stride`: `((4,8),(2,2)):((16,1),(8,64))`. The strides are never omitted.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutExpr {
    /// Shape.
    pub shape: TupleExpr,
    /// Strides, congruent with the shape.
    pub stride: TupleExpr,
    /// Its place in the text.
    pub span: Span,
}

/// `[8,8]`, `[32:1]`, `[(8,8):(8,1)]`, `[]`: one level of a tensor.
///
/// The printed form follows from the fields. With strides, one mode prints as `[n:s]` and several
/// as `[(..):(..)]`; without strides, they print as `[a,b]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Dims {
    /// One entry for each mode.
    pub modes: Vec<TupleExpr>,
    /// One entry for each mode, congruent with the mode.
    pub strides: Option<Vec<TupleExpr>>,
    /// Its place in the text.
    pub span: Span,
}

/// The type of a data tensor: `[2,2].[8,8].f16.SH{swizzle=(3,4,3)}`.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorType {
    /// The levels, outermost first; at least one.
    pub levels: Vec<Dims>,
    /// The scalar type of the innermost elements.
    pub scalar: Scalar,
    /// The memory; `None` if the solver chooses it.
    pub memory: Option<Memory>,
    /// The attributes in braces, in text order.
    pub attrs: Vec<TypeAttr>,
    /// Its place in the text.
    pub span: Span,
}

/// An attribute in the braces of a tensor type.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeAttr {
    /// `?`: the solver chooses the layout (SH: strides and swizzle; RF: the thread-value layout).
    Open,
    /// `tv=((4,8),2):((2,8),1) over #w`: a distributed register tensor. The layout maps (thread,
    /// value) to the column-major index of the element in the logical shape.
    Tv(LayoutExpr, Name),
    /// `swizzle=(3,4,3)`: CuTe's `Swizzle<B,M,S>` on byte-address bits. Three constants.
    Swizzle(Box<[Expr; 3]>),
    /// `align=128`: alignment of the first byte.
    Align(Expr),
    /// `at=4096`: byte address in the shared memory of the block.
    At(Expr),
    /// `reuses=%x`: may overlap `%x` in shared memory.
    Reuses(Name),
    /// `[8].T`, written before the braces and listed first: the scalar type is this type parameter
    /// of the enclosing sub-spec. The scalar field of the type has no meaning then; it holds `f32`,
    /// or `None` where it is optional.
    Scalar(Name),
}

spelled! {
    /// The elements of a thread tensor.
    ThreadScalar {
        /// Threads of a block.
        Thread = "thread",
        /// Blocks of a grid.
        Block = "block",
    }
}

/// The type of a thread tensor: `[2,2].[8].thread`.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadType {
    /// The levels, outermost first; at least one.
    pub levels: Vec<Dims>,
    /// Threads or blocks.
    pub scalar: ThreadScalar,
    /// Its place in the text.
    pub span: Span,
}

/// `%A.tile([8,8])[@i,_]`: a named tensor and the operations on it. The context determines the
/// sigil.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The tensor's name.
    pub base: Name,
    /// The operations on the outermost level, applied from left to right.
    pub ops: Vec<ViewOp>,
    /// Its place in the text.
    pub span: Span,
}

impl View {
    /// The tensor itself, without operations.
    pub fn of(name: impl Into<String>) -> Self {
        View { base: Name::new(name), ops: vec![], span: Span::default() }
    }
    /// The view with one more operation.
    #[must_use]
    pub fn then(mut self, op: ViewOp) -> Self {
        self.ops.push(op);
        self
    }
}

/// `.pad([1,1], [1,1], 0)`: adds elements around those of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Pad {
    /// The number of added elements before the first one of each mode.
    pub before: Vec<Expr>,
    /// The number of added elements after the last one of each mode; if empty, none are added.
    pub behind: Vec<Expr>,
    /// The value of the added elements. Without a value, the added elements do not exist; in a
    /// `means` block, they are 0.
    pub value: Option<Expr>,
}

impl Pad {
    /// All expressions in it.
    pub fn numbers(&self) -> impl Iterator<Item = &Expr> {
        self.before.iter().chain(&self.behind).chain(&self.value)
    }
}

/// An operation on the outermost level of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum ViewOp {
    /// `.tile([128,_])` or `.tile([2:2], _, [(2,2):(1,4)])`: one tiler for each mode (Graphene,
    /// Fig. 4).
    Tile(Tiler),
    /// `.reshape([2,2]:[2,1])`: composes the outermost level with a layout over its column-major
    /// index.
    Reshape(LayoutExpr),
    /// `[@i, _, 3]`: one entry for each mode; `_` keeps the mode. If every mode has an index, the
    /// level disappears.
    Index(Vec<Option<Expr>>),
    /// `.mine`: the executing thread's own values of a distributed register tensor.
    Mine,
    /// `.tv(L over #w)`: the executing thread's values of a tensor, according to the thread-value
    /// layout `L`.
    Tv(LayoutExpr, Name),
    /// `.scalar()`: makes each thread of a thread tensor a group of its own.
    Scalar,
    /// `.elect()`: chooses one thread of each innermost group of a thread tensor. The hardware
    /// decides which one.
    Elect,
    /// `.peer(r)`: the tensor at the same place in the shared memory of block `r` of the cluster.
    Peer(Expr),
    /// `.permute([1,0])`: reorders the modes of the outermost level. An empty list stands for
    /// `.transpose()`, which exchanges the last two.
    Permute(Vec<Expr>),
    /// `.iota(1)`: replaces each element by its coordinate along that mode.
    Iota(Expr),
    /// `.plus(S - T)`: adds a number to each coordinate.
    Plus(Expr),
    /// `.pad([0,@h])`: adds elements before the first and after the last one of each mode.
    Pad(Box<Pad>),
    /// `[%rows, _]`, `[0..64, _]`: like an index, but an entry can also be a range of a mode or an
    /// integer tensor of coordinates.
    Pick(Vec<Pick>),
    /// `.tensormap([128,64], swizzle=(3,4,3))`: divides a tensor in GL into the boxes that
    /// tensor-map instructions copy. The outer level counts boxes, rounded up at the edges; the
    /// inner level is one box. The swizzle is that of the tensor in SH to or from which boxes are
    /// copied.
    TensorMap {
        /// Extents of a box, one for each mode.
        sizes: Vec<Expr>,
        /// As in [`TypeAttr::Swizzle`]; `None` if boxes are not swizzled in SH.
        swizzle: Option<Box<[Expr; 3]>>,
    },
}

/// The argument of `.tile`.
#[derive(Clone, Debug, PartialEq)]
pub enum Tiler {
    /// `[8,_]`: contiguous tiles; `_` takes the whole mode.
    Sizes(Vec<Option<Expr>>),
    /// `[2:2], _`: one layout with one mode for each mode of the tensor. Strides are always
    /// written, in contrast to `Sizes`.
    Modes(Vec<Option<LayoutExpr>>),
}

/// A computation or data movement on tensors.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The computation.
    pub kind: SpecKind,
    /// `@gemm`: the name of the kernel (without `@`), on top-level specs.
    pub name: Option<Name>,
    /// `<<<#grid, #cta>>>`. Kernel-level specs omit it: the solver chooses. A spec in a body omits
    /// it if it has the executor of the enclosing spec.
    pub exec: Option<Exec>,
    /// Read operands.
    pub inputs: Vec<Operand>,
    /// Written operands.
    pub outputs: Vec<View>,
    /// The stated types of declared outputs, `-> (%s:SH)`: one entry for each output, or no entries
    /// at all.
    pub declared: Vec<Option<ResultType>>,
    /// `acc=f32 atom=ldmatrix.x4.b16`, in text order.
    pub attrs: Vec<Attr>,
    /// The meaning of a generic spec: specs on whole tensors, each of which assigns a new name.
    pub means: Option<Block>,
    /// The decomposition.
    pub body: Option<Block>,
    /// The place of the head, without the bodies.
    pub span: Span,
}

impl Spec {
    /// A spec without operands, executed by the executor of the enclosing spec.
    pub fn new(kind: SpecKind) -> Self {
        Spec {
            kind,
            name: None,
            exec: None,
            inputs: vec![],
            outputs: vec![],
            declared: vec![],
            attrs: vec![],
            means: None,
            body: None,
            span: Span::default(),
        }
    }
    /// The blocks and threads of `<<<#grid, #cta>>>`; `None` if only one of them, or neither, is a
    /// view.
    pub fn both(&self) -> Option<(&View, &View)> {
        match &self.exec {
            Some(Exec::Both(blocks, threads)) => Some((blocks, threads)),
            _ => None,
        }
    }
    /// The blocks of statements, in text order: `means`, then the body.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.means.iter().chain(&self.body)
    }

    /// The attribute with this key.
    pub fn attr(&self, key: Key) -> Option<&Attr> {
        Attr::among(&self.attrs, key)
    }

    /// The place in the source program from which the spec was made (`loc=`).
    pub fn loc(&self) -> Option<&str> {
        Attr::loc_of(&self.attrs)
    }
}

/// A read operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A tensor.
    View(View),
    /// A literal, `Init (0.0) -> (%x)`. It is kept as text, so that printing is exact.
    Number(Number),
    /// `Init (1.0 / N) -> (%x)`: a number that is computed while the text is resolved.
    Value(Expr),
}

/// A text in quotation marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The text without the marks.
    pub text: String,
    /// Its place in the text.
    pub span: Span,
}

/// A decimal literal as written: `0`, `-1.5`, `1e-5`, `inf`, `-inf`, `nan`.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// The text.
    pub text: String,
    /// Its place in the text.
    pub span: Span,
}

spelled! {
    /// How long the L2 cache keeps the data of a copy (`cache=`).
    CacheHint {
        /// Like all other data.
        Normal = "normal",
        /// Evicted first.
        EvictFirst = "evict_first",
        /// Evicted last.
        EvictLast = "evict_last",
    }
}
