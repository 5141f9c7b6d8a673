//! The commands: each file or folder has one. A command reads its input, calls a library, and
//! writes the result.
//!
//! Some files print a part of the output of other commands: `abi`, `certificates`, `estimate`,
//! `line_report`, `loops`, `strategy_ranking`, `why`. `gpu` has the functions that several commands
//! on a GPU share.

pub(crate) mod abi;
mod atoms;
mod bench;
pub(crate) mod certificates;
pub(crate) mod check;
mod compile;
mod decompose;
mod draw;
mod estimate;
mod explain;
mod fmt;
#[cfg(feature = "gpu")]
mod gpu;
mod layout;
mod line_report;
mod loops;
mod run;
mod serve;
pub(crate) mod simulate;
mod strategies;
mod strategy_ranking;
mod teir;
mod tune;
mod why;

use crate::Io;
use crate::args::{Args, Command};
use crate::failure::Outcome;

/// Runs the command of the command line.
pub(crate) fn run(args: &Args, io: &mut Io<'_>) -> Outcome {
    match &args.command {
        Command::Check(a) => check::run(a, args.message_format, io),
        Command::Fmt(a) => fmt::run(a, io),
        Command::Decompose(a) => decompose::run(a, args.message_format, io),
        Command::Compile(a) => compile::run(a, args.message_format, io),
        Command::Simulate(a) => simulate::run(a, args.message_format, io),
        Command::Run(a) => run::run(a, args.message_format, io),
        Command::Bench(a) => bench::run(a, args.message_format, io),
        Command::Tune(a) => tune::run(a, args.message_format, io),
        Command::Draw(a) => draw::run(a, io),
        Command::Atoms(a) => atoms::run(a, io),
        Command::Layout(a) => layout::run(a, args.message_format, io),
        Command::Serve(a) => serve::run_all(a, args.message_format, io),
        Command::Strategies(a) => strategies::run(a, io),
        Command::Teir(a) => teir::run(a, args.message_format, io),
        Command::Explain(a) => explain::run(a, io),
    }
}
