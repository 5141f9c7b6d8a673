//! Defines the fields of the 64-bit matrix descriptor by which `wgmma` finds a tile in shared
//! memory ([`Descriptor`]: leading and stride byte offset, swizzle mode), and their bits.
//! `derive.rs` computes them from a layout. The bits of the start address are not among them,
//! because a kernel adds the address at run time.
//!
//! [`Descriptor::may_start_at`] tells at which addresses a tile may begin: in the first row of a
//! period of the swizzle. There, a K-major tile may also begin at a later unit of 16 bytes, if its
//! two units stay in the row. [`MatrixRule`] is the demand of an atom on an operand: its index of
//! the mode k, and the majors (K-major, MN-major) that it takes.

use carbyne_ir::layout::Swizzle;
use std::fmt;

/// Bytes of a unit. No swizzle mode splits a unit.
pub(super) const UNIT: i64 = 16;

/// Rows of one swizzle pattern, along mn of K-major tiles and along k of MN-major tiles.
pub(super) const ROWS: i64 = 8;

/// The largest offset in bytes that a field of 14 bits can hold.
pub(super) const MAX_OFFSET: i64 = (1 << 18) - UNIT;

/// The mode of a tile whose neighbors are consecutive in memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Major {
    /// k.
    K,
    /// m of A, n of B.
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

/// The permutation of 16-byte units within a period.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum SwizzleMode {
    /// No permutation.
    None,
    /// Among 2 units: `(1,4,3)`.
    B32,
    /// Among 4 units: `(2,4,3)`.
    B64,
    /// Among 8 units: `(3,4,3)`.
    B128,
}

impl SwizzleMode {
    /// All modes.
    pub const ALL: [SwizzleMode; 4] =
        [SwizzleMode::None, SwizzleMode::B32, SwizzleMode::B64, SwizzleMode::B128];

    /// The mode that permutes byte addresses as `swizzle` does. `None` for other swizzles.
    pub fn from_swizzle(swizzle: Option<Swizzle>) -> Option<SwizzleMode> {
        let Some(s) = swizzle.filter(|s| !s.is_none()) else { return Some(SwizzleMode::None) };
        SwizzleMode::ALL.into_iter().find(|m| m.swizzle() == s)
    }

    /// The swizzle on byte addresses.
    pub fn swizzle(self) -> Swizzle {
        let bits = (self.width() / UNIT).trailing_zeros();
        if bits == 0 { Swizzle::default() } else { Swizzle::new(bits, 4, 3).unwrap_or_default() }
    }

    /// Bytes of one row of the pattern: 16, 32, 64 or 128.
    pub fn width(self) -> i64 {
        match self {
            SwizzleMode::None => UNIT,
            SwizzleMode::B32 => 32,
            SwizzleMode::B64 => 64,
            SwizzleMode::B128 => 128,
        }
    }

    /// The period of the pattern in bytes: 256, 512 or 1024; 16 without a swizzle.
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

    /// The attribute of a tensor's type, as messages show it.
    pub(super) fn attribute(self) -> &'static str {
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

/// The rule of an instruction for an operand with a descriptor.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct MatrixRule {
    /// The index of the mode k in the tile: 1 for A\[m,k\], 0 for B\[k,n\].
    pub k_mode: usize,
    /// The majors that the instruction takes.
    pub majors: &'static [Major],
}

/// The fields of a descriptor without the start address.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The major. It is an immediate of the instruction, not a part of the descriptor.
    pub major: Major,
    /// Bits 62 and 63.
    pub swizzle: SwizzleMode,
    /// Leading dimension byte offset, bits 16 to 29 in units of 16.
    pub leading: i64,
    /// Stride dimension byte offset, bits 32 to 45 in units of 16.
    pub stride: i64,
}

impl Descriptor {
    /// All bits except those of the start address: the lowest 14, in units of 16 bytes.
    pub fn bits(&self) -> u64 {
        let field = |bytes: i64| (bytes / UNIT) as u64 & 0x3fff;
        field(self.leading) << 16 | field(self.stride) << 32 | self.swizzle.code() << 62
    }

    /// A tile may begin fewer than this many bytes after a multiple of the period. A K-major tile
    /// may begin within a row of the pattern, which makes slices along k possible. Its two units
    /// must stay within the row.
    pub fn start_reach(&self) -> i64 {
        match self.major {
            Major::K => (self.swizzle.width() - UNIT).max(UNIT),
            Major::Mn => UNIT,
        }
    }

    /// Whether a tile may begin at this byte of a buffer that is aligned to the period.
    pub fn may_start_at(&self, byte: i64) -> bool {
        byte.rem_euclid(self.swizzle.period()) < self.start_reach() && byte % UNIT == 0
    }
}
