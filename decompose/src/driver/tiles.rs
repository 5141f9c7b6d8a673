//! Rewrites the bodies of kernels before their layouts are solved ([`tiles()`]). It calls the
//! rewrites of `lower` and `tricks` in order: clusters, approximations, roles, boxes, stages,
//! places of buffers.

use super::decomposed::Options;
use super::generated::{Generated, one};
use crate::access::kernel_level::Said;
use crate::lower::approximate;
use crate::names::Names;
use crate::plan::roles::Roles;
use crate::schedule;
use crate::tricks;
use crate::tricks::rotate::Prologues;
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::visit::Walk;
use carbyne_ir::ast::{Module, NodeKey, Stmt, StmtKind};
use carbyne_ir::diag::{Diagnostic, Diagnostics};
use carbyne_ir::program::Program;

/// How loops with stages may be written out.
#[derive(Copy, Clone, Debug)]
pub(super) struct Staging {
    /// With copies by the copy engine.
    pub(super) bulk: bool,
    /// With products of the next iteration, where that engine copies.
    pub(super) rotated: bool,
}

impl Staging {
    pub(super) const ALL: Staging = Staging { bulk: true, rotated: true };
}

/// A module of operations on tiles, and what it resolves to.
#[derive(Clone)]
pub(super) struct Tiles {
    pub(super) tree: Module,
    pub(super) program: Program,
    pub(super) roles: Roles,
    /// Whether the copy engine fills stages.
    pub(super) bulk: bool,
    /// Whether bodies of loops begin with products of the next iteration.
    pub(super) rotated: bool,
    pub(super) warnings: Vec<Diagnostic>,
}

/// Gives kernel-level specs their dataflow, loops their stages, roles their loops, and buffers
/// their places.
pub(super) fn tiles(
    generated: &Generated<'_>,
    (mut tree, mut warnings): (Module, Vec<Diagnostic>),
    mut program: Program,
    table: &AtomTable,
    names: &mut Names,
    (options, unordered, staging): (&Options, &[Diagnostic], Staging),
) -> Result<Tiles, Diagnostics> {
    let module = generated.module;
    let said = Said::of(module);
    if let Some(clustered) = tricks::clusters::apply(&tree, names).map_err(|d| one(*d))? {
        tree = clustered;
    }
    if tree != *module {
        program = generated.checked(&tree)?;
    }
    if let Some(approximated) = approximate::apply(&tree, &program, names) {
        tree = approximated;
        program = generated.checked(&tree)?;
    }
    let mut roles = Roles::default();
    if let Some(parted) = tricks::roles::apply(&tree, &program, table, names, (unordered, &said))? {
        tree = parted.module;
        program = generated.checked(&tree)?;
        roles = parted.roles;
        warnings.extend(parted.warnings);
    }
    // A view that no tensor map is made of, and what can be out of bounds, is found here.
    let machine = &options.machine(table);
    let scheduler =
        schedule::Scheduler { target: tricks::target(table, machine), find: options.find() };
    let by_boxes = |tree: &Module, program: &Program, prologues: &Prologues, names: &mut Names| {
        [false, true].into_iter().find_map(|clamped| {
            let mut own = names.clone();
            let by = (&mut own, clamped);
            let (tree, handed, producers) =
                tricks::bulk::apply(tree, program, scheduler, prologues, by)?;
            let rings = |s: &Stmt| {
                let of = matches!(s.kind, StmtKind::For { stages: Some(_), .. });
                of && prologues.contains_key(&s.id.key())
            };
            if Walk::new(&tree.items).stmts().any(rings) {
                return None;
            }
            let checked = generated.checked(&tree).ok()?;
            *names = own;
            Some((tree, checked, (handed, producers)))
        })
    };
    let mut boxes = None;
    let mut rotated = false;
    if staging.bulk && staging.rotated {
        let rotate = |loops: &[(NodeKey, tricks::rotate::Rotation)]| {
            let mut own = names.clone();
            let (tree, prologues) = tricks::rotate::apply(&tree, loops, &mut own)?;
            let program = generated.checked(&tree).ok()?;
            let found = by_boxes(&tree, &program, &prologues, &mut own)?;
            Some((found, own))
        };
        let mut loops = tricks::rotate::find(&program, scheduler);
        let mut found = rotate(&loops);
        if found.is_none() && loops.len() > 1 {
            // One that does not do leaves the others theirs.
            loops.retain(|of| rotate(std::slice::from_ref(of)).is_some());
            found = rotate(&loops);
        }
        rotated = found.is_some();
        if let Some((found, own)) = found {
            boxes = Some(found);
            *names = own;
        }
    }
    if staging.bulk && !rotated {
        boxes = by_boxes(&tree, &program, &Prologues::new(), names);
    }
    let bulk = boxes.is_some();
    if let Some((by_boxes, checked, (handed, producers))) = boxes {
        (tree, program) = (by_boxes, checked);
        let stored = tricks::stores::apply(&tree, &program, table, names, &handed);
        if let Some(stored) = stored
            && let Ok(checked) = generated.checked(&stored)
        {
            (tree, program) = (stored, checked);
        }
        roles.handed.extend(handed);
        roles.producers.extend(producers);
    }
    if let Some((staged, more)) = tricks::pipeline::apply(&tree, &program, table, names, &said) {
        tree = staged;
        program = generated.checked(&tree)?;
        warnings.extend(more);
    }
    if let Some(placed) = tricks::lifetime::apply(&tree, &program, table) {
        tree = placed;
        program = generated.checked(&tree)?;
    }
    Ok(Tiles { tree, program, roles, bulk, rotated, warnings })
}
