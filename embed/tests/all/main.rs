//! Tests the crate as a compiler would use it: the example runs, errors implement
//! `std::error::Error`, and a syntax tree is checked like its text.

#[path = "../../examples/embed.rs"]
mod embed;

use carbyne_embed::{Arch, AtomTable, Checked, Options};
use std::error::Error;

#[test]
fn the_example_runs() {
    embed::main().unwrap();
}

#[test]
fn errors_are_listed() {
    let wrong = Checked::new("carbyne 2\n%A:[8].f32.GL\nMove (%A) -> (%B)\nMove (%A) -> (%C)\n");
    let errors = wrong.unwrap_err();
    let boxed: Box<dyn Error> = Box::new(errors.clone());
    assert!(boxed.to_string().contains("V0201"), "{boxed}");
    assert_eq!(boxed.to_string().lines().count(), errors.iter().count());
    assert_eq!((&errors).into_iter().count(), errors.into_iter().count());
}

#[test]
fn a_tree_is_checked_as_its_text() {
    let text = "carbyne 2\n%A:[8].f32.GL\n%B:[8].f32.GL\nMove (%A) -> (%B)\n";
    let program = Checked::new(text).unwrap();
    let again = Checked::of_module(program.module()).unwrap();
    let ids = program.module().items.iter().zip(&again.module().items);
    assert!(ids.into_iter().all(|(given, read)| given.id.same(read.id)));
    assert_eq!(again.module().items.len(), 3);
    let table = AtomTable::new(Arch::Sm80);
    assert!(again.simulate(&table, &Options::default()).is_ok());
}
