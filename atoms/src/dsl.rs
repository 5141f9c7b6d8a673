//! Defines the constructors by which the files of this crate write atoms as one row each ([`atom`],
//! [`r`] for a read operand, [`w`] for a written one, ...), and costs that follow from the rates of
//! an architecture.
//!
//! Layouts in rows are texts, as in the text format. So a search for a layout finds the atom
//! together with the tests and dumps that show it. A text that does not parse is a defect of this
//! crate. The tests in `sweep.rs` build every table.

use crate::arch::ArchReq;
use crate::atom::{
    Addressing, AsmClass, Atom, AtomKind, AtomNumber, AtomOp, AtomOperand, Cost, Elem, Extent,
    Handover, NumberForm, OperandAccess, Rate, Rounding, Visibility,
};
use crate::descriptor::MatrixRule;
use crate::limits::{ArchLimits, Speed, Timing};
use crate::template::Template;
use carbyne_ir::ast::CacheHint;
use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::Memory;

pub(crate) const GL: &[Memory] = &[Memory::Gl];
pub(crate) const SH: &[Memory] = &[Memory::Sh];
pub(crate) const RF: &[Memory] = &[Memory::Rf];
pub(crate) const IX: &[Memory] = &[Memory::Ix];
pub(crate) const PM: &[Memory] = &[Memory::Pm];
/// Operands of C++ expressions: the CUDA compiler loads them from memory and stores them there.
pub(crate) const ANY: &[Memory] = &[Memory::Rf, Memory::Sh, Memory::Gl];

/// The thread-value layout of one thread with one value.
pub(crate) const ONE: &str = "(1,1):(0,0)";
/// The thread-value layout of one thread with a pair of values.
pub(crate) const PAIR: &str = "(1,2):(0,1)";

/// Alignment in bytes of a tile that a descriptor names. A swizzle may need more.
const DESCRIBED_ALIGN: i64 = 16;

/// The source of rates of emulated instructions.
const EMULATED: &str = "estimate, after the instructions that ptxas of CUDA 12.9 writes";

pub(crate) fn layout(text: &str) -> Layout {
    text.parse().unwrap_or_else(|e| panic!("defect of the atom table: layout `{text}`: {e}"))
}

/// An atom of one thread, without operands and template.
pub(crate) fn atom(name: &'static str, req: ArchReq, op: AtomOp, cost: Cost) -> Atom {
    Atom {
        name,
        req,
        op,
        group: 1,
        thread_layout: layout("1:0"),
        operands: Vec::new(),
        extent: Extent::Tile,
        cache: CacheHint::Normal,
        numbers: Vec::new(),
        visibility: Visibility::Immediate,
        handover: None,
        sets: false,
        contracts: false,
        calls: false,
        cost,
        template: Template::Cuda(""),
        kind: AtomKind::Instruction,
        rounding: Rounding::Exact,
        cite: "",
    }
}

impl Atom {
    pub(crate) fn warp(mut self) -> Self {
        self.group = 32;
        self.thread_layout = layout("32:1");
        self
    }

    /// Four whole warps. The index of the first one is a multiple of four.
    pub(crate) fn warpgroup(mut self) -> Self {
        self.group = 128;
        self.thread_layout = layout("128:1");
        self
    }

    /// Eight threads: threads 0 to 3 and 16 to 19, and so on. A warp consists of four quad-pairs.
    pub(crate) fn quad_pair(mut self) -> Self {
        self.group = 8;
        self.thread_layout = layout("(4,2):(1,16)");
        self
    }

    pub(crate) fn numbers(mut self, numbers: impl IntoIterator<Item = AtomNumber>) -> Self {
        self.numbers = numbers.into_iter().collect();
        self
    }

    pub(crate) fn operands(mut self, operands: impl IntoIterator<Item = AtomOperand>) -> Self {
        self.operands = operands.into_iter().collect();
        self.in_registers()
    }

    /// Sets how the values of each operand share registers. This depends on the template.
    fn in_registers(mut self) -> Self {
        for operand in &mut self.operands {
            operand.register_bits = match (operand.cxx, operand.elem, &self.template) {
                (Some(_), ..) => operand.bits_per_thread(),
                (None, Elem::Bits(unit), Template::Cuda(_)) => unit,
                _ => operand.asm_class().bits(),
            };
        }
        self
    }

    pub(crate) fn cuda(mut self, text: &'static str) -> Self {
        self.template = Template::Cuda(text);
        self.in_registers()
    }

    pub(crate) fn ptx(mut self, text: &'static str) -> Self {
        self.template = Template::Ptx(text);
        self.in_registers()
    }

    pub(crate) fn ptx_scalar(mut self, text: &'static str) -> Self {
        self.template = Template::PtxScalar(text);
        self.in_registers()
    }

    pub(crate) fn in_async_group(mut self) -> Self {
        self.visibility = Visibility::AsyncGroup;
        self
    }

    /// The atom adds the products to D, or sets D to them, according to `{accumulate}` in the
    /// template.
    pub(crate) fn in_wgmma_group(mut self) -> Self {
        self.visibility = Visibility::WgmmaGroup;
        self.sets = true;
        self
    }

    pub(crate) fn completes(mut self, visibility: Visibility) -> Self {
        self.visibility = visibility;
        self
    }

    pub(crate) fn extent(mut self, extent: Extent) -> Self {
        self.extent = extent;
        self
    }

    pub(crate) fn cached(mut self, cache: CacheHint) -> Self {
        self.cache = cache;
        self
    }

    pub(crate) fn handing(mut self, handover: Handover) -> Self {
        self.handover = Some(handover);
        self
    }

    /// ptxas compiles a part of the text to a subroutine.
    pub(crate) fn calling(self) -> Self {
        Atom { calls: true, ..self }
    }

    /// ptxas compiles a part of the text to a subroutine on architectures that emulate the
    /// instruction.
    pub(crate) fn calling_where_emulated(self) -> Self {
        Atom { calls: self.cost.emulated, ..self }
    }

    pub(crate) fn sequence(mut self, formula: &'static str, error: &'static str) -> Self {
        self.kind = AtomKind::Sequence { formula, error };
        self
    }

    pub(crate) fn rounded(mut self, rounding: Rounding) -> Self {
        self.rounding = rounding;
        self
    }

    pub(crate) fn cite(mut self, cite: &'static str) -> Self {
        self.cite = cite;
        self
    }
}

type OperandParts<'a> = (&'static str, Elem, &'static [Memory], &'a [i64], &'a str);

/// A read operand: name, unit, memories, tile, thread-value layout.
pub(crate) fn r(parts: OperandParts<'_>) -> AtomOperand {
    operand(OperandAccess::Read, parts)
}

/// A written operand.
pub(crate) fn w(parts: OperandParts<'_>) -> AtomOperand {
    operand(OperandAccess::Write, parts)
}

/// An operand that is read and written: an accumulator.
pub(crate) fn rw(parts: OperandParts<'_>) -> AtomOperand {
    operand(OperandAccess::ReadWrite, parts)
}

fn operand(access: OperandAccess, (name, elem, memory, tile, tv): OperandParts<'_>) -> AtomOperand {
    let mut operand = AtomOperand {
        name,
        access,
        elem,
        memory,
        tv: layout(tv),
        tile: tile.to_vec(),
        addressing: Addressing::Thread,
        align: 1,
        around: 0,
        register_bits: 1,
        cxx: None,
        divisor: None,
    };
    if memory.iter().any(|m| !m.is_per_thread()) {
        operand.align = operand.bytes_per_thread();
    }
    operand
}

/// Source and destination of a Move in which one thread copies one vector of `bits` bits as one
/// unit.
pub(crate) fn vector_move(
    from: &'static [Memory],
    to: &'static [Memory],
    bits: i64,
    cxx: &'static str,
) -> [AtomOperand; 2] {
    let elem = Elem::Bits(bits);
    [r(("S", elem, from, &[1], ONE)).through(cxx), w(("D", elem, to, &[1], ONE)).through(cxx)]
}

/// A number that must be a constant in the text, within these bounds.
pub(crate) fn immediate(name: &'static str, (least, most): (i64, i64)) -> AtomNumber {
    AtomNumber { name, least, most, multiple: 1, form: NumberForm::Immediate }
}

/// A number that may be computed, within these bounds.
pub(crate) fn computed(name: &'static str, (least, most): (i64, i64)) -> AtomNumber {
    AtomNumber { form: NumberForm::Register(AsmClass::R), ..immediate(name, (least, most)) }
}

impl AtomOperand {
    /// Addressed through a descriptor. The alignment is that of the start address.
    pub(crate) fn described(mut self, rule: MatrixRule) -> Self {
        self.addressing = Addressing::Descriptor(rule);
        self.align = DESCRIBED_ALIGN;
        self
    }

    pub(crate) fn through(mut self, cxx: &'static str) -> Self {
        self.cxx = Some(cxx);
        self
    }

    /// May begin at any element. The instruction reads the aligned vectors that contain it.
    pub(crate) fn anywhere(mut self) -> Self {
        self.around = self.bytes_per_thread();
        self.align = 1;
        self
    }
}

impl Timing {
    /// The cost of an instruction that each thread of a warp executes on its own `values` elements.
    /// A multiprocessor executes it for `lanes` threads per cycle.
    pub(crate) fn pointwise(&self, lanes: f64, values: i64) -> Cost {
        let issue_cycles = (32.0 * self.schedulers / lanes).max(1.0);
        Cost {
            issue_cycles,
            completion_cycles: self.math_cycles.max(issue_cycles),
            per_sm_per_cycle: Rate::Ops(lanes * values as f64),
            emulated: false,
            source: self.math_source,
        }
    }

    /// The cost of `n` dependent instructions of the rate that [`Timing::pointwise`] takes.
    pub(crate) fn chain(&self, lanes: f64, values: i64, n: i64) -> Cost {
        let mut cost = self.pointwise(lanes / n as f64, values);
        cost.completion_cycles = cost.completion_cycles.max(self.math_cycles * n as f64);
        cost
    }

    /// The cost of `mma.sync` with this number of multiply-adds. `bits` is the number of bits of A.
    pub(crate) fn mma(&self, multiply_adds: i64, bits: i64, speed: Speed) -> Cost {
        let (rate, emulated) = match speed {
            Speed::Unit(rate) => (rate, false),
            Speed::Emulated(rate) => (rate, true),
            // The table of the architecture does not contain such atoms.
            Speed::Absent => (0.0, false),
        };
        let small = bits <= 16 * 8 * 16;
        let latency = if small { self.mma_k8_cycles } else { self.mma_k16_cycles };
        let issue_cycles = multiply_adds as f64 * self.schedulers / rate;
        Cost {
            issue_cycles,
            completion_cycles: latency.max(issue_cycles),
            per_sm_per_cycle: Rate::Ops(rate),
            emulated,
            source: if emulated { EMULATED } else { self.mma_source },
        }
    }

    /// The cost of `wgmma` with this number of multiply-adds, which reads `bytes` bytes of shared
    /// memory. All tensor cores of a multiprocessor execute it together.
    pub(crate) fn wgmma(&self, multiply_adds: i64, bytes: i64, rate: f64) -> Cost {
        let multiply = multiply_adds as f64 / rate;
        let read = bytes as f64 / self.wgmma_bytes;
        let issue_cycles = multiply.max(read).max(1.0);
        Cost {
            issue_cycles,
            completion_cycles: issue_cycles + self.wgmma_cycles,
            per_sm_per_cycle: Rate::Ops(multiply_adds as f64 / issue_cycles),
            emulated: false,
            source: self.wgmma_source,
        }
    }

    /// The cost of a statement, without the time for which it waits for other threads. Each
    /// scheduler issues one per cycle.
    pub(crate) fn sync(&self, latency: f64) -> Cost {
        Cost {
            issue_cycles: 1.0,
            completion_cycles: latency.max(1.0),
            per_sm_per_cycle: Rate::Ops(self.schedulers),
            emulated: false,
            source: "estimate; waiting for others is not counted",
        }
    }

    /// The cost of a warp's access to global memory, `bytes` per thread.
    pub(crate) fn global(&self, bytes: i64) -> Cost {
        self.memory(32 * bytes, self.global_bytes, self.global_cycles)
    }

    /// The cost of a warp's load from global memory of vectors that may begin at any element: two
    /// aligned loads, and the instructions that combine them.
    pub(crate) fn global_unaligned(&self, bytes: i64) -> Cost {
        /// Cycles of a scheduler for the selects and shifts, and for computing the addresses.
        const TAKEN: f64 = 12.0;
        let cost = self.global(2 * bytes);
        let completion_cycles = cost.completion_cycles + TAKEN;
        Cost {
            issue_cycles: cost.issue_cycles + TAKEN,
            completion_cycles,
            source: EMULATED,
            ..cost
        }
    }

    /// The cost of a warp's accumulation in global memory, `bytes` per thread.
    pub(crate) fn red(&self, bytes: i64) -> Cost {
        let cost = self.memory(32 * bytes, self.red_bytes, self.global_cycles);
        Cost { source: self.red_source, ..cost }
    }

    /// The ratio of the time for which an accumulation in global memory occupies the L2 cache to
    /// that of a plain store.
    #[must_use]
    pub fn red_times(&self) -> f64 {
        self.global_bytes / self.red_bytes.max(1e-9)
    }

    fn memory(&self, bytes: i64, rate: f64, latency: f64) -> Cost {
        let bytes = bytes as f64;
        let issue_cycles = (bytes / rate).max(1.0);
        Cost {
            issue_cycles,
            completion_cycles: latency + issue_cycles - 1.0,
            per_sm_per_cycle: Rate::Bytes(rate.min(bytes)),
            emulated: false,
            source: self.memory_source,
        }
    }
}

impl ArchLimits {
    /// The cost of a warp's load of `bytes` bytes from shared memory without bank conflicts.
    pub(crate) fn shared_load(&self, bytes: i64) -> Cost {
        let rate = self.smem_bytes_per_cycle() as f64;
        self.timing.memory(bytes, rate, self.timing.shared_load_cycles)
    }

    /// The cost of a warp's store of `bytes` bytes to shared memory without bank conflicts.
    pub(crate) fn shared_store(&self, bytes: i64) -> Cost {
        let rate = self.smem_bytes_per_cycle() as f64;
        self.timing.memory(bytes, rate, self.timing.shared_store_cycles)
    }

    /// The cost of 16 bytes of a bulk copy between global and shared memory.
    pub(crate) fn bulk_copy(&self) -> Cost {
        let t = &self.timing;
        let mut cost = t.memory(16, t.global_bytes, t.bulk_cycles);
        cost.completion_cycles += t.shared_store_cycles;
        cost.source = "estimate, as plain accesses to global memory; the latency of products of \
                       bench/choice.tsv on an H100";
        cost
    }

    /// The cost of a warp's asynchronous copy from global to shared memory, `bytes` per thread.
    pub(crate) fn async_copy(&self, bytes: i64) -> Cost {
        let mut cost = self.timing.global(bytes);
        cost.completion_cycles += self.timing.shared_store_cycles;
        cost
    }
}
