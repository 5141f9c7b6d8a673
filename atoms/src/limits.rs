//! Lists the sizes and speeds of a multiprocessor, by architecture: shared memory, registers and
//! threads, arithmetic rates, latencies. Costs of atoms follow from the speeds, and the solver
//! keeps to the sizes.
//!
//! Sizes come from the table "Technical Specifications per Compute Capability" of the CUDA C++
//! Programming Guide, and arithmetic rates, except for those of matrix products, from its table
//! "Throughput of Native Arithmetic Instructions". For all other rates and latencies, `*_source`
//! or the comment of the field states the source: a document, a measurement or an estimate.
//! Numbers that differ between products of one architecture, such as the number of
//! multiprocessors, are in [`crate::machine()`].

use crate::arch::Arch;
use crate::banks::BANKS;

/// Sizes and speeds of one architecture.
#[derive(Clone, Debug, PartialEq)]
pub struct ArchLimits {
    /// Maximum shared memory of one block with opt-in, in bytes.
    pub max_smem_per_block: i64,
    /// Maximum shared memory of one block without opt-in, in bytes.
    pub static_smem_per_block: i64,
    /// Shared memory of one multiprocessor, in bytes.
    pub smem_per_sm: i64,
    /// Shared memory that the system reserves for each resident block, in bytes.
    pub reserved_smem_per_block: i64,
    /// 32-bit registers of one multiprocessor.
    pub regs_per_sm: i64,
    /// Maximum number of 32-bit registers of one thread.
    pub regs_per_thread: i64,
    /// Maximum number of threads of a block.
    pub max_threads_per_block: i64,
    /// Maximum number of resident warps of one multiprocessor.
    pub warps_per_sm: i64,
    /// Maximum number of resident blocks of one multiprocessor.
    pub blocks_per_sm: i64,
    /// Number of banks of shared memory.
    pub smem_banks: i64,
    /// Width of a bank, in bytes.
    pub bank_bytes: i64,
    /// Maximum number of blocks of a cluster on every product; 1 if the architecture has no
    /// clusters.
    pub max_cluster: i64,
    /// The source of the sizes.
    pub source: &'static str,
    /// Rates and latencies.
    pub timing: Timing,
}

impl ArchLimits {
    /// The number of blocks that a multiprocessor holds at once. A block has `threads` threads (at
    /// least 1) with `registers` 32-bit registers each, and `shared_bytes` bytes of shared memory.
    /// 0 if not even one block fits (CUDA C++ Programming Guide, Hardware Multithreading).
    #[must_use]
    pub fn resident_blocks(&self, threads: i64, registers: i64, shared_bytes: i64) -> i64 {
        if !self.has_shared(shared_bytes) {
            return 0;
        }
        let by_memory =
            self.smem_per_sm / shared_bytes.saturating_add(self.reserved_smem_per_block).max(1);
        by_memory
            .min(self.regs_per_sm / registers.saturating_mul(threads).max(1))
            .min(self.warps_per_sm * 32 / threads.max(1))
            .min(self.blocks_per_sm)
    }

    /// Whether a block can have this number of bytes of shared memory.
    #[must_use]
    pub fn has_shared(&self, bytes: i64) -> bool {
        bytes <= self.max_smem_per_block
    }

    /// The number of 32-bit registers that each thread of a block of `threads` threads can have,
    /// if all have the same number. At least 1.
    #[must_use]
    pub fn registers_for(&self, threads: i64) -> i64 {
        self.regs_per_thread.min(self.regs_per_sm / threads.max(1)).max(1)
    }
}

/// Rates and latencies of one architecture, in clock cycles of a multiprocessor.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// Warp schedulers of a multiprocessor.
    pub schedulers: f64,
    /// f32 multiply-adds per cycle.
    pub f32_lanes: f64,
    /// f64 multiply-adds per cycle.
    pub f64_lanes: f64,
    /// f16x2 multiply-adds per cycle, of two values each.
    pub f16_lanes: f64,
    /// bf16x2 multiply-adds per cycle, of two values each.
    pub bf16_lanes: f64,
    /// Conversions between f32 and 16-bit types per cycle. A pair counts once.
    pub convert_lanes: f64,
    /// Conversions to and from 64-bit types per cycle.
    pub convert_wide_lanes: f64,
    /// Additions, comparisons and multiplications of 32-bit integers per cycle.
    pub int_lanes: f64,
    /// Reciprocals, roots, exponentials, logarithms and tangents of f32 per cycle.
    pub special_lanes: f64,
    /// Values exchanged by `shfl` per cycle.
    pub shuffle_lanes: f64,
    /// Values reduced by `redux` per cycle.
    pub redux_lanes: f64,
    /// Speed of `mma.sync` on 16-bit floats.
    pub mma_f16: Speed,
    /// Speed of `mma.sync` on tf32.
    pub mma_tf32: Speed,
    /// Speed of `mma.sync` on f64.
    pub mma_f64: Speed,
    /// Speed of `mma.sync` on 8-bit integers.
    pub mma_int8: Speed,
    /// Speed of `mma.sync` on 4-bit integers.
    pub mma_int4: Speed,
    /// Speed of `mma.sync` on 8-bit floats.
    pub mma_fp8: Speed,
    /// Speed of `mma.sync` on 16-bit floats by quad-pairs.
    pub mma_quad_pair: Speed,
    /// Multiply-adds per cycle of `wgmma` on 16-bit floats. The rate is half of it on tf32, and
    /// twice on 8-bit types. 0 if the architecture has no `wgmma`.
    pub wgmma_f16: f64,
    /// Bytes of shared memory that `wgmma` reads per cycle.
    pub wgmma_bytes: f64,
    /// Cycles besides those of the multiplication until the result of a `wgmma` is available.
    pub wgmma_cycles: f64,
    /// Cycles until the result of `mma.m16n8k8` on 16-bit floats is available. Other `mma` whose A
    /// has at most as many bits take as long.
    pub mma_k8_cycles: f64,
    /// Cycles until the result of `mma.m16n8k16` on 16-bit floats is available. Other `mma` whose A
    /// has more bits than that of `mma.m16n8k8` take as long.
    pub mma_k16_cycles: f64,
    /// Cycles until the result of a pointwise instruction is available.
    pub math_cycles: f64,
    /// Cycles until a value of global memory is available.
    pub global_cycles: f64,
    /// Cycles until the copy engine has brought data from global memory, before the factor for load
    /// that estimates apply. For the H100 it is the best of 480, 720, 960 and 1200 for the products
    /// of `bench/choice.tsv`.
    pub bulk_cycles: f64,
    /// Bytes per cycle between a multiprocessor and the L2 cache.
    pub global_bytes: f64,
    /// Bytes of a line of the L2 cache, for architectures on which rows that begin inside of a line
    /// are known to take longer; 0 for others. The cache delivers one line at a time. On an H100 a
    /// row of 128 bytes took 2 cycles from a multiple of 128, 4 cycles from other multiples of 32,
    /// and 8 cycles from other multiples of 16, both for the copy engine and for threads.
    pub line_bytes: i64,
    /// Bytes per cycle and multiprocessor that the L2 cache adds to its contents (`red`).
    pub red_bytes: f64,
    /// Cycles until a value of shared memory is available.
    pub shared_load_cycles: f64,
    /// Cycles until a store to shared memory is complete.
    pub shared_store_cycles: f64,
    /// The source of arithmetic rates and `math_cycles`.
    pub math_source: &'static str,
    /// The source of `mma_*`.
    pub mma_source: &'static str,
    /// The source of `wgmma_*`.
    pub wgmma_source: &'static str,
    /// The source of `red_bytes`.
    pub red_source: &'static str,
    /// The source of the latencies of memory.
    pub memory_source: &'static str,
}

/// Multiply-adds per cycle of a multiprocessor.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Speed {
    /// The rate of a unit that exists for them.
    Unit(f64),
    /// The rate of the sequence of other instructions that the assembler writes instead.
    Emulated(f64),
    /// The instruction does not exist.
    Absent,
}

impl ArchLimits {
    /// Bytes of shared memory that all banks together deliver in one cycle.
    pub fn smem_bytes_per_cycle(&self) -> i64 {
        self.smem_banks * self.bank_bytes
    }
}

/// The limits of `arch`.
pub fn limits(arch: Arch) -> &'static ArchLimits {
    match arch {
        Arch::Sm70 => &SM_70,
        Arch::Sm75 => &SM_75,
        Arch::Sm80 => &SM_80,
        Arch::Sm86 => &SM_86,
        Arch::Sm89 => &SM_89,
        Arch::Sm90 | Arch::Sm90a => &SM_90,
    }
}

const KIB: i64 = 1024;

static SM_70: ArchLimits = ArchLimits {
    max_smem_per_block: 96 * KIB,
    static_smem_per_block: 48 * KIB,
    smem_per_sm: 96 * KIB,
    reserved_smem_per_block: 0,
    regs_per_sm: 64 * KIB,
    regs_per_thread: 255,
    max_threads_per_block: 1024,
    warps_per_sm: 64,
    blocks_per_sm: 32,
    smem_banks: BANKS.n,
    bank_bytes: BANKS.bytes,
    max_cluster: 1,
    source: "CUDA C++ Programming Guide, Technical Specifications per Compute Capability",
    timing: Timing {
        schedulers: 4.0,
        f32_lanes: 64.0,
        f64_lanes: 32.0,
        f16_lanes: 64.0,
        bf16_lanes: 0.0,
        convert_lanes: 64.0,
        convert_wide_lanes: 16.0,
        int_lanes: 64.0,
        special_lanes: 16.0,
        shuffle_lanes: 32.0,
        redux_lanes: 16.0,
        mma_f16: Speed::Absent,
        mma_tf32: Speed::Absent,
        mma_f64: Speed::Absent,
        mma_int8: Speed::Absent,
        mma_int4: Speed::Absent,
        mma_fp8: Speed::Absent,
        mma_quad_pair: Speed::Unit(512.0),
        wgmma_f16: 0.0,
        wgmma_bytes: 128.0,
        wgmma_cycles: 0.0,
        mma_k8_cycles: 20.0,
        mma_k16_cycles: 32.0,
        math_cycles: 4.0,
        global_cycles: 400.0,
        bulk_cycles: 400.0,
        global_bytes: 64.0,
        line_bytes: 0,
        red_bytes: 64.0,
        shared_load_cycles: 23.0,
        shared_store_cycles: 19.0,
        math_source: "rate: CUDA C++ Programming Guide, Throughput of Native Arithmetic \
                      Instructions; latency: estimate",
        mma_source: "estimate",
        wgmma_source: "",
        red_source: "estimate, as a plain store; more where several lanes touch one address",
        memory_source: "estimate, after the figures for sm_80",
    },
};

static SM_75: ArchLimits = ArchLimits {
    max_smem_per_block: 64 * KIB,
    smem_per_sm: 64 * KIB,
    warps_per_sm: 32,
    blocks_per_sm: 16,
    timing: Timing {
        f64_lanes: 2.0,
        convert_wide_lanes: 2.0,
        mma_f16: Speed::Unit(512.0),
        mma_int8: Speed::Unit(1024.0),
        mma_int4: Speed::Unit(2048.0),
        mma_quad_pair: Speed::Unit(256.0),
        ..SM_70.timing
    },
    ..SM_70
};

static SM_80: ArchLimits = ArchLimits {
    max_smem_per_block: 163 * KIB,
    smem_per_sm: 164 * KIB,
    reserved_smem_per_block: KIB,
    timing: Timing {
        f16_lanes: 128.0,
        bf16_lanes: 64.0,
        mma_f16: Speed::Unit(1024.0),
        mma_tf32: Speed::Unit(512.0),
        mma_f64: Speed::Unit(64.0),
        mma_int8: Speed::Unit(2048.0),
        mma_int4: Speed::Unit(4096.0),
        // Emulated by multiply-adds of single threads, and shuffles.
        mma_quad_pair: Speed::Emulated(32.0),
        mma_k8_cycles: 18.0,
        mma_k16_cycles: 25.0,
        global_cycles: 290.0,
        bulk_cycles: 290.0,
        math_source: "rate: CUDA C++ Programming Guide, Throughput of Native Arithmetic \
                      Instructions; latency: after Abdelkhalik et al., Demystifying the Nvidia \
                      Ampere Architecture through Microbenchmarking, 2022",
        mma_source: "after Sun et al., Dissecting Tensor Cores via Microbenchmarks, 2022",
        memory_source: "latency: after Abdelkhalik et al., Demystifying the Nvidia Ampere \
                        Architecture through Microbenchmarking, 2022; rate: estimate",
        ..SM_70.timing
    },
    ..SM_70
};

static SM_86: ArchLimits = ArchLimits {
    max_smem_per_block: 99 * KIB,
    smem_per_sm: 100 * KIB,
    warps_per_sm: 48,
    blocks_per_sm: 16,
    timing: Timing {
        f32_lanes: 128.0,
        f64_lanes: 2.0,
        convert_wide_lanes: 2.0,
        f16_lanes: 64.0,
        mma_f16: Speed::Unit(512.0),
        mma_tf32: Speed::Unit(256.0),
        mma_f64: Speed::Unit(2.0),
        mma_int8: Speed::Unit(1024.0),
        mma_int4: Speed::Unit(2048.0),
        mma_k16_cycles: 33.0,
        math_source: SM_70.timing.math_source,
        mma_source: "estimate, after Sun et al., Dissecting Tensor Cores via Microbenchmarks, 2022",
        memory_source: SM_70.timing.memory_source,
        ..SM_80.timing
    },
    ..SM_80
};

static SM_89: ArchLimits = ArchLimits {
    blocks_per_sm: 24,
    timing: Timing { mma_fp8: Speed::Unit(1024.0), mma_source: "estimate", ..SM_86.timing },
    ..SM_86
};

static SM_90: ArchLimits = ArchLimits {
    max_smem_per_block: 227 * KIB,
    max_cluster: 8,
    smem_per_sm: 228 * KIB,
    timing: Timing {
        f32_lanes: 128.0,
        f64_lanes: 64.0,
        bf16_lanes: 128.0,
        mma_f64: Speed::Unit(128.0),
        // Emulated: unpacked to 8-bit integers.
        mma_int4: Speed::Emulated(160.0),
        // Emulated: converted to f16. Only `wgmma` has a unit for 8-bit floats.
        mma_fp8: Speed::Emulated(384.0),
        wgmma_f16: 2048.0,
        wgmma_cycles: 75.0,
        wgmma_source: "rate: NVIDIA H100 Tensor Core GPU Architecture, peak rates; latency: \
                       measured by `carbyne atoms calibrate --machine`",
        mma_k16_cycles: 33.0,
        global_cycles: 480.0,
        bulk_cycles: 1200.0,
        line_bytes: 128,
        red_bytes: 13.0,
        shared_load_cycles: 29.0,
        math_source: SM_70.timing.math_source,
        mma_source: "estimate: half of the rate of wgmma",
        red_source: "rate: measured by `carbyne atoms calibrate --machine`; latency: estimate; \
                     more where several lanes touch one address",
        memory_source: "estimate, after Luo et al., Benchmarking and Dissecting the Nvidia Hopper \
                        GPU Architecture via Microbenchmarking, 2024",
        ..SM_80.timing
    },
    ..SM_80
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_of_a_block_fits_its_multiprocessor() {
        for &arch in Arch::ALL {
            let l = limits(arch);
            assert!(l.static_smem_per_block <= l.max_smem_per_block, "{arch}");
            assert!(l.max_smem_per_block + l.reserved_smem_per_block <= l.smem_per_sm, "{arch}");
            assert!(l.max_threads_per_block <= 32 * l.warps_per_sm, "{arch}");
            assert_eq!(l.smem_bytes_per_cycle(), 128, "{arch}");
        }
        assert_eq!(limits(Arch::Sm80).max_smem_per_block, 166_912);
        assert_eq!(limits(Arch::Sm90a).max_smem_per_block, 232_448);
    }
}
