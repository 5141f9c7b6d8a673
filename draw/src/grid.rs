//! Draws a layout as a grid. Rows and columns are the first two modes; cells show offsets.
//!
//! Colors: without a swizzle, shades follow the memory from the lowest offset to the highest. With
//! a swizzle, a color is the position within a row of memory to which the swizzle moves the
//! element's unit, for example one of eight units of 16 bytes.

use crate::error::DrawError;
use crate::field::{Field, Page, Unit, extents};
use crate::picture::{Cell, Fill, Panel, Picture, bounded};
use carbyne_ir::layout::Layout;

/// Maximum number of columns in a line of panels.
pub(crate) const LINE: usize = 160;

/// The picture of a layout.
///
/// # Errors
/// [`DrawError::TooManyCells`].
pub fn layout(field: &Field, unit: Unit) -> Result<Picture, DrawError> {
    let extents = extents(&field.layout);
    bounded("the layout", &extents)?;
    let page = Page::new(&extents);
    let fill = colors(field);
    let lines = hierarchy(&field.layout, page);
    let mut panels = vec![];
    for p in 0..page.panels {
        let mut cells = vec![];
        for r in 0..page.rows {
            for c in 0..page.cols {
                let i = page.index(r, c, p);
                cells.push(Cell {
                    text: vec![field.show(i, unit)],
                    hover: hover(field, i),
                    fill: fill(i),
                    ..Cell::default()
                });
            }
        }
        let title = page.title(&extents, p);
        let mut panel = Panel::numbered(title, page.rows as usize, page.cols as usize, cells);
        if page.rank < 2 {
            panel.row_labels = vec![String::new()];
        }
        panel.outline(1, &lines);
        panels.push(panel);
    }
    let color = match field.swizzle().is_none() {
        true => "the darker, the higher the offset",
        false => "a color is the position of a chunk in its row of memory after the swizzle",
    };
    let mut notes = vec![cells_hold(field, unit), color.to_owned()];
    notes.extend(page_note(page));
    Ok(Picture { title: field.notation(), notes, lines: Picture::arrange(panels, LINE) })
}

/// The note about cells: `4×8 elements; cells hold offsets in elements`.
pub(crate) fn cells_hold(field: &Field, unit: Unit) -> String {
    let extents: Vec<String> = extents(&field.layout).iter().map(i64::to_string).collect();
    let bits = match unit {
        Unit::Element => String::new(),
        Unit::Byte => format!(" of {} bits", field.bits),
    };
    let shape = if extents.is_empty() { "1".to_owned() } else { extents.join("×") };
    format!("{shape} elements{bits}; cells hold offsets in {}", unit.plural())
}

/// The note about modes after the second.
pub(crate) fn page_note(page: Page) -> Option<String> {
    match (page.rank, page.panels) {
        (0..=2, _) => None,
        (_, 1) => Some("modes after the second continue in the columns".to_owned()),
        _ => Some("one panel for each coordinate of the modes after the second".to_owned()),
    }
}

/// The text of a cell when pointed at: `(1,3) -> offset 7, byte 14`.
pub(crate) fn hover(field: &Field, i: i64) -> String {
    let element = field.show(i, Unit::Element);
    let byte = field.show(i, Unit::Byte);
    format!("{} -> offset {element}, byte {byte}", field.coordinate(i))
}

/// The color of each element.
pub(crate) fn colors(field: &Field) -> impl Fn(i64) -> Fill + '_ {
    let size = field.layout.size();
    let element = |i: i64| field.bit(i, true).div_euclid(field.bits);
    let (mut low, mut high) = (i64::MAX, i64::MIN);
    for i in 0..size {
        low = low.min(element(i));
        high = high.max(element(i));
    }
    let span = high.saturating_sub(low).saturating_add(1);
    let swizzle = field.swizzle();
    move |i| {
        if swizzle.is_none() {
            return Fill::shade(element(i).saturating_sub(low), span);
        }
        let bytes = !field.on_bytes.is_none();
        let index = if bytes { field.bit(i, true).div_euclid(8) } else { element(i) };
        Fill::hue((index >> swizzle.base()) & ((1 << swizzle.bits()) - 1))
    }
}

/// A number that differs between two cells if they differ in an outer digit of a nested row or
/// column mode.
fn hierarchy(layout: &Layout, page: Page) -> impl Fn(usize, usize) -> i64 + use<> {
    let first = |mode: usize| {
        let mode = layout.mode(mode).ok();
        let shape = mode.map(|m| m.shape().flatten()).unwrap_or_default();
        match shape.iter().filter(|e| **e > 1).collect::<Vec<_>>().as_slice() {
            [first, _, ..] => **first,
            _ => i64::MAX,
        }
    };
    let (rows, cols) = match page.rank {
        1 => (i64::MAX, first(0)),
        _ => (first(0), first(1)),
    };
    move |r, c| (r as i64 / rows) * (1 << 20) + c as i64 / cols
}
