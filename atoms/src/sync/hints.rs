//! Lists the atoms of statements that order no accesses within a block: the register count of a
//! warp group (`setmaxnreg`), the election of a lane of a warp (`elect.sync`), prefetching of a
//! tensor map, and the dependences between overlapping grids (`griddepcontrol`).

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomNumber, AtomOp, Elem};
use crate::dsl::{RF, atom, immediate, w};
use crate::limits::limits;
use carbyne_ir::ast::SyncOp;
use carbyne_ir::scalar::Scalar;

const REGISTERS: &str = "PTX ISA, Miscellaneous Instructions: setmaxnreg";
const ELECTION: &str =
    "PTX ISA, Parallel Synchronization and Communication Instructions: elect.sync";
const ELECT: &str = "{{
.reg .pred one;
elect.sync _|one, 0xffffffff;
selp.b32 {P}, 1, 0, one;
}}";
const PREFETCH: &str = "PTX ISA, Data Movement and Conversion Instructions: prefetch, prefetchu";
const GRID: &str =
    "PTX ISA, Parallel Synchronization and Communication Instructions: griddepcontrol";

#[rustfmt::skip] // One row per atom.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let t = &limits(arch).timing;
    let registers = AtomNumber { multiple: 8, ..immediate("registers", (24, 256)) };
    let statement =
        |name, req, op, ptx| atom(name, req, AtomOp::Sync(op), t.sync(t.math_cycles)).ptx(ptx);
    let (sm90, sm90a) = (ArchReq::Since(Arch::Sm90), ArchReq::Exactly(Arch::Sm90a));
    vec![
        statement("setmaxnreg.inc", sm90a, SyncOp::RegistersInc,
            "setmaxnreg.inc.sync.aligned.u32 {registers};")
            .warpgroup().numbers([registers]).cite(REGISTERS),
        statement("setmaxnreg.dec", sm90a, SyncOp::RegistersDec,
            "setmaxnreg.dec.sync.aligned.u32 {registers};")
            .warpgroup().numbers([registers]).cite(REGISTERS),
        atom("elect.sync", sm90, AtomOp::Elect, t.sync(t.math_cycles)).warp()
            .operands([w(("P", Elem::Scalar(Scalar::I32), RF, &[1], "(32,1):(0,0)"))])
            .ptx_scalar(ELECT).sequence("the predicate becomes a number", "none").cite(ELECTION),
        statement("prefetch.tensormap", sm90, SyncOp::Prefetch, "prefetch.tensormap [{map}];")
            .cite(PREFETCH),
        statement("griddepcontrol.wait", sm90, SyncOp::GridWait, "griddepcontrol.wait;").cite(GRID),
        statement("griddepcontrol.launch_dependents", sm90, SyncOp::GridLaunch,
            "griddepcontrol.launch_dependents;").cite(GRID),
    ]
}
