//! The command line of `carbyne bench`.

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
    /// Measure products of matrices, as they are decomposed without a pin, beside cuBLAS on the
    /// same GPU.
    Gemm(BenchGemm),
}

#[derive(Debug, Group)]
pub(crate) struct BenchGemm {
    /// On the GPU of this machine.
    #[arg(long, required = true)]
    pub(crate) device: bool,
    /// Decompose for this architecture; the GPU's own where left out.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Sizes: cubes, or MxNxK.
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = USUAL_SIZES)]
    pub(crate) sizes: Vec<Size>,
    /// How A and B lie in memory: `n` with consecutive rows, `t` with consecutive columns.
    #[arg(long, value_name = "MAJORS", value_delimiter = ',', default_value = "nt")]
    pub(crate) majors: Vec<Majors>,
    /// Types of the factors, which the types of C and of sums follow: f16, bf16, tf32, f32, f64,
    /// i8, e4m3, e5m2, and two 8-bit floats as `e4m3xe5m2`.
    #[arg(long, value_name = "TYPES", value_delimiter = ',', default_value = "f16")]
    pub(crate) types: Vec<Factors>,
    /// The type of sums of products of f16.
    #[arg(long, value_enum, value_name = "TYPE")]
    pub(crate) acc: Option<Sums>,
    /// What follows the product in the same kernel.
    #[arg(long, value_enum, default_value = "none")]
    pub(crate) epilogue: Following,
    /// Pins of kernels that are measured beside each other, separated by `;`, such as
    /// `@wgmma_tiles[BM=128];@ring`; an empty one stands for what is chosen without.
    #[arg(long, value_name = "PINS", value_delimiter = ';')]
    pub(crate) by: Vec<String>,
    /// Measure so many launches of each kernel, in turn.
    #[arg(long, value_name = "N", default_value = "150", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) launches: u32,
    /// Then launch each for so many seconds without a pause; 0 does not.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = clap::value_parser!(u32).range(..=600))]
    pub(crate) sustain: u32,
    /// Measure both so many times.
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// Draw the factors from this seed; from the clock where left out.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Take pins of kernels without one of their own from this file, which `carbyne tune` wrote.
    #[arg(long, value_name = "FILE")]
    pub(crate) tuned: Option<PathBuf>,
    /// Which GPU, as the driver counts.
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) gpu: u32,
    /// Give up on a kernel after so many seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) timeout: u32,
    /// Write all figures to this file as JSON, after each product.
    #[arg(long, value_name = "PATH")]
    pub(crate) json: Option<PathBuf>,
    /// Write the table to this file as Markdown.
    #[arg(long, value_name = "PATH")]
    pub(crate) markdown: Option<PathBuf>,
}

/// Those of `docs/h100.md`.
const USUAL_SIZES: &str = "1024,2048,4096,8192,5376x5376x2048,4096x14336x4096,8192x1280x8192,16384x4096x512,\
    128x8192x8192,16x4096x4096";

/// M, N and K.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) [u32; 3]);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        /// The largest extent: what a tensor has at most fits the memory of no GPU beyond.
        const MOST: u32 = 1 << 20;
        let numbers: Option<Vec<u32>> =
            text.split('x').map(|n| n.parse().ok().filter(|n| (1..=MOST).contains(n))).collect();
        match numbers.as_deref() {
            Some([n]) => Ok(Size([*n; 3])),
            Some([m, n, k]) => Ok(Size([*m, *n, *k])),
            _ => Err(format!("it is neither a number up to {MOST} nor three such, MxNxK")),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n, k] = self.0;
        write!(f, "{m}x{n}x{k}")
    }
}

/// Whether columns of A and of B are consecutive, not rows.
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
            _ => return Err("it is none of nn, nt, tn and tt".to_owned()),
        }))
    }
}

impl fmt::Display for Majors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |t: bool| if t { 't' } else { 'n' };
        write!(f, "{}{}", letter(self.0[0]), letter(self.0[1]))
    }
}

/// Types of A and B.
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
            _ => {
                Err("it is none of f16, bf16, tf32, f32, f64, i8, e4m3, e5m2 and e4m3xe5m2"
                    .to_owned())
            }
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

/// Types of sums that can be asked for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sums {
    /// Half precision.
    F16,
    /// Single precision, as without the option.
    F32,
}

/// What follows a product.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Following {
    /// Nothing.
    #[value(name = "none")]
    None,
    /// A number a column is added, and what is negative becomes 0.
    #[value(name = "bias_relu")]
    BiasRelu,
}
