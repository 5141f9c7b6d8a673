//! Defines [`ArrayError`], the reasons why a file or a list of numbers is not an array for a
//! tensor: for example, the file holds f64 and the tensor f16.

use carbyne_ir::scalar::Scalar;
use thiserror::Error;

/// The reason why a file or list is not an array for a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArrayError {
    /// The file is not a `.npy` file, or is truncated.
    #[error("not a valid .npy file: {0}")]
    Format(&'static str),
    /// The element type differs.
    #[error("its elements are `{found}`, the tensor needs `<{wanted}`")]
    Type {
        /// The type in the file.
        found: String,
        /// The type that the tensor needs.
        wanted: &'static str,
    },
    /// The scalar type cannot hold the number.
    #[error("{value} is not a valid {scalar}")]
    Range {
        /// The number.
        value: i128,
        /// The scalar type.
        scalar: Scalar,
    },
    /// The number is not an integer, or is outside the range of the integer type.
    #[error("{value} is not a valid {scalar}")]
    Number {
        /// The number, as text.
        value: String,
        /// The scalar type.
        scalar: Scalar,
    },
    /// The number of numbers does not match the shape.
    #[error("{found} numbers are given for {wanted} elements")]
    Count {
        /// The number of given numbers.
        found: usize,
        /// The number of elements of the shape.
        wanted: u64,
    },
}
