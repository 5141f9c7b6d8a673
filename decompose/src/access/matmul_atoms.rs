//! Selects the rows of the atom table that multiply matrices of given types: in registers
//! ([`matmul_rows`]), or with factors that descriptors locate in shared memory ([`is_described`]).

use carbyne_atoms::{Atom, AtomOp, AtomTable};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::scalar::{Memory, Scalar};

/// The rows that multiply matrices of these types in registers, most multiply-adds per cycle first.
pub(crate) fn matmul_rows(table: &AtomTable, a: Scalar, b: Scalar, acc: Scalar) -> Vec<&Atom> {
    let fits = |atom: &&Atom| {
        let AtomOp::MatMul { l: 1, .. } = atom.op else { return false };
        let scalars = [a, b, acc];
        atom.operands.len() == 3
            && atom.op.spec_kind() == Some(SpecKind::MatMul)
            && atom.operands.iter().zip(scalars).all(|(o, s)| o.is_of(s) && o.allows(Memory::Rf))
    };
    let size = |atom: &Atom| atom.op.matmul_extents().map_or(0, |(l, m, n, k)| l * m * n * k);
    let speed = |atom: &Atom| {
        let groups = 32.0 / atom.group as f64;
        size(atom) as f64 * groups / atom.cost.issue_cycles.max(1e-9)
    };
    let mut rows: Vec<&Atom> = table.implementing(SpecKind::MatMul).filter(fits).collect();
    // Groups that are no neighbors, as quad-pairs, are for where nothing else is as fast.
    let neighbors = |a: &Atom| a.thread_layout.cosize() == a.group;
    let fastest = rows.iter().filter(|a| neighbors(a)).map(|a| speed(a)).fold(0.0, f64::max);
    rows.retain(|a| neighbors(a) || speed(a) > fastest);
    rows.sort_by(|x, y| speed(y).total_cmp(&speed(x)).then(size(y).cmp(&size(x))));
    rows
}

/// Whether a row multiplies these types and is told by descriptors where the second factor lies, or
/// both.
pub(crate) fn is_described(atom: &Atom, scalars: [Scalar; 3], both: bool) -> bool {
    let [a, b, _] = &atom.operands[..] else { return false };
    b.matrix_rule().is_some()
        && a.matrix_rule().is_some() == both
        && atom.operands.iter().zip(scalars).all(|(o, s)| o.is_of(s))
}
