//! Parses the tilers and shapes that a person passes to `carbyne draw` on the command line.
//!
//! ```text
//! (4,8)            a tile of 4 by 8 consecutive elements
//! 2:1,4:2          one tiler per mode: 2 neighbors of mode 0, every second one of mode 1
//! _,8              a whole mode 0 by 8 elements of mode 1
//! ```
//!
//! Invariant: every text gives a value or a [`DrawError`] with the position in the text.

use crate::error::DrawError;
use carbyne_ir::layout::{Layout, LayoutError};
use carbyne_ir::tuple::IntTuple;

/// Maximum length of a text, in bytes.
const MAX_TEXT: usize = 1 << 16;

fn syntax(text: &str, at: usize, expected: &'static str) -> DrawError {
    let shown = text.chars().take(200).collect();
    DrawError::Syntax { text: shown, at: at.min(text.len()), expected }
}

/// Places an error of a part within the whole text.
fn placed(text: &str, from: usize, e: LayoutError) -> DrawError {
    match e {
        LayoutError::Parse { at, expected } => syntax(text, from + at, expected),
        e => DrawError::Layout(e),
    }
}

/// One tiler per mode. `None` keeps the mode as a whole.
pub type Tilers = Vec<Option<Layout>>;

/// Parses a tile `(4,8)`, or a tiler for each mode: `2:1,4:2`, `[2:2],[(2,2):(1,4)]`, `_,8`.
///
/// # Errors
/// [`DrawError::Syntax`], and those of the layout algebra.
pub fn tilers(text: &str) -> Result<Tilers, DrawError> {
    if text.len() > MAX_TEXT {
        return Err(syntax(text, MAX_TEXT, "a shorter text"));
    }
    // `(4,8)`: a tile of consecutive elements.
    if let Ok(tile @ IntTuple::Tuple(_)) = text.parse::<IntTuple<i64>>() {
        return tile.modes().iter().map(|m| mode_tiler(m.flatten())).collect();
    }
    let (mut depth, mut start, mut out) = (0i32, 0, vec![]);
    let ends = text.char_indices().chain([(text.len(), ',')]);
    for (at, c) in ends {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 || at == text.len() => {
                let part = text[start..at].trim();
                let from = start + text[start..at].find(part).unwrap_or(0);
                let inner = part.strip_prefix('[').and_then(|p| p.strip_suffix(']'));
                let from = from + usize::from(inner.is_some());
                let part = inner.unwrap_or(part);
                out.push(match part {
                    "_" => None,
                    _ if part.contains(':') => {
                        Some(part.parse::<Layout>().map_err(|e| placed(text, from, e))?)
                    }
                    _ => {
                        let extent =
                            part.parse::<IntTuple<i64>>().map_err(|e| placed(text, from, e))?;
                        mode_tiler(extent.flatten())?
                    }
                });
                start = at + 1;
            }
            _ => {}
        }
    }
    Ok(out)
}

fn mode_tiler(extents: Vec<i64>) -> Result<Option<Layout>, DrawError> {
    let extent = extents.iter().try_fold(1i64, |n, e| n.checked_mul(*e));
    let extent = extent.ok_or(LayoutError::Overflow { what: "the size of a tile" })?;
    Ok(Some(Layout::new(extent, 1)?))
}

/// Parses the extents of a tile: `16,8` or `(16,8)`.
///
/// # Errors
/// [`DrawError::Syntax`], and extents below 1.
pub fn shape(text: &str) -> Result<Vec<i64>, DrawError> {
    let inner = text.trim();
    let wrapped = if inner.starts_with('(') { inner.to_owned() } else { format!("({inner})") };
    let shift = usize::from(!inner.starts_with('('));
    let tuple = wrapped.parse::<IntTuple<i64>>().map_err(|e| match e {
        LayoutError::Parse { at, expected } => syntax(text, at.saturating_sub(shift), expected),
        e => DrawError::Layout(e),
    })?;
    // A layout checks that extents are positive and that their product does not overflow.
    let layout = Layout::col_major(tuple)?;
    Ok(layout.modes().iter().map(Layout::size).collect())
}
