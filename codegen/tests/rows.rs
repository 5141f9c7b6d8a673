//! Every row of every architecture prints as a leaf and compiles there.

mod common;

use carbyne_atoms::probe::{Choice, n_picks, probe};
use carbyne_atoms::{Arch, Atom, AtomOp, AtomTable};
use carbyne_codegen::nvrtc::Emit;

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

/// Instructions of the kernel's machine code, those left out that only fill it up.
fn n_instructions(cubin: &[u8]) -> usize {
    let number = |at: usize, bytes: usize| {
        cubin[at..at + bytes].iter().rev().fold(0usize, |n, b| n << 8 | usize::from(*b))
    };
    // ELF, 64 bits: the table of sections, of which those with instructions are counted.
    let (table, n_sections) = (number(0x28, 8), number(0x3c, 2));
    let mut n = 0;
    for section in (0..n_sections).map(|i| table + 64 * i) {
        let (kind, flags) = (number(section + 4, 4), number(section + 8, 8));
        if kind == 1 && flags & 4 != 0 {
            let (from, bytes) = (number(section + 0x18, 8), number(section + 0x20, 8));
            // From Volta on an instruction takes 16 bytes; that which does nothing has this number.
            n +=
                (from..from + bytes).step_by(16).filter(|i| number(*i, 2) & 0xfff != 0x918).count();
        }
    }
    n
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
                Some(n_instructions(&common::compile_as(&kernel, arch, Emit::Cubin)?.cubin))
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
