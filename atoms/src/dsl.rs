//! The words in which atoms are written, and costs that follow from an architecture's rates.
//!
//! Layouts in atoms are texts, so that an atom greps to the tests and dumps that show it. A text
//! that does not parse is a defect of this crate, and the sweep builds every table.

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
/// Operands of C++ expressions: the CUDA compiler loads and stores them where they are in memory.
pub(crate) const ANY: &[Memory] = &[Memory::Rf, Memory::Sh, Memory::Gl];

/// The thread-value layout of one thread with one value.
pub(crate) const ONE: &str = "(1,1):(0,0)";
/// The thread-value layout of one thread with a pair of values.
pub(crate) const PAIR: &str = "(1,2):(0,1)";

/// Alignment in bytes of a tile that a descriptor names; its swizzle may want more.
const DESCRIBED_ALIGN: i64 = 16;

/// Where rates of emulated instructions come from.
const EMULATED: &str = "estimate, after the instructions that ptxas of CUDA 12.9 writes";

pub(crate) fn layout(text: &str) -> Layout {
    text.parse().unwrap_or_else(|e| panic!("defect of the atom table: layout `{text}`: {e}"))
}

/// An atom of one thread; operands and template are to follow.
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

    /// Four whole warps, the first one's number a multiple of four.
    pub(crate) fn warpgroup(mut self) -> Self {
        self.group = 128;
        self.thread_layout = layout("128:1");
        self
    }

    /// Four of them are a warp: threads 0 to 3 and 16 to 19, and so on.
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

    /// States how the values of operands share registers, which depends on how the atom is written.
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

    /// Multiplies and adds to D, or sets it, as `{accumulate}` of the template says.
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

    /// ptxas makes a subroutine of a part of its text.
    pub(crate) fn calling(self) -> Self {
        Atom { calls: true, ..self }
    }

    /// The same of an instruction where there is no unit for it.
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

/// A read operand: name, elements, memories, tile, thread-value layout.
pub(crate) fn r(parts: OperandParts<'_>) -> AtomOperand {
    operand(OperandAccess::Read, parts)
}

/// A written operand.
pub(crate) fn w(parts: OperandParts<'_>) -> AtomOperand {
    operand(OperandAccess::Write, parts)
}

/// An accumulator.
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

/// Source and destination of a Move of one vector of `bits` by one thread, as one unit.
pub(crate) fn vector_move(
    from: &'static [Memory],
    to: &'static [Memory],
    bits: i64,
    cxx: &'static str,
) -> [AtomOperand; 2] {
    let elem = Elem::Bits(bits);
    [r(("S", elem, from, &[1], ONE)).through(cxx), w(("D", elem, to, &[1], ONE)).through(cxx)]
}

/// A constant of the text, from the first to the last.
pub(crate) fn immediate(name: &'static str, (least, most): (i64, i64)) -> AtomNumber {
    AtomNumber { name, least, most, multiple: 1, form: NumberForm::Immediate }
}

/// A number that may be computed.
pub(crate) fn computed(name: &'static str, (least, most): (i64, i64)) -> AtomNumber {
    AtomNumber { form: NumberForm::Register(AsmClass::R), ..immediate(name, (least, most)) }
}

impl AtomOperand {
    /// Found through a descriptor: its alignment is that of the start address.
    pub(crate) fn described(mut self, rule: MatrixRule) -> Self {
        self.addressing = Addressing::Descriptor(rule);
        self.align = DESCRIBED_ALIGN;
        self
    }

    pub(crate) fn through(mut self, cxx: &'static str) -> Self {
        self.cxx = Some(cxx);
        self
    }

    /// Begins anywhere, and is read as the aligned vectors that hold it.
    pub(crate) fn anywhere(mut self) -> Self {
        self.around = self.bytes_per_thread();
        self.align = 1;
        self
    }
}

impl Timing {
    /// An instruction that each thread of a warp executes for itself on `values` elements, where a
    /// multiprocessor executes it for `lanes` threads per cycle.
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

    /// As [`Timing::pointwise`], for `n` instructions of that rate, each needing the one before.
    pub(crate) fn chain(&self, lanes: f64, values: i64, n: i64) -> Cost {
        let mut cost = self.pointwise(lanes / n as f64, values);
        cost.completion_cycles = cost.completion_cycles.max(self.math_cycles * n as f64);
        cost
    }

    /// `mma.sync` with so many multiply-adds, whose A has so many bits.
    pub(crate) fn mma(&self, multiply_adds: i64, bits: i64, speed: Speed) -> Cost {
        let (rate, emulated) = match speed {
            Speed::Unit(rate) => (rate, false),
            Speed::Emulated(rate) => (rate, true),
            // The architecture's table leaves such atoms out.
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

    /// `wgmma` with so many multiply-adds, which reads so many bytes of shared memory. All of a
    /// multiprocessor's units work on it together.
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

    /// A statement that waits for nobody, at the rate of one a cycle and scheduler.
    pub(crate) fn sync(&self, latency: f64) -> Cost {
        Cost {
            issue_cycles: 1.0,
            completion_cycles: latency.max(1.0),
            per_sm_per_cycle: Rate::Ops(self.schedulers),
            emulated: false,
            source: "estimate; waiting for others is not counted",
        }
    }

    /// A warp's access to global memory, `bytes` per thread.
    pub(crate) fn global(&self, bytes: i64) -> Cost {
        self.memory(32 * bytes, self.global_bytes, self.global_cycles)
    }

    /// The same of vectors that begin anywhere: two that are aligned, and as many instructions as
    /// take theirs from both.
    pub(crate) fn global_unaligned(&self, bytes: i64) -> Cost {
        /// Selects and shifts, and what computes addresses, in cycles of a scheduler.
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

    /// What a warp adds to global memory, `bytes` per thread.
    pub(crate) fn red(&self, bytes: i64) -> Cost {
        let cost = self.memory(32 * bytes, self.red_bytes, self.global_cycles);
        Cost { source: self.red_source, ..cost }
    }

    /// How many times as long as a store an accumulation in global memory keeps the second-level
    /// cache busy.
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
    /// A warp's load of `bytes` from shared memory without bank conflicts.
    pub(crate) fn shared_load(&self, bytes: i64) -> Cost {
        let rate = self.smem_bytes_per_cycle() as f64;
        self.timing.memory(bytes, rate, self.timing.shared_load_cycles)
    }

    /// A warp's store of `bytes` to shared memory without bank conflicts.
    pub(crate) fn shared_store(&self, bytes: i64) -> Cost {
        let rate = self.smem_bytes_per_cycle() as f64;
        self.timing.memory(bytes, rate, self.timing.shared_store_cycles)
    }

    /// 16 bytes of a bulk copy between global and shared memory.
    pub(crate) fn bulk_copy(&self) -> Cost {
        let t = &self.timing;
        let mut cost = t.memory(16, t.global_bytes, t.bulk_cycles);
        cost.completion_cycles += t.shared_store_cycles;
        cost.source = "estimate, as plain accesses to global memory; the latency of products of bench/choice.tsv on an H100";
        cost
    }

    /// A warp's asynchronous copy from global to shared memory, `bytes` per thread.
    pub(crate) fn async_copy(&self, bytes: i64) -> Cost {
        let mut cost = self.timing.global(bytes);
        cost.completion_cycles += self.timing.shared_store_cycles;
        cost
    }
}
