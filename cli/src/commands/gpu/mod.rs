//! What commands share that measure kernels on a GPU.
//!
//! `built`: a text decomposed and compiled, `memory`: its tensors on the GPU and its kernels ready
//! to be launched, `turns`: several of these timed beside each other.

mod built;
mod memory;
mod turns;

pub(super) use built::{Builder, Built, in_parallel, side_by_side};
pub(super) use memory::{Loaded, Memory, blocks_of, guarded, refill, unguarded};
pub(super) use turns::{Clock, Times};

use crate::failure::{Failure, Source};
use crate::pipeline;
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_launch::{DeviceInfo, Fallible, Gpu};

/// An error that is about the machine.
pub(super) fn outside(command: &str, error: Diagnostic) -> Failure {
    Failure::one(&Source { name: command.to_owned(), ..Source::default() }, error)
}

/// Atoms of the architecture that is named, else of the newest one whose machine code the GPU runs.
pub(super) fn table(command: &str, gpu: &Gpu, name: Option<&str>) -> Result<AtomTable, Failure> {
    let own = Arch::ALL.iter().rev().find(|a| a.runs_on(gpu.info().capability, true));
    let table = match (name, own) {
        (Some(name), _) => pipeline::table(name)?,
        (None, Some(arch)) => AtomTable::new(*arch),
        (None, None) => {
            let (major, minor) = gpu.info().capability;
            return Err(Failure::usage_help(
                format!(
                    "no architecture is known whose code `{}`, of compute capability {major}.{minor}, runs",
                    gpu.info().name
                ),
                "choose another GPU with `--gpu N`",
            ));
        }
    };
    runs(&table, gpu, true).map_err(|d| outside(command, *d))?;
    Ok(table)
}

/// The driver: its own version where the system tells it, and that of CUDA.
pub(super) fn driver(info: &DeviceInfo) -> String {
    let (major, minor) = info.driver;
    let own = std::fs::read_to_string("/sys/module/nvidia/version").unwrap_or_default();
    let own: String = own.trim().chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    match own.is_empty() {
        true => format!("driver of CUDA {major}.{minor}"),
        false => format!("driver {own} of CUDA {major}.{minor}"),
    }
}

/// Whether the GPU is of the architecture.
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
            .help("choose the `--arch` of this GPU, or another GPU with `--gpu N`"),
    ))
}
