//! Layouts, tilers and shapes as they stand on a command line.
//!
//! ```text
//! ((2,2),8):((1,16),2)              a layout
//! Sw<3,4,3> o 0 o (8,64):(64,1)     under an offset and a swizzle, or several of them
//! (4,8):(8,1) o (2,2):(1,4)         one after the other, as the algebra composes them
//! (4,8)    2:1,4:2    _,8           a tile; one tiler for each mode; `_` keeps a mode
//! ```
//!
//! Invariant: every text gives a value or a [`DrawError`] that names the place.

use crate::error::DrawError;
use carbyne_ir::layout::{Layout, LayoutError, Swizzle};
use carbyne_ir::tuple::IntTuple;

/// The longest text of a layout that is read.
const MAX_TEXT: usize = 1 << 16;
/// The most layouts that are composed.
const MAX_PARTS: usize = 16;

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

/// A layout under swizzles.
#[derive(Clone, Debug, PartialEq)]
pub struct Twisted {
    /// Swizzles with the offset before each, outermost first.
    pub twists: Vec<(Swizzle, i64)>,
    /// Applied first.
    pub layout: Layout,
}

/// A layout: `A`, `Sw<..> o 0 o A`, `Sw<..> o A`, each with further layouts composed from the right.
///
/// # Errors
/// [`DrawError::Syntax`], and those of the layout algebra.
pub fn layout(text: &str) -> Result<Twisted, DrawError> {
    if text.len() > MAX_TEXT {
        return Err(syntax(text, MAX_TEXT, "a shorter text"));
    }
    let mut parts: Vec<(usize, &str)> = vec![];
    let mut from = 0;
    for part in text.split('o') {
        let blanks = part.len() - part.trim_start().len();
        parts.push((from + blanks, part.trim()));
        from += part.len() + 1;
        if parts.len() > MAX_PARTS {
            return Err(syntax(text, from, "fewer layouts"));
        }
    }
    let mut rest = parts.as_slice();
    let mut twists: Vec<(Swizzle, i64)> = vec![];
    // Swizzles, each with an offset or without, and offsets alone.
    while let [(at, first), more @ ..] = rest {
        let offset = |part: &[(usize, &str)]| part.first().and_then(|p| p.1.parse::<i64>().ok());
        if first.starts_with("Sw") {
            let swizzle = swizzle(text, *at, first)?;
            let found = offset(more);
            rest = if found.is_some() { &more[1..] } else { more };
            twists.push((swizzle, found.unwrap_or(0)));
        } else if let Some(offset) = offset(rest) {
            rest = more;
            twists.push((Swizzle::none(), offset));
        } else {
            break;
        }
    }
    let mut layout: Option<Layout> = None;
    for (at, part) in rest {
        let next = part.parse::<Layout>().map_err(|e| placed(text, *at, e))?;
        layout = Some(match layout {
            None => next,
            Some(outer) => outer.compose(&next)?,
        });
    }
    match layout {
        Some(layout) => Ok(Twisted { twists, layout }),
        None => Err(syntax(text, text.len(), "`o` and a layout")),
    }
}

fn swizzle(text: &str, at: usize, part: &str) -> Result<Swizzle, DrawError> {
    let wrong = || syntax(text, at, "`Sw<bits,base,shift>`");
    let inner = part.strip_prefix("Sw<").and_then(|p| p.strip_suffix('>')).ok_or_else(wrong)?;
    let numbers: Result<Vec<u32>, _> = inner.split(',').map(|n| n.trim().parse()).collect();
    match numbers.as_deref() {
        // The sum of three such numbers cannot overflow.
        Ok(&[bits, base, shift]) if bits.max(base).max(shift) < 1 << 16 => {
            Ok(Swizzle::new(bits, base, shift)?)
        }
        _ => Err(wrong()),
    }
}

/// One tiler for each mode; none keeps the mode whole.
pub type Tilers = Vec<Option<Layout>>;

/// A tile `(4,8)`, or a tiler for each mode: `2:1,4:2`, `[2:2],[(2,2):(1,4)]`, `_,8`.
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

/// The extents of a tile: `16,8` or `(16,8)`.
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
    // A layout checks that extents are positive and that their product fits.
    let layout = Layout::col_major(tuple)?;
    Ok(layout.modes().iter().map(Layout::size).collect())
}
