//! The module as people write it: one grammar for the kernel, tile and atomic levels.
//!
//! This tree is what [`crate::text`] parses and prints, what builders construct and what the solver
//! emits: everything that reaches the verifier, the simulator or the code generator came through
//! it. It keeps what was written: names of `let` constants, types left out, comments, blank lines.
//! [`crate::resolve`] turns it into a [`crate::program::Program`], in which every type is known.
//!
//! Invariants:
//! - `parse(print(m)) == m` for every module; spans and ids do not take part in equality.
//! - Statements have ids, given by parser or builder and kept by what rewrites a tree; one that was
//!   made from another names it. Text holds none.
//! - What no text could say is refused by [`crate::text::well_formed()`], which [`crate::resolve`]
//!   asks first.
//! - Dropping and printing never recurse. Cloning, comparing and `{:?}` recurse as deep as a tree
//!   nests.
//! - Names hold only ASCII letters, digits and `_`; the sigil (`%`, `#`) is not part of a data or
//!   thread name. Index names (`@tid_m`, or bare `k`) hold their `@`.

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

/// The format version, which stands in the first line of a text.
pub const FORMAT_VERSION: u32 = 2;

/// A name with the place where it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Letters, digits and `_`; index names may begin with `@`.
    pub text: String,
    /// Its place in the text.
    pub span: Span,
}

impl Name {
    /// A name that stands in no text yet.
    pub fn new(text: impl Into<String>) -> Self {
        Name { text: text.into(), span: Span::default() }
    }
}

/// A whole file.
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
    /// Gives every statement that has the id of one before it, as a copy has, an id of its own. It
    /// is then one that was made from the first.
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

    /// Gives the statements the ids of those of an equal module, and what these were made from: of
    /// one that was printed and read again.
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

/// A statement with the comments that belong to it. `==` asks neither where it stands nor for ids.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// Whether an empty line stands above (above its comments). The first statement of a block has
    /// none; the first of a module may.
    pub blank_above: bool,
    /// Comment lines above, without `//` and the one space after it, trailing spaces cut.
    pub leading: Vec<String>,
    /// The comment at the end of the statement's last line (for a body: after its `{`).
    pub trailing: Option<String>,
    /// What it is.
    pub kind: StmtKind,
    /// The statement's text without comments.
    pub span: Span,
    /// Its own, unique in a module.
    pub id: NodeId,
    /// The statement that it was made from, which may be gone; none of one that a person wrote or a
    /// program built.
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

    /// Where a spec comes from in a program that this one was made of (`loc=`).
    pub fn loc(&self) -> Option<&str> {
        match &self.kind {
            StmtKind::Spec(spec) => spec.loc(),
            StmtKind::Assign { value: TensorExpr::Apply(apply), .. } => Attr::loc_of(&apply.attrs),
            _ => None,
        }
    }

    /// A statement without comments that is made from another, and stands for errors where that one
    /// does.
    pub fn derived(kind: StmtKind, from: &Stmt) -> Self {
        Stmt { span: from.span, from: Some(from.id), ..Stmt::new(kind) }
    }
}

/// A list of statements between braces.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Block {
    /// In text order.
    pub stmts: Vec<Stmt>,
    /// Comment lines before the closing brace.
    pub footer: Vec<String>,
}

impl Drop for Block {
    /// One body after the other, however deep a tree built in memory is.
    fn drop(&mut self) {
        let mut rest = std::mem::take(&mut self.stmts);
        while let Some(mut stmt) = rest.pop() {
            rest.extend(stmt.kind.blocks_mut().flat_map(|b| b.stmts.drain(..)));
        }
    }
}

/// What the caller's tensor says of its elements, which are integers.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements {
    /// `in 0..N`: what they are from and below.
    Within(Expr, Expr),
    /// `in 0..N distinct`: and no two of them are equal.
    Distinct(Expr, Expr),
    /// `splits N`: the first is 0, none is below the one before it, the last is N. So they are
    /// where the consecutive parts of N elements begin and end.
    Splits(Expr),
}

/// What a statement says.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `let M = 256, N = 2 * M`
    Let(Vec<(Name, Expr)>),
    /// `sym K{min=64, max=4096, div=64}`: a size known only when the kernel is launched.
    Sym(SymDecl),
    /// `sym M, N where M % 8 == 0, M <= N typical M=4096`: sizes with facts about them.
    Symbols(Symbols),
    /// `%A:[M,K].f16.GL`: a tensor that the caller provides (top level only). One without memory
    /// and modes, `%alpha:[].f32`, is a number that the caller passes.
    DataDecl {
        /// Without `%`.
        name: Name,
        /// Its whole type.
        ty: TensorType,
        /// What is known of its elements, which are integers.
        range: Option<Elements>,
    },
    /// `%a:[..].f16.GL = %A.tile([8,8])[@i,_]`: a view, its type optional.
    DataDef {
        /// Without `%`.
        name: Name,
        /// Checked against the inferred one; strides left out follow from the view.
        ty: Option<TensorType>,
        /// The view.
        view: View,
    },
    /// `#cta:[128].thread`, `#grid:[(8,8):(1,8)].block`
    ThreadDecl {
        /// Without `#`.
        name: Name,
        /// Its whole type.
        ty: ThreadType,
    },
    /// `#w:[4].[32].thread = #cta.tile([32])`
    ThreadDef {
        /// Without `#`.
        name: Name,
        /// Checked against the inferred one.
        ty: Option<ThreadType>,
        /// The view.
        view: View,
    },
    /// `@m, @n = #w.indices()`: the executing thread's (or block's) coordinates in the outermost
    /// level.
    Indices {
        /// One name a mode.
        names: Vec<Name>,
        /// Which thread tensor.
        threads: View,
    },
    /// `@n = %sizes[@g]`: an integer that the caller's memory holds, as a number from here to the
    /// end of the block. It is read where the statement stands.
    Element {
        /// With `@`.
        name: Name,
        /// Of one element.
        view: View,
    },
    /// `Allocate %As:[128,32].f16.SH{?}`
    Allocate {
        /// Without `%`.
        name: Name,
        /// Its type, open or not.
        ty: TensorType,
    },
    /// Any other spec, with or without a body.
    Spec(Spec),
    /// `%p = exp(%s - %max)`: what the specs give that the expression stands for. A name that is
    /// not defined yet is declared by it; anything else is written.
    Assign {
        /// A name, or a view of what is written.
        target: View,
        /// What is said of the type of a name that is declared.
        ty: Option<ResultType>,
        /// The expression.
        value: TensorExpr,
    },
    /// `import "parts.cby"`: the sub-specs of another file.
    Import(Text),
    /// `def @scale[N] (%x, %y) -> (%z) { .. }`: a sub-spec with parameters.
    Def(Def),
    /// `@scale[128] (%a, %b) -> (%c)`: a sub-spec in its place.
    Call(Call),
    /// `for (k = 0; k < 8; k += 1) unroll { .. }`
    For {
        /// The loop variable.
        var: Name,
        /// First value.
        start: Expr,
        /// Exclusive bound.
        end: Expr,
        /// Positive step.
        step: Expr,
        /// Whether every iteration is printed or only a hint given.
        unroll: Unroll,
        /// `stages=3`: how many iterations may be under way at a time. The meaning stays
        /// sequential.
        stages: Option<Expr>,
        /// What is repeated.
        body: Block,
    },
    /// `if (@w < 2 && k == 0) { .. } else { .. }`
    If {
        /// All must hold.
        cond: Vec<Compare>,
        /// When they hold.
        then: Block,
        /// When one does not.
        otherwise: Option<Block>,
    },
    /// `barrier` or `barrier(#warps)`: all named threads arrive before any goes on.
    Barrier(Option<View>),
    /// `mbarrier.wait(%full[s], parity)`, `async.commit`: executed by every thread of the enclosing
    /// body for itself, or by its warps together.
    Sync {
        /// What is done.
        op: SyncOp,
        /// Its operands, as [`SyncOp::signature`] says.
        args: Vec<SyncArg>,
    },
}

impl StmtKind {
    /// The blocks of statements, in text order: of a spec `means`, then the body; of an `if` both
    /// sides.
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

    /// The same to change them.
    pub fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        let means = usize::from(self.has_means());
        self.blocks_mut().skip(means)
    }

    /// Whether the first of its blocks is a `means` block.
    pub fn has_means(&self) -> bool {
        matches!(
            self,
            StmtKind::Spec(Spec { means: Some(_), .. }) | StmtKind::Def(Def { means: Some(_), .. })
        )
    }

    /// [`StmtKind::blocks`] to change them.
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
}

/// A symbolic size.
#[derive(Clone, Debug, PartialEq)]
pub struct SymDecl {
    /// Its name.
    pub name: Name,
    /// Smallest value; 1 where not given.
    pub min: Option<i64>,
    /// Largest value.
    pub max: Option<i64>,
    /// A number that divides it.
    pub div: Option<i64>,
}

spelled! {
    /// How a loop is unrolled.
    Unroll {
        /// As the CUDA compiler sees fit.
        Default = "",
        /// Fully: `#pragma unroll`.
        Full = "unroll",
        /// Not at all: `#pragma unroll 1`.
        Never = "nounroll",
    }
}

/// A number: an integer where extents, strides and indices are due, a binary64 where a spec takes a
/// literal.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its place in the text.
    pub span: Span,
}

impl Drop for Expr {
    /// One operator after the other, however deep a tree built in memory is.
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
    /// The names in it, in the order of the text; a name that occurs twice is listed twice.
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

/// Kinds of numbers. Literals are non-negative.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `128`
    Int(i64),
    /// `0.5`, `1e-5`: as written; no number of indices. `inf` is a name.
    Real(String),
    /// `M`, `k`, `@tid_m`
    Name(String),
    /// `a + b`, `ceil_div(a, b)`
    Bin(BinOp, Box<Expr>, Box<Expr>),
    /// `-a`
    Neg(Box<Expr>),
    /// `sqrt(a)`; no number of indices.
    Sqrt(Box<Expr>),
}

spelled! {
    /// Operators on integers. Division and remainder round down; `%` is followed by white space,
    /// which tells it from the sigil of a tensor.
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
        /// Smaller one.
        Min = "min",
        /// Larger one.
        Max = "max",
        /// Quotient, rounded up.
        CeilDiv = "ceil_div",
    }
}

impl BinOp {
    /// How tightly it binds, from 1; functions bind tightest.
    #[must_use]
    pub fn rank(self) -> u8 {
        match self {
            BinOp::Add | BinOp::Sub => 1,
            BinOp::Mul | BinOp::Div | BinOp::Mod => 2,
            BinOp::Min | BinOp::Max | BinOp::CeilDiv => 3,
        }
    }

    /// The value for these operands.
    ///
    /// # Errors
    /// Overflow, divisors that are not positive, the arena's limits.
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

    /// Joins operands by the ranks of the operators between them; operators of one rank group from
    /// the left. `next` returns the next operator with the operand behind it, and none at the end.
    ///
    /// # Errors
    /// The errors of `next`.
    pub fn grouped<T, E>(
        first: T,
        mut next: impl FnMut() -> Result<Option<(BinOp, T)>, E>,
        join: impl Fn(BinOp, T, T) -> T,
    ) -> Result<T, E> {
        // At most two ranks wait on the stack.
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
    /// What holds of the sides exchanged.
    pub fn flipped(self) -> CmpOp {
        match self {
            CmpOp::Lt => CmpOp::Gt,
            CmpOp::Le => CmpOp::Ge,
            CmpOp::Gt => CmpOp::Lt,
            CmpOp::Ge => CmpOp::Le,
            CmpOp::Eq | CmpOp::Ne => self,
        }
    }

    /// Whether it holds of two numbers.
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

/// A nested tuple of integer expressions, as written.
#[derive(Clone, Debug, PartialEq)]
pub enum TupleExpr {
    /// One number.
    Leaf(Expr),
    /// `(a, b)`
    Tuple(Vec<TupleExpr>),
}

impl Drop for TupleExpr {
    /// One tuple after the other, however deep a tree built in memory is.
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

/// `shape:stride`, both always written: `((4,8),(2,2)):((16,1),(8,64))`.
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
/// `modes` lists the modes. The printed form follows from the fields: with strides, one mode prints
/// as `[n:s]` and several as `[(..):(..)]`; without, as `[a,b]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Dims {
    /// One entry a mode.
    pub modes: Vec<TupleExpr>,
    /// One entry a mode, each congruent with its mode.
    pub strides: Option<Vec<TupleExpr>>,
    /// Its place in the text.
    pub span: Span,
}

/// The type of a data tensor: `[2,2].[8,8].f16.SH{swizzle=(3,4,3)}`.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorType {
    /// Outermost first; at least one.
    pub levels: Vec<Dims>,
    /// Scalar of the innermost elements.
    pub scalar: Scalar,
    /// None for a value that the solver places.
    pub memory: Option<Memory>,
    /// What stands in braces, in text order.
    pub attrs: Vec<TypeAttr>,
    /// Its place in the text.
    pub span: Span,
}

/// What stands in the braces of a tensor type.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeAttr {
    /// `?`: the solver finds the layout (SH: strides and swizzle; RF: the thread-value layout).
    Open,
    /// `tv=((4,8),2):((2,8),1) over #w`: a distributed register tensor; (t,v) to the column-major
    /// index of the element in the logical shape.
    Tv(LayoutExpr, Name),
    /// `swizzle=(3,4,3)`: CuTe's `Swizzle<B,M,S>` on byte-address bits. Three constants.
    Swizzle(Box<[Expr; 3]>),
    /// `align=128`: of the first byte.
    Align(Expr),
    /// `at=4096`: byte address in the block's shared memory.
    At(Expr),
    /// `reuses=%x`: may overlap `%x` in shared memory.
    Reuses(Name),
    /// `[8].T`, first and not in braces: the scalar type is this type parameter of the sub-spec
    /// around. What the type holds as its scalar is not meant: `f32`, or nothing where there may be
    /// none.
    Scalar(Name),
}

spelled! {
    /// What a thread tensor's elements are.
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
    /// Outermost first; at least one.
    pub levels: Vec<Dims>,
    /// Threads or blocks.
    pub scalar: ThreadScalar,
    /// Its place in the text.
    pub span: Span,
}

/// `%A.tile([8,8])[@i,_]`: a named tensor and what is done to it. The sigil follows from the
/// context.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The tensor's name.
    pub base: Name,
    /// Applied left to right to the outermost level.
    pub ops: Vec<ViewOp>,
    /// Its place in the text.
    pub span: Span,
}

impl View {
    /// The tensor itself.
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

/// `.pad([1,1], [1,1], 0)`: elements around those of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Pad {
    /// How many before the first of each mode.
    pub before: Vec<Expr>,
    /// How many behind the last of each mode; none where it is empty.
    pub behind: Vec<Expr>,
    /// Their value, as which they count. Where nothing is said, there are no such elements, save in
    /// a `means` block, where they are 0.
    pub value: Option<Expr>,
}

impl Pad {
    /// All numbers that are written in it.
    pub fn numbers(&self) -> impl Iterator<Item = &Expr> {
        self.before.iter().chain(&self.behind).chain(&self.value)
    }
}

/// One operation on a tensor. All act on the outermost level.
#[derive(Clone, Debug, PartialEq)]
pub enum ViewOp {
    /// `.tile([128,_])` or `.tile([2:2], _, [(2,2):(1,4)])`: one tiler a mode (Graphene, Fig. 4).
    Tile(Tiler),
    /// `.reshape([2,2]:[2,1])`: the outermost level composed with a layout over its column-major
    /// index.
    Reshape(LayoutExpr),
    /// `[@i, _, 3]`: one entry a mode; `_` keeps the mode. With every mode given the level is gone.
    Index(Vec<Option<Expr>>),
    /// `.mine`: the executing thread's own values of a distributed register tensor.
    Mine,
    /// `.tv(L over #w)`: the executing thread's values of a tensor under the thread-value layout
    /// `L`.
    Tv(LayoutExpr, Name),
    /// `.scalar()`: of a thread tensor, each thread for itself.
    Scalar,
    /// `.elect()`: of a thread tensor, one thread of each innermost group; which one is not said.
    Elect,
    /// `.peer(r)`: the same place in the shared memory of the cluster's block of that rank.
    Peer(Expr),
    /// `.permute([1,0])`: the modes of the outermost level in another order; `.transpose()` where
    /// it is empty, which exchanges the last two.
    Permute(Vec<Expr>),
    /// `.iota(1)`: not the elements, but the coordinate of each along that mode.
    Iota(Expr),
    /// `.plus(S - T)`: of coordinates, each and a number.
    Plus(Expr),
    /// `.pad([0,@h])`: of each mode so many elements more before its first, and behind its last.
    Pad(Box<Pad>),
    /// `[%rows, _]`, `[0..64, _]`: as an index, with ranges of a mode or coordinates from an
    /// integer tensor.
    Pick(Vec<Pick>),
    /// `.tensormap([128,64], swizzle=(3,4,3))`: boxes of a tensor in GL, as tensor-map instructions
    /// move them: an outer level that counts boxes, rounded up at the edges, and an inner one that
    /// is a box. The swizzle is that of the tensor in SH on the other side.
    TensorMap {
        /// Extents of a box, one a mode.
        sizes: Vec<Expr>,
        /// As [`TypeAttr::Swizzle`]; none where boxes lie in SH as they are.
        swizzle: Option<Box<[Expr; 3]>>,
    },
}

/// The argument of `.tile`.
#[derive(Clone, Debug, PartialEq)]
pub enum Tiler {
    /// `[8,_]`: contiguous tiles; `_` takes the whole mode.
    Sizes(Vec<Option<Expr>>),
    /// `[2:2], _`: a one-dimensional tensor a mode (always with strides, else it would be `Sizes`).
    Modes(Vec<Option<LayoutExpr>>),
}

/// A computation or data movement on tensors.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// What it computes.
    pub kind: SpecKind,
    /// `@gemm`: the kernel's name (without `@`), on top-level specs.
    pub name: Option<Name>,
    /// `<<<#grid, #cta>>>`; left open on kernel-level specs for the solver, and in bodies where it
    /// is that of the spec around.
    pub exec: Option<Exec>,
    /// Read operands.
    pub inputs: Vec<Operand>,
    /// Written operands.
    pub outputs: Vec<View>,
    /// What is said of the types of outputs that are declared, `-> (%s:SH)`; one for each output,
    /// or none at all.
    pub declared: Vec<Option<ResultType>>,
    /// `acc=f32 atom=ldmatrix.x4.b16`, in text order.
    pub attrs: Vec<Attr>,
    /// What a generic spec computes: specs on whole tensors, each name assigned once.
    pub means: Option<Block>,
    /// The decomposition.
    pub body: Option<Block>,
    /// The head, without the bodies.
    pub span: Span,
}

impl Spec {
    /// A spec without operands that its surroundings execute.
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
    /// The blocks and threads of `<<<#grid, #cta>>>`, both written.
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

    /// The attribute of this key.
    pub fn attr(&self, key: Key) -> Option<&Attr> {
        Attr::among(&self.attrs, key)
    }

    /// Where the spec comes from in a program that this one was made of, as that says it (`loc=`).
    pub fn loc(&self) -> Option<&str> {
        Attr::loc_of(&self.attrs)
    }
}

/// A read operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A tensor.
    View(View),
    /// A literal, `Init (0.0) -> (%x)`. Kept as written, so that printing is exact.
    Number(Number),
    /// `Init (1.0 / N) -> (%x)`: a number that is computed when the text is read.
    Value(Expr),
}

/// A text in quotation marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Without the marks.
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
    /// How long the second-level cache keeps what a copy touches (`cache=`).
    CacheHint {
        /// As everything else.
        Normal = "normal",
        /// It goes first.
        EvictFirst = "evict_first",
        /// It stays longest.
        EvictLast = "evict_last",
    }
}
