//! Statements that strategies write.

use carbyne_ir::ast::*;
use carbyne_ir::scalar::{Memory, Scalar};
use carbyne_ir::span::Span;

/// Writes leaf specs that the same threads execute.
pub(super) struct Writer {
    /// Blocks and threads.
    pub(super) exec: (View, View),
}

impl Writer {
    /// A leaf spec.
    pub(super) fn spec(
        &self,
        kind: SpecKind,
        inputs: Vec<Operand>,
        output: View,
        attrs: Vec<Attr>,
    ) -> Stmt {
        Stmt::new(StmtKind::Spec(Spec {
            kind,
            name: None,
            exec: Some(self.exec.clone()),
            inputs,
            outputs: vec![output],
            attrs,
            body: None,
            span: Span::default(),
        }))
    }
}

/// One level; with compact column-major strides where they are to be stated.
pub(super) fn dims(extents: &[i64], strides: bool) -> Dims {
    let leaf = |v: i64| TupleExpr::Leaf(Expr::int(v));
    let mut next = 1;
    let compact = extents
        .iter()
        .map(|n| {
            let s = next;
            next *= n;
            leaf(s)
        })
        .collect();
    Dims {
        modes: extents.iter().map(|n| leaf(*n)).collect(),
        strides: strides.then_some(compact),
        span: Span::default(),
    }
}

/// `#name:[..].thread` or `.block`
pub(super) fn declare(name: &str, dims: Dims, scalar: ThreadScalar) -> Stmt {
    let ty = ThreadType { levels: vec![dims], scalar, span: Span::default() };
    Stmt::new(StmtKind::ThreadDecl { name: Name::new(name), ty })
}

/// `Allocate %name:[..]{?}`
pub(super) fn allocate(name: &str, extents: &[i64], scalar: Scalar, memory: Memory) -> Stmt {
    let ty = TensorType {
        levels: vec![dims(extents, false)],
        scalar,
        memory: Some(memory),
        attrs: vec![TypeAttr::Open],
        span: Span::default(),
    };
    Stmt::new(StmtKind::Allocate { name: Name::new(name), ty })
}

/// `%name = view`
pub(super) fn define(name: &str, view: View) -> Stmt {
    Stmt::new(StmtKind::DataDef { name: Name::new(name), ty: None, view })
}

/// Names index; `0` is the literal.
pub(super) fn index(at: &[Option<&str>]) -> ViewOp {
    ViewOp::Index(
        at.iter().map(|i| i.map(|n| if n == "0" { Expr::int(0) } else { Expr::name(n) })).collect(),
    )
}

/// A loop from zero to `n`.
pub(super) fn counted(var: &str, n: i64, unroll: Unroll, stmts: Vec<Stmt>) -> Stmt {
    looped(var, (0, n), unroll, stmts)
}

/// A loop from `start` to `end`.
pub(super) fn counted_from(var: &str, start: i64, end: i64, stmts: Vec<Stmt>) -> Stmt {
    looped(var, (start, end), Unroll::Default, stmts)
}

fn looped(var: &str, (start, end): (i64, i64), unroll: Unroll, stmts: Vec<Stmt>) -> Stmt {
    Stmt::new(StmtKind::For {
        var: Name::new(var),
        start: Expr::int(start),
        end: Expr::int(end),
        step: Expr::int(1),
        unroll,
        body: Block { stmts, footer: vec![] },
    })
}
