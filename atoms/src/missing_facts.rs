//! Finds the facts about symbols that are missing for an operand to be aligned, for example that
//! `N` is a multiple of 8. Error messages suggest these facts.

use carbyne_ir::expr::Dim;
use carbyne_ir::expr::prove::divisors_missing;
use carbyne_ir::leaf::Fact;
use carbyne_ir::program::{Program, TensorId};

/// The facts under which a view begins at a multiple of `bytes` bytes and all strides other than
/// that of the consecutive mode are multiples as well. Empty if the view is aligned already, or if
/// no fact about symbols would make it so.
pub fn aligned(p: &Program, t: TensorId, bytes: i64) -> Vec<Fact> {
    let layout = p.tensors[t].concat();
    let strides = layout.leaves().iter().map(|(_, stride)| *stride);
    let symbolic = strides.filter(|stride| stride.as_const().is_none());
    let dims: Vec<Dim> = std::iter::once(p.tensors[t].offset).chain(symbolic).collect();
    in_bytes(p, t, bytes, &dims)
}

/// The facts under which a view begins at a multiple of `bytes` bytes.
pub(crate) fn begins_aligned(p: &Program, t: TensorId, bytes: i64) -> Vec<Fact> {
    in_bytes(p, t, bytes, &[p.tensors[t].offset])
}

/// The facts under which all `dims` are multiples of `n`.
pub(crate) fn divided(p: &Program, n: i64, dims: &[Dim]) -> Vec<Fact> {
    match p.symbols.is_empty() {
        true => vec![],
        false => divisors_missing(&p.arena, n, dims, &p.assumptions()).unwrap_or_default(),
    }
}

/// The facts under which all `dims`, in elements of the view's tensor, are multiples of `bytes`
/// bytes. Empty if the tensor itself or its swizzle is aligned to less.
fn in_bytes(p: &Program, t: TensorId, bytes: i64, dims: &[Dim]) -> Vec<Fact> {
    let buffer = p.buffer_of(t);
    let kept =
        buffer.swizzle.filter(|s| !s.is_none()).is_none_or(|s| 1 << s.base().min(30) >= bytes);
    let bits = bytes.saturating_mul(8);
    match buffer.align >= bytes && kept && bits % buffer.scalar.bits() == 0 {
        true => divided(p, bits / buffer.scalar.bits(), dims),
        false => vec![],
    }
}
