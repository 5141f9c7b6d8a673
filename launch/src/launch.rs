//! Blocks, threads and shared memory of a launch.

use crate::{Fallible, refused};
use carbyne_codegen::CudaKernel;
use carbyne_ir::diag::Code;

/// How a kernel is launched.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks; one dimension. Where there are none, nothing is launched.
    pub grid: u32,
    /// Threads of a block; one dimension.
    pub block: u32,
    /// Dynamic shared memory of a block, in bytes.
    pub shared: u32,
}

impl Launch {
    /// Of a printed kernel, with a grid of that many blocks: without blocks nothing is launched.
    ///
    /// # Errors
    /// [`Code::LaunchFailed`] for what no launch can take.
    pub fn of(kernel: &CudaKernel, grid: i64) -> Fallible<Launch> {
        let small = |v: i64| u32::try_from(v).ok().filter(|v| i32::try_from(*v).is_ok());
        match (small(grid), small(kernel.block), small(kernel.smem_bytes)) {
            (Some(grid), Some(block), Some(shared)) => Ok(Launch { grid, block, shared }),
            _ => Err(refused(
                Code::LaunchFailed,
                format!("no launch has {grid} blocks of {} threads", kernel.block),
                "launch at most 2^31 - 1 blocks",
            )),
        }
    }
}
