//! Parses the heads of specs, sub-specs and strategies, that is, everything up to the opening
//! brace, and the statements that use a sub-spec.

use super::Rule;
use super::errors::{one_of, short};
use super::expr::{comparisons, expr, tuple};
use super::tensor::{result_type, view};
use super::tree::{Answer, Node, Parts, internal};
use crate::ast::{
    Attr, AttrValue, Block, Call, Choices, Chosen, Def, Exec, Group, Launch, Name, Number, Operand,
    Param, ResultType, Strategy, View,
};
use crate::ast::{Spec, SpecKind};
use crate::diag::{Code, Diagnostic};
use crate::scalar::{Memory, Scalar};

/// `MatMul.set @gemm <<<#grid, #cta>>> (%A, %B) -> (%C) acc=f32 {`
pub(super) fn spec(node: Node<'_, '_>) -> Answer<Spec> {
    let mut span = node.span();
    let mut parts = node.parts();
    let kind = spec_kind(&parts.next(Rule::spec_kind)?)?;
    let name = parts.take(Rule::kernel_name).map(|n| n.without_sigil());
    let exec = parts.take(Rule::exec).map(exec).transpose()?;
    let inputs = inputs(parts.next(Rule::inputs)?)?;
    let (outputs, declared) = outputs(parts.next(Rule::outputs)?)?;
    let mut attrs = Vec::new();
    while let Some(node) = parts.take(Rule::attr) {
        attrs.push(attr(node)?);
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
    Ok(Spec { kind, name, exec, inputs, outputs, declared, attrs, means, body, span })
}

/// `<<<#grid, #cta>>>`, `<<<#one>>>`, `<<<#grid:[@i < 8], #cta:[128]>>>`
fn exec(node: Node<'_, '_>) -> Answer<Exec> {
    let span = node.span();
    let mut parts = node.parts();
    let (first, second) = (parts.some()?, parts.any());
    let Some(second) = second else {
        return match first.rule() {
            Rule::thread_view => view(first).map(Exec::Threads),
            _ => Err(Box::new(
                Diagnostic::new(Code::Syntax, span, "a head that declares threads needs a grid")
                    .label("only one thread tensor is given")
                    .help("write `<<<#grid:[8], #cta:[128]>>>`"),
            )),
        };
    };
    Ok(match (group(first)?, group(second)?) {
        (Group::Of(blocks), Group::Of(threads)) => Exec::Both(blocks, threads),
        (blocks, threads) => Exec::Launch(Box::new(Launch { blocks, threads })),
    })
}

fn group(node: Node<'_, '_>) -> Answer<Group> {
    if node.rule() == Rule::thread_view {
        return view(node).map(Group::Of);
    }
    let mut parts = node.parts();
    let name = parts.next(Rule::thread_name)?.without_sigil();
    let mut modes = Vec::new();
    while let Some(extent) = parts.take(Rule::extent) {
        let mut extent = extent.parts();
        let index = extent.take(Rule::index_name).map(|n| n.name());
        modes.push((index, expr(extent.next(Rule::value)?)?));
    }
    Ok(Group::New { name, modes })
}

fn inputs(node: Node<'_, '_>) -> Answer<Vec<Operand>> {
    let mut inputs = Vec::new();
    let mut list = node.parts();
    while let Some(operand) = list.any() {
        inputs.push(match operand.rule() {
            Rule::number => {
                Operand::Number(Number { text: operand.text().to_owned(), span: operand.span() })
            }
            Rule::data_view => Operand::View(view(operand)?),
            _ => Operand::Value(expr(operand)?),
        });
    }
    Ok(inputs)
}

/// The outputs, and their stated types.
fn outputs(node: Node<'_, '_>) -> Answer<(Vec<View>, Vec<Option<ResultType>>)> {
    let (mut outputs, mut types) = (Vec::new(), Vec::new());
    let mut list = node.parts();
    while let Some(output) = list.any() {
        if output.rule() == Rule::data_view {
            outputs.push(view(output)?);
            types.push(None);
        } else if let Some(last) = types.last_mut() {
            *last = Some(result_type(output)?);
        }
    }
    if types.iter().all(Option::is_none) {
        types.clear();
    }
    Ok((outputs, types))
}

/// `acc=f32`
pub(super) fn attr(node: Node<'_, '_>) -> Answer<Attr> {
    let mut attr = node.parts();
    let name = attr.next(Rule::ident)?.name();
    let value = attr.some()?;
    let value = match value.rule() {
        Rule::word => AttrValue::Word(value.text().to_owned()),
        Rule::string => AttrValue::Text(value.text().trim_matches('"').to_owned()),
        Rule::data_view => AttrValue::View(view(value)?),
        Rule::chosen => AttrValue::Chosen(chosen(value)?),
        _ => AttrValue::Tuple(tuple(value)?),
    };
    Ok(Attr::named(name, value))
}

/// `def @scale[N, T:type] (%x) -> (%y) {`
pub(super) fn def(node: Node<'_, '_>) -> Answer<Def> {
    let mut span = node.span();
    let mut parts = node.parts();
    let name = parts.next(Rule::kernel_name)?.without_sigil();
    let mut params = Vec::new();
    if let Some(list) = parts.take(Rule::params) {
        let mut list = list.parts();
        while let Some(param) = list.take(Rule::param) {
            let mut param = param.parts();
            let name = param.next(Rule::ident)?.name();
            let is_type = param.any().is_some();
            params.push(no_reserved(Param { name, is_type, choices: None })?);
        }
    }
    let inputs = formals(parts.next(Rule::formals)?.with(&params))?;
    let outputs = formals(parts.next(Rule::formals)?.with(&params))?;
    let end = parts.some()?;
    let means = (end.rule() == Rule::means_open).then(Block::default);
    span.end = end.span().start;
    span.end = parts.trimmed(span);
    Ok(Def { name, params, inputs, outputs, means, body: Block::default(), strategy: None, span })
}

fn no_reserved(param: Param) -> Answer<Param> {
    if !param.is_type || !is_reserved(&param.name.text) {
        return Ok(param);
    }
    let message = format!("a type parameter is named `{}`", short(&param.name.text));
    Err(Box::new(
        Diagnostic::new(Code::Syntax, param.name.span, message)
            .label("a scalar type or a memory has this name")
            .help("choose another name: `T:type`"),
    ))
}

/// A strategy, such as `strategy @ring[M, E:type, BM in (64, 128)] <<<..>>> (%A) -> (%C)
/// tile=(BM,M) where M % BM == 0 means {`.
pub(super) fn strategy(node: Node<'_, '_>) -> Answer<Def> {
    let mut span = node.span();
    let mut parts = node.parts();
    let name = parts.next(Rule::kernel_name)?.without_sigil();
    let mut params = Vec::new();
    if let Some(list) = parts.take(Rule::choice_params) {
        let mut list = list.parts();
        while let Some(param) = list.take(Rule::choice_param) {
            let mut param = param.parts();
            let name = param.next(Rule::ident)?.name();
            let choices = param.take(Rule::choices).map(choices).transpose()?;
            let is_type = choices.is_none() && param.any().is_some();
            params.push(no_reserved(Param { name, is_type, choices })?);
        }
    }
    let exec = parts.take(Rule::exec).map(exec).transpose()?;
    let inputs = formals(parts.next(Rule::formals)?.with(&params))?;
    let outputs = formals(parts.next(Rule::formals)?.with(&params))?;
    let mut attrs = Vec::new();
    while let Some(node) = parts.take(Rule::attr) {
        attrs.push(attr(node)?);
    }
    let conditions = comparisons(&mut parts, Rule::conditions)?;
    let habits = comparisons(&mut parts, Rule::habits)?;
    let end = parts.next(Rule::means_open)?;
    span.end = end.span().start;
    span.end = parts.trimmed(span);
    let strategy = Some(Box::new(Strategy { exec, attrs, conditions, habits }));
    let means = Some(Block::default());
    Ok(Def { name, params, inputs, outputs, means, body: Block::default(), strategy, span })
}

/// `in (64, 128)`, `in 16..256 step 16`
fn choices(node: Node<'_, '_>) -> Answer<Choices> {
    let mut parts = node.parts();
    let first = parts.next(Rule::value)?;
    let Some(end) = parts.take(Rule::value) else { return Ok(Choices::Among(tuple(first)?)) };
    let step = match parts.take(Rule::choice_step) {
        Some(step) => Some(expr(step.parts().next(Rule::value)?)?),
        None => None,
    };
    Ok(Choices::Range { start: expr(first)?, end: expr(end)?, step })
}

/// `@ring[BM=128, S=3]`
fn chosen(node: Node<'_, '_>) -> Answer<Chosen> {
    let span = node.span();
    let mut parts = node.parts();
    let name = parts.take(Rule::kernel_name).map(|n| n.without_sigil());
    let mut values = Vec::new();
    while let Some(value) = parts.take(Rule::chosen_value) {
        let mut value = value.parts();
        let name = value.next(Rule::ident)?.name();
        values.push((name, expr(value.next(Rule::value)?)?));
    }
    Ok(Chosen { name, values, span })
}

/// Whether a word already names a scalar type or a memory.
fn is_reserved(word: &str) -> bool {
    word.parse::<Scalar>().is_ok() || word.parse::<Memory>().is_ok()
}

fn formals(node: Node<'_, '_>) -> Answer<Vec<(Name, Option<ResultType>)>> {
    let mut all = Vec::new();
    let mut list = node.parts();
    while let Some(formal) = list.take(Rule::formal) {
        let mut formal = formal.parts();
        let name = formal.next(Rule::data_name)?.without_sigil();
        all.push((name, formal.any().map(result_type).transpose()?));
    }
    Ok(all)
}

/// `@scale[128] (%a) -> (%b)`
pub(super) fn call(node: Node<'_, '_>) -> Answer<Call> {
    let span = node.span();
    let mut parts = node.parts();
    let name = parts.next(Rule::kernel_name)?.without_sigil();
    let mut args = Vec::new();
    if let Some(list) = parts.take(Rule::call_args) {
        let mut list = list.parts();
        while let Some(arg) = list.any() {
            args.push(expr(arg)?);
        }
    }
    let inputs = inputs(parts.next(Rule::inputs)?)?;
    let (outputs, declared) = outputs(parts.next(Rule::outputs)?)?;
    Ok(Call { name, args, inputs, outputs, declared, span })
}

fn spec_kind(node: &Node<'_, '_>) -> Answer<SpecKind> {
    let (word, op) = match node.text().split_once('.') {
        Some((word, op)) => (word, Some(op)),
        None => (node.text(), None),
    };
    let of_word = || SpecKind::all().filter(|kind| kind.word() == word);
    if of_word().next().is_none() {
        return Err(internal(node.span(), "a spec"));
    }
    of_word().find(|kind| kind.operation() == op).ok_or_else(|| {
        let known: Vec<_> = of_word().filter_map(SpecKind::operation).collect();
        wrong(node, op, &known)
    })
}

/// The error for an operation that the spec does not have, or for a missing operation.
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
        d.label("this spec has no operations").help(format!("write `{word}`"))
    } else {
        let d = d.label("expected an operation");
        let mut d = one_of(d, op.unwrap_or(""), known.iter().copied());
        // The span covers the name of the spec and its operation.
        d.edits.iter_mut().for_each(|edit| edit.text = format!("{word}.{}", edit.text));
        d
    })
}
