//! The fields of a matrix descriptor, and what an instruction demands of them.

use carbyne_ir::layout::Swizzle;
use std::fmt;

/// Bytes of the unit that no swizzle mode tears apart.
pub(super) const UNIT: i64 = 16;

/// Rows of 8 along mn, or along k of MN-major tiles, are one pattern.
pub(super) const ROWS: i64 = 8;

/// Largest offset that a field of 14 bits holds, in bytes.
pub(super) const MAX_OFFSET: i64 = (1 << 18) - UNIT;

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

impl SwizzleMode {
    /// Every mode.
    pub const ALL: [SwizzleMode; 4] =
        [SwizzleMode::None, SwizzleMode::B32, SwizzleMode::B64, SwizzleMode::B128];

    /// The mode that does to byte addresses what `swizzle` does; none for other swizzles.
    pub fn of(swizzle: Option<Swizzle>) -> Option<SwizzleMode> {
        let Some(s) = swizzle.filter(|s| !s.is_none()) else { return Some(SwizzleMode::None) };
        SwizzleMode::ALL.into_iter().find(|m| m.swizzle() == s)
    }

    /// The swizzle of byte addresses.
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

    /// The multiple of bytes at which the pattern starts anew: 256, 512 or 1024; a unit without a
    /// swizzle.
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

    /// Its attribute in the type of a tensor.
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

/// The operand that an instruction with a descriptor demands.
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

    /// Where a tile may begin: fewer than this many bytes past a multiple of the period. K-major
    /// tiles may begin within a row of the pattern, which is how a slice along k is taken; their
    /// two units stay in it.
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
