//! Prints types and views of tensors, such as `[2,2].[8,8].f16.SH` and `%A.tile([8,8])[0, 0]`, each
//! on one line.

use super::expr::{expr, tuple, tuples};
use crate::ast::{Attr, AttrValue, Pad, Pick, ResultType, View, ViewOp};
use crate::ast::{
    Dims, Expr, LayoutExpr, Name, TensorType, ThreadType, Tiler, TupleExpr, TypeAttr,
};

/// `[2,2].[8,8].f16.SH{..}`
pub(super) fn data_type(out: &mut String, ty: &TensorType) {
    levels(out, &ty.levels);
    out.push_str(scalar(&ty.attrs).unwrap_or(ty.scalar.as_str()));
    if let Some(memory) = ty.memory {
        out.push('.');
        out.push_str(memory.as_str());
    }
    type_attrs(out, &ty.attrs);
}

/// `[8,8].f32`, `SH`, `f16.SH{..}`
pub(super) fn result_type(out: &mut String, ty: &ResultType) {
    levels(out, &ty.levels);
    let scalar = scalar(&ty.attrs).or(ty.scalar.map(|s| s.as_str()));
    out.push_str(scalar.unwrap_or(""));
    if let Some(memory) = ty.memory {
        out.push_str(if scalar.is_some() { "." } else { "" });
        out.push_str(memory.as_str());
    }
    type_attrs(out, &ty.attrs);
}

/// The type parameter, if one stands for the scalar type.
fn scalar(attrs: &[TypeAttr]) -> Option<&str> {
    match attrs.first() {
        Some(TypeAttr::Scalar(name)) => Some(&name.text),
        _ => None,
    }
}

fn type_attrs(out: &mut String, attrs: &[TypeAttr]) {
    let attrs = &attrs[usize::from(scalar(attrs).is_some())..];
    for (i, attr) in attrs.iter().enumerate() {
        out.push_str(if i == 0 { "{" } else { ", " });
        type_attr(out, attr);
    }
    if !attrs.is_empty() {
        out.push('}');
    }
}

/// `[2,2].[8].thread`
pub(super) fn thread_type(out: &mut String, ty: &ThreadType) {
    levels(out, &ty.levels);
    out.push_str(ty.scalar.as_str());
}

fn levels(out: &mut String, levels: &[Dims]) {
    for level in levels {
        match (&level.modes[..], level.strides.as_deref()) {
            (modes, None) => tuples(out, "[", modes, "]"),
            ([mode @ TupleExpr::Leaf(_)], Some([stride @ TupleExpr::Leaf(_)])) => {
                out.push('[');
                tuple(out, mode);
                out.push(':');
                tuple(out, stride);
                out.push(']');
            }
            (modes, Some(strides)) => {
                tuples(out, "[(", modes, "):");
                tuples(out, "(", strides, ")]");
            }
        }
        out.push('.');
    }
}

fn swizzle(out: &mut String, of: &[Expr; 3]) {
    out.push_str("swizzle=(");
    for (i, number) in of.iter().enumerate() {
        out.push_str(if i == 0 { "" } else { "," });
        expr(out, number);
    }
    out.push(')');
}

fn type_attr(out: &mut String, attr: &TypeAttr) {
    match attr {
        TypeAttr::Open => out.push('?'),
        TypeAttr::Scalar(name) => out.push_str(&name.text),
        TypeAttr::Tv(layout, threads) => {
            out.push_str("tv=");
            over(out, layout, threads);
        }
        TypeAttr::Swizzle(of) => swizzle(out, of),
        TypeAttr::Align(e) => {
            out.push_str("align=");
            expr(out, e);
        }
        TypeAttr::At(e) => {
            out.push_str("at=");
            expr(out, e);
        }
        TypeAttr::Reuses(name) => {
            out.push_str("reuses=%");
            out.push_str(&name.text);
        }
    }
}

fn over(out: &mut String, l: &LayoutExpr, threads: &Name) {
    layout(out, l);
    out.push_str(" over #");
    out.push_str(&threads.text);
}

fn layout(out: &mut String, layout: &LayoutExpr) {
    tuple(out, &layout.shape);
    out.push(':');
    tuple(out, &layout.stride);
}

/// A tensor and its view operations.
pub(super) fn view(out: &mut String, sigil: char, view: &View) {
    out.push(sigil);
    out.push_str(&view.base.text);
    for op in &view.ops {
        view_op(out, op);
    }
}

/// `.tile([8,8])`
fn view_op(out: &mut String, op: &ViewOp) {
    match op {
        ViewOp::Tile(Tiler::Sizes(sizes)) => {
            out.push_str(".tile([");
            entries(out, sizes, ",");
            out.push_str("])");
        }
        ViewOp::Tile(Tiler::Modes(modes)) => tile_modes(out, modes),
        ViewOp::Reshape(layout) => {
            out.push_str(".reshape(");
            side(out, &layout.shape);
            out.push(':');
            side(out, &layout.stride);
            out.push(')');
        }
        ViewOp::Index(index) => {
            out.push('[');
            entries(out, index, ", ");
            out.push(']');
        }
        ViewOp::Permute(order) if order.is_empty() => out.push_str(".transpose()"),
        ViewOp::Permute(list) => {
            out.push_str(".permute(");
            modes_list(out, list);
            out.push(')');
        }
        ViewOp::Pad(of) => pad(out, of),
        ViewOp::Iota(axis) => method(out, "iota", axis),
        ViewOp::Plus(number) => method(out, "plus", number),
        ViewOp::Pick(picks) => {
            out.push('[');
            for (i, entry) in picks.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                pick(out, entry);
            }
            out.push(']');
        }
        ViewOp::Mine => out.push_str(".mine"),
        ViewOp::Tv(layout, threads) => {
            out.push_str(".tv(");
            over(out, layout, threads);
            out.push(')');
        }
        ViewOp::Scalar => out.push_str(".scalar()"),
        ViewOp::Elect => out.push_str(".elect()"),
        ViewOp::Peer(rank) => method(out, "peer", rank),
        ViewOp::TensorMap { sizes, swizzle: of } => {
            out.push_str(".tensormap(");
            modes_list(out, sizes);
            if let Some(of) = of {
                out.push_str(", ");
                swizzle(out, of);
            }
            out.push(')');
        }
    }
}

/// `.iota(0)`
fn method(out: &mut String, name: &str, argument: &Expr) {
    out.push('.');
    out.push_str(name);
    out.push('(');
    expr(out, argument);
    out.push(')');
}

/// `.tile([8:1], _)`
fn tile_modes(out: &mut String, modes: &[Option<LayoutExpr>]) {
    out.push_str(".tile(");
    for (i, mode) in modes.iter().enumerate() {
        out.push_str(if i == 0 { "" } else { ", " });
        match mode {
            None => out.push('_'),
            Some(l) => {
                out.push('[');
                layout(out, l);
                out.push(']');
            }
        }
    }
    out.push(')');
}

/// `.pad([1,1], [0,0], 0.0)`
fn pad(out: &mut String, pad: &Pad) {
    out.push_str(".pad(");
    modes_list(out, &pad.before);
    if !pad.behind.is_empty() {
        out.push_str(", ");
        modes_list(out, &pad.behind);
    }
    if let Some(value) = &pad.value {
        out.push_str(", ");
        expr(out, value);
    }
    out.push(')');
}

/// `_`, `@i`, `0..64`, `%rows`
fn pick(out: &mut String, pick: &Pick) {
    match pick {
        Pick::Keep => out.push('_'),
        Pick::At(e) => expr(out, e),
        Pick::Range(from, to) => {
            expr(out, from);
            out.push_str("..");
            expr(out, to);
        }
        Pick::From(name) => {
            out.push('%');
            out.push_str(&name.text);
        }
    }
}

fn side(out: &mut String, t: &TupleExpr) {
    match t {
        TupleExpr::Leaf(e) => expr(out, e),
        TupleExpr::Tuple(modes) => tuples(out, "[", modes, "]"),
    }
}

/// `[1,2]`
fn modes_list(out: &mut String, list: &[Expr]) {
    out.push('[');
    for (i, one) in list.iter().enumerate() {
        out.push_str(if i == 0 { "" } else { "," });
        expr(out, one);
    }
    out.push(']');
}

fn entries(out: &mut String, entries: &[Option<Expr>], between: &str) {
    for (i, entry) in entries.iter().enumerate() {
        out.push_str(if i == 0 { "" } else { between });
        match entry {
            Some(e) => expr(out, e),
            None => out.push('_'),
        }
    }
}

/// `key=value`
pub(super) fn attribute(out: &mut String, attr: &Attr) {
    out.push_str(&attr.name.text);
    out.push('=');
    match &attr.value {
        AttrValue::Word(word) => out.push_str(word),
        AttrValue::Tuple(t) => tuple(out, t),
        AttrValue::View(v) => view(out, '%', v),
        AttrValue::Text(text) => {
            out.push('"');
            out.push_str(text);
            out.push('"');
        }
        AttrValue::Chosen(chosen) => {
            if let Some(name) = &chosen.name {
                out.push('@');
                out.push_str(&name.text);
            }
            out.push('[');
            for (i, (name, value)) in chosen.values.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                out.push_str(&name.text);
                out.push('=');
                expr(out, value);
            }
            out.push(']');
        }
    }
}
