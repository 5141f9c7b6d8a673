//! Lists the atoms of reductions. `redux.sync` and `vote.sync` reduce one integer or one `bool` per
//! lane over a whole warp; every lane receives the result. A ballot is a cast of one `bool` per
//! lane to 32 bits; every lane receives all of them. `and`, `or` and `xor` reduce two integers of
//! one thread.
//!
//! The architectures of the table have no `redux.sync` of f32; a butterfly of `shfl` replaces it.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Elem};
use crate::dsl::{ONE, PAIR, RF, atom, r, w};
use crate::limits::{Timing, limits};
use carbyne_ir::ast::ReduceOp::{And, Max, Min, Or, Sum, Xor};
use carbyne_ir::ast::UnaryOp;
use carbyne_ir::scalar::Scalar::{Bool, I32, U1, U32};

const CITE: &str = "PTX ISA, Parallel Synchronization and Communication Instructions: redux.sync";
const LOGIC: &str = "PTX ISA, Logic and Shift Instructions: and, or, xor";
const VOTE: &str = "PTX ISA, Parallel Synchronization and Communication Instructions: vote.sync";

#[rustfmt::skip] // One row per atom.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let atoms = [
        ("redux.add.s32", Sum, I32, "{D} = __reduce_add_sync(0xffffffffu, {S});"),
        ("redux.min.s32", Min, I32, "{D} = __reduce_min_sync(0xffffffffu, {S});"),
        ("redux.max.s32", Max, I32, "{D} = __reduce_max_sync(0xffffffffu, {S});"),
        ("redux.and.s32", And, I32, "{D} = __reduce_and_sync(0xffffffffu, {S});"),
        ("redux.or.s32",  Or,  I32, "{D} = __reduce_or_sync(0xffffffffu, {S});"),
        ("redux.xor.s32", Xor, I32, "{D} = __reduce_xor_sync(0xffffffffu, {S});"),
        ("redux.add.u32", Sum, U32, "{D} = __reduce_add_sync(0xffffffffu, {S});"),
        ("redux.min.u32", Min, U32, "{D} = __reduce_min_sync(0xffffffffu, {S});"),
        ("redux.max.u32", Max, U32, "{D} = __reduce_max_sync(0xffffffffu, {S});"),
        ("redux.and.u32", And, U32, "{D} = __reduce_and_sync(0xffffffffu, {S});"),
        ("redux.or.u32",  Or,  U32, "{D} = __reduce_or_sync(0xffffffffu, {S});"),
        ("redux.xor.u32", Xor, U32, "{D} = __reduce_xor_sync(0xffffffffu, {S});"),
    ];
    let t = &limits(arch).timing;
    atoms.into_iter()
        .map(|(name, op, scalar, cuda)| {
            let cxx = if scalar == I32 { "int" } else { "unsigned" };
            let elem = Elem::Scalar(scalar);
            let cost = t.pointwise(t.redux_lanes, 1);
            atom(name, ArchReq::Since(Arch::Sm80), AtomOp::Reduction(op), cost)
                .warp()
                .operands([
                    r(("S", elem, RF, &[32], "(32,1):(1,0)")).through(cxx),
                    w(("D", elem, RF, &[1], "(32,1):(0,0)")).through(cxx),
                ])
                .cuda(cuda)
                .cite(CITE)
        })
        .chain(votes(t))
        .chain(pairs(t))
        .collect()
}

/// Reductions of two integers of one thread.
#[rustfmt::skip] // One row per atom.
fn pairs(t: &Timing) -> Vec<Atom> {
    let atoms = [
        ("and.s32", And, I32, "and.b32 {D.0}, {S.0}, {S.1};"),
        ("or.s32",  Or,  I32, "or.b32 {D.0}, {S.0}, {S.1};"),
        ("xor.s32", Xor, I32, "xor.b32 {D.0}, {S.0}, {S.1};"),
        ("and.u32", And, U32, "and.b32 {D.0}, {S.0}, {S.1};"),
        ("or.u32",  Or,  U32, "or.b32 {D.0}, {S.0}, {S.1};"),
        ("xor.u32", Xor, U32, "xor.b32 {D.0}, {S.0}, {S.1};"),
    ];
    atoms.into_iter()
        .map(|(name, op, scalar, ptx)| {
            let elem = Elem::Scalar(scalar);
            let cost = t.pointwise(t.int_lanes, 1);
            atom(name, ArchReq::Since(Arch::Sm70), AtomOp::Reduction(op), cost)
                .operands([r(("S", elem, RF, &[2], PAIR)), w(("D", elem, RF, &[1], ONE))])
                .ptx(ptx)
                .cite(LOGIC)
        })
        .collect()
}

#[rustfmt::skip] // One row per atom.
fn votes(t: &Timing) -> Vec<Atom> {
    let vote = |name, op| {
        atom(name, ArchReq::Since(Arch::Sm70), op, t.pointwise(t.int_lanes, 1)).warp().cite(VOTE)
    };
    let lanes = r(("S", Elem::Scalar(Bool), RF, &[32], "(32,1):(1,0)")).through("bool");
    let verdict = w(("D", Elem::Scalar(Bool), RF, &[1], "(32,1):(0,0)")).through("bool");
    let ballot = w(("D", Elem::Scalar(U1), RF, &[32], "(32,32):(0,1)")).through("unsigned");
    let formula = "a predicate, which is converted to a number";
    vec![
        vote("vote.all", AtomOp::Reduction(And)).operands([lanes.clone(), verdict.clone()])
            .cuda("{D} = __all_sync(0xffffffffu, {S}) != 0;").sequence(formula, "none"),
        vote("vote.any", AtomOp::Reduction(Or)).operands([lanes.clone(), verdict])
            .cuda("{D} = __any_sync(0xffffffffu, {S}) != 0;").sequence(formula, "none"),
        vote("vote.ballot", AtomOp::Unary(UnaryOp::Cast)).operands([lanes, ballot])
            .cuda("{D} = __ballot_sync(0xffffffffu, {S});"),
    ]
}
