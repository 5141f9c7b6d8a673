//! `carbyne compile`: the decomposed program as IR, CUDA C++, PTX or machine code.

use crate::args::{Compile, MessageFormat};
use crate::failure::{Failure, Outcome};
use crate::{Io, input, pipeline};

pub(super) fn run(args: &Compile, _format: MessageFormat, io: &mut Io<'_>) -> Outcome {
    let arch = pipeline::arch(&args.arch)?;
    let source = input::read(&args.file, io)?;
    let _ = pipeline::decomposed(&source, arch)?;
    Err(Failure::usage("not there yet"))
}
