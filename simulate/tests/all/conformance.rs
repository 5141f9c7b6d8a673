//! Tests the comparison of a device with the simulator, with the simulator in place of the device:
//! it agrees with itself, and a wrong atom is detected, with its lane and value. A normal run takes
//! a random third of the atoms of sm_90a, and at most two of those that differ only in the number
//! of columns.

use crate::support;
use carbyne_atoms::probe::{Choice, Probe, corrupted, probe};
use carbyne_atoms::{Arch, Atom, AtomTable, docs};
use carbyne_ir::program::Program;
use carbyne_ir::testing;
use carbyne_simulate::conformance::{self, Case, Compared};
use std::collections::BTreeMap;

type Found = BTreeMap<String, Vec<u64>>;

/// A small probe of an atom, with some blocks.
fn small(atom: &Atom, table: &AtomTable, blocks: i64) -> Option<(Probe, Program)> {
    // Large tiles have enough elements in one block.
    let blocks = if atom.group > 32 { 1 } else { blocks };
    let made = probe(atom, table, Choice { blocks, ..Choice::default() }).ok()?;
    let program = support::program(&made.text);
    Some((made, program))
}

/// The atoms that are selected for `test`, with at most two of those that differ only in the number
/// of columns.
fn atoms(table: &AtomTable, test: &str) -> Vec<Atom> {
    let tables = [table.clone()];
    let some = docs::series(&tables);
    let some = some.iter().flat_map(|s| s.atoms.iter().take(2));
    let drawn = |r: &&&Atom| testing::one_in(3, &format!("{test} {}", r.name));
    some.filter(drawn).map(|r| (*r).clone()).collect()
}

/// The results of a device that executes atoms as `table` states.
fn device(program: &Program, probe: &Probe, table: &AtomTable, case: Case) -> Option<Found> {
    let arrays = conformance::given(probe, case);
    let written = conformance::expected(program, probe, table, &arrays).ok()?;
    let raw = |v: Vec<Option<u64>>| v.into_iter().map(|r| r.unwrap_or(u64::MAX)).collect();
    Some(written.into_iter().map(|(name, values)| (name, raw(values))).collect())
}

fn compared(
    atom: &Atom,
    (program, probe): (&Program, &Probe),
    table: &AtomTable,
    case: Case,
    found: &Found,
) -> Compared {
    let arrays = conformance::given(probe, case);
    let expected = conformance::expected(program, probe, table, &arrays);
    let expected = expected.unwrap_or_else(|e| panic!("{}: {e}: {}", atom.name, e.label));
    conformance::compare(atom, probe, case, &arrays, &expected, found)
}

#[test]
fn the_simulator_agrees_with_itself() {
    let table = AtomTable::new(Arch::Sm90a);
    for atom in &atoms(&table, "agrees") {
        let Some((probe, program)) = small(atom, &table, 64) else { continue };
        let mut n = 0;
        for case in conformance::cases(atom) {
            let found = device(&program, &probe, &table, case).unwrap();
            let result = compared(atom, (&program, &probe), &table, case, &found);
            assert_eq!(result.n_wrong, 0, "{} {case:?}: {:?}", atom.name, result.first);
            n += result.elements;
        }
        assert!(n > 0, "{}", atom.name);
    }
}

#[test]
fn a_corrupted_atom_is_found_with_its_place() {
    let table = AtomTable::new(Arch::Sm90a);
    let (mut n, mut refused) = (0, 0);
    for atom in &atoms(&table, "corrupted") {
        let Some((probe, program)) = small(atom, &table, 2) else { continue };
        for wrong in corrupted(atom) {
            let wrong = table.clone().with(wrong);
            let found_in = |case: Case| {
                let found = device(&program, &probe, &wrong, case)?;
                Some(compared(atom, (&program, &probe), &table, case, &found))
            };
            let results: Option<Vec<Compared>> =
                conformance::cases(atom).into_iter().map(found_in).collect();
            // The simulator refuses layouts that do not cover the tile.
            let Some(results) = results else {
                refused += 1;
                continue;
            };
            let first = results.iter().flat_map(|r| &r.first).next();
            let first = first.unwrap_or_else(|| panic!("{} is not found", atom.name));
            let shown = first.to_string();
            assert!(shown.contains("found") && shown.contains("element ("), "{shown}");
            n += 1;
        }
    }
    let least = testing::count(30, 100);
    assert!(n > least && refused > least, "{n} atoms found, {refused} refused");
}

#[test]
fn one_wrong_bit_is_one_wrong_element() {
    let table = AtomTable::new(Arch::Sm90a);
    for atom in &atoms(&table, "bit") {
        let Some((probe, program)) = small(atom, &table, 64) else { continue };
        let case = conformance::cases(atom)[0];
        let right = device(&program, &probe, &table, case).unwrap();
        let output = probe.operands.iter().find(|o| o.output.is_some()).unwrap();
        let name = output.output.as_ref().unwrap();
        // A sign is visible only in results that are neither NaN nor approximate, and for operands
        // with a stated error.
        let decode = |v: u64| carbyne_simulate::num::decode(output.scalar, v);
        let plain = |v: &u64| {
            let magnitude = decode(*v).abs();
            match atom.error_bound() {
                Some(_) => (0.25..4.0).contains(&magnitude),
                None => !magnitude.is_nan(),
            }
        };
        // Quotients by numbers without a stated error are not compared.
        let stated = |b: &u64| atom.error_bound().is_none_or(|e| e.covers(decode(*b)));
        let last = conformance::given(&probe, case).pop_last().map_or(vec![], |(_, a)| a.values);
        let of = |(i, v): (usize, &u64)| plain(v) && last.get(i).is_none_or(&stated);
        let at = right[name].iter().enumerate().position(of).unwrap_or(0);
        let mut found = right.clone();
        found.get_mut(name).unwrap()[at] ^= 1 << (output.scalar.bits() - 1);
        let result = compared(atom, (&program, &probe), &table, case, &found);
        assert_eq!(result.n_wrong, 1, "{} {:?}", atom.name, result.first);
        let place = output.elements()[at].clone();
        assert_eq!(result.first[0].element, place, "{}", atom.name);
        if let Some((thread, value)) = place.held_by {
            let text = format!("{}: thread {thread}, value {value}", output.name);
            assert!(result.first[0].to_string().starts_with(&text), "{}", result.first[0]);
        }
    }
}
