//! Computes the arguments of `cuTensorMapEncodeTiled`, which encodes the tensor map of a TMA copy,
//! and checks the rules of the hardware for them. The printed launch code contains the arguments;
//! the solver chooses boxes by the rules.
//!
//! Rules and numbers are those of the CUDA Driver API, Tensor Map Object Management, without
//! interleaving. The rule for stores ([`stores`]) was measured on an H100.

use crate::missing_facts;
use carbyne_ir::expr::{Dim, ExprArena};
use carbyne_ir::layout::Swizzle;
use carbyne_ir::leaf::{Fact, listed};
use carbyne_ir::program::{Program, TensorMap};
use carbyne_ir::scalar::Scalar;
use std::fmt;

/// Maximum number of modes.
const MOST_MODES: usize = 5;
/// Maximum extent of a box.
pub const MOST_BOX: i64 = 256;
/// Alignment in bytes of the tensor's address, of its strides, and of the rows of a box.
pub const UNIT: i64 = 16;

/// A swizzle of the rows of a box in shared memory, with the driver's number for it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SwizzleMode {
    /// `CU_TENSOR_MAP_SWIZZLE_*`
    pub number: u32,
    /// The swizzle of byte addresses, as (B, M, S).
    pub bits: (u32, u32, u32),
    /// Bytes of a row of a box; `None` if rows are not swizzled. The encoder accepts shorter rows,
    /// but their layout is not documented.
    pub row: Option<i64>,
}

/// All modes of the hardware.
pub const SWIZZLES: &[SwizzleMode] = &[
    SwizzleMode { number: 0, bits: (0, 4, 3), row: None },
    SwizzleMode { number: 1, bits: (1, 4, 3), row: Some(32) },
    SwizzleMode { number: 2, bits: (2, 4, 3), row: Some(64) },
    SwizzleMode { number: 3, bits: (3, 4, 3), row: Some(128) },
];

/// The mode of a tensor's swizzle. `None` if the hardware has no such mode.
pub fn swizzle_mode(swizzle: Option<Swizzle>) -> Option<SwizzleMode> {
    let bits = match swizzle {
        None => 0,
        Some(s) if s.is_none() => 0,
        Some(s) => {
            let found = SWIZZLES[1..]
                .iter()
                .find(|m| m.bits == (s.bits(), s.base(), s.shift().unsigned_abs()));
            found.filter(|_| s.shift() > 0)?.number
        }
    };
    SWIZZLES.iter().find(|m| m.number == bits).copied()
}

/// The driver's number of a scalar type, `CU_TENSOR_MAP_DATA_TYPE_*`. A type that the driver does
/// not have is copied as integers of its width.
pub fn data_type(scalar: Scalar) -> Option<u32> {
    Some(match scalar {
        Scalar::U8 | Scalar::I8 | Scalar::E4m3 | Scalar::E5m2 | Scalar::Bool => 0,
        Scalar::U16 | Scalar::I16 => 1,
        Scalar::U32 => 2,
        Scalar::I32 => 3,
        Scalar::U64 => 4,
        Scalar::I64 => 5,
        Scalar::F16 => 6,
        // All 32 bits of tf32 are kept, as in every Move.
        Scalar::F32 | Scalar::Tf32 => 7,
        Scalar::F64 => 8,
        Scalar::Bf16 => 9,
        Scalar::I4
        | Scalar::I2
        | Scalar::I1
        | Scalar::U4
        | Scalar::U2
        | Scalar::U1
        | Scalar::Mbarrier => return None,
    })
}

/// The arguments of the encoder besides the address. Values that are known only at launch are
/// expressions.
#[derive(Clone, Debug, PartialEq)]
pub struct MapDescription {
    /// `CU_TENSOR_MAP_DATA_TYPE_*`
    pub data_type: u32,
    /// The tensor's origin, in bytes from the beginning of its buffer.
    pub offset: Dim,
    /// Extents, the fastest mode first.
    pub extents: Vec<Dim>,
    /// Strides in bytes of every mode except the first.
    pub strides: Vec<Dim>,
    /// Extents of a box.
    pub sizes: Vec<i64>,
    /// `CU_TENSOR_MAP_SWIZZLE_*`
    pub swizzle: u32,
    /// `CU_TENSOR_MAP_L2_PROMOTION_*`: the number of bytes that the L2 cache fetches together.
    pub promotion: u32,
}

/// `CU_TENSOR_MAP_L2_PROMOTION_L2_256B`: 256 bytes.
const PROMOTION: u32 = 3;

/// Why the hardware does not support a tensor map.
#[derive(Clone, Debug, PartialEq)]
pub enum NoMap {
    /// The number of modes is 0 or too large.
    Modes(usize),
    /// Tensor maps do not support the scalar type.
    Scalar(Scalar),
    /// A stride or the address may not be a multiple of 16 bytes.
    Unaligned {
        /// The mode of the stride; `None` for the address.
        mode: Option<usize>,
        /// The stride or the address in bytes, as an expression.
        bytes: String,
        /// Facts about symbols under which it would be a multiple. Empty if there are none.
        facts: Vec<Fact>,
    },
    /// Coordinates of the tensor exceed 32 bits, the size of a box's coordinates.
    Extent {
        /// The mode; 0 is the fastest.
        mode: usize,
        /// The extent of the tensor, or a lower bound of it.
        extent: i64,
    },
    /// An extent of the box is too large.
    Box {
        /// The mode; 0 is the fastest.
        mode: usize,
        /// The extent of the box.
        extent: i64,
    },
    /// The rows of a box are not a multiple of 16 bytes.
    Row(i64),
    /// The hardware does not have the swizzle.
    Swizzle(Swizzle),
    /// The rows of a box do not have the length that the swizzle needs.
    Span {
        /// Bytes of a row of the box.
        row: i64,
        /// Bytes of a row of the swizzle mode.
        want: i64,
    },
    /// The rows of the tensor do not end at a multiple of 16 bytes, but stores of boxes write whole
    /// units of 16 bytes.
    Ends {
        /// Bytes of a row, as an expression.
        bytes: String,
        /// Facts about symbols under which it would be a multiple. Empty if there are none.
        facts: Vec<Fact>,
    },
    /// A number of bytes exceeds 64 bits.
    Overflow,
}

impl NoMap {
    /// The help: an action that fixes the tensor map.
    pub fn help(&self) -> String {
        match self {
            NoMap::Modes(_) => format!("make a map of 1 to {MOST_MODES} modes"),
            NoMap::Scalar(_) => "copy the tensor as a tensor of bytes".to_owned(),
            NoMap::Unaligned { facts, .. } | NoMap::Ends { facts, .. } if !facts.is_empty() => {
                format!("state `where {}` if this always holds", listed(facts))
            }
            NoMap::Unaligned { mode: None, .. } => {
                format!("begin the tensor map at a multiple of {UNIT} bytes")
            }
            NoMap::Unaligned { mode: Some(_), .. } => {
                format!(
                    "make the stride a multiple of {UNIT} bytes: pad the tensor, or state `div=`"
                )
            }
            NoMap::Extent { .. } => {
                format!(
                    "use tensor maps of parts of the tensor, with at most {} elements per mode",
                    i32::MAX
                )
            }
            NoMap::Box { .. } => format!("make every extent of the box at most {MOST_BOX}"),
            NoMap::Row(_) => {
                format!("make the fastest extent of the box a multiple of {UNIT} bytes")
            }
            NoMap::Swizzle(_) => {
                let all: Vec<String> = SWIZZLES[1..]
                    .iter()
                    .map(|SwizzleMode { bits: (b, m, s), .. }| format!("`swizzle=({b},{m},{s})`"))
                    .collect();
                format!("use {}, or no swizzle", all.join(", "))
            }
            NoMap::Span { want, .. } => {
                format!("make the fastest extent of the box {want} bytes, or use another swizzle")
            }
            NoMap::Ends { .. } => {
                "store by plain Moves of threads, or make the fastest extent a multiple of 16 bytes"
                    .to_owned()
            }
            NoMap::Overflow => "make the tensor smaller".to_owned(),
        }
    }
}

impl fmt::Display for NoMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoMap::Modes(n) => {
                write!(f, "a tensor map has 1 to {MOST_MODES} modes, but this one has {n}")
            }
            NoMap::Scalar(s) => write!(f, "tensor maps do not support {s}"),
            NoMap::Unaligned { mode: None, bytes, .. } => {
                write!(
                    f,
                    "the tensor begins at byte {bytes}, which may not be a multiple of {UNIT}"
                )
            }
            NoMap::Unaligned { mode: Some(m), bytes, .. } => {
                write!(
                    f,
                    "the stride of mode {m} is {bytes} bytes, which may not be a multiple of {UNIT}"
                )
            }
            NoMap::Extent { mode, extent } => {
                write!(
                    f,
                    "the tensor has {extent} elements in mode {mode}, but coordinates of boxes \
                     have 32 bits"
                )
            }
            NoMap::Box { mode, extent } => {
                write!(f, "the box has {extent} elements in mode {mode}, more than {MOST_BOX}")
            }
            NoMap::Row(bytes) => {
                write!(f, "a row of the box has {bytes} bytes, not a multiple of {UNIT}")
            }
            NoMap::Swizzle(s) => write!(f, "tensor maps do not support the swizzle {s}"),
            NoMap::Span { row, want } => {
                write!(f, "a row of the box has {row} bytes, but the swizzle needs rows of {want}")
            }
            NoMap::Ends { bytes, .. } => write!(
                f,
                "rows of the tensor have {bytes} bytes, which may not be a multiple of {UNIT}; \
                 stores of boxes write whole units, also after the end of a row"
            ),
            NoMap::Overflow => f.write_str("the bytes of the tensor map exceed 64 bits"),
        }
    }
}

/// The arguments of the encoder for a tensor map.
///
/// # Errors
/// The first rule that the tensor map breaks.
pub fn describe(p: &Program, map: &TensorMap) -> Result<MapDescription, NoMap> {
    let cx: &ExprArena = &p.arena;
    let scalar = p.buffers[map.buffer].scalar;
    let Some(data_type) = data_type(scalar) else { return Err(NoMap::Scalar(scalar)) };
    let n = map.sizes.len();
    if !(1..=MOST_MODES).contains(&n) {
        return Err(NoMap::Modes(n));
    }
    let bytes = |d: Dim| cx.mul(d, Dim::Const(scalar.bits() / 8)).map_err(|_| NoMap::Overflow);
    let aligned = |mode: Option<usize>, d: Dim| match cx.divisor(d) % UNIT {
        0 => Ok(()),
        _ => {
            let (bytes, facts) = (cx.display(d).to_string(), missing_facts::divided(p, UNIT, &[d]));
            Err(NoMap::Unaligned { mode, bytes, facts })
        }
    };
    let offset = bytes(map.offset)?;
    aligned(None, offset)?;
    let strides = map.strides[1..].iter().map(|s| bytes(*s)).collect::<Result<Vec<_>, _>>()?;
    for (i, stride) in strides.iter().enumerate() {
        aligned(Some(i + 1), *stride)?;
    }
    if let Some((mode, extent)) = map.extents.iter().enumerate().find(|(_, n)| !reaches(cx, **n)) {
        let extent = cx.range(*extent).0.unwrap_or(i64::MAX);
        return Err(NoMap::Extent { mode, extent });
    }
    if let Some((mode, extent)) = map.sizes.iter().enumerate().find(|(_, n)| **n > MOST_BOX) {
        return Err(NoMap::Box { mode, extent: *extent });
    }
    let row = map.sizes[0].saturating_mul(scalar.bits()) / 8;
    if row % UNIT != 0 {
        return Err(NoMap::Row(row));
    }
    let mode = match (swizzle_mode(map.swizzle), map.swizzle) {
        (Some(mode), _) => mode,
        (None, Some(swizzle)) => return Err(NoMap::Swizzle(swizzle)),
        (None, None) => return Err(NoMap::Overflow),
    };
    if let Some(want) = mode.row.filter(|want| row != *want) {
        return Err(NoMap::Span { row, want });
    }
    let (extents, sizes) = (map.extents.clone(), map.sizes.clone());
    let (swizzle, promotion) = (mode.number, PROMOTION);
    Ok(MapDescription { data_type, offset, extents, strides, sizes, swizzle, promotion })
}

/// Whether coordinates of boxes, which have 32 bits, can reach this number of elements. An extent
/// that is known only at launch is accepted; the launch checks it.
pub fn reaches(cx: &ExprArena, extent: Dim) -> bool {
    cx.range(extent).0.is_none_or(|least| i32::try_from(least).is_ok())
}

/// Whether rows of `row` elements are known to end at a multiple of 16 bytes, as [`stores`] needs.
pub fn ends_whole(cx: &ExprArena, row: Dim, scalar: Scalar) -> bool {
    cx.divisor(row).saturating_mul(scalar.bits()) / 8 % UNIT == 0
}

/// Checks that boxes may be stored by a tensor map. Loads read zeros after the last element of a
/// row. Stores write the whole 16-byte unit of the last element, and overwrite what lies between
/// the end of the row and the next row. PTX does not document this. It was measured on an H100, for
/// elements of 1 to 8 bytes, with and without a swizzle.
///
/// # Errors
/// [`NoMap::Ends`].
pub fn stores(p: &Program, map: &TensorMap) -> Result<(), NoMap> {
    let cx: &ExprArena = &p.arena;
    let scalar = p.buffers[map.buffer].scalar;
    let Some(row) = map.extents.first() else { return Ok(()) };
    let bytes = cx.mul(*row, Dim::Const(scalar.bits() / 8)).map_err(|_| NoMap::Overflow)?;
    if ends_whole(cx, *row, scalar) {
        return Ok(());
    }
    Err(NoMap::Ends { bytes: cx.display(bytes), facts: missing_facts::divided(p, UNIT, &[bytes]) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_found_by_their_swizzle() {
        let number = |b, m, s| swizzle_mode(Swizzle::new(b, m, s).ok()).map(|m| m.number);
        assert_eq!(
            [number(1, 4, 3), number(2, 4, 3), number(3, 4, 3)],
            [Some(1), Some(2), Some(3)]
        );
        assert_eq!([number(3, 3, 3), number(2, 4, 4), number(0, 4, 3)], [None, None, Some(0)]);
        assert_eq!(swizzle_mode(None).map(|m| m.number), Some(0));
        for mode in &SWIZZLES[1..] {
            let (b, m, _) = mode.bits;
            // The swizzle permutes bits within a row only.
            assert_eq!(mode.row, Some(1 << (b + m)), "{mode:?}");
        }
    }
}
