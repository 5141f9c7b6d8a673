//! Every row of every architecture prints as a leaf and compiles there.

mod common;

use carbyne_atoms::probe::{Choice, Repeat, chain, n_picks, probe};
use carbyne_atoms::{Arch, Atom, AtomOp, AtomTable};
use carbyne_codegen::nvrtc::{Emit, Options, n_instructions};
use carbyne_codegen::{CudaKernel, print_clocked};

/// A kernel that executes the row.
fn text_of(row: &Atom, table: &AtomTable, pick: usize, give_back: bool) -> String {
    let made = probe(row, table, Choice { pick, give_back, ..Choice::default() });
    made.unwrap_or_else(|e| panic!("{}: {e}", row.name)).text
}

#[test]
fn every_row_compiles() {
    for &arch in Arch::ALL {
        let table = AtomTable::new(arch);
        for row in table.rows() {
            for pick in 0..n_picks(row) {
                let kernel = common::kernel(&text_of(row, &table, pick, false), arch);
                // Only ptxas looks at inline PTX.
                let emit = if row.template.is_ptx() { Emit::Cubin } else { Emit::Ptx };
                common::compile_as(&kernel, arch, emit);
            }
        }
    }
}

/// The kernel without the row: its operands come and go.
fn idle(row: &Atom, table: &AtomTable) -> String {
    let leaf = format!(" atom={}", row.name);
    let text = text_of(row, table, 0, true);
    text.lines().filter(|l| !l.ends_with(&leaf)).map(|l| format!("{l}\n")).collect()
}

#[test]
fn rows_are_emulated_where_the_table_says_so() {
    for &arch in Arch::ALL {
        let table = AtomTable::new(arch);
        for row in table.rows() {
            if !(matches!(row.op, AtomOp::MatMul { .. }) && row.is_collective()) {
                continue;
            }
            let instructions = |text: String| {
                let kernel = common::kernel(&text, arch);
                n_instructions(&common::compile_as(&kernel, arch, Emit::Cubin)?.cubin, &kernel.name)
            };
            let with = instructions(text_of(row, &table, 0, true));
            let (Some(with), Some(without)) = (with, instructions(idle(row, &table))) else {
                return;
            };
            // A unit takes one to four steps for a row.
            let own = with as i64 - without as i64;
            assert!(own > 0, "{arch} {}: nothing is left of it", row.name);
            assert_eq!(row.cost.emulated, own > 6, "{arch} {}: {own} instructions", row.name);
        }
    }
}

#[test]
fn chains_compile_with_clocks_around_them() {
    let table = AtomTable::new(Arch::Sm90a);
    let Some(nvrtc) = carbyne_codegen::testing::require_nvrtc() else { return };
    let mut chains = vec![];
    for row in table.rows() {
        for times in [2, 6] {
            let Ok(made) = chain(row, &table, 1024, Repeat { rounds: 4, times }) else { continue };
            chains.push((row, common::resolve(&made.text)));
        }
    }
    let mut grows = 0;
    for batch in chains.chunks(32) {
        let programs: Vec<_> = batch.iter().map(|(_, p)| (p, p.kernels[0])).collect();
        let printed = print_clocked(&programs, &table);
        let (source, kernels) = printed.unwrap_or_else(|e| panic!("{e:#?}"));
        assert_eq!(source.matches("clock64()").count(), 2 * batch.len());
        let arch = table.arch.nvrtc_name();
        let made = nvrtc.compile(&source, arch, Emit::Cubin, &Options::default());
        let made = made.unwrap_or_else(|d| panic!("{d}\n{}", d.notes.join("\n")));
        for (pair, rows) in kernels.chunks(2).zip(batch.chunks(2)) {
            let n = |k: &CudaKernel| n_instructions(&made.cubin, &k.name).unwrap();
            // Emulation may be a subroutine.
            let row = rows[0].0;
            let unit = matches!(row.op, AtomOp::MatMul { .. }) && !row.cost.emulated;
            let more = n(&pair[1]) >= n(&pair[0]) + 4;
            assert!(more || !unit, "{} is folded", row.name);
            grows += usize::from(more);
        }
    }
    assert!(grows > 150, "{grows} chains of {}", chains.len() / 2);
}
