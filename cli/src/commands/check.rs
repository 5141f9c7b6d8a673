//! `carbyne check`: errors, or silence.

use crate::args::Check;
use crate::failure::Outcome;
use crate::{Io, input, pipeline};

pub(super) fn run(args: &Check, io: &mut Io<'_>) -> Outcome {
    let source = input::read(&args.file, io)?;
    pipeline::verified(&source).map(|_| ())
}
