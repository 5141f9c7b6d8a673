//! Lists the atoms of `red`: atomic additions, minima and maxima in memory (`Move.add`, `Move.min`,
//! `Move.max`). Several threads may update an element at the same time, in any order.
//!
//! In global memory, subnormal operands and results of f32 count as zeros. Shared memory has a unit
//! for 32-bit integers only; for other types there the assembler writes a loop with
//! compare-and-swap. The table does not contain `atom`, which also returns the old value, because a
//! spec has one output.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Cost, Elem, Rounding};
use crate::dsl::{GL, ONE, PAIR, RF, SH, atom, r, rw};
use crate::error_bound::{ErrorBound, F32_NORMAL};
use crate::limits::limits;
use carbyne_ir::ast::AccumulateOp::{self, Add, Max, Min};
use carbyne_ir::scalar::Memory;
use carbyne_ir::scalar::Scalar::{self, Bf16, F16, F32, F64, I32, I64, U32, U64};

const CITE: &str = "PTX ISA, Parallel Synchronization and Communication Instructions: red";
const QUAD: &str = "(1,4):(0,1)";
const OCT: &str = "(1,8):(0,1)";
const LOOPED: &str = "estimate: a loop of compare and swap, when no two lanes touch one address";
const PLAIN: &str = "estimate, as a plain store; more where several lanes touch one address";

/// The error of f32 in global memory: both operands and the sum may be subnormal.
pub(crate) const FLUSHED: ErrorBound = ErrorBound::f32_ulps(0.5).plus(3.0 * F32_NORMAL);

/// The rounding of an accumulation in global memory.
pub(crate) fn rounding(op: AccumulateOp, scalar: Scalar) -> Rounding {
    match (op, scalar) {
        (Add, F32) => Rounding::Approximate(FLUSHED),
        (Add, _) if scalar.is_float() => Rounding::Nearest,
        _ => Rounding::Exact,
    }
}

/// Name, first architecture, operation, type, number of values, PTX text.
type Entry = (&'static str, Arch, AccumulateOp, Scalar, usize, &'static str);

#[rustfmt::skip] // One row per atom.
fn global() -> [Entry; 20] {
    use Arch::{Sm70, Sm90};
    [
        ("red.global.add.f32",    Sm70, Add, F32,  1, "red.global.add.f32 [{D}], {S};"),
        ("red.global.add.f64",    Sm70, Add, F64,  1, "red.global.add.f64 [{D}], {S};"),
        ("red.global.add.f16",    Sm70, Add, F16,  1, "red.global.add.noftz.f16 [{D}], {S};"),
        ("red.global.add.f16x2",  Sm70, Add, F16,  2, "red.global.add.noftz.f16x2 [{D}], {S};"),
        ("red.global.add.bf16",   Sm90, Add, Bf16, 1, "red.global.add.noftz.bf16 [{D}], {S};"),
        ("red.global.add.bf16x2", Sm90, Add, Bf16, 2, "red.global.add.noftz.bf16x2 [{D}], {S};"),
        ("red.global.add.s32",    Sm70, Add, I32,  1, "red.global.add.s32 [{D}], {S};"),
        ("red.global.add.u32",    Sm70, Add, U32,  1, "red.global.add.u32 [{D}], {S};"),
        ("red.global.add.s64",    Sm70, Add, I64,  1, "red.global.add.u64 [{D}], {S};"),
        ("red.global.add.u64",    Sm70, Add, U64,  1, "red.global.add.u64 [{D}], {S};"),
        ("red.global.min.s32",    Sm70, Min, I32,  1, "red.global.min.s32 [{D}], {S};"),
        ("red.global.min.u32",    Sm70, Min, U32,  1, "red.global.min.u32 [{D}], {S};"),
        ("red.global.max.s32",    Sm70, Max, I32,  1, "red.global.max.s32 [{D}], {S};"),
        ("red.global.max.u32",    Sm70, Max, U32,  1, "red.global.max.u32 [{D}], {S};"),
        ("red.global.min.s64",    Sm70, Min, I64,  1, "red.global.min.s64 [{D}], {S};"),
        ("red.global.max.s64",    Sm70, Max, I64,  1, "red.global.max.s64 [{D}], {S};"),
        ("red.global.add.v2.f32", Sm90, Add, F32,  2, "red.global.add.v2.f32 [{D}], {S};"),
        ("red.global.add.v4.f32", Sm90, Add, F32,  4, "red.global.add.v4.f32 [{D}], {S};"),
        ("red.global.add.v4.f16x2", Sm90, Add, F16, 8, "red.global.add.noftz.v4.f16x2 [{D}], {S};"),
        ("red.global.add.v4.bf16x2", Sm90, Add, Bf16, 8,
         "red.global.add.noftz.v4.bf16x2 [{D}], {S};"),
    ]
}

#[rustfmt::skip] // One row per atom.
fn shared() -> [Entry; 12] {
    use Arch::{Sm70, Sm90};
    [
        ("red.shared.add.s32",    Sm70, Add, I32,  1, "red.shared.add.s32 [{D}], {S};"),
        ("red.shared.add.u32",    Sm70, Add, U32,  1, "red.shared.add.u32 [{D}], {S};"),
        ("red.shared.min.s32",    Sm70, Min, I32,  1, "red.shared.min.s32 [{D}], {S};"),
        ("red.shared.min.u32",    Sm70, Min, U32,  1, "red.shared.min.u32 [{D}], {S};"),
        ("red.shared.max.s32",    Sm70, Max, I32,  1, "red.shared.max.s32 [{D}], {S};"),
        ("red.shared.max.u32",    Sm70, Max, U32,  1, "red.shared.max.u32 [{D}], {S};"),
        ("red.shared.add.f32",    Sm70, Add, F32,  1, "red.shared.add.f32 [{D}], {S};"),
        ("red.shared.add.f64",    Sm70, Add, F64,  1, "red.shared.add.f64 [{D}], {S};"),
        ("red.shared.add.u64",    Sm70, Add, U64,  1, "red.shared.add.u64 [{D}], {S};"),
        ("red.shared.add.f16x2",  Sm70, Add, F16,  2, "red.shared.add.noftz.f16x2 [{D}], {S};"),
        ("red.shared.add.bf16x2", Sm90, Add, Bf16, 2, "red.shared.add.noftz.bf16x2 [{D}], {S};"),
        ("red.shared.add.s64",    Sm70, Add, I64,  1, "red.shared.add.u64 [{D}], {S};"),
    ]
}

pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let limits = limits(arch);
    let in_shared = |scalar: Scalar, bytes: i64| {
        let cost = limits.shared_store(32 * bytes);
        if scalar.bits() == 32 && !scalar.is_float() {
            return Cost { source: PLAIN, ..cost };
        }
        // One round of the loop: a load, the sum, a compare-and-swap, a branch.
        let timing = &limits.timing;
        let round = timing.shared_load_cycles + timing.shared_store_cycles + timing.math_cycles;
        Cost {
            issue_cycles: 4.0 * cost.issue_cycles,
            completion_cycles: round + 4.0 * cost.issue_cycles,
            emulated: true,
            source: LOOPED,
            ..cost
        }
    };
    let global = global().map(|r| {
        let bytes = r.4 as i64 * r.3.bits() / 8;
        accumulation(r, GL, limits.timing.red(bytes)).rounded(rounding(r.2, r.3))
    });
    let shared = shared().map(|r| {
        let bytes = r.4 as i64 * r.3.bits() / 8;
        let rounding = if r.3.is_float() { Rounding::Nearest } else { Rounding::Exact };
        accumulation(r, SH, in_shared(r.3, bytes)).rounded(rounding)
    });
    global.into_iter().chain(shared).collect()
}

fn accumulation(entry: Entry, memory: &'static [Memory], cost: Cost) -> Atom {
    let (name, first, op, scalar, n, text) = entry;
    let elem = Elem::Scalar(scalar);
    let tv = [ONE, PAIR, QUAD, OCT][n.ilog2() as usize & 3];
    let tile = [n as i64];
    let atom = atom(name, ArchReq::Since(first), AtomOp::Accumulate(op), cost)
        .operands([r(("S", elem, RF, &tile, tv)), rw(("D", elem, memory, &tile, tv))])
        .cite(CITE);
    let words = n as i64 * scalar.bits() > 32.max(scalar.bits());
    if words { atom.ptx(text) } else { atom.ptx_scalar(text) }
}
