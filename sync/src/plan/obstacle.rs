//! Reasons why an access cannot be followed.

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
    /// The reason of another crate.
    Refused(String),
}

impl Display for Obstacle {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let words = match self {
            Obstacle::Size => "a size is not known",
            Obstacle::Place => "its place is not known",
            Obstacle::Offset => "a place is not known",
            Obstacle::Layout => "its layout is not known",
            Obstacle::Map => "the extents of its map are not known",
            Obstacle::Threads => "its threads cannot be placed",
            Obstacle::Elements => "the atom takes another number of elements",
            Obstacle::Gathered => "its elements are found through data",
            Obstacle::NoAtom => "it names no atom",
            Obstacle::TooManyPlaces => "the kernel's tensors have more elements than are followed",
            Obstacle::Refused(why) => why,
            Obstacle::OpenLayout { buffer } => {
                return write!(f, "the layout of `%{buffer}` is open");
            }
            Obstacle::UnknownAtom { arch, name } => {
                return write!(f, "{arch} has no atom `{name}`");
            }
            Obstacle::Operands { atom } => return write!(f, "`{atom}` has other operands"),
            Obstacle::TooManyElements { size } => {
                return write!(f, "it has {size} elements, more than are followed");
            }
        };
        f.write_str(words)
    }
}
