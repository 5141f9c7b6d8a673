//! Tests that the atom table marks exactly those arithmetic atoms that ptxas compiles to calls of
//! subroutines, on sm_80 and sm_90a (in a normal run, on a random one of them). After a call, ptxas
//! may reuse the registers that hold A of a `wgmma`, so no kernel may contain both.

use crate::atoms::compiled;
use carbyne_atoms::probe::{Choice, probe};
use carbyne_atoms::{Arch, Atom, AtomOp, AtomTable};
use carbyne_codegen::testing::calls;
use carbyne_ir::scalar::Memory;
use carbyne_ir::testing;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Whether the atom computes on registers only.
fn is_arithmetic(atom: &Atom) -> bool {
    match atom.op {
        AtomOp::MatMul { .. } => atom.operands.iter().all(|o| o.allows(Memory::Rf)),
        AtomOp::Unary(_)
        | AtomOp::Binary(_)
        | AtomOp::Select
        | AtomOp::Reduction(_)
        | AtomOp::Shfl(_)
        | AtomOp::Init => true,
        AtomOp::Move
        | AtomOp::Accumulate(_)
        | AtomOp::Sync(_)
        | AtomOp::Barrier(_)
        | AtomOp::Elect => false,
    }
}

#[test]
fn atoms_become_calls_where_the_table_says_so() {
    for &arch in testing::one_of("calls", &[Arch::Sm80, Arch::Sm90a]) {
        let table = AtomTable::new(arch);
        let atoms: Vec<&Atom> = table.atoms().iter().filter(|a| is_arithmetic(a)).collect();
        let text = |a: &&Atom| {
            probe(a, &table, Choice::default()).unwrap_or_else(|e| panic!("{}: {e}", a.name)).text
        };
        let texts: Vec<String> = atoms.iter().map(text).collect();
        let Some(kernels) = compiled(&texts, &table) else { return };
        // Many kernels share one machine code.
        let mut read = BTreeMap::new();
        let mut calling = BTreeSet::new();
        for (atom, (kernel, made)) in atoms.iter().zip(&kernels) {
            let found = read.entry(Arc::as_ptr(made)).or_insert_with(|| calls(&made.cubin));
            let Some(found) = found else { return };
            if found.contains_key(kernel) {
                calling.insert(atom.name);
            }
        }
        let stated: BTreeSet<&str> = atoms.iter().filter(|a| a.calls).map(|a| a.name).collect();
        assert!(!calling.is_empty(), "{arch}: no call among {} atoms", atoms.len());
        let unstated: Vec<_> = calling.difference(&stated).collect();
        let missing: Vec<_> = stated.difference(&calling).collect();
        assert!(
            unstated.is_empty() && missing.is_empty(),
            "{arch}: calls that the table does not state: {unstated:?}; \
             stated calls that do not exist: {missing:?}"
        );
    }
}
