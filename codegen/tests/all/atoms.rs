//! Tests that every atom is printed and compiles. Also tests that tensor-core MatMuls on registers
//! are emulated by many machine instructions exactly where the table says so, and that chains of
//! atoms of sm_90a compile with clocks. A normal run compiles an atom for one random architecture,
//! and takes a quarter of the atoms that differ only in the number of columns; a full run covers
//! all.

use crate::support;
use carbyne_atoms::probe::{Choice, Repeat, Unobservable, chain, n_picks, probe};
use carbyne_atoms::testing::drawn;
use carbyne_atoms::{Arch, Atom, AtomOp, AtomTable, BarrierScope, docs};
use carbyne_codegen::nvrtc::{Compiled, Emit, Options, n_instructions};
use carbyne_codegen::testing::require_nvrtc;
use carbyne_codegen::{CudaKernel, print_clocked, print_kernels};
use carbyne_ir::ast::visit::{Rewriter, rewrite};
use carbyne_ir::ast::{Expr, Key, Name, Stmt, StmtKind};
use carbyne_ir::build::statements::word;
use carbyne_ir::program::Program;
use carbyne_ir::scalar::Memory;
use carbyne_ir::{testing, text};
use std::sync::Arc;

/// A program that executes the atom. If the atom has no probe, the kernel is numbered.
fn text_of(atom: &Atom, table: &AtomTable, choice: Choice, number: usize) -> String {
    match probe(atom, table, choice) {
        Ok(made) => made.text,
        Err(Unobservable::Statement(_) | Unobservable::Shadowed(_)) => {
            let name = format!("statement{number}");
            match atom.op {
                AtomOp::Sync(op) => statement(&name, &with_numbers(atom, op.usage())),
                AtomOp::Barrier(scope) => statement(&name, barrier(scope)),
                AtomOp::Elect => statement(&name, "fence.async").replace(
                    "<<<#grid, #cta>>> (%b)",
                    "<<<#grid, #cta.tile([32])[1].elect()>>> (%b)",
                ),
                op => panic!("{op} is no statement"),
            }
        }
        Err(e) => panic!("{}: {e}", atom.name),
    }
}

/// Compiles programs of one kernel each, in batches; none without NVRTC. Returns for each program
/// the name of the kernel and the output of its batch.
pub(crate) fn compiled(
    texts: &[String],
    table: &AtomTable,
) -> Option<Vec<(String, Arc<Compiled>)>> {
    let nvrtc = require_nvrtc()?;
    let mut out = vec![];
    for batch in texts.chunks(32) {
        let programs: Vec<Program> = batch.iter().map(|t| support::resolve(t)).collect();
        let kernels: Vec<_> = programs.iter().map(|p| (p, p.kernels[0])).collect();
        let (source, kernels) = print_kernels(&kernels, table, None)
            .unwrap_or_else(|e| panic!("{}: {e:#?}", table.arch));
        let name = table.arch.nvrtc_name();
        let made = nvrtc.compile(&source, name, Emit::Cubin, &Options::default());
        let made = made.unwrap_or_else(|d| panic!("{name}: {d}\n{}\n{source}", d.notes.join("\n")));
        let made = Arc::new(made);
        out.extend(kernels.into_iter().map(|k| (k.name, Arc::clone(&made))));
    }
    Some(out)
}

#[test]
fn every_atom_compiles() {
    for &arch in Arch::ALL {
        let table = AtomTable::new(arch);
        let tables = [table.clone()];
        let mut texts = vec![];
        for series in docs::series(&tables) {
            if !drawn(series.atoms[0].name, arch) {
                continue;
            }
            for (i, atom) in series.atoms.iter().enumerate() {
                if i > 0 && !testing::one_in(4, atom.name) {
                    continue;
                }
                // Among atoms that differ only in the number of columns, the first one is compiled
                // with every choice.
                let n = if i == 0 { n_picks(atom) } else { 1 };
                let sets: &[bool] = if atom.sets && i == 0 { &[false, true] } else { &[false] };
                for (pick, set) in (0..n).flat_map(|pick| sets.iter().map(move |set| (pick, *set)))
                {
                    let choice = Choice { pick, set, ..Choice::default() };
                    let text = text_of(atom, &table, choice, texts.len());
                    if !texts.contains(&text) {
                        texts.push(text);
                    }
                }
            }
        }
        let Some(kernels) = compiled(&texts, &table) else { return };
        for (kernel, made) in &kernels {
            let n = n_instructions(&made.cubin, kernel);
            assert!(n.is_some_and(|n| n > 0), "{arch} {kernel}");
        }
        for (_, made) in kernels.iter().step_by(32) {
            assert_eq!(support::injected_waits(made, "probe"), [""; 0], "{arch}");
            assert_eq!(support::faults(made), [""; 0], "{arch}");
        }
    }
}

fn barrier(scope: BarrierScope) -> &'static str {
    match scope {
        BarrierScope::Block => "barrier",
        BarrierScope::Warp => "barrier(#cta.tile([32])[0])",
        BarrierScope::Lanes => "barrier(#cta.tile([8])[1])",
        BarrierScope::Warps => "barrier(#cta.tile([64])[1])",
    }
}

/// The statement with the smallest number that the atom takes.
fn with_numbers(atom: &Atom, mut usage: String) -> String {
    for n in &atom.numbers {
        let least = (n.least + n.multiple - 1) / n.multiple * n.multiple;
        usage = usage.replace(&format!("{})", n.name), &format!("{least})"));
    }
    usage
}

/// A kernel with a name and one statement.
fn statement(name: &str, usage: &str) -> String {
    let threads = usage.strip_prefix("barrier(").and_then(|u| u.strip_suffix(')'));
    let threads = threads.unwrap_or("#cta");
    format!(
        "carbyne 2\n%X:[64].f32.GL\n#grid:[1].block\n#cta:[128].thread\n\
         Spec @{name} <<<#grid, #cta>>> (%X) -> () {{\n  Allocate %b:[1].mbarrier.SH\n  \
         %map = %X.tensormap([16])\n  \
         Spec <<<#grid, {threads}>>> (%b) -> () {{\n    {usage}\n  }}\n}}\n"
    )
}

/// The program with the atom; it loads and stores all operands of the atom.
fn kept(atom: &Atom, table: &AtomTable) -> String {
    text_of(atom, table, Choice { give_back: true, ..Choice::default() }, 0)
}

/// The program without the atom; it loads and stores the same operands.
fn idle(atom: &Atom, table: &AtomTable) -> String {
    struct Idle<'a>(&'a Atom);
    impl Rewriter for Idle<'_> {
        fn leave(&mut self, stmt: Stmt, out: &mut Vec<Stmt>) {
            let atom = word(Key::Atom, self.0.name);
            let is = match &stmt.kind {
                StmtKind::Spec(s) => s.attrs.iter().any(|a| a.value == atom.value),
                _ => false,
            };
            // A body must not be empty.
            let idle = || Stmt::new(StmtKind::Let(vec![(Name::new("idle"), Expr::int(0))]));
            out.push(if is { idle() } else { stmt });
        }
    }
    let text = kept(atom, table).replace("@probe", "@idle");
    let mut module = text::parse(&text).unwrap_or_else(|e| panic!("{e:#?}"));
    module.items = rewrite(std::mem::take(&mut module.items), &mut Idle(atom));
    text::print(&module)
}

#[test]
fn atoms_are_emulated_where_the_table_says_so() {
    for &arch in Arch::ALL {
        let table = AtomTable::new(arch);
        // No software emulation exists for those that read shared memory.
        let registers = |r: &Atom| r.operands.iter().all(|o| o.allows(Memory::Rf));
        let of_units =
            |r: &&Atom| matches!(r.op, AtomOp::MatMul { .. }) && r.is_collective() && registers(r);
        let atoms: Vec<&Atom> = table.atoms().iter().filter(of_units).collect();
        let both = |r: &&Atom| [kept(r, &table), idle(r, &table)];
        let texts: Vec<String> = atoms.iter().flat_map(both).collect();
        let Some(kernels) = compiled(&texts, &table) else { return };
        for (atom, pair) in atoms.iter().zip(kernels.chunks(2)) {
            let n = |i: usize| n_instructions(&pair[i].1.cubin, &pair[i].0).unwrap() as i64;
            // A hardware unit takes one to four steps for an atom.
            let own = n(0) - n(1);
            assert!(own > 0, "{arch} {}: nothing is left of it", atom.name);
            assert_eq!(atom.cost.emulated, own > 6, "{arch} {}: {own} instructions", atom.name);
        }
    }
}

#[test]
fn chains_compile_with_clocks_around_them() {
    let table = AtomTable::new(Arch::Sm90a);
    let Some(nvrtc) = require_nvrtc() else { return };
    let mut chains = vec![];
    for atom in table.atoms() {
        for times in [2, 6] {
            let Ok(made) = chain(atom, &table, 1024, Repeat { rounds: 4, times }) else { continue };
            chains.push((atom, support::resolve(&made.text)));
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
        for (pair, atoms) in kernels.chunks(2).zip(batch.chunks(2)) {
            let n = |k: &CudaKernel| n_instructions(&made.cubin, &k.name).unwrap();
            // Emulation may be a subroutine.
            let atom = atoms[0].0;
            let unit = matches!(atom.op, AtomOp::MatMul { .. }) && !atom.cost.emulated;
            let more = n(&pair[1]) >= n(&pair[0]) + 4;
            assert!(more || !unit, "{} is folded", atom.name);
            grows += usize::from(more);
        }
    }
    assert!(grows > 150, "{grows} chains of {}", chains.len() / 2);
}
