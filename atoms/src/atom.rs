//! An atom, one entry of the table: what an instruction computes, with which threads, on which
//! values, at what cost, and how it is written.
//!
//! Conventions that every consumer may rely on:
//! - Threads are numbered in the order of [`Atom::thread_layout`]; for a warp that is the lane.
//! - [`AtomOperand::tv`] has two modes (T, V) and gives the column-major index in
//!   [`AtomOperand::tile`], counted in units of [`AtomOperand::elem`]. V counts one thread's values
//!   in the order of its registers, low bits first.
//! - Tiles of a MatMul are A\[m,k\], B\[k,n\], D\[m,n\]; where l > 1 the batch l is the first mode:
//!   A\[l,m,k\]. Tiles of a Move have their first mode consecutive in memory, and source and
//!   destination share one tile: they name the same element by the same index. So do the operands
//!   of unary and binary atoms.
//! - A stride of 0 in the T mode of a read operand means that several threads name one element:
//!   lanes whose addresses `ldmatrix.x1` ignores name the rows of the lanes that it reads, which
//!   keeps every address valid. Of a written operand it means that several threads hold the
//!   element; in memory only the first of them writes it, as `stmatrix.x1` does.
//! - An operand in memory is found by the address that each thread gives, or by one descriptor of
//!   the whole tile ([`Addressing::Descriptor`]), which follows from the layout of the view: its T
//!   mode has stride 0.

use crate::arch::ArchReq;
use crate::template::Template;
use carbyne_ir::ast::{
    AccumulateOp, BinaryOp, CacheHint, ReduceOp, ShflOp, SpecKind, SyncOp, UnaryOp,
};
use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::Memory;
use std::fmt;

pub use crate::bound::ErrorBound;
pub use crate::number::{AtomNumber, NumberForm};
pub use crate::operand::{Addressing, AsmClass, AtomOperand, Divisor, Elem, OperandAccess};

/// One instruction variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Atom {
    /// `mma.m16n8k16.f32.f16`; unique in a table, and a word of the text format.
    pub name: &'static str,
    /// Which architectures have it.
    pub req: ArchReq,
    /// What it computes.
    pub op: AtomOp,
    /// Threads that execute it together: 1, 8, 32, 128.
    pub group: i64,
    /// Where those threads are, as offsets from the first: `32:1`, `(4,2):(1,16)`; `1:0` for one.
    pub thread_layout: Layout,
    /// Read operands first, in the order of the spec, then written ones.
    pub operands: Vec<AtomOperand>,
    /// How much its operands hold.
    pub extent: Extent,
    /// How long caches keep what it touches.
    pub cache: CacheHint,
    /// Numbers in the template besides operands.
    pub numbers: Vec<AtomNumber>,
    /// When its outputs may be read.
    pub visibility: Visibility,
    /// Of a statement: whether it hands registers to asynchronous atoms, or back to the threads.
    pub handover: Option<Handover>,
    /// Of a MatMul: whether it implements `MatMul.set` too, `{accumulate}` in the template being 0.
    pub sets: bool,
    /// Of a product, a sum or a difference: whether the CUDA compiler may make one fused
    /// multiply-add of a product and what adds it up, which leaves out the rounding of the product.
    pub contracts: bool,
    /// Whether ptxas makes a subroutine of a part of its text, such as the slow path of a division,
    /// so that the kernel has a call (`CALL.REL.NOINC`). Found by disassembly of each atom's probe,
    /// compiled by NVRTC 12.9 for sm_80 and sm_90a. Behind such a call the registers of a factor of
    /// `wgmma` are taken for free: an atom that calls must not stand beside one of
    /// [`Atom::keeps_factor`].
    pub calls: bool,
    /// What it costs on the table's architecture.
    pub cost: Cost,
    /// How it is written.
    pub template: Template,
    /// One instruction, or several that stand for one.
    pub kind: AtomKind,
    /// How results are rounded.
    pub rounding: Rounding,
    /// The document and section title that define it.
    pub cite: &'static str,
}

impl Atom {
    /// The operand of that name.
    pub fn operand(&self, name: &str) -> Option<&AtomOperand> {
        self.operands.iter().find(|o| o.name == name)
    }

    /// The number of that name.
    pub fn number(&self, name: &str) -> Option<&AtomNumber> {
        self.numbers.iter().find(|n| n.name == name)
    }

    /// Whether a number says how many elements it reads: `valid=`, or where a tensor ends.
    pub fn counts(&self) -> bool {
        self.number("valid").is_some()
    }

    /// Whether a thread may move each of its elements alone instead: a copy of a thread's own
    /// values.
    pub fn splits(&self) -> bool {
        self.op == AtomOp::Move && self.group == 1 && self.operands.len() == 2
    }

    /// Whether an operand begins anywhere, and is read as the aligned vectors that hold it
    /// ([`AtomOperand::around`]).
    pub fn begins_anywhere(&self) -> bool {
        self.operands.iter().any(|o| o.around > 0)
    }

    /// Whether it implements specs of that kind.
    pub fn implements(&self, kind: SpecKind) -> bool {
        self.kinds().any(|own| own == kind)
    }

    /// The specs that it implements; none of a statement.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = SpecKind> {
        let set = self.sets.then_some(SpecKind::MatMulSet);
        self.op.spec_kind().into_iter().chain(set)
    }

    /// Whether it is a MatMul that goes on behind the statement and reads its first factor from
    /// registers: ptxas (CUDA 12.9 and 13.0) gives these registers to others behind a call, so that
    /// the next product reads what is no factor.
    pub fn keeps_factor(&self) -> bool {
        matches!(self.op, AtomOp::MatMul { .. })
            && !self.visibility.is_immediate()
            && self.operands.first().is_some_and(|a| a.allows(Memory::Rf))
    }

    /// Whether it takes a literal, by whose reciprocal it multiplies.
    pub fn divides_by_literal(&self) -> bool {
        self.operands.iter().any(|o| o.divisor.is_some())
    }

    /// Operands that are read, those also written included.
    pub fn reads(&self) -> impl Iterator<Item = &AtomOperand> {
        self.operands.iter().filter(|o| o.access != OperandAccess::Write)
    }

    /// Operands that are written, those also read included.
    pub fn writes(&self) -> impl Iterator<Item = &AtomOperand> {
        self.operands.iter().filter(|o| o.access != OperandAccess::Read)
    }

    /// How far a result may be from the exact one beyond rounding, where the atom states it.
    pub fn error_bound(&self) -> Option<ErrorBound> {
        match self.rounding {
            Rounding::Approximate(bound) | Rounding::MmaAligned(bound) => Some(bound),
            _ => None,
        }
    }

    /// Whether several threads must execute it together, converged.
    pub fn is_collective(&self) -> bool {
        self.group > 1
    }

    /// The unit that its issue cycles keep busy.
    pub fn unit(&self) -> Unit {
        match self.op {
            AtomOp::MatMul { .. } if self.group > 1 => Unit::Matrix,
            AtomOp::Unary(
                UnaryOp::Exp
                | UnaryOp::Exp2
                | UnaryOp::Log
                | UnaryOp::Rcp
                | UnaryOp::Rsqrt
                | UnaryOp::Sqrt
                | UnaryOp::Tanh
                | UnaryOp::Sigmoid
                | UnaryOp::Silu
                | UnaryOp::Gelu,
            ) => Unit::Special,
            AtomOp::Binary(BinaryOp::Div) if !self.divides_by_literal() => Unit::Special,
            _ if self.touches_memory() => Unit::Memory,
            _ => Unit::Issue,
        }
    }

    /// Whether an operand must lie in memory that other threads see.
    pub fn touches_memory(&self) -> bool {
        self.operands.iter().any(|o| !o.memory.contains(&Memory::Rf))
    }
}

/// What an atom computes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum AtomOp {
    /// D = S, element by element. Where the atom has a number `valid`, only so many bytes of S are
    /// read, as `valid=` says in elements, and the others become 0.
    Move,
    /// D = op(D, S), element by element. The update of each element is atomic.
    Accumulate(AccumulateOp),
    /// D += A·B for each of `l` batches.
    MatMul {
        /// Batches.
        l: i64,
        /// Rows of A and D.
        m: i64,
        /// Columns of B and D.
        n: i64,
        /// Columns of A, rows of B.
        k: i64,
    },
    /// D = op(S).
    Unary(UnaryOp),
    /// D = op(A, B).
    Binary(BinaryOp),
    /// D = A where P is true, else B.
    Select,
    /// D = S reduced: all of its tile to one element.
    Reduction(ReduceOp),
    /// D = S of another lane: the tile is \[lane, value\], and `{lane}` in the template is what the
    /// spec says with `lane=`. A lane that names none of the group keeps its own value.
    Shfl(ShflOp),
    /// Every element of D becomes `value`.
    Init,
    /// A statement between specs. Its operand B is an mbarrier; `{map}` in the template is the
    /// address of a tensor map.
    Sync(SyncOp),
    /// The statement `barrier`, of these threads.
    Barrier(BarrierScope),
    /// P is not 0 in one lane of the group.
    Elect,
}

/// What an instruction keeps busy besides the slot that it is issued in.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// The units that multiply matrices.
    Matrix,
    /// Those of special functions.
    Special,
    /// Shared memory, or the way to global memory.
    Memory,
    /// Nothing else: arithmetic is done at the rate at which it is issued.
    Issue,
}

/// Whom a `barrier` names.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum BarrierScope {
    /// All threads of the block.
    Block,
    /// All lanes of one warp.
    Warp,
    /// Some lanes of one warp: `{lanes}` is their mask.
    Lanes,
    /// Whole warps: `{threads}` is how many threads, `{barrier}` a number that the block uses for
    /// them.
    Warps,
}

impl AtomOp {
    /// The spec that the atom implements; none for statements between specs.
    pub fn spec_kind(self) -> Option<SpecKind> {
        Some(match self {
            AtomOp::Move => SpecKind::Move,
            AtomOp::Accumulate(op) => SpecKind::Accumulate(op),
            AtomOp::MatMul { .. } => SpecKind::MatMul,
            AtomOp::Unary(op) => SpecKind::Unary(op),
            AtomOp::Binary(op) => SpecKind::Binary(op),
            AtomOp::Select => SpecKind::Select,
            AtomOp::Reduction(op) => SpecKind::Reduction(op),
            AtomOp::Shfl(op) => SpecKind::Shfl(op),
            AtomOp::Init => SpecKind::Init,
            AtomOp::Sync(_) | AtomOp::Barrier(_) | AtomOp::Elect => return None,
        })
    }
}

impl fmt::Display for AtomOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AtomOp::Move => f.write_str("Move"),
            AtomOp::Accumulate(op) => write!(f, "Move.{op}"),
            AtomOp::MatMul { l: 1, m, n, k } => write!(f, "MatMul {m}x{n}x{k}"),
            AtomOp::MatMul { l, m, n, k } => write!(f, "MatMul {l} of {m}x{n}x{k}"),
            AtomOp::Unary(op) => write!(f, "UnaryPointwise.{op}"),
            AtomOp::Binary(op) => write!(f, "BinaryPointwise.{op}"),
            AtomOp::Select => f.write_str("Select"),
            AtomOp::Reduction(op) => write!(f, "Reduction.{op}"),
            AtomOp::Shfl(op) => write!(f, "Shfl.{op}"),
            AtomOp::Init => f.write_str("Init"),
            AtomOp::Sync(op) => f.write_str(&op.usage()),
            AtomOp::Elect => f.write_str("elect()"),
            AtomOp::Barrier(BarrierScope::Block) => f.write_str("barrier of a block"),
            AtomOp::Barrier(BarrierScope::Warp) => f.write_str("barrier of a warp"),
            AtomOp::Barrier(BarrierScope::Lanes) => f.write_str("barrier of lanes of a warp"),
            AtomOp::Barrier(BarrierScope::Warps) => f.write_str("barrier of several warps"),
        }
    }
}

/// How much the operands of an atom hold.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// What their tiles say.
    Tile,
    /// A contiguous vector of any number of units on both sides: `{bytes}` is how many bytes.
    Vector,
    /// A box of a tensor map of so many modes. In global memory `{c0}`, `{c1}` and so on are the
    /// coordinates of its first element, the fastest mode first; in shared memory it is compact in
    /// that order, swizzled as the map says.
    Box(usize),
}

/// When the outputs of an atom may be read by the threads that executed it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Visibility {
    /// By the next statement.
    Immediate,
    /// After the issuing thread has committed its group of asynchronous copies and waited for it.
    AsyncGroup,
    /// After a wait for the phase of an mbarrier, `{bar}` in the template, that counts its bytes.
    Mbarrier,
    /// After the issuing thread has committed its group of bulk copies and waited for it.
    BulkGroup,
    /// After the warps have committed their group of `wgmma` and waited for it (`wgmma.commit`,
    /// `wgmma.wait(n)`). Until then its registers may be neither read nor written, save by a
    /// `wgmma` of the same shape that accumulates into them; nor may what it reads of shared memory
    /// be written. Registers that other instructions wrote are passed to it by a `wgmma.fence`, and
    /// so is the first use of an accumulator; shared memory that threads wrote, by a `fence.async`
    /// of each and then a barrier (PTX ISA, Asynchronous Warpgroup Level Matrix Instructions).
    WgmmaGroup,
}

/// Who works on an instruction while its thread goes on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Worker {
    /// Nobody: it is done when the thread goes on.
    Nobody,
    /// The engines that copy between memories.
    Copies,
    /// The units that multiply.
    Products,
}

/// By what its end is noticed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum End {
    /// The next statement of the thread comes after it.
    Order,
    /// Who issued it commits a group of such instructions, and waits for the group.
    Group,
    /// It counts on an mbarrier, for whose phase anybody may wait.
    Phase,
}

/// A row of the table of visibilities. Their questions are answered by this.
struct Facts {
    /// Who works on it while its thread goes on.
    worker: Worker,
    /// By what its end is noticed.
    end: End,
    /// Whether memory is accessed in the asynchronous proxy: a `fence.async` stands between it and
    /// accesses of threads.
    is_async_proxy: bool,
    /// Whether registers are operands of it until its end.
    holds_registers: bool,
}

impl Visibility {
    /// The table of visibilities.
    fn facts(self) -> Facts {
        let (worker, end, is_async_proxy, holds_registers) = match self {
            Visibility::Immediate => (Worker::Nobody, End::Order, false, false),
            Visibility::AsyncGroup => (Worker::Copies, End::Group, false, false),
            Visibility::Mbarrier => (Worker::Copies, End::Phase, true, false),
            Visibility::BulkGroup => (Worker::Copies, End::Group, true, false),
            Visibility::WgmmaGroup => (Worker::Products, End::Group, true, true),
        };
        Facts { worker, end, is_async_proxy, holds_registers }
    }

    /// Whether the next statement sees the results.
    pub fn is_immediate(self) -> bool {
        self.facts().end == End::Order
    }

    /// Whether it is a copy that goes on in the proxy of its thread, which commits it and waits for
    /// it.
    pub fn is_async_copy(self) -> bool {
        let Facts { worker, is_async_proxy, .. } = self.facts();
        worker == Worker::Copies && !is_async_proxy
    }

    /// Whether it is a copy in the asynchronous proxy.
    pub fn is_bulk(self) -> bool {
        let Facts { worker, is_async_proxy, .. } = self.facts();
        worker == Worker::Copies && is_async_proxy
    }

    /// Whether it counts on an mbarrier, which the statement names (`bar=`).
    pub fn names_barrier(self) -> bool {
        self.facts().end == End::Phase
    }

    /// Whether registers are operands of it until its end: threads may neither read nor write them
    /// meanwhile.
    pub fn holds_registers(self) -> bool {
        self.facts().holds_registers
    }
}

/// What a statement does with the registers of atoms of [`Visibility::WgmmaGroup`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Handover {
    /// What the threads wrote to them before it is seen by the atoms after it.
    ToAtoms,
    /// What the atoms wrote to them is seen by the threads after it.
    ToThreads,
}

/// What one execution by one warp costs (an atom of one thread is executed by 32 at once; the four
/// warps of an atom of 128 each take that long, side by side). Operands that may lie in registers
/// or memory are counted as registers.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Cost {
    /// Cycles for which the warp's scheduler or the unit behind it is busy.
    pub issue_cycles: f64,
    /// Cycles from issue until the outputs are there.
    pub completion_cycles: f64,
    /// What a multiprocessor does at most per cycle by this atom.
    pub per_sm_per_cycle: Rate,
    /// Whether the architecture takes the instruction and has no unit for it: its assembler writes
    /// a sequence of others, many times slower.
    pub emulated: bool,
    /// Where the numbers come from; `estimate` where nobody has measured.
    pub source: &'static str,
}

/// A rate of a multiprocessor.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Rate {
    /// Bytes moved per cycle.
    Bytes(f64),
    /// Results per cycle: multiply-adds for a MatMul, elements else.
    Ops(f64),
}

impl Rate {
    /// The number without its unit.
    pub fn value(self) -> f64 {
        match self {
            Rate::Bytes(v) | Rate::Ops(v) => v,
        }
    }
}

/// Whether an atom is one instruction.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum AtomKind {
    /// One machine instruction, or the same one for each value.
    Instruction,
    /// Several, or a library function.
    Sequence {
        /// What is computed.
        formula: &'static str,
        /// The error bound.
        error: &'static str,
    },
}

/// How results are rounded: what the simulator does.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Rounding {
    /// Bits are kept, or the result is always exact.
    Exact,
    /// The exact result is rounded once, to nearest even.
    Nearest,
    /// The exact result is rounded once, to nearest, and away from zero where two are as near.
    NearestAway,
    /// a·b + c is rounded once, to nearest even; a sum over k is a chain of these.
    Fused,
    /// The result is no farther from the exact one than the bound says. The simulator rounds the
    /// exact result to nearest even; comparisons with a device, and of a body that uses the atom
    /// with what its spec means, allow for the bound.
    Approximate(ErrorBound),
    /// Of integers: products and sums are exact, and the accumulator keeps their low bits.
    Wrapping,
    /// Products are exact; order and precision of the sum over k and the accumulator are
    /// unspecified (PTX ISA, Matrix multiply-accumulate operation using mma instruction). The
    /// simulator sums exactly and rounds once to the accumulator's type; comparisons with a device
    /// allow for the difference.
    MmaAccumulate,
    /// As [`Rounding::MmaAccumulate`], and no farther from the exact sum than the bound says on top
    /// of what that allows: products are aligned to the largest of them, and few bits of the others
    /// are kept.
    MmaAligned(ErrorBound),
}
