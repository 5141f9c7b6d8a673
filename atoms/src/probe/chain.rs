//! Writes chains: programs that execute an atom on its own results again and again.
//! `carbyne atoms calibrate` measures the atom's cost with them.

use super::choice::{Choice, Repeat};
use super::operand::ProbeOperand;
use super::outcome::{Probe, Unobservable};
use super::tile;
use super::writer::{Writer, literal_of, mine, own_attributes, spec};
use crate::atom::{Atom, AtomOp, AtomOperand, Extent, OperandAccess};
use crate::table::AtomTable;
use carbyne_ir::ast::{Key, Operand, Spec, SpecKind, Stmt, StmtKind, Unroll, View, ViewOp};
use carbyne_ir::build::Tensor;
use carbyne_ir::build::statements::{counted, literal, word};
use carbyne_ir::scalar::Memory;

/// A program of one block that executes an atom repeatedly, each time on its previous result, in
/// the only loop of the kernel. It is for timing; the results have no meaning. The last tensor,
/// `%cycles`, has two numbers per warp. The program does not write it; the timing harness does.
///
/// # Errors
/// [`Unobservable`].
pub fn chain(
    atom: &Atom,
    table: &AtomTable,
    threads: i64,
    repeat: Repeat,
) -> Result<Probe, Unobservable> {
    let immediate = atom.visibility.is_immediate();
    let registers = |o: &AtomOperand| o.allows(Memory::Rf);
    let chained = atom
        .reads()
        .find(|r| atom.writes().any(|w| w.access == OperandAccess::ReadWrite || continues(r, w)));
    let nothing = atom.op == AtomOp::Init || chained.is_none();
    let tiles = atom.op.spec_kind().is_some() && atom.extent == Extent::Tile;
    if !immediate || nothing || !tiles || !atom.operands.iter().all(registers) {
        return Err(Unobservable::NoChain);
    }
    let choice = Choice { threads, give_back: true, ..Choice::default() };
    let kernel = format!("chain_{}_{}_{threads}", atom.name.replace('.', "_"), repeat.times);
    tile::tile_probe(atom, table, choice, kernel, Some(repeat))
}

/// Whether the operand `read` can read the value that the atom wrote as `write`.
fn continues(read: &AtomOperand, write: &AtomOperand) -> bool {
    let held = |o: &AtomOperand| (o.elem, o.n_values());
    read.access == OperandAccess::Read
        && write.access == OperandAccess::Write
        && held(read) == held(write)
}

impl Writer<'_> {
    /// The loop that executes the atom repeatedly on its previous result.
    pub(super) fn rounds(&self, operands: &[ProbeOperand], repeat: Repeat) -> Stmt {
        let mut reads: Vec<Tensor> =
            operands.iter().filter(|o| o.access == OperandAccess::Read).map(mine).collect();
        // Reading three registers of one register bank takes several cycles. Factors of one type
        // share a register.
        if let (1, [a, b]) = (self.atom.group, &mut reads[..])
            && operands.iter().any(|o| o.access == OperandAccess::ReadWrite)
        {
            b.clone_from(a);
        }
        let accumulator = operands.iter().find(|o| o.access == OperandAccess::ReadWrite).map(mine);
        let next =
            |r: &&AtomOperand| r.divisor.is_none() && self.atom.writes().any(|w| continues(r, w));
        // The last operand: if the dividend changed and the divisor did not, the compiler would
        // compute the reciprocal only once.
        let continued = self.atom.reads().filter(next).last();
        let own = |o: &AtomOperand| Tensor::of(o.name).then(ViewOp::Mine);
        let write = accumulator.or(continued.map(own));
        let kind = self.atom.op.spec_kind().unwrap_or(SpecKind::Generic);
        let leaf = |_| {
            let mut made = reads.iter();
            let read = self.atom.operands.iter().filter(|o| o.access == OperandAccess::Read);
            let reads = read.filter_map(|o| match literal_of(self.atom, o) {
                Some(n) => Some(literal(&n.to_string())),
                None => made.next().map(|t| Operand::View(t.into())),
            });
            let reads = reads.collect();
            let writes = write.iter().map(View::from).collect();
            let mut attrs = own_attributes(self.atom.op);
            attrs.push(word(Key::Atom, self.atom.name));
            Stmt::new(StmtKind::Spec(Spec { attrs, ..spec(kind, &self.who(), reads, writes) }))
        };
        counted("r", (0, repeat.rounds), Unroll::Never, (0..repeat.times).map(leaf).collect())
    }
}
