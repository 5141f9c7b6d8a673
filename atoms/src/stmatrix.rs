//! Lists the atoms of `stmatrix`: stores of 8x8 matrices of 16-bit units to shared memory by a
//! whole warp. They are the reverse of `ldmatrix`, with the same tile and layouts.
//!
//! With fewer than four matrices the hardware ignores the addresses of the other lanes. The table
//! repeats the addresses of the lanes before them (stride 0). `.trans` transposes each matrix.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Elem};
use crate::dsl::{RF, SH, atom, r, w};
use crate::limits::limits;

const B16: Elem = Elem::Bits(16);
const CITE: &str = "PTX ISA, Warp-level matrix store instruction: stmatrix";

#[rustfmt::skip] // One layout per line, aligned like the fragment tables of the PTX ISA.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let atoms = [
        ("stmatrix.x1.b16", 1, "((4,8),2):((2,8),1)",          "((8,4),8):((8,0),1)",
         "stmatrix.sync.aligned.m8n8.x1.shared.b16 [{D}], {S};"),
        ("stmatrix.x2.b16", 2, "((4,8),(2,2)):((2,8),(1,64))", "((16,2),8):((8,0),1)",
         "stmatrix.sync.aligned.m8n8.x2.shared.b16 [{D}], {S};"),
        ("stmatrix.x4.b16", 4, "((4,8),(2,4)):((2,8),(1,64))", "(32,8):(8,1)",
         "stmatrix.sync.aligned.m8n8.x4.shared.b16 [{D}], {S};"),
        ("stmatrix.x1.trans.b16", 1, "((4,8),2):((16,1),8)",          "((8,4),8):((8,0),1)",
         "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [{D}], {S};"),
        ("stmatrix.x2.trans.b16", 2, "((4,8),(2,2)):((16,1),(8,64))", "((16,2),8):((8,0),1)",
         "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [{D}], {S};"),
        ("stmatrix.x4.trans.b16", 4, "((4,8),(2,4)):((16,1),(8,64))", "(32,8):(8,1)",
         "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [{D}], {S};"),
    ];
    let limits = limits(arch);
    atoms.into_iter()
        .map(|(name, n_matrices, source, target, ptx)| {
            let mut cost = limits.shared_store(128 * n_matrices);
            cost.source = "estimate, as a plain store of as many bytes";
            let tile = [8, 8 * n_matrices];
            atom(name, ArchReq::Since(Arch::Sm90), AtomOp::Move, cost)
                .warp()
                .operands([
                    r(("S", B16, RF, &tile, source)),
                    w(("D", B16, SH, &tile, target)),
                ])
                .ptx(ptx)
                .cite(CITE)
        })
        .collect()
}
