//! What hardware takes of a tensor map, and how the driver's encoder is told.
//!
//! Rules and numbers are those of `cuTensorMapEncodeTiled` (CUDA Driver API, Tensor Map Object
//! Management) without interleaving.

use crate::missing;
use carbyne_ir::expr::{Dim, ExprArena};
use carbyne_ir::layout::Swizzle;
use carbyne_ir::leaf::{Fact, listed};
use carbyne_ir::program::{Program, TensorMap};
use carbyne_ir::scalar::Scalar;
use std::fmt;

/// Most modes.
const MOST_MODES: usize = 5;
/// Largest extent of a box.
pub const MOST_BOX: i64 = 256;
/// What the tensor's address, its strides and the rows of a box are multiples of, in bytes.
pub const UNIT: i64 = 16;

/// How rows of a box are swizzled in shared memory, with the driver's number.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SwizzleMode {
    /// `CU_TENSOR_MAP_SWIZZLE_*`
    pub number: u32,
    /// The swizzle of byte addresses, as (B, M, S).
    pub bits: (u32, u32, u32),
    /// Bytes of a row of a box; none for rows that are not swizzled. The encoder takes shorter rows
    /// too, but how they lie is not documented.
    pub row: Option<i64>,
}

/// Every mode that hardware has.
pub const SWIZZLES: &[SwizzleMode] = &[
    SwizzleMode { number: 0, bits: (0, 4, 3), row: None },
    SwizzleMode { number: 1, bits: (1, 4, 3), row: Some(32) },
    SwizzleMode { number: 2, bits: (2, 4, 3), row: Some(64) },
    SwizzleMode { number: 3, bits: (3, 4, 3), row: Some(128) },
];

/// The mode of a tensor's swizzle; none where hardware has no such mode.
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

/// The driver's number of a scalar type, `CU_TENSOR_MAP_DATA_TYPE_*`. Types that are only moved go
/// by their width.
pub fn data_type(scalar: Scalar) -> Option<u32> {
    Some(match scalar {
        Scalar::U8 | Scalar::I8 | Scalar::E4m3 | Scalar::E5m2 | Scalar::Bool => 0,
        Scalar::U16 | Scalar::I16 => 1,
        Scalar::U32 => 2,
        Scalar::I32 => 3,
        Scalar::U64 => 4,
        Scalar::I64 => 5,
        Scalar::F16 => 6,
        // Of tf32 all 32 bits are kept, as of every Move.
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

/// What the encoder takes besides the address, with what is known at launch only still as
/// expressions.
#[derive(Clone, Debug, PartialEq)]
pub struct MapDescription {
    /// `CU_TENSOR_MAP_DATA_TYPE_*`
    pub data_type: u32,
    /// Where the tensor begins, in bytes from the start of its buffer.
    pub offset: Dim,
    /// Extents, the fastest mode first.
    pub extents: Vec<Dim>,
    /// Bytes from one element to the next in every mode but the first.
    pub strides: Vec<Dim>,
    /// Extents of a box.
    pub sizes: Vec<i64>,
    /// `CU_TENSOR_MAP_SWIZZLE_*`
    pub swizzle: u32,
    /// `CU_TENSOR_MAP_L2_PROMOTION_*`: how much the second-level cache fetches together.
    pub promotion: u32,
}

/// 256 bytes.
const PROMOTION: u32 = 3;

/// Why hardware has no such tensor map.
#[derive(Clone, Debug, PartialEq)]
pub enum NoMap {
    /// Too many modes, or none.
    Modes(usize),
    /// A scalar type that boxes do not hold.
    Scalar(Scalar),
    /// A stride or the address is not known to be a multiple of 16 bytes.
    Unaligned {
        /// Which mode; none for the address.
        mode: Option<usize>,
        /// Bytes, as far as they are known.
        bytes: String,
        /// What would have to be stated of symbols for it to be one, where that would do.
        facts: Vec<Fact>,
    },
    /// Coordinates of the tensor leave the 32 bits of those of a box.
    Extent {
        /// In which mode, the fastest counted 0.
        mode: usize,
        /// The tensor's extent, or the least that it is.
        extent: i64,
    },
    /// A box is too long.
    Box {
        /// In which mode, the fastest counted 0.
        mode: usize,
        /// Its extent.
        extent: i64,
    },
    /// Rows of a box are no multiple of 16 bytes.
    Row(i64),
    /// A swizzle that hardware does not have.
    Swizzle(Swizzle),
    /// Rows of a box are not what the swizzle permutes.
    Span {
        /// Bytes of a row.
        row: i64,
        /// Those of the mode.
        want: i64,
    },
    /// Rows of the tensor end within the unit of 16 bytes that a box which is stored writes whole.
    Ends {
        /// Bytes of a row, as far as they are known.
        bytes: String,
        /// What would have to be stated of symbols for it to be a multiple, where that would do.
        facts: Vec<Fact>,
    },
    /// Bytes beyond 64 bits.
    Overflow,
}

impl NoMap {
    /// An action that would mend it.
    pub fn help(&self) -> String {
        match self {
            NoMap::Modes(_) => format!("make a map of 1 to {MOST_MODES} modes"),
            NoMap::Scalar(_) => "move it as a tensor of bytes".to_owned(),
            NoMap::Unaligned { facts, .. } | NoMap::Ends { facts, .. } if !facts.is_empty() => {
                format!("state `where {}`, if it is so", listed(facts))
            }
            NoMap::Unaligned { mode: None, .. } => {
                format!("begin the map at a multiple of {UNIT} bytes")
            }
            NoMap::Unaligned { mode: Some(_), .. } => {
                format!(
                    "make the stride a multiple of {UNIT} bytes: pad the tensor, or state `div=`"
                )
            }
            NoMap::Extent { .. } => {
                format!("make maps of parts of the tensor, of at most {} elements", i32::MAX)
            }
            NoMap::Box { .. } => format!("make every extent of a box at most {MOST_BOX}"),
            NoMap::Row(_) => format!("make the fastest extent of a box a multiple of {UNIT} bytes"),
            NoMap::Swizzle(_) => {
                let all: Vec<String> = SWIZZLES[1..]
                    .iter()
                    .map(|SwizzleMode { bits: (b, m, s), .. }| format!("`swizzle=({b},{m},{s})`"))
                    .collect();
                format!("use {}, or none", all.join(", "))
            }
            NoMap::Span { want, .. } => {
                format!("make the fastest extent of a box {want} bytes, or choose another swizzle")
            }
            NoMap::Ends { .. } => {
                "store it by threads, or make the fastest extent a multiple of 16 bytes".to_owned()
            }
            NoMap::Overflow => "make the tensor smaller".to_owned(),
        }
    }
}

impl fmt::Display for NoMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoMap::Modes(n) => write!(f, "a tensor map has from 1 to {MOST_MODES} modes, not {n}"),
            NoMap::Scalar(s) => write!(f, "no tensor map holds {s}"),
            NoMap::Unaligned { mode: None, bytes, .. } => {
                write!(f, "the tensor begins at byte {bytes}, no multiple of {UNIT}")
            }
            NoMap::Unaligned { mode: Some(m), bytes, .. } => {
                write!(
                    f,
                    "the stride of mode {m} is {bytes} bytes, not known to be a multiple of {UNIT}"
                )
            }
            NoMap::Extent { mode, extent } => {
                write!(
                    f,
                    "the tensor has {extent} elements in mode {mode}, and coordinates of boxes are numbers of 32 bits"
                )
            }
            NoMap::Box { mode, extent } => {
                write!(f, "a box has {extent} elements in mode {mode}, more than {MOST_BOX}")
            }
            NoMap::Row(bytes) => {
                write!(f, "a row of a box has {bytes} bytes, no multiple of {UNIT}")
            }
            NoMap::Swizzle(s) => write!(f, "boxes are never swizzled by {s}"),
            NoMap::Span { row, want } => {
                write!(f, "a row of a box has {row} bytes, the swizzle permutes rows of {want}")
            }
            NoMap::Ends { bytes, .. } => write!(
                f,
                "rows of the tensor have {bytes} bytes, not known to be a multiple of {UNIT}, and what is stored is \
                 written in whole units: behind the end of a row, too"
            ),
            NoMap::Overflow => f.write_str("the map's bytes leave 64 bits"),
        }
    }
}

/// What the encoder is told of a map.
///
/// # Errors
/// The first rule that the map breaks.
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
            let (bytes, facts) = (cx.display(d).to_string(), missing::divided(p, UNIT, &[d]));
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

/// Whether coordinates of boxes, which are numbers of 32 bits, may reach all of so many elements.
/// Of extents that are known at launch only the launch checks it.
pub fn reaches(cx: &ExprArena, extent: Dim) -> bool {
    cx.range(extent).0.is_none_or(|least| i32::try_from(least).is_ok())
}

/// Whether rows of so many elements are known to end with whole units, as those must that boxes are
/// stored to ([`stores`]).
pub fn ends_whole(cx: &ExprArena, row: Dim, scalar: Scalar) -> bool {
    cx.divisor(row).saturating_mul(scalar.bits()) / 8 % UNIT == 0
}

/// That boxes may be stored by a map: loads read zeros behind the last element of a row, but stores
/// write the unit that it lies in whole, whatever lies there between the end of the row and the
/// next one. PTX does not say so; it was measured on an H100, for elements of 1 to 8 bytes, with
/// and without a swizzle.
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
    Err(NoMap::Ends { bytes: cx.display(bytes), facts: missing::divided(p, UNIT, &[bytes]) })
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
            // The bits that change places are those within a row.
            assert_eq!(mode.row, Some(1 << (b + m)), "{mode:?}");
        }
    }
}
