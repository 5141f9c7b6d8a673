//! `carbyne run`: executes a program on a GPU, compares it with what its specs mean, and times it.
//!
//! Without the feature `gpu` of this crate it says so. `device` is the rest of it.

#[cfg(feature = "gpu")]
mod device;
#[cfg(feature = "gpu")]
mod report;

use crate::args::Run;
use crate::failure::{Failure, Source};
use carbyne_ir::diag::Diagnostic;

#[cfg(feature = "gpu")]
pub(super) use device::{read, run};

#[cfg(not(feature = "gpu"))]
pub(super) fn run(
    args: &Run,
    _: crate::args::MessageFormat,
    _: &mut crate::Io<'_>,
) -> crate::failure::Outcome {
    Err(elsewhere(args, *carbyne_launch::without_gpu()))
}

/// An error that is about the machine or another file, not about a place in the program.
fn elsewhere(args: &Run, error: Diagnostic) -> Failure {
    let name = args.file.display().to_string();
    Failure::one(&Source { name, text: String::new(), ..Source::default() }, error)
}
