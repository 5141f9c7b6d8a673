//! Parses expressions over numbers (integers, decimal numbers, names), tuples and layouts, which
//! share the grammar rule `value`, and comparisons. The resolver decides which expressions must be
//! integers.
//!
//! Invariant: an expression has at most [`MAX_EXPR_OPERATORS`] operators and parentheses. This
//! bounds the depth of its tree, so recursion over it is safe.

use super::Rule;
use super::errors::short;
use super::tree::{Answer, Node, Parts, internal};
use crate::ast::{BinOp, Compare, Expr, ExprKind, LayoutExpr, TupleExpr};
use crate::diag::{Code, Diagnostic};
use crate::limits::MAX_EXPR_OPERATORS;
use crate::span::Span;

/// A number.
pub(super) fn expr(node: Node<'_, '_>) -> Answer<Expr> {
    let mut parts = node.parts();
    let first = parts.some()?;
    whole(first, parts)
}

/// A number or a tuple.
pub(super) fn tuple(node: Node<'_, '_>) -> Answer<TupleExpr> {
    let mut parts = node.parts();
    let first = parts.some()?;
    if first.rule() == Rule::group && parts.is_empty() {
        return tuples(&mut first.parts()).map(TupleExpr::Tuple);
    }
    whole(first, parts).map(TupleExpr::Leaf)
}

/// The expression that starts with `first`.
fn whole(first: Node<'_, '_>, mut rest: Parts<'_, '_>) -> Answer<Expr> {
    if rest.is_empty() && matches!(first.rule(), Rule::int | Rule::real | Rule::name) {
        return leaf(&first);
    }
    Operators { left: MAX_EXPR_OPERATORS }.value(first, &mut rest).map_err(|mut d| {
        if d.code == Code::ExprTooLong {
            d.span = rest.whole();
        }
        d
    })
}

/// A literal or a name.
pub(super) fn leaf(node: &Node<'_, '_>) -> Answer<Expr> {
    let kind = match node.rule() {
        Rule::int => ExprKind::Int(int(node, 64)?),
        Rule::real => ExprKind::Real(node.text().to_owned()),
        _ => ExprKind::Name(node.text().to_owned()),
    };
    Ok(Expr { kind, span: node.span() })
}

/// The consecutive values.
pub(super) fn tuples(parts: &mut Parts<'_, '_>) -> Answer<Vec<TupleExpr>> {
    let mut all = Vec::new();
    while let Some(value) = parts.take(Rule::value) {
        all.push(tuple(value)?);
    }
    Ok(all)
}

/// `shape:stride`
pub(super) fn layout(node: Node<'_, '_>) -> Answer<LayoutExpr> {
    let span = node.span();
    let mut parts = node.parts();
    let shape = tuple(parts.next(Rule::value)?)?;
    let stride = tuple(parts.next(Rule::value)?)?;
    Ok(LayoutExpr { shape, stride, span })
}

/// A literal.
pub(super) fn int<T: std::str::FromStr>(node: &Node<'_, '_>, bits: u32) -> Answer<T> {
    node.text().parse().map_err(|_| {
        let text = short(node.text());
        Box::new(
            Diagnostic::new(
                Code::Number,
                node.span(),
                format!("`{text}` does not fit {bits} bits"),
            )
            .label("this number is too large")
            .help(match bits {
                32 => "write a number below 4294967296",
                _ => "write a number up to 9223372036854775807",
            }),
        )
    })
}

/// Counts the operators of one expression during parsing.
pub(super) struct Operators {
    pub(super) left: usize,
}

impl Operators {
    /// The error has no place: the caller adds the span of the whole expression.
    pub(super) fn one_more(&mut self) -> Answer<()> {
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            let message = format!("an expression has more than {MAX_EXPR_OPERATORS} operators");
            Box::new(
                Diagnostic::new(Code::ExprTooLong, Span::default(), message)
                    .label("this expression")
                    .help("split the expression: name parts of it with `let`"),
            )
        })?;
        Ok(())
    }

    /// The places of the minus signs before an operand. Each counts as an operator.
    pub(super) fn signs(&mut self, parts: &mut Parts<'_, '_>) -> Answer<Vec<Span>> {
        let mut signs = vec![];
        while let Some(sign) = parts.take(Rule::minus) {
            self.one_more()?;
            signs.push(sign.span());
        }
        Ok(signs)
    }

    fn value(&mut self, first: Node<'_, '_>, rest: &mut Parts<'_, '_>) -> Answer<Expr> {
        let first = self.part(first)?;
        let next = || {
            let Some(sign) = rest.take(Rule::op) else { return Ok(None) };
            self.one_more()?;
            let op = sign.text().parse().map_err(|()| internal(sign.span(), "an operator"))?;
            Ok(Some((op, self.part(rest.some()?)?)))
        };
        BinOp::grouped(first, next, join)
    }

    fn inner(&mut self, node: Node<'_, '_>) -> Answer<Expr> {
        let mut parts = node.parts();
        let first = parts.some()?;
        self.value(first, &mut parts)
    }

    fn part(&mut self, node: Node<'_, '_>) -> Answer<Expr> {
        match node.rule() {
            Rule::int | Rule::real | Rule::name => leaf(&node),
            Rule::neg => {
                let mut parts = node.parts();
                let signs = self.signs(&mut parts)?;
                let mut a = self.part(parts.some()?)?;
                for sign in signs.into_iter().rev() {
                    let span = sign.to(a.span);
                    a = Expr { kind: ExprKind::Neg(Box::new(a)), span };
                }
                Ok(a)
            }
            Rule::root => {
                self.one_more()?;
                let span = node.span();
                let a = self.inner(node.parts().next(Rule::value)?)?;
                Ok(Expr { kind: ExprKind::Sqrt(Box::new(a)), span })
            }
            Rule::group => {
                let span = node.span();
                let mut parts = node.parts();
                match (parts.take(Rule::value), parts.any()) {
                    (Some(value), None) => {
                        let mut inner = self.inner(value)?;
                        inner.span = span;
                        Ok(inner)
                    }
                    _ => Err(Box::new(
                        Diagnostic::new(Code::Syntax, span, "expected a number, found a tuple")
                            .label("expected a number, found a tuple")
                            .help(
                                "write one number; tuples are allowed in shapes, strides and tile \
                                 sizes",
                            ),
                    )),
                }
            }
            Rule::call => {
                self.one_more()?;
                let span = node.span();
                let mut parts = node.parts();
                let name = parts.next(Rule::function)?;
                let op = name.text().parse().map_err(|()| internal(span, "a function"))?;
                let a = self.inner(parts.next(Rule::value)?)?;
                let b = self.inner(parts.next(Rule::value)?)?;
                Ok(Expr { kind: ExprKind::Bin(op, Box::new(a), Box::new(b)), span })
            }
            _ => Err(internal(node.span(), "a number")),
        }
    }
}

fn join(op: BinOp, a: Expr, b: Expr) -> Expr {
    let span = a.span.to(b.span);
    Expr { kind: ExprKind::Bin(op, Box::new(a), Box::new(b)), span }
}

pub(super) fn compare(node: Node<'_, '_>) -> Answer<Compare> {
    let mut parts = node.parts();
    let lhs = expr(parts.next(Rule::value)?)?;
    let op = parts.next(Rule::compare_op)?;
    let op = op.text().parse().map_err(|()| internal(op.span(), "a comparison"))?;
    Ok(Compare { lhs, op, rhs: expr(parts.next(Rule::value)?)? })
}

/// The comparisons after `where` or `usually`. Empty if the clause is missing.
pub(super) fn comparisons(parts: &mut Parts<'_, '_>, rule: Rule) -> Answer<Vec<Compare>> {
    let mut all = Vec::new();
    if let Some(list) = parts.take(rule) {
        let mut list = list.parts();
        while let Some(node) = list.take(Rule::compare) {
            all.push(compare(node)?);
        }
    }
    Ok(all)
}
