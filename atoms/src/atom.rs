//! Defines [`Atom`], one entry of the atom table. It states the operation of an instruction
//! ([`AtomOp`]), the threads that execute it, the values that they hold ([`AtomOperand`]), when its
//! results are visible ([`Visibility`]), its rounding ([`Rounding`]), its cost ([`Cost`]) and its
//! CUDA text.
//!
//! Conventions that every consumer may rely on:
//! - Threads are numbered in the order of [`Atom::thread_layout`]. For a warp this number is the
//!   lane.
//! - [`AtomOperand::tv`] has two modes (T, V). It gives the column-major index in
//!   [`AtomOperand::tile`], in units of [`AtomOperand::elem`]. V counts the values of one thread in
//!   the order of its registers, low bits first.
//! - Tiles of a MatMul are A\[m,k\], B\[k,n\], D\[m,n\]. With l > 1 the batch l is the first mode:
//!   A\[l,m,k\].
//! - The first mode of a Move's tile is consecutive in memory. Source and destination share one
//!   tile: the same index names the same element in both. The operands of unary and binary atoms
//!   share one tile in this way too.
//! - A stride of 0 in the T mode of a read operand means that several threads name one element. For
//!   example, the lanes whose addresses `ldmatrix.x1` ignores name the rows of the lanes that it
//!   reads, so that every address is valid.
//! - A stride of 0 in the T mode of a written operand means that several threads hold the element.
//!   In memory only the first of them writes it, as `stmatrix.x1` does.
//! - Each thread gives the address of an operand in memory, or one matrix descriptor names the
//!   whole tile ([`Addressing::Descriptor`]). The layout of the view determines the descriptor, and
//!   the T mode of such an operand has stride 0.

use crate::arch::ArchReq;
use crate::template::Template;
use carbyne_ir::ast::{
    AccumulateOp, BinaryOp, CacheHint, ReduceOp, ShflOp, SpecKind, SyncOp, UnaryOp,
};
use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::Memory;
use std::fmt;

pub use crate::error_bound::ErrorBound;
pub use crate::number::{AtomNumber, NumberForm};
pub use crate::operand::{Addressing, AsmClass, AtomOperand, Divisor, Elem, OperandAccess};

/// One variant of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Atom {
    /// Unique in a table, and a word of the text format: `mma.m16n8k16.f32.f16`.
    pub name: &'static str,
    /// The architectures that have it.
    pub req: ArchReq,
    /// The operation that it computes.
    pub op: AtomOp,
    /// The number of threads that execute it together: 1, 8, 32 or 128.
    pub group: i64,
    /// The offsets of these threads from the first one: `32:1`, `(4,2):(1,16)`; `1:0` for one
    /// thread.
    pub thread_layout: Layout,
    /// Read operands in the order of the spec, then written operands.
    pub operands: Vec<AtomOperand>,
    /// How much data one execution handles.
    pub extent: Extent,
    /// How long caches keep the data that it accesses.
    pub cache: CacheHint,
    /// Numbers in the template besides operands.
    pub numbers: Vec<AtomNumber>,
    /// When other statements may read its outputs.
    pub visibility: Visibility,
    /// For a synchronization statement: whether it hands registers to asynchronous atoms, or back
    /// to the threads.
    pub handover: Option<Handover>,
    /// For a MatMul: whether it also implements `MatMul.set`, with `{accumulate}` in the template
    /// set to 0.
    pub sets: bool,
    /// For a product, a sum or a difference: whether the CUDA compiler may contract a product and
    /// the addition of its result to one fused multiply-add, which does not round the product.
    pub contracts: bool,
    /// Whether ptxas compiles a part of its text to a subroutine, such as the slow path of a
    /// division, so that the kernel contains a call (`CALL.REL.NOINC`). Found by disassembly of the
    /// probe of each atom, compiled by NVRTC 12.9 for sm_80 and sm_90a. After such a call ptxas
    /// treats the registers of a factor of `wgmma` as free. Therefore an atom that calls must not
    /// stand beside an atom with [`Atom::keeps_factor`].
    pub calls: bool,
    /// Its cost on the architecture of the table.
    pub cost: Cost,
    /// Its CUDA text.
    pub template: Template,
    /// Whether it is one instruction or a sequence of several.
    pub kind: AtomKind,
    /// How it rounds its results.
    pub rounding: Rounding,
    /// The title of the document and of the section that define it.
    pub cite: &'static str,
}

impl Atom {
    /// The operand with this name.
    pub fn operand(&self, name: &str) -> Option<&AtomOperand> {
        self.operands.iter().find(|o| o.name == name)
    }

    /// The number with this name.
    pub fn number(&self, name: &str) -> Option<&AtomNumber> {
        self.numbers.iter().find(|n| n.name == name)
    }

    /// Whether it reads only as many elements as a number says: that of `valid=`, or the number of
    /// elements up to the end of a tensor.
    pub fn counts(&self) -> bool {
        self.number("valid").is_some()
    }

    /// Whether a thread may move its elements one by one instead. This holds for a copy of one
    /// thread's values.
    pub fn splits(&self) -> bool {
        self.op == AtomOp::Move && self.group == 1 && self.operands.len() == 2
    }

    /// Whether it has an operand that may begin at any element ([`AtomOperand::around`]). Such an
    /// atom reads the aligned vectors that contain the operand.
    pub fn begins_anywhere(&self) -> bool {
        self.operands.iter().any(|o| o.around > 0)
    }

    /// Whether it implements specs of this kind.
    pub fn implements(&self, kind: SpecKind) -> bool {
        self.kinds().any(|own| own == kind)
    }

    /// The kinds of specs that it implements. Empty for a synchronization statement.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = SpecKind> {
        let set = self.sets.then_some(SpecKind::MatMulSet);
        self.op.spec_kind().into_iter().chain(set)
    }

    /// Whether it is an asynchronous MatMul that reads its first factor from registers. ptxas (CUDA
    /// 12.9 and 13.0) reuses these registers after a call, so that the next product would read
    /// wrong values.
    pub fn keeps_factor(&self) -> bool {
        matches!(self.op, AtomOp::MatMul { .. })
            && !self.visibility.is_immediate()
            && self.operands.first().is_some_and(|a| a.allows(Memory::Rf))
    }

    /// Whether one of its operands is a literal divisor. The atom multiplies by the reciprocal.
    pub fn divides_by_literal(&self) -> bool {
        self.operands.iter().any(|o| o.divisor.is_some())
    }

    /// The operands that it reads, including those that it also writes.
    pub fn reads(&self) -> impl Iterator<Item = &AtomOperand> {
        self.operands.iter().filter(|o| o.access != OperandAccess::Write)
    }

    /// The operands that it writes, including those that it also reads.
    pub fn writes(&self) -> impl Iterator<Item = &AtomOperand> {
        self.operands.iter().filter(|o| o.access != OperandAccess::Read)
    }

    /// The bound on the error of a result beyond rounding, if the atom states one.
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

    /// The unit that its issue cycles occupy.
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

    /// Whether an operand must lie in memory that other threads can access.
    pub fn touches_memory(&self) -> bool {
        self.operands.iter().any(|o| !o.memory.contains(&Memory::Rf))
    }
}

/// The operation of an atom.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum AtomOp {
    /// D = S, element by element. If the atom has a number `valid`, it reads only that many bytes
    /// of S and sets the other bytes of D to 0. The attribute `valid=` of the spec counts elements.
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
    /// D is the reduction of all elements of the tile of S to one element.
    Reduction(ReduceOp),
    /// D = S of another lane. The tile is \[lane, value\]. `{lane}` in the template is the value of
    /// `lane=` in the spec. A thread keeps its own value if the group does not contain that lane.
    Shfl(ShflOp),
    /// Sets every element of D to `value`.
    Init,
    /// A synchronization statement. Its operand B is an mbarrier. `{map}` in the template is the
    /// address of a tensor map.
    Sync(SyncOp),
    /// The statement `barrier` for these threads.
    Barrier(BarrierScope),
    /// P becomes nonzero in one lane of the group.
    Elect,
}

/// The unit that an instruction occupies besides its issue slot.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Tensor cores.
    Matrix,
    /// The units of special functions.
    Special,
    /// Shared memory, or the path to global memory.
    Memory,
    /// No other unit: the issue rate limits such arithmetic.
    Issue,
}

/// The threads for which a `barrier` waits.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum BarrierScope {
    /// All threads of the block.
    Block,
    /// All lanes of one warp.
    Warp,
    /// Some lanes of one warp. `{lanes}` is their mask.
    Lanes,
    /// Whole warps. `{threads}` is the number of threads, `{barrier}` the index of the hardware
    /// barrier.
    Warps,
}

impl AtomOp {
    /// The batches of a MatMul and its extents along M, N and K; `None` for other operations.
    pub fn matmul_extents(self) -> Option<(i64, i64, i64, i64)> {
        let AtomOp::MatMul { l, m, n, k } = self else { return None };
        Some((l, m, n, k))
    }

    /// The kind of spec that the atom implements. `None` for a synchronization statement.
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

/// How the amount of data of one execution is determined.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// From the tiles of the operands.
    Tile,
    /// Any number of units, contiguous in source and destination. `{bytes}` is the number of bytes.
    Vector,
    /// A box of a tensor map with this number of modes. In global memory `{c0}`, `{c1}` and so on
    /// are the coordinates of its first element, the fastest mode first. In shared memory the box
    /// is compact in this order and swizzled as the tensor map says.
    Box(usize),
}

/// When the threads that executed an atom may read its outputs.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Visibility {
    /// In the next statement.
    Immediate,
    /// After the issuing thread has committed its group of asynchronous copies and waited for the
    /// group.
    AsyncGroup,
    /// After a wait for the phase of an mbarrier that counts the bytes: `{bar}` in the template.
    Mbarrier,
    /// After the issuing thread has committed its group of bulk copies and waited for the group.
    BulkGroup,
    /// After the warps have committed their group of `wgmma` and waited for the group
    /// (`wgmma.commit`, `wgmma.wait(n)`). Until then no other instruction may read or write its
    /// registers, except a `wgmma` of the same shape that accumulates into them. The shared memory
    /// that it reads must not be written either. A `wgmma.fence` must stand before the first use of
    /// an accumulator, and between the instructions that write its registers and the `wgmma`.
    /// Between writes of threads to shared memory and the `wgmma` each writing thread executes a
    /// `fence.async`, and then a barrier follows (PTX ISA, Asynchronous Warpgroup Level Matrix
    /// Instructions).
    WgmmaGroup,
}

/// The unit that executes an instruction while its thread continues.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Worker {
    /// None: the instruction is complete before the thread continues.
    Nobody,
    /// A copy engine.
    Copies,
    /// Tensor cores.
    Products,
}

/// How a thread learns that an instruction is complete.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum End {
    /// By program order: the next statement of the thread comes after it.
    Order,
    /// The issuing thread commits a group of such instructions and waits for the group.
    Group,
    /// It counts on an mbarrier. Any thread may wait for the phase.
    Phase,
}

/// The properties of one [`Visibility`]: one row of the table in [`Visibility::properties`].
struct Properties {
    /// The unit that executes the atom while its thread continues.
    worker: Worker,
    /// How a thread learns that the atom is complete.
    end: End,
    /// Whether it accesses memory through the asynchronous proxy. A `fence.async` must stand
    /// between it and accesses of threads.
    is_async_proxy: bool,
    /// Whether registers are in use until the atom is complete.
    holds_registers: bool,
}

impl Visibility {
    /// The table of all visibilities.
    fn properties(self) -> Properties {
        let (worker, end, is_async_proxy, holds_registers) = match self {
            Visibility::Immediate => (Worker::Nobody, End::Order, false, false),
            Visibility::AsyncGroup => (Worker::Copies, End::Group, false, false),
            Visibility::Mbarrier => (Worker::Copies, End::Phase, true, false),
            Visibility::BulkGroup => (Worker::Copies, End::Group, true, false),
            Visibility::WgmmaGroup => (Worker::Products, End::Group, true, true),
        };
        Properties { worker, end, is_async_proxy, holds_registers }
    }

    /// Whether the next statement sees the results.
    pub fn is_immediate(self) -> bool {
        self.properties().end == End::Order
    }

    /// Whether it is an asynchronous copy in the generic proxy, for which the thread commits a
    /// group and waits.
    pub fn is_async_copy(self) -> bool {
        let Properties { worker, is_async_proxy, .. } = self.properties();
        worker == Worker::Copies && !is_async_proxy
    }

    /// Whether it is a copy in the asynchronous proxy.
    pub fn is_bulk(self) -> bool {
        let Properties { worker, is_async_proxy, .. } = self.properties();
        worker == Worker::Copies && is_async_proxy
    }

    /// Whether it counts on an mbarrier, which the statement names with `bar=`.
    pub fn names_barrier(self) -> bool {
        self.properties().end == End::Phase
    }

    /// Whether it uses registers until it is complete: threads must neither read nor write them
    /// before.
    pub fn holds_registers(self) -> bool {
        self.properties().holds_registers
    }
}

/// The effect of a statement on the registers of atoms with [`Visibility::WgmmaGroup`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Handover {
    /// Later atoms see the values that threads wrote to the registers before.
    ToAtoms,
    /// Later statements of the threads see the values that atoms wrote to the registers.
    ToThreads,
}

/// The cost of one execution by one warp. 32 threads execute an atom of one thread at once. The
/// four warps of an atom of 128 threads each take this long, in parallel. An operand that may lie
/// in registers or in memory counts as registers.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Cost {
    /// Cycles for which the scheduler of the warp or the unit behind it is busy.
    pub issue_cycles: f64,
    /// Cycles from issue until the outputs are available.
    pub completion_cycles: f64,
    /// The maximum throughput of a multiprocessor for this atom.
    pub per_sm_per_cycle: Rate,
    /// Whether the architecture has no unit for this instruction. The assembler then writes a
    /// sequence of other instructions, which is many times slower.
    pub emulated: bool,
    /// The source of the numbers: a document, `measured`, or `estimate`.
    pub source: &'static str,
}

/// A throughput of a multiprocessor.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Rate {
    /// Bytes moved per cycle.
    Bytes(f64),
    /// Results per cycle: multiply-adds for a MatMul, elements for other specs.
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
    /// One machine instruction, or the same machine instruction once per value.
    Instruction,
    /// Several instructions, or a function of a library.
    Sequence {
        /// The formula that it computes.
        formula: &'static str,
        /// The error bound.
        error: &'static str,
    },
}

/// How results are rounded. The simulator rounds in this way.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Rounding {
    /// The result is exact, or a copy of the bits.
    Exact,
    /// The exact result is rounded once, to nearest even.
    Nearest,
    /// The exact result is rounded once, to nearest; ties are rounded away from zero.
    NearestAway,
    /// a·b + c is rounded once, to nearest even. A sum over k is a chain of such operations.
    Fused,
    /// The distance of the result from the exact result is within the bound. The simulator rounds
    /// the exact result to nearest even. The bound is added to the tolerance when results are
    /// compared with those of a device, and when a body that uses the atom is compared with the
    /// meaning of its spec.
    Approximate(ErrorBound),
    /// Integers: products and sums are exact, and the accumulator keeps their low bits.
    Wrapping,
    /// Products are exact. The order and the precision of the sum over k and the accumulator are
    /// unspecified (PTX ISA, Matrix multiply-accumulate operation using mma instruction). The
    /// simulator sums exactly and rounds once to the accumulator's type. Comparisons with a device
    /// allow for the difference.
    MmaAccumulate,
    /// Like [`Rounding::MmaAccumulate`], with the bound as additional tolerance: the hardware
    /// aligns all products to the largest one and keeps few bits of the others.
    MmaAligned(ErrorBound),
}
