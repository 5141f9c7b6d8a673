//! Defines [`LayoutError`], the errors of the layout algebra, with stable codes of the family L and
//! a help.
//!
//! Invariant: every error names the modes, the limit or the missing fact. No operation returns a
//! wrong layout instead. A code never changes its meaning.

use crate::fact::Fact;
use std::fmt;
use thiserror::Error;

/// Two modes that do not divide one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clash {
    /// The mode of the outer (left) layout, as `extent:stride`.
    pub outer: String,
    /// The mode of the inner (right) layout, as `extent:stride`.
    pub inner: String,
    /// A change that makes them divide, as an action.
    pub fix: String,
}

impl fmt::Display for Clash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Clash { outer, inner, .. } = self;
        write!(f, "mode `{inner}` splits mode `{outer}` unevenly, so the result is not a layout")
    }
}

/// The reason why [`unify`](super::unify()) finds no layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Obstacle {
    /// A run of this step leaves the tensor.
    #[error("a run of step {0} leaves the tensor")]
    RunLeaves(i64),
    /// A run of this step begins within a digit (extent, step).
    #[error("a run of step {run} does not fit the mode {}:{}", digit.0, digit.1)]
    RunBegins {
        /// The step of the run.
        run: i64,
        /// The digit.
        digit: (i64, i64),
    },
    /// A run of `run` elements ends within a digit (extent, step).
    #[error("runs of {run} do not divide the mode {}:{}", digit.0, digit.1)]
    RunEnds {
        /// Elements of the run.
        run: i64,
        /// The digit.
        digit: (i64, i64),
    },
    /// Another run split the digits of the run with this step.
    #[error("another run splits the run of step {0}")]
    RunSplit(i64),
    /// A run of `run` elements ends within a digit of another run.
    #[error("a run of {run} ends inside a digit of {digit}")]
    RunInside {
        /// Elements of the run.
        run: i64,
        /// Elements of the digit.
        digit: i64,
    },
    /// Two runs require one element in two places.
    #[error(
        "elements {apart} apart would need the strides {} and {} at once",
        strides.0,
        strides.1
    )]
    TwoStrides {
        /// The distance of the elements in the column-major index.
        apart: i64,
        /// The stride that each run requires.
        strides: (i64, i64),
    },
    /// Two runs require one place for two elements, or the strides of the runs leave a gap.
    #[error("two directions of the tensor would both be consecutive (stride {0})")]
    TwoDirections(i64),
}

/// An error of the layout algebra or of its symbolic arithmetic.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A mode of the right operand splits a mode of the left operand unevenly.
    #[error("{0}")]
    Indivisible(Box<Clash>),
    /// A number does not fit in 64 bits.
    #[error("{what} does not fit in 64 bits")]
    Overflow {
        /// The quantity whose computation overflowed.
        what: &'static str,
    },
    /// Shape and stride, or shape and coordinate, are nested differently.
    #[error("`{shape}` and `{other}` are nested differently")]
    Incongruent {
        /// The shape.
        shape: String,
        /// The stride or coordinate.
        other: String,
    },
    /// A mode that does not exist, or an operand with too many modes.
    #[error("mode {mode} is requested, but the layout has {rank} modes")]
    Rank {
        /// The number of the requested mode, from zero.
        mode: usize,
        /// The number of modes.
        rank: usize,
    },
    /// A text that is not a tuple or layout.
    #[error("expected {expected} at byte {at}")]
    Parse {
        /// Byte offset into the text.
        at: usize,
        /// The text that is expected there.
        expected: &'static str,
    },
    /// Nesting beyond the limit.
    #[error("nesting is deeper than {limit} levels")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// A structure that exceeds its size limit.
    #[error("{what} is larger than the limit of {limit}")]
    TooLarge {
        /// The structure.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The result depends on an unknown fact about symbols.
    #[error("cannot decide without knowing `{fact}`")]
    NeedsFact {
        /// The fact that would decide.
        fact: Fact,
    },
    /// An injective layout was required.
    #[error("layout `{layout}` maps two coordinates to one index")]
    NotInjective {
        /// The layout or the mode at fault.
        layout: String,
    },
    /// An extent below one.
    #[error("extent {extent} is not positive")]
    Extent {
        /// The extent.
        extent: i64,
    },
    /// A division or remainder by zero or by a negative number.
    #[error("division by `{divisor}`, which is not positive")]
    Divisor {
        /// The divisor.
        divisor: String,
    },
    /// A negative stride where only non-negative strides are supported.
    #[error("mode `{mode}` has a negative stride")]
    NegativeStride {
        /// The mode, as `extent:stride`.
        mode: String,
    },
    /// A variable without a value, or with an empty range.
    #[error("variable `{name}` {reason}")]
    Variable {
        /// Its name.
        name: String,
        /// The defect of the variable.
        reason: &'static str,
    },
    /// A stride that would step along two axes of a coordinate.
    #[error("the strides `{a}` and `{b}` step along different axes, so their sum is not a stride")]
    TwoAxes {
        /// One stride.
        a: String,
        /// The other.
        b: String,
    },
    /// Elements of one width that are not whole elements of another width.
    #[error("mode `{mode}` cannot be recast by a factor of {factor}: {reason}")]
    Recast {
        /// The mode, as `extent:stride`.
        mode: String,
        /// The number of narrow elements in a wide one.
        factor: String,
        /// The reason.
        reason: &'static str,
    },
    /// An operation whose result is not a swizzled layout.
    #[error("{what} of `{layout}` is not a layout or a swizzled layout")]
    Swizzled {
        /// The operation.
        what: &'static str,
        /// The composed layout.
        layout: String,
    },
    /// An argument that is out of range.
    #[error("{what} is {found}, but must be {wanted}")]
    Argument {
        /// The argument.
        what: &'static str,
        /// Its value.
        found: String,
        /// The accepted values.
        wanted: &'static str,
    },
    /// A swizzle whose bit fields overlap or do not fit.
    #[error("swizzle {swizzle} {reason}")]
    Swizzle {
        /// The swizzle, as `Sw<bits,base,shift>`.
        swizzle: String,
        /// The defect of the swizzle.
        reason: &'static str,
    },
    /// A layout that does not map one-to-one onto the numbers below its size.
    #[error(
        "layout `{layout}` has no inverse: it is not one-to-one onto the numbers below its size"
    )]
    NoInverse {
        /// The layout.
        layout: String,
    },
    /// Runs of elements that no compact layout makes consecutive.
    #[error("{0}")]
    NotUnified(Obstacle),
}

impl LayoutError {
    /// The stable code, `L0101` to `L0120`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            LayoutError::Indivisible(_) => "L0101",
            LayoutError::Overflow { .. } => "L0102",
            LayoutError::Incongruent { .. } => "L0103",
            LayoutError::Rank { .. } => "L0104",
            LayoutError::Parse { .. } => "L0105",
            LayoutError::TooDeep { .. } => "L0106",
            LayoutError::TooLarge { .. } => "L0107",
            LayoutError::NeedsFact { .. } => "L0108",
            LayoutError::NotInjective { .. } => "L0109",
            LayoutError::Extent { .. } => "L0110",
            LayoutError::Divisor { .. } => "L0111",
            LayoutError::NegativeStride { .. } => "L0112",
            LayoutError::Variable { .. } => "L0113",
            LayoutError::Swizzle { .. } => "L0114",
            LayoutError::TwoAxes { .. } => "L0115",
            LayoutError::Recast { .. } => "L0116",
            LayoutError::Swizzled { .. } => "L0117",
            LayoutError::Argument { .. } => "L0118",
            LayoutError::NoInverse { .. } => "L0119",
            LayoutError::NotUnified(_) => "L0120",
        }
    }

    /// An action that fixes the error.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            LayoutError::Indivisible(clash) => Some(clash.fix.clone()),
            LayoutError::Incongruent { shape, .. } => {
                Some(format!("give one number for each leaf of `{shape}`, nested alike"))
            }
            LayoutError::NeedsFact { fact } => {
                Some(format!("state `{fact}` where the symbol is declared"))
            }
            LayoutError::NotInjective { .. } => {
                Some("change the strides so that no two coordinates share an index".to_owned())
            }
            LayoutError::NegativeStride { mode } => {
                Some(format!("walk `{mode}` in the other direction, with a positive stride"))
            }
            LayoutError::Extent { .. } => Some("make every extent 1 or more".to_owned()),
            LayoutError::TwoAxes { .. } => {
                Some("tile the coordinates mode by mode: give one tiler for each mode".to_owned())
            }
            LayoutError::Recast { .. } => Some(
                "make the parts of a wide element consecutive: give a mode stride 1, and an extent \
                 that is a multiple of the factor"
                    .to_owned(),
            ),
            LayoutError::Swizzled { .. } => {
                Some("apply the operation to the layout under the swizzle".to_owned())
            }
            LayoutError::NoInverse { .. } => {
                Some("choose a layout that reaches every number below its size once".to_owned())
            }
            LayoutError::NotUnified(_) => {
                Some("remove a run, or let runs begin and end at the ends of modes".to_owned())
            }
            LayoutError::Argument { what, wanted, .. } => Some(format!("make {what} {wanted}")),
            LayoutError::Overflow { .. } => Some("choose smaller extents or strides".to_owned()),
            LayoutError::Rank { rank, .. } => Some(format!("choose a mode below {rank}")),
            LayoutError::TooDeep { limit } => Some(format!("nest at most {limit} levels")),
            LayoutError::TooLarge { limit, .. } => Some(format!("stay within {limit}")),
            LayoutError::Divisor { .. } => Some("divide by 1 or more".to_owned()),
            LayoutError::Parse { expected, .. } => Some(format!("write {expected} there")),
            LayoutError::Variable { .. } => Some(
                "declare it with a non-empty range, and give it a value in this range"
                    .to_owned(),
            ),
            LayoutError::Swizzle { .. } => Some(
                "use `Sw<bits,base,shift>` with shift at least bits, and bits + base + shift at \
                 most 62"
                    .to_owned(),
            ),
        }
    }
}

impl LayoutError {
    /// An [`LayoutError::Indivisible`] of two modes, as `extent:stride`, with a fix.
    #[must_use]
    pub fn clash(
        outer: impl Into<String>,
        inner: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        let (outer, inner, fix) = (outer.into(), inner.into(), fix.into());
        LayoutError::Indivisible(Box::new(Clash { outer, inner, fix }))
    }
}
