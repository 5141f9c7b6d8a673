//! Prints expressions over tensors ([`TensorExpr`]), such as the formulas of a `means` block, with
//! as few parentheses as possible. Lines may break after operators and commas.

use super::expr::expr_within;
use super::tensor::{attribute, view};
use crate::ast::{Key, SpecKind, TensorExpr, UnaryOp, operator};
use pretty::{Arena, DocAllocator, DocBuilder};

type Doc<'a> = DocBuilder<'a, Arena<'a>>;

/// An item of the print stack; the last item is printed first.
enum Piece<'m> {
    Text(String),
    /// A possible line break.
    Break,
    /// Parenthesized if its operator has a lower rank.
    Tensors(&'m TensorExpr, u8),
}

/// The rank above every operator.
const TIGHTEST: u8 = 4;

/// Prints the expression. Lines may break after operators and commas.
pub(super) fn tensors<'a>(arena: &'a Arena<'a>, e: &TensorExpr) -> Doc<'a> {
    let mut doc = arena.nil();
    let mut text = String::new();
    let mut todo = vec![Piece::Tensors(e, 0)];
    while let Some(piece) = todo.pop() {
        match piece {
            Piece::Text(t) => text.push_str(&t),
            Piece::Break => {
                doc = doc.append(std::mem::take(&mut text)).append(arena.softline());
            }
            Piece::Tensors(TensorExpr::View(v), _) => view(&mut text, '%', v),
            Piece::Tensors(TensorExpr::Number(e), above) => {
                // Numbers have no comparisons, so their ranks are one below those of tensors.
                expr_within(&mut text, e, above.saturating_sub(1));
            }
            Piece::Tensors(TensorExpr::Apply(apply), above) => {
                let is_plain = apply.may_be_operator();
                let infix = match (apply.kind, &apply.args[..]) {
                    (SpecKind::Binary(op), [a, b]) if is_plain => operator(op).map(|o| (o, a, b)),
                    _ => None,
                };
                if let Some(((sign, rank), a, b)) = infix {
                    if rank < above {
                        text.push('(');
                        todo.push(Piece::Text(")".to_owned()));
                    }
                    todo.extend([Piece::Tensors(b, rank + 1), Piece::Break]);
                    todo.extend([Piece::Text(format!(" {sign}")), Piece::Tensors(a, rank)]);
                    continue;
                }
                if let (SpecKind::Unary(UnaryOp::Neg), [a], true) =
                    (apply.kind, &apply.args[..], is_plain)
                {
                    text.push('-');
                    todo.push(Piece::Tensors(a, TIGHTEST));
                    continue;
                }
                text.push_str(apply.kind.function().unwrap_or("?"));
                text.push('(');
                todo.push(Piece::Text(")".to_owned()));
                // The first attribute of a cast is its type, which is printed without the attribute
                // name.
                let cast = apply.kind == SpecKind::Unary(UnaryOp::Cast);
                for (i, attr) in apply.attrs.iter().enumerate().rev() {
                    let mut word = String::new();
                    match attr.as_word() {
                        Some(w) if cast && i == 0 && attr.key == Some(Key::To) => word.push_str(w),
                        _ => attribute(&mut word, attr),
                    }
                    todo.extend([Piece::Text(word), Piece::Break, Piece::Text(",".to_owned())]);
                }
                for (i, arg) in apply.args.iter().enumerate().rev() {
                    todo.push(Piece::Tensors(arg, 0));
                    if i > 0 {
                        todo.extend([Piece::Break, Piece::Text(",".to_owned())]);
                    }
                }
            }
        }
    }
    doc.append(text)
}
