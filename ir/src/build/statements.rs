//! Statements of version 1, which say all that they mean: what generates programs writes these.

use crate::ast::*;
use crate::scalar::{Memory, Scalar};
use crate::span::Span;

/// A spec of one output without a body.
pub fn spec(
    kind: SpecKind,
    exec: Option<Exec>,
    inputs: Vec<Operand>,
    output: View,
    attrs: Vec<Attr>,
) -> Stmt {
    Stmt::new(StmtKind::Spec(Spec {
        exec,
        inputs,
        outputs: vec![output],
        attrs,
        ..Spec::new(kind)
    }))
}

/// `<<<#grid, #cta>>>`
pub fn both(exec: &(View, View)) -> Exec {
    Exec::Both(exec.0.clone(), exec.1.clone())
}

/// The same of tensors alone.
pub fn leaf(
    kind: SpecKind,
    exec: &(View, View),
    inputs: Vec<View>,
    output: View,
    attrs: Vec<Attr>,
) -> Stmt {
    let inputs = inputs.into_iter().map(Operand::View).collect();
    spec(kind, Some(both(exec)), inputs, output, attrs)
}

/// The literal `0`.
pub fn zero() -> Operand {
    Operand::Number(Number { text: "0".into(), span: Span::default() })
}

/// `key=value`
pub fn word(key: &str, value: &str) -> Attr {
    Attr { key: Name::new(key), value: AttrValue::Word(value.to_owned()) }
}

/// `key=n`
pub fn number(key: &str, n: i64) -> Attr {
    Attr { key: Name::new(key), value: AttrValue::Tuple(TupleExpr::Leaf(Expr::int(n))) }
}

fn extents(list: &[i64]) -> Vec<TupleExpr> {
    list.iter().map(|n| TupleExpr::Leaf(Expr::int(*n))).collect()
}

/// Compact column-major strides.
fn strides(shape: &[i64]) -> Vec<TupleExpr> {
    let mut next = 1;
    let steps = shape.iter().map(|n| {
        let step = next;
        next = i64::saturating_mul(next, *n);
        step
    });
    extents(&steps.collect::<Vec<_>>())
}

/// One level; with compact column-major strides where they are to be stated.
pub fn dims(shape: &[i64], stated: bool) -> Dims {
    Dims { modes: extents(shape), strides: stated.then(|| strides(shape)), span: Span::default() }
}

/// `.reshape(shape : compact column-major strides)`
pub fn compact(shape: &[i64]) -> ViewOp {
    ViewOp::Reshape(LayoutExpr {
        shape: TupleExpr::Tuple(extents(shape)),
        stride: TupleExpr::Tuple(strides(shape)),
        span: Span::default(),
    })
}

/// `#name:[..].thread` or `.block`
pub fn declare(name: &str, dims: Dims, scalar: ThreadScalar) -> Stmt {
    let ty = ThreadType { levels: vec![dims], scalar, span: Span::default() };
    Stmt::new(StmtKind::ThreadDecl { name: Name::new(name), ty })
}

/// `Allocate %name:[..].scalar.memory{?}`
pub fn allocate(name: &str, shape: &[i64], scalar: Scalar, memory: Memory) -> Stmt {
    allocation(name, dims(shape, false), scalar, memory, vec![TypeAttr::Open])
}

/// `Allocate %name:[..].scalar.memory`, compact; registers are those of each thread.
pub fn plain(name: &str, shape: &[i64], scalar: Scalar, memory: Memory) -> Stmt {
    allocation(name, dims(shape, shape.len() > 1), scalar, memory, vec![])
}

fn allocation(
    name: &str,
    level: Dims,
    scalar: Scalar,
    memory: Memory,
    attrs: Vec<TypeAttr>,
) -> Stmt {
    let ty = TensorType {
        levels: vec![level],
        scalar,
        memory: Some(memory),
        attrs,
        span: Span::default(),
    };
    Stmt::new(StmtKind::Allocate { name: Name::new(name), ty })
}

/// `%name = view`
pub fn define(name: &str, view: View) -> Stmt {
    Stmt::new(StmtKind::DataDef { name: Name::new(name), ty: None, view })
}

/// `#name = view`
pub fn define_threads(name: &str, view: View) -> Stmt {
    Stmt::new(StmtKind::ThreadDef { name: Name::new(name), ty: None, view })
}

/// Names index; `0` is the literal.
pub fn index(at: &[Option<&str>]) -> ViewOp {
    ViewOp::Index(
        at.iter().map(|i| i.map(|n| if n == "0" { Expr::int(0) } else { Expr::name(n) })).collect(),
    )
}

/// A loop over the numbers from `start` to below `end`.
pub fn counted(var: &str, (start, end): (i64, i64), unroll: Unroll, stmts: Vec<Stmt>) -> Stmt {
    Stmt::new(StmtKind::For {
        var: Name::new(var),
        start: Expr::int(start),
        end: Expr::int(end),
        step: Expr::int(1),
        unroll,
        stages: None,
        body: Block { stmts, footer: vec![] },
    })
}
