//! Transforms C++ expressions for the fusion of loops: it substitutes the loop variable, folds
//! constants, and lists the names that statements use.

use super::accesses::value;
use crate::cpp::ast::{Binary, Declare, Expr, Piece, Stmt, StmtKind, Word};
use crate::cpp::prune::{each_expr, each_name};
use std::collections::HashMap;

/// The number of uses of each name in statements. Uses of a name that is declared again in a body
/// do not count, and neither do declarations of registers.
pub(super) fn uses_of(stmts: &[Stmt]) -> HashMap<String, usize> {
    let mut uses = HashMap::new();
    for stmt in stmts {
        let mut within = |body: &[Stmt]| {
            let mut own = uses_of(body);
            for name in body.iter().filter_map(declared) {
                own.remove(&name);
            }
            own.into_iter().for_each(|(name, n)| *uses.entry(name).or_default() += n);
        };
        match &stmt.kind {
            StmtKind::Declare(d) if is_storage(d) => {}
            StmtKind::For(f) => {
                within(&f.body);
                [&f.start, &f.end].into_iter().for_each(|e| count_in(e, &mut uses));
            }
            StmtKind::If { cond, then, otherwise } => {
                within(then);
                within(otherwise);
                count_in(cond, &mut uses);
            }
            StmtKind::Block(body) => within(body),
            _ => each_expr(std::slice::from_ref(stmt), &mut |e| count_in(e, &mut uses)),
        }
    }
    uses
}

fn count_in(e: &Expr, uses: &mut HashMap<String, usize>) {
    each_name(e, &mut |name| *uses.entry(name.to_owned()).or_default() += 1);
}

/// `e * n`
pub(super) fn times(e: Expr, n: i64) -> Expr {
    if n == 1 { e } else { e.binary(Binary::Mul, Expr::Int(n)) }
}

/// `e + n`
pub(super) fn plus(e: Expr, n: i64) -> Expr {
    match (e, n) {
        (e, 0) => e,
        (Expr::Int(m), n) => Expr::Int(m + n),
        (e, n) if n < 0 => e.binary(Binary::Sub, Expr::Int(-n)),
        (e, n) => e.binary(Binary::Add, Expr::Int(n)),
    }
}

/// Replaces a variable by an expression, and folds constants.
pub(super) fn substitute(e: &mut Expr, var: &Word, by: &Expr) {
    match e {
        Expr::Name(name) if name == var => *e = by.clone(),
        Expr::Name(_) | Expr::Int(_) | Expr::Literal(_) => {}
        Expr::Call(_, args) => args.iter_mut().for_each(|e| substitute(e, var, by)),
        Expr::Index(a, b) => {
            substitute(a, var, by);
            substitute(b, var, by);
        }
        Expr::Binary(_, a, b) => {
            substitute(a, var, by);
            substitute(b, var, by);
            if let Some(n) = value(e, None) {
                *e = Expr::Int(n);
            }
            match e {
                Expr::Binary(Binary::Add, a, b) if **a == Expr::Int(0) => *e = (**b).clone(),
                Expr::Binary(Binary::Add | Binary::Sub, a, b) if **b == Expr::Int(0) => {
                    *e = (**a).clone();
                }
                _ => {}
            }
        }
        Expr::Choose(a, b, c) => [a, b, c].into_iter().for_each(|e| substitute(e, var, by)),
        Expr::Unary(_, e) | Expr::Cast(_, e) | Expr::Reinterpret(_, e) => substitute(e, var, by),
    }
}

/// Calls `f` on every outermost expression of a thread's statement.
pub(super) fn each_mut(stmt: &mut Stmt, f: &mut impl FnMut(&mut Expr)) {
    match &mut stmt.kind {
        StmtKind::Filled(pieces) => {
            for piece in pieces {
                if let Piece::Operand(e) = piece {
                    f(e);
                }
            }
        }
        StmtKind::Assign { to, value, .. } => {
            f(to);
            f(value);
        }
        StmtKind::Asm(x) => {
            x.outputs.iter_mut().chain(&mut x.inputs).for_each(|(_, e)| f(e));
        }
        StmtKind::If { cond, then, otherwise } => {
            f(cond);
            then.iter_mut().chain(otherwise).for_each(|s| each_mut(s, f));
        }
        StmtKind::Comment(_)
        | StmtKind::Line { .. }
        | StmtKind::Declare(_)
        | StmtKind::Expr(_)
        | StmtKind::For(_)
        | StmtKind::Block(_) => {}
    }
}

/// The name that a statement declares.
pub(super) fn declared(stmt: &Stmt) -> Option<String> {
    match &stmt.kind {
        StmtKind::Declare(d) => Some(d.name.to_string()),
        _ => None,
    }
}

/// Whether a declaration is of registers, or of a view of registers as words.
pub(super) fn is_storage(d: &Declare) -> bool {
    match &d.init {
        None => true,
        Some(Expr::Reinterpret(_, of)) => matches!(**of, Expr::Name(_)) && d.array.is_none(),
        Some(_) => false,
    }
}
