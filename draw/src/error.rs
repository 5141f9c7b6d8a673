//! Defines [`DrawError`], the reasons why something cannot be drawn, such as a layout that is still
//! open (`?`), each with its code and help.

use carbyne_ir::diag::Code;
use carbyne_ir::layout::LayoutError;
use carbyne_ir::limits::MAX_PICTURE_CELLS;
use thiserror::Error;

/// An error of drawing.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum DrawError {
    /// The picture would have too many cells.
    #[error("{what} would have {} cells", product(extents))]
    TooManyCells {
        /// The object to draw.
        what: String,
        /// The factors of the number of cells.
        extents: Vec<i64>,
    },
    /// An error of the layout algebra.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The text is not a layout or tiler.
    #[error("expected {expected} at byte {at} of `{text}`")]
    Syntax {
        /// The whole text.
        text: String,
        /// The byte offset of the error in the text.
        at: usize,
        /// The syntax that is valid at this place.
        expected: &'static str,
    },
    /// A thread-value layout does not have two modes.
    #[error("a thread-value layout has two modes, threads and values; `{layout}` has {rank}")]
    NotThreadValue {
        /// The layout.
        layout: String,
        /// The number of modes.
        rank: usize,
    },
    /// A thread-value layout has indices outside of its tile.
    #[error(
        "thread {thread} holds element {index} as value {value}, but the tile has {size} elements"
    )]
    OutsideTile {
        /// The thread.
        thread: i64,
        /// The index of the value.
        value: i64,
        /// The index in the tile.
        index: i64,
        /// Elements of the tile.
        size: i64,
    },
    /// The tile does not divide the extent of a mode.
    #[error("the tile `{tile}` does not divide the extent {extent} of mode {mode}")]
    Ragged {
        /// The tile along the mode.
        tile: String,
        /// The extent of the mode.
        extent: i64,
        /// The index of the mode.
        mode: usize,
    },
    /// No instruction has an access of this width.
    #[error("{bytes} bytes of {bits}-bit elements per lane are not a possible access")]
    AccessWidth {
        /// Bytes that one lane accesses.
        bytes: i64,
        /// Bits of an element.
        bits: i64,
    },
    /// The elements of an access are not contiguous.
    #[error(
        "the {bytes} bytes that lane {lane} accesses from element {element} on are not contiguous, \
         or not aligned"
    )]
    NotConsecutive {
        /// The lane.
        lane: usize,
        /// The column-major index of the first element.
        element: i64,
        /// Bytes that one lane accesses.
        bytes: i64,
    },
    /// A lane accesses an element outside of the tile.
    #[error("lane {lane} begins at element {element}, but the tile has {size} elements")]
    LaneOutside {
        /// The lane.
        lane: usize,
        /// The column-major index of its first element.
        element: i64,
        /// Elements of the tile.
        size: i64,
    },
    /// The layout of a tensor is open.
    #[error("the layout of `{name}` is open")]
    Open {
        /// The tensor.
        name: String,
    },
    /// The layout of a tensor depends on symbols.
    #[error("the layout of `{name}` depends on symbols: `{layout}`")]
    Symbolic {
        /// The tensor.
        name: String,
        /// Its layout.
        layout: String,
    },
}

/// The help for an error of the layout algebra, if the help of the algebra itself does not fit
/// pictures.
fn smaller(e: &LayoutError) -> Option<String> {
    let help = match e {
        LayoutError::TooLarge { .. } => "draw a tile of it",
        LayoutError::TooDeep { .. } => "use fewer levels of nesting",
        LayoutError::Overflow { .. } => "use smaller numbers",
        LayoutError::Rank { .. } => "give at most one tiler per mode",
        LayoutError::Swizzle { .. } => {
            "use a swizzle that reads higher bits than those that it flips"
        }
        _ => return None,
    };
    Some(help.to_owned())
}

/// The code of an error of the layout algebra. An unknown code becomes the first code of the
/// family.
fn algebra_code(e: &LayoutError) -> Code {
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
            DrawError::Layout(e) => algebra_code(e),
            DrawError::Syntax { at, expected, .. } => {
                algebra_code(&LayoutError::Parse { at: *at, expected })
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

    /// The label at the place of the error.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            DrawError::TooManyCells { .. } => format!("more than {MAX_PICTURE_CELLS} cells"),
            DrawError::Syntax { expected, .. } => format!("expected {expected}"),
            _ => "drawn from this".to_owned(),
        }
    }

    /// The help: an action that fixes the error.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        Some(match self {
            DrawError::TooManyCells { .. } => format!(
                "draw a tile of it; a picture holds at most {MAX_PICTURE_CELLS} cells, such as \
                 256×256"
            ),
            DrawError::Layout(e) => return smaller(e).or_else(|| e.help()),
            DrawError::Syntax { .. } => {
                "write `((2,2),8):((1,16),2)`, or `Sw<3,4,3> o 0 o (8,64):(64,1)`".to_owned()
            }
            DrawError::NotThreadValue { .. } => {
                "write `(threads,values):(strides)`, or remove `--tv`".to_owned()
            }
            DrawError::OutsideTile { .. } => {
                "give the tile's extents with `--shape`, such as `--shape 16,8`".to_owned()
            }
            DrawError::Ragged { .. } => "use a tile whose size divides the extent".to_owned(),
            DrawError::AccessWidth { .. } => {
                "set `--access` to 1, 2, 4, 8 or 16 bytes, a whole number of elements".to_owned()
            }
            DrawError::NotConsecutive { .. } => {
                "use a smaller `--access`, or a swizzle that does not split these bytes".to_owned()
            }
            DrawError::LaneOutside { .. } => {
                "make `--lanes` map lanes to column-major indices of the tile".to_owned()
            }
            DrawError::Open { .. } => "draw the program that `carbyne decompose` prints".to_owned(),
            DrawError::Symbolic { .. } => "draw a tensor with constant sizes".to_owned(),
        })
    }
}
