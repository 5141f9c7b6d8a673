//! What `wgmma` multiplies: depth, types, columns, and A in registers.

use crate::atom::{ErrorBound, Rounding};
use crate::descriptor::Major;
use carbyne_ir::scalar::Scalar::{self, Bf16, E4m3, E5m2, F16, F32, I8, I32, Tf32, U8};

/// Atoms of one depth.
pub(super) struct Family {
    /// Columns of A.
    pub(super) k: i64,
    /// A, B, D.
    pub(super) types: &'static [[Scalar; 3]],
    /// Columns of B.
    pub(super) n: &'static [i64],
    /// A in registers.
    pub(super) a: &'static str,
    /// Whether the text says how factors in shared memory are transposed; K-major otherwise.
    pub(super) transposes: bool,
    /// Whether the text says by what the factors are multiplied.
    pub(super) scales: bool,
    /// Multiply-adds per cycle, those of 16-bit floats being 1.
    pub(super) speed: f64,
    pub(super) rounding: Rounding,
}

impl Family {
    /// Which way factors in shared memory may lie.
    pub(super) fn majors(&self) -> &'static [Major] {
        if self.transposes { &[Major::K, Major::Mn] } else { &[Major::K] }
    }
}

/// Every eighth number.
#[rustfmt::skip] // A row of eight.
const N: &[i64] = &[
      8,  16,  24,  32,  40,  48,  56,  64,
     72,  80,  88,  96, 104, 112, 120, 128,
    136, 144, 152, 160, 168, 176, 184, 192,
    200, 208, 216, 224, 232, 240, 248, 256,
];

/// From 32 on every sixteenth.
#[rustfmt::skip] // As above.
const N_INTEGERS: &[i64] = &[
      8,  16,  24,  32,  48,  64,  80,  96, 112, 128,
    144, 160, 176, 192, 208, 224, 240, 256,
];

/// One register holds two, four or one of the factors.
const A_16_BITS: &str = "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))";
const A_8_BITS: &str = "((4,8,4),(4,2,2)):((256,1,16),(64,8,1024))";
/// Bits that sums of products of 8-bit floats keep behind the first of the largest product
/// (DeepSeek-V3 Technical Report, 2024, section 3.3.2, Increasing Accumulation Precision; seen on
/// an H100 too).
const FP8_SUM_BITS: u32 = 13;
const A_TF32: &str = "((4,8,4),(2,2)):((64,1,16),(8,256))";

pub(super) const FAMILIES: &[Family] = &[
    Family {
        k: 16,
        types: &[[F16, F16, F32], [F16, F16, F16], [Bf16, Bf16, F32]],
        n: N,
        a: A_16_BITS,
        transposes: true,
        scales: true,
        speed: 1.0,
        rounding: Rounding::MmaAccumulate,
    },
    Family {
        k: 8,
        types: &[[Tf32, Tf32, F32]],
        n: N,
        a: A_TF32,
        transposes: false,
        scales: true,
        speed: 0.5,
        rounding: Rounding::MmaAccumulate,
    },
    Family {
        k: 32,
        types: &[[E4m3, E4m3, F32], [E4m3, E5m2, F32], [E5m2, E4m3, F32], [E5m2, E5m2, F32]],
        n: N,
        a: A_8_BITS,
        transposes: false,
        scales: true,
        speed: 2.0,
        rounding: Rounding::MmaAligned(ErrorBound::aligned(32, FP8_SUM_BITS)),
    },
    Family {
        k: 32,
        types: &[[E4m3, E4m3, F16], [E4m3, E5m2, F16], [E5m2, E4m3, F16], [E5m2, E5m2, F16]],
        n: N,
        a: A_8_BITS,
        transposes: false,
        scales: true,
        speed: 2.0,
        rounding: Rounding::MmaAccumulate,
    },
    Family {
        k: 32,
        types: &[[I8, I8, I32], [I8, U8, I32], [U8, I8, I32], [U8, U8, I32]],
        n: N_INTEGERS,
        a: A_8_BITS,
        transposes: false,
        scales: false,
        speed: 2.0,
        rounding: Rounding::Wrapping,
    },
];
