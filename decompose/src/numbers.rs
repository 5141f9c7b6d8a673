//! Evaluates expressions of a module with given numbers for its names.

use carbyne_ir::ast::{BinOp, Expr, ExprKind};
use std::collections::BTreeMap;

/// Numbers by name.
pub(crate) type Numbers = BTreeMap<String, i64>;

/// The value of an expression; none where a name is unknown, a number no integer, or too large.
pub(crate) fn eval(e: &Expr, known: &Numbers) -> Option<i64> {
    // Operators and operands in postfix order, so that no text nests too deep.
    enum Todo<'a> {
        Visit(&'a Expr),
        Bin(BinOp),
        Neg,
    }
    let (mut todo, mut done) = (vec![Todo::Visit(e)], vec![]);
    while let Some(next) = todo.pop() {
        match next {
            Todo::Visit(e) => match &e.kind {
                ExprKind::Int(n) => done.push(*n),
                ExprKind::Name(name) => done.push(*known.get(name)?),
                ExprKind::Real(_) | ExprKind::Sqrt(_) => return None,
                ExprKind::Neg(a) => todo.extend([Todo::Neg, Todo::Visit(a)]),
                ExprKind::Bin(op, a, b) => {
                    todo.extend([Todo::Bin(*op), Todo::Visit(b), Todo::Visit(a)]);
                }
            },
            Todo::Neg => {
                let a = done.pop()?;
                done.push(a.checked_neg()?);
            }
            Todo::Bin(op) => {
                let (b, a) = (done.pop()?, done.pop()?);
                done.push(binary(op, a, b)?);
            }
        }
    }
    done.pop()
}

fn binary(op: BinOp, a: i64, b: i64) -> Option<i64> {
    let floor = |a: i64, b: i64| {
        let q = a.checked_div(b)?;
        if a % b != 0 && (a < 0) != (b < 0) { q.checked_sub(1) } else { Some(q) }
    };
    match op {
        BinOp::Add => a.checked_add(b),
        BinOp::Sub => a.checked_sub(b),
        BinOp::Mul => a.checked_mul(b),
        BinOp::Div => floor(a, b),
        BinOp::Mod => a.checked_sub(floor(a, b)?.checked_mul(b)?),
        BinOp::Min => Some(a.min(b)),
        BinOp::Max => Some(a.max(b)),
        BinOp::CeilDiv => floor(a.checked_add(b.checked_sub(1)?)?, b),
    }
}
