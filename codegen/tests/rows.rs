//! Every row of every architecture prints as a leaf and compiles there.

mod common;

use carbyne_atoms::probe::{Choice, Repeat, chain, n_picks, probe};
use carbyne_atoms::{Arch, Atom, AtomOp, AtomTable};
use carbyne_codegen::nvrtc::{Emit, Options, n_instructions};
use carbyne_codegen::testing::require_nvrtc;
use carbyne_codegen::{CudaKernel, print_clocked, print_kernels};
use carbyne_ir::program::Program;
use std::sync::Arc;

/// A program that executes the row.
fn text_of(row: &Atom, table: &AtomTable, pick: usize, give_back: bool) -> String {
    let made = probe(row, table, Choice { pick, give_back, ..Choice::default() });
    made.unwrap_or_else(|e| panic!("{}: {e}", row.name)).text
}

/// Compiles programs of one kernel each, many at a time; none without NVRTC. Answers are in their order: the
/// kernel's name and the machine code that it is in.
fn compiled(texts: &[String], table: &AtomTable) -> Option<Vec<(String, Arc<Vec<u8>>)>> {
    let nvrtc = require_nvrtc()?;
    let mut out = vec![];
    for batch in texts.chunks(32) {
        let programs: Vec<Program> = batch.iter().map(|t| common::resolve(t)).collect();
        let kernels: Vec<_> = programs.iter().map(|p| (p, p.kernels[0])).collect();
        let (source, kernels) =
            print_kernels(&kernels, table).unwrap_or_else(|e| panic!("{}: {e:#?}", table.arch));
        let name = table.arch.nvrtc_name();
        let made = nvrtc.compile(&source, name, Emit::Cubin, &Options::default());
        let made = made.unwrap_or_else(|d| panic!("{name}: {d}\n{}\n{source}", d.notes.join("\n")));
        let cubin = Arc::new(made.cubin);
        out.extend(kernels.into_iter().map(|k| (k.name, Arc::clone(&cubin))));
    }
    Some(out)
}

#[test]
fn every_row_compiles() {
    for &arch in Arch::ALL {
        let table = AtomTable::new(arch);
        let picks = |row| (0..n_picks(row)).map(move |pick| (row, pick));
        let texts: Vec<String> = table
            .rows()
            .iter()
            .flat_map(picks)
            .map(|(row, pick)| text_of(row, &table, pick, false))
            .collect();
        let Some(kernels) = compiled(&texts, &table) else { return };
        assert!(kernels.len() >= table.rows().len(), "{arch}");
        for (kernel, cubin) in kernels {
            assert!(n_instructions(&cubin, &kernel).is_some_and(|n| n > 0), "{arch} {kernel}");
        }
    }
}

/// The program without the row: its operands come and go.
fn idle(row: &Atom, table: &AtomTable) -> String {
    let leaf = format!(" atom={}", row.name);
    let text = text_of(row, table, 0, true).replace("@probe_", "@idle_");
    text.lines().filter(|l| !l.ends_with(&leaf)).map(|l| format!("{l}\n")).collect()
}

#[test]
fn rows_are_emulated_where_the_table_says_so() {
    for &arch in Arch::ALL {
        let table = AtomTable::new(arch);
        let of_units = |r: &&Atom| matches!(r.op, AtomOp::MatMul { .. }) && r.is_collective();
        let rows: Vec<&Atom> = table.rows().iter().filter(of_units).collect();
        let both = |r: &&Atom| [text_of(r, &table, 0, true), idle(r, &table)];
        let texts: Vec<String> = rows.iter().flat_map(both).collect();
        let Some(kernels) = compiled(&texts, &table) else { return };
        for (row, pair) in rows.iter().zip(kernels.chunks(2)) {
            let n = |i: usize| n_instructions(&pair[i].1, &pair[i].0).unwrap() as i64;
            // A unit takes one to four steps for a row.
            let own = n(0) - n(1);
            assert!(own > 0, "{arch} {}: nothing is left of it", row.name);
            assert_eq!(row.cost.emulated, own > 6, "{arch} {}: {own} instructions", row.name);
        }
    }
}

#[test]
fn chains_compile_with_clocks_around_them() {
    let table = AtomTable::new(Arch::Sm90a);
    let Some(nvrtc) = require_nvrtc() else { return };
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
