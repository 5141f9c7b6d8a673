//! What a warpgroup tells of its registers, and a grid of the grids around it.

use crate::arch::{Arch, ArchReq};
use crate::dsl::{atom, immediate};
use crate::limits::limits;
use crate::row::{Atom, AtomNumber, AtomOp};
use carbyne_ir::ast::SyncOp;

const REGISTERS: &str = "PTX ISA, Miscellaneous Instructions: setmaxnreg";
const GRID: &str =
    "PTX ISA, Parallel Synchronization and Communication Instructions: griddepcontrol";

#[rustfmt::skip] // One row a line.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let t = &limits(arch).timing;
    let registers = AtomNumber { multiple: 8, ..immediate("registers", (24, 256)) };
    let row = |name, req, op, ptx| atom(name, req, AtomOp::Sync(op), t.sync(t.math_cycles)).ptx(ptx);
    let (sm90, sm90a) = (ArchReq::Since(Arch::Sm90), ArchReq::Exactly(Arch::Sm90a));
    vec![
        row("setmaxnreg.inc", sm90a, SyncOp::RegistersInc, "setmaxnreg.inc.sync.aligned.u32 {registers};")
            .warpgroup().numbers([registers]).cite(REGISTERS),
        row("setmaxnreg.dec", sm90a, SyncOp::RegistersDec, "setmaxnreg.dec.sync.aligned.u32 {registers};")
            .warpgroup().numbers([registers]).cite(REGISTERS),
        row("griddepcontrol.wait", sm90, SyncOp::GridWait, "griddepcontrol.wait;").cite(GRID),
        row("griddepcontrol.launch_dependents", sm90, SyncOp::GridLaunch, "griddepcontrol.launch_dependents;").cite(GRID),
    ]
}
