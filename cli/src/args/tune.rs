//! Defines the command-line options of `carbyne tune`, which measures instances of strategies on a
//! GPU and stores the fastest ones as pins.

use super::inputs::InputArgs;
use clap::Args as Group;
use std::path::PathBuf;

#[derive(Debug, Group)]
pub(crate) struct Tune {
    /// The program.
    pub(crate) file: PathBuf,
    /// Use the GPU of this machine.
    #[arg(long, required = true)]
    pub(crate) device: bool,
    /// Decompose for this architecture; default: the architecture of the GPU.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    #[command(flatten)]
    pub(crate) given: InputArgs,
    /// The database. The best pins are added; other entries are kept.
    #[arg(long, value_name = "FILE", default_value = "carbyne.tuned")]
    pub(crate) tuned: PathBuf,
    /// Measure the N instances of strategies that have the best estimates, for each kernel.
    #[arg(long, value_name = "N", default_value = "24")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) top: u16,
    /// Measure N launches of each instance; the instances take turns.
    #[arg(long, value_name = "N", default_value = "60")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) launches: u32,
    /// Compare at most N elements of each output, evenly spaced.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) compare: Option<u64>,
    /// The index of the GPU, as the driver counts.
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) gpu: u32,
    /// Stop a kernel that takes longer than N seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) timeout: u32,
    /// Write all results to this file as JSON.
    #[arg(long, value_name = "PATH")]
    pub(crate) json: Option<PathBuf>,
}
