//! Lists the atoms of plain loads from global memory and stores to it, one vector per thread.
//!
//! Templates are C++ accesses through a vector type. The CUDA compiler compiles each to one
//! instruction. The exception is `ld.global.b128.unaligned`, which may begin at any element: it
//! loads the two aligned vectors around its 16 bytes and combines them, by the function
//! [`LOAD_UNALIGNED`] of the printed text.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Elem};
use crate::dsl::{GL, ONE, RF, atom, r, vector_move, w};
use crate::limits::limits;

const LOAD: &str = "PTX ISA, Data Movement and Conversion Instructions: ld";
const STORE: &str = "PTX ISA, Data Movement and Conversion Instructions: st";

/// The function in CUDA C++ that loads 16 bytes from an unaligned address. Its arguments are an
/// array that begins at a multiple of 16 bytes, the index of the first element, and the number of
/// elements from the beginning of the aligned vector to this element. The function reads one or two
/// aligned vectors as a whole.
pub const LOAD_UNALIGNED: &str = "\
// Loads the 16 bytes of an array that begin at element i, from the one or two aligned vectors that
// contain them. The first vector begins `before` elements before i.
template <typename T, typename I>
__device__ __forceinline__ uint4 load_unaligned(const T* array, I i, int before) {
  constexpr int n = 16 / sizeof(T);
  const T* first = array + (i - before);
  const uint4 low = *reinterpret_cast<const uint4*>(first);
  const uint4 high = *reinterpret_cast<const uint4*>(first + (before == 0 ? 0 : n));
  const unsigned at = static_cast<unsigned>(before) * sizeof(T);
  const bool by_two = at & 8, by_one = at & 4;
  const unsigned a0 = by_two ? low.z : low.x, a1 = by_two ? low.w : low.y;
  const unsigned a2 = by_two ? high.x : low.z, a3 = by_two ? high.y : low.w;
  const unsigned a4 = by_two ? high.z : high.x, a5 = by_two ? high.w : high.y;
  const unsigned b0 = by_one ? a1 : a0, b1 = by_one ? a2 : a1, b2 = by_one ? a3 : a2;
  const unsigned b3 = by_one ? a4 : a3, b4 = by_one ? a5 : a4;
  const unsigned bits = at % 4 * 8;
  return make_uint4(__funnelshift_r(b0, b1, bits), __funnelshift_r(b1, b2, bits),
                    __funnelshift_r(b2, b3, bits), __funnelshift_r(b3, b4, bits));
}";

#[rustfmt::skip] // One row per atom.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let atoms = [
        ("ld.global.b8",   GL, RF, 8,   "unsigned char",  LOAD),
        ("ld.global.b16",  GL, RF, 16,  "unsigned short", LOAD),
        ("ld.global.b32",  GL, RF, 32,  "unsigned",       LOAD),
        ("ld.global.b64",  GL, RF, 64,  "uint2",          LOAD),
        ("ld.global.b128", GL, RF, 128, "uint4",          LOAD),
        ("st.global.b8",   RF, GL, 8,   "unsigned char",  STORE),
        ("st.global.b16",  RF, GL, 16,  "unsigned short", STORE),
        ("st.global.b32",  RF, GL, 32,  "unsigned",       STORE),
        ("st.global.b64",  RF, GL, 64,  "uint2",          STORE),
        ("st.global.b128", RF, GL, 128, "uint4",          STORE),
    ];
    let timing = &limits(arch).timing;
    let (since, cost) = (ArchReq::Since(Arch::Sm70), timing.global_unaligned(16));
    let unaligned = atom("ld.global.b128.unaligned", since, AtomOp::Move, cost)
        .operands([
            r(("S", Elem::Bits(128), GL, &[1], ONE)).through("uint4").anywhere(),
            w(("D", Elem::Bits(128), RF, &[1], ONE)).through("uint4"),
        ])
        .cuda("{D} = load_unaligned({S.array}, {S.at}, {S.before});")
        .cite(LOAD);
    atoms.into_iter()
        .map(|(name, from, to, bits, cxx, cite)| {
            atom(name, ArchReq::Since(Arch::Sm70), AtomOp::Move, timing.global(bits / 8))
                .operands(vector_move(from, to, bits, cxx))
                .cuda("{D} = {S};")
                .cite(cite)
        })
        .chain([unaligned])
        .collect()
}
