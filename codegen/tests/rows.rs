//! Every row of every architecture prints as a leaf and compiles there.

mod common;

use carbyne_atoms::probe::{Choice, Repeat, chain, n_picks, probe};
use carbyne_atoms::{Arch, Atom, AtomOp, AtomTable};
use carbyne_codegen::nvrtc::{Emit, n_instructions};
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
    let repeat = Repeat { rounds: 4, times: 8 };
    let mut n = 0;
    for row in table.rows() {
        let Ok(made) = chain(row, &table, 64, repeat) else { continue };
        let program = common::resolve(&made.text);
        let printed = print_clocked(&[(&program, program.kernels[0])], &table);
        let (source, kernels) = printed.unwrap_or_else(|e| panic!("{}: {e:#?}", row.name));
        assert_eq!(source.matches("clock64()").count(), 2, "{source}");
        let kernel = CudaKernel { source, ..kernels[0].clone() };
        common::compile_as(&kernel, Arch::Sm90a, Emit::Ptx);
        n += 1;
    }
    assert!(n > 100, "{n} chains");
}
