//! Removes unused declarations from the C++ syntax tree.
//!
//! Lowering declares whatever may be useful (the thread index, coordinates, views of registers as
//! words) before it knows which of them later statements use. `fuse` also uses the walks over
//! expressions of this file.

use super::ast::{Expr, Piece, Stmt, StmtKind};
use std::collections::HashSet;

/// Removes droppable declarations without uses, then those that only they used.
pub fn prune(stmts: &mut Vec<Stmt>) {
    loop {
        let mut used = HashSet::new();
        each_expr(stmts, &mut |e| names(e, &mut used));
        if !remove(stmts, &used) {
            return;
        }
    }
}

fn remove(stmts: &mut Vec<Stmt>, used: &HashSet<String>) -> bool {
    let before = stmts.len();
    stmts.retain(|s| match &s.kind {
        StmtKind::Declare(d) => !d.droppable || used.contains(d.name.as_ref()),
        _ => true,
    });
    let mut removed = stmts.len() != before;
    for s in stmts {
        match &mut s.kind {
            StmtKind::For(f) => removed |= remove(&mut f.body, used),
            StmtKind::If { then, otherwise, .. } => {
                removed |= remove(then, used);
                removed |= remove(otherwise, used);
            }
            StmtKind::Block(b) => removed |= remove(b, used),
            _ => {}
        }
    }
    removed
}

/// Calls `f` on every outermost expression.
pub(crate) fn each_expr(stmts: &[Stmt], f: &mut impl FnMut(&Expr)) {
    for s in stmts {
        match &s.kind {
            StmtKind::Comment(_) | StmtKind::Line { .. } => {}
            StmtKind::Declare(d) => d.init.iter().for_each(&mut *f),
            StmtKind::Filled(pieces) => {
                for piece in pieces {
                    if let Piece::Operand(e) = piece {
                        f(e);
                    }
                }
            }
            StmtKind::Expr(e) => f(e),
            StmtKind::Assign { to, value, .. } => {
                f(to);
                f(value);
            }
            StmtKind::Asm(x) => x.outputs.iter().chain(&x.inputs).for_each(|(_, e)| f(e)),
            StmtKind::For(l) => {
                f(&l.start);
                f(&l.end);
                l.also.iter().for_each(&mut *f);
                each_expr(&l.body, f);
            }
            StmtKind::If { cond, then, otherwise } => {
                f(cond);
                each_expr(then, f);
                each_expr(otherwise, f);
            }
            StmtKind::Block(b) => each_expr(b, f),
        }
    }
}

/// Collects the names in an expression.
pub(crate) fn names(e: &Expr, used: &mut HashSet<String>) {
    each_name(e, &mut |name| {
        used.insert(name.to_owned());
    });
}

/// Calls `f` on every occurrence of a name in an expression.
pub(crate) fn each_name(e: &Expr, f: &mut impl FnMut(&str)) {
    match e {
        Expr::Name(n) => f(n),
        Expr::Int(_) | Expr::Literal(_) => {}
        Expr::Call(_, args) => args.iter().for_each(|e| each_name(e, f)),
        Expr::Index(a, b) | Expr::Binary(_, a, b) => {
            each_name(a, f);
            each_name(b, f);
        }
        Expr::Choose(cond, a, b) => [cond, a, b].into_iter().for_each(|e| each_name(e, f)),
        Expr::Unary(_, e) | Expr::Cast(_, e) | Expr::Reinterpret(_, e) => each_name(e, f),
    }
}
