//! The correct programs: how many pairs are proved.

use crate::support::{complaints, reports, right, root};
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::text;
use std::path::PathBuf;
use std::time::Instant;

/// A correct program for an architecture.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) arch: Arch,
    pub(crate) text: String,
}

fn files(folder: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root().join(folder)) else { return vec![] };
    let mut all: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "cby"));
    all.sort();
    all
}

/// The architectures that a file is for.
fn archs(src: &str) -> Vec<Arch> {
    let line = src.lines().find_map(|l| l.trim().strip_prefix("// archs:"));
    let names = line.map(|l| l.split_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<Arch>>());
    names.filter(|n| !n.is_empty()).unwrap_or(vec![Arch::Sm80])
}

/// Everything that is right.
pub(crate) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for folder in ["examples", "examples/tile", "simulate/tests/mutants", "../shared/notes/hopper_texts"] {
        for file in files(folder) {
            let src = std::fs::read_to_string(&file).unwrap();
            let archs = match folder {
                "simulate/tests/mutants" => vec![Arch::Sm90a],
                "../shared/notes/hopper_texts" => vec![Arch::Sm90a],
                _ => archs(&src),
            };
            for arch in archs {
                let name = format!("{}/{}", folder, file.file_stem().unwrap().to_string_lossy());
                let module = text::parse(&src).unwrap();
                if folder.ends_with("mutants") {
                    out.push(Case { name, arch, text: src.clone() });
                    continue;
                }
                match carbyne_decompose::decompose(&module, &src, &AtomTable::new(arch)) {
                    Ok(found) => out.push(Case { name, arch, text: found.text }),
                    Err(e) => println!("{name} {arch}: {e}"),
                }
            }
        }
    }
    out
}

#[test]
fn correct_programs_are_proved() {
    let mut sum = [0; 3];
    let only = std::env::var("ONLY").unwrap_or_default();
    for case in cases().iter().filter(|c| c.name.contains(&only)) {
        let program = right(&case.text);
        let begin = Instant::now();
        let reports = reports(&program, case.arch);
        let time = begin.elapsed();
        for r in &reports {
            let counts = r.counts();
            println!("{} {}: {counts:?} {} faults {time:.0?}", case.name, case.arch, r.faults.len());
            for (a, b) in sum.iter_mut().zip(counts) {
                *a += b;
            }
            for c in complaints(&program, r).iter().take(8) {
                println!("    {c}");
            }
        }
    }
    println!("{sum:?}");
}
