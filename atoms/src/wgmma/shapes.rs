//! Lists the families of `wgmma` atoms. A family has one number k of columns of A, one layout of A
//! in registers, and the scalar types and numbers n of columns of B that the instruction takes.
//! `wgmma/mod.rs` makes one atom for each combination and memory of A. A family also states the
//! majors, the speed and the rounding.

use crate::atom::{ErrorBound, Rounding};
use crate::descriptor::Major;
use carbyne_ir::scalar::Scalar::{self, Bf16, E4m3, E5m2, F16, F32, I8, I32, Tf32, U8};

/// Atoms of one depth k.
pub(super) struct Family {
    /// Columns of A, which are rows of B.
    pub(super) k: i64,
    /// Combinations of types of A, B and D.
    pub(super) types: &'static [[Scalar; 3]],
    /// Numbers of columns of B.
    pub(super) n: &'static [i64],
    /// Thread-value layout of A in registers.
    pub(super) a: &'static str,
    /// Whether the text has immediates for the major of factors in shared memory. If not, they are
    /// K-major.
    pub(super) transposes: bool,
    /// Whether the text has immediates that scale the factors.
    pub(super) scales: bool,
    /// Multiply-adds per cycle, relative to 16-bit floats.
    pub(super) speed: f64,
    pub(super) rounding: Rounding,
}

impl Family {
    /// The majors that factors in shared memory may have.
    pub(super) fn majors(&self) -> &'static [Major] {
        if self.transposes { &[Major::K, Major::Mn] } else { &[Major::K] }
    }
}

/// All multiples of 8 up to 256.
#[rustfmt::skip] // Rows of eight.
const N: &[i64] = &[
      8,  16,  24,  32,  40,  48,  56,  64,
     72,  80,  88,  96, 104, 112, 120, 128,
    136, 144, 152, 160, 168, 176, 184, 192,
    200, 208, 216, 224, 232, 240, 248, 256,
];

/// 8 and 24, and all multiples of 16 up to 256.
#[rustfmt::skip] // In rows.
const N_INTEGERS: &[i64] = &[
      8,  16,  24,  32,  48,  64,  80,  96, 112, 128,
    144, 160, 176, 192, 208, 224, 240, 256,
];

/// Layouts of A in registers. One register holds two 16-bit, four 8-bit or one tf32 element.
const A_16_BITS: &str = "((4,8,4),(2,2,2)):((128,1,16),(64,8,512))";
const A_8_BITS: &str = "((4,8,4),(4,2,2)):((256,1,16),(64,8,1024))";
const A_TF32: &str = "((4,8,4),(2,2)):((64,1,16),(8,256))";

/// The number of bits after the first bit of the largest product that sums of products of 8-bit
/// floats keep (DeepSeek-V3 Technical Report, 2024, section 3.3.2, Increasing Accumulation
/// Precision; also observed on an H100).
const FP8_SUM_BITS: u32 = 13;

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
