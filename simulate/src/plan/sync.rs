//! Binds a synchronization statement, such as `mbarrier.wait`, to its atom. The atom states whether
//! the architecture has the statement, which number it takes, and how many threads execute it
//! together.

use super::lower::Lowering;
use super::{Checked, SyncNode};
use carbyne_atoms::SyncForm;
use carbyne_ir::program::Sync;
use carbyne_ir::span::Span;

impl Lowering<'_, '_> {
    /// Binds a statement.
    ///
    /// # Errors
    /// `D0307` if the architecture does not have the statement, or does not support its number.
    pub(super) fn sync(&mut self, sync: &Sync, line: u32, span: Span) -> Checked<SyncNode> {
        let range = sync.number.map(|n| {
            let (lo, hi) = self.vars.bounds(n);
            (lo, hi, self.kernel.program.arena.divisor(n))
        });
        let form = SyncForm::of_stmt(self.kernel.program, sync);
        let atom =
            self.atoms.sync(sync.op, range, form).map_err(|e| Box::new(e.diagnostic(span)))?;
        let group = usize::try_from(atom.group).unwrap_or(1);
        let takes = atom.numbers.first().copied();
        // A tensor map is a hint for the hardware.
        let own = sync.tensor.filter(|t| self.kernel.program.tensors[*t].map.is_none());
        let view = own.map(|t| self.view(t, span)).transpose()?;
        let number = sync.number.map(|n| self.index(n, span)).transpose()?;
        let after = sync.after.map(|t| self.view(t, span)).transpose()?;
        let site = self.site(line, span);
        Ok(SyncNode { op: sync.op, view, number, after, takes, group, site })
    }
}
