//! Constructs statements without short forms: executors and allocations are stated. The solver, and
//! `carbyne-atoms` for programs that test single atoms, make kernels with these functions.

use crate::ast::*;
use crate::layout::Layout;
use crate::scalar::{Memory, Scalar};
use crate::span::Span;
use crate::tuple::IntTuple;

/// A spec with one output and without a body.
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

/// [`spec`] whose inputs are tensors, without attributes.
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

/// `Spec <<<#grid, #cta>>> (%a) -> (%b) { .. }`: a generic spec whose body these threads execute.
pub fn within(
    exec: &(View, View),
    inputs: Vec<View>,
    outputs: Vec<View>,
    stmts: Vec<Stmt>,
) -> Stmt {
    Stmt::new(StmtKind::Spec(Spec {
        exec: Some(both(exec)),
        inputs: inputs.into_iter().map(Operand::View).collect(),
        outputs,
        body: Some(block(stmts)),
        ..Spec::new(SpecKind::Generic)
    }))
}

/// Statements between braces.
pub fn block(stmts: Vec<Stmt>) -> Block {
    Block { stmts, footer: vec![] }
}

/// A literal, `0` or `-1.5`.
pub fn literal(text: &str) -> Operand {
    Operand::Number(Number { text: text.to_owned(), span: Span::default() })
}

/// The literal `0`.
pub fn zero() -> Operand {
    literal("0")
}

/// `key=value`
pub fn word(key: Key, value: &str) -> Attr {
    Attr::new(key, AttrValue::Word(value.to_owned()))
}

/// `key=n`
pub fn number(key: Key, n: i64) -> Attr {
    value(key, Expr::int(n))
}

/// `key=(64,32)`
pub fn numbers(key: Key, list: &[i64]) -> Attr {
    Attr::new(key, AttrValue::Tuple(TupleExpr::Tuple(extents(list))))
}

/// `key=@t % 8`
pub fn value(key: Key, e: Expr) -> Attr {
    Attr::new(key, AttrValue::Tuple(TupleExpr::Leaf(e)))
}

/// `key=%tensor`
pub fn view(key: Key, view: View) -> Attr {
    Attr::new(key, AttrValue::View(view))
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

/// One level; if `stated`, with compact column-major strides.
pub fn dims(shape: &[i64], stated: bool) -> Dims {
    Dims { modes: extents(shape), strides: stated.then(|| strides(shape)), span: Span::default() }
}

/// One level with this layout.
pub fn laid_out(l: &Layout) -> Dims {
    let modes = l.modes();
    let (shape, stride) = (each(&modes, Layout::shape), each(&modes, Layout::stride));
    Dims { modes: shape, strides: Some(stride), span: Span::default() }
}

/// `.reshape(shape : compact column-major strides)`
pub fn compact(shape: &[i64]) -> ViewOp {
    ViewOp::Reshape(LayoutExpr {
        shape: TupleExpr::Tuple(extents(shape)),
        stride: TupleExpr::Tuple(strides(shape)),
        span: Span::default(),
    })
}

/// A layout in the syntax tree, `((4,8),2):((2,8),1)`.
pub fn layout_expr(l: &Layout) -> LayoutExpr {
    LayoutExpr {
        shape: TupleExpr::constant(&l.shape()),
        stride: TupleExpr::constant(&l.stride()),
        span: Span::default(),
    }
}

/// `.reshape([..]:[..])` with these modes.
pub fn reshape(modes: &[Layout]) -> ViewOp {
    ViewOp::Reshape(LayoutExpr {
        shape: TupleExpr::Tuple(each(modes, Layout::shape)),
        stride: TupleExpr::Tuple(each(modes, Layout::stride)),
        span: Span::default(),
    })
}

fn each(modes: &[Layout], of: fn(&Layout) -> IntTuple<i64>) -> Vec<TupleExpr> {
    modes.iter().map(|m| TupleExpr::constant(&of(m))).collect()
}

/// `%name:[..].scalar.GL`: a tensor of the caller. Without a memory it is a number.
pub fn tensor(name: &str, shape: &[i64], scalar: Scalar, memory: Option<Memory>) -> Stmt {
    let (levels, attrs, span) = (vec![dims(shape, false)], vec![], Span::default());
    let ty = TensorType { levels, scalar, memory, attrs, span };
    Stmt::new(StmtKind::DataDecl { name: Name::new(name), ty, range: None })
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

/// `Allocate %name:[..].scalar.memory`: compact; in RF each thread has the whole tensor.
pub fn plain(name: &str, shape: &[i64], scalar: Scalar, memory: Memory) -> Stmt {
    allocation(name, dims(shape, shape.len() > 1), scalar, memory, vec![])
}

/// `Allocate %name:level.scalar.memory{attrs}`
pub fn allocation(
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

/// `#name:[..].[..].thread = view`, with stated levels.
pub fn stated_threads(name: &str, levels: &[&[i64]], scalar: ThreadScalar, view: View) -> Stmt {
    let levels = levels.iter().map(|shape| dims(shape, false)).collect();
    let ty = Some(ThreadType { levels, scalar, span: Span::default() });
    Stmt::new(StmtKind::ThreadDef { name: Name::new(name), ty, view })
}

/// `@i, @j = #threads.indices()`
pub fn indices(names: &[&str], threads: View) -> Stmt {
    let names = names.iter().map(|n| Name::new(*n)).collect();
    Stmt::new(StmtKind::Indices { names, threads })
}

/// An index with these names; `0` is the literal.
pub fn index(at: &[Option<&str>]) -> ViewOp {
    ViewOp::Index(
        at.iter().map(|i| i.map(|n| if n == "0" { Expr::int(0) } else { Expr::name(n) })).collect(),
    )
}

/// A loop over the numbers from `start` up to `end` (exclusive).
pub fn counted(var: &str, (start, end): (i64, i64), unroll: Unroll, stmts: Vec<Stmt>) -> Stmt {
    Stmt::new(StmtKind::For {
        also: vec![],
        var: Name::new(var),
        start: Expr::int(start),
        end: Expr::int(end),
        step: Expr::int(1),
        unroll,
        stages: None,
        body: block(stmts),
    })
}

/// `if (lhs < rhs) { .. }`
pub fn when(lhs: Expr, op: CmpOp, rhs: Expr, stmts: Vec<Stmt>) -> Stmt {
    let (cond, then) = (vec![Compare { lhs, op, rhs }], block(stmts));
    Stmt::new(StmtKind::If { cond, then, otherwise: None })
}

/// `barrier`, of the block or of these threads.
pub fn barrier(threads: Option<View>) -> Stmt {
    Stmt::new(StmtKind::Barrier(threads))
}

/// `mbarrier.arrive(%full, 1)`, `async.commit`: the operands follow [`SyncOp::signature`].
pub fn sync(op: SyncOp, tensor: Option<View>, number: Option<Expr>) -> Stmt {
    let (tensor, number) = (tensor.map(SyncArg::View), number.map(SyncArg::Number));
    Stmt::new(StmtKind::Sync { op, args: tensor.into_iter().chain(number).collect() })
}
