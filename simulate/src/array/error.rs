//! Why a file is no array.

use carbyne_ir::scalar::Scalar;
use thiserror::Error;

/// Why a file is no array for a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArrayError {
    /// No `.npy` file, or one that is cut off.
    #[error("no .npy file: {0}")]
    Format(&'static str),
    /// Another element type.
    #[error("its elements are `{found}`, the tensor takes `<{wanted}`")]
    Type {
        /// In the file.
        found: String,
        /// Forms that can be read.
        wanted: &'static str,
    },
    /// A number that the scalar type does not hold.
    #[error("{value} is no {scalar}")]
    Range {
        /// The number that was to be stored.
        value: i128,
        /// The scalar type.
        scalar: Scalar,
    },
    /// A number that is no integer, or none that the integer type has.
    #[error("{value} is no {scalar}")]
    Number {
        /// The number, as text.
        value: String,
        /// The type.
        scalar: Scalar,
    },
    /// As many numbers as the extents say are not there.
    #[error("{found} numbers for {wanted} elements")]
    Count {
        /// Numbers given.
        found: usize,
        /// Elements of the shape.
        wanted: u64,
    },
}
