//! Reads and writes the short text of an operation of TEIR, for people: a line for each primitive,
//! a line for each axis.
//!
//! ```text
//! data_type FP32
//! prim_first Zero
//! prim_main GEMM
//! prim_last ReLU
//! # role, execution, size, strides of in0, in1 and out
//! M shared 4 1024 0 1024
//! ```

use crate::record::{Axis, DataType, First, Last, Main, Operation, Primitives, Schedule};
use crate::violation::{Code, Place, Violation, Violations};
use std::fmt::Write;
use std::str::FromStr;

/// Another word than the wanted one.
fn unreadable(word: &str, place: Place, wanted: &str) -> Violation {
    let found = format!("`{}`", word.escape_debug());
    Violation::new(Code::Syntax, place, found, wanted, format!("write {wanted}"))
}

/// Reads a name of the specification. `what` stands before the names in an error.
fn read<T: FromStr<Err = String>>(word: &str, place: Place, what: &str) -> Result<T, Violation> {
    word.parse().map_err(|names: String| unreadable(word, place, &format!("{what}{names}")))
}

fn axis(words: &[&str], place: Place) -> Result<Axis, Violation> {
    let &[dim, exec, size, in0, in1, out] = words else {
        let found = format!("{} words", words.len());
        let wanted = "a primitive and its name, or an axis: role, execution, size, three strides";
        let help = "write an axis as `M shared 4 1024 0 1024`";
        return Err(Violation::new(Code::Syntax, place, found, wanted, help));
    };
    let number = |word: &str| {
        let wanted = "a number from 0 to 18446744073709551615";
        word.parse::<u64>().map_err(|_| unreadable(word, place, wanted))
    };
    Ok(Axis {
        dim: read(dim, place, "a role: ")?,
        exec: read(exec, place, "an execution: ")?,
        size: number(size)?,
        strides: [number(in0)?, number(in1)?, number(out)?],
    })
}

/// Takes a primitive that is not named yet.
fn set<T: FromStr<Err = String>>(
    to: &mut Option<T>,
    word: &str,
    place: Place,
) -> Result<(), Violation> {
    if to.is_some() {
        let wanted = "each primitive once";
        let help = "remove the line";
        return Err(Violation::new(Code::Syntax, place, "a second one", wanted, help));
    }
    *to = Some(read(word, place, "")?);
    Ok(())
}

/// The primitive, or what its absence is called.
fn named<T>(primitive: Option<T>, name: &str) -> Result<T, Violation> {
    primitive.ok_or_else(|| {
        let (found, wanted) = (format!("no `{name}`"), "a line for each primitive");
        let help = format!("add a line `{name}` with one of its names");
        Violation::new(Code::Syntax, Place::Operation, found, wanted, help)
    })
}

impl Operation {
    /// Reads the short text. `#` begins a comment; lines may come in any order, save that of axes.
    ///
    /// # Errors
    /// `TEIR01` for the first line that cannot be read, or a primitive that is missing.
    pub fn from_text(text: &str) -> Result<Self, Violations> {
        let (mut data_type, mut prim_first, mut prim_main, mut prim_last) =
            (None::<DataType>, None::<First>, None::<Main>, None::<Last>);
        let mut axes = vec![];
        for (i, line) in text.lines().enumerate() {
            let place = Place::Line(i + 1);
            let words = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = words.split_whitespace().collect();
            match words.as_slice() {
                [] => {}
                ["data_type", word] => set(&mut data_type, word, place)?,
                ["prim_first", word] => set(&mut prim_first, word, place)?,
                ["prim_main", word] => set(&mut prim_main, word, place)?,
                ["prim_last", word] => set(&mut prim_last, word, place)?,
                words => axes.push(axis(words, place)?),
            }
        }
        let primitives = Primitives {
            data_type: named(data_type, "data_type")?,
            prim_first: named(prim_first, "prim_first")?,
            prim_main: named(prim_main, "prim_main")?,
            prim_last: named(prim_last, "prim_last")?,
        };
        Ok(Operation { schedule: Schedule::of_axes(&axes), primitives })
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

    /// Reads JSON where the first character is a brace, else the short text.
    ///
    /// # Errors
    /// `TEIR01` for what is neither.
    pub fn read(source: &str) -> Result<Self, Violations> {
        match source.trim_start().starts_with('{') {
            true => Operation::from_json(source),
            false => Operation::from_text(source),
        }
    }
}
