//! [`Unfit`] is the reason why no layout is found: the layout does not come apart into modes,
//! contradicts others, or serves no access.

use carbyne_ir::layout::LayoutError;

/// What keeps a layout from being found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unfit {
    /// The layout algebra has none.
    #[error(transparent)]
    Layout(#[from] LayoutError),

    // Digits of thread-value layouts.
    /// A step of so many elements leaves the tensor.
    #[error("a step of {0} leaves the tensor")]
    Leaves(i64),
    /// A digit (extent, step) leaves a mode of so many elements at a place that it does not divide.
    #[error("{}:{} crosses a mode of {of} elements unevenly", digit.0, digit.1)]
    Crosses {
        /// The digit.
        digit: (i64, i64),
        /// Elements of the mode.
        of: i64,
    },
    /// Shapes of operands do not fit.
    #[error("the shapes do not fit")]
    Shapes,
    /// A Reduction without an input.
    #[error("it has no input")]
    NoInput,
    /// Sizes depend on symbols.
    #[error("its sizes are not known")]
    Sizes,
    /// A Reduction without axes.
    #[error("it names no axis")]
    NoAxis,
    /// Threads that a Reduction removes are no whole digits.
    #[error("the reduced threads cannot be separated from the others")]
    Threads,
    /// A Reduction by a function of bits of a type of which no instruction combines two.
    #[error("no instruction combines the bits of two elements of one thread")]
    Bits,

    // Views of register tensors.
    /// Extents depend on symbols.
    #[error("its extents are not known")]
    Extents,
    /// More elements than are looked at.
    #[error("it is too large")]
    TooLarge,
    /// A view takes threads apart.
    #[error("its elements are held by some of the threads only")]
    SomeThreads,
    /// A view begins within a thread's values, or at another thread's.
    #[error("its first element is not the first of the first thread")]
    First,
    /// A view has no layout over threads and registers.
    #[error("its elements are held in no regular order")]
    Irregular,

    // Descriptors.
    /// Instructions that are told by a descriptor where a tile lies want other layouts than the
    /// rest.
    #[error("no layout that a matrix descriptor can name suits its other accesses")]
    NoDescriptor,

    // Vectors.
    /// Of so many consecutive elements no vector of `n` is a part.
    #[error("{of} consecutive elements, which {n} does not divide")]
    Divides {
        /// Elements of the vector.
        n: i64,
        /// Elements that are consecutive.
        of: i64,
    },
    /// No two elements are neighbors.
    #[error("consecutive in memory in no direction")]
    NoDirection,
    /// Only so many elements are neighbors.
    #[error("only {0} consecutive elements")]
    Few(i64),

    // Layouts of shared tensors.
    /// An access to the tensor that no instruction makes.
    #[error("its accesses have no candidates")]
    NoCandidates,
    /// A swizzle that is stated moves bytes out of the tensor.
    #[error("its swizzle moves bytes within blocks of {block}, but it has only {bytes}")]
    Swizzle {
        /// Bytes of a block.
        block: i64,
        /// Bytes of the tensor.
        bytes: i64,
    },
    /// A range that the text takes of the tensor cuts through a mode.
    #[error("a range of it cuts through the mode {0}, which has several strides")]
    Range(String),
}
