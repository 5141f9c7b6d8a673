//! Barriers of threads: of the block, of warps, of lanes, of the blocks of a cluster.

use crate::arch::{Arch, ArchReq};
use crate::atom::{AsmClass, Atom, AtomNumber, AtomOp, BarrierScope, NumberForm};
use crate::dsl::{atom, immediate};
use crate::limits::limits;
use carbyne_ir::ast::SyncOp;

const BAR: &str = "PTX ISA, Parallel Synchronization and Communication Instructions: bar, barrier";
const WARP: &str = "CUDA C++ Programming Guide, Synchronization Functions";
const CLUSTER: &str =
    "PTX ISA, Parallel Synchronization and Communication Instructions: barrier.cluster";

#[rustfmt::skip] // One atom a line.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let t = &limits(arch).timing;
    let since = ArchReq::Since(Arch::Sm70);
    let (near, far) = (t.sync(t.shared_store_cycles), t.sync(t.shared_load_cycles + t.shared_store_cycles));
    // Barrier 0 is that of the block. Groups that wait each for itself compute theirs.
    let named = [
        AtomNumber { form: NumberForm::Either(AsmClass::R), ..immediate("barrier", (1, 15)) },
        AtomNumber { multiple: 32, ..immediate("threads", (32, 1024)) },
    ];
    let mut atoms = vec![
        atom("barrier.block", since, AtomOp::Barrier(BarrierScope::Block), near)
            .cuda("__syncthreads();").cite(WARP),
        atom("barrier.warp", since, AtomOp::Barrier(BarrierScope::Warp), near)
            .warp().cuda("__syncwarp();").cite(WARP),
        atom("barrier.lanes", since, AtomOp::Barrier(BarrierScope::Lanes), near)
            .numbers([AtomNumber { form: NumberForm::Either(AsmClass::R), ..immediate("lanes", (1, u32::MAX as i64)) }])
            .cuda("__syncwarp({lanes});").cite(WARP),
        atom("barrier.warps", since, AtomOp::Barrier(BarrierScope::Warps), near)
            .warp().numbers(named).ptx("bar.sync {barrier}, {threads};").cite(BAR),
    ];
    let cluster = [
        ("barrier.cluster.arrive",         SyncOp::ClusterArrive,        "barrier.cluster.arrive.aligned;"),
        ("barrier.cluster.arrive.relaxed", SyncOp::ClusterArriveRelaxed, "barrier.cluster.arrive.relaxed.aligned;"),
        ("barrier.cluster.wait",           SyncOp::ClusterWait,          "barrier.cluster.wait.aligned;"),
    ];
    atoms.extend(cluster.map(|(name, op, ptx)| {
        atom(name, ArchReq::Since(Arch::Sm90), AtomOp::Sync(op), far).warp().ptx(ptx).cite(CLUSTER)
    }));
    atoms
}
