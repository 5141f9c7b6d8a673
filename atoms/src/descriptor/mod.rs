//! Derives matrix descriptors, the 64-bit values by which `wgmma` addresses tiles in shared memory.
//! Descriptors of TMA copies are in [`crate::tensor_map`].
//!
//! A descriptor contains the start address of the tile, two strides and a swizzle mode. It is equal
//! in all threads. A descriptor can describe only a few layouts, the *canonical* ones (PTX ISA,
//! Asynchronous Warpgroup Level Matrix Shared Memory Layout). [`derive()`] derives the fields from
//! a layout. If this is impossible, it returns the reason, mostly with the nearest canonical
//! layout. [`of_operand`] derives the fields for a tensor of a program, and refuses a tensor that
//! may begin at an address that a descriptor cannot hold. [`CUDA_FUNCTION`] composes a descriptor
//! from its fields in printed kernels.
//!
//! Below, T is the number of elements in 16 bytes, and `size` the bytes of one element. W is the
//! width of the swizzle mode in bytes: 16 without a swizzle, otherwise 32, 64 or 128. `mn` counts
//! the rows of A or the columns of B. Byte offsets of the element (mn, k) before swizzling:
//!
//! - K-major, with consecutive elements along k:
//!   `W·(mn mod 8) + stride·(mn / 8) + leading·(k / T) + size·(k mod T)`. With a swizzle the second
//!   16 bytes follow the first, and the leading offset is ignored.
//! - MN-major, with consecutive elements along mn, c of them in W bytes:
//!   `size·(mn mod c) + u·(mn / c) + W·(k mod 8) + v·(k / 8)`. With a swizzle u is the leading and
//!   v the stride offset; without one u is the stride and v the leading offset.
//!
//! The swizzle permutes byte addresses. It is `(1,4,3)`, `(2,4,3)` or `(3,4,3)`, as the text format
//! writes it. The offsets between patterns of the swizzle are multiples of its period. A tile
//! begins in the first row of a period, so that the base offset of the descriptor is always 0.

mod derive;
mod matrix;
mod mismatch;

pub use derive::{Canonical, canonical, derive};
pub use matrix::{Descriptor, Major, MatrixRule, SwizzleMode};
pub use mismatch::DescriptorMismatch;

use crate::operand::{Addressing, AtomOperand};
use carbyne_ir::expr::Dim;
use carbyne_ir::program::{Program, TensorId};
use matrix::UNIT;

/// The function that composes a descriptor in CUDA C++. Its arguments are the start address in
/// shared memory, [`Descriptor::leading`], [`Descriptor::stride`] and [`SwizzleMode::code`].
pub const CUDA_FUNCTION: &str = "\
// The wgmma descriptor of a tile in shared memory: start address (bits 0-13), leading byte offset
// (16-29), stride byte offset (32-45), all in units of 16 bytes; swizzle mode (62-63): 0 none, 1
// 128 bytes, 2 64 bytes, 3 32 bytes.
__device__ __forceinline__ unsigned long long matrix_descriptor(
    unsigned start, unsigned leading, unsigned stride, unsigned long long swizzle) {
  return (start & 0x3ffff) >> 4 | leading >> 4 << 16 |
         static_cast<unsigned long long>(stride >> 4) << 32 | swizzle << 62;
}";

/// The descriptor of a tensor for an operand of an atom, if the tensor is known to begin at an
/// address that the descriptor can hold. The buffer is aligned to the period of its swizzle, and to
/// 16 bytes.
///
/// # Errors
/// The errors of [`derive()`], and [`DescriptorMismatch::Start`].
pub fn of_operand(
    p: &Program,
    t: TensorId,
    operand: &AtomOperand,
) -> Result<Descriptor, DescriptorMismatch> {
    let (tensor, buffer) = (&p.tensors[t], p.buffer_of(t));
    let layout = tensor.concat();
    let shape = || DescriptorMismatch::Shape {
        want: operand.tile.iter().map(i64::to_string).collect::<Vec<_>>().join("x"),
        found: layout.display_in(&p.arena),
    };
    let (Addressing::Descriptor(rule), Some(fixed)) = (operand.addressing, layout.to_fixed())
    else {
        return Err(shape());
    };
    let bits = buffer.scalar.bits();
    let found = derive(&fixed, buffer.swizzle, bits, &operand.tile, &rule)?;
    let (period, reach) = (found.swizzle.period(), found.start_reach());
    let in_elements = |bytes: i64| bytes * 8 / bits;
    // The offset modulo the period.
    let rest = p.arena.rem(tensor.offset, Dim::Const(in_elements(period)));
    let known = rest.as_ref().is_ok_and(|rest| {
        let rest = *rest;
        let below = p.arena.range(rest).1.is_some_and(|most| most < in_elements(reach));
        below && p.arena.divisor(rest) % in_elements(UNIT) == 0
    });
    let begins = rest.ok().and_then(|rest| rest.as_const()).map(|rest| rest * bits / 8);
    match known {
        true => Ok(found),
        false => Err(DescriptorMismatch::Start { period, reach, found: begins }),
    }
}
