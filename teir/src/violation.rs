//! Describes violations: each thing that is wrong with an operation of TEIR (the Tiled Execution
//! IR), by a code (`TEIR01` and so on), the place in the operation, what was found, what was
//! wanted, and a help. A list holds at most 100 of them.

use std::fmt;

macro_rules! codes {
    ($($name:ident $text:literal $summary:literal),* $(,)?) => {
        /// A kind of violation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code { $(#[doc = $summary] $name),* }

        impl Code {
            /// All codes, in the order of their numbers.
            pub const ALL: &[Code] = &[$(Code::$name),*];

            /// Its name in messages.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text),* }
            }

            /// One sentence about it.
            #[must_use]
            pub fn summary(self) -> &'static str {
                match self { $(Code::$name => $summary),* }
            }
        }
    };
}

codes! {
    Syntax "TEIR01"
        "A text or JSON cannot be read.",
    NoAxes "TEIR02"
        "A schedule has no axes.",
    Lengths "TEIR03"
        "The vectors of a schedule have different lengths.",
    Size "TEIR04"
        "A size is 0.",
    Stride "TEIR05"
        "A tensor has a stride along an axis in which it does not take part.",
    R1 "TEIR06"
        "R1: a primitive on output tiles needs an axis of the tile.",
    R2 "TEIR07"
        "R2: a GEMM has one prim axis of each of M, N and K.",
    R3 "TEIR08"
        "R3: a BRGEMM has one prim axis of each of M and N, and two of K.",
    Overflow "TEIR09"
        "Sizes or strides multiply to more than 64 bits hold.",
    Alias "TEIR10"
        "Two coordinates of the output may name one element.",
    Copy "TEIR11"
        "A copy has several inputs for one output, in no order.",
    TooLarge "TEIR12"
        "An operation is larger than the executor takes.",
    Tensors "TEIR13"
        "A tensor that the executor is given is too short, or of another type.",
    SharedK "TEIR14"
        "Blocks would share output tiles, which only additions may.",
    Unsuited "TEIR15"
        "A tile or a grid is larger than a kernel can have.",
    Refused "TEIR16"
        "carbyne refuses the program.",
    Differs "TEIR17"
        "A program computes another number than the operation.",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A field of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Roles of axes.
    DimTypes,
    /// Ways in which axes are executed.
    ExecTypes,
    /// Sizes of axes.
    DimSizes,
    /// Strides of the first input.
    StridesIn0,
    /// Strides of the second input.
    StridesIn1,
    /// Strides of the output.
    StridesOut,
    /// The type of elements.
    DataType,
    /// The primitive of first accesses.
    PrimFirst,
    /// The main primitive.
    PrimMain,
    /// The primitive of last accesses.
    PrimLast,
}

impl Field {
    /// Its name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Field::DimTypes => "dim_types",
            Field::ExecTypes => "exec_types",
            Field::DimSizes => "dim_sizes",
            Field::StridesIn0 => "strides_in0",
            Field::StridesIn1 => "strides_in1",
            Field::StridesOut => "strides_out",
            Field::DataType => "data_type",
            Field::PrimFirst => "prim_first",
            Field::PrimMain => "prim_main",
            Field::PrimLast => "prim_last",
        }
    }
}

/// Where something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of a text, from 1.
    Line(usize),
    /// A field as a whole.
    Field(Field),
    /// A field of one axis, from 0.
    Axis(usize, Field),
    /// The operation as a whole.
    Operation,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            Place::Field(field) => f.write_str(field.as_str()),
            Place::Axis(axis, field) => write!(f, "axis {axis}, {}", field.as_str()),
            Place::Operation => f.write_str("the operation"),
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code} {place}: found {found}, wanted {wanted}\n  help: {help}")]
pub struct Violation {
    /// Its kind.
    pub code: Code,
    /// Where it is.
    pub place: Place,
    /// The finding.
    pub found: String,
    /// The wish.
    pub wanted: String,
    /// An action that mends it.
    pub help: String,
}

impl Violation {
    pub(crate) fn new(
        code: Code,
        place: Place,
        found: impl Into<String>,
        wanted: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Violation { code, place, found: found.into(), wanted: wanted.into(), help: help.into() }
    }
}

/// Most violations that are reported.
pub(crate) const MAX_VIOLATIONS: usize = 100;
/// Most characters of a word that a violation repeats.
const MAX_WORD: usize = 64;

/// A word of a text in quotes, of which a long one is shortened.
pub(crate) fn quoted(word: &str) -> String {
    let short: String = word.chars().take(MAX_WORD).collect();
    let rest = if short.len() < word.len() { ".." } else { "" };
    format!("`{}{rest}`", short.escape_debug())
}

/// The violations of an operation, from 1 to 100.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Violations(pub Vec<Violation>);

impl From<Violation> for Violations {
    fn from(violation: Violation) -> Self {
        Violations(vec![violation])
    }
}
