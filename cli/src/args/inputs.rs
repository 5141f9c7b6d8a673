//! Defines command-line options for the inputs and symbols of a program, which several commands
//! have.

use clap::Args as Group;

/// Inputs and symbols of a program.
#[derive(Debug, Group)]
pub(crate) struct InputArgs {
    /// Draw the other inputs at random from this seed: floats from [-1, 1), and special values
    /// for inputs that control decisions.
    #[arg(long, value_name = "N", conflicts_with = "ints")]
    pub(crate) seed: Option<u64>,
    /// Draw integers from -2 to 2 with this seed. Sums of them are exact.
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "0")]
    pub(crate) ints: Option<u64>,
    /// Read a tensor from a NumPy file, or pass a number by value; may be repeated.
    #[arg(long = "in", value_name = "NAME=FILE.npy|NUMBER")]
    pub(crate) inputs: Vec<String>,
    /// The value of a symbol; may be repeated.
    #[arg(long = "sym", value_name = "NAME=VALUE")]
    pub(crate) symbols: Vec<String>,
}
