//! Parses types and views of data and thread tensors, such as `[2,2].[8,8].f16.SH` and
//! `%A.tile([8,8])[0, 0]`.

use super::Rule;
use super::errors::{called_here, one_of, short};
use super::expr::{expr, layout, tuple, tuples};
use super::tree::{Answer, Node, Parts, internal};
use crate::ast::{Dims, Expr, LayoutExpr, TensorType, ThreadScalar, ThreadType, Tiler, TupleExpr};
use crate::ast::{Pad, Pick, ResultType, TypeAttr, View, ViewOp};
use crate::diag::{Code, Diagnostic, nearest};
use crate::scalar::{Memory, Scalar};
use std::str::FromStr;

/// `[2,2].[8,8].f16.SH{..}`
pub(super) fn data_type(node: Node<'_, '_>) -> Answer<TensorType> {
    let mut parts = node.parts();
    let span = parts.whole();
    let levels = levels(&mut parts)?;
    let word = parts.next(Rule::scalar)?;
    let param = word.type_param();
    let scalar = match param {
        Some(_) => Scalar::F32,
        None => spelled(&word, "scalar type", Scalar::ALL.iter().copied(), Scalar::as_str)?,
    };
    let memory = match parts.take(Rule::memory) {
        Some(node) => Some(spelled(&node, "memory", proposed(), Memory::as_str)?),
        None => None,
    };
    let mut attrs = type_attrs(&mut parts)?;
    attrs.splice(0..0, param.map(TypeAttr::Scalar));
    Ok(TensorType { levels, scalar, memory, attrs, span })
}

/// `[8,8].f16.SH{..}`, or a part of a type: `f16`, `SH`, `f16.SH{..}`.
pub(super) fn result_type(node: Node<'_, '_>) -> Answer<ResultType> {
    if node.rule() == Rule::data_type {
        return data_type(node).map(ResultType::whole);
    }
    let mut parts = node.parts();
    let span = parts.whole();
    let word = parts.next(Rule::ident)?;
    let place = parts.take(Rule::memory);
    let mut ty = ResultType { levels: vec![], scalar: None, memory: None, attrs: vec![], span };
    if place.is_none() {
        ty.memory = word.text().trim_end().parse().ok();
    }
    let param = word.type_param().filter(|_| ty.memory.is_none());
    if ty.memory.is_none() && param.is_none() {
        ty.scalar = Some(word.text().trim_end().parse().map_err(|_| neither(&word))?);
    }
    if let Some(place) = place {
        let memory = place.text().trim_end().parse();
        ty.memory = Some(memory.map_err(|_| unknown_memory(&place, "memory"))?);
    }
    ty.attrs = type_attrs(&mut parts)?;
    ty.attrs.splice(0..0, param.map(TypeAttr::Scalar));
    Ok(ty)
}

/// `{swizzle=(3,4,3), align=128}`, if it is there.
fn type_attrs(parts: &mut Parts<'_, '_>) -> Answer<Vec<TypeAttr>> {
    let mut attrs = Vec::new();
    if let Some(node) = parts.take(Rule::type_attrs) {
        let mut inner = node.parts();
        while let Some(attr) = inner.take(Rule::type_attr) {
            attrs.push(type_attr(attr.parts().some()?)?);
        }
    }
    Ok(attrs)
}

/// `[2,2].[8].thread`
pub(super) fn thread_type(node: Node<'_, '_>) -> Answer<ThreadType> {
    let mut parts = node.parts();
    let span = parts.whole();
    let levels = levels(&mut parts)?;
    let scalar = parts.next(Rule::thread_scalar)?;
    let scalar = spelled(
        &scalar,
        "kind of thread",
        ThreadScalar::ALL.iter().copied(),
        ThreadScalar::as_str,
    )?;
    Ok(ThreadType { levels, scalar, span })
}

/// The memories that messages suggest. Read-only memories only occur in full types.
fn proposed() -> impl Iterator<Item = Memory> + Clone {
    Memory::ALL.iter().copied().filter(|m| m.is_writable())
}

/// The error for a word that is not a memory.
fn unknown_memory(node: &Node<'_, '_>, what: &str) -> Box<Diagnostic> {
    let word = node.text().trim_end();
    let message = format!("unknown {what} `{}`", short(word));
    let d = Diagnostic::new(Code::Syntax, node.span(), message).label(format!("expected a {what}"));
    let names = || proposed().map(Memory::as_str);
    let memory = names().find(|m| m.eq_ignore_ascii_case(word));
    Box::new(match memory.or_else(|| called_here(word, names())) {
        Some(memory) => d.did_you_mean(memory),
        None => d.help(format!("name a memory: {}", memories())),
    })
}

/// Lists the memories: `` `GL` is global, `SH` shared ``.
fn memories() -> String {
    let said =
        |(i, m): (usize, Memory)| format!("`{m}` {}{}", if i == 0 { "is " } else { "" }, m.words());
    proposed().enumerate().map(said).collect::<Vec<_>>().join(", ")
}

/// The error for a word that is neither a scalar type nor a memory.
fn neither(node: &Node<'_, '_>) -> Box<Diagnostic> {
    let word = node.text().trim_end();
    let d = unknown_memory(node, "scalar type or memory");
    if !d.edits.is_empty() {
        return d;
    }
    let types = Scalar::ALL.iter().map(|s| s.as_str());
    let all: Vec<_> = types.clone().map(|s| format!("`{s}`")).collect();
    Box::new(match called_here(word, types.clone()).or_else(|| nearest(word, types)) {
        Some(near) => d.did_you_mean(near),
        None => d.help(format!("name a memory: {}; or a type: {}", memories(), all.join(", "))),
    })
}

/// Parses a word that must be one of a list.
fn spelled<T: FromStr + Copy>(
    node: &Node<'_, '_>,
    what: &str,
    all: impl Iterator<Item = T> + Clone,
    text: fn(T) -> &'static str,
) -> Answer<T> {
    let word = node.text().trim_end();
    T::from_str(word).map_err(|_| {
        let message = format!("unknown {what} `{}`", short(word));
        let d = Diagnostic::new(Code::Syntax, node.span(), message);
        Box::new(one_of(d.label(format!("expected a {what}")), word, all.map(text)))
    })
}

fn levels(parts: &mut Parts<'_, '_>) -> Answer<Vec<Dims>> {
    let mut levels = Vec::new();
    while let Some(level) = parts.take(Rule::level) {
        levels.push(dims(level)?);
    }
    Ok(levels)
}

fn dims(node: Node<'_, '_>) -> Answer<Dims> {
    let mut parts = node.parts();
    let span = parts.whole();
    let mut modes = tuples(&mut parts)?;
    let Some(rest) = parts.take(Rule::level_rest) else {
        return Ok(Dims { modes, strides: None, span });
    };
    let mut shape = modes.pop().ok_or_else(|| internal(span, "a shape"))?;
    let stride = rest.parts().next(Rule::value)?;
    let stride_span = stride.span();
    let mut stride = tuple(stride)?;
    let (count, strides) = match (&mut shape, &mut stride) {
        (TupleExpr::Leaf(_), TupleExpr::Leaf(_)) => {
            return Ok(Dims { modes: vec![shape], strides: Some(vec![stride]), span });
        }
        (TupleExpr::Tuple(modes), TupleExpr::Tuple(strides)) if modes.len() == strides.len() => {
            let (modes, strides) = (std::mem::take(modes), std::mem::take(strides));
            return Ok(Dims { modes, strides: Some(strides), span });
        }
        (shape, strides) => (count(shape), count(strides)),
    };
    Err(Box::new(
        Diagnostic::new(Code::Syntax, span, "shape and strides do not match")
            .label(format!("the shape is {count}"))
            .related(stride_span, format!("the stride is {strides}"))
            .help("give every mode one stride: `[8:1]`, `[(8,8):(8,1)]`"),
    ))
}

fn count(tuple: &TupleExpr) -> String {
    match tuple {
        TupleExpr::Leaf(_) => "a number".to_owned(),
        TupleExpr::Tuple(modes) => format!("a tuple of {}", modes.len()),
    }
}

fn type_attr(node: Node<'_, '_>) -> Answer<TypeAttr> {
    let (rule, span) = (node.rule(), node.span());
    let mut parts = node.parts();
    Ok(match rule {
        Rule::open => TypeAttr::Open,
        Rule::tv_attr => {
            let layout = layout(parts.next(Rule::layout)?)?;
            TypeAttr::Tv(layout, parts.next(Rule::thread_name)?.without_sigil())
        }
        Rule::swizzle => TypeAttr::Swizzle(swizzle(&mut parts)?),
        Rule::align => TypeAttr::Align(expr(parts.next(Rule::value)?)?),
        Rule::at => TypeAttr::At(expr(parts.next(Rule::value)?)?),
        Rule::reuses => TypeAttr::Reuses(parts.next(Rule::data_name)?.without_sigil()),
        _ => return Err(internal(span, "a type attribute")),
    })
}

fn swizzle(parts: &mut Parts<'_, '_>) -> Answer<Box<[Expr; 3]>> {
    let mut number = || expr(parts.next(Rule::value)?);
    Ok(Box::new([number()?, number()?, number()?]))
}

/// `%A.tile([8,8])[@i, _]`, `#cta.tile([32])`
pub(super) fn view(node: Node<'_, '_>) -> Answer<View> {
    let mut parts = node.parts();
    let span = parts.whole();
    let base = parts.some()?.without_sigil();
    let mut ops = Vec::new();
    while let Some(op) = parts.any() {
        ops.push(view_op(op)?);
    }
    Ok(View { base, ops, span })
}

/// `.tile([8,8])`, `[@i, _]`
pub(super) fn view_op(op: Node<'_, '_>) -> Answer<ViewOp> {
    match op.rule() {
        Rule::index => index(&mut op.parts()),
        Rule::method => method(op.parts().some()?),
        _ => Err(internal(op.span(), "a view")),
    }
}

/// `[@i, _]`, `[%rows, 0..64]`
fn index(parts: &mut Parts<'_, '_>) -> Answer<ViewOp> {
    let mut picks = Vec::new();
    while let Some(entry) = parts.any() {
        let pick = match entry.rule() {
            Rule::keep => Pick::Keep,
            Rule::data_name => Pick::From(entry.without_sigil()),
            Rule::range => {
                let span = entry.span();
                let Some(Pick::At(from)) = picks.pop() else {
                    return Err(internal(span, "where a range begins"));
                };
                Pick::Range(from, expr(entry.parts().next(Rule::value)?)?)
            }
            _ => Pick::At(expr(entry)?),
        };
        picks.push(pick);
    }
    if picks.iter().any(|p| matches!(p, Pick::Range(..) | Pick::From(_))) {
        return Ok(ViewOp::Pick(picks));
    }
    let plain = picks.into_iter().map(|p| match p {
        Pick::At(e) => Some(e),
        _ => None,
    });
    Ok(ViewOp::Index(plain.collect()))
}

fn method(node: Node<'_, '_>) -> Answer<ViewOp> {
    let (rule, span) = (node.rule(), node.span());
    let mut parts = node.parts();
    Ok(match rule {
        Rule::mine => ViewOp::Mine,
        Rule::scalar_op => ViewOp::Scalar,
        Rule::elect => ViewOp::Elect,
        Rule::transpose => ViewOp::Permute(vec![]),
        Rule::permute => {
            let order = numbers(parts.next(Rule::modes_list)?)?;
            if order.is_empty() {
                return Err(Box::new(
                    Diagnostic::new(Code::Syntax, span, "a permutation needs modes")
                        .label("the list is empty")
                        .help("name every mode once: `.permute([1,0])`"),
                ));
            }
            ViewOp::Permute(order)
        }
        Rule::iota => ViewOp::Iota(expr(parts.next(Rule::value)?)?),
        Rule::plus => ViewOp::Plus(expr(parts.next(Rule::value)?)?),
        Rule::pad => {
            let before = numbers(parts.next(Rule::modes_list)?)?;
            let behind = parts.take(Rule::modes_list).map(numbers).transpose()?.unwrap_or_default();
            let value = parts.take(Rule::value).map(expr).transpose()?;
            ViewOp::Pad(Box::new(Pad { before, behind, value }))
        }
        Rule::peer => ViewOp::Peer(expr(parts.next(Rule::value)?)?),
        Rule::tensormap => {
            let sizes = numbers(parts.next(Rule::modes_list)?)?;
            let swizzle = parts.take(Rule::swizzle).map(|s| swizzle(&mut s.parts())).transpose()?;
            ViewOp::TensorMap { sizes, swizzle }
        }
        Rule::tile => ViewOp::Tile(tiler(parts.some()?)?),
        Rule::reshape => {
            let (shape, stride) = (parts.some()?, parts.some()?);
            let span = shape.span().to(stride.span());
            ViewOp::Reshape(LayoutExpr { shape: side(shape)?, stride: side(stride)?, span })
        }
        Rule::tv => {
            let layout = layout(parts.next(Rule::layout)?)?;
            ViewOp::Tv(layout, parts.next(Rule::thread_name)?.without_sigil())
        }
        _ => return Err(internal(span, "a tensor operation")),
    })
}

/// `[128,64]`
fn numbers(node: Node<'_, '_>) -> Answer<Vec<Expr>> {
    let (mut parts, mut all) = (node.parts(), Vec::new());
    while let Some(number) = parts.any() {
        all.push(expr(number)?);
    }
    Ok(all)
}

fn tiler(node: Node<'_, '_>) -> Answer<Tiler> {
    let sizes = node.rule() == Rule::sizes;
    let mut parts = node.parts();
    if sizes {
        return entries(&mut parts).map(Tiler::Sizes);
    }
    let mut modes = Vec::new();
    while let Some(mode) = parts.any() {
        modes.push(if mode.rule() == Rule::keep { None } else { Some(layout(mode)?) });
    }
    Ok(Tiler::Modes(modes))
}

/// One side of a reshape: `[2,2]` or `(2,2)`, or a number.
fn side(node: Node<'_, '_>) -> Answer<TupleExpr> {
    match node.rule() {
        Rule::modes_list => tuples(&mut node.parts()).map(TupleExpr::Tuple),
        _ => tuple(node),
    }
}

fn entries(parts: &mut Parts<'_, '_>) -> Answer<Vec<Option<Expr>>> {
    let mut entries = Vec::new();
    while let Some(entry) = parts.any() {
        entries.push(if entry.rule() == Rule::keep { None } else { Some(expr(entry)?) });
    }
    Ok(entries)
}
