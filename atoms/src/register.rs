//! Copies between registers, and values written as literals.
//!
//! The literal of an Init is the operand `value`: it counts as a register and prints as an
//! expression of its C++ type.

use crate::arch::{Arch, ArchReq};
use crate::dsl::{ANY, ONE, RF, atom, r, vector_move, w};
use crate::limits::limits;
use crate::row::{Atom, AtomOp, Elem};
use carbyne_ir::scalar::Scalar::{Bf16, F16, F32, F64, I32};

const CITE: &str = "PTX ISA, Data Movement and Conversion Instructions: mov";

#[rustfmt::skip] // One row a line.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let moves = [
        ("mov.b8",  8,  "unsigned char"),
        ("mov.b16", 16, "unsigned short"),
        ("mov.b32", 32, "unsigned"),
        ("mov.b64", 64, "uint2"),
    ];
    let inits = [
        ("init.f16",  F16,  "__half"),
        ("init.bf16", Bf16, "__nv_bfloat16"),
        ("init.f32",  F32,  "float"),
        ("init.f64",  F64,  "double"),
        ("init.i32",  I32,  "int"),
    ];
    let (timing, since) = (&limits(arch).timing, ArchReq::Since(Arch::Sm70));
    // One instruction for every 32 bits, at the rate of f32 arithmetic.
    let cost = |bits: i64| timing.pointwise(timing.f32_lanes / ((bits + 31) / 32) as f64, 1);
    let moves = moves.into_iter().map(|(name, bits, cxx)| {
        atom(name, since, AtomOp::Move, cost(bits))
            .operands(vector_move(RF, RF, bits, cxx))
            .cuda("{D} = {S};")
            .cite(CITE)
    });
    let inits = inits.into_iter().map(|(name, scalar, cxx)| {
        let elem = Elem::Scalar(scalar);
        atom(name, since, AtomOp::Init, cost(scalar.bits()))
            .operands([
                r(("value", elem, RF, &[1], ONE)).through(cxx),
                w(("D", elem, ANY, &[1], ONE)).through(cxx),
            ])
            .cuda("{D} = {value};")
            .cite(CITE)
    });
    moves.chain(inits).collect()
}
