//! Refuses kernels that cannot be decomposed as they stand. Before the search, it refuses pins
//! without effect, atoms that the architecture lacks, and counters and loops that end early in
//! kernels that are not atomic. After the search, it refuses kernels that need too much shared
//! memory ([`fits`]).

use carbyne_atoms::{AtomTable, smem};
use carbyne_ir::ast::Key;
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::program::{self, Program, SpecId};

/// Refuses pins that would say nothing: `tile=` where the operands are one tile already, and `by=`
/// beside a body without atoms. Beside atoms, `by=` records the strategy that made the body.
pub(super) fn no_idle_pins(p: &Program) -> Result<(), Diagnostics> {
    let named = |id: &SpecId| {
        let mut inside = p.walk_body(*id).stmts();
        inside
            .any(|s| matches!(&s.kind, program::StmtKind::Spec(id) if p.specs[*id].atom.is_some()))
    };
    let by_hand = p.kernels.iter().filter(|id| p.specs[**id].body.is_some() && !named(id));
    let strategies = by_hand.filter_map(|id| p.specs[*id].attr(Key::By)).map(|attr| {
        Diagnostic::new(Code::PinsConflict, attr.name.span, "`by=` is not allowed beside a body")
            .label("a strategy would write the body")
            .help("remove `by=`; or remove the body, so that the strategy writes it")
    });
    let leaves = p.specs.iter().filter(|(id, s)| s.body.is_none() && !p.kernels.contains(id));
    let errors: Diagnostics = leaves
        .filter(|(_, spec)| spec.ints(Key::Tile).is_some())
        .map(|(_, spec)| {
            let message = format!("`tile=` is not allowed at a {} in a body", spec.kind);
            Diagnostic::new(Code::PinsConflict, spec.span, message)
                .label("its operands are already one tile of a block")
                .help("remove `tile=`, and tile the operands: `%A.tile([64,32])[@i, k]`")
        })
        .chain(strategies)
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Refuses kernels with counters, or with loops that end early, that are not atomic: loops are
/// scheduled by their trip counts.
pub(super) fn no_counters(p: &Program) -> Result<(), Diagnostics> {
    let counts = |s: &program::Stmt| match &s.kind {
        program::StmtKind::Step { .. } => Some("counters"),
        program::StmtKind::For { also, .. } if !also.is_empty() => Some("loops that end early"),
        _ => None,
    };
    let is_open = |s: &program::Stmt| match &s.kind {
        program::StmtKind::Spec(id) => p.specs[*id].body.is_none() && p.specs[*id].atom.is_none(),
        program::StmtKind::Allocate(tensor) => p.buffer_of(*tensor).open,
        program::StmtKind::For { stages, .. } => *stages > 1,
        _ => false,
    };
    let mut errors = Diagnostics::default();
    for kernel in &p.kernels {
        let found = p.walk_body(*kernel).stmts().find_map(|s| Some((counts(s)?, s.span)));
        let open = p.walk_body(*kernel).stmts().find(|s| is_open(s));
        if let (Some((what, counted)), Some(open)) = (found, open) {
            errors.push(
                Diagnostic::new(
                    Code::NoStrategy,
                    open.span,
                    format!("a kernel with {what} is decomposed only if it names all of its atoms"),
                )
                .label("this is left to `decompose`")
                .related(counted, format!("the kernel has {what}"))
                .help("state layouts and atoms in this kernel, without `{?}` and `stages=`"),
            );
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Refuses pins of atoms that the architecture does not have.
pub(super) fn known_atoms(p: &Program, table: &AtomTable) -> Result<(), Diagnostics> {
    let mut errors = Diagnostics::default();
    for (_, spec) in p.specs.iter().filter(|(_, s)| s.body.is_none()) {
        let unknown = spec.atom.as_deref().and_then(|name| table.find(name).err());
        unknown.into_iter().for_each(|e| errors.push(e.diagnostic(spec)));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Refuses kernels that need more shared memory than a block can have.
pub(super) fn fits(p: &Program, table: &AtomTable) -> Result<(), Diagnostics> {
    let mut errors = Diagnostics::default();
    for kernel in &p.kernels {
        let buffers = smem::buffers(p, *kernel);
        if let Err(d) = smem::Arena::place(p, &buffers, table) {
            errors.push(*d);
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}
