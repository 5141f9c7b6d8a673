//! Strategies: how a kernel-level spec gets its dataflow.
//!
//! A strategy is a file: what it does, when it applies, its law. It yields tile-level text with open
//! layouts; the solver does the rest. What it chose is printed as attributes that can be pinned.

mod blocks;
mod in_place;
pub(crate) mod matmul;
pub(crate) mod movement;
pub(crate) mod reduction;
mod tiling;

use crate::names::Names;
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::{SpecKind, Stmt};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{Program, SpecId};

/// What replaces a kernel-level spec.
#[derive(Clone, Debug, Default)]
pub(crate) struct Planned {
    /// Declarations, and the spec with its body.
    pub stmts: Vec<Stmt>,
    /// What may not be as wanted.
    pub warnings: Vec<Diagnostic>,
}

/// The dataflow of a kernel-level spec.
///
/// # Errors
/// That no strategy applies, and why; pins that cannot hold.
pub(crate) fn apply(
    p: &Program,
    id: SpecId,
    stmt: &Stmt,
    table: &AtomTable,
    names: &mut Names,
) -> Result<Planned, Box<Diagnostic>> {
    let spec = &p.specs[id];
    let planned = match spec.kind {
        SpecKind::MatMul | SpecKind::MatMulSet => matmul::apply,
        SpecKind::Move => movement::apply,
        SpecKind::Reduction(_) => reduction::apply,
        kind @ (SpecKind::Accumulate(_)
        | SpecKind::Unary(_)
        | SpecKind::Binary(_)
        | SpecKind::Select
        | SpecKind::Shfl(_)
        | SpecKind::Init
        | SpecKind::Iota
        | SpecKind::Generic) => {
            let message = format!("no strategy decomposes a kernel-level {kind} yet");
            let help =
                "write its body: tiles, Moves and leaves; the solver fills in layouts and atoms";
            return Err(Box::new(Diagnostic::new(Code::NoStrategy, spec.span, message).help(help)));
        }
    };
    in_place::check(p, id)?;
    planned(p, id, stmt, table, names)
}
