//! Matrix descriptors: how `wgmma` is told where a tile lies in shared memory.
//!
//! An operand in shared memory is named by one 64-bit value, the same in every thread: where the
//! tile begins, two strides and a swizzle mode. Only a few layouts can be said that way, the
//! *canonical* ones (PTX ISA, Asynchronous Warpgroup Level Matrix Shared Memory Layout).
//! [`derive()`] finds the fields that describe a layout, or says which canonical layout is nearest
//! and what keeps it from being that.
//!
//! Below, T is the number of elements in 16 bytes and W the width of the swizzle mode in bytes (16
//! where there is none, else 32, 64 or 128). Elements of a tile are counted along `mn`, the rows of
//! A or the columns of B, and along `k`. In bytes, before swizzling:
//!
//! - K-major, neighbors along k:
//!   `W·(mn mod 8) + stride·(mn / 8) + leading·(k / T) + size·(k mod T)`; under a swizzle the
//!   second 16 bytes follow the first, and the leading offset is not looked at.
//! - MN-major, neighbors along mn, c of them in W bytes:
//!   `size·(mn mod c) + u·(mn / c) + W·(k mod 8) + v·(k / 8)`, where u is the leading and v the
//!   stride offset under a swizzle, and the other way around without one.
//!
//! The swizzle is that of byte addresses, `(1,4,3)`, `(2,4,3)` or `(3,4,3)`, as the text format
//! writes it. Offsets that a swizzle must not tear apart are multiples of its period, and a tile
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

/// The function that composes a descriptor in CUDA C++: of the start address in shared memory,
/// [`Descriptor::leading`], [`Descriptor::stride`] and [`SwizzleMode::code`].
pub const CUDA_FUNCTION: &str = "\
// A tile in shared memory as wgmma takes it: start address (bits 0-13), leading byte offset
// (16-29), stride byte offset (32-45), all in units of 16 bytes; swizzle mode (62-63): 0 none, 1 of
// 128 bytes, 2 of 64, 3 of 32.
__device__ __forceinline__ unsigned long long matrix_descriptor(
    unsigned start, unsigned leading, unsigned stride, unsigned long long swizzle) {
  return (start & 0x3ffff) >> 4 | leading >> 4 << 16 |
         static_cast<unsigned long long>(stride >> 4) << 32 | swizzle << 62;
}";

/// The descriptor of a tensor that is given to an atom's operand, with what is known of where it
/// begins. The buffer is aligned to its swizzle's period, and to 16 bytes.
///
/// # Errors
/// Those of [`derive()`], and a beginning that is not known to be one.
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
    // What remains of the offset once whole periods are taken off.
    let rest = p.arena.rem(tensor.offset, Dim::Const(in_elements(period)));
    let known = rest.is_ok_and(|rest| {
        let below = p.arena.range(rest).1.is_some_and(|most| most < in_elements(reach));
        below && p.arena.divisor(rest) % in_elements(UNIT) == 0
    });
    if known { Ok(found) } else { Err(DescriptorMismatch::Start { period, reach }) }
}
