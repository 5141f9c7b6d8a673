//! Lists the atoms of barriers: of a block, of some of its warps (`bar.sync`), of all or some lanes
//! of a warp, and of the blocks of a cluster (arrive and wait).

use crate::arch::{Arch, ArchReq};
use crate::atom::{AsmClass, Atom, AtomNumber, AtomOp, BarrierScope, NumberForm};
use crate::dsl::{atom, immediate};
use crate::limits::limits;
use carbyne_ir::ast::SyncOp;

const BAR: &str = "PTX ISA, Parallel Synchronization and Communication Instructions: bar, barrier";
const WARP: &str = "CUDA C++ Programming Guide, Synchronization Functions";
const CLUSTER: &str =
    "PTX ISA, Parallel Synchronization and Communication Instructions: barrier.cluster";

#[rustfmt::skip] // One row per atom.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let t = &limits(arch).timing;
    let since = ArchReq::Since(Arch::Sm70);
    let near = t.sync(t.shared_store_cycles);
    let far = t.sync(t.shared_load_cycles + t.shared_store_cycles);
    // `__syncthreads` uses barrier 0. If several groups wait independently, the kernel computes the
    // index of the barrier.
    let barrier = AtomNumber {
        form: NumberForm::Either(AsmClass::R),
        ..immediate("barrier", (1, 15))
    };
    let threads = AtomNumber { multiple: 32, ..immediate("threads", (32, 1024)) };
    let lanes = AtomNumber {
        form: NumberForm::Either(AsmClass::R),
        ..immediate("lanes", (1, u32::MAX as i64))
    };
    let mut atoms = vec![
        atom("barrier.block", since, AtomOp::Barrier(BarrierScope::Block), near)
            .cuda("__syncthreads();").cite(WARP),
        atom("barrier.warp", since, AtomOp::Barrier(BarrierScope::Warp), near)
            .warp().cuda("__syncwarp();").cite(WARP),
        atom("barrier.lanes", since, AtomOp::Barrier(BarrierScope::Lanes), near)
            .numbers([lanes])
            .cuda("__syncwarp({lanes});").cite(WARP),
        atom("barrier.warps", since, AtomOp::Barrier(BarrierScope::Warps), near)
            .warp()
            .numbers([barrier, threads])
            .ptx("bar.sync {barrier}, {threads};").cite(BAR),
    ];
    let cluster = [
        ("barrier.cluster.arrive", SyncOp::ClusterArrive, "barrier.cluster.arrive.aligned;"),
        ("barrier.cluster.arrive.relaxed", SyncOp::ClusterArriveRelaxed,
         "barrier.cluster.arrive.relaxed.aligned;"),
        ("barrier.cluster.wait", SyncOp::ClusterWait, "barrier.cluster.wait.aligned;"),
    ];
    atoms.extend(cluster.map(|(name, op, ptx)| {
        atom(name, ArchReq::Since(Arch::Sm90), AtomOp::Sync(op), far).warp().ptx(ptx).cite(CLUSTER)
    }));
    atoms
}
