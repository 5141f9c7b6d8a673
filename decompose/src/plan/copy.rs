//! [`Candidate`] is one way to implement a copy: a row of the atom table with the layouts that
//! follow.

use carbyne_ir::layout::Layout;

/// Digits (extent, step in the column-major index) that must be consecutive in memory.
pub type Run = Vec<(i64, i64)>;

/// One way to implement a copy (or another operation with one source and one destination).
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The row.
    pub atom: &'static str,
    /// Threads of one instruction.
    pub group: i64,
    /// Scalars that one thread moves per instruction.
    pub n: i64,
    /// Threads that take part, where that is not the whole block; a layout over the block's.
    pub part: Option<Layout>,
    /// f: (t,v) to the source's column-major index; V is (values of one instruction, instructions).
    pub f: Layout,
    /// g: (t,v) to the destination's.
    pub g: Layout,
    /// The row's layouts in scalars, p of the source and q of the destination.
    pub p: Layout,
    /// See `p`.
    pub q: Layout,
    /// The run that an open layout of the source must provide.
    pub src_run: Option<Run>,
    /// The run that an open layout of the destination must provide.
    pub dst_run: Option<Run>,
    /// Whether the source lies in registers.
    pub src_rf: bool,
    /// Whether the destination does.
    pub dst_rf: bool,
    /// Instructions of one execution by one block, counted by warps.
    pub instructions: f64,
    /// Issue cycles of these.
    pub cost: f64,
    /// 32-byte sectors of global memory that one warp touches with one of them, on average.
    pub sectors: f64,
    /// Whether what spreads an open tensor crosses its modes unevenly.
    pub(crate) crosses: bool,
}

impl Candidate {
    /// Whether another one is the same row with the same layouts.
    pub(crate) fn is_same(&self, other: &Candidate) -> bool {
        self.atom == other.atom && self.f == other.f && self.g == other.g
    }

    /// Whether another one moves the same elements with the same instruction.
    pub(crate) fn moves_like(&self, other: &Candidate) -> bool {
        self.atom == other.atom && self.moves_same(other)
    }

    /// Whether another one moves the same elements.
    pub(crate) fn moves_same(&self, other: &Candidate) -> bool {
        self.part == other.part
            && (&self.f, &self.g) == (&other.f, &other.g)
            && (&self.src_run, &self.dst_run) == (&other.src_run, &other.dst_run)
    }
}
