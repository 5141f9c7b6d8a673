//! Conversions between f32 and 16-bit floats, of one value and of packed pairs.

use crate::arch::{Arch, ArchReq};
use crate::dsl::{ONE, PAIR, RF, atom, r, w};
use crate::limits::limits;
use crate::row::{Atom, AtomOp, Elem, Rounding};
use carbyne_ir::ast::UnaryOp;
use carbyne_ir::scalar::Scalar::{Bf16, F16, F32};

const HALF: &str = "CUDA Math API, Half Precision Conversion and Data Movement";
const BF16: &str = "CUDA Math API, Bfloat16 Precision Conversion and Data Movement";
/// How bf16 becomes f32 before architectures had an instruction for it.
const SHIFTED: &str = "the 16 bits become the upper half of a binary32";

#[rustfmt::skip] // One row a line.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    use Arch::{Sm70, Sm80};
    let t = &limits(arch).timing;
    let rows = [
        ("cvt.f16.f32",    Sm70, (F32, "float"),           (F16, "__half"),          1, "{D} = __float2half_rn({S});",        HALF),
        ("cvt.f16x2.f32",  Sm70, (F32, "float2"),          (F16, "__half2"),         2, "{D} = __float22half2_rn({S});",      HALF),
        ("cvt.bf16.f32",   Sm80, (F32, "float"),           (Bf16, "__nv_bfloat16"),  1, "{D} = __float2bfloat16_rn({S});",    BF16),
        ("cvt.bf16x2.f32", Sm80, (F32, "float2"),          (Bf16, "__nv_bfloat162"), 2, "{D} = __float22bfloat162_rn({S});",  BF16),
        ("cvt.f32.f16",    Sm70, (F16, "__half"),          (F32, "float"),           1, "{D} = __half2float({S});",           HALF),
        ("cvt.f32.f16x2",  Sm70, (F16, "__half2"),         (F32, "float2"),          2, "{D} = __half22float2({S});",         HALF),
        ("cvt.f32.bf16",   Sm80, (Bf16, "__nv_bfloat16"),  (F32, "float"),           1, "{D} = __bfloat162float({S});",       BF16),
        ("cvt.f32.bf16x2", Sm80, (Bf16, "__nv_bfloat162"), (F32, "float2"),          2, "{D} = __bfloat1622float2({S});",     BF16),
    ];
    rows.into_iter()
        .map(|(name, first, (from, from_cxx), (to, to_cxx), n, cuda, cite)| {
            let (tile, tv) = if n == 1 { ([1], ONE) } else { ([2], PAIR) };
            let rounding = if to == F32 { Rounding::Exact } else { Rounding::Nearest };
            let row = atom(name, ArchReq::Since(first), AtomOp::Unary(UnaryOp::Cast), t.pointwise(t.convert_lanes, n))
                .operands([
                    r(("S", Elem::Scalar(from), RF, &tile, tv)).through(from_cxx),
                    w(("D", Elem::Scalar(to), RF, &tile, tv)).through(to_cxx),
                ])
                .cuda(cuda)
                .rounded(rounding)
                .cite(cite);
            if from == Bf16 { row.sequence(SHIFTED, "none") } else { row }
        })
        .collect()
}
