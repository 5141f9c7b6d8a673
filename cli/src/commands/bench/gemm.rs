//! `carbyne bench gemm`: measures matrix products of carbyne and of cuBLAS side by side.
//!
//! All kernels are decomposed and compiled before the first measurement. For each product, the
//! kernels of carbyne and cuBLAS get the same factors, and their results are compared. Then they
//! are launched in turns, in one stream that never runs empty. The order is random in each turn.

use super::measurement::{COMMAND, Ours, Session, outside};
use super::problem::Problem;
use super::report::Report;
use crate::args::{BenchGemm, MessageFormat};
use crate::commands::gpu::{self, Builder, Clock, side_by_side};
use crate::failure::{Failure, Outcome, Source};
use crate::progress::shown;
use crate::tuned::Tuning;
use crate::{Io, human, input, json, output};
use carbyne_ir::diag::Diagnostic;
use carbyne_ir::progress::Stage;
use carbyne_launch::{Cublas, CublasLibrary, Gpu};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(super) fn run(args: &BenchGemm, format: MessageFormat, io: &mut Io<'_>) -> Outcome {
    let problems = Problem::all(args)?;
    let machine = |d: Box<Diagnostic>| outside(*d);
    let gpu = Gpu::open(args.gpu).map_err(machine)?;
    let table = gpu::table(COMMAND, &gpu, args.arch.as_deref())?;
    let library = CublasLibrary::find().map_err(machine)?;
    let mut builder = Builder::new(COMMAND, &gpu, &table)?;
    builder.tuning = Tuning::from_file(args.tuned.as_deref(), Some(&gpu.info().name))?;
    let cublas = Cublas::start(library, &gpu).map_err(machine)?;
    let seed = args.seed.unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
    });
    let patience = Duration::from_secs(args.timeout.into());
    let clock = Clock::new(&gpu, seed, patience).map_err(machine)?;

    let no_pin = [String::new()];
    let pins = if args.by.is_empty() { &no_pin[..] } else { &args.by };
    let mut texts: Vec<(usize, String, Source)> = vec![];
    for (i, problem) in problems.iter().enumerate() {
        for pin in pins.iter().map(|pin| pin.trim()) {
            let name = match pin {
                "" => problem.to_string(),
                pin => format!("{problem} by {pin}"),
            };
            let source = Source { name, text: problem.text(pin), ..input::empty_source(io) };
            texts.push((i, pin.to_owned(), source));
        }
    }
    let built = shown(io.progress, |_| {
        let stage = Stage::new("compiling", Some(texts.len() as u64));
        side_by_side(COMMAND, &texts, &stage, |(_, _, source)| builder.built(source))
    })?;
    let mut failures = vec![];
    let mut of_problems: Vec<Vec<Ours>> = problems.iter().map(|_| vec![]).collect();
    for ((i, asked, source), built) in texts.into_iter().zip(built) {
        match built {
            Ok(built) => {
                built.notes.say(&source, format, io);
                of_problems[i].push(Ours { asked, source, built });
            }
            Err(failure) => failures.push(failure),
        }
    }

    let mut report = Report::new(args, (&gpu, &table), (library, builder.nvrtc), seed);
    output::write(None, report.head().as_bytes(), io)?;
    let mut session = Session { args, gpu: &gpu, cublas: &cublas, table: &table, clock, seed };
    shown(io.progress, |bar| {
        let stage = Stage::new("measuring", Some(problems.len() as u64));
        for (problem, ours) in problems.iter().zip(of_problems) {
            stage.says(&problem.to_string());
            if !ours.is_empty() {
                match session.measured(*problem, ours, &mut failures) {
                    Ok(Some(measured)) => {
                        let rows = report.rows(&measured);
                        report.add(measured);
                        bar.hidden(|| {
                            output::write(None, rows.as_bytes(), io)?;
                            io.stdout.flush().map_err(Failure::stdout)
                        })?;
                    }
                    Ok(None) => {}
                    Err(failure) => failures.push(failure),
                }
                if let Some(path) = &args.json {
                    output::write(Some(path), report.json().as_bytes(), io)?;
                }
            }
            stage.step();
            if !failures.is_empty() && !gpu.is_usable() {
                break;
            }
        }
        Ok(())
    })?;
    output::write(None, report.foot().as_bytes(), io)?;
    if let Some(path) = &args.markdown {
        output::write(Some(path), report.markdown().as_bytes(), io)?;
    }
    let Some(last) = failures.pop() else { return Ok(()) };
    for failure in failures {
        let _ = match format {
            MessageFormat::Human => human::failure(&failure, io),
            MessageFormat::Json => json::failure(&failure, io),
        };
    }
    Err(last)
}
