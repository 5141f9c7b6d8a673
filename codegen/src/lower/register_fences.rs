//! Prints calls of a helper function whose `asm` statement is empty. They keep the C++ compiler
//! from moving accesses to registers which an asynchronous instruction (`wgmma`) still uses.
//!
//! The C++ compiler assumes that an asm statement is complete when the next one begins. It would
//! move accesses to the statement's registers to places where the hardware still uses the
//! registers. So if a statement hands registers to such instructions, or back
//! ([`carbyne_atoms::Handover`]), an empty asm statement that appears to write the registers keeps
//! accesses from moving across.

use super::helper::Helper;
use super::state::Lowering;
use crate::cpp::ast::{Expr, Stmt, StmtKind};
use crate::scalars::storage_bits;
use carbyne_atoms::AsmClass;
use carbyne_ir::program::{BufferId, SpecId};

impl Lowering<'_> {
    /// Records registers that come into scope.
    pub(super) fn declare_in_flight(&mut self, id: BufferId) {
        if self.p.buffers[id].is_per_thread() && self.asynchronous.contains(&id) {
            self.in_flight.push(id);
        }
    }

    /// `fence_registers<64>(acc);` for all registers in scope that asynchronous instructions use.
    pub(super) fn fence_registers(&mut self) -> Vec<Stmt> {
        let mut stmts = vec![];
        for id in self.in_flight.clone() {
            let (Some(stored), Some(cosize)) =
                (self.buffers.get(&id), self.p.buffers[id].cosize.as_const())
            else {
                continue;
            };
            let own = stored.storage.cxx == AsmClass::F.cxx();
            let words = stored.words.iter().find(|(class, _)| *class == AsmClass::R);
            let Some(name) = (if own { Some(&stored.name) } else { words.map(|(_, name)| name) })
            else {
                continue;
            };
            let n = cosize.saturating_mul(storage_bits(stored.scalar)) / AsmClass::R.bits();
            let call = Expr::call(format!("fence_registers<{n}>"), [Expr::name(name.clone())]);
            stmts.push(Stmt::new(StmtKind::Expr(call)));
            self.helpers.insert(Helper::FenceRegisters);
        }
        stmts
    }

    /// The buffers of a leaf that its atom uses after the statement.
    pub(super) fn asynchronous_of(&self, id: SpecId) -> Vec<BufferId> {
        let spec = &self.p.specs[id];
        let atom = spec.atom.as_deref().and_then(|name| self.atoms.get(name));
        if !atom.is_some_and(|a| a.visibility.holds_registers()) {
            return vec![];
        }
        let operands = spec.input_tensors().chain(spec.outputs.iter().copied());
        operands.map(|t| self.p.tensors[t].buffer).collect()
    }
}
