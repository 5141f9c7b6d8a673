//! The command line of `carbyne tune`.

use super::given::Given;
use clap::Args as Group;
use std::path::PathBuf;

#[derive(Debug, Group)]
pub(crate) struct Tune {
    /// The program.
    pub(crate) file: PathBuf,
    /// On the GPU of this machine.
    #[arg(long, required = true)]
    pub(crate) device: bool,
    /// Decompose for this architecture; the GPU's own where left out.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    #[command(flatten)]
    pub(crate) given: Given,
    /// The database: pins of the best are written to it, what else it holds is kept.
    #[arg(long, value_name = "FILE", default_value = "carbyne.tuned")]
    pub(crate) tuned: PathBuf,
    /// Try so many instances of strategies for each kernel, those that are estimated to be the
    /// best.
    #[arg(long, value_name = "N", default_value = "24", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) top: u16,
    /// Measure so many launches of each, in turn.
    #[arg(long, value_name = "N", default_value = "60", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) launches: u32,
    /// Compare at most this many elements of each output, spread evenly.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) compare: Option<u64>,
    /// Which GPU, as the driver counts.
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) gpu: u32,
    /// Give up on a kernel after so many seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) timeout: u32,
    /// Write all figures to this file as JSON.
    #[arg(long, value_name = "PATH")]
    pub(crate) json: Option<PathBuf>,
}
