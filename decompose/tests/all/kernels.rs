//! Tests kernels as people write them, `decompose/tests/kernel/*.cby`. A decomposed kernel must
//! compute its meaning and the results of the source text.
//!
//! A run tests a random third of the kernels, each for one of its architectures, on integers or on
//! random numbers; with `CARBYNE_ALL=1` it tests all of them in all ways.

use crate::support::{decomposed, resolved};
use carbyne_atoms::AtomTable;
use carbyne_ir::testing;
use carbyne_simulate::{Between, Inputs, Options, compare_with_parent, simulate};
use std::path::Path;

/// The words behind a key at the head of a text.
fn said<'t>(text: &'t str, key: &str) -> Option<Vec<&'t str>> {
    let line = text.lines().find_map(|l| l.strip_prefix("// ")?.strip_prefix(key));
    Some(line?.split_whitespace().collect())
}

/// Decomposes a text for an architecture and simulates it on these inputs. Returns the fault.
fn one(name: &str, text: &str, arch: &str, inputs: &[Inputs]) -> Result<(), String> {
    let table = AtomTable::new(arch.parse().expect("an architecture"));
    let at = |what: String| format!("{name} {arch}: {what}");
    let d = decomposed(text, &table).map_err(|e| at(format!("{:?}", e.into_vec())))?;
    let sizes = said(text, "sizes:").unwrap_or_default();
    let sizes = sizes.iter().filter_map(|s| s.split_once('='));
    let symbols: std::collections::BTreeMap<String, i64> =
        sizes.map(|(name, n)| (name.to_owned(), n.parse().expect("a number"))).collect();
    let parent = resolved(text);
    for &inputs in inputs {
        let between = Between::for_parent(&parent);
        let symbols = symbols.clone();
        let options = Options { inputs, symbols, between, ..Options::default() };
        let wrong = |e: &dyn std::fmt::Debug| at(format!("{e:?}\n{}", d.text));
        let report = simulate(&d.program, &table, &options).map_err(|e| wrong(&e))?;
        if !report.kernels.iter().all(|k| k.complete) {
            return Err(wrong(&"not all blocks ran"));
        }
        let found = (&d.program, &report);
        compare_with_parent(&parent, &table, &options, found).map_err(|e| wrong(&e))?;
    }
    Ok(())
}

#[test]
fn kernels_that_people_write() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../decompose/tests/kernel");
    let files = std::fs::read_dir(folder).expect("a folder of kernels");
    let mut paths: Vec<_> = files.map(|f| f.expect("a file").path()).collect();
    paths.sort();
    let mut wrong = vec![];
    for path in &paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if !testing::one_in(3, &name) {
            continue;
        }
        let text = std::fs::read_to_string(path).expect("a text");
        let archs = said(&text, "archs:").unwrap_or_else(|| vec!["sm_80", "sm_90a"]);
        let runs = archs.iter().flat_map(|a| [Inputs::Ints(3), Inputs::Seed(5)].map(|i| (*a, i)));
        let runs: Vec<_> = runs.collect();
        let drawn = testing::one_of(&name, &runs);
        for arch in archs {
            let inputs = drawn.iter().filter(|run| run.0 == arch).map(|run| run.1);
            let inputs: Vec<Inputs> = inputs.collect();
            if !inputs.is_empty() {
                wrong.extend(one(&name, &text, arch, &inputs).err());
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
