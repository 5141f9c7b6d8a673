//! [`Part`] names the registers of a part of a register tensor.

use carbyne_ir::layout::Layout;

/// The registers of a part of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    /// The tensor that it is a part of, by name.
    pub of: String,
    /// Values of one thread in all of it.
    pub all: i64,
    /// From a value of the part to its register, counted from the first.
    pub registers: Layout,
    /// The register of its first value.
    pub first: i64,
    /// Which of the copies of `registers` it is among all.
    pub copy: i64,
}
