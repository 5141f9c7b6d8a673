//! `carbyne bench`: measures decomposed kernels and NVIDIA's libraries (now only cuBLAS) side by
//! side.
//!
//! - `problem`: a product as a text, and the allowed distance from cuBLAS.
//! - `factors`: random factors, and the distance of results.
//! - `measurement`: launches in turns, and their times.
//! - `report`: the table, as text, Markdown and JSON.
//! - `gemm`: the command.

#[cfg(feature = "gpu")]
mod factors;
#[cfg(feature = "gpu")]
mod gemm;
#[cfg(feature = "gpu")]
mod measurement;
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
