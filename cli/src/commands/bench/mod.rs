//! `carbyne bench`: what is decomposed beside NVIDIA's libraries.
//!
//! - `problem`: a product as a text, and how near to cuBLAS it must be. `numbers`: what it is
//!   given, and how near it is.
//! - `measured`: launches in turn, and their figures. `report`: the table, as text, Markdown and
//!   JSON. `gemm`: the command.

#[cfg(feature = "gpu")]
mod gemm;
#[cfg(feature = "gpu")]
mod measured;
#[cfg(feature = "gpu")]
mod numbers;
#[cfg(feature = "gpu")]
mod problem;
#[cfg(feature = "gpu")]
mod report;

use crate::Io;
use crate::args::{Bench, BenchCommand, MessageFormat};
use crate::failure::Outcome;

#[cfg(feature = "gpu")]
pub(super) fn run(args: &Bench, format: MessageFormat, io: &mut Io<'_>) -> Outcome {
    let BenchCommand::Gemm(args) = &args.command;
    gemm::run(args, format, io)
}

#[cfg(not(feature = "gpu"))]
pub(super) fn run(args: &Bench, _: MessageFormat, _: &mut Io<'_>) -> Outcome {
    let BenchCommand::Gemm(_) = &args.command;
    let source = crate::failure::Source { name: "carbyne bench".to_owned(), ..Default::default() };
    Err(crate::failure::Failure::one(&source, *carbyne_launch::without_gpu()))
}
