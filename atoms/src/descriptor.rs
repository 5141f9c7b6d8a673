//! Matrix descriptors: how `wgmma` is told where a tile lies in shared memory.
//!
//! An operand in shared memory is named by one 64-bit value, the same in every thread: where the tile
//! begins, two strides and a swizzle mode. Only a few layouts can be said that way, the *canonical* ones
//! (PTX ISA, Asynchronous Warpgroup Level Matrix Shared Memory Layout). [`derive`] finds the fields that
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

use crate::operand::{Addressing, AtomOperand};
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::{Layout, Swizzle};
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
        match (s.bits(), s.base(), s.shift()) {
            (1, 4, 3) => Some(SwizzleMode::B32),
            (2, 4, 3) => Some(SwizzleMode::B64),
            (3, 4, 3) => Some(SwizzleMode::B128),
            _ => None,
        }
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
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
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

/// Why no descriptor describes an operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DescriptorMismatch {
    /// The extents are no constants, or not those of the tile.
    Shape {
        /// Extents of the tile, `64x16`.
        want: String,
        /// The view's layout.
        found: String,
    },
    /// The buffer's swizzle is none of the modes.
    Swizzle {
        /// As the text writes it.
        found: String,
    },
    /// Neither along k nor along mn are 16 bytes of neighbors.
    Scattered {
        /// Elements in 16 bytes.
        run: i64,
        /// The view's layout.
        found: String,
        /// A layout that would do, with its swizzle.
        canonical: String,
    },
    /// The instruction does not take this major.
    Major {
        /// The layout's.
        found: Major,
    },
    /// The rows are as far apart as another mode wants them.
    OtherMode {
        /// The mode that the rows fit.
        want: SwizzleMode,
        /// The buffer's.
        found: SwizzleMode,
    },
    /// A distance is not that of the nearest canonical layout.
    Stride {
        /// What is apart.
        what: &'static str,
        /// The nearest canonical layout.
        nearest: (Major, SwizzleMode),
        /// Bytes wanted.
        want: i64,
        /// Bytes found.
        found: i64,
        /// A layout that would do, with its swizzle.
        canonical: String,
    },
    /// The layout departs from the nearest canonical one further on.
    Irregular {
        /// The first element that does, along mn and k.
        at: (i64, i64),
        /// The nearest canonical layout.
        nearest: (Major, SwizzleMode),
        /// A layout that would do, with its swizzle.
        canonical: String,
    },
    /// An MN-major tile does not fill its rows.
    Partial {
        /// Elements along mn.
        extent: i64,
        /// Elements of a row.
        row: i64,
        /// The widest mode whose rows it fills.
        fits: SwizzleMode,
    },
    /// A field does not hold an offset.
    Field {
        /// Which.
        field: &'static str,
        /// Bytes.
        found: i64,
        /// Of what it has to be a multiple.
        multiple: i64,
    },
    /// The tile is not known to begin where a descriptor can.
    Start {
        /// The pattern's period in bytes.
        period: i64,
        /// How far into a period it may begin.
        reach: i64,
    },
}

impl DescriptorMismatch {
    /// An action that would make the operand one that has a descriptor.
    pub fn help(&self) -> String {
        match self {
            DescriptorMismatch::Shape { want, .. } => {
                format!("give the instruction a view of {want} elements of constant layout")
            }
            DescriptorMismatch::Swizzle { .. } => {
                "use `swizzle=(3,4,3)`, `(2,4,3)` or `(1,4,3)`, or none".to_owned()
            }
            DescriptorMismatch::Scattered { canonical, .. }
            | DescriptorMismatch::Stride { canonical, .. }
            | DescriptorMismatch::Irregular { canonical, .. } => {
                format!("lay the tile out as {canonical}")
            }
            DescriptorMismatch::Major { found } => match found {
                Major::Mn => "store the operand so that neighbors along k lie together".to_owned(),
                Major::K => {
                    "store the operand so that neighbors along m or n lie together".to_owned()
                }
            },
            DescriptorMismatch::OtherMode { want, .. } => match want {
                SwizzleMode::None => "leave the swizzle out".to_owned(),
                mode => format!("allocate it with {}", mode.attribute()),
            },
            DescriptorMismatch::Partial { fits, .. } => {
                format!("allocate it with {}, in rows of {} bytes", fits.attribute(), fits.width())
            }
            DescriptorMismatch::Field { multiple, .. } => {
                format!("make it a multiple of {multiple} bytes, {MAX_OFFSET} at most")
            }
            DescriptorMismatch::Start { period, .. } => {
                format!("begin the tile at a multiple of {period} bytes")
            }
        }
    }
}

impl fmt::Display for DescriptorMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DescriptorMismatch::Shape { want, found } => {
                write!(f, "a descriptor describes {want} elements, found `{found}`")
            }
            DescriptorMismatch::Swizzle { found } => write!(f, "no descriptor has swizzle {found}"),
            DescriptorMismatch::Scattered { run, found, .. } => {
                write!(
                    f,
                    "a descriptor wants {run} neighbors along k or along m or n, found `{found}`"
                )
            }
            DescriptorMismatch::Major { found } => {
                write!(f, "the instruction takes no {found} tile")
            }
            DescriptorMismatch::OtherMode { want, found } => {
                let rows = want.width();
                write!(f, "its rows of {rows} bytes are those of {want}, the tensor has {found}")
            }
            DescriptorMismatch::Stride { what, nearest: (major, mode), want, found, .. } => {
                write!(f, "{what} are {found} bytes apart, a {major} tile with {mode} has {want}")
            }
            DescriptorMismatch::Irregular { at: (mn, k), nearest: (major, mode), .. } => {
                write!(f, "at ({mn},{k}) along mn and k it departs from a {major} tile with {mode}")
            }
            DescriptorMismatch::Partial { extent, row, .. } => {
                write!(f, "{extent} elements do not fill rows of {row}")
            }
            DescriptorMismatch::Field { field, found, multiple } => {
                write!(
                    f,
                    "the {field} byte offset is {found}, no multiple of {multiple} that it holds"
                )
            }
            DescriptorMismatch::Start { period, reach } => {
                write!(
                    f,
                    "it is not known to begin within {reach} bytes after a multiple of {period}"
                )
            }
        }
    }
}

impl std::error::Error for DescriptorMismatch {}

/// The descriptor of a layout: of the view's elements in column-major order over the modes of `tile`,
/// offsets in elements of `bits` bits, in a buffer of that swizzle of byte addresses.
///
/// # Errors
/// The nearest canonical layout, and the first thing in which this one differs.
pub fn derive(
    layout: &Layout,
    swizzle: Option<Swizzle>,
    bits: i64,
    tile: &[i64],
    rule: &MatrixRule,
) -> Result<Descriptor, DescriptorMismatch> {
    let shape = || DescriptorMismatch::Shape {
        want: tile.iter().map(i64::to_string).collect::<Vec<_>>().join("x"),
        found: layout.to_string(),
    };
    let &[first, second] = tile else { return Err(shape()) };
    let (mn, k) = if rule.k_mode == 0 { (second, first) } else { (first, second) };
    let run = UNIT * 8 / bits.max(1);
    let whole = bits % 8 == 0 && UNIT * 8 % bits == 0 && mn % ROWS == 0 && k % run == 0;
    if !whole || layout.size() != mn * k {
        return Err(shape());
    }
    let view = View { layout, rule, mn, k, run, size: bits / 8 };
    let Some(mode) = SwizzleMode::of(swizzle) else {
        let found = swizzle.unwrap_or_default();
        let found = format!("({},{},{})", found.bits(), found.base(), found.shift());
        return Err(DescriptorMismatch::Swizzle { found });
    };
    let major = match (view.at(0, 1), view.at(1, 0)) {
        (1, _) => Major::K,
        (_, 1) => Major::Mn,
        _ => {
            let canonical = view.canonical(rule.majors[0], mode);
            return Err(DescriptorMismatch::Scattered {
                run,
                found: layout.to_string(),
                canonical,
            });
        }
    };
    if !rule.majors.contains(&major) {
        return Err(DescriptorMismatch::Major { found: major });
    }
    match major {
        Major::K => view.k_major(mode),
        Major::Mn => view.mn_major(mode),
    }
}

/// The descriptor of an operand that fills a row's, with what is known of where it begins. The buffer is
/// aligned to its swizzle's period, and to 16 bytes.
///
/// # Errors
/// Those of [`derive`], and a beginning that is not known to be one.
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

/// A tile in memory, with elements counted along mn and k.
struct View<'a> {
    layout: &'a Layout,
    rule: &'a MatrixRule,
    mn: i64,
    k: i64,
    /// Elements in a unit.
    run: i64,
    /// Bytes of an element.
    size: i64,
}

impl View<'_> {
    /// The offset of an element, in elements.
    fn at(&self, mn: i64, k: i64) -> i64 {
        let index = if self.rule.k_mode == 0 { k + self.k * mn } else { mn + self.mn * k };
        self.layout.at(index)
    }

    /// The same in bytes.
    fn byte(&self, mn: i64, k: i64) -> i64 {
        self.at(mn, k).saturating_mul(self.size)
    }

    fn k_major(&self, mode: SwizzleMode) -> Result<Descriptor, DescriptorMismatch> {
        let row = self.byte(1, 0);
        let group = if self.mn > ROWS { self.byte(ROWS, 0) } else { 0 };
        let unit = if self.k > self.run { self.byte(0, self.run) } else { UNIT };
        self.rows_fit(Major::K, mode, row)?;
        if mode != SwizzleMode::None && unit != UNIT {
            return Err(self.stride(Major::K, mode, "units of 16 bytes along k", UNIT, unit));
        }
        self.regular(Major::K, mode, |mn, k| {
            row * (mn % ROWS)
                + group * (mn / ROWS)
                + unit * (k / self.run)
                + self.size * (k % self.run)
        })?;
        let leading = if mode == SwizzleMode::None { field("leading", unit, UNIT)? } else { UNIT };
        let stride = field("stride", group, mode.period())?;
        Ok(Descriptor { major: Major::K, swizzle: mode, leading, stride })
    }

    fn mn_major(&self, mode: SwizzleMode) -> Result<Descriptor, DescriptorMismatch> {
        let c = mode.width() / self.size;
        let row = self.byte(0, 1);
        let group = if self.k > ROWS { self.byte(0, ROWS) } else { 0 };
        self.rows_fit(Major::Mn, mode, row)?;
        if self.mn % c != 0 {
            let fits = self.filled(mode);
            return Err(DescriptorMismatch::Partial { extent: self.mn, row: c, fits });
        }
        let along = if self.mn > c { self.byte(c, 0) } else { 0 };
        self.regular(Major::Mn, mode, |mn, k| {
            self.size * (mn % c) + along * (mn / c) + row * (k % ROWS) + group * (k / ROWS)
        })?;
        let (leading, stride) =
            if mode == SwizzleMode::None { (group, along) } else { (along, group) };
        let leading = field("leading", leading, mode.period())?;
        let stride = field("stride", stride, mode.period())?;
        Ok(Descriptor { major: Major::Mn, swizzle: mode, leading, stride })
    }

    /// The widest mode up to `mode` whose rows the tile fills along mn.
    fn filled(&self, mode: SwizzleMode) -> SwizzleMode {
        let fills = |m: &SwizzleMode| {
            m.width() <= mode.width() && self.mn % (m.width() / self.size).max(1) == 0
        };
        SwizzleMode::ALL.into_iter().rev().find(fills).unwrap_or(SwizzleMode::None)
    }

    /// Rows are as far apart as the mode is wide.
    fn rows_fit(
        &self,
        major: Major,
        mode: SwizzleMode,
        found: i64,
    ) -> Result<(), DescriptorMismatch> {
        if found == mode.width() {
            return Ok(());
        }
        if let Some(want) = SwizzleMode::ALL.into_iter().find(|m| m.width() == found) {
            return Err(DescriptorMismatch::OtherMode { want, found: mode });
        }
        // Wide rows without a swizzle are nearest to those of the widest one.
        let nearest = match (mode, major) {
            (SwizzleMode::None, Major::K) => SwizzleMode::B128,
            (SwizzleMode::None, Major::Mn) => self.filled(SwizzleMode::B128),
            _ => mode,
        };
        Err(self.stride(major, nearest, "rows", nearest.width(), found))
    }

    fn stride(
        &self,
        major: Major,
        mode: SwizzleMode,
        what: &'static str,
        want: i64,
        found: i64,
    ) -> DescriptorMismatch {
        let canonical = self.canonical(major, mode);
        DescriptorMismatch::Stride { what, nearest: (major, mode), want, found, canonical }
    }

    /// Every element is where the formula says.
    fn regular(
        &self,
        major: Major,
        mode: SwizzleMode,
        formula: impl Fn(i64, i64) -> i64,
    ) -> Result<(), DescriptorMismatch> {
        for k in 0..self.k {
            for mn in 0..self.mn {
                if self.byte(mn, k) != formula(mn, k) {
                    let canonical = self.canonical(major, mode);
                    let (at, nearest) = ((mn, k), (major, mode));
                    return Err(DescriptorMismatch::Irregular { at, nearest, canonical });
                }
            }
        }
        Ok(())
    }

    /// The densest canonical layout of the tile, in elements: what to write instead.
    fn canonical(&self, major: Major, mode: SwizzleMode) -> String {
        let mode = if major == Major::Mn { self.filled(mode) } else { mode };
        let (rows, run, groups) = (mode.width() / self.size, self.run, self.mn / ROWS);
        let (mn, k) = match (major, mode) {
            (Major::K, SwizzleMode::None) => (
                format!("(8,{groups}):({run},{})", run * ROWS),
                format!("({run},{}):(1,{})", self.k / run, run * self.mn),
            ),
            (Major::K, _) => {
                (format!("(8,{groups}):({rows},{})", rows * ROWS), format!("{}:1", self.k))
            }
            (Major::Mn, _) => (
                format!("({rows},{}):(1,{})", self.mn / rows, rows * self.k),
                format!("{}:{rows}", self.k),
            ),
        };
        let join = |a: &str, b: &str| -> Option<String> {
            let ((s, d), (t, e)) = (a.split_once(':')?, b.split_once(':')?);
            Some(format!("({s},{t}):({d},{e})"))
        };
        let joined = if self.rule.k_mode == 0 { join(&k, &mn) } else { join(&mn, &k) };
        format!("`{}` with {}", joined.unwrap_or_default(), mode.attribute())
    }
}

/// An offset that a field holds.
fn field(field: &'static str, found: i64, multiple: i64) -> Result<i64, DescriptorMismatch> {
    if (0..=MAX_OFFSET).contains(&found) && found % multiple == 0 {
        return Ok(found);
    }
    Err(DescriptorMismatch::Field { field, found, multiple })
}
