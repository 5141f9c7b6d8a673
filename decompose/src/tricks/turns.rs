//! Writes small expressions for loops with stages: iterations counted from the first one
//! ([`turns`]), stages of rings ([`staged`]), sums and products. It also lists the names that
//! statements define and refer to.

use carbyne_ir::ast::visit::{Of, Part, Walk, parts};
use carbyne_ir::ast::*;
use std::collections::HashMap;

/// `%ring[stage]`
pub(crate) fn staged(ring: &str, stage: &Expr) -> View {
    View::of(ring).then(ViewOp::Index(vec![Some(stage.clone())]))
}

/// How many iterations of a loop come before one.
pub(crate) fn turns(at: Expr, start: &Expr, step: i64) -> Expr {
    let from = match &start.kind {
        ExprKind::Int(0) => at,
        _ => Expr::bin(BinOp::Sub, at, start.clone()),
    };
    if step == 1 { from } else { Expr::bin(BinOp::Div, from, Expr::int(step)) }
}

pub(crate) fn sum(a: Expr, b: Expr) -> Expr {
    match (&a.kind, &b.kind) {
        (ExprKind::Int(0), _) => b,
        (_, ExprKind::Int(0)) => a,
        _ => Expr::bin(BinOp::Add, a, b),
    }
}

pub(crate) fn plus(a: Expr, n: i64) -> Expr {
    sum(a, Expr::int(n))
}

pub(crate) fn times(a: Expr, n: i64) -> Expr {
    if n == 1 { a } else { Expr::bin(BinOp::Mul, a, Expr::int(n)) }
}

pub(crate) fn modulo(a: Expr, n: i64) -> Expr {
    Expr::bin(BinOp::Mod, a, Expr::int(n))
}

/// How often each name is defined in statements and their bodies.
pub(crate) fn count(stmts: &[Stmt]) -> HashMap<&str, usize> {
    let mut out: HashMap<&str, usize> = HashMap::new();
    for stmt in Walk::new(stmts).stmts() {
        parts(stmt, &mut |part| {
            if let Part::Defined(name, _) = part {
                *out.entry(name.text.as_str()).or_default() += 1;
            }
        });
    }
    out
}

/// Every name that a statement refers to, other than in its bodies.
pub(crate) fn referred<'a>(stmt: &'a Stmt, each: &mut impl FnMut(&'a str, Of)) {
    parts(stmt, &mut |part| match part {
        Part::View(view, of) => each(&view.base.text, *of),
        Part::Referred(name, of) => each(&name.text, *of),
        Part::Expr(expr) => {
            if let ExprKind::Name(name) = &expr.kind {
                each(name, Of::Number);
            }
        }
        _ => {}
    });
}
