//! Defines [`Picture`], a picture before it becomes SVG, HTML or text: panels of cells with labels,
//! colors and outlines. `grid`, `tv` and others create it; `svg` and `text` write it.
//!
//! Invariant: a panel has `rows * cols` cells, row by row. Every tile that is drawn has at most
//! [`MAX_PICTURE_CELLS`] cells; `bounded` checks this before any cell is made.

use crate::error::DrawError;
use carbyne_ir::limits::MAX_PICTURE_CELLS;

/// A picture: lines of panels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// The drawn object in its own notation.
    pub title: String,
    /// Notes about the meaning of cells and about assumptions.
    pub notes: Vec<String>,
    /// Lines of panels.
    pub lines: Vec<Vec<Panel>>,
}

/// A grid of cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// The title above the panel. May be empty.
    pub title: String,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Labels beside the rows.
    pub row_labels: Vec<String>,
    /// Labels above the columns.
    pub col_labels: Vec<String>,
    /// The cells, row by row.
    pub cells: Vec<Cell>,
}

/// One cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// One or two short lines.
    pub text: Vec<String>,
    /// The full description, which appears when pointed at.
    pub hover: String,
    /// The color.
    pub fill: Fill,
    /// The line to the right neighbor: 0 thin, 1 the edge of an inner tile, 2 the edge of an outer
    /// tile.
    pub right: u8,
    /// The line to the neighbor below, with the same values.
    pub below: u8,
}

/// A color by its meaning.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Fill {
    /// No element.
    #[default]
    Empty,
    /// A color for distinct things: an index of [`crate::palette::HUES`].
    Hue(u8),
    /// A color for a quantity: an index of [`crate::palette::SHADES`].
    Shade(u8),
}

impl Fill {
    /// The color of the `i`-th of several distinct things.
    pub(crate) fn hue(i: i64) -> Self {
        Fill::Hue(i.rem_euclid(crate::palette::HUES.len() as i64) as u8)
    }

    /// The shade of the quantity `i` between 0 and `n`.
    pub(crate) fn shade(i: i64, n: i64) -> Self {
        let last = crate::palette::SHADES.len() as i64;
        let at = i128::from(i.max(0)) * i128::from(last) / i128::from(n.max(1));
        Fill::Shade(at.clamp(0, i128::from(last - 1)) as u8)
    }
}

/// Refuses a picture with more than [`MAX_PICTURE_CELLS`] cells.
pub(crate) fn bounded(what: &str, extents: &[i64]) -> Result<(), DrawError> {
    let cells = extents.iter().try_fold(1i64, |n, e| n.checked_mul(*e));
    match cells {
        Some(n) if n <= MAX_PICTURE_CELLS => Ok(()),
        _ => Err(DrawError::TooManyCells { what: what.to_owned(), extents: extents.to_vec() }),
    }
}

impl Panel {
    /// A panel with plain numbers as labels.
    pub(crate) fn numbered(title: String, rows: usize, cols: usize, cells: Vec<Cell>) -> Self {
        let numbers = |n: usize| (0..n).map(|i| i.to_string()).collect();
        Panel { title, rows, cols, row_labels: numbers(rows), col_labels: numbers(cols), cells }
    }

    /// Thickens the lines between neighbors with different ids. If several tilings share a line,
    /// the outer one determines its weight.
    pub(crate) fn outline(&mut self, weight: u8, id: impl Fn(usize, usize) -> i64) {
        let (rows, cols) = (self.rows, self.cols);
        for r in 0..rows {
            for c in 0..cols {
                let cell = &mut self.cells[r * cols + c];
                if c + 1 < cols && id(r, c) != id(r, c + 1) {
                    cell.right = cell.right.max(weight);
                }
                if r + 1 < rows && id(r, c) != id(r + 1, c) {
                    cell.below = cell.below.max(weight);
                }
            }
        }
    }

    /// The maximum number of text lines of a cell.
    pub(crate) fn lines_each(&self) -> usize {
        self.cells.iter().map(|c| c.text.len()).max().unwrap_or(0).max(1)
    }
}

impl Picture {
    /// All panels in reading order.
    pub(crate) fn panels(&self) -> impl Iterator<Item = &Panel> {
        self.lines.iter().flatten()
    }

    /// Arranges panels in lines of at most `width` columns.
    pub(crate) fn arrange(panels: Vec<Panel>, width: usize) -> Vec<Vec<Panel>> {
        let mut lines: Vec<Vec<Panel>> = vec![];
        let mut used = 0;
        for panel in panels {
            used += panel.cols + 2;
            match lines.last_mut() {
                Some(line) if used <= width => line.push(panel),
                _ => {
                    used = panel.cols + 2;
                    lines.push(vec![panel]);
                }
            }
        }
        lines
    }
}
