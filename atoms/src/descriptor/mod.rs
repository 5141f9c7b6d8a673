//! Matrix descriptors: how `wgmma` is told where a tile lies in shared memory.
//!
//! An operand in shared memory is named by one 64-bit value, the same in every thread: where the tile
//! begins, two strides and a swizzle mode. Only a few layouts can be said that way, the *canonical* ones
//! (PTX ISA, Asynchronous Warpgroup Level Matrix Shared Memory Layout). [`derive()`] finds the fields that
//! describe a layout, or says which canonical layout is nearest and what keeps it from being that.
//!
//! Below, T is the number of elements in 16 bytes and W the width of the swizzle mode in bytes (16 where
//! there is none, else 32, 64 or 128). Elements of a tile are counted along `mn`, the rows of A or the
//! columns of B, and along `k`. In bytes, before swizzling:
//!
//! - K-major, neighbors along k: `W·(mn mod 8) + stride·(mn / 8) + leading·(k / T) + size·(k mod T)`;
//!   under a swizzle the second 16 bytes follow the first, and the leading offset is not looked at.
//! - MN-major, neighbors along mn, c of them in W bytes:
//!   `size·(mn mod c) + u·(mn / c) + W·(k mod 8) + v·(k / 8)`, where u is the leading and v the stride offset
//!   under a swizzle, and the other way around without one.
//!
//! The swizzle is that of byte addresses, `(1,4,3)`, `(2,4,3)` or `(3,4,3)`, as the text format writes it.
//! Offsets that a swizzle must not tear apart are multiples of its period, and a tile begins in the first
//! row of a period, so that the base offset of the descriptor is always 0.

mod derive;
mod mismatch;

pub use derive::{Canonical, canonical, derive};
pub use mismatch::DescriptorMismatch;

use crate::operand::{Addressing, AtomOperand};
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::Swizzle;
use carbyne_ir::program::{Program, TensorId};
use std::fmt;

/// Along which mode of a tile neighbors in memory lie.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Major {
    /// Along k.
    K,
    /// Along m of A, n of B.
    Mn,
}

impl Major {
    /// The value of `imm-trans-a` and `imm-trans-b`.
    pub fn immediate(self) -> i64 {
        match self {
            Major::K => 0,
            Major::Mn => 1,
        }
    }
}

impl fmt::Display for Major {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Major::K => "K-major",
            Major::Mn => "MN-major",
        })
    }
}

/// How 16-byte units are exchanged within a period.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum SwizzleMode {
    /// Not at all.
    None,
    /// Among 2 units: `(1,4,3)`.
    B32,
    /// Among 4 units: `(2,4,3)`.
    B64,
    /// Among 8 units: `(3,4,3)`.
    B128,
}

/// The function that composes a descriptor in CUDA C++: of the start address in shared memory, [`Descriptor::leading`],
/// [`Descriptor::stride`] and [`SwizzleMode::code`].
pub const CUDA_FUNCTION: &str = "\
// A tile in shared memory as wgmma takes it: start address (bits 0-13), leading byte offset (16-29),
// stride byte offset (32-45), all in units of 16 bytes; swizzle mode (62-63): 0 none, 1 of 128 bytes,
// 2 of 64, 3 of 32.
__device__ __forceinline__ unsigned long long matrix_descriptor(
    unsigned start, unsigned leading, unsigned stride, unsigned long long swizzle) {
  return (start & 0x3ffff) >> 4 | leading >> 4 << 16 |
         static_cast<unsigned long long>(stride >> 4) << 32 | swizzle << 62;
}";

/// Bytes of the unit that no swizzle mode tears apart.
const UNIT: i64 = 16;
/// Rows of 8 along mn, or along k of MN-major tiles, are one pattern.
const ROWS: i64 = 8;
/// Largest offset that a field of 14 bits holds, in bytes.
const MAX_OFFSET: i64 = (1 << 18) - UNIT;

impl SwizzleMode {
    /// Every mode.
    pub const ALL: [SwizzleMode; 4] =
        [SwizzleMode::None, SwizzleMode::B32, SwizzleMode::B64, SwizzleMode::B128];

    /// The mode that does to byte addresses what `swizzle` does; none for other swizzles.
    pub fn of(swizzle: Option<Swizzle>) -> Option<SwizzleMode> {
        let Some(s) = swizzle.filter(|s| !s.is_none()) else { return Some(SwizzleMode::None) };
        SwizzleMode::ALL.into_iter().find(|m| m.swizzle() == s)
    }

    /// What it does to byte addresses.
    pub fn swizzle(self) -> Swizzle {
        let bits = (self.width() / UNIT).trailing_zeros();
        if bits == 0 { Swizzle::default() } else { Swizzle::new(bits, 4, 3).unwrap_or_default() }
    }

    /// Bytes of a row of a period: 16, 32, 64 or 128.
    pub fn width(self) -> i64 {
        match self {
            SwizzleMode::None => UNIT,
            SwizzleMode::B32 => 32,
            SwizzleMode::B64 => 64,
            SwizzleMode::B128 => 128,
        }
    }

    /// The multiple of bytes at which the pattern starts anew: 256, 512 or 1024; a unit without a swizzle.
    pub fn period(self) -> i64 {
        match self {
            SwizzleMode::None => UNIT,
            _ => ROWS * self.width(),
        }
    }

    /// The value of bits 62 and 63.
    pub fn code(self) -> u64 {
        match self {
            SwizzleMode::None => 0,
            SwizzleMode::B128 => 1,
            SwizzleMode::B64 => 2,
            SwizzleMode::B32 => 3,
        }
    }

    /// What a tensor's type says for it.
    fn attribute(self) -> &'static str {
        match self {
            SwizzleMode::None => "no swizzle",
            SwizzleMode::B32 => "`swizzle=(1,4,3)`",
            SwizzleMode::B64 => "`swizzle=(2,4,3)`",
            SwizzleMode::B128 => "`swizzle=(3,4,3)`",
        }
    }
}

impl fmt::Display for SwizzleMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SwizzleMode::None => f.write_str("no swizzle"),
            mode => write!(f, "{}B swizzle", mode.width()),
        }
    }
}

/// What an instruction that takes a descriptor demands of the operand.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct MatrixRule {
    /// Which of the tile's two modes is k: 1 of A\[m,k\], 0 of B\[k,n\].
    pub k_mode: usize,
    /// Which majors it takes.
    pub majors: &'static [Major],
}

/// The fields of a descriptor, but for the start address.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Not part of the descriptor: an immediate of the instruction.
    pub major: Major,
    /// Bits 62 and 63.
    pub swizzle: SwizzleMode,
    /// Leading dimension byte offset, bits 16 to 29 in units of 16.
    pub leading: i64,
    /// Stride dimension byte offset, bits 32 to 45 in units of 16.
    pub stride: i64,
}

impl Descriptor {
    /// All bits but those of the start address, which go to the lowest 14 in units of 16 bytes.
    pub fn bits(&self) -> u64 {
        let field = |bytes: i64| (bytes / UNIT) as u64 & 0x3fff;
        field(self.leading) << 16 | field(self.stride) << 32 | self.swizzle.code() << 62
    }

    /// Where a tile may begin: fewer than this many bytes past a multiple of the period. K-major tiles may
    /// begin within a row of the pattern, which is how a slice along k is taken; their two units stay in it.
    pub fn start_reach(&self) -> i64 {
        match self.major {
            Major::K => (self.swizzle.width() - UNIT).max(UNIT),
            Major::Mn => UNIT,
        }
    }

    /// Whether a tile may begin at that byte of a buffer that is aligned to the period.
    pub fn may_start_at(&self, byte: i64) -> bool {
        byte.rem_euclid(self.swizzle.period()) < self.start_reach() && byte % UNIT == 0
    }
}

/// The descriptor of a tensor that is given to an atom's operand, with what is known of where it begins. The
/// buffer is aligned to its swizzle's period, and to 16 bytes.
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
