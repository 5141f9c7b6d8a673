//! `carbyne check`: errors, or silence.

use crate::args::Check;
use crate::failure::{Failure, Outcome};
use crate::{Io, input, pipeline};

pub(super) fn run(args: &Check, io: &mut Io<'_>) -> Outcome {
    let source = input::read(&args.file, io)?;
    let (_, program) = pipeline::verified(&source)?;
    let table = args.arch.as_deref().map(pipeline::table).transpose()?;
    let errors = carbyne_decompose::check_named(&program, table.as_ref());
    if errors.is_empty() { Ok(()) } else { Err(Failure::program(&source, errors)) }
}
