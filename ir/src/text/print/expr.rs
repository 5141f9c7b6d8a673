//! Prints expressions over numbers, and tuples of them, with as few parentheses as possible.

use crate::ast::{BinOp, Expr, ExprKind, TupleExpr};

/// The rank above every operator.
pub(super) const TIGHTEST: u8 = 3;

/// An item of the print stack; the last item is printed first.
enum Piece<'m> {
    Text(&'static str),
    /// Parenthesized if its operator has a lower rank.
    Expr(&'m Expr, u8),
    Tuple(&'m TupleExpr),
}

/// Prints a number.
pub(super) fn expr(out: &mut String, e: &Expr) {
    pieces(out, Piece::Expr(e, 0));
}

/// Prints a number, parenthesized if its operator has a lower rank.
pub(super) fn expr_within(out: &mut String, e: &Expr, rank: u8) {
    pieces(out, Piece::Expr(e, rank));
}

/// Prints a number or a tuple.
pub(super) fn tuple(out: &mut String, t: &TupleExpr) {
    pieces(out, Piece::Tuple(t));
}

/// Prints tuples between `open` and `close`.
pub(super) fn tuples(out: &mut String, open: &str, ts: &[TupleExpr], close: &str) {
    out.push_str(open);
    for (i, t) in ts.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        tuple(out, t);
    }
    out.push_str(close);
}

fn pieces(out: &mut String, first: Piece<'_>) {
    let mut todo = vec![first];
    while let Some(piece) = todo.pop() {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Tuple(TupleExpr::Leaf(e)) => todo.push(Piece::Expr(e, 0)),
            Piece::Tuple(TupleExpr::Tuple(modes)) => {
                out.push('(');
                todo.push(Piece::Text(")"));
                for (i, mode) in modes.iter().enumerate().rev() {
                    todo.push(Piece::Tuple(mode));
                    if i > 0 {
                        todo.push(Piece::Text(","));
                    }
                }
            }
            Piece::Expr(e, above) => match &e.kind {
                ExprKind::Int(v) => int(out, *v, above),
                ExprKind::Name(name) => out.push_str(name),
                ExprKind::Real(text) => out.push_str(text),
                ExprKind::Neg(a) => {
                    // A sign applies to the operand directly after it.
                    out.push('-');
                    todo.push(Piece::Expr(a, TIGHTEST));
                }
                ExprKind::Sqrt(a) => {
                    out.push_str("sqrt(");
                    todo.extend([Piece::Text(")"), Piece::Expr(a, 0)]);
                }
                ExprKind::Bin(op, a, b) => match op.rank() {
                    TIGHTEST => {
                        out.push_str(op.as_str());
                        out.push('(');
                        todo.extend([Piece::Text(")"), Piece::Expr(b, 0)]);
                        todo.extend([Piece::Text(", "), Piece::Expr(a, 0)]);
                    }
                    rank => {
                        if rank < above {
                            out.push('(');
                            todo.push(Piece::Text(")"));
                        }
                        // Operators are left-associative, so only the right side needs a higher
                        // rank.
                        todo.extend([Piece::Expr(b, rank + 1), Piece::Text(" ")]);
                        todo.extend([Piece::Text(op.as_str()), Piece::Text(" ")]);
                        todo.push(Piece::Expr(a, rank));
                    }
                },
            },
        }
    }
}

/// A text has no negative literals: a negative number is printed as a difference.
fn int(out: &mut String, v: i64, above: u8) {
    let text = match v {
        0.. => return out.push_str(&v.to_string()),
        i64::MIN => format!("0 - {} - 1", i64::MAX),
        _ => format!("0 - {}", v.unsigned_abs()),
    };
    let parentheses = BinOp::Sub.rank() < above;
    out.push_str(&if parentheses { format!("({text})") } else { text });
}
