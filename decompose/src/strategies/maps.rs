//! Rewrites tensor maps of slices to maps of whole tensors ([`of_tensors`]). Tensor maps are made
//! before the launch, when no block has chosen its slice. So the map of a slice becomes one of the
//! tensor, with boxes of one slice each, and the block chooses its own box.

use carbyne_ir::ast::visit::{self, PartMut, parts_mut};
use carbyne_ir::ast::{Expr, Stmt, StmtKind, ViewOp};
use std::collections::BTreeMap;

/// Takes the choice of slices out of the tensors of maps and into the choice of boxes.
pub(super) fn of_tensors(stmts: &mut [Stmt]) {
    let mut slices: BTreeMap<String, Vec<Option<Expr>>> = BTreeMap::new();
    visit::each_mut(stmts, &mut |stmt| {
        if let StmtKind::DataDef { name, view, .. } = &mut stmt.kind
            && let [.., ViewOp::Index(at), ViewOp::TensorMap { sizes, .. }] = &mut view.ops[..]
            && at.iter().filter(|e| e.is_none()).count() == sizes.len()
        {
            let at = std::mem::take(at);
            let mut own = std::mem::take(sizes).into_iter();
            *sizes = at
                .iter()
                .filter_map(|e| if e.is_some() { Some(Expr::int(1)) } else { own.next() })
                .collect();
            view.ops.remove(view.ops.len() - 2);
            slices.insert(name.text.clone(), at);
            return;
        }
        parts_mut(stmt, &mut |part| {
            if let PartMut::View(view, _) = part
                && let Some(at) = slices.get(&view.base.text)
                && let Some(ViewOp::Index(boxes)) = view.ops.first_mut()
            {
                let mut own = std::mem::take(boxes).into_iter();
                *boxes = at
                    .iter()
                    .map(|e| if e.is_some() { e.clone() } else { own.next().flatten() })
                    .collect();
            }
        });
    });
}
