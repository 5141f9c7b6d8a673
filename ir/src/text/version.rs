//! Which format version a text needs.

use crate::ast::{AttrValue, Dims, LayoutExpr, TensorType};
use crate::ast::{
    Call, Exec, Expr, ExprKind, Module, Operand, Spec, Stmt, StmtKind, SyncArg, Tiler, TupleExpr,
    TypeAttr, View, ViewOp,
};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::span::Span;

/// Forms of version 2 in a module that says it is of version 1; empty for what may be so.
pub(super) fn newer(module: &Module) -> Diagnostics {
    let mut errors = Diagnostics::default();
    if module.version > 1 {
        return errors;
    }
    let mut open = vec![module.items.iter()];
    while let Some(rest) = open.last_mut() {
        let Some(stmt) = rest.next() else {
            open.pop();
            continue;
        };
        if errors.is_full() {
            break;
        }
        if let Some((span, what)) = statement(stmt) {
            let span = if span.end == 0 { stmt.span } else { span };
            let mut help =
                "write `carbyne 2` in the first line: all else means the same".to_owned();
            if what == BELOW_ZERO {
                help += "; in version 1 write the difference `0 - 3`";
            }
            errors.push(
                Diagnostic::new(Code::Version, span, format!("{what} need `carbyne 2`"))
                    .label("the text begins with `carbyne 1`")
                    .help(help),
            );
        }
        open.extend(stmt.kind.blocks().map(|b| b.stmts.iter()));
    }
    errors
}

const BELOW_ZERO: &str = "numbers below zero outside of operands";

type Found = Option<(Span, &'static str)>;

/// The first form of version 2 in a statement, its bodies apart.
fn statement(stmt: &Stmt) -> Found {
    let here = |what| Some((stmt.span, what));
    match &stmt.kind {
        StmtKind::Assign { .. } => here("expressions over tensors"),
        StmtKind::Import(_) => here("imports"),
        StmtKind::Def(_) | StmtKind::Call(Call { .. }) => here("sub-specs with parameters"),
        StmtKind::Let(all) => all.iter().find_map(|(_, e)| number(e)),
        StmtKind::Sym(_) | StmtKind::Barrier(None) => None,
        StmtKind::DataDecl { ty, range, .. } => {
            if range.is_some() {
                return here("ranges of elements");
            }
            tensor_type(ty)
        }
        StmtKind::Allocate { ty, .. } => tensor_type(ty),
        StmtKind::DataDef { ty, view: v, .. } => {
            ty.as_ref().and_then(tensor_type).or_else(|| view(v))
        }
        StmtKind::ThreadDecl { ty, .. } => levels(&ty.levels),
        StmtKind::ThreadDef { ty, view: v, .. } => {
            ty.as_ref().and_then(|t| levels(&t.levels)).or_else(|| view(v))
        }
        StmtKind::Indices { threads, .. } => view(threads),
        StmtKind::Barrier(Some(v)) => view(v),
        StmtKind::Sync { args, .. } => args.iter().find_map(|a| match a {
            SyncArg::View(v) => view(v),
            SyncArg::Number(e) => number(e),
        }),
        StmtKind::For { start, end, step, stages, .. } => match stages {
            Some(e) => Some((e.span, "stages of loops")),
            None => [start, end, step].into_iter().find_map(number),
        },
        StmtKind::If { cond, .. } => {
            cond.iter().find_map(|c| number(&c.lhs).or_else(|| number(&c.rhs)))
        }
        StmtKind::Spec(s) => spec(s),
    }
}

fn spec(s: &Spec) -> Found {
    let head = match &s.exec {
        Some(Exec::Both(blocks, threads)) => view(blocks).or_else(|| view(threads)),
        Some(Exec::Threads(v)) => Some((v.span, "executors without their blocks")),
        Some(Exec::Launch(_)) => Some((s.span, "threads that a kernel's head declares")),
        None => None,
    };
    let inputs = || {
        s.inputs.iter().find_map(|o| match o {
            Operand::View(v) => view(v),
            Operand::Number(_) => None,
            Operand::Value(e) => Some((e.span, "computed literals")),
        })
    };
    let declared =
        || s.declared.iter().flatten().next().map(|ty| (ty.span, "results that are declared"));
    let attrs = || {
        s.attrs.iter().find_map(|a| match &a.value {
            AttrValue::View(v) => view(v),
            AttrValue::Tuple(t) => tuple(t),
            AttrValue::Word(_) | AttrValue::Text(_) => None,
        })
    };
    head.or_else(inputs)
        .or_else(|| s.outputs.iter().find_map(view))
        .or_else(declared)
        .or_else(attrs)
}

fn view(v: &View) -> Found {
    v.ops.iter().find_map(|op| match op {
        ViewOp::Permute(_) => Some((v.span, "permuted views")),
        ViewOp::Iota(_) => Some((v.span, "coordinates as elements")),
        ViewOp::Pick(_) => Some((v.span, "ranges and tensors as indices")),
        ViewOp::Tile(Tiler::Sizes(all)) | ViewOp::Index(all) => {
            all.iter().flatten().find_map(number)
        }
        ViewOp::Tile(Tiler::Modes(all)) => all.iter().flatten().find_map(layout),
        ViewOp::Reshape(l) | ViewOp::Tv(l, _) => layout(l),
        ViewOp::Peer(e) => number(e),
        ViewOp::TensorMap { sizes, .. } => sizes.iter().find_map(number),
        ViewOp::Mine | ViewOp::Scalar | ViewOp::Elect => None,
    })
}

fn layout(l: &LayoutExpr) -> Found {
    tuple(&l.shape).or_else(|| tuple(&l.stride))
}

fn tensor_type(ty: &TensorType) -> Found {
    levels(&ty.levels).or_else(|| {
        ty.attrs.iter().find_map(|a| match a {
            TypeAttr::Tv(l, _) => layout(l),
            TypeAttr::Align(e) | TypeAttr::At(e) => number(e),
            TypeAttr::Open | TypeAttr::Swizzle(..) | TypeAttr::Reuses(_) | TypeAttr::Scalar(_) => {
                None
            }
        })
    })
}

fn levels(all: &[Dims]) -> Found {
    all.iter().flat_map(|d| d.modes.iter().chain(d.strides.iter().flatten())).find_map(tuple)
}

fn tuple(t: &TupleExpr) -> Found {
    let mut todo = vec![t];
    while let Some(t) = todo.pop() {
        match t {
            TupleExpr::Leaf(e) => {
                if let found @ Some(_) = number(e) {
                    return found;
                }
            }
            TupleExpr::Tuple(ts) => todo.extend(ts.iter().rev()),
        }
    }
    None
}

fn number(e: &Expr) -> Found {
    let mut todo = vec![e];
    while let Some(e) = todo.pop() {
        match &e.kind {
            ExprKind::Int(_) | ExprKind::Name(_) => {}
            ExprKind::Real(_) => return Some((e.span, "decimal numbers outside of operands")),
            ExprKind::Neg(_) => return Some((e.span, BELOW_ZERO)),
            ExprKind::Sqrt(_) => return Some((e.span, "square roots of numbers")),
            ExprKind::Bin(_, a, b) => todo.extend([&**b, &**a]),
        }
    }
    None
}
