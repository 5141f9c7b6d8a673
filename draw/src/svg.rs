//! Writes a picture as SVG ([`svg()`]), or as an HTML page that also shows the description of a
//! cell when pointed at ([`html`]). A picture consists of lines of panels of cells; this file
//! measures the panels and places them.
//!
//! Invariant: the output is self-contained, without scripts, fonts or links. Colors are classes
//! with rules for light and for dark screens. Nothing is drawn outside of the view box.

use crate::palette::{DARK, HUES, LIGHT, SHADES};
use crate::picture::{Fill, Panel, Picture};
use std::fmt::Write as _;

/// Width of a character in the font of cells, and height of a line.
const CHAR: usize = 7;
const LINE: usize = 13;
/// Width of a character in the font of titles, and height of a line.
const TITLE_CHAR: usize = 8;
const TITLE_LINE: usize = 20;
/// The margin around everything, and the gap between panels.
const MARGIN: usize = 14;
const GAP: usize = 26;

/// A panel with its position.
struct Placed<'a> {
    panel: &'a Panel,
    /// The upper left corner of the grid.
    x: usize,
    y: usize,
    cell: (usize, usize),
}

/// Width and height of a panel with its labels and title, cell size, and the position of the grid
/// within the panel.
struct Measured {
    width: usize,
    height: usize,
    cell: (usize, usize),
    left: usize,
    top: usize,
}

fn chars<'a>(texts: impl Iterator<Item = &'a String>) -> usize {
    texts.map(|t| t.chars().count()).max().unwrap_or(0)
}

fn measure(panel: &Panel) -> Measured {
    let text = chars(panel.cells.iter().flat_map(|c| &c.text)).max(chars(panel.col_labels.iter()));
    let cell = ((text * CHAR + 6).max(20), (panel.lines_each() * LINE + 7).max(20));
    let left = match chars(panel.row_labels.iter()) {
        0 => 0,
        n => n * CHAR + 8,
    };
    let top = LINE + 5 + if panel.title.is_empty() { 0 } else { TITLE_LINE };
    let title = panel.title.chars().count() * TITLE_CHAR;
    Measured {
        width: (left + panel.cols * cell.0).max(title),
        height: top + panel.rows * cell.1,
        cell,
        left,
        top,
    }
}

/// The picture as an SVG document.
#[must_use]
pub fn svg(picture: &Picture) -> String {
    body(picture, false)
}

/// The picture as an HTML page that shows the description of a cell when pointed at.
#[must_use]
pub fn html(picture: &Picture) -> String {
    let title = escaped(&picture.title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>body{{margin:0;background:#{:06x}}}\
         @media (prefers-color-scheme:dark){{body{{background:#{:06x}}}}}\
         rect:hover{{stroke-width:3}}</style>\n\
         </head>\n<body>\n{}</body>\n</html>\n",
        LIGHT.0,
        DARK.0,
        body(picture, true)
    )
}

fn body(picture: &Picture, hover: bool) -> String {
    let mut placed = vec![];
    let heads = usize::from(!picture.title.is_empty());
    let mut y = MARGIN + heads * (TITLE_LINE + 2) + picture.notes.len() * (LINE + 3);
    let mut width = picture.title.chars().count() * TITLE_CHAR;
    width = width.max(chars(picture.notes.iter()) * CHAR);
    for line in &picture.lines {
        y += 10;
        let (mut x, mut height) = (MARGIN, 0);
        for panel in line {
            let m = measure(panel);
            placed.push(Placed { panel, x: x + m.left, y: y + m.top, cell: m.cell });
            x += m.width + GAP;
            height = height.max(m.height);
        }
        width = width.max(x.saturating_sub(GAP + MARGIN));
        y += height;
    }
    let (width, height) = (width + 2 * MARGIN, y + MARGIN);
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n<style>\n{}</style>\n\
         <rect class=\"bg\" width=\"{width}\" height=\"{height}\"/>",
        style(picture)
    );
    let mut y = MARGIN;
    if heads == 1 {
        y += TITLE_LINE - 4;
        let _ = writeln!(
            out,
            "<text class=\"t\" x=\"{MARGIN}\" y=\"{y}\">{}</text>",
            escaped(&picture.title)
        );
        y += 6;
    }
    for note in &picture.notes {
        y += LINE + 3;
        let _ = writeln!(
            out,
            "<text class=\"n\" x=\"{MARGIN}\" y=\"{}\">{}</text>",
            y - 3,
            escaped(note)
        );
    }
    placed.iter().for_each(|p| write_panel(&mut out, p, hover));
    out.push_str("</svg>\n");
    out
}

fn write_panel(out: &mut String, at: &Placed<'_>, hover: bool) {
    let Placed { panel, x, y, cell: (w, h) } = at;
    if !panel.title.is_empty() {
        let left = measure(panel).left;
        let _ = writeln!(
            out,
            "<text class=\"p\" x=\"{}\" y=\"{}\">{}</text>",
            x - left,
            y - LINE - 11,
            escaped(&panel.title)
        );
    }
    for (c, label) in panel.col_labels.iter().enumerate().filter(|(_, l)| !l.is_empty()) {
        let _ = writeln!(
            out,
            "<text class=\"l\" x=\"{}\" y=\"{}\">{}</text>",
            x + c * w + w / 2,
            y - 5,
            escaped(label)
        );
    }
    for (r, label) in panel.row_labels.iter().enumerate().filter(|(_, l)| !l.is_empty()) {
        let _ = writeln!(
            out,
            "<text class=\"r\" x=\"{}\" y=\"{}\">{}</text>",
            x - 5,
            y + r * h + h / 2 + 4,
            escaped(label)
        );
    }
    for (i, cell) in panel.cells.iter().enumerate() {
        let (r, c) = (i / panel.cols.max(1), i % panel.cols.max(1));
        let (x, y) = (x + c * w, y + r * h);
        let class = class(cell.fill);
        let _ =
            write!(out, "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"");
        match hover && !cell.hover.is_empty() {
            true => {
                let _ = writeln!(out, "><title>{}</title></rect>", escaped(&cell.hover));
            }
            false => out.push_str("/>\n"),
        }
        let first = y + h / 2 + 4 - (cell.text.len().saturating_sub(1)) * LINE / 2;
        for (k, text) in cell.text.iter().enumerate().filter(|(_, t)| !t.is_empty()) {
            let quiet = if cell.fill == Fill::Empty { " class=\"q\"" } else { "" };
            let _ = writeln!(
                out,
                "<text{quiet} x=\"{}\" y=\"{}\">{}</text>",
                x + w / 2,
                first + k * LINE,
                escaped(text)
            );
        }
    }
    for weight in [1, 2] {
        let path = outlines(at, weight);
        if !path.is_empty() {
            let _ = writeln!(out, "<path class=\"w{weight}\" d=\"{path}\"/>");
        }
    }
    if panel.cells.iter().any(|c| c.right.max(c.below) == 2) {
        let _ = writeln!(
            out,
            "<rect class=\"frame\" x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\"/>",
            panel.cols * w,
            panel.rows * h
        );
    }
}

/// The path of all lines of one weight, with neighbors joined.
fn outlines(at: &Placed<'_>, weight: u8) -> String {
    let Placed { panel, x, y, cell: (w, h) } = at;
    let mut out = String::new();
    for r in 0..panel.rows {
        runs(
            panel.cols,
            |c| panel.cells[r * panel.cols + c].below == weight,
            |from, to| {
                let _ = write!(out, "M{} {}H{}", x + from * w, y + (r + 1) * h, x + to * w);
            },
        );
    }
    for c in 0..panel.cols {
        runs(
            panel.rows,
            |r| panel.cells[r * panel.cols + c].right == weight,
            |from, to| {
                let _ = write!(out, "M{} {}V{}", x + (c + 1) * w, y + from * h, y + to * h);
            },
        );
    }
    out
}

/// Calls `emit` with each run of consecutive numbers below `n` for which `is` holds.
fn runs(n: usize, is: impl Fn(usize) -> bool, mut emit: impl FnMut(usize, usize)) {
    let mut from = None;
    for i in 0..=n {
        match (i < n && is(i), from) {
            (true, None) => from = Some(i),
            (false, Some(start)) => {
                emit(start, i);
                from = None;
            }
            _ => {}
        }
    }
}

fn class(fill: Fill) -> String {
    match fill {
        Fill::Empty => "e".to_owned(),
        Fill::Hue(n) => format!("h{n}"),
        Fill::Shade(n) => format!("s{n}"),
    }
}

/// The CSS rules for all colors in the picture, for light and dark screens.
fn style(picture: &Picture) -> String {
    let mut used: Vec<Fill> = vec![];
    let all = (0..HUES.len() as u8).map(Fill::Hue).chain((0..SHADES.len() as u8).map(Fill::Shade));
    let mut seen = std::collections::BTreeSet::new();
    for cell in picture.panels().flat_map(|p| &p.cells) {
        seen.insert(class(cell.fill));
    }
    used.extend(all.filter(|f| seen.contains(&class(*f))));
    let mut out = String::from(
        "text{font:11px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;\
         text-anchor:middle;pointer-events:none}\n\
         .t,.n,.p{text-anchor:start}.r{text-anchor:end}\n\
         .t{font-size:13px;font-weight:bold}.p{font-size:12px;font-weight:bold}\n\
         rect{stroke-width:.6}.bg{stroke:none}\n\
         path,.frame{fill:none;stroke-linecap:square}\
         .w1{stroke-width:1.4}.w2,.frame{stroke-width:2.6}\n",
    );
    let rules = |out: &mut String, page: u32, text: u32, quiet: u32, grid: u32, light: bool| {
        let _ = writeln!(
            out,
            ".bg,.e{{fill:#{page:06x}}}text{{fill:#{text:06x}}}.n,.l,.r,.q{{fill:#{quiet:06x}}}\
             rect{{stroke:#{grid:06x}}}.bg{{stroke:none}}path,.frame{{stroke:#{text:06x}}}\
             .frame{{fill:none}}"
        );
        for fill in &used {
            let color = match fill {
                Fill::Hue(n) => HUES[usize::from(*n)],
                Fill::Shade(n) => SHADES[usize::from(*n)],
                Fill::Empty => continue,
            };
            let color = if light { color.light } else { color.dark };
            let _ = write!(out, ".{}{{fill:#{color:06x}}}", class(*fill));
        }
        out.push('\n');
    };
    rules(&mut out, LIGHT.0, LIGHT.1, 0x555555, 0x8A8A8A, true);
    out.push_str("@media (prefers-color-scheme:dark){\n");
    rules(&mut out, DARK.0, DARK.1, 0xB8B8B8, 0x6B7075, false);
    out.push_str("}\n");
    out
}

/// Escapes text for SVG and HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push('?'),
            c => out.push(c),
        }
    }
    out
}
