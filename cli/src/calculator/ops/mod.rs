//! Collects the table of the calculator's operations ([`all`]). A row has the name, the operands, a
//! description, an example with its result, and the function that computes the result.
//!
//! Each family of operations has its own file. To add an operation, add a row. The output of
//! `--list`, the page `docs/layout.md`, error messages and tests are made from the table.
//!
//! Invariant: tests compute the examples.

mod compose;
mod coords;
mod make;
mod measure;
mod modes;
mod tiles;
mod tuples;
mod vectors;

pub(super) use coords::values;

use super::operation::Operation;

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

/// The operation with this name or alias.
pub(crate) fn find(name: &str) -> Option<&'static Operation> {
    all().find(|op| op.name == name || op.aliases.contains(&name))
}

/// The most similar name among operations and `bound` names, if any is similar.
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
    use crate::calculator::eval::{Session, apply_operation};
    use crate::calculator::fault::Fault;
    use crate::calculator::value::Value;
    use carbyne_ir::expr::ExprArena;
    use std::collections::BTreeSet;

    #[test]
    fn examples_give_their_results() {
        for op in all() {
            let mut session = Session::default();
            let got = session.line(op.example.0);
            match got {
                Ok(Some(value)) => {
                    assert_eq!(session.text(&value), op.example.1, "{}", op.example.0)
                }
                Ok(None) => panic!("{}: an empty example", op.name),
                Err(d) => panic!("{}: {d}", op.example.0),
            }
        }
    }

    #[test]
    fn examples_and_results_are_expressions() {
        for op in all() {
            assert!(op.example.0.contains(&format!("{}(", op.name)), "{}", op.example.0);
            let mut session = Session::default();
            let value = session.line(op.example.1).unwrap().unwrap();
            assert_eq!(session.text(&value), op.example.1);
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
        let arena = ExprArena::new();
        for op in all() {
            for k in 0..op.required() {
                let mut args: Vec<Value> = (0..op.required()).map(|_| Value::from(1)).collect();
                args[k] = Value::Bool(true);
                let wanted = op.kind(k);
                match apply_operation(&arena, op, &args) {
                    Err(Fault::Type { arg, wanted: w }) => assert_eq!((arg, w), (k, wanted)),
                    other => panic!("{} at {k}: {other:?}", op.name),
                }
            }
            assert!(
                op.many
                    || matches!(
                        apply_operation(&arena, op, &vec![Value::from(1); 9]),
                        Err(Fault::Count)
                    )
            );
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
