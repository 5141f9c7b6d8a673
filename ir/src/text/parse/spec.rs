//! Spec heads.

use super::Rule;
use super::errors::{one_of, short};
use super::expr::tuple;
use super::tensor::view;
use super::tree::{Answer, Node, Parts, internal};
use crate::ast::{
    AccumulateOp, Attr, AttrValue, BinaryOp, Block, Number, Operand, ReduceOp, ShflOp,
};
use crate::ast::{Spec, SpecKind, UnaryOp};
use crate::diag::{Code, Diagnostic};
use std::str::FromStr;

/// `MatMul.set @gemm <<<#grid, #cta>>> (%A, %B) -> (%C) acc=f32 {`
pub(super) fn spec(node: Node<'_, '_>) -> Answer<Spec> {
    let mut span = node.span();
    let mut parts = node.parts();
    let kind = spec_kind(&parts.next(Rule::spec_kind)?)?;
    let name = parts.take(Rule::kernel_name).map(|n| n.without_sigil());
    let exec = match parts.take(Rule::exec) {
        Some(exec) => {
            let mut exec = exec.parts();
            Some((view(exec.some()?)?, view(exec.some()?)?))
        }
        None => None,
    };
    let mut inputs = Vec::new();
    let mut list = parts.next(Rule::inputs)?.parts();
    while let Some(operand) = list.any() {
        inputs.push(match operand.rule() {
            Rule::number => {
                Operand::Number(Number { text: operand.text().to_owned(), span: operand.span() })
            }
            _ => Operand::View(view(operand)?),
        });
    }
    let mut outputs = Vec::new();
    let mut list = parts.next(Rule::outputs)?.parts();
    while let Some(output) = list.any() {
        outputs.push(view(output)?);
    }
    let mut attrs = Vec::new();
    while let Some(attr) = parts.take(Rule::attr) {
        let mut attr = attr.parts();
        let key = attr.next(Rule::ident)?.name();
        let value = attr.some()?;
        let value = match value.rule() {
            Rule::word => AttrValue::Word(value.text().to_owned()),
            Rule::string => AttrValue::Text(value.text().trim_matches('"').to_owned()),
            Rule::data_view => AttrValue::View(view(value)?),
            _ => AttrValue::Tuple(tuple(value)?),
        };
        attrs.push(Attr { key, value });
    }
    let mut open = |parts: &mut Parts<'_, '_>, rule| {
        parts.take(rule).map(|brace| {
            span.end = brace.span().start;
            Block::default()
        })
    };
    let means = open(&mut parts, Rule::means_open);
    let body = open(&mut parts, Rule::body_open);
    if means.is_some() || body.is_some() {
        span.end = parts.trimmed(span);
    }
    Ok(Spec { kind, name, exec, inputs, outputs, attrs, means, body, span })
}

fn spec_kind(node: &Node<'_, '_>) -> Answer<SpecKind> {
    let (word, op) = match node.text().split_once('.') {
        Some((word, op)) => (word, Some(op)),
        None => (node.text(), None),
    };
    match word {
        "Move" => match op {
            None => Ok(SpecKind::Move),
            some => {
                pick(node, some, AccumulateOp::ALL, AccumulateOp::as_str).map(SpecKind::Accumulate)
            }
        },
        "Select" => bare(node, SpecKind::Select, op),
        "Init" => bare(node, SpecKind::Init, op),
        "Iota" => bare(node, SpecKind::Iota, op),
        "Spec" => bare(node, SpecKind::Generic, op),
        "MatMul" => match op {
            None => Ok(SpecKind::MatMul),
            Some("set") => Ok(SpecKind::MatMulSet),
            Some(_) => Err(wrong(node, op, &["set"])),
        },
        "UnaryPointwise" => pick(node, op, UnaryOp::ALL, UnaryOp::as_str).map(SpecKind::Unary),
        "BinaryPointwise" => pick(node, op, BinaryOp::ALL, BinaryOp::as_str).map(SpecKind::Binary),
        "Reduction" => pick(node, op, ReduceOp::ALL, ReduceOp::as_str).map(SpecKind::Reduction),
        "Shfl" => pick(node, op, ShflOp::ALL, ShflOp::as_str).map(SpecKind::Shfl),
        _ => Err(internal(node.span(), "a spec")),
    }
}

fn bare(node: &Node<'_, '_>, kind: SpecKind, op: Option<&str>) -> Answer<SpecKind> {
    if op.is_none() { Ok(kind) } else { Err(wrong(node, op, &[])) }
}

fn pick<T: FromStr + Copy>(
    node: &Node<'_, '_>,
    op: Option<&str>,
    all: &[T],
    text: fn(T) -> &'static str,
) -> Answer<T> {
    op.and_then(|op| op.parse().ok()).ok_or_else(|| {
        let known: Vec<_> = all.iter().map(|v| text(*v)).collect();
        wrong(node, op, &known)
    })
}

/// The error for an operation that the spec does not have, or lacks.
fn wrong(node: &Node<'_, '_>, op: Option<&str>, known: &[&str]) -> Box<Diagnostic> {
    let word = node.text().split('.').next().unwrap_or("");
    let message = match op {
        Some(op) => format!("`{word}` has no operation `{}`", short(op)),
        None => {
            format!("`{word}` needs an operation, as in `{word}.{}`", known.first().unwrap_or(&""))
        }
    };
    let d = Diagnostic::new(Code::Syntax, node.span(), message);
    Box::new(if known.is_empty() {
        d.label("no operation is due here").help(format!("write `{word}`"))
    } else {
        d.label("expected an operation").help(one_of(op.unwrap_or(""), known.iter().copied()))
    })
}
