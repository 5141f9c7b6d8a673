//! `carbyne fmt`: rewrites a text in canonical form, in place. Two options leave the file
//! unchanged: `--check` prints the difference and fails if there is one, and `--expand` prints the
//! text with all omitted parts.

use crate::args::Fmt;
use crate::failure::{Failure, Outcome};
use crate::{Io, input, output, pipeline, unified_diff};
use carbyne_ir::{expand, text};

pub(super) fn run(args: &Fmt, io: &mut Io<'_>) -> Outcome {
    let source = input::read(&args.file, io)?;
    let module = if args.expand {
        let (module, program) = pipeline::written_out(&source)?;
        expand::expand(&module, &program)
    } else {
        pipeline::parsed_without_imports(&source)?
    };
    let formatted = text::print(&module);
    if args.check {
        let name = &source.name;
        let change =
            unified_diff::diff(name, &format!("{name} (formatted)"), &source.text, &formatted);
        output::write(None, change.as_bytes(), io)?;
        return if change.is_empty() { Ok(()) } else { Err(Failure::Reported) };
    }
    match &args.output {
        Some(path) => output::write(Some(path), formatted.as_bytes(), io),
        // The expanded text is only for reading, so keep the file.
        None if args.expand => output::write(None, formatted.as_bytes(), io),
        // A file in canonical form keeps its time stamp.
        None if formatted == source.text && !input::is_stdin(&args.file) => Ok(()),
        None => output::write(Some(&args.file), formatted.as_bytes(), io),
    }
}
