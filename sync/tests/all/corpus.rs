//! Tests that the checker accepts correct programs. It must refuse no example of this repository,
//! decomposed, and no pipeline written by hand, and must prove nearly all pairs of accesses; the
//! numbers are a table of `docs/synchronization.md`. It must not refuse programs that execute one
//! atom each, either.

use crate::support::{complaints, reports, right, root};
use carbyne_atoms::{Arch, AtomTable, probe};
use carbyne_ir::testing;
use carbyne_ir::text;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

/// A correct program for an architecture.
pub(crate) struct Case {
    pub(crate) group: &'static str,
    pub(crate) name: String,
    pub(crate) arch: Arch,
    pub(crate) text: String,
}

/// The groups of programs and their folders.
const GROUPS: [(&str, &str); 4] = [
    ("examples, decomposed", "examples"),
    ("tile-level examples, decomposed", "examples/tile"),
    ("pipelines by hand", "simulate/tests/mutants"),
    ("kernels beside the repository", "../shared/notes/hopper_texts"),
];

fn files(folder: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root().join(folder)) else { return vec![] };
    let mut all: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "cby"));
    all.sort();
    all
}

/// The architectures of a file.
fn archs(src: &str) -> Vec<Arch> {
    let line = src.lines().find_map(|l| l.trim().strip_prefix("// archs:"));
    let names = |l: &str| l.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    line.map_or(vec![], names)
}

/// All correct programs.
pub(crate) fn cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(|| GROUPS.iter().flat_map(|(group, folder)| of(group, folder)).collect())
}

fn of(group: &'static str, folder: &str) -> Vec<Case> {
    let mut out = vec![];
    for file in files(folder) {
        let name = format!("{folder}/{}", file.file_stem().unwrap().to_string_lossy());
        // Texts beside the repository may be of version 1, whose syntax is a subset of version 2.
        let src = std::fs::read_to_string(&file).unwrap().replacen("carbyne 1", "carbyne 2", 1);
        // The large variants of the same kernels take long.
        let by_hand = folder.starts_with("simulate");
        if folder.starts_with("..") && !name.ends_with("_small") {
            continue;
        }
        if by_hand {
            out.push(Case { group, name, arch: Arch::Sm90a, text: src });
            continue;
        }
        let module = text::parse(&src).unwrap();
        let archs = if folder.starts_with("..") { vec![Arch::Sm90a] } else { archs(&src) };
        for arch in archs {
            let found = carbyne_decompose::decompose(&module, &src, &AtomTable::new(arch));
            let found = found.unwrap_or_else(|e| panic!("{name} for {arch}: {e}"));
            out.push(Case { group, name: name.clone(), arch, text: found.text });
        }
    }
    out
}

/// `| group | programs | pairs | ordered | not | undecided |`
fn table(rows: &BTreeMap<&str, [usize; 5]>) -> String {
    let mut out = String::from(
        "| | programs | pairs | ordered | refused | undecided |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    for (group, _) in &GROUPS[..3] {
        let [programs, ordered, refused, undecided, faults] =
            rows.get(group).copied().unwrap_or_default();
        let pairs = ordered + refused + undecided;
        assert_eq!(faults, 0, "{group}");
        out.push_str(&format!(
            "| {group} | {programs} | {pairs} | {ordered} | {refused} | {undecided} |\n"
        ));
    }
    out
}

#[test]
#[expect(clippy::print_stdout, reason = "says how many there are, and what could not be checked")]
fn correct_programs_are_proved() {
    let mut rows: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
    let mut said = vec![];
    for case in cases() {
        let program = right(&case.text);
        for r in &reports(&program, case.arch) {
            let [ordered, refused, undecided] = r.counts();
            let row = rows.entry(case.group).or_default();
            // A kernel that is not decided for all values of symbols must be decided for the values
            // that are tried.
            let faults = match r.tried.as_slice() {
                [] => r.faults.len(),
                tried => {
                    said.extend(tried.iter().flat_map(|r| complaints(&program, r)));
                    r.faults.iter().filter(|f| f.is_certain).count()
                        + tried.iter().all(|r| !r.is_ordered()) as usize
                }
            };
            let new = [1, ordered, refused, undecided, faults];
            row.iter_mut().zip(new).for_each(|(a, b)| *a += b);
            said.extend(
                complaints(&program, r).iter().map(|c| format!("{} {}: {c}", case.name, case.arch)),
            );
            // Every proof has a certificate.
            let bare = r.pairs.iter().filter(
                |p| matches!(&p.verdict, carbyne_sync::Verdict::Ordered(ways) if ways.is_empty()),
            );
            assert_eq!(
                bare.count(),
                0,
                "{} {}: a proof without a certificate",
                case.name,
                case.arch
            );
        }
    }
    println!("{rows:?}\n{}", said.join("\n"));
    if !rows.contains_key(GROUPS[3].0) {
        println!("{} are absent and were not checked", GROUPS[3].0);
    }
    let sum = |i: usize| rows.values().map(|r| r[i]).sum::<usize>();
    assert_eq!(sum(2), 0, "a correct program is refused:\n{}", said.join("\n"));
    let all = sum(1) + sum(2) + sum(3);
    assert!(sum(1) * 100 >= all * 95, "{} of {all} pairs are proved:\n{}", sum(1), said.join("\n"));
    fresh(&table(&rows));
}

/// Compares the table in the documentation; `BLESS=1` writes it.
fn fresh(table: &str) {
    fresh_between("counts", table);
}

/// Compares the table between the marks with this name in the documentation; `BLESS=1` writes it.
pub(crate) fn fresh_between(name: &str, table: &str) {
    let marks = [format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n")];
    let path = root().join("docs/synchronization.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(&marks[0]).unwrap();
    let (now, after) = rest.split_once(&marks[1]).unwrap();
    if now == table {
        return;
    }
    assert_eq!(std::env::var("BLESS").unwrap_or_default(), "1", "run cargo xtask docs\n{table}");
    std::fs::write(&path, format!("{before}{}{table}{}{after}", marks[0], marks[1])).unwrap();
}

/// Programs that execute a single atom are correct, too.
#[test]
fn programs_of_atoms_are_not_refused() {
    let table = AtomTable::new(Arch::Sm90a);
    let step = testing::count(37, 1);
    for atom in table.atoms().iter().step_by(step) {
        let choice = probe::Choice { threads: 128, ..probe::Choice::default() };
        let Ok(probe) = probe::probe(atom, &table, choice) else { continue };
        let program = right(&probe.text);
        for r in reports(&program, Arch::Sm90a) {
            let certain = r.faults.iter().filter(|f| f.is_certain).count();
            let said = complaints(&program, &r);
            assert_eq!((r.counts()[1], certain), (0, 0), "{}: {said:?}\n{}", atom.name, probe.text);
        }
    }
}
