//! `carbyne run`: executes a program on a GPU, compares the results with the meaning of its specs,
//! and times it.
//!
//! Without the feature `gpu` of this crate, the command fails with an error. `device` is the
//! implementation.

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

/// An error of the machine or of another file, not of a place in the program.
fn elsewhere(args: &Run, error: Diagnostic) -> Failure {
    let name = args.file.display().to_string();
    Failure::one(&Source { name, text: String::new(), ..Source::default() }, error)
}
