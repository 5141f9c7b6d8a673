//! Chains: programs that execute an atom on its own results, to be timed.

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

/// A program of one block that executes an atom again and again, each time on what it gave before,
/// in the only loop of the kernel. It is to be timed; its results mean nothing. The last tensor,
/// `%cycles`, has two numbers a warp for whoever times it, and is not written by the program.
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
    tile::written(atom, table, choice, kernel, Some(repeat))
}

/// Whether what is written may be read again as that operand.
fn continues(read: &AtomOperand, write: &AtomOperand) -> bool {
    let held = |o: &AtomOperand| (o.elem, o.n_values());
    read.access == OperandAccess::Read
        && write.access == OperandAccess::Write
        && held(read) == held(write)
}

impl Writer<'_> {
    /// The atom again and again, on what it gave before.
    pub(super) fn rounds(&self, operands: &[ProbeOperand], repeat: Repeat) -> Stmt {
        let mut reads: Vec<Tensor> =
            operands.iter().filter(|o| o.access == OperandAccess::Read).map(mine).collect();
        // Three registers of one bank would be read one after the other: factors that are alike
        // share one.
        if let (1, [a, b]) = (self.atom.group, &mut reads[..])
            && operands.iter().any(|o| o.access == OperandAccess::ReadWrite)
        {
            b.clone_from(a);
        }
        let accumulator = operands.iter().find(|o| o.access == OperandAccess::ReadWrite).map(mine);
        let next =
            |r: &&AtomOperand| r.divisor.is_none() && self.atom.writes().any(|w| continues(r, w));
        // The last: the reciprocal of a divisor that stays the same would be made once.
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
