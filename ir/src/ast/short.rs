//! Defines nodes of the syntax tree for the short forms of `carbyne 2`, version 2 of the text
//! format: heads that declare their threads, expressions over tensors such as `exp(%s - %max)`,
//! selections such as `[%rows, 0..64]`, symbols with facts (`sym M where M % 8 == 0`), sub-specs
//! (specs with parameters, used like functions) and strategies. A person writes the first three in
//! place of executors, allocations and single specs.
//!
//! [`crate::resolve::elaborate`] expands them, except for symbols, and for strategies, which
//! `decompose` applies to kernels without bodies.

use super::{Attr, BinaryOp, Block, Expr, Name, SpecKind, TensorType, TypeAttr, View};
use super::{Dims, Operand};
use crate::scalar::{Memory, Scalar};
use crate::span::Span;

/// The executor of a spec.
#[derive(Clone, Debug, PartialEq)]
pub enum Exec {
    /// `<<<#grid, #cta>>>`
    Both(View, View),
    /// `<<<#one>>>`: these threads, in the blocks of the enclosing spec.
    Threads(View),
    /// `<<<#grid:[@i < M / BM], #cta:[128]>>>`: a kernel's head that declares them.
    Launch(Box<Launch>),
}

/// The grid and the block of a kernel's head, which declares at least one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Blocks.
    pub blocks: Group,
    /// Threads.
    pub threads: Group,
}

/// A thread tensor of a kernel's head.
#[derive(Clone, Debug, PartialEq)]
pub enum Group {
    /// `#grid`
    Of(View),
    /// `#grid:[@i < M / BM, @j < N / BN]`: declares a thread tensor, whose first mode varies
    /// fastest, and names its coordinates.
    New {
        /// Without `#`.
        name: Name,
        /// The name of the coordinate, with its `@`, and the extent.
        modes: Vec<(Option<Name>, Expr)>,
    },
}

impl super::Module {
    /// Omits the executor of each spec in a body that has the executor of the enclosing spec.
    pub fn inherit_executors(&mut self) {
        let mut todo: Vec<(&mut super::Stmt, Option<(View, View)>)> =
            self.items.iter_mut().map(|stmt| (stmt, None)).collect();
        while let Some((stmt, around)) = todo.pop() {
            let mut inside = around.clone();
            if let super::StmtKind::Spec(spec) = &mut stmt.kind
                && let Some(Exec::Both(blocks, threads)) = &spec.exec
            {
                inside = Some((blocks.clone(), threads.clone()));
                if let Some((outer_blocks, outer_threads)) = &around
                    && blocks == outer_blocks
                {
                    let same = threads == outer_threads;
                    spec.exec = (!same).then(|| Exec::Threads(threads.clone()));
                }
            }
            let stmts = stmt.kind.bodies_mut().flat_map(|b| &mut b.stmts);
            todo.extend(stmts.map(|s| (s, inside.clone())));
        }
    }
}

/// The stated part of a result's type. The omitted part is inferred.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultType {
    /// The levels, outermost first; empty if the extents follow from the spec.
    pub levels: Vec<Dims>,
    /// The scalar type; `None` if it follows from the operands.
    pub scalar: Option<Scalar>,
    /// The memory; `None` for registers.
    pub memory: Option<Memory>,
    /// The attributes in braces. Without any, the layout is open.
    pub attrs: Vec<TypeAttr>,
    /// Its place in the text.
    pub span: Span,
}

impl ResultType {
    /// A completely stated type.
    pub fn whole(ty: TensorType) -> Self {
        ResultType {
            levels: ty.levels,
            scalar: match ty.attrs.first() {
                Some(TypeAttr::Scalar(_)) => None,
                _ => Some(ty.scalar),
            },
            memory: ty.memory,
            attrs: ty.attrs,
            span: ty.span,
        }
    }
}

/// An expression over tensors: `exp(%s - %max)`. Each operation stands for a spec.
#[derive(Clone, Debug, PartialEq)]
pub enum TensorExpr {
    /// `%x`, `%A.tile([8,8])[0, 0]`
    View(View),
    /// `1.0 / N`
    Number(Expr),
    /// `exp(%x)`, `%a + %b`, `sum(%x, axis=1)`
    Apply(Box<Apply>),
}

/// A spec within an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Apply {
    /// The operation: a Move, MatMul.set, pointwise operation, Select or Reduction.
    pub kind: SpecKind,
    /// Its operands.
    pub args: Vec<TensorExpr>,
    /// The attributes. The type after the comma of a cast is its `to=`.
    pub attrs: Vec<Attr>,
    /// Its place in the text.
    pub span: Span,
}

impl Apply {
    /// Whether it may print as an operator, if its kind has one. Operators have no place for
    /// attributes; functions have.
    pub fn may_be_operator(&self) -> bool {
        self.attrs.is_empty()
    }
}

impl Drop for Apply {
    /// Drops one operation after the other, so that deeply nested trees do not overflow the stack.
    fn drop(&mut self) {
        let mut rest = std::mem::take(&mut self.args);
        while let Some(mut arg) = rest.pop() {
            if let TensorExpr::Apply(apply) = &mut arg {
                rest.append(&mut apply.args);
            }
        }
    }
}

impl TensorExpr {
    /// Its place in the text.
    pub fn span(&self) -> Span {
        match self {
            TensorExpr::View(v) => v.span,
            TensorExpr::Number(e) => e.span,
            TensorExpr::Apply(a) => a.span,
        }
    }
    /// The application of an operation, without attributes.
    pub fn apply(kind: SpecKind, args: Vec<TensorExpr>) -> Self {
        TensorExpr::Apply(Box::new(Apply { kind, args, attrs: vec![], span: Span::default() }))
    }
}

/// The operator of an operation in expressions, and its precedence.
pub(crate) fn operator(op: BinaryOp) -> Option<(&'static str, u8)> {
    Some(match op {
        BinaryOp::Lt => ("<", 1),
        BinaryOp::Le => ("<=", 1),
        BinaryOp::Eq => ("==", 1),
        BinaryOp::Ne => ("!=", 1),
        BinaryOp::Ge => (">=", 1),
        BinaryOp::Gt => (">", 1),
        BinaryOp::Add => ("+", 2),
        BinaryOp::Sub => ("-", 2),
        BinaryOp::Mul => ("*", 3),
        BinaryOp::Div => ("/", 3),
        BinaryOp::Min | BinaryOp::Max | BinaryOp::Minimum | BinaryOp::Maximum => return None,
    })
}

/// An entry of [`super::ViewOp::Pick`].
#[derive(Clone, Debug, PartialEq)]
pub enum Pick {
    /// `_`
    Keep,
    /// `@i`
    At(Expr),
    /// `0..64`: first coordinate, and exclusive end.
    Range(Expr, Expr),
    /// `%rows`: an integer tensor of coordinates. A tensor without modes replaces an index; one
    /// with a single mode gives the picked mode its extent.
    From(Name),
}

/// A sub-spec with parameters: `def @scale[N, T] (%x, %s) -> (%y) { .. }`.
#[derive(Clone, Debug, PartialEq)]
pub struct Def {
    /// The name, without `@`.
    pub name: Name,
    /// Integers and types.
    pub params: Vec<Param>,
    /// Read operands, without `%`. Stated types are checked.
    pub inputs: Vec<(Name, Option<ResultType>)>,
    /// Written operands.
    pub outputs: Vec<(Name, Option<ResultType>)>,
    /// The meaning, if stated.
    pub means: Option<Block>,
    /// The statements that replace a use.
    pub body: Block,
    /// The additional parts of a strategy.
    pub strategy: Option<Box<Strategy>>,
    /// The head, without the bodies.
    pub span: Span,
}

/// The name that strategies use for the number of multiprocessors of the GPU.
pub const MULTIPROCESSORS: &str = "SMS";
/// The name that strategies use for the number of threads that execute the largest matrix
/// instruction: those of a warp or of a warp group.
pub const WIDEST_GROUP: &str = "GROUP";
/// The name that strategies use for the maximal number of bytes of shared memory of a block.
pub const BLOCK_SHARED: &str = "SHARED";

impl Def {
    /// Whether this is a strategy that uses a sub-spec of this name in its `means` block. Such a
    /// use is a hole that matching fills.
    pub fn is_hole(&self, name: &str) -> bool {
        let uses = |stmt: &super::Stmt| match &stmt.kind {
            super::StmtKind::Call(call) => call.name.text == name,
            _ => false,
        };
        let means = self.means.iter().flat_map(|block| &block.stmts);
        self.strategy.is_some() && means.into_iter().any(uses)
    }
}

/// A parameter of a sub-spec or of a strategy.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: Name,
    /// `T:type`: a scalar type; else an integer.
    pub is_type: bool,
    /// For a strategy, the values to choose among; `None` if the operands determine the value.
    pub choices: Option<Choices>,
}

/// The values of a parameter of a strategy.
#[derive(Clone, Debug, PartialEq)]
pub enum Choices {
    /// `in (64, 128)`, `in SMS`
    Among(super::TupleExpr),
    /// `in 16..256 step 16`: the first value, the exclusive end and the step.
    Range {
        /// The first.
        start: Expr,
        /// The exclusive end.
        end: Expr,
        /// The difference of neighbors; 1 if omitted.
        step: Option<Expr>,
    },
}

/// The parts of a strategy that a sub-spec does not have:
/// `strategy @ring[BM in (64, 128)] <<<..>>> (%A) -> (%C) where M % BM == 0 means { .. } { .. }`.
/// Undefined sub-specs in its `means` block are holes, which matching fills.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    /// The executor of its body; `None` if the body consists of several kernels.
    pub exec: Option<Exec>,
    /// Attributes of the resulting kernel.
    pub attrs: Vec<Attr>,
    /// Conditions on shapes and parameters.
    pub conditions: Vec<super::Compare>,
    /// Conditions on parameters that usually hold. They are ignored if no values of the parameters
    /// satisfy them.
    pub habits: Vec<super::Compare>,
}

/// `sym M, N where M % 8 == 0, M <= N typical M=4096`: sizes known only at launch, each at least 0.
/// A single name without facts is a [`super::SymDecl`], which is at least 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Symbols {
    /// The names of the symbols; at least one.
    pub names: Vec<Name>,
    /// Facts about these symbols and those declared before, which hold at every launch.
    pub facts: Vec<super::Compare>,
    /// Usual values, for estimates of cost.
    pub typical: Vec<(Name, i64)>,
}

/// The use of a sub-spec.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The name, without `@`.
    pub name: Name,
    /// Integers, and words for types.
    pub args: Vec<Expr>,
    /// Read operands.
    pub inputs: Vec<Operand>,
    /// Written operands. The statement declares names that are not yet defined.
    pub outputs: Vec<View>,
    /// As [`super::Spec::declared`].
    pub declared: Vec<Option<ResultType>>,
    /// Its place in the text.
    pub span: Span,
}
