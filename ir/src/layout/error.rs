//! Why an operation of the layout algebra refuses, with a code a person can look up.
//!
//! Invariant: every refusal names the modes, the limit or the missing fact; no operation answers
//! with a wrong layout instead. The codes are the L family and never change their meaning.

use crate::leaf::Fact;
use thiserror::Error;

/// A refusal of the layout algebra or of the symbolic arithmetic under it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A mode of the right operand splits a mode of the left operand unevenly.
    #[error("mode `{inner}` splits mode `{outer}` unevenly, so the result is no layout")]
    Indivisible {
        /// The mode of the outer (left) layout, as `extent:stride`.
        outer: String,
        /// The mode of the inner (right) layout, as `extent:stride`.
        inner: String,
    },
    /// A number does not fit in 64 bits.
    #[error("{what} does not fit in 64 bits")]
    Overflow {
        /// The quantity that was being computed.
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
    /// A mode that is not there, or an operand with too many modes.
    #[error("mode {mode} is wanted of a layout with {rank} modes")]
    Rank {
        /// The number of the mode, from zero.
        mode: usize,
        /// How many modes there are.
        rank: usize,
    },
    /// Text that is no tuple or layout.
    #[error("expected {expected} at byte {at}")]
    Parse {
        /// Byte offset into the text.
        at: usize,
        /// What would have been right there.
        expected: &'static str,
    },
    /// Nesting beyond the limit.
    #[error("nesting is deeper than {limit} levels")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// A structure beyond its size limit.
    #[error("{what} is larger than the limit of {limit}")]
    TooLarge {
        /// What grew too large.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The answer depends on a fact about symbols that is not known.
    #[error("cannot decide without knowing `{fact}`")]
    NeedsFact {
        /// The fact that would decide.
        fact: Fact,
    },
    /// An injective layout was required.
    #[error("layout `{layout}` sends two coordinates to one index")]
    NotInjective {
        /// The layout or the offending mode.
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
    /// A negative stride where only non-negative ones have a meaning.
    #[error("mode `{mode}` has a negative stride")]
    NegativeStride {
        /// The mode, as `extent:stride`.
        mode: String,
    },
    /// A variable without a value, or whose declared range is empty.
    #[error("variable `{name}` {reason}")]
    Variable {
        /// Its name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A swizzle whose bit fields overlap or do not fit.
    #[error("swizzle {swizzle} {reason}")]
    Swizzle {
        /// The swizzle, as `Sw<bits,base,shift>`.
        swizzle: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl LayoutError {
    /// The stable code, `L0101` to `L0114`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            LayoutError::Indivisible { .. } => "L0101",
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
        }
    }

    /// What a person can do about it, where there is something to do.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            LayoutError::Indivisible { outer, inner } => Some(format!(
                "choose the extent and stride of `{inner}` so that its steps stay inside `{outer}` \
                 or divide its extent"
            )),
            LayoutError::Incongruent { shape, .. } => {
                Some(format!("give one number for each leaf of `{shape}`, nested alike"))
            }
            LayoutError::NeedsFact { fact } => {
                Some(format!("state `{fact}` where the symbol is declared"))
            }
            LayoutError::NotInjective { .. } => {
                Some("spread the modes so that no two coordinates share an index".to_owned())
            }
            LayoutError::NegativeStride { mode } => {
                Some(format!("reverse the order in which `{mode}` is walked"))
            }
            LayoutError::Extent { .. } => Some("extents are 1 or more".to_owned()),
            _ => None,
        }
    }
}
