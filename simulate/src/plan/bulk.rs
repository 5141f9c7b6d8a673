//! Bulk copies bound to a leaf's operands.

use super::lower::{Lowering, unknown};
use super::{Checked, Source};
use crate::index::Index;
use carbyne_atoms::bulk::BulkCopy;
use carbyne_atoms::{Atom, AtomOp};
use carbyne_ir::ast::AccumulateOp;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::Dim;
use carbyne_ir::span::Span;

/// A copy of all that the operands hold, by one thread.
pub(crate) struct BoundBulk {
    /// The view that is read.
    pub source: usize,
    /// The view that is written.
    pub target: usize,
    /// The box, where one side is a tensor map's.
    pub boxed: Option<BoxPlace>,
    /// The mbarrier that counts the bytes.
    pub bar: Option<usize>,
    /// The number of bytes copied.
    pub bytes: i64,
    /// Blocks of the cluster that get them, one bit each.
    pub mask: Option<Index>,
    /// The operation that accumulates into the target; none where the copy replaces it.
    pub adds: Option<AccumulateOp>,
}

/// Where a box is in its tensor. Modes are in the order of the text.
pub(crate) struct BoxPlace {
    /// Whether the map is the source's; else it is the target's.
    pub of_source: bool,
    /// Coordinates of its first element.
    pub at: Vec<Index>,
    /// Extents of the tensor.
    pub extents: Vec<i64>,
}

impl Lowering<'_, '_> {
    /// Places what a bulk atom copies.
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
            let message = format!("`{}` copies one tensor to another of its size", atom.name);
            let d = Diagnostic::new(Code::AtomMismatch, span, message);
            return Err(Box::new(d.help("give source and target one shape")));
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
        Ok(BoundBulk { source, target, boxed, bar, bytes: copy.bytes, mask, adds })
    }
}
