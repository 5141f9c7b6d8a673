//! Lists the atoms of `ldmatrix`: loads of 8x8 matrices of 16-bit units from shared memory by a
//! whole warp.
//!
//! The tile is `[8, 8*x]`: its coordinates are the unit within a row, and the row. Lanes 0-7 give
//! the addresses of the rows of the first matrix, lanes 8-15 the rows of the second, and so on.
//! With fewer than four matrices the hardware ignores the addresses of the other lanes. The table
//! repeats the addresses of the lanes before them (stride 0). `.trans` transposes each matrix in
//! registers: the layout of the destination differs, the layout of the source does not.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Elem};
use crate::dsl::{RF, SH, atom, r, w};
use crate::limits::limits;

const B16: Elem = Elem::Bits(16);
const CITE: &str = "PTX ISA, Warp-level matrix load instruction: ldmatrix";
const SOURCE: &str = "after Sun et al., Dissecting Tensor Cores via Microbenchmarks, 2022 \
                      (sm_80); estimate on other architectures";

#[rustfmt::skip] // One layout per line, aligned like the fragment tables of the PTX ISA.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let atoms = [
        ("ldmatrix.x1.b16", 1, "((8,4),8):((8,0),1)",  "((4,8),2):((2,8),1)",
         "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {D}, [{S}];"),
        ("ldmatrix.x2.b16", 2, "((16,2),8):((8,0),1)", "((4,8),(2,2)):((2,8),(1,64))",
         "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {D}, [{S}];"),
        ("ldmatrix.x4.b16", 4, "(32,8):(8,1)",         "((4,8),(2,4)):((2,8),(1,64))",
         "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {D}, [{S}];"),
        ("ldmatrix.x1.trans.b16", 1, "((8,4),8):((8,0),1)",  "((4,8),2):((16,1),8)",
         "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {D}, [{S}];"),
        ("ldmatrix.x2.trans.b16", 2, "((16,2),8):((8,0),1)", "((4,8),(2,2)):((16,1),(8,64))",
         "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {D}, [{S}];"),
        ("ldmatrix.x4.trans.b16", 4, "(32,8):(8,1)",         "((4,8),(2,4)):((16,1),(8,64))",
         "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {D}, [{S}];"),
    ];
    let limits = limits(arch);
    atoms.into_iter()
        .map(|(name, n_matrices, source, target, ptx)| {
            let mut cost = limits.shared_load(128 * n_matrices);
            // The latency of a plain load, and two cycles more for each further matrix.
            let further = 2.0 * (n_matrices - 1) as f64;
            cost.completion_cycles = limits.timing.shared_load_cycles + further;
            cost.source = SOURCE;
            let tile = [8, 8 * n_matrices];
            atom(name, ArchReq::Since(Arch::Sm75), AtomOp::Move, cost)
                .warp()
                .operands([
                    r(("S", B16, SH, &tile, source)),
                    w(("D", B16, RF, &tile, target)),
                ])
                .ptx(ptx)
                .cite(CITE)
        })
        .collect()
}
