//! Defines [`Launch`], the configuration of a launch: blocks, threads per block, bytes of shared
//! memory.

use crate::{Fallible, refused};
use carbyne_codegen::CudaKernel;
use carbyne_ir::diag::Code;

/// The configuration of a launch.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks, in one dimension. A launch with 0 blocks is skipped.
    pub grid: u32,
    /// Threads of a block, in one dimension.
    pub block: u32,
    /// Dynamic shared memory of a block, in bytes.
    pub shared: u32,
}

impl Launch {
    /// The launch of a printed kernel with `grid` blocks. A launch with 0 blocks is skipped.
    ///
    /// # Errors
    /// [`Code::LaunchFailed`] for numbers beyond the limits of a launch.
    pub fn of_kernel(kernel: &CudaKernel, grid: i64) -> Fallible<Launch> {
        let small = |v: i64| u32::try_from(v).ok().filter(|v| i32::try_from(*v).is_ok());
        match (small(grid), small(kernel.block), small(kernel.smem_bytes)) {
            (Some(grid), Some(block), Some(shared)) => Ok(Launch { grid, block, shared }),
            _ => Err(refused(
                Code::LaunchFailed,
                format!("a launch cannot have {grid} blocks of {} threads", kernel.block),
                "launch at most 2^31 - 1 blocks",
            )),
        }
    }
}
