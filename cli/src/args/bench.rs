//! Defines the command-line options of `carbyne bench`, and the types of their values, such as
//! sizes of matrix products.

use carbyne_ir::scalar::Scalar;
use clap::{Args as Group, Subcommand, ValueEnum};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Debug, Group)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) command: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Measure matrix products of kernels without pins, and cuBLAS on the same GPU.
    Gemm(BenchGemm),
}

#[derive(Debug, Group)]
pub(crate) struct BenchGemm {
    /// Use the GPU of this machine.
    #[arg(long, required = true)]
    pub(crate) device: bool,
    /// Decompose for this architecture; default: the architecture of the GPU.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// The sizes: N for NxNxN, or MxNxK.
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = USUAL_SIZES)]
    pub(crate) sizes: Vec<Size>,
    /// The storage of A and B: `n` with consecutive rows, `t` with consecutive columns.
    #[arg(long, value_name = "MAJORS", value_delimiter = ',', default_value = "nt")]
    pub(crate) majors: Vec<Majors>,
    /// The types of A and B: f16, bf16, tf32, f32, f64, i8, e4m3, e5m2, or two 8-bit floats as
    /// `e4m3xe5m2`. They determine the types of C and of the accumulators.
    #[arg(long, value_name = "TYPES", value_delimiter = ',', default_value = "f16")]
    pub(crate) types: Vec<Factors>,
    /// The accumulator type of f16 products.
    #[arg(long, value_enum, value_name = "TYPE")]
    pub(crate) acc: Option<Sums>,
    /// The operation after the product in the same kernel.
    #[arg(long, value_enum, default_value = "none")]
    pub(crate) epilogue: Following,
    /// Pins of several kernels to measure side by side, separated by `;`, such as
    /// `@wgmma_tiles[BM=128];@ring`. An empty entry is the choice without a pin.
    #[arg(long, value_name = "PINS", value_delimiter = ';')]
    pub(crate) by: Vec<String>,
    /// Measure N launches of each kernel; the kernels take turns.
    #[arg(long, value_name = "N", default_value = "150")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) launches: u32,
    /// Then launch each kernel without a pause for N seconds; 0 skips this measurement.
    #[arg(long, value_name = "SECONDS", default_value = "1")]
    #[arg(value_parser = clap::value_parser!(u32).range(..=600))]
    pub(crate) sustain: u32,
    /// Repeat all measurements N times.
    #[arg(long, value_name = "N", default_value = "2")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// The seed of the random factors; default: from the clock.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// For kernels without a pin, take pins from this file, which `carbyne tune` wrote.
    #[arg(long, value_name = "FILE")]
    pub(crate) tuned: Option<PathBuf>,
    /// The index of the GPU, as the driver counts.
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) gpu: u32,
    /// Stop a kernel that takes longer than N seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) timeout: u32,
    /// Write all results to this file as JSON, after each product.
    #[arg(long, value_name = "PATH")]
    pub(crate) json: Option<PathBuf>,
    /// Write the table to this file as Markdown.
    #[arg(long, value_name = "PATH")]
    pub(crate) markdown: Option<PathBuf>,
}

/// The sizes of `docs/h100.md`.
const USUAL_SIZES: &str = "1024,2048,4096,8192,5376x5376x2048,4096x14336x4096,8192x1280x8192,\
    16384x4096x512,128x8192x8192,16x4096x4096";

/// The extents M, N and K of a matrix product.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) [u32; 3]);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        /// The largest extent. Larger tensors fit the memory of no GPU.
        const MOST: u32 = 1 << 20;
        let numbers: Option<Vec<u32>> =
            text.split('x').map(|n| n.parse().ok().filter(|n| (1..=MOST).contains(n))).collect();
        match numbers.as_deref() {
            Some([n]) => Ok(Size([*n; 3])),
            Some([m, n, k]) => Ok(Size([*m, *n, *k])),
            _ => Err(format!("expected an integer up to {MOST}, or three as MxNxK")),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n, k] = self.0;
        write!(f, "{m}x{n}x{k}")
    }
}

/// For A and for B: whether columns are consecutive, instead of rows.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Majors(pub(crate) [bool; 2]);

impl FromStr for Majors {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Majors(match text {
            "nn" => [false, false],
            "nt" => [false, true],
            "tn" => [true, false],
            "tt" => [true, true],
            _ => return Err("expected nn, nt, tn or tt".to_owned()),
        }))
    }
}

impl fmt::Display for Majors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |t: bool| if t { 't' } else { 'n' };
        write!(f, "{}{}", letter(self.0[0]), letter(self.0[1]))
    }
}

/// The types of A and B.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Factors(pub(crate) [Scalar; 2]);

impl FromStr for Factors {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        use Scalar::*;
        let known = |name: &str| {
            let scalar = name.parse::<Scalar>().ok();
            scalar.filter(|s| matches!(s, F16 | Bf16 | Tf32 | F32 | F64 | I8 | E4m3 | E5m2))
        };
        let (a, b) = text.split_once('x').unwrap_or((text, text));
        let eight = |s: Scalar| s.is_float() && s.bits() == 8;
        match (known(a), known(b)) {
            (Some(a), Some(b)) if a == b || eight(a) && eight(b) => Ok(Factors([a, b])),
            _ => Err("expected f16, bf16, tf32, f32, f64, i8, e4m3, e5m2 or e4m3xe5m2".to_owned()),
        }
    }
}

impl fmt::Display for Factors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [a, b] if a == b => write!(f, "{a}"),
            [a, b] => write!(f, "{a}x{b}"),
        }
    }
}

/// Accumulator types that `--acc` accepts.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sums {
    /// Half precision.
    F16,
    /// Single precision, the default.
    F32,
}

/// The operation after a product.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Following {
    /// No operation.
    #[value(name = "none")]
    None,
    /// Add one number per column, then replace negative values by 0.
    #[value(name = "bias_relu")]
    BiasRelu,
}
