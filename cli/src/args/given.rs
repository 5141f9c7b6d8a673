//! Options by which a program is given its inputs.

use clap::Args as Group;

/// Inputs and symbols of a program.
#[derive(Debug, Group)]
pub(crate) struct Given {
    /// Draw inputs that are not given, with this seed: floats from [-1, 1), and some others by
    /// which decisions are tried.
    #[arg(long, value_name = "N", conflicts_with = "ints")]
    pub(crate) seed: Option<u64>,
    /// Draw integers from -2 to 2, on which sums are exact, with this seed.
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    pub(crate) ints: Option<u64>,
    /// Read a tensor from a NumPy file, or take a number that is passed by value; may be repeated.
    #[arg(long = "in", value_name = "NAME=FILE.npy|NUMBER")]
    pub(crate) inputs: Vec<String>,
    /// The value of a symbolic size; may be repeated.
    #[arg(long = "sym", value_name = "NAME=VALUE")]
    pub(crate) symbols: Vec<String>,
}
