//! Lists the atoms that commit and await groups of asynchronous work: of `cp.async`, of bulk
//! copies, and of `wgmma`. Such a group is all work that a thread has issued since its last commit.
//! `wgmma.fence`, which hands registers to `wgmma`, is here, too.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomNumber, AtomOp, Handover};
use crate::dsl::{atom, immediate};
use crate::limits::limits;
use carbyne_ir::ast::SyncOp;

const ASYNC: &str = "PTX ISA, Non-bulk copy: cp.async.commit_group, cp.async.wait_group";
const BULK: &str = "PTX ISA, Data Movement and Conversion Instructions: \
                    cp.async.bulk.commit_group, cp.async.bulk.wait_group";
const WGMMA: &str = "PTX ISA, Asynchronous Warpgroup Level Matrix Instructions: \
                     wgmma.fence, wgmma.commit_group, wgmma.wait_group";

#[rustfmt::skip] // One row per atom.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let t = &limits(arch).timing;
    // The number of groups that may remain in flight. The ISA states no bound.
    let left: AtomNumber = immediate("groups", (0, i32::MAX as i64));
    let statement = |name, req, op, ptx, cite| {
        atom(name, req, AtomOp::Sync(op), t.sync(t.math_cycles)).ptx(ptx).cite(cite)
    };
    let (sm80, sm90) = (ArchReq::Since(Arch::Sm80), ArchReq::Since(Arch::Sm90));
    let sm90a = ArchReq::Exactly(Arch::Sm90a);
    vec![
        statement("cp.async.commit_group", sm80, SyncOp::AsyncCommit,
            "cp.async.commit_group;", ASYNC),
        statement("cp.async.wait_group", sm80, SyncOp::AsyncWait,
            "cp.async.wait_group {groups};", ASYNC).numbers([left]),
        statement("cp.async.bulk.commit_group", sm90, SyncOp::BulkCommit,
            "cp.async.bulk.commit_group;", BULK),
        statement("cp.async.bulk.wait_group", sm90, SyncOp::BulkWait,
            "cp.async.bulk.wait_group {groups};", BULK).numbers([left]),
        statement("cp.async.bulk.wait_group.read", sm90, SyncOp::BulkWaitRead,
            "cp.async.bulk.wait_group.read {groups};", BULK).numbers([left]),
        statement("wgmma.fence", sm90a, SyncOp::WgmmaFence,
            "wgmma.fence.sync.aligned;", WGMMA).warpgroup().handing(Handover::ToAtoms),
        statement("wgmma.commit_group", sm90a, SyncOp::WgmmaCommit,
            "wgmma.commit_group.sync.aligned;", WGMMA).warpgroup(),
        statement("wgmma.wait_group", sm90a, SyncOp::WgmmaWait,
            "wgmma.wait_group.sync.aligned {groups};", WGMMA)
            .warpgroup().numbers([left]).handing(Handover::ToThreads),
    ]
}
