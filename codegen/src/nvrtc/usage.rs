//! Reads the resource usage that ptxas reports for a kernel: registers, spills, static shared
//! memory, stack.
//!
//! The lines read (ptxas of CUDA 12.9, `-v`):
//!
//! ```text
//! ptxas info    : Compiling entry function 'gemm' for 'sm_80'
//! ptxas info    : Function properties for gemm
//! ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//! ptxas info    : Used 32 registers, used 1 barriers, 1024 bytes smem, 384 bytes cmem[0]
//! ```
//!
//! A log without these lines gives `None`. ptxas omits the static shared memory if it is 0.

/// The resource usage of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The 32-bit registers per thread.
    pub registers: u32,
    /// The bytes written to local memory for lack of registers.
    pub spill_stores: u32,
    /// The bytes read back.
    pub spill_loads: u32,
    /// The bytes of the stack frame: arrays that registers could not hold.
    pub stack: u32,
    /// The bytes of statically declared shared memory.
    pub static_smem: u32,
}

/// Reads the resource usage of `kernel` from a log.
pub(super) fn read(log: &str, kernel: &str) -> Option<Usage> {
    let entry = format!("entry function '{kernel}'");
    let mut lines = log.lines().skip_while(|l| !l.contains(&entry)).skip(1);
    let mut usage = Usage::default();
    lines.by_ref().find(|l| l.contains("bytes stack frame")).map(|l| {
        usage.stack = before(l, "bytes stack frame").unwrap_or(0);
        usage.spill_stores = before(l, "bytes spill stores").unwrap_or(0);
        usage.spill_loads = before(l, "bytes spill loads").unwrap_or(0);
    })?;
    let used = lines.find(|l| l.contains("Used "))?;
    usage.registers = before(used, "registers")?;
    usage.static_smem = before(used, "bytes smem").unwrap_or(0);
    Some(usage)
}

/// The number before `words`.
fn before(line: &str, words: &str) -> Option<u32> {
    line[..line.find(words)?].split_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'other' for 'sm_80'
ptxas info    : Function properties for other
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers, 352 bytes cmem[0]
ptxas info    : Compiling entry function 'gemm' for 'sm_80'
ptxas info    : Function properties for gemm
    16 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 1024 bytes smem, 384 bytes cmem[0]
";

    #[test]
    fn reads_the_kernel_that_is_asked_for() {
        let want = Usage {
            registers: 255,
            spill_stores: 4,
            spill_loads: 12,
            stack: 16,
            static_smem: 1024,
        };
        assert_eq!(read(LOG, "gemm"), Some(want));
        assert_eq!(read(LOG, "other").map(|u| u.registers), Some(8));
        assert_eq!(read(LOG, "gem"), None);
        assert_eq!(read("", "gemm"), None);
    }
}
