//! `carbyne teir`: lowers an operation in TEIR, the Tiled Execution IR, to a program of carbyne,
//! and prints the program, CUDA C++, or the data that a launcher needs. On request it also executes
//! the program and compares it with the operation.

use super::abi;
use crate::args::{MessageFormat, Teir, TeirEmit, TeirLevel};
use crate::failure::{Failure, Outcome, Source};
use crate::pipeline::{Decomposed, How};
use crate::sanitize::sanitize;
use crate::{Io, input, json, output, pipeline};
use carbyne_atoms::AtomTable;
use carbyne_codegen::{Host, print_kernels, print_program};
use carbyne_ir::diag::Code;
use carbyne_teir::{
    Checked, Lowered, NAME, Operation, Place, Program, Violations, compare, is_comparable, lower,
    lower_to_spec, split_k,
};
use serde_json::json;

pub(super) fn run(args: &Teir, format: MessageFormat, io: &mut Io<'_>) -> Outcome {
    let table = pipeline::table(&args.arch)?;
    let source = input::read_whole(&args.file, io)?;
    let refused = |errors: Violations, io: &mut Io<'_>| said(&source, &errors, format, io);
    let operation = Operation::read(&source.text).and_then(|operation| operation.check());
    let operation = operation.map_err(|e| refused(e, io))?;
    if args.simulate {
        is_comparable(&operation).map_err(|e| refused(e, io))?;
    }
    let lowered = match args.level {
        TeirLevel::Tile => lower(&operation),
        TeirLevel::Kernel => lower_to_spec(&operation, true),
    };
    let mut lowered = lowered.map_err(|e| refused(e, io))?;
    let decomposed = match args.emit {
        TeirEmit::Text => None,
        TeirEmit::Cuda | TeirEmit::Abi => {
            Some(decomposed(&operation, &mut lowered, args.level, &table, &source)?)
        }
    };
    for reason in &lowered.open {
        let line = match format {
            MessageFormat::Human => format!("note: {reason}\n"),
            MessageFormat::Json => format!("{}\n", json!({ "kind": "note", "message": reason })),
        };
        output::say(&line, io);
    }
    if args.simulate {
        let program = decomposed.as_ref().map(|d| Program::new(&d.source.text)).transpose();
        let program = program.map_err(|errors| Failure::program(&source, errors))?;
        let program = program.as_ref().unwrap_or(&lowered.program);
        let compared = compare(&operation, &lowered, program, &table, 0);
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
    let Some(decomposed) = decomposed else {
        return output::write(args.output.as_deref(), lowered.program.text().as_bytes(), io);
    };
    output::warn(&decomposed.source, &decomposed.warnings, format, io);
    let program = &decomposed.program;
    let failed = |errors| Failure::program(&decomposed.source, errors);
    let text = if args.emit == TeirEmit::Abi {
        let kernels: Vec<_> = program.kernels.iter().map(|id| (program, *id)).collect();
        let (_, kernels) = print_kernels(&kernels, &table, None).map_err(failed)?;
        abi::module(&kernels, program, &table)
    } else {
        let declared = pipeline::declared(&pipeline::parsed(&decomposed.source)?);
        let host = Host { name: NAME, declared: &declared, lines: None };
        print_program(program, &program.kernels, &table, host).map_err(failed)?.0
    };
    output::write(args.output.as_deref(), text.as_bytes(), io)
}

/// Decomposes the program. A spec for which no strategy has the tile of the schedule goes without
/// this pin.
fn decomposed(
    operation: &Checked,
    lowered: &mut Lowered,
    level: TeirLevel,
    table: &AtomTable,
    source: &Source,
) -> Result<Decomposed, Failure> {
    let decompose = |lowered: &Lowered| {
        let name = format!("{} as a program", source.name);
        let text = lowered.program.text().to_owned();
        let program = Source { name, text, ..Source::default() };
        pipeline::ordered(&program, table, How::default())
    };
    let found = decompose(lowered);
    if found.is_ok() || level == TeirLevel::Tile || !lowered.open.is_empty() {
        return found.map_err(|failure| named(operation, failure));
    }
    let Ok(mut free) = lower_to_spec(operation, false) else { return found };
    let without = decompose(&free).map_err(|failure| named(operation, failure))?;
    free.open = vec![format!("`tile=` is left to decompose: no strategy has it on {}", table.arch)];
    *lowered = free;
    Ok(without)
}

/// Names the K axes of a spec that no strategy decomposes because they are not contiguous.
fn named(operation: &Checked, mut failure: Failure) -> Failure {
    let axes = split_k(operation);
    if let (Failure::Program { list, .. }, [others @ .., last]) = (&mut failure, &axes[..]) {
        let others: Vec<String> = others.iter().map(usize::to_string).collect();
        for d in list.iter_mut().filter(|d| d.code == Code::NoStrategy) {
            d.help = Some(format!(
                "the K axes {} and {last} are not contiguous in in0 and in1, which strategies \
                 seldom take: lower the operation by `--level tile`",
                others.join(", ")
            ));
        }
    }
    failure
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
                if let Place::Line(line) = error.place {
                    object["file"] = json!(source.name);
                    object["spans"] = json!([json::line(source, line, &error.found)]);
                }
                object.to_string()
            }
        };
        output::say(&format!("{line}\n"), io);
    }
    Failure::Reported
}
