//! The operations as a table: name, operands, one line, an example with its result, a function.
//!
//! One file a family. To add an operation, add a row; the command's list, the page `docs/layout.md`,
//! error messages and tests read the table.
//!
//! Invariant: the examples are computed by the tests.

mod compose;
mod coords;
mod make;
mod measure;
mod modes;
mod tiles;
mod tuples;
mod vectors;

pub(super) use coords::values;

use super::fault::Fault;
use super::value::{Kind, Value};
use carbyne_ir::layout::slice::Holes;
use carbyne_ir::layout::{ComposedLayout, Layout, Tiler};
use carbyne_ir::tuple::IntTuple;

/// An operand's name and what it is taken for.
pub(crate) type Param = (&'static str, Kind);

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Operation {
    /// As in `carbyne layout 'NAME(...)'`.
    pub(crate) name: &'static str,
    /// Other names for it.
    pub(crate) aliases: &'static [&'static str],
    params: &'static [Param],
    optional: usize,
    many: bool,
    /// What it gives, in one line.
    pub(crate) doc: &'static str,
    /// An expression, and the text of its worth.
    pub(crate) example: (&'static str, &'static str),
    pub(super) run: fn(&Args<'_>) -> Result<Value, Fault>,
}

type Run = fn(&Args<'_>) -> Result<Value, Fault>;

/// A row without aliases whose operands must all be there.
const fn op(
    name: &'static str,
    params: &'static [Param],
    doc: &'static str,
    example: (&'static str, &'static str),
    run: Run,
) -> Operation {
    Operation { name, aliases: &[], params, optional: 0, many: false, doc, example, run }
}

impl Operation {
    const fn alias(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// So many operands at the end may be left out.
    const fn optional(mut self, n: usize) -> Self {
        self.optional = n;
        self
    }

    /// The last operand may be repeated.
    const fn many(mut self) -> Self {
        self.many = true;
        self
    }

    /// The least number of operands.
    pub(crate) fn required(&self) -> usize {
        self.params.len().saturating_sub(self.optional)
    }

    /// The greatest number of operands, if there is one.
    pub(crate) fn most(&self) -> Option<usize> {
        if self.many { None } else { Some(self.params.len()) }
    }

    /// What operand `k` is taken for.
    pub(crate) fn kind(&self, k: usize) -> Kind {
        self.params.get(k).or(self.params.last()).map_or(Kind::Shape, |(_, kind)| *kind)
    }

    /// What operand `k` is called.
    pub(crate) fn param(&self, k: usize) -> &'static str {
        self.params.get(k).or(self.params.last()).map_or("", |(name, _)| name)
    }

    /// `complement(L, [cotarget])`
    pub(crate) fn signature(&self) -> String {
        let mut names: Vec<String> = vec![];
        for (k, (name, _)) in self.params.iter().enumerate() {
            let left_out = k >= self.required();
            names.push(if left_out { format!("[{name}]") } else { (*name).to_owned() });
        }
        if self.many {
            names.push("...".to_owned());
        }
        format!("{}({})", self.name, names.join(", "))
    }
}

/// The operands of a call, checked against the row.
pub(crate) struct Args<'a> {
    values: &'a [Value],
}

impl<'a> Args<'a> {
    pub(super) fn new(values: &'a [Value]) -> Self {
        Args { values }
    }

    /// Operand `k` as it was given, if it was.
    fn get(&self, k: usize) -> Option<&'a Value> {
        self.values.get(k)
    }

    fn value(&self, k: usize) -> Result<&'a Value, Fault> {
        self.get(k).ok_or(Fault::Count)
    }

    fn layout(&self, k: usize) -> Result<Layout, Fault> {
        self.value(k)?.layout().map_err(|m| m.of(k, Kind::Layout))
    }

    fn function(&self, k: usize) -> Result<ComposedLayout, Fault> {
        self.value(k)?.function().map_err(|m| m.of(k, Kind::Function))
    }

    fn tiler(&self, k: usize) -> Result<Tiler, Fault> {
        self.value(k)?.tiler().map_err(|m| m.of(k, Kind::Tiler))
    }

    fn shape(&self, k: usize) -> Result<IntTuple, Fault> {
        self.value(k)?.shape().map_err(|m| m.of(k, Kind::Shape))
    }

    fn coord(&self, k: usize) -> Result<Holes, Fault> {
        self.value(k)?.coord().map_err(|m| m.of(k, Kind::Coord))
    }

    fn int(&self, k: usize) -> Result<i64, Fault> {
        self.value(k)?.int().map_err(|m| m.of(k, Kind::Int))
    }

    fn modes(&self, k: usize) -> Result<Vec<usize>, Fault> {
        self.value(k)?.modes().map_err(|m| m.of(k, Kind::Modes))
    }

    /// A mode's number.
    fn index(&self, k: usize) -> Result<usize, Fault> {
        let wanted = "the number of a mode, from 0";
        usize::try_from(self.int(k)?).map_err(|_| Fault::Range { arg: k, wanted })
    }
}

/// Applies an expression to the layout of operand `k`, whatever its strides are; what is under a swizzle
/// stays there. For operations on the domain: those that choose, order and nest coordinates.
macro_rules! on_domain {
    ($args:expr, $k:expr, |$layout:ident| $body:expr) => {
        match $args.value($k)? {
            Value::Coords($layout) => Value::from($body),
            Value::Composed(composed) => {
                let $layout = composed.layout();
                Value::from(composed.over($body))
            }
            _ => {
                let $layout = &$args.layout($k)?;
                Value::from($body)
            }
        }
    };
}
use on_domain;

/// The families with their headings, in the order in which they are listed.
pub(crate) const FAMILIES: [(&str, &[Operation]); 8] = [
    ("Measures", measure::ALL),
    ("Making layouts", make::ALL),
    ("Modes", modes::ALL),
    ("The function", coords::ALL),
    ("Composition, inverses, complement", compose::ALL),
    ("Division and product", tiles::ALL),
    ("Vectors and elements of other widths", vectors::ALL),
    ("Tuples of integers", tuples::ALL),
];

/// All rows, in order.
pub(crate) fn all() -> impl Iterator<Item = &'static Operation> {
    FAMILIES.iter().flat_map(|(_, ops)| ops.iter())
}

/// The operation of this name or alias.
pub(crate) fn find(name: &str) -> Option<&'static Operation> {
    all().find(|op| op.name == name || op.aliases.contains(&name))
}

/// The name most like this one, of operations and of `bound` names, if one is at all.
pub(super) fn nearest<'a>(name: &str, bound: impl Iterator<Item = &'a String>) -> Option<&'a str> {
    let own = all().flat_map(|op| std::iter::once(op.name).chain(op.aliases.iter().copied()));
    let (near, steps) = own
        .chain(bound.map(String::as_str))
        .map(|known| (known, strsim::levenshtein(name, known)))
        .min_by_key(|(_, steps)| *steps)?;
    (steps <= 1 + name.len() / 4 && steps < name.len().min(near.len())).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculator::eval::{Session, apply};
    use std::collections::BTreeSet;

    #[test]
    fn examples_give_their_results() {
        for op in all() {
            let got = Session::default().line(op.example.0);
            match got {
                Ok(Some(value)) => assert_eq!(value.to_string(), op.example.1, "{}", op.example.0),
                Ok(None) => panic!("{}: an empty example", op.name),
                Err(d) => panic!("{}: {d}", op.example.0),
            }
        }
    }

    #[test]
    fn examples_and_results_are_expressions() {
        for op in all() {
            assert!(op.example.0.contains(&format!("{}(", op.name)), "{}", op.example.0);
            let value = Session::default().line(op.example.1).unwrap().unwrap();
            assert_eq!(value.to_string(), op.example.1);
        }
    }

    #[test]
    fn names_are_unique() {
        let mut seen = BTreeSet::new();
        for op in all() {
            for name in std::iter::once(&op.name).chain(op.aliases) {
                assert!(seen.insert(*name), "{name}");
            }
        }
    }

    #[test]
    fn no_operation_takes_a_boolean() {
        for op in all() {
            for k in 0..op.required() {
                let mut args: Vec<Value> = (0..op.required()).map(|_| Value::Int(1)).collect();
                args[k] = Value::Bool(true);
                let wanted = op.kind(k);
                match apply(op, &args) {
                    Err(Fault::Type { arg, wanted: w }) => assert_eq!((arg, w), (k, wanted)),
                    other => panic!("{} at {k}: {other:?}", op.name),
                }
            }
            assert!(op.many || matches!(apply(op, &vec![Value::Int(1); 9]), Err(Fault::Count)));
        }
    }

    #[test]
    fn near_names_are_found() {
        let none = || [].iter();
        assert_eq!(nearest("compositon", none()), Some("composition"));
        assert_eq!(nearest("cosise", none()), Some("cosize"));
        assert_eq!(nearest("quux", none()), None);
        assert_eq!(nearest("A", none()), None);
    }
}
