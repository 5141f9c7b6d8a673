//! Lists the atoms of `wgmma.mma_async`: matrix multiply-accumulate by four warps (a warp group).
//! B, and possibly A, is read from shared memory through a matrix descriptor.
//!
//! There is one atom for every shape, every combination of types and both memories of A. Names
//! consist of shape, accumulator, A, B, and the memories of the factors. B is omitted if it has the
//! type of A. `ss` means that both factors are in shared memory, `rs` that A is in registers. The
//! texts are composed when a table first needs them, and live as long as the process.
//!
//! One atom covers both majors of a factor in shared memory (`imm-trans-a` and `imm-trans-b`, which
//! only 16-bit types have), and both MatMul and `MatMul.set` (`scale-d`). Factors are not negated:
//! `imm-scale-a` and `imm-scale-b` are 1.
//!
//! The table does not contain sparse A, one-bit factors, and `.satfinite` on integers, because no
//! spec has saturating sums.

mod shapes;

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Elem};
use crate::descriptor::MatrixRule;
use crate::dsl::{RF, SH, atom, r, rw};
use crate::limits::limits;
use carbyne_ir::scalar::Scalar;
use shapes::{FAMILIES, Family};
use std::sync::LazyLock;

/// Later architectures do not have `wgmma`.
const REQ: ArchReq = ArchReq::Exactly(Arch::Sm90a);
const CITE: &str = "PTX ISA, Asynchronous Multiply-and-Accumulate Instruction: wgmma.mma_async";

/// Rows of A and D in every shape.
const M: i64 = 64;

/// The parameters of an atom.
struct Entry {
    name: String,
    ptx: String,
    family: &'static Family,
    types: [Scalar; 3],
    n: i64,
    a_in_registers: bool,
}

/// All atoms, by family, types, place of A, and n.
static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let mut entries = Vec::new();
    for family in FAMILIES {
        for &types in family.types {
            for a_in_registers in [false, true] {
                for &n in family.n {
                    entries.push(Entry::new(family, types, a_in_registers, n));
                }
            }
        }
    }
    entries
});

pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    if !REQ.supports(arch) {
        return Vec::new();
    }
    ENTRIES.iter().map(|e| e.atom(arch)).collect()
}

impl Entry {
    fn new(family: &'static Family, types: [Scalar; 3], a_in_registers: bool, n: i64) -> Self {
        let ([a, b, d], k) = (types, family.k);
        let second = if a == b { String::new() } else { format!(".{b}") };
        let place = if a_in_registers { "rs" } else { "ss" };
        let transposed = match (family.transposes, a_in_registers) {
            (false, _) => "",
            (true, false) => ", {A.major}, {B.major}",
            (true, true) => ", {B.major}",
        };
        let scaled = if family.scales { ", 1, 1" } else { "" };
        let [a_ptx, b_ptx, d_ptx] = types.map(ptx_name);
        let shape = format!("m{M}n{n}k{k}");
        let opcode = format!("wgmma.mma_async.sync.aligned.{shape}.{d_ptx}.{a_ptx}.{b_ptx}");
        Entry {
            name: format!("wgmma.{shape}.{d}.{a}{second}.{place}"),
            ptx: format!("{opcode} {{D}}, {{A}}, {{B}}, {{accumulate}}{scaled}{transposed};"),
            family,
            types,
            n,
            a_in_registers,
        }
    }

    fn atom(&'static self, arch: Arch) -> Atom {
        let (family, n) = (self.family, self.n);
        let [a, b, d] = self.types.map(Elem::Scalar);
        let (k, majors) = (family.k, family.majors());
        let whole = |x: i64, y: i64| format!("(128,({x},{y})):(0,(1,{x}))");
        let accumulator = format!("((4,8,4),(2,2,{})):((128,1,16),(64,8,512))", n / 8);
        let a = if self.a_in_registers {
            r(("A", a, RF, &[M, k], family.a))
        } else {
            r(("A", a, SH, &[M, k], &whole(M, k))).described(MatrixRule { k_mode: 1, majors })
        };
        let b = r(("B", b, SH, &[k, n], &whole(k, n))).described(MatrixRule { k_mode: 0, majors });
        let d = rw(("D", d, RF, &[M, n], &accumulator));
        let described = [&a, &b].into_iter().filter(|o| o.matrix_rule().is_some());
        let bytes = described.map(|o| o.tile_size() * o.elem.bits() / 8).sum();
        let timing = &limits(arch).timing;
        let cost = timing.wgmma(M * n * k, bytes, timing.wgmma_f16 * family.speed);
        atom(&self.name, REQ, AtomOp::MatMul { l: 1, m: M, n, k }, cost)
            .warpgroup()
            .operands([a, b, d])
            .ptx(&self.ptx)
            .rounded(family.rounding)
            .in_wgmma_group()
            .cite(CITE)
    }
}

/// The PTX name of a type: `s8` for `i8`.
fn ptx_name(scalar: Scalar) -> String {
    let name = scalar.to_string();
    match name.strip_prefix('i') {
        Some(bits) => format!("s{bits}"),
        None => name,
    }
}
