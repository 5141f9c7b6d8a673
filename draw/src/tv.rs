//! Draws a thread-value layout over its tile. Each cell is an element and shows the thread that
//! holds it and the index of the value, as `T5 V1`. Colors are threads.
//!
//! Invariant: every (thread, value) is counted. A cell of several owners shows two of them and the
//! number of the others; up to 32 are named when the cell is pointed at. An element without an
//! owner stays empty.

use crate::error::DrawError;
use crate::field::{Page, join};
use crate::grid::{LINE, page_note};
use crate::picture::{Cell, Fill, Panel, Picture, bounded};
use carbyne_ir::layout::{Layout, LayoutError};

/// Maximum number of pairs of thread and value.
const MAX_PAIRS: i64 = 1 << 20;
/// Maximum number of owners that a cell shows, and that it names when pointed at.
const SHOWN: usize = 2;
const NAMED: usize = 32;

/// The panels of a thread-value layout. `title` is the title of the first one.
pub(crate) fn panels(tv: &Layout, shape: &[i64], title: &str) -> Result<Vec<Panel>, DrawError> {
    let size = shape.iter().fold(1i64, |n, e| n.saturating_mul(*e));
    panels_at(tv, size, &|i| i, shape, title)
}

/// The panels of a view of a tile of `size` elements. `at` maps elements of the view to elements of
/// the tile.
fn panels_at(
    tv: &Layout,
    size: i64,
    at: &dyn Fn(i64) -> i64,
    shape: &[i64],
    title: &str,
) -> Result<Vec<Panel>, DrawError> {
    bounded("the tile", shape)?;
    bounded("the tile", &[size])?;
    let modes = tv.modes();
    let [t, v] = modes.as_slice() else {
        return Err(DrawError::NotThreadValue { layout: tv.to_string(), rank: modes.len() });
    };
    let (threads, values) = (t.size(), v.size());
    if threads.checked_mul(values).is_none_or(|n| n > MAX_PAIRS) {
        let limit = MAX_PAIRS as usize;
        return Err(LayoutError::TooLarge { what: "a thread-value layout", limit }.into());
    }
    let mut owners: Vec<Vec<(i64, i64)>> = vec![vec![]; size as usize];
    for value in 0..values {
        for thread in 0..threads {
            let index = tv.at(thread + threads * value);
            let Some(owners) = usize::try_from(index).ok().and_then(|i| owners.get_mut(i)) else {
                return Err(DrawError::OutsideTile { thread, value, index, size });
            };
            owners.push((thread, value));
        }
    }
    let page = Page::new(shape);
    let mut panels = vec![];
    for p in 0..page.panels {
        let mut cells = vec![];
        for r in 0..page.rows {
            for c in 0..page.cols {
                let i = page.index(r, c, p);
                let held = usize::try_from(at(i)).ok().and_then(|i| owners.get_mut(i));
                cells.push(cell(shape, i, held.map_or(&mut [][..], |o| o)));
            }
        }
        let title = match (p, page.title(shape, p)) {
            (0, more) if !title.is_empty() => format!("{title} {more}").trim_end().to_owned(),
            (_, more) => more,
        };
        let mut panel = Panel::numbered(title, page.rows as usize, page.cols as usize, cells);
        if page.rank < 2 {
            panel.row_labels = vec![String::new()];
        }
        panels.push(panel);
    }
    Ok(panels)
}

fn cell(shape: &[i64], i: i64, owners: &mut [(i64, i64)]) -> Cell {
    owners.sort_unstable();
    let coordinate = join(&crate::field::flat_coordinate(shape, i));
    let named: Vec<String> = owners.iter().take(NAMED).map(|(t, v)| format!("T{t} V{v}")).collect();
    let more = match owners.len().saturating_sub(NAMED) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let hover = format!(
        "({coordinate}) -> {}{more}",
        if named.is_empty() { "no thread".to_owned() } else { named.join(", ") }
    );
    let rest = match owners.len().saturating_sub(SHOWN) {
        0 => String::new(),
        n => format!(" +{n}"),
    };
    let text = match &*owners {
        [] => vec![String::new()],
        [(t, v)] => vec![format!("T{t}"), format!("V{v}")],
        // Copies of an element are usually the same value of several threads.
        [(_, v), ..] if owners.iter().all(|o| o.1 == *v) => {
            let threads: Vec<String> =
                owners.iter().take(SHOWN).map(|(t, _)| format!("T{t}")).collect();
            vec![format!("{}{rest}", threads.join(" ")), format!("V{v}")]
        }
        _ => {
            let pairs: Vec<String> =
                owners.iter().take(SHOWN).map(|(t, v)| format!("T{t}V{v}")).collect();
            vec![format!("{}{rest}", pairs.join(" "))]
        }
    };
    let fill = owners.first().map_or(Fill::Empty, |(t, _)| Fill::hue(*t));
    Cell { text, hover, fill, ..Cell::default() }
}

/// The picture of a thread-value layout over a tile of this shape.
///
/// # Errors
/// [`DrawError::NotThreadValue`], [`DrawError::OutsideTile`], [`DrawError::TooManyCells`].
pub fn tv(tv: &Layout, shape: &[i64]) -> Result<Picture, DrawError> {
    let panels = panels(tv, shape, "")?;
    let shown: Vec<String> = shape.iter().map(i64::to_string).collect();
    let notes = notes(tv, &shown.join("×"), shape);
    Ok(Picture { title: tv.to_string(), notes, lines: Picture::arrange(panels, LINE) })
}

/// The picture of a view, of this shape, of a tile of `size` elements. `at` maps elements of the
/// view to elements of the tile.
pub(crate) fn part(
    tv: &Layout,
    size: i64,
    at: &dyn Fn(i64) -> i64,
    shape: &[i64],
) -> Result<Picture, DrawError> {
    let panels = panels_at(tv, size, at, shape, "")?;
    let shown: Vec<String> = shape.iter().map(i64::to_string).collect();
    let mut notes = notes(tv, &format!("{size} elements"), shape);
    notes.push(format!("shown is a view of {} of these elements", shown.join("×")));
    Ok(Picture { title: tv.to_string(), notes, lines: Picture::arrange(panels, LINE) })
}

/// Notes about the meaning of cells.
pub(crate) fn notes(tv: &Layout, tile: &str, shape: &[i64]) -> Vec<String> {
    let sizes: Vec<i64> = tv.modes().iter().map(Layout::size).collect();
    let (threads, values) = (sizes.first().unwrap_or(&1), sizes.get(1).unwrap_or(&1));
    let mut out = vec![format!("{threads} threads × {values} values on a tile of {tile}")];
    let hues = crate::palette::HUES.len() as i64;
    if *threads > hues {
        out.push(format!("a color is a thread, repeating every {hues}"));
    }
    out.extend(page_note(Page::new(shape)));
    out
}
