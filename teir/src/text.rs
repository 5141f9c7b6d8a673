//! Reads and writes the short text of an operation of TEIR (the Tiled Execution IR), for people: a
//! line for each primitive, a line for each axis. [`Operation::read`] takes either form, JSON or
//! short text.
//!
//! ```text
//! data_type FP32
//! prim_first Zero
//! prim_main GEMM
//! prim_last ReLU
//! # role, execution, size, strides of in0, in1 and out
//! M shared 4 1024 0 1024
//! ```

use crate::record::{Axis, Operation, Primitives, Schedule};
use crate::violation::{Code, MAX_VIOLATIONS, Place, Violation, Violations, quoted};
use carbyne_ir::diag::count;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::str::FromStr;

/// The numbers that sizes and strides may be.
pub(crate) const NUMBER: &str = "a number from 0 to 18446744073709551615";
/// Most bytes of a text.
const MAX_BYTES: usize = 2 << 20;

/// A source without its byte order mark. A large one is refused.
pub(crate) fn admitted(source: &str) -> Result<&str, Violation> {
    if source.len() > MAX_BYTES {
        let found = format!("more than {MAX_BYTES} bytes");
        let (wanted, help) = ("a text of at most 2 MiB", "leave out axes or comments");
        return Err(Violation::new(Code::Syntax, Place::Operation, found, wanted, help));
    }
    Ok(source.strip_prefix('\u{feff}').unwrap_or(source))
}

/// Another word than the wanted one.
fn unreadable(word: &str, place: Place, wanted: &str) -> Violation {
    Violation::new(Code::Syntax, place, quoted(word), wanted, format!("write {wanted}"))
}

/// Reads a name of the specification. `what` stands before the names in an error.
fn read<T: FromStr<Err = String>>(word: &str, place: Place, what: &str) -> Result<T, Violation> {
    word.parse().map_err(|names: String| unreadable(word, place, &format!("{what}{names}")))
}

fn axis(words: &[&str], place: Place) -> Result<Axis, Violation> {
    let &[dim, exec, size, in0, in1, out] = words else {
        let found = count(words.len(), "word");
        let wanted = "a primitive and its name, or an axis: role, execution, size, three strides";
        let help = "write an axis as `M shared 4 1024 0 1024`";
        return Err(Violation::new(Code::Syntax, place, found, wanted, help));
    };
    let number = |word: &str| word.parse::<u64>().map_err(|_| unreadable(word, place, NUMBER));
    Ok(Axis {
        dim: read(dim, place, "a role: ")?,
        exec: read(exec, place, "an execution: ")?,
        size: number(size)?,
        strides: [number(in0)?, number(in1)?, number(out)?],
    })
}

/// The word that names a primitive, or what its absence is called.
fn named<T: FromStr<Err = String>>(
    words: &BTreeMap<&str, (&str, Place)>,
    name: &str,
) -> Result<T, Violation> {
    if let Some((word, place)) = words.get(name) {
        return read(word, *place, "");
    }
    let (found, wanted) = (format!("no `{name}`"), "a line for each primitive");
    let help = format!("add a line `{name}` with one of its names");
    Err(Violation::new(Code::Syntax, Place::Operation, found, wanted, help))
}

/// The value of a read; adds an error to the list.
pub(crate) fn kept<T>(read: Result<T, Violation>, wrong: &mut Vec<Violation>) -> Option<T> {
    read.map_err(|e| wrong.push(e)).ok()
}

impl Operation {
    /// Reads the short text. `#` begins a comment; lines may come in any order, save that of axes.
    ///
    /// # Errors
    /// `TEIR01` for each line that cannot be read, and for each primitive that is missing.
    pub fn from_text(text: &str) -> Result<Self, Violations> {
        let mut primitives = BTreeMap::new();
        let mut axes = vec![];
        let mut wrong = vec![];
        for (i, line) in admitted(text)?.lines().enumerate() {
            let place = Place::Line(i + 1);
            let words = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = words.split_whitespace().collect();
            match words.as_slice() {
                [] => {}
                [name @ ("data_type" | "prim_first" | "prim_main" | "prim_last"), word] => {
                    if primitives.insert(*name, (*word, place)).is_some() {
                        let (wanted, help) = ("each primitive once", "remove the line");
                        let found = "a second one";
                        wrong.push(Violation::new(Code::Syntax, place, found, wanted, help));
                    }
                }
                words => axes.extend(kept(axis(words, place), &mut wrong)),
            }
            if wrong.len() == MAX_VIOLATIONS {
                return Err(Violations(wrong));
            }
        }
        let data_type = kept(named(&primitives, "data_type"), &mut wrong);
        let prim_first = kept(named(&primitives, "prim_first"), &mut wrong);
        let prim_main = kept(named(&primitives, "prim_main"), &mut wrong);
        let prim_last = kept(named(&primitives, "prim_last"), &mut wrong);
        match (data_type, prim_first, prim_main, prim_last) {
            (Some(data_type), Some(prim_first), Some(prim_main), Some(prim_last))
                if wrong.is_empty() =>
            {
                let primitives = Primitives { data_type, prim_first, prim_main, prim_last };
                Ok(Operation { schedule: Schedule::of_axes(&axes), primitives })
            }
            _ => {
                wrong.sort_by_key(|e| match e.place {
                    Place::Line(line) => line,
                    _ => usize::MAX,
                });
                wrong.truncate(MAX_VIOLATIONS);
                Err(Violations(wrong))
            }
        }
    }

    /// As the short text.
    ///
    /// # Errors
    /// `TEIR03` where the vectors of the schedule have different lengths.
    pub fn to_text(&self) -> Result<String, Violations> {
        let Primitives { data_type, prim_first, prim_main, prim_last } = &self.primitives;
        let mut text = format!(
            "data_type {data_type}\nprim_first {prim_first}\nprim_main {prim_main}\n\
             prim_last {prim_last}\n# role, execution, size, strides of in0, in1 and out\n"
        );
        for Axis { dim, exec, size, strides: [in0, in1, out] } in self.schedule.axes()? {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{dim} {exec} {size} {in0} {in1} {out}");
        }
        Ok(text)
    }

    /// Reads JSON where the first character is a brace or a bracket, else the short text.
    ///
    /// # Errors
    /// `TEIR01` for what is neither.
    pub fn read(source: &str) -> Result<Self, Violations> {
        match admitted(source)?.trim_start().starts_with(['{', '[']) {
            true => Operation::from_json(source),
            false => Operation::from_text(source),
        }
    }
}
