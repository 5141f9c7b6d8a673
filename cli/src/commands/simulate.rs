//! `carbyne simulate`: executes a program and compares it with what its specs mean.

use crate::args::{MessageFormat, Simulate};
use crate::failure::{Failure, Outcome};
use crate::{Io, input, pipeline};

pub(super) fn run(args: &Simulate, _format: MessageFormat, io: &mut Io<'_>) -> Outcome {
    let source = input::read(&args.file, io)?;
    let _ = pipeline::verified(&source)?;
    Err(Failure::usage("not there yet"))
}
