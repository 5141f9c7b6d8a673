//! Prints all offsets of a small layout, as a list or as a grid.
//!
//! A grid has one row for each coordinate of mode 0, and one column for each coordinate of the
//! other modes. A layout of one mode is one row.

use super::fault::Fault;
use super::ops::values;
use super::value::Value;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::ExprArena;
use carbyne_ir::span::Span;

/// Maximum number of values in a grid.
const MAX_GRID: i64 = 1 << 14;

/// All values of a layout as a list.
pub(crate) fn eval(cx: &ExprArena, value: &Value, text: &str) -> Result<String, Box<Diagnostic>> {
    let (values, _) = of(cx, value, text, i64::MAX)?;
    let values: Vec<String> = values.iter().map(i64::to_string).collect();
    Ok(format!("[{}]\n", values.join(",")))
}

/// All values of a layout, with mode 0 downward and the other modes to the right.
pub(crate) fn grid(cx: &ExprArena, value: &Value, text: &str) -> Result<String, Box<Diagnostic>> {
    let (values, rows) = of(cx, value, text, MAX_GRID)?;
    let cells: Vec<String> = values.iter().map(i64::to_string).collect();
    let columns = cells.len() / rows.max(1);
    let width = cells.iter().map(String::len).max().unwrap_or(0);
    let width = width.max(columns.saturating_sub(1).to_string().len());
    let margin = rows.saturating_sub(1).to_string().len();
    let mut out = " ".repeat(margin) + " |";
    (0..columns).for_each(|c| out.push_str(&format!(" {c:>width$}")));
    out.push_str(&format!("\n{}-+{}\n", "-".repeat(margin), "-".repeat(columns * (width + 1))));
    for row in 0..rows {
        out.push_str(&format!("{row:>margin$} |"));
        for cell in cells.iter().skip(row).step_by(rows) {
            out.push_str(&format!(" {cell:>width$}"));
        }
        out.push('\n');
    }
    Ok(out)
}

/// The values and the number of rows.
fn of(
    cx: &ExprArena,
    value: &Value,
    text: &str,
    limit: i64,
) -> Result<(Vec<i64>, usize), Box<Diagnostic>> {
    let span = Span::new(0, text.trim_end().len());
    let Ok(f) = value.fixed(cx) else {
        let message = format!("only a layout has values to list, found {}", value.words());
        let d = Diagnostic::new(Code::CalcArguments, span, message)
            .label("not a layout of integers")
            .help("remove `--table` and `--eval`, or end the line with a layout");
        return Err(Box::new(d));
    };
    let size = f.layout().size();
    let listed =
        if size > limit { Err(Fault::TooLarge { values: size, limit }) } else { values(&f) };
    match listed {
        Ok(values) => {
            let mode = f.layout().mode(0).map_or(1, |mode| mode.size());
            let rows = if f.layout().rank() == 1 { 1 } else { mode };
            Ok((values, usize::try_from(rows).unwrap_or(1)))
        }
        Err(Fault::TooLarge { values, limit }) => {
            let message = format!("the layout has {values} values, more than {limit}");
            let d = Diagnostic::new(Code::CalcTooLarge, span, message)
                .label("too many values")
                .help("list a part: compose the layout with a smaller one first");
            Err(Box::new(d))
        }
        // Unreachable: a layout has a list of values, or too many values.
        _ => Ok((vec![], 1)),
    }
}
