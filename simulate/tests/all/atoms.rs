//! Tests that every atom computes the meaning of its spec, on random data, and that exchanging any
//! two strides of an operand's layout is detected. A wrong row of the atom table is found this way.
//! Both tests use a random architecture, or all architectures with the atom. Other tests are about
//! bulk copies, shuffles, and synchronization statements: the program that exercises a statement
//! passes, and fails without the statement.
//!
//! An atom's probe places operands as the atom needs them, and runs the atom as the body of the
//! spec that it implements; the simulator compares the two.

use crate::support;
use carbyne_atoms::probe::{Choice, Probe, Unobservable, corrupted, n_picks, probe};
use carbyne_atoms::testing::drawn;
use carbyne_atoms::{Arch, Atom, AtomOp, AtomTable, Elem, Extent, docs};
use carbyne_ir::diag::Code;
use carbyne_ir::scalar::Scalar;
use carbyne_ir::testing;
use carbyne_simulate::conformance;
use carbyne_simulate::{Array, Inputs, Options, simulate};

/// The atom's probe; none for statements, and for bulk copies, which are not a tile of a spec.
fn of(atom: &Atom, table: &AtomTable, pick: usize, set: bool) -> Option<Probe> {
    match probe(atom, table, Choice { pick, set, ..Choice::default() }) {
        // Tests below cover these, together with statements.
        Ok(_) if atom.extent != Extent::Tile || atom.op.spec_kind().is_none() => None,
        Ok(made) => Some(made),
        Err(Unobservable::Statement(_) | Unobservable::Shadowed(_)) => None,
        Err(e) => panic!("{}: {e}", atom.name),
    }
}

/// The different probes of an atom. Among atoms that differ only in the number of columns, only the
/// first has all probes.
fn probes(atom: &Atom, table: &AtomTable, first: bool) -> Vec<Probe> {
    let sets: &[bool] = if atom.sets && first { &[false, true] } else { &[false] };
    let n = if first { n_picks(atom) } else { 1 };
    sets.iter().flat_map(|set| (0..n).filter_map(|pick| of(atom, table, pick, *set))).collect()
}

/// Every atom that is tested for this architecture, and whether it is the first among those that
/// differ only in the number of columns.
fn atoms(table: &AtomTable) -> Vec<(Atom, bool)> {
    let tables = [table.clone()];
    let series = docs::series(&tables);
    let numbered = |s: &docs::Series<'_>| -> Vec<(Atom, bool)> {
        s.atoms.iter().enumerate().map(|(i, r)| ((*r).clone(), i == 0)).collect()
    };
    let here = |s: &&docs::Series<'_>| drawn(s.atoms[0].name, table.arch);
    series.iter().filter(here).flat_map(numbered).collect()
}

#[test]
fn every_atom_computes_the_meaning_of_its_spec() {
    let mut n = 0;
    for arch in Arch::ALL {
        let table = AtomTable::new(*arch);
        for (atom, first) in atoms(&table) {
            for made in probes(&atom, &table, first) {
                let text = made.text;
                let program = support::program(&text);
                for &inputs in testing::one_of(&text, &[Inputs::Seed(5), Inputs::Ints(5)]) {
                    let options = Options { inputs, ..Options::default() };
                    let report = simulate(&program, &table, &options).unwrap_or_else(|e| {
                        panic!("{arch} {}: {e}: {}\n{text}", atom.name, e.label)
                    });
                    let k = &report.kernels[0];
                    // A shuffle has no meaning besides itself, and neither has a part of a Move.
                    let alone =
                        matches!(atom.op, AtomOp::Shfl(_)) || atom.number("valid").is_some();
                    assert_eq!(
                        (k.specs, k.unchecked.len()),
                        (u64::from(!alone), 1),
                        "{arch} {}\n{text}",
                        atom.name
                    );
                    if inputs == Inputs::Ints(5) {
                        // Two ways to compute a function of f64, with results up to 2, round
                        // differently.
                        let double = atom.writes().all(|o| o.elem == Elem::Scalar(Scalar::F64));
                        let near = double && atom.error_bound().is_some();
                        let most = if near { 4.0 * f64::EPSILON } else { 0.0 };
                        assert!(k.max_error <= most, "{arch} {}: {}", atom.name, k.max_error);
                    }
                    n += 1;
                }
            }
        }
    }
    assert!(n > testing::count(250, 1000), "{n} runs");
}

#[test]
fn every_bulk_atom_copies() {
    let mut n = 0;
    for arch in Arch::ALL {
        let table = AtomTable::new(*arch);
        let here = |r: &&Atom| r.extent != Extent::Tile && drawn(r.name, *arch);
        for atom in table.atoms().iter().filter(here) {
            for pick in 0..n_picks(atom) {
                let made = probe(atom, &table, Choice { pick, ..Choice::default() });
                let text = made.unwrap_or_else(|e| panic!("{}: {e}", atom.name)).text;
                let report = simulate(&support::program(&text), &table, &Options::default())
                    .unwrap_or_else(|e| panic!("{arch} {}: {e}: {}\n{text}", atom.name, e.label));
                let k = &report.kernels[0];
                assert!(k.checked && k.complete && k.max_error == 0.0, "{}\n{text}", atom.name);
                n += 1;
            }
        }
    }
    assert!(n > testing::count(150, 300), "{n} runs");
}

/// The litmus test of a statement, without the statement.
fn without(atom: &Atom, text: &str) -> String {
    // Bodies must not be empty.
    let lines = |is: &dyn Fn(&str) -> bool| -> String {
        let line = |(i, l): (usize, &str)| match is(l.trim()) {
            true => format!("let left_out_{i} = 0\n"),
            false => format!("{l}\n"),
        };
        text.lines().enumerate().map(line).collect()
    };
    match atom.op {
        AtomOp::Sync(op) => {
            let own = |l: &str| l.split('(').next() == Some(op.as_str());
            lines(&own)
        }
        // All lanes execute the work of the elected lane.
        AtomOp::Elect => text.replace("#e:[].thread = #w.elect()", "#e:[].thread = #w.scalar()"),
        _ => lines(&|l| l.starts_with("barrier")),
    }
}

#[test]
fn every_litmus_passes_and_needs_its_statement() {
    let (mut n, mut unnoticed) = (0, vec![]);
    for arch in Arch::ALL {
        let table = AtomTable::new(*arch);
        for atom in table.atoms().iter().filter(|r| r.op.spec_kind().is_none()) {
            let made = match probe(atom, &table, Choice::default()) {
                Ok(made) => made,
                Err(Unobservable::Statement(why)) => {
                    assert!(why.len() > 10, "{}", atom.name);
                    continue;
                }
                Err(Unobservable::Shadowed(better)) => {
                    assert!(table.get(better).is_some_and(|r| r.op == atom.op), "{}", atom.name);
                    continue;
                }
                Err(e) => panic!("{arch} {}: {e}", atom.name),
            };
            for case in conformance::cases(atom) {
                let arrays = conformance::given(&made, case);
                let of = |text: &str| {
                    let program = support::program(text);
                    conformance::expected(&program, &made, &table, &arrays)
                };
                let right = of(&made.text).unwrap_or_else(|e| {
                    panic!("{arch} {}: {e}: {}\n{}", atom.name, e.label, made.text)
                });
                assert!(!right.is_empty(), "{}", atom.name);
                assert!(right.values().flatten().all(Option::is_some), "{}", atom.name);
                let text = without(atom, &made.text);
                assert_ne!(text, made.text, "{}", atom.name);
                if of(&text).is_ok_and(|other| other == right) {
                    unnoticed.push(atom.name);
                }
                n += 1;
            }
        }
    }
    unnoticed.dedup();
    assert_eq!(unnoticed, [""; 0]);
    assert!(n > 100, "{n} runs");
}

/// The results of a program, tensor by tensor; none if the program is refused.
fn written(text: &str, table: &AtomTable) -> Option<Vec<Option<Array>>> {
    let report = simulate(&support::program(text), table, &Options::default()).ok()?;
    Some(report.outputs.names().map(|n| report.outputs.get(n)).collect())
}

#[test]
fn shuffles_equal_the_leaf_without_an_atom() {
    for arch in Arch::ALL {
        let table = AtomTable::new(*arch);
        let mut n = 0;
        for atom in table.atoms().iter().filter(|r| matches!(r.op, AtomOp::Shfl(_))) {
            let Some(Probe { text, .. }) = of(atom, &table, 0, false) else { continue };
            let by_meaning = text.replace(&format!(" atom={}", atom.name), "");
            assert_ne!(text, by_meaning);
            let right = written(&by_meaning, &table);
            assert!(right.as_ref().is_some_and(|r| r.iter().all(Option::is_some)), "{text}");
            assert_eq!(written(&text, &table), right, "{arch} {}", atom.name);
            for wrong in corrupted(atom) {
                let name = format!("{arch}/{wrong:?}");
                assert_ne!(written(&text, &table.clone().with(wrong)), right, "{name}");
            }
            n += 1;
        }
        assert!(n > 0, "{arch}");
    }
}

#[test]
fn every_wrong_layout_is_noticed() {
    let (mut n, mut by_value) = (0, 0);
    for arch in Arch::ALL {
        let table = AtomTable::new(*arch);
        // Among atoms that differ only in the number of columns, two are enough.
        let tables = [table.clone()];
        for atom in docs::series(&tables).iter().flat_map(|s| s.atoms.iter().take(2).copied()) {
            // Shuffles are tested above.
            if matches!(atom.op, AtomOp::Shfl(_)) || !drawn(atom.name, *arch) {
                continue;
            }
            let Some(Probe { text, .. }) = of(atom, &table, 0, false) else { continue };
            let program = support::program(&text);
            for wrong in corrupted(atom) {
                let name = format!("{arch}/{wrong:?}");
                let table = table.clone().with(wrong);
                let Err(e) = simulate(&program, &table, &Options::default()) else {
                    panic!("{name} is not noticed\n{text}")
                };
                assert!(matches!(e.code, Code::WrongElement | Code::AtomMismatch), "{name}: {e}");
                by_value += usize::from(e.code == Code::WrongElement);
                n += 1;
            }
        }
    }
    assert!(n > 100 && by_value > 100, "{n} layouts, {by_value} noticed by a value");
}
