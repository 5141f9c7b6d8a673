//! Removes repetitions from large pictures, so that they remain readable. If rows or columns repeat
//! with constant differences of their numbers, some whole periods (at least 8 rows or columns) and
//! the beginning of the next one remain. If nothing repeats, or the period is too long, the first
//! rows and columns remain. If panels stand for coordinates of further modes, the first ones that
//! fit remain.
//!
//! Invariant: a picture that is small enough is unchanged. A note names everything that is left
//! out, and the repetition.

use crate::picture::{Cell, Panel, Picture};
use std::ops::Range;

/// Maximum number of cells, and of lines of text, of a picture that is drawn as a whole.
const MAX_CELLS: usize = 1024;
const MAX_LINES: usize = 200;
/// The minimum number of rows or columns of a repetition that are shown, and the number of those of
/// the next period.
const AT_LEAST: usize = 8;
const AGAIN: usize = 2;
/// The maximum number of columns if nothing repeats, and the maximum of a picture that is drawn as
/// a whole.
const MAX_COLS: usize = 64;
const MAX_WHOLE_COLS: usize = 256;
/// Maximum number of steps that a note lists.
const MAX_STEPS: usize = 4;

/// A range of rows, columns or panels that is left out.
struct Cut {
    out: Range<usize>,
    /// The differences between periods. Empty if nothing repeats.
    steps: Vec<Step>,
}

/// A repetition: `period` rows repeat `times` times, with numbers that grow by `by` each time.
struct Step {
    period: usize,
    times: usize,
    by: Kinds,
}

/// The growth of each kind of number. The text before a number is its kind.
type Kinds = Vec<(String, i64)>;

/// The picture without repetitions if it is large. `whole` is the option or command that draws
/// everything.
#[must_use]
pub fn elide(mut picture: Picture, whole: &str) -> Picture {
    if fits(&picture) {
        return picture;
    }
    let n_panels = picture.panels().count();
    let operands = n_panels > 1 && !numbered(&picture);
    let mut said = vec![];
    let budget = if operands { MAX_CELLS / 2 } else { MAX_CELLS };
    let large = |p: &Panel| !operands || p.cells.len() > budget || lines(p) > MAX_LINES / 2;
    for panel in picture.lines.iter_mut().flatten().filter(|p| large(p)) {
        let name = panel.title.split([':', ',']).next().filter(|_| operands);
        let name = name.map_or(String::new(), |n| format!("{n}: "));
        for note in shrink(panel, budget) {
            let note = format!("{name}{note}");
            if !said.contains(&note) {
                said.push(note);
            }
        }
    }
    if !operands && n_panels > 1 && !fits(&picture) {
        said.extend(drop_panels(&mut picture));
    }
    if !said.is_empty() {
        said.push(format!("`{whole}` draws all"));
    }
    picture.notes.extend(said);
    picture
}

fn fits(picture: &Picture) -> bool {
    let lines: usize = picture.panels().map(lines).sum();
    let cells: usize = picture.panels().map(|p| p.cells.len()).sum();
    let wide = picture.panels().any(|p| p.cols > MAX_WHOLE_COLS);
    cells <= MAX_CELLS && lines <= MAX_LINES && !wide
}

/// The number of lines of text for a panel.
fn lines(panel: &Panel) -> usize {
    let ruled = panel.cells.chunks(panel.cols.max(1)).filter(|r| r.iter().any(|c| c.below > 0));
    panel.rows + ruled.count() + 3
}

/// Whether panels are coordinates of further modes.
fn numbered(picture: &Picture) -> bool {
    picture.panels().skip(1).all(|p| p.title.starts_with("(_,_,"))
}

/// Leaves out rows and columns of a panel, and returns notes about them.
fn shrink(panel: &mut Panel, budget: usize) -> Vec<String> {
    let cells: Vec<Numbers> = panel.cells.iter().map(numbers).collect();
    let (n_rows, n_cols) = (panel.rows, panel.cols);
    let mut rows = repeats(n_rows, |r| cells[r * n_cols..(r + 1) * n_cols].iter().collect());
    let mut cols = repeats(n_cols, |c| cells.iter().skip(c).step_by(n_cols).collect());
    // If no period makes the panel small enough, the first rows and columns remain.
    let left = |n: usize, cut: &Option<Cut>| cut.as_ref().map_or(n, |c| n - c.out.len() + 1);
    let wide = left(n_cols, &cols);
    if wide > MAX_WHOLE_COLS || wide > MAX_COLS && left(n_rows, &rows) * wide > budget {
        cols = Some(Cut { out: MAX_COLS..n_cols, steps: cols.map_or(vec![], |c| c.steps) });
    }
    let most = (budget / left(n_cols, &cols).max(1)).clamp(1, MAX_LINES / 2 - AT_LEAST);
    if left(n_rows, &rows) > most {
        rows = Some(Cut { out: most..n_rows, steps: rows.map_or(vec![], |c| c.steps) });
    }
    let kept = |n: usize, cut: &Option<Cut>| -> Vec<Option<usize>> {
        let out = cut.as_ref().map_or(n..n, |c| c.out.clone());
        let rest = cut.as_ref().map(|_| None);
        (0..out.start).map(Some).chain(rest).chain((out.end..n).map(Some)).collect()
    };
    let (row_at, col_at) = (kept(n_rows, &rows), kept(n_cols, &cols));
    let mut shown = vec![];
    for r in &row_at {
        for c in &col_at {
            let dots = if c.is_some() { "⋮" } else { "…" };
            shown.push(match (r, c) {
                (Some(r), Some(c)) => std::mem::take(&mut panel.cells[r * n_cols + c]),
                _ => Cell { text: vec![dots.to_owned()], ..Cell::default() },
            });
        }
    }
    let labels = |at: &[Option<usize>], all: &[String]| -> Vec<String> {
        let one = |i: &Option<usize>| i.and_then(|i| all.get(i).cloned()).unwrap_or_default();
        if all.is_empty() { vec![] } else { at.iter().map(one).collect() }
    };
    let notes = [("row", &rows, &panel.row_labels), ("column", &cols, &panel.col_labels)];
    let notes = notes.into_iter().filter_map(|(what, cut, names)| {
        Some(cut.as_ref()?.note(what, |i| match names.get(i) {
            Some(name) if !name.is_empty() => name.clone(),
            _ => i.to_string(),
        }))
    });
    let notes = notes.collect();
    panel.row_labels = labels(&row_at, &panel.row_labels);
    panel.col_labels = labels(&col_at, &panel.col_labels);
    (panel.rows, panel.cols, panel.cells) = (row_at.len(), col_at.len(), shown);
    notes
}

/// Leaves out panels, and returns a note about them.
fn drop_panels(picture: &mut Picture) -> Option<String> {
    let panels: Vec<Panel> = std::mem::take(&mut picture.lines).into_iter().flatten().collect();
    let cells: Vec<Vec<Numbers>> =
        panels.iter().map(|p| p.cells.iter().map(numbers).collect()).collect();
    let one = panels.iter().map(|p| p.cells.len()).max().unwrap_or(1).max(1);
    let tall = panels.iter().map(lines).max().unwrap_or(1).max(1);
    let most = (MAX_CELLS / one).min(MAX_LINES / tall).max(1);
    let n = panels.len();
    let cut = if most < n {
        let steps = steps(n, &|p| cells[p].iter().collect()).unwrap_or_default();
        Some(Cut { out: most..n, steps })
    } else {
        None
    };
    let note = cut.as_ref().map(|cut| {
        cut.note("panel", |p| {
            let title = panels.get(p).map_or("", |p| p.title.as_str());
            title.rsplit(' ').next().unwrap_or(title).to_owned()
        })
    });
    let width = panels.first().map_or(1, |p| p.cols + 2) * 4;
    picture.lines = Picture::arrange(panels.into_iter().take(most).collect(), width.min(160));
    note
}

impl Cut {
    fn note(&self, what: &str, name: impl Fn(usize) -> String) -> String {
        let span = |r: Range<usize>| match r.len() {
            1 => format!("{what} {}", name(r.start)),
            _ => format!("{what}s {} to {}", name(r.start), name(r.end - 1)),
        };
        let mut out = format!("{} left out", span(self.out.clone()));
        for (k, step) in self.steps.iter().enumerate() {
            let who = match (k, step.period) {
                (0, 1) => format!(": {} repeats", span(0..1)),
                (0, period) => format!(": {} repeat", span(0..period)),
                _ => "; all of it".to_owned(),
            };
            out.push_str(&format!("{who} {} times, each time {}", step.times, in_words(&step.by)));
        }
        out
    }
}

/// The numbers of a cell, each with the text before it, and the text after the last number.
type Numbers = Vec<(String, i64)>;

fn numbers(cell: &Cell) -> Numbers {
    let mut out = vec![];
    for line in &cell.text {
        let mut rest = line.as_str();
        while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
            let end = rest[at..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |n| at + n);
            // A minus sign belongs to the number; the plus sign of `+6` does not.
            let at = if rest[..at].ends_with('-') { at - 1 } else { at };
            let number = rest[at..end].parse().unwrap_or(i64::MAX);
            out.push((rest[..at].to_owned(), number));
            rest = &rest[end..];
        }
        if !rest.is_empty() {
            out.push((format!("{rest}\n"), 0));
        }
    }
    out
}

/// Finds a range of repeating rows or columns among `n` to leave out.
fn repeats<'a>(n: usize, at: impl Fn(usize) -> Vec<&'a Numbers>) -> Option<Cut> {
    let mut steps = steps(n, &at)?;
    let period = |steps: &[Step]| steps.first().map_or(n, |s| s.period);
    // Steps within the first few rows are drawn.
    while steps.first().is_some_and(|s| s.period * s.times < 2 * AT_LEAST) && steps.len() > 1 {
        steps.remove(0);
    }
    let period = period(&steps);
    let shown = period * AT_LEAST.div_ceil(period) + period.min(AGAIN);
    // A range shorter than the shown part is not worth leaving out.
    (n > shown + AGAIN).then_some(Cut { out: shown..n, steps })
}

/// The nested repetitions of `n` rows: of the smallest period, of the period of those, and so on.
fn steps<'a>(n: usize, at: &dyn Fn(usize) -> Vec<&'a Numbers>) -> Option<Vec<Step>> {
    let all: Vec<Vec<&Numbers>> = (0..n).map(at).collect();
    (1..=n / 2).find_map(|p| {
        let mut firsts = vec![];
        for k in 0..n.div_ceil(p) {
            let first = step(&all[0], &all[k * p])?;
            let same = |i: usize| step(&all[i], &all[k * p + i]).as_ref() == Some(&first);
            if !(0..p.min(n - k * p)).all(same) {
                return None;
            }
            firsts.push(first);
        }
        let mut out = vec![];
        (digits(p, &firsts, &mut out) && out.len() <= MAX_STEPS).then_some(out)
    })
}

/// Splits the growth of the first cells into nested steps: numbers that grow by one difference
/// several times, then by another difference, and so on.
fn digits(period: usize, at: &[Kinds], out: &mut Vec<Step>) -> bool {
    let Some(by) = at.get(1) else { return true };
    let is = |i: usize, from: &Kinds, times: usize| {
        at[i].iter().zip(from).zip(by).all(|((a, f), b)| {
            Some(a.1) == b.1.checked_mul(times as i64).and_then(|n| n.checked_add(f.1))
        })
    };
    let times = (1..at.len()).find(|i| !is(*i, &at[0], *i)).unwrap_or(at.len());
    out.push(Step { period, times, by: by.clone() });
    let whole = at.len().is_multiple_of(times)
        && (0..at.len()).all(|i| is(i, &at[i - i % times], i % times));
    let rest: Vec<Kinds> = at.iter().step_by(times).cloned().collect();
    whole && digits(period * times, &rest, out) || times == at.len()
}

/// The growth of each kind of number between two lists of cells. `None` if numbers of one kind grow
/// differently.
fn step(from: &[&Numbers], to: &[&Numbers]) -> Option<Kinds> {
    let mut out: Kinds = vec![];
    for (a, b) in from.iter().zip(to) {
        if a.len() != b.len() {
            return None;
        }
        for ((kind, x), (other, y)) in a.iter().zip(*b) {
            let by = y.checked_sub(*x)?;
            match out.iter().find(|(k, _)| k == kind) {
                _ if kind != other => return None,
                Some((_, known)) if *known != by => return None,
                Some(_) => {}
                None => out.push((kind.clone(), by)),
            }
        }
    }
    Some(out)
}

/// The growth in words: `T + 32`, `8192 more`.
fn in_words(by: &Kinds) -> String {
    let words: Vec<String> = by
        .iter()
        .filter(|(_, by)| *by != 0)
        .map(|(kind, by)| {
            let (sign, by) = (if *by < 0 { '-' } else { '+' }, by.unsigned_abs());
            match (kind.trim(), sign) {
                ("", '+') => format!("{by} more"),
                ("", _) => format!("{by} less"),
                (kind, sign) => format!("{kind} {sign} {by}"),
            }
        })
        .collect();
    if words.is_empty() { "the same".to_owned() } else { words.join(", ") }
}
