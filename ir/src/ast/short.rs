//! The short forms of `carbyne 2`: what a person writes in the place of executors, allocations and
//! specs.
//!
//! [`crate::resolve::elaborate`] writes them out.

use super::{Attr, BinaryOp, Block, Expr, Name, SpecKind, TensorType, TypeAttr, View};
use super::{Dims, Operand};
use crate::scalar::{Memory, Scalar};
use crate::span::Span;

/// Who executes a spec.
#[derive(Clone, Debug, PartialEq)]
pub enum Exec {
    /// `<<<#grid, #cta>>>`
    Both(View, View),
    /// `<<<#one>>>`: these threads, of the blocks of the spec around.
    Threads(View),
    /// `<<<#grid:[@i < M / BM], #cta:[128]>>>`: declared by the head of a kernel.
    Launch(Box<Launch>),
}

/// The grid and the block of a kernel's head, at least one of them declared there.
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
    /// `#grid:[@i < M / BM, @j < N / BN]`: declared, the first mode fastest, and its coordinates
    /// named.
    New {
        /// Without `#`.
        name: Name,
        /// The name of the coordinate, with its `@`, and the extent.
        modes: Vec<(Option<Name>, Expr)>,
    },
}

impl super::Module {
    /// Leaves out who executes the specs of bodies where it is who executes the body.
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

/// What is written of the type of a result: what is left out follows.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultType {
    /// Outermost first; empty where the extents follow from the spec.
    pub levels: Vec<Dims>,
    /// None where it follows from the operands.
    pub scalar: Option<Scalar>,
    /// None for registers.
    pub memory: Option<Memory>,
    /// What stands in braces. Without any the layout is open.
    pub attrs: Vec<TypeAttr>,
    /// Its place in the text.
    pub span: Span,
}

impl ResultType {
    /// The type whose every part is written.
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
    /// What it computes: a Move, MatMul.set, pointwise operation, Select or Reduction.
    pub kind: SpecKind,
    /// Its operands.
    pub args: Vec<TensorExpr>,
    /// Its attributes; `to=` of a cast is the type behind the comma.
    pub attrs: Vec<Attr>,
    /// Its place in the text.
    pub span: Span,
}

impl Apply {
    /// Whether it is written as an operator, where there is one: an operator has no place for
    /// attributes, its function has.
    pub fn may_be_operator(&self) -> bool {
        self.attrs.is_empty()
    }
}

impl Drop for Apply {
    /// One operation after the other, however deep a tree built in memory is.
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
    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            TensorExpr::View(v) => v.span,
            TensorExpr::Number(e) => e.span,
            TensorExpr::Apply(a) => a.span,
        }
    }
    /// The result of a spec.
    pub fn apply(kind: SpecKind, args: Vec<TensorExpr>) -> Self {
        TensorExpr::Apply(Box::new(Apply { kind, args, attrs: vec![], span: Span::default() }))
    }
}

/// The operator of an expression, with how tightly it binds.
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
    /// `0..64`: from the first, below the second.
    Range(Expr, Expr),
    /// `%rows`: coordinates that stand in an integer tensor. One of no modes takes the place of an
    /// index, one of one mode gives the mode its extent.
    From(Name),
}

/// A sub-spec with parameters: `def @scale[N, T] (%x, %s) -> (%y) { .. }`.
#[derive(Clone, Debug, PartialEq)]
pub struct Def {
    /// Without `@`.
    pub name: Name,
    /// Integers and types.
    pub params: Vec<Param>,
    /// Read operands, without `%`; their types, where written, are checked.
    pub inputs: Vec<(Name, Option<ResultType>)>,
    /// Written operands.
    pub outputs: Vec<(Name, Option<ResultType>)>,
    /// What it computes, where it says so.
    pub means: Option<Block>,
    /// What stands in its place.
    pub body: Block,
    /// What a strategy says beyond a sub-spec.
    pub strategy: Option<Box<Strategy>>,
    /// The head, without the bodies.
    pub span: Span,
}

/// What strategies call the number of multiprocessors of the card.
pub const MULTIPROCESSORS: &str = "SMS";
/// What strategies call the number of threads that execute the widest instruction which multiplies
/// tiles: those of a warp, or of a warp group.
pub const WIDEST_GROUP: &str = "GROUP";
/// What strategies call the bytes of shared memory that a block has at most.
pub const BLOCK_SHARED: &str = "SHARED";

impl Def {
    /// Whether uses of a sub-spec of this name in a strategy stand for what is matched.
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
    /// Of a strategy the values to choose among; none where the operands have it.
    pub choices: Option<Choices>,
}

/// The values of a parameter of a strategy.
#[derive(Clone, Debug, PartialEq)]
pub enum Choices {
    /// `in (64, 128)`, `in SMS`
    Among(super::TupleExpr),
    /// `in 16..256 step 16`: from the first, below the second.
    Range {
        /// The first.
        start: Expr,
        /// What they are below.
        end: Expr,
        /// From one to the next; 1 where nothing is said.
        step: Option<Expr>,
    },
}

/// What a strategy says beyond a sub-spec:
/// `strategy @ring[BM in (64, 128)] <<<..>>> (%A) -> (%C) where M % BM == 0 means { .. } { .. }`.
/// What uses of undefined sub-specs in its `means` block stand for follows from what is matched.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    /// Who executes its body; none where the body is several kernels.
    pub exec: Option<Exec>,
    /// Attributes of the kernel that it gives.
    pub attrs: Vec<Attr>,
    /// What must hold of shapes and parameters.
    pub conditions: Vec<super::Compare>,
    /// What holds of parameters, too, unless nothing is left then.
    pub habits: Vec<super::Compare>,
}

/// `sym M, N where M % 8 == 0, M <= N typical M=4096`: sizes known only when the kernel is
/// launched, none below 0. One name of which nothing is said is a [`super::SymDecl`], which is at
/// least 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Symbols {
    /// Of the symbols; at least one.
    pub names: Vec<Name>,
    /// What holds of these and of symbols declared before, at every launch.
    pub facts: Vec<super::Compare>,
    /// Values that they often have, to judge by what a choice costs.
    pub typical: Vec<(Name, i64)>,
}

/// The use of a sub-spec.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Without `@`.
    pub name: Name,
    /// Integers, and words for types.
    pub args: Vec<Expr>,
    /// Read operands.
    pub inputs: Vec<Operand>,
    /// Written operands; names that are not defined yet are declared.
    pub outputs: Vec<View>,
    /// As [`super::Spec::declared`].
    pub declared: Vec<Option<ResultType>>,
    /// Its place in the text.
    pub span: Span,
}
