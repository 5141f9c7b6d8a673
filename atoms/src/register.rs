//! Lists the atoms of copies between registers, and from literals, parameters and coordinates to
//! registers.
//!
//! An Init may also write to memory. Its literal is the operand `value`, which counts as a register
//! and is printed as an expression of its C++ type. Types of less than one byte have no Init,
//! because their values have no address.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Elem};
use crate::dsl::{ANY, IX, ONE, PM, RF, atom, r, vector_move, w};
use crate::limits::limits;
use carbyne_ir::scalar::Scalar::{
    Bf16, Bool, E4m3, E5m2, F16, F32, F64, I8, I16, I32, I64, Tf32, U8, U16, U32, U64,
};

const CITE: &str = "PTX ISA, Data Movement and Conversion Instructions: mov";
const PARAMS: &str = "PTX ISA, State Spaces: Kernel Function Parameters; ld.param";
const INDEX: &str = "PTX ISA, Integer Arithmetic Instructions; Special Registers: %tid, %ctaid";

#[rustfmt::skip] // One row per atom.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let moves = [
        ("mov.b8",  8,  "unsigned char"),
        ("mov.b16", 16, "unsigned short"),
        ("mov.b32", 32, "unsigned"),
        ("mov.b64", 64, "uint2"),
        ("mov.b128", 128, "uint4"),
    ];
    let types = [
        (("init.f16", "param.f16"), F16,  "__half"),
        (("init.bf16", "param.bf16"), Bf16, "__nv_bfloat16"),
        (("init.f32", "param.f32"),  F32,  "float"),
        (("init.f64", "param.f64"),  F64,  "double"),
        (("init.tf32", "param.tf32"), Tf32, "float"),
        (("init.e4m3", "param.e4m3"), E4m3, "__nv_fp8_e4m3"),
        (("init.e5m2", "param.e5m2"), E5m2, "__nv_fp8_e5m2"),
        (("init.i64", "param.i64"),  I64,  "long long"),
        (("init.i32", "param.i32"),  I32,  "int"),
        (("init.i16", "param.i16"),  I16,  "short"),
        (("init.i8", "param.i8"),   I8,   "signed char"),
        (("init.u64", "param.u64"),  U64,  "unsigned long long"),
        (("init.u32", "param.u32"),  U32,  "unsigned"),
        (("init.u16", "param.u16"),  U16,  "unsigned short"),
        (("init.u8", "param.u8"),   U8,   "unsigned char"),
        (("init.bool", "param.bool"), Bool, "bool"),
    ];
    let (timing, since) = (&limits(arch).timing, ArchReq::Since(Arch::Sm70));
    // One instruction per 32 bits, at the rate of f32 arithmetic.
    let cost = |bits: i64| timing.pointwise(timing.f32_lanes / ((bits + 31) / 32) as f64, 1);
    let moves = moves.into_iter().map(|(name, bits, cxx)| {
        atom(name, since, AtomOp::Move, cost(bits))
            .operands(vector_move(RF, RF, bits, cxx))
            .cuda("{D} = {S};")
            .cite(CITE)
    });
    let inits = types.into_iter().map(|((name, _), scalar, cxx)| {
        let elem = Elem::Scalar(scalar);
        atom(name, since, AtomOp::Init, cost(scalar.bits()))
            .operands([
                r(("value", elem, RF, &[1], ONE)).through(cxx),
                w(("D", elem, ANY, &[1], ONE)).through(cxx),
            ])
            .cuda("{D} = {value};")
            .cite(CITE)
    });
    // A number that the caller passes by value, and a coordinate, which is computed.
    let params = types.into_iter().map(|((_, name), scalar, cxx)| {
        let elem = Elem::Scalar(scalar);
        atom(name, since, AtomOp::Move, cost(scalar.bits()))
            .operands([
                r(("S", elem, PM, &[1], ONE)).through(cxx),
                w(("D", elem, RF, &[1], ONE)).through(cxx),
            ])
            .cuda("{D} = {S};")
            .cite(PARAMS)
    });
    let elem = Elem::Scalar(I32);
    let index = atom("index.i32", since, AtomOp::Move, cost(32))
        .operands([
            r(("S", elem, IX, &[1], ONE)).through("int"),
            w(("D", elem, RF, &[1], ONE)).through("int"),
        ])
        .cuda("{D} = {S};")
        .cite(INDEX);
    moves.chain(inits).chain(params).chain([index]).collect()
}
