//! Derives the symbols of a program, such as the `N` of `[N,64]`, from extents and strides of the
//! tensors that the caller passes, and lists the symbols that cannot be derived. The function of
//! tvm-ffi takes only the latter as arguments.

use super::interface::Form;
use crate::{Fallible, errors};
use carbyne_ir::expr::{Dim, Node, VarId};
use carbyne_ir::program::{BufferId, Program};

/// A number of a tensor that the caller passes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The extent of a mode.
    Extent(usize),
    /// The stride of a mode.
    Stride(usize),
    /// The number of elements.
    Elements,
}

/// An equation for a size: `factor * size + rest` is a number of a tensor, in scalars.
pub(super) struct Source {
    pub(super) var: VarId,
    pub(super) buffer: BufferId,
    pub(super) side: Side,
    pub(super) factor: i64,
    /// An expression of sizes that have been derived before.
    pub(super) rest: Dim,
}

/// The numbers of a tensor, each with its expression in the program.
fn sides(form: &Form) -> Vec<(Side, Dim)> {
    match form {
        Form::Flat(n) => vec![(Side::Elements, *n)],
        Form::Modes(modes) => {
            let extents = modes.iter().enumerate().map(|(i, (n, _))| (Side::Extent(i), *n));
            let strides = modes.iter().enumerate().map(|(i, (_, s))| (Side::Stride(i), *s));
            extents.chain(strides).collect()
        }
    }
}

/// The equations for sizes, in an order in which each size follows from earlier ones.
pub(super) fn sources(program: &Program, caller: &[BufferId]) -> Fallible<Vec<Source>> {
    let mut all = vec![];
    for b in caller.iter().filter(|b| !program.buffers[**b].is_number()) {
        let sides = sides(&Form::of(program, *b)?);
        all.extend(sides.into_iter().map(|(side, dim)| (*b, side, dim)));
    }
    // Extents come before strides, since the stride of a mode with one element is meaningless.
    all.sort_by_key(|(_, side, _)| matches!(side, Side::Stride(_)));
    let mut found: Vec<Source> = vec![];
    loop {
        let before = found.len();
        for (buffer, side, dim) in &all {
            let Some((var, factor, rest)) = unknown(program, *dim, &found)? else { continue };
            found.push(Source { var, buffer: *buffer, side: *side, factor, rest });
        }
        if found.len() == before {
            return Ok(found);
        }
    }
}

/// The one unknown size in a number, if all others are known.
fn unknown(program: &Program, dim: Dim, found: &[Source]) -> Fallible<Option<(VarId, i64, Dim)>> {
    let cx = &program.arena;
    let is_open = |v: VarId| found.iter().all(|s| s.var != v);
    if let Some(var) = cx.var_id(dim) {
        return Ok(is_open(var).then_some((var, 1, Dim::Const(0))));
    }
    let Dim::Expr(id) = dim else { return Ok(None) };
    let Node::Linear { terms, .. } = cx.node(id) else { return Ok(None) };
    let mut open = None;
    for (term, factor) in terms.iter() {
        let Some(var) = cx.var_id(Dim::Expr(*term)) else { return Ok(None) };
        if is_open(var) && open.replace((var, *factor, Dim::Expr(*term))).is_some() {
            return Ok(None);
        }
    }
    let Some((var, factor, of)) = open else { return Ok(None) };
    let own = cx.mul(of, Dim::Const(factor));
    let rest = own.and_then(|own| cx.sub(dim, own)).map_err(errors::layout)?;
    Ok(Some((var, factor, rest)))
}

/// The sizes that cannot be derived from the shapes and strides of the caller's tensors, in text
/// order.
///
/// # Errors
/// Sizes beyond 64 bits.
pub fn open_sizes(program: &Program, caller: &[BufferId]) -> Fallible<Vec<VarId>> {
    let found = sources(program, caller)?;
    let is_open = |v: &&VarId| found.iter().all(|s| s.var != **v);
    Ok(program.symbols.iter().filter(is_open).copied().collect())
}
