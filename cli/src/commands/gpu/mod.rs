//! Provides functions by which several commands, such as `bench` and `tune`, measure kernels on a
//! GPU.
//!
//! - `build`: decomposes and compiles texts.
//! - `memory`: allocates tensors on the GPU, and loads kernels.
//! - `timing`: times several kernels in turns.

mod build;
mod memory;
mod timing;

pub(super) use build::{Builder, Built, in_parallel, side_by_side};
pub(super) use memory::{Loaded, Memory, blocks_of, guarded, refill, unguarded};
pub(super) use timing::{Clock, Times};

use crate::failure::{Failure, Source};
use crate::pipeline;
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_launch::{DeviceInfo, Fallible, Gpu};

/// An error of the machine, not of a program.
pub(super) fn outside(command: &str, error: Diagnostic) -> Failure {
    Failure::one(&Source { name: command.to_owned(), ..Source::default() }, error)
}

/// The atoms of the named architecture; by default, of the newest architecture whose machine code
/// the GPU runs.
pub(super) fn table(command: &str, gpu: &Gpu, name: Option<&str>) -> Result<AtomTable, Failure> {
    let own = Arch::ALL.iter().rev().find(|a| a.runs_on(gpu.info().capability, true));
    let table = match (name, own) {
        (Some(name), _) => pipeline::table(name)?,
        (None, Some(arch)) => AtomTable::new(*arch),
        (None, None) => {
            let (major, minor) = gpu.info().capability;
            return Err(Failure::usage_help(
                format!(
                    "no known architecture has code that `{}`, of compute capability \
                     {major}.{minor}, runs",
                    gpu.info().name
                ),
                "choose another GPU with `--gpu N`",
            ));
        }
    };
    runs(&table, gpu, true).map_err(|d| outside(command, *d))?;
    Ok(table)
}

/// The versions of the driver, if the system tells it, and of CUDA.
pub(super) fn driver(info: &DeviceInfo) -> String {
    let (major, minor) = info.driver;
    let own = std::fs::read_to_string("/sys/module/nvidia/version").unwrap_or_default();
    let own: String = own.trim().chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    match own.is_empty() {
        true => format!("driver of CUDA {major}.{minor}"),
        false => format!("driver {own} of CUDA {major}.{minor}"),
    }
}

/// Checks that the GPU runs code of the architecture.
pub(in crate::commands) fn runs(table: &AtomTable, gpu: &Gpu, machine_code: bool) -> Fallible<()> {
    let info = gpu.info();
    if table.arch.runs_on(info.capability, machine_code) {
        return Ok(());
    }
    let (major, minor) = info.capability;
    let text = format!(
        "`{}`, of compute capability {major}.{minor}, does not run code for {}",
        info.name, table.arch
    );
    Err(Box::new(
        Diagnostic::new(Code::WrongGpu, Default::default(), text)
            .help("use the `--arch` of this GPU, or another GPU with `--gpu N`"),
    ))
}
