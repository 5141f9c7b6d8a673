//! Writes a picture as text: aligned columns, lines at the ends of tiles, and terminal colors.
//!
//! Invariant: without colors the output is plain characters, and lines have no trailing blanks.

use crate::palette::{HUES, SHADES};
use crate::picture::{Cell, Fill, Panel, Picture};

/// The picture as text. With `color` it uses the colors of terminals with 256 colors.
#[must_use]
pub fn text(picture: &Picture, color: bool) -> String {
    let mut out = String::new();
    let heads = std::iter::once(&picture.title).filter(|t| !t.is_empty());
    for line in heads.chain(&picture.notes) {
        out.push_str(line);
        out.push('\n');
    }
    for panel in picture.panels() {
        out.push('\n');
        write_panel(&mut out, panel, color);
    }
    out
}

/// The text of a cell in one line: `T0V1`. Its lines are separated by a blank if one of them
/// contains a blank.
fn joined(cell: &Cell) -> String {
    let tight = !cell.text.iter().any(|t| t.contains(' '));
    cell.text.join(if tight { "" } else { " " })
}

fn write_panel(out: &mut String, panel: &Panel, color: bool) {
    if !panel.title.is_empty() {
        out.push_str(&panel.title);
        out.push('\n');
    }
    let texts: Vec<String> = panel.cells.iter().map(joined).collect();
    let longest = |texts: &[String]| texts.iter().map(|t| t.chars().count()).max().unwrap_or(0);
    let width = longest(&texts).max(longest(&panel.col_labels));
    let left = longest(&panel.row_labels);
    // Columns with a line after them in at least one row.
    let at = |r: usize, c: usize| &panel.cells[r * panel.cols + c];
    let ruled: Vec<bool> =
        (0..panel.cols).map(|c| (0..panel.rows).any(|r| at(r, c).right > 0)).collect();

    let mut head = " ".repeat(left);
    for (c, label) in panel.col_labels.iter().enumerate() {
        head.push_str(&format!(" {label:>width$}"));
        if ruled[c] {
            head.push_str("  ");
        }
    }
    push_line(out, &head);
    for r in 0..panel.rows {
        let label = panel.row_labels.get(r).map_or("", String::as_str);
        let mut line = format!("{label:>left$}");
        for c in 0..panel.cols {
            let cell = at(r, c);
            let shown = format!("{:>width$}", texts[r * panel.cols + c]);
            line.push_str(&colored(&shown, cell.fill, color));
            if ruled[c] {
                line.push_str([" ", " :", " |"][usize::from(cell.right.min(2))]);
                if cell.right == 0 {
                    line.push(' ');
                }
            }
        }
        push_line(out, &line);
        if (0..panel.cols).any(|c| at(r, c).below > 0) {
            let mut line = " ".repeat(left);
            for (c, ruled) in ruled.iter().enumerate() {
                let mark = [" ", ".", "-"][usize::from(at(r, c).below.min(2))];
                line.push_str(&mark.repeat(width + 1));
                if *ruled {
                    line.push_str(&mark.repeat(2));
                }
            }
            push_line(out, &line);
        }
    }
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

/// The cell with a blank before it, in its color.
fn colored(shown: &str, fill: Fill, color: bool) -> String {
    let number = match fill {
        _ if !color => None,
        Fill::Empty => None,
        Fill::Hue(n) => HUES.get(usize::from(n)),
        Fill::Shade(n) => SHADES.get(usize::from(n)),
    };
    match number {
        None => format!(" {shown}"),
        Some(c) => format!("\u{1b}[48;5;{};38;5;16m {shown}\u{1b}[0m", c.terminal),
    }
}
