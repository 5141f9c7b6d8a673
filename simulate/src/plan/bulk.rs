//! Binds the atom of a bulk copy (`cp.async.bulk`) to the operands of a leaf: source and target,
//! the box of a tensor map, the mbarrier that counts the bytes, and the blocks that receive them.

use super::atom::{BoundBulk, BoxPlace};
use super::lower::Lowering;
use super::site::{Checked, Source, unknown};
use carbyne_atoms::bulk::BulkCopy;
use carbyne_atoms::{Atom, AtomOp};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::Dim;
use carbyne_ir::span::Span;

impl Lowering<'_, '_> {
    /// Binds a bulk atom to its operands.
    ///
    /// # Errors
    /// `D0302` for operands of different sizes; a symbol without a value.
    pub(super) fn bulk(
        &mut self,
        atom: &Atom,
        copy: BulkCopy,
        span: Span,
        inputs: &[Source],
        outputs: &[usize],
    ) -> Checked<BoundBulk> {
        let program = self.kernel.program;
        let sides = match (inputs, outputs) {
            (&[Source::View(source)], &[target]) => Some((source, target)),
            _ => None,
        };
        let views = &self.kernel.views;
        let same = |(source, target): &(usize, usize)| views[*source].size == views[*target].size;
        let Some((source, target)) = sides.filter(same) else {
            let message = format!("`{}` needs a source and a target of equal size", atom.name);
            let d = Diagnostic::new(Code::AtomMismatch, span, message);
            return Err(Box::new(d.help("give source and target equal shapes")));
        };
        let boxed = match copy.boxed {
            None => None,
            Some((id, mut at)) => {
                let map = &program.maps[id];
                let mut extents = map.extents.clone();
                if !map.first_fastest {
                    at.reverse();
                    extents.reverse();
                }
                let at = at.into_iter().map(|d| self.index(d, span)).collect::<Checked<_>>()?;
                let known =
                    |d: Dim| self.vars.constant(d).map_err(|e| unknown(span, "an extent", &e));
                let extents = extents.into_iter().map(known).collect::<Checked<_>>()?;
                let of_source = program.tensors[copy.source].map.is_some();
                Some(BoxPlace { of_source, at, extents })
            }
        };
        let bar = copy.bar.map(|t| self.view(t, span)).transpose()?;
        let mask = copy.mask.map(|m| self.index(m, span)).transpose()?;
        let adds = match atom.op {
            AtomOp::Accumulate(op) => Some(op),
            AtomOp::Move
            | AtomOp::MatMul { .. }
            | AtomOp::Unary(_)
            | AtomOp::Binary(_)
            | AtomOp::Select
            | AtomOp::Reduction(_)
            | AtomOp::Shfl(_)
            | AtomOp::Init
            | AtomOp::Sync(_)
            | AtomOp::Barrier(_)
            | AtomOp::Elect => None,
        };
        let order = self.kernel.views[target].by_place();
        Ok(BoundBulk { source, target, boxed, bar, bytes: copy.bytes, mask, adds, order })
    }
}
