//! Parses expressions over tensors, such as `exp(%s - %max)`.
//!
//! An expression without tensors is a number, so `1.0 / N` is one operand and not a spec. Operators
//! are counted as in [`super::expr`], which bounds the depth of trees.

use super::Rule;
use super::common_mistakes::{BOTH, foreign_function_help};
use super::errors::{one_of, short};
use super::expr::{Operators, leaf};
use super::functions::FUNCTIONS;
use super::spec::attr;
use super::tensor::view;
use super::tree::{Answer, Node, internal, is_type};
use crate::ast::{
    Apply, Attr, AttrValue, BinOp, BinaryOp, Expr, ExprKind, Key, Name, ReduceOp, SpecKind,
    TensorExpr, UnaryOp,
};
use crate::diag::{Code, Diagnostic, count};
use crate::limits::MAX_EXPR_OPERATORS;
use crate::scalar::Scalar;
use crate::span::Span;

/// The expression in `node`.
pub(super) fn tensors(node: Node<'_, '_>) -> Answer<TensorExpr> {
    let whole = node.span();
    Operators { left: MAX_EXPR_OPERATORS }.tensors(node).map_err(|mut d| {
        if d.code == Code::ExprTooLong {
            d.span = whole;
        }
        d
    })
}

/// A binary operator.
#[derive(Copy, Clone)]
enum Op {
    /// For tensors and numbers.
    Both(BinaryOp, BinOp),
    /// For tensors only.
    Compare(BinaryOp),
    /// For numbers only.
    Remainder,
}

impl Op {
    fn rank(self) -> u8 {
        match self {
            Op::Compare(_) => 1,
            Op::Both(BinaryOp::Add | BinaryOp::Sub, _) => 2,
            Op::Both(..) | Op::Remainder => 3,
        }
    }
}

fn op(sign: &Node<'_, '_>) -> Answer<Op> {
    Ok(match sign.text().trim_end() {
        "+" => Op::Both(BinaryOp::Add, BinOp::Add),
        "-" => Op::Both(BinaryOp::Sub, BinOp::Sub),
        "*" => Op::Both(BinaryOp::Mul, BinOp::Mul),
        "/" => Op::Both(BinaryOp::Div, BinOp::Div),
        "%" => Op::Remainder,
        "<" => Op::Compare(BinaryOp::Lt),
        "<=" => Op::Compare(BinaryOp::Le),
        "==" => Op::Compare(BinaryOp::Eq),
        "!=" => Op::Compare(BinaryOp::Ne),
        ">=" => Op::Compare(BinaryOp::Ge),
        ">" => Op::Compare(BinaryOp::Gt),
        _ => return Err(internal(sign.span(), "an operator")),
    })
}

fn wrong<T>(
    span: Span,
    message: impl Into<String>,
    label: &str,
    help: impl Into<String>,
) -> Answer<T> {
    Err(Box::new(Diagnostic::new(Code::Syntax, span, message).label(label).help(help)))
}

fn join(how: Op, a: TensorExpr, b: TensorExpr) -> Answer<TensorExpr> {
    let span = a.span().to(b.span());
    match (how, a, b) {
        (Op::Both(_, op), TensorExpr::Number(a), TensorExpr::Number(b)) => {
            let kind = ExprKind::Bin(op, Box::new(a), Box::new(b));
            Ok(TensorExpr::Number(Expr { kind, span }))
        }
        (Op::Remainder, TensorExpr::Number(a), TensorExpr::Number(b)) => {
            let kind = ExprKind::Bin(BinOp::Mod, Box::new(a), Box::new(b));
            Ok(TensorExpr::Number(Expr { kind, span }))
        }
        (Op::Remainder, ..) => wrong(
            span,
            "`%` is not an operator of tensors",
            "`%` is a remainder of numbers",
            "compute the remainder of coordinates, or write the name of a tensor directly after \
             `%`",
        ),
        (Op::Compare(_), TensorExpr::Number(_), TensorExpr::Number(_)) => wrong(
            span,
            "a comparison needs a tensor",
            "both sides are numbers",
            "compare a tensor with a number; write conditions on numbers as `if (..)`",
        ),
        (Op::Both(op, _) | Op::Compare(op), a, b) => {
            let kind = SpecKind::Binary(op);
            Ok(TensorExpr::Apply(Box::new(Apply { kind, args: vec![a, b], attrs: vec![], span })))
        }
    }
}

impl Operators {
    fn tensors(&mut self, node: Node<'_, '_>) -> Answer<TensorExpr> {
        let mut parts = node.parts();
        let first = parts.some()?;
        let mut stack: Vec<(Op, TensorExpr)> = vec![];
        let mut last = self.tensor_part(first)?;
        while let Some(sign) = parts.take(Rule::tensor_op) {
            self.one_more()?;
            let how = op(&sign)?;
            while let Some((above, a)) = stack.pop_if(|(above, _)| above.rank() >= how.rank()) {
                last = join(above, a, last)?;
            }
            stack.push((how, last));
            last = self.tensor_part(parts.some()?)?;
        }
        while let Some((above, a)) = stack.pop() {
            last = join(above, a, last)?;
        }
        Ok(last)
    }

    fn tensor_part(&mut self, node: Node<'_, '_>) -> Answer<TensorExpr> {
        match node.rule() {
            Rule::data_view => view(node).map(TensorExpr::View),
            Rule::int | Rule::real | Rule::name => leaf(&node).map(TensorExpr::Number),
            Rule::tensor_neg => {
                let mut parts = node.parts();
                let signs = self.signs(&mut parts)?;
                let mut operand = self.tensor_part(parts.some()?)?;
                for sign in signs.into_iter().rev() {
                    let span = sign.to(operand.span());
                    operand = match operand {
                        TensorExpr::Number(a) => {
                            TensorExpr::Number(Expr { kind: ExprKind::Neg(Box::new(a)), span })
                        }
                        a => {
                            let kind = SpecKind::Unary(UnaryOp::Neg);
                            let (args, attrs) = (vec![a], vec![]);
                            TensorExpr::Apply(Box::new(Apply { kind, args, attrs, span }))
                        }
                    };
                }
                Ok(operand)
            }
            Rule::tensor_group => {
                let span = node.span();
                let mut inner = self.tensors(node.parts().next(Rule::tensors)?)?;
                match &mut inner {
                    TensorExpr::Number(e) => e.span = span,
                    TensorExpr::Apply(a) => a.span = span,
                    TensorExpr::View(_) => {}
                }
                Ok(inner)
            }
            Rule::tensor_call => self.call(node),
            _ => Err(internal(node.span(), "a tensor or a number")),
        }
    }

    fn call(&mut self, node: Node<'_, '_>) -> Answer<TensorExpr> {
        self.one_more()?;
        let (span, params) = (node.span(), node.params());
        let mut parts = node.parts();
        let name = parts.next(Rule::tensor_function)?;
        let (word, at) = (name.text().trim_end().to_owned(), name.span());
        let (mut args, mut attrs) = (vec![], vec![]);
        while let Some(arg) = parts.any() {
            match arg.rule() {
                Rule::attr => attrs.push(attr(arg)?),
                _ if !attrs.is_empty() => {
                    return wrong(
                        arg.span(),
                        "an operand follows an attribute",
                        "expected `key=value`",
                        "write the operands first: `max(%x, axis=1)`",
                    );
                }
                _ => args.push(self.tensors(arg)?),
            }
        }
        if let Some(number) = constant(&word, &mut args, &attrs, span) {
            return Ok(number);
        }
        let kind = kind(&word, &args, &attrs);
        let Some((kind, wanted)) = kind else {
            let message = format!("there is no function `{}(..)`", short(&word));
            let d = Diagnostic::new(Code::Syntax, at, message);
            let d = d.label("expected a tensor function");
            // A similar name is a different function, so foreign functions come first.
            return Err(Box::new(match foreign_function_help(&word) {
                Some(instead) => d.help(instead),
                None => one_of(d, &word, FUNCTIONS.into_iter()),
            }));
        };
        if kind == SpecKind::Unary(UnaryOp::Cast) {
            let to = if args.len() == 2 { args.pop() } else { None };
            let Some(TensorExpr::Number(Expr { kind: ExprKind::Name(to), span: at })) = &to else {
                return wrong(
                    span,
                    "a cast needs a type",
                    "expected a type",
                    "write `cast(%x, f16)`",
                );
            };
            if to.parse::<Scalar>().is_err() && !is_type(params, to) {
                let message = format!("unknown scalar type `{}`", short(to));
                let d = Diagnostic::new(Code::Syntax, *at, message);
                let d = d.label("expected a scalar type");
                return Err(Box::new(one_of(d, to, Scalar::ALL.iter().map(|s| s.as_str()))));
            }
            attrs.insert(
                0,
                Attr::named(
                    Name { text: Key::To.to_string(), span: *at },
                    AttrValue::Word(to.clone()),
                ),
            );
        }
        if args.len() != wanted {
            let tensors = count(wanted, "tensor");
            let message = format!("`{word}` takes {tensors}, found {}", args.len());
            let help = match kind {
                SpecKind::Reduction(ReduceOp::And | ReduceOp::Or) if args.len() == 2 => {
                    BOTH.to_owned()
                }
                SpecKind::Reduction(_) => format!("write `{word}(%x, axis=1)`"),
                SpecKind::Select => "write `select(%p, %a, %b)`".to_owned(),
                _ if wanted == 2 => format!("write `{word}(%a, %b)`"),
                _ => format!("write `{word}(%x)`"),
            };
            return wrong(span, message, "in this call", help);
        }
        let tensors = args.iter().any(|a| !matches!(a, TensorExpr::Number(_)));
        if !tensors {
            return wrong(
                span,
                format!("`{word}` needs a tensor"),
                "all operands are numbers",
                "write the result; only `+`, `-`, `*`, `/`, `min`, `max` and `sqrt` take numbers",
            );
        }
        Ok(TensorExpr::Apply(Box::new(Apply { kind, args, attrs, span })))
    }
}

/// `min`, `max`, `ceil_div` and `sqrt` of numbers.
fn constant(
    word: &str,
    args: &mut Vec<TensorExpr>,
    attrs: &[Attr],
    span: Span,
) -> Option<TensorExpr> {
    let numbers = args.iter().all(|a| matches!(a, TensorExpr::Number(_))) && attrs.is_empty();
    if !numbers {
        return None;
    }
    let n = match word {
        "sqrt" => 1,
        "min" | "max" | "ceil_div" => 2,
        _ => return None,
    };
    if args.len() != n {
        return None;
    }
    let mut next = || match args.pop() {
        Some(TensorExpr::Number(e)) => Some(Box::new(e)),
        _ => None,
    };
    let last = next()?;
    let kind = match word {
        "sqrt" => ExprKind::Sqrt(last),
        _ => ExprKind::Bin(word.parse().ok()?, next()?, last),
    };
    Some(TensorExpr::Number(Expr { kind, span }))
}

/// The spec of a function, and the number of its tensor operands.
fn kind(word: &str, args: &[TensorExpr], attrs: &[Attr]) -> Option<(SpecKind, usize)> {
    let reduces = args.len() == 1 || Attr::among(attrs, Key::Axis).is_some();
    Some(match word {
        "move" => (SpecKind::Move, 1),
        "matmul" => (SpecKind::MatMulSet, 2),
        "select" => (SpecKind::Select, 3),
        "min" | "max" | "minimum" | "maximum" if !reduces => {
            (SpecKind::Binary(word.parse().ok()?), 2)
        }
        _ => match (word.parse::<ReduceOp>(), word.parse::<UnaryOp>(), word.parse::<BinaryOp>()) {
            (Ok(op), ..) => (SpecKind::Reduction(op), 1),
            (_, Ok(op), _) => (SpecKind::Unary(op), 1),
            (.., Ok(op)) => (SpecKind::Binary(op), 2),
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_those_that_messages_name() {
        let x = || TensorExpr::View(crate::ast::View::of("x"));
        for word in FUNCTIONS {
            let args = [x(), x(), x()];
            let known = (1..=3).any(|n| kind(word, &args[..n], &[]).is_some());
            assert!(known, "{word}");
        }
        for op in UnaryOp::ALL {
            assert!(FUNCTIONS.contains(&op.as_str()), "{op}");
        }
    }
}
