//! `carbyne decompose`: the program with everything filled in, as text.

use crate::args::Decompose;
use crate::failure::Outcome;
use crate::{Io, input, output, pipeline};

pub(super) fn run(args: &Decompose, io: &mut Io<'_>) -> Outcome {
    let table = pipeline::costed(&args.arch, args.costs.as_deref())?;
    let source = input::read(&args.file, io)?;
    let decomposed = pipeline::decomposed(&source, &table)?;
    output::write(args.output.as_deref(), decomposed.source.text.as_bytes(), io)
}
