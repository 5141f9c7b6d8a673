//! `carbyne teir`: an operation in TEIR as a program of carbyne, as CUDA C++, or as the data
//! that a launcher needs.

use super::abi;
use crate::args::{MessageFormat, Teir, TeirEmit};
use crate::failure::{Failure, Outcome, Source};
use crate::pipeline::How;
use crate::sanitize::sanitize;
use crate::{Io, input, json, output, pipeline};
use carbyne_codegen::print_kernels;
use carbyne_teir::{NAME, Operation, Violations, compare, lower};
use serde_json::json;

pub(super) fn run(args: &Teir, format: MessageFormat, io: &mut Io<'_>) -> Outcome {
    let table = pipeline::table(&args.arch)?;
    let source = input::read(&args.file, io)?;
    let refused = |errors: Violations, io: &mut Io<'_>| said(&source, &errors, format, io);
    let operation = Operation::read(&source.text).and_then(|operation| operation.check());
    let operation = operation.map_err(|e| refused(e, io))?;
    let lowered = lower(&operation).map_err(|e| refused(e, io))?;
    if args.simulate {
        let compared = compare(&operation, &lowered, &lowered.program, &table, 0);
        let n = compared.map_err(|e| refused(e, io))?;
        let report = match format {
            MessageFormat::Human => {
                format!("{NAME}: {n} elements of the output are as the schedule says\n")
            }
            MessageFormat::Json => {
                format!("{}\n", json!({ "kind": "report", "kernel": NAME, "elements": n }))
            }
        };
        output::say(&report, io);
    }
    let name = format!("{} as a program", source.name);
    let text = lowered.program.text().to_owned();
    if args.emit == TeirEmit::Text {
        return output::write(args.output.as_deref(), text.as_bytes(), io);
    }
    let program = Source { name, text, ..Source::default() };
    let decomposed = pipeline::ordered(&program, &table, How::default())?;
    output::warn(&program, &decomposed.warnings, format, io);
    let kernels: Vec<_> =
        decomposed.program.kernels.iter().map(|id| (&decomposed.program, *id)).collect();
    let (cuda, kernels) = print_kernels(&kernels, &table)
        .map_err(|errors| Failure::program(&decomposed.source, errors))?;
    let text = match args.emit {
        TeirEmit::Abi => abi::module(&kernels, &decomposed.program, &table),
        TeirEmit::Text | TeirEmit::Cuda => cuda,
    };
    output::write(args.output.as_deref(), text.as_bytes(), io)
}

/// Says what is wrong with an operation. Its places are axes and fields, or lines.
fn said(source: &Source, errors: &Violations, format: MessageFormat, io: &mut Io<'_>) -> Failure {
    for error in &errors.0 {
        let line = match format {
            MessageFormat::Human => sanitize(&format!("{}: {error}", source.name)),
            MessageFormat::Json => {
                let message = format!(
                    "{}: {}: found {}, wanted {}",
                    source.name, error.place, error.found, error.wanted
                );
                let mut object = json::plain(&message, Some(&error.help));
                object["code"] = json!(error.code.as_str());
                object.to_string()
            }
        };
        output::say(&format!("{line}\n"), io);
    }
    Failure::Reported
}
