//! Lists the atoms of mbarriers: barriers in shared memory that count arrivals and bytes. The
//! fences for their initialization and for the asynchronous proxy are here, too.
//!
//! `mbarrier.wait` is a loop. The instruction tests whether the phase is complete. From `sm_90` on
//! the instruction suspends the thread for some time before it returns.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Elem};
use crate::dsl::{ONE, RF, SH, atom, computed, immediate, r, rw, w};
use crate::limits::limits;
use carbyne_ir::ast::SyncOp;
use carbyne_ir::scalar::Scalar;

const INIT: &str =
    "PTX ISA, Parallel Synchronization and Communication Instructions: mbarrier.init";
const ARRIVE: &str =
    "PTX ISA, Parallel Synchronization and Communication Instructions: mbarrier.arrive";
const WAIT: &str = "PTX ISA, Parallel Synchronization and Communication Instructions: \
                    mbarrier.test_wait, mbarrier.try_wait";
const ASYNC: &str = "PTX ISA, Parallel Synchronization and Communication Instructions: \
                     cp.async.mbarrier.arrive";
const FENCE: &str =
    "PTX ISA, Parallel Synchronization and Communication Instructions: membar, fence";

/// The largest number of arrivals, and of bytes, of one phase (PTX ISA, Contents of the mbarrier
/// object).
const MOST: i64 = (1 << 20) - 1;

const TRY_WAIT: &str = "{{
.reg .pred complete;
again:
mbarrier.try_wait.parity.shared::cta.b64 complete, [{B}], {parity};
@!complete bra again;
}}";
const TEST_WAIT: &str = "{{
.reg .pred complete;
again:
mbarrier.test_wait.parity.shared::cta.b64 complete, [{B}], {parity};
@!complete bra again;
}}";
const ARRIVE_REMOTE: &str = "{{
.reg .b32 remote;
mapa.shared::cluster.u32 remote, {B}, {rank};
mbarrier.arrive.shared::cluster.b64 _, [remote], {count};
}}";
const ARRIVE_AFTER: &str = "{{
.reg .b32 address;
mov.u32 address, %nctaid.z;
sub.u32 address, address, 1;
and.b32 address, address, {X};
add.u32 address, address, {B};
mbarrier.arrive.shared::cta.b64 _, [address], {count};
}}";
const ARRIVE_ONCE: &str = "{{
.reg .b64 state;
mbarrier.arrive.shared::cta.b64 state, [{B}];
}}";

#[rustfmt::skip] // One row per atom.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let t = &limits(arch).timing;
    let (read, written) = (t.sync(t.shared_load_cycles), t.sync(t.shared_store_cycles));
    let (sm80, sm90) = (ArchReq::Since(Arch::Sm80), ArchReq::Since(Arch::Sm90));
    let parts = ("B", Elem::Scalar(Scalar::Mbarrier), SH, &[1][..], ONE);
    let (new, used) = (w(parts), rw(parts));
    let (count, bytes) = (computed("count", (1, MOST)), computed("bytes", (0, MOST)));
    let (once, parity) = (immediate("count", (1, 1)), computed("parity", (0, 1)));
    let statement = |name, req, op, cost| atom(name, req, AtomOp::Sync(op), cost);
    vec![
        statement("mbarrier.init", sm80, SyncOp::MbarrierInit, written)
            .operands([new]).numbers([count])
            .ptx("mbarrier.init.shared::cta.b64 [{B}], {count};").cite(INIT),
        statement("mbarrier.arrive", sm90, SyncOp::MbarrierArrive, written)
            .operands([used.clone()]).numbers([count])
            .ptx("mbarrier.arrive.shared::cta.b64 _, [{B}], {count};").cite(ARRIVE),
        // Grids have one block along z, which ptxas does not know: the address depends on `{X}`.
        statement("mbarrier.arrive.after", sm90, SyncOp::MbarrierArrive, written)
            .operands([used.clone(), r(("X", Elem::Bits(32), RF, &[1], ONE))]).numbers([count])
            .ptx_scalar(ARRIVE_AFTER)
            .sequence("the address is computed from the register first", "none").cite(ARRIVE),
        statement("mbarrier.arrive.remote", sm90, SyncOp::MbarrierArrive, written)
            .operands([used.clone()])
            .numbers([count, computed("rank", (0, 15))]).ptx(ARRIVE_REMOTE)
            .sequence("the address in the other block is computed first", "none").cite(ARRIVE),
        statement("mbarrier.arrive.once", sm80, SyncOp::MbarrierArrive, written)
            .operands([used.clone()]).numbers([once])
            .ptx(ARRIVE_ONCE).cite(ARRIVE),
        statement("mbarrier.arrive.expect_tx", sm90, SyncOp::MbarrierExpect, written)
            .operands([used.clone()]).numbers([bytes])
            .ptx("mbarrier.arrive.expect_tx.shared::cta.b64 _, [{B}], {bytes};").cite(ARRIVE),
        statement("mbarrier.try_wait.parity", sm90, SyncOp::MbarrierWait, read)
            .operands([used.clone()]).numbers([parity]).ptx(TRY_WAIT)
            .sequence("the instruction is repeated until the phase is complete", "none").cite(WAIT),
        statement("mbarrier.test_wait.parity", sm80, SyncOp::MbarrierWait, read)
            .operands([used.clone()]).numbers([parity]).ptx(TEST_WAIT)
            .sequence("the instruction is repeated until the phase is complete", "none").cite(WAIT),
        statement("cp.async.mbarrier.arrive.noinc", sm80, SyncOp::MbarrierAsyncArrive, written)
            .operands([used])
            .ptx("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [{B}];").cite(ASYNC),
        statement("fence.mbarrier_init", sm90, SyncOp::FenceMbarrierInit, written)
            .ptx("fence.mbarrier_init.release.cluster;").cite(FENCE),
        statement("fence.proxy.async", sm90, SyncOp::FenceAsync, written)
            .ptx("fence.proxy.async.shared::cta;").cite(FENCE),
    ]
}
