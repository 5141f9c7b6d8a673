//! Facts about symbols that nobody has stated, with which an operand would be aligned.

use carbyne_ir::expr::Dim;
use carbyne_ir::expr::prove::divisors_missing;
use carbyne_ir::leaf::Fact;
use carbyne_ir::program::{Program, TensorId};

/// With which facts a view would begin at a multiple of so many bytes, and all of its elements that
/// are not in the consecutive mode would, too. None where it does, and where no fact about symbols
/// would do.
pub fn aligned(p: &Program, t: TensorId, bytes: i64) -> Vec<Fact> {
    let layout = p.tensors[t].concat();
    let strides = layout.leaves().iter().map(|(_, stride)| *stride);
    let symbolic = strides.filter(|stride| stride.as_const().is_none());
    let dims: Vec<Dim> = std::iter::once(p.tensors[t].offset).chain(symbolic).collect();
    in_bytes(p, t, bytes, &dims)
}

/// With which facts a view would begin at a multiple of so many bytes.
pub(crate) fn begins_aligned(p: &Program, t: TensorId, bytes: i64) -> Vec<Fact> {
    in_bytes(p, t, bytes, &[p.tensors[t].offset])
}

/// With which facts numbers would be multiples of another.
pub(crate) fn divided(p: &Program, n: i64, dims: &[Dim]) -> Vec<Fact> {
    match p.symbols.is_empty() {
        true => vec![],
        false => divisors_missing(&p.arena, n, dims, &p.assumptions()).unwrap_or_default(),
    }
}

/// The same of elements of the view's tensor, which itself and whose swizzle must be aligned so.
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
