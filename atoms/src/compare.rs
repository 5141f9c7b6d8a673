//! Lists the atoms of comparisons, whose result is a `bool`, and of `Select`, the selection of one
//! of two values by a `bool`.
//!
//! All texts are CUDA C++. A comparison, such as `{D} = {A} < {B};`, compiles to two instructions:
//! `setp` writes a predicate, and `selp` converts it to a number in a register. The CUDA compiler
//! omits the second if the number is not used. If an operand is NaN, all comparisons are false
//! except `ne`. [`CHOOSE`] is the C++ function that the text of `Select` calls; it is printed above
//! a kernel that needs it.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Elem};
use crate::dsl::{ONE, RF, atom, r, w};
use crate::limits::limits;
use carbyne_ir::ast::BinaryOp::{self, Eq, Ge, Gt, Le, Lt, Ne};
use carbyne_ir::scalar::Scalar::{
    self, Bf16, Bool, E4m3, E5m2, F16, F32, F64, I8, I16, I32, I64, Tf32, U8, U16, U32, U64,
};

const SETP: &str = "PTX ISA, Comparison and Selection Instructions: setp, selp";
const HALF: &str = "PTX ISA, Half Precision Comparison Instructions: setp";
const SELP: &str = "PTX ISA, Comparison and Selection Instructions: selp";

#[rustfmt::skip] // One row per atom.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    use Arch::{Sm70, Sm80};
    let t = &limits(arch).timing;
    let comparisons = [
        ("setp.lt.f32",  Sm70, Lt, F32,  "{D} = {A} < {B};"),
        ("setp.le.f32",  Sm70, Le, F32,  "{D} = {A} <= {B};"),
        ("setp.eq.f32",  Sm70, Eq, F32,  "{D} = {A} == {B};"),
        ("setp.ne.f32",  Sm70, Ne, F32,  "{D} = {A} != {B};"),
        ("setp.ge.f32",  Sm70, Ge, F32,  "{D} = {A} >= {B};"),
        ("setp.gt.f32",  Sm70, Gt, F32,  "{D} = {A} > {B};"),
        ("setp.lt.f64",  Sm70, Lt, F64,  "{D} = {A} < {B};"),
        ("setp.le.f64",  Sm70, Le, F64,  "{D} = {A} <= {B};"),
        ("setp.eq.f64",  Sm70, Eq, F64,  "{D} = {A} == {B};"),
        ("setp.ne.f64",  Sm70, Ne, F64,  "{D} = {A} != {B};"),
        ("setp.ge.f64",  Sm70, Ge, F64,  "{D} = {A} >= {B};"),
        ("setp.gt.f64",  Sm70, Gt, F64,  "{D} = {A} > {B};"),
        ("setp.lt.f16",  Sm70, Lt, F16,  "{D} = __hlt({A}, {B});"),
        ("setp.le.f16",  Sm70, Le, F16,  "{D} = __hle({A}, {B});"),
        ("setp.eq.f16",  Sm70, Eq, F16,  "{D} = __heq({A}, {B});"),
        ("setp.ne.f16",  Sm70, Ne, F16,  "{D} = __hneu({A}, {B});"),
        ("setp.ge.f16",  Sm70, Ge, F16,  "{D} = __hge({A}, {B});"),
        ("setp.gt.f16",  Sm70, Gt, F16,  "{D} = __hgt({A}, {B});"),
        ("setp.lt.bf16", Sm80, Lt, Bf16, "{D} = __hlt({A}, {B});"),
        ("setp.le.bf16", Sm80, Le, Bf16, "{D} = __hle({A}, {B});"),
        ("setp.eq.bf16", Sm80, Eq, Bf16, "{D} = __heq({A}, {B});"),
        ("setp.ne.bf16", Sm80, Ne, Bf16, "{D} = __hneu({A}, {B});"),
        ("setp.ge.bf16", Sm80, Ge, Bf16, "{D} = __hge({A}, {B});"),
        ("setp.gt.bf16", Sm80, Gt, Bf16, "{D} = __hgt({A}, {B});"),
        ("setp.lt.s32",  Sm70, Lt, I32,  "{D} = {A} < {B};"),
        ("setp.le.s32",  Sm70, Le, I32,  "{D} = {A} <= {B};"),
        ("setp.eq.s32",  Sm70, Eq, I32,  "{D} = {A} == {B};"),
        ("setp.ne.s32",  Sm70, Ne, I32,  "{D} = {A} != {B};"),
        ("setp.ge.s32",  Sm70, Ge, I32,  "{D} = {A} >= {B};"),
        ("setp.gt.s32",  Sm70, Gt, I32,  "{D} = {A} > {B};"),
        ("setp.lt.u32",  Sm70, Lt, U32,  "{D} = {A} < {B};"),
        ("setp.le.u32",  Sm70, Le, U32,  "{D} = {A} <= {B};"),
        ("setp.eq.u32",  Sm70, Eq, U32,  "{D} = {A} == {B};"),
        ("setp.ne.u32",  Sm70, Ne, U32,  "{D} = {A} != {B};"),
        ("setp.ge.u32",  Sm70, Ge, U32,  "{D} = {A} >= {B};"),
        ("setp.gt.u32",  Sm70, Gt, U32,  "{D} = {A} > {B};"),
        ("setp.lt.s64",  Sm70, Lt, I64,  "{D} = {A} < {B};"),
        ("setp.le.s64",  Sm70, Le, I64,  "{D} = {A} <= {B};"),
        ("setp.eq.s64",  Sm70, Eq, I64,  "{D} = {A} == {B};"),
        ("setp.ne.s64",  Sm70, Ne, I64,  "{D} = {A} != {B};"),
        ("setp.ge.s64",  Sm70, Ge, I64,  "{D} = {A} >= {B};"),
        ("setp.gt.s64",  Sm70, Gt, I64,  "{D} = {A} > {B};"),
        ("setp.lt.u64",  Sm70, Lt, U64,  "{D} = {A} < {B};"),
        ("setp.le.u64",  Sm70, Le, U64,  "{D} = {A} <= {B};"),
        ("setp.eq.u64",  Sm70, Eq, U64,  "{D} = {A} == {B};"),
        ("setp.ne.u64",  Sm70, Ne, U64,  "{D} = {A} != {B};"),
        ("setp.ge.u64",  Sm70, Ge, U64,  "{D} = {A} >= {B};"),
        ("setp.gt.u64",  Sm70, Gt, U64,  "{D} = {A} > {B};"),
    ];
    let choices = [
        ("selp.f64",  F64),  ("selp.f32",  F32),  ("selp.tf32", Tf32), ("selp.f16", F16),
        ("selp.bf16", Bf16), ("selp.e4m3", E4m3), ("selp.e5m2", E5m2), ("selp.s64", I64),
        ("selp.s32",  I32),  ("selp.s16",  I16),  ("selp.s8",   I8),   ("selp.u64", U64),
        ("selp.u32",  U32),  ("selp.u16",  U16),  ("selp.u8",   U8),   ("selp.bool", Bool),
    ];
    let comparisons = comparisons
        .map(|(name, first, op, scalar, text)| compared(name, first, op, scalar, text, t));
    let choices = choices.map(|(name, scalar)| {
        let (elem, cxx) = (Elem::Scalar(scalar), bits_of(scalar));
        let cost = t.chain(t.int_lanes, 1, (scalar.bits() + 31) / 32);
        atom(name, ArchReq::Since(Sm70), AtomOp::Select, cost)
            .operands([
                r(("P", Elem::Scalar(Bool), RF, &[1], ONE)).through("bool"),
                r(("A", elem, RF, &[1], ONE)).through(cxx),
                r(("B", elem, RF, &[1], ONE)).through(cxx),
                w(("D", elem, RF, &[1], ONE)).through(cxx),
            ])
            .cuda("{D} = choose({P}, {A}, {B});")
            .cite(SELP)
    });
    comparisons.into_iter().chain(choices).collect()
}

fn compared(
    name: &'static str,
    first: Arch,
    op: BinaryOp,
    scalar: Scalar,
    text: &'static str,
    t: &crate::limits::Timing,
) -> Atom {
    let (elem, cxx, lanes, cite) = match scalar {
        F16 => (Elem::Scalar(F16), "__half", t.f16_lanes, HALF),
        Bf16 => (Elem::Scalar(Bf16), "__nv_bfloat16", t.bf16_lanes, HALF),
        F64 => (Elem::Scalar(F64), "double", t.f64_lanes, SETP),
        F32 => (Elem::Scalar(F32), "float", t.int_lanes, SETP),
        I32 => (Elem::Scalar(I32), "int", t.int_lanes, SETP),
        I64 => (Elem::Scalar(I64), "long long", t.int_lanes / 2.0, SETP),
        U64 => (Elem::Scalar(U64), "unsigned long long", t.int_lanes / 2.0, SETP),
        other => (Elem::Scalar(other), "unsigned", t.int_lanes, SETP),
    };
    atom(name, ArchReq::Since(first), AtomOp::Binary(op), t.chain(lanes, 1, 2))
        .operands([
            r(("A", elem, RF, &[1], ONE)).through(cxx),
            r(("B", elem, RF, &[1], ONE)).through(cxx),
            w(("D", Elem::Scalar(Bool), RF, &[1], ONE)).through("bool"),
        ])
        .cuda(text)
        .sequence("a predicate, which is converted to a number", "none")
        .cite(cite)
}

/// The C++ type that holds the bits of a scalar.
fn bits_of(scalar: Scalar) -> &'static str {
    match scalar.bits() {
        64 => "unsigned long long",
        32 => "unsigned",
        16 => "unsigned short",
        _ => "unsigned char",
    }
}

/// The function in CUDA C++ that selects one of two values.
pub const CHOOSE: &str = "\
// Selects one of two values after reading both. For `first ? a : b` compilers select one of two
// addresses, which keeps arrays in local memory.
template <typename T>
__device__ __forceinline__ T choose(bool first, T a, T b) {
  return first ? a : b;
}";
