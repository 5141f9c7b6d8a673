//! Defines [`DescriptorMismatch`], the reason why `wgmma` cannot address an operand through a
//! matrix descriptor, as text, and the help of the error message, for example the nearest layout
//! that has a descriptor.

use super::matrix::{MAX_OFFSET, Major, SwizzleMode};
use std::fmt;

/// Why no descriptor describes an operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DescriptorMismatch {
    /// The extents are not constant, or differ from those of the tile.
    Shape {
        /// The extents of the tile: `64x16`.
        want: String,
        /// The layout of the view.
        found: String,
    },
    /// The swizzle of the buffer is not one of the modes.
    Swizzle {
        /// The swizzle as the text writes it.
        found: String,
    },
    /// The tile has no contiguous vector of 16 bytes along k or along mn.
    Scattered {
        /// The number of elements of a contiguous vector of 16 bytes.
        vector: i64,
        /// The layout of the view.
        found: String,
        /// A layout that would fit, with its swizzle.
        canonical: String,
    },
    /// The instruction does not take this major.
    Major {
        /// The major of the layout.
        found: Major,
    },
    /// The rows have the distance that another mode needs.
    OtherMode {
        /// The mode whose rows have this distance.
        want: SwizzleMode,
        /// The mode of the buffer.
        found: SwizzleMode,
    },
    /// A distance differs from that of the nearest canonical layout.
    Stride {
        /// The objects between which the distance is measured.
        what: &'static str,
        /// The nearest canonical layout.
        nearest: (Major, SwizzleMode),
        /// The distance in the canonical layout, in bytes.
        want: i64,
        /// The distance in the view, in bytes.
        found: i64,
        /// A layout that would fit, with its swizzle.
        canonical: String,
    },
    /// The layout differs from the nearest canonical one at a later element.
    Irregular {
        /// The first element that differs, along mn and k.
        at: (i64, i64),
        /// The nearest canonical layout.
        nearest: (Major, SwizzleMode),
        /// A layout that would fit, with its swizzle.
        canonical: String,
    },
    /// An MN-major tile does not fill its rows.
    Partial {
        /// Elements along mn.
        extent: i64,
        /// Elements of a row.
        row: i64,
        /// The widest mode whose rows the tile fills.
        fits: SwizzleMode,
    },
    /// A field cannot hold an offset.
    Field {
        /// The name of the field.
        field: &'static str,
        /// The offset in bytes.
        found: i64,
        /// The offset must be a multiple of this number of bytes.
        multiple: i64,
    },
    /// The tile may begin at an address that no descriptor can describe.
    Start {
        /// The period of the pattern in bytes.
        period: i64,
        /// The tile must begin fewer than this many bytes after a multiple of the period.
        reach: i64,
        /// The number of bytes after a multiple of the period at which it begins, if known.
        found: Option<i64>,
    },
}

impl DescriptorMismatch {
    /// The help: an action after which a descriptor could describe the operand.
    pub fn help(&self) -> String {
        match self {
            DescriptorMismatch::Shape { want, .. } => {
                format!("give the instruction a view of {want} elements with a constant layout")
            }
            DescriptorMismatch::Swizzle { .. } => {
                "use `swizzle=(3,4,3)`, `(2,4,3)`, `(1,4,3)`, or no swizzle".to_owned()
            }
            DescriptorMismatch::Scattered { canonical, .. }
            | DescriptorMismatch::Stride { canonical, .. }
            | DescriptorMismatch::Irregular { canonical, .. } => {
                format!("change the layout of the tile to {canonical}")
            }
            DescriptorMismatch::Major { found } => match found {
                Major::Mn => "store the operand with consecutive elements along k".to_owned(),
                Major::K => "store the operand with consecutive elements along m or n".to_owned(),
            },
            DescriptorMismatch::OtherMode { want, .. } => match want {
                SwizzleMode::None => "remove the swizzle".to_owned(),
                mode => format!("allocate the tensor with {}", mode.attribute()),
            },
            DescriptorMismatch::Partial { fits, .. } => {
                format!(
                    "allocate the tensor with {}, in rows of {} bytes",
                    fits.attribute(),
                    fits.width()
                )
            }
            DescriptorMismatch::Field { multiple, .. } => {
                format!("make the offset a multiple of {multiple} bytes, at most {MAX_OFFSET}")
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
                write!(f, "the descriptor needs a view of {want} elements, found `{found}`")
            }
            DescriptorMismatch::Swizzle { found } => {
                write!(f, "descriptors do not support the swizzle {found}")
            }
            DescriptorMismatch::Scattered { vector, found, .. } => {
                write!(
                    f,
                    "a descriptor needs {vector} consecutive elements along k, m or n, found \
                     `{found}`"
                )
            }
            DescriptorMismatch::Major { found } => {
                write!(f, "the instruction does not take {found} tiles")
            }
            DescriptorMismatch::OtherMode { want, found } => {
                let rows = want.width();
                write!(f, "rows of {rows} bytes need {want}, but the tensor has {found}")
            }
            DescriptorMismatch::Stride { what, nearest: (major, mode), want, found, .. } => {
                write!(
                    f,
                    "the distance of {what} is {found} bytes, but {want} in a {major} tile with \
                     {mode}"
                )
            }
            DescriptorMismatch::Irregular { at: (mn, k), nearest: (major, mode), .. } => {
                write!(
                    f,
                    "the layout differs from a {major} tile with {mode} at element ({mn},{k}) \
                     along mn and k"
                )
            }
            DescriptorMismatch::Partial { extent, row, .. } => {
                write!(f, "{extent} elements do not fill rows of {row} elements")
            }
            DescriptorMismatch::Field { field, found, multiple } => {
                write!(
                    f,
                    "the {field} byte offset is {found}, but must be a multiple of {multiple} up \
                     to {MAX_OFFSET}"
                )
            }
            DescriptorMismatch::Start { period, reach, found } => {
                write!(
                    f,
                    "a tile must begin less than {reach} bytes after a multiple of {period} bytes, \
                     but this one "
                )?;
                match found {
                    Some(bytes) => write!(f, "begins {bytes} bytes after one"),
                    None => write!(f, "may begin elsewhere"),
                }
            }
        }
    }
}

impl std::error::Error for DescriptorMismatch {}
