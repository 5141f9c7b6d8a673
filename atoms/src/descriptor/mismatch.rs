//! Why an operand has no descriptor, and what to change.

use super::matrix::{MAX_OFFSET, Major, SwizzleMode};
use std::fmt;

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
    /// The tile has no contiguous vector of 16 bytes, neither along k nor along mn.
    Scattered {
        /// Elements of a contiguous vector of 16 bytes.
        vector: i64,
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
        /// The name of the field.
        field: &'static str,
        /// The offset in bytes.
        found: i64,
        /// The number of bytes that it must be a multiple of.
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
            DescriptorMismatch::Scattered { vector, found, .. } => {
                write!(
                    f,
                    "a descriptor wants {vector} neighbors along k or along m or n, found `{found}`"
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
