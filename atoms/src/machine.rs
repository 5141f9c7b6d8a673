//! Lists the figures of cards, such as the H100, that their architecture does not fix: the number
//! of multiprocessors, the clock, the memory bandwidth. The cost model needs them for times and for
//! the number of blocks. [`machine()`] returns the default card of an architecture.
//!
//! The numbers come from NVIDIA's datasheets and whitepapers, which `source` names. `source` marks
//! the others as estimates.

use crate::arch::Arch;

/// A card: the number of its multiprocessors, their clock, and the rates of L2 cache and device
/// memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The name of the product.
    pub name: &'static str,
    /// Number of multiprocessors.
    pub sms: i64,
    /// Clock of the multiprocessors under load, in MHz: the highest that the source states.
    pub clock_mhz: f64,
    /// Bytes of the L2 cache.
    pub l2_bytes: i64,
    /// Bytes per cycle that the L2 cache delivers to all multiprocessors together.
    pub l2_bytes_per_cycle: f64,
    /// Bytes per second of device memory, in 10^9.
    pub dram_gb_per_second: f64,
    /// The source of the numbers.
    pub source: &'static str,
}

impl Machine {
    /// The card with another number of multiprocessors (at least 1), as some products and
    /// partitions have.
    #[must_use]
    pub fn with_sms(self, sms: i64) -> Self {
        Machine { sms: sms.max(1), ..self }
    }

    /// Bytes of device memory per cycle of the multiprocessors.
    #[must_use]
    pub fn dram_bytes_per_cycle(&self) -> f64 {
        self.dram_gb_per_second * 1e3 / self.clock_mhz.max(1.0)
    }

    /// Converts cycles to microseconds.
    #[must_use]
    pub fn microseconds(&self, cycles: f64) -> f64 {
        cycles / self.clock_mhz.max(1.0)
    }

    /// Converts microseconds to cycles.
    #[must_use]
    pub fn cycles(&self, microseconds: f64) -> f64 {
        microseconds * self.clock_mhz
    }
}

/// The default card of an architecture.
#[must_use]
pub fn machine(arch: Arch) -> Machine {
    match arch {
        Arch::Sm70 => V100,
        Arch::Sm75 => T4,
        Arch::Sm80 => A100,
        Arch::Sm86 => A6000,
        Arch::Sm89 => L40S,
        Arch::Sm90 | Arch::Sm90a => H100,
    }
}

const MIB: i64 = 1 << 20;

const V100: Machine = Machine {
    name: "V100 SXM2",
    sms: 80,
    clock_mhz: 1530.0,
    l2_bytes: 6 * MIB,
    l2_bytes_per_cycle: 2048.0,
    dram_gb_per_second: 900.0,
    source: "NVIDIA Tesla V100 GPU Architecture (WP-08608), table 1; rate of the L2 cache: \
             NVIDIA A100 Tensor Core GPU Architecture, A100 L2 Cache",
};

const T4: Machine = Machine {
    name: "T4",
    sms: 40,
    clock_mhz: 1590.0,
    l2_bytes: 4 * MIB,
    l2_bytes_per_cycle: 1024.0,
    dram_gb_per_second: 320.0,
    source: "NVIDIA Turing GPU Architecture (WP-09183), appendix B; rate of the L2 cache: \
             estimate, as many bytes per multiprocessor as V100",
};

const A100: Machine = Machine {
    name: "A100 SXM4 40GB",
    sms: 108,
    clock_mhz: 1410.0,
    l2_bytes: 40 * MIB,
    l2_bytes_per_cycle: 5120.0,
    dram_gb_per_second: 1555.0,
    source: "NVIDIA A100 Tensor Core GPU Architecture, tables 2 and 4, A100 L2 Cache",
};

const A6000: Machine = Machine {
    name: "RTX A6000",
    sms: 84,
    clock_mhz: 1800.0,
    l2_bytes: 6 * MIB,
    l2_bytes_per_cycle: 2688.0,
    dram_gb_per_second: 768.0,
    source: "NVIDIA Ampere GA102 GPU Architecture, appendix A; rate of the L2 cache: estimate, 32 \
             bytes per multiprocessor",
};

const L40S: Machine = Machine {
    name: "L40S",
    sms: 142,
    clock_mhz: 2520.0,
    l2_bytes: 96 * MIB,
    l2_bytes_per_cycle: 4544.0,
    dram_gb_per_second: 864.0,
    source: "NVIDIA L40S datasheet; NVIDIA Ada GPU Architecture, appendix A; rate of the L2 \
             cache: estimate, 32 bytes per multiprocessor",
};

const H100: Machine = Machine {
    name: "H100 SXM5",
    sms: 132,
    clock_mhz: 1830.0,
    l2_bytes: 50 * MIB,
    l2_bytes_per_cycle: 8448.0,
    dram_gb_per_second: 3352.0,
    source: "NVIDIA H100 Tensor Core GPU Architecture, tables 1 and 3; clock: that of its peak \
             rates; rate of the L2 cache: estimate, as much as its multiprocessors take; products \
             of `bench/model.tsv` move 9 TB/s",
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;

    #[test]
    fn peak_rates_are_those_of_the_datasheets() {
        // Dense TFLOP/s of the tensor cores on f16: multiply-adds per cycle and multiprocessor,
        // times two.
        let peak = |arch: Arch, per_sm: f64| {
            let m = machine(arch);
            2.0 * per_sm * m.sms as f64 * m.clock_mhz * 1e-6
        };
        assert!((peak(Arch::Sm70, 512.0) - 125.0).abs() < 1.0);
        assert!((peak(Arch::Sm75, 512.0) - 65.0).abs() < 1.0);
        assert!((peak(Arch::Sm80, 1024.0) - 312.0).abs() < 1.0);
        let h100 = limits(Arch::Sm90a).timing.wgmma_f16;
        assert!((peak(Arch::Sm90a, h100) - 989.0).abs() < 1.0);
    }

    #[test]
    fn caches_are_faster_than_memory() {
        for &arch in Arch::ALL {
            let m = machine(arch);
            assert!(m.dram_bytes_per_cycle() < m.l2_bytes_per_cycle, "{arch}");
            assert!(
                m.l2_bytes_per_cycle <= limits(arch).timing.global_bytes * m.sms as f64,
                "{arch}"
            );
        }
        assert_eq!(machine(Arch::Sm80).with_sms(0).sms, 1);
    }
}
