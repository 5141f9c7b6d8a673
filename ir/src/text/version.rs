//! Which format version a text needs.

use crate::ast::visit::{Part, Walk, parts};
use crate::ast::{Exec, ExprKind, Module, Operand, Spec, Stmt, StmtKind, ViewOp};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::span::Span;

/// Forms of version 2 in a module that says it is of version 1; empty for what may be so.
pub(super) fn newer(module: &Module) -> Diagnostics {
    let mut errors = Diagnostics::default();
    if module.version > 1 {
        return errors;
    }
    for stmt in Walk::new(&module.items).with_means().stmts() {
        if errors.is_full() {
            break;
        }
        let Some((span, what)) = statement(stmt).or_else(|| part(stmt)) else { continue };
        // Of a tree that was built in memory.
        let span = if span.end == 0 { stmt.span } else { span };
        let mut help = "write `carbyne 2` in the first line: all else means the same".to_owned();
        if what == BELOW_ZERO {
            help += "; in version 1 write the difference `0 - 3`";
        }
        errors.push(
            Diagnostic::new(Code::Version, span, format!("{what} need `carbyne 2`"))
                .label("the text begins with `carbyne 1`")
                .help(help),
        );
    }
    errors
}

const BELOW_ZERO: &str = "numbers below zero outside of operands";

type Found = Option<(Span, &'static str)>;

/// What a statement itself has of version 2.
fn statement(stmt: &Stmt) -> Found {
    let here = |what| Some((stmt.span, what));
    match &stmt.kind {
        StmtKind::Assign { .. } => here("expressions over tensors"),
        StmtKind::Import(_) => here("imports"),
        StmtKind::Def(def) if def.strategy.is_some() => here("strategies"),
        StmtKind::Def(_) | StmtKind::Call(_) => here("sub-specs with parameters"),
        StmtKind::Symbols(_) => here("facts about symbols"),
        StmtKind::DataDecl { range: Some(_), .. } => here("ranges of elements"),
        StmtKind::Element { .. } => here("elements as numbers"),
        StmtKind::For { stages: Some(e), .. } => Some((e.span, "stages of loops")),
        StmtKind::Spec(spec) => head(spec),
        _ => None,
    }
}

fn head(spec: &Spec) -> Found {
    let computed = || {
        spec.inputs.iter().find_map(|o| match o {
            Operand::Value(e) => Some((e.span, "computed literals")),
            Operand::View(_) | Operand::Number(_) => None,
        })
    };
    let declared =
        || spec.declared.iter().flatten().next().map(|ty| (ty.span, "results that are declared"));
    match &spec.exec {
        Some(Exec::Threads(v)) => Some((v.span, "executors without their blocks")),
        Some(Exec::Launch(_)) => Some((spec.span, "threads that a kernel's head declares")),
        Some(Exec::Both(..)) | None => computed().or_else(declared),
    }
}

/// The first view or number of a statement that is of version 2.
fn part(stmt: &Stmt) -> Found {
    let mut found = None;
    parts(stmt, &mut |part| {
        let new = match part {
            Part::View(view, _) => view.ops.iter().find_map(|op| match op {
                ViewOp::Permute(_) => Some((view.span, "permuted views")),
                ViewOp::Iota(_) | ViewOp::Plus(_) => Some((view.span, "coordinates as elements")),
                ViewOp::Pad(_) => Some((view.span, "partial views")),
                ViewOp::Pick(_) => Some((view.span, "ranges and tensors as indices")),
                _ => None,
            }),
            Part::Expr(e) => match &e.kind {
                ExprKind::Real(_) => Some((e.span, "decimal numbers outside of operands")),
                ExprKind::Neg(_) => Some((e.span, BELOW_ZERO)),
                ExprKind::Sqrt(_) => Some((e.span, "square roots of numbers")),
                ExprKind::Int(_) | ExprKind::Name(_) | ExprKind::Bin(..) => None,
            },
            _ => None,
        };
        found = found.or(new);
    });
    found
}
