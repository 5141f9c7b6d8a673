//! Defines [`Obstacle`], the reasons why the checker cannot follow an access, for example an
//! unknown size, an open layout, or an atom that the architecture does not have. The report shows
//! them, and the order of the access stays undecided, which is a warning.

use std::fmt::{self, Display, Formatter};

/// The reason why a tensor, a leaf or a kernel cannot be followed.
#[derive(Clone, Debug)]
pub(crate) enum Obstacle {
    Size,
    Place,
    Offset,
    Layout,
    Map,
    Threads,
    Elements,
    Gathered,
    NoAtom,
    OpenLayout {
        buffer: String,
    },
    UnknownAtom {
        arch: &'static str,
        name: String,
    },
    Operands {
        atom: String,
    },
    TooManyElements {
        size: i64,
    },
    TooManyPlaces,
    /// A reason that another crate states.
    Refused(String),
}

impl Display for Obstacle {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let words = match self {
            Obstacle::Size => "a size is unknown",
            Obstacle::Place => "its offset is unknown",
            Obstacle::Offset => "the address of a buffer in shared memory is unknown",
            Obstacle::Layout => "its extents or strides are unknown",
            Obstacle::Map => "the extents of its tensor map are unknown",
            Obstacle::Threads => "the groups of its atom do not fill whole warps",
            Obstacle::Elements => "its atom takes another number of elements",
            Obstacle::Gathered => "data selects its elements",
            Obstacle::NoAtom => "it names no atom",
            Obstacle::TooManyPlaces => {
                "the tensors of the kernel have more elements than the checker can track"
            }
            Obstacle::Refused(why) => why,
            Obstacle::OpenLayout { buffer } => {
                return write!(f, "the layout of `%{buffer}` is open");
            }
            Obstacle::UnknownAtom { arch, name } => {
                return write!(f, "{arch} has no atom `{name}`");
            }
            Obstacle::Operands { atom } => return write!(f, "atom `{atom}` has other operands"),
            Obstacle::TooManyElements { size } => {
                return write!(f, "it has {size} elements, more than the checker can track");
            }
        };
        f.write_str(words)
    }
}
