//! Lists the constants of the cost model that no data sheet and no microbenchmark of an instruction
//! gives.
//!
//! Most constants of [`FITTED`] are fitted together to the kernels of `bench/model.tsv`, which were
//! measured on one H100. This command prints their values:
//!
//! ```text
//! cargo bench --package carbyne-decompose --bench model -- --fit
//! ```
//!
//! [`Fitted::sustained`], [`Fitted::contended`] and [`Fitted::partial`] are fitted to
//! `bench/choice.tsv`. All of these are ratios and times of the hardware, and are used for all
//! architectures until another one is measured. The other constants rank choices that the model
//! cannot tell apart; their comments name their sources.

/// The fitted constants.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Fitted {
    /// The part of what other resources are busy for that the busiest does not hide: queues are not
    /// endless.
    pub unhidden: f64,
    /// How much longer a load of global memory takes under load than on an idle machine.
    pub loaded: f64,
    /// Cycles of a barrier, until the last warp has come and the first goes on.
    pub meeting: f64,
    /// Cycles of a multiprocessor from the beginning of one block to that of the next.
    pub block: f64,
    /// Cycles in which a block begins and ends, during which it does nothing else.
    pub start: f64,
    /// Microseconds of a launch, besides what its blocks do.
    pub launch_us: f64,
    /// The part of the rate of device memory that a kernel reaches.
    pub dram: f64,
    /// How much longer products of warp groups take than their rate says: the clock falls while
    /// they keep all units busy. It is fitted, as `contended` is, to the products of
    /// `bench/choice.tsv`.
    pub sustained: f64,
    /// The part of the cycles of shared memory that they do not hide: copies are written to it
    /// while they read it. Half of it where another unit is busier than they are.
    pub contended: f64,
    /// How much longer a sector of device memory takes that lies apart from all others.
    pub apart: f64,
    /// Sectors that a warp could write whole while it writes one in part. No bound depends on it:
    /// it is fitted to the transposes of `bench/choice.tsv`.
    pub partial: f64,
    /// 32-bit registers of a thread for addresses, indices and what the compiler keeps.
    pub addresses: f64,
}

/// The values in use; the module's documentation says where each comes from.
pub const FITTED: Fitted = Fitted {
    unhidden: 0.024,
    loaded: 1.60,
    meeting: 127.0,
    block: 143.0,
    start: 0.0,
    launch_us: 6.0,
    dram: 0.933,
    sustained: 1.08,
    contended: 0.1,
    apart: 0.34,
    partial: 8.0,
    addresses: 24.0,
};

/// The smallest difference of instances of which one takes twice the registers that there are.
pub(crate) const CROWDED: f64 = 0.02;
/// The smallest difference of instances of which one has threads of twice [`MUCH`] instructions:
/// layernorm of 4095 elements takes 220 us with 128 threads, which have 550 instructions each, and
/// 201 us with 256 (H100).
pub(crate) const BUSY: f64 = 0.25;
/// The instructions of a thread beyond [`MUCH`] that count, as a part of it.
pub(crate) const MOST_BUSY: f64 = 0.25;
/// Many instructions of a thread.
pub(crate) const MUCH: f64 = 450.0;

/// Registers of the operands of a MatMul in one thread beyond which some spill: the 255 of a thread
/// less those for addresses and indices.
pub(crate) const UNSPILLED: i64 = 216;
/// Cycles of a warp for each register that spills, a store and a load of local memory.
pub(crate) const SPILL_CYCLES: f64 = 64.0;

/// The cost of a wait for the last group of copies, in units of a wait that has nothing left to
/// wait for.
pub(crate) const STALL: f64 = 9.0;

/// Cycles in which a warp tests whether all elements of an instruction exist.
pub(crate) const SPLIT_CYCLES: f64 = 2.0;

/// Fewer warps read all values of each other.
pub(crate) const MANY_WARPS: i64 = 12;

/// 32-bit registers of a thread beside tensors without which no kernel is: pointers, its index, a
/// counter.
pub(crate) const KEPT_REGISTERS: i64 = 8;

/// The factor of the time of what does not fit.
pub(crate) const NEVER: f64 = 1e6;

/// By how much an instance is put behind others where one was solved that differs from it in the
/// place of warps alone: they are alike.
pub(crate) const ALIKE: f64 = 1.05;

/// How many times as many cycles are more than what estimates tell apart.
pub(crate) const WORSE: f64 = 1.02;
