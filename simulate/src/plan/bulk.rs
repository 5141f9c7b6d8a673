//! Bulk copies bound to a leaf's operands.

use super::lower::{Lowering, unknown};
use super::{Checked, Site, Source};
use crate::index::Index;
use carbyne_atoms::bulk::bulk_copy;
use carbyne_atoms::{Atom, AtomOp};
use carbyne_ir::ast::AccumulateOp;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::Dim;
use carbyne_ir::program::SpecId;

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
    /// Binds a bulk atom.
    ///
    /// # Errors
    /// `D0302`, saying in what the atom and the spec differ.
    pub(super) fn bulk(
        &mut self,
        id: SpecId,
        atom: &Atom,
        site: Site,
        inputs: &[Source],
        outputs: &[usize],
    ) -> Checked<BoundBulk> {
        let program = self.kernel.program;
        let spec = &program.specs[id];
        let refuse = |label: String, help: String| {
            Box::new(
                Diagnostic::new(
                    Code::AtomMismatch,
                    site.span,
                    format!("`{}` does not implement the spec", atom.name),
                )
                .label(label)
                .help(help),
            )
        };
        let (&[Source::View(source)], &[target], true) =
            (inputs, outputs, atom.op.spec_kind() == Some(spec.kind))
        else {
            let label = format!("it computes {}, the spec is {}", atom.op, spec.kind);
            return Err(refuse(label, "choose another atom".to_owned()));
        };
        let copy = bulk_copy(program, spec, atom).map_err(|m| refuse(m.to_string(), m.help()))?;
        if self.kernel.views[source].size != self.kernel.views[target].size {
            let label = "source and target hold different numbers of elements".to_owned();
            return Err(refuse(label, "give them one shape".to_owned()));
        }
        let boxed = match copy.boxed {
            None => None,
            Some((id, mut at)) => {
                let map = &program.maps[id];
                let mut extents = map.extents.clone();
                if !map.first_fastest {
                    at.reverse();
                    extents.reverse();
                }
                let at =
                    at.into_iter().map(|d| self.index(d, site.span)).collect::<Checked<_>>()?;
                let known =
                    |d: Dim| self.vars.constant(d).map_err(|e| unknown(site.span, "an extent", &e));
                let extents = extents.into_iter().map(known).collect::<Checked<_>>()?;
                let of_source = program.tensors[copy.source].map.is_some();
                Some(BoxPlace { of_source, at, extents })
            }
        };
        let bar = copy.bar.map(|t| self.view(t, site.span)).transpose()?;
        let mask = copy.mask.map(|m| self.index(m, site.span)).transpose()?;
        let adds = match atom.op {
            AtomOp::Accumulate(op) => Some(op),
            _ => None,
        };
        Ok(BoundBulk { source, target, boxed, bar, bytes: copy.bytes, mask, adds })
    }
}
