//! Why something is not drawn, with its code and a way out.

use carbyne_ir::diag::Code;
use carbyne_ir::layout::LayoutError;
use carbyne_ir::limits::MAX_PICTURE_CELLS;
use thiserror::Error;

/// A refusal to draw.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum DrawError {
    /// More cells than fit a picture.
    #[error("{what} would have {} cells", product(extents))]
    TooManyCells {
        /// What was to be drawn.
        what: String,
        /// The factors of the number of cells.
        extents: Vec<i64>,
    },
    /// The layout algebra refuses.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Text that is no layout or tiler.
    #[error("expected {expected} at byte {at} of `{text}`")]
    Syntax {
        /// The whole text.
        text: String,
        /// Byte offset into it.
        at: usize,
        /// What would have been right there.
        expected: &'static str,
    },
    /// A thread-value layout without two modes.
    #[error("a thread-value layout has two modes, threads and values; `{layout}` has {rank}")]
    NotThreadValue {
        /// The layout.
        layout: String,
        /// Its modes.
        rank: usize,
    },
    /// A thread-value layout that leaves its tile.
    #[error(
        "thread {thread} holds element {index} as value {value}, and the tile has {size} elements"
    )]
    OutsideTile {
        /// The thread.
        thread: i64,
        /// The number of its value.
        value: i64,
        /// The index in the tile that the layout gives.
        index: i64,
        /// Elements of the tile.
        size: i64,
    },
    /// A tile that leaves a rest.
    #[error("the tile `{tile}` does not divide the extent {extent} of mode {mode}")]
    Ragged {
        /// The tile of one mode.
        tile: String,
        /// The extent of the mode that it tiles.
        extent: i64,
        /// The number of that mode.
        mode: usize,
    },
    /// An access of a width that no instruction has.
    #[error("no lane accesses {bytes} bytes of {bits}-bit elements at once")]
    AccessWidth {
        /// Bytes that one lane accesses.
        bytes: i64,
        /// Bits of an element.
        bits: i64,
    },
    /// An access whose elements are not side by side.
    #[error(
        "the {bytes} bytes that lane {lane} accesses from element {element} on are not side by side, or not aligned"
    )]
    NotConsecutive {
        /// The lane.
        lane: usize,
        /// The column-major index of the first element.
        element: i64,
        /// Bytes that one lane accesses.
        bytes: i64,
    },
    /// A lane that begins outside.
    #[error("lane {lane} begins at element {element}, and the tile has {size}")]
    LaneOutside {
        /// The lane.
        lane: usize,
        /// The column-major index of its first element.
        element: i64,
        /// Elements of the tile.
        size: i64,
    },
    /// A layout still to be found.
    #[error("the layout of `{name}` is open")]
    Open {
        /// The tensor.
        name: String,
    },
    /// A layout with symbols.
    #[error("the layout of `{name}` depends on symbols: `{layout}`")]
    Symbolic {
        /// The tensor.
        name: String,
        /// Its layout.
        layout: String,
    },
}

/// Help where that of the algebra is not about pictures.
fn smaller(e: &LayoutError) -> Option<String> {
    let help = match e {
        LayoutError::TooLarge { .. } => "draw a part of it",
        LayoutError::TooDeep { .. } => "nest less deep",
        LayoutError::Overflow { .. } => "choose smaller numbers",
        LayoutError::Rank { .. } => "give no more tilers than there are modes",
        LayoutError::Swizzle { .. } => {
            "the bits that a swizzle reads lie above those that it flips"
        }
        _ => return None,
    };
    Some(help.to_owned())
}

/// The code of that text; the family's first where the table does not have it.
fn of_algebra(e: &LayoutError) -> Code {
    let known = Code::ALL.iter().find(|(_, text, _)| *text == e.code());
    known.map_or(Code::LayoutRefused, |(code, ..)| *code)
}

fn product(extents: &[i64]) -> String {
    extents.iter().map(i64::to_string).collect::<Vec<_>>().join("×")
}

impl DrawError {
    /// The code of the error.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            DrawError::TooManyCells { .. } => Code::PictureTooLarge,
            DrawError::Layout(e) => of_algebra(e),
            DrawError::Syntax { at, expected, .. } => {
                of_algebra(&LayoutError::Parse { at: *at, expected })
            }
            DrawError::NotThreadValue { .. } | DrawError::OutsideTile { .. } => Code::TvLayout,
            DrawError::Ragged { .. } => Code::TileDivides,
            DrawError::AccessWidth { .. }
            | DrawError::NotConsecutive { .. }
            | DrawError::LaneOutside { .. } => Code::Undrawable,
            DrawError::Open { .. } => Code::OpenLayout,
            DrawError::Symbolic { .. } => Code::Symbolic,
        }
    }

    /// What stands at the place.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            DrawError::TooManyCells { .. } => format!("more than {MAX_PICTURE_CELLS} cells"),
            DrawError::Syntax { expected, .. } => format!("expected {expected}"),
            _ => "drawn from this".to_owned(),
        }
    }

    /// An action that would mend it.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        Some(match self {
            DrawError::TooManyCells { .. } => format!(
                "draw a tile of it: a picture holds up to {MAX_PICTURE_CELLS} cells, such as 256×256"
            ),
            DrawError::Layout(e) => return smaller(e).or_else(|| e.help()),
            DrawError::Syntax { .. } => {
                "write `((2,2),8):((1,16),2)`, or `Sw<3,4,3> o 0 o (8,64):(64,1)`".to_owned()
            }
            DrawError::NotThreadValue { .. } => {
                "give `(threads,values):(strides)`, or leave out `--tv`".to_owned()
            }
            DrawError::OutsideTile { .. } => {
                "give the tile's extents with `--shape`, such as `--shape 16,8`".to_owned()
            }
            DrawError::Ragged { .. } => "choose a tile whose size divides the extent".to_owned(),
            DrawError::AccessWidth { .. } => {
                "write `--access` 1, 2, 4, 8 or 16 bytes, a whole number of elements".to_owned()
            }
            DrawError::NotConsecutive { .. } => {
                "choose a narrower `--access`, or a swizzle that keeps the bytes together"
                    .to_owned()
            }
            DrawError::LaneOutside { .. } => {
                "let `--lanes` send its lanes to column-major indices of the tile".to_owned()
            }
            DrawError::Open { .. } => "draw the program that `carbyne decompose` prints".to_owned(),
            DrawError::Symbolic { .. } => "draw a tensor whose sizes are numbers".to_owned(),
        })
    }
}
