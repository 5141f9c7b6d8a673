//! Answers questions about the definition of a strategy: its extents, and whether its kernels have
//! bodies.

use super::params;
use carbyne_ir::ast::{CmpOp, Def, Expr, ExprKind, ResultType, Stmt, StmtKind, TupleExpr};
use std::collections::BTreeSet;

/// Rows that one block may hold.
pub(super) const LONGEST: i64 = 1 << 16;

/// Whether a strategy asks that something divides an extent. Others stay what they are.
pub(super) fn is_tiled(def: &Def, name: &str) -> bool {
    let conditions = def.strategy.iter().flat_map(|strategy| &strategy.conditions);
    conditions
        .filter(|c| c.op == CmpOp::Eq)
        .any(|c| params::names(&c.lhs, name) || params::names(&c.rhs, name))
}

/// The names of the extents of a strategy.
pub(super) fn extents_of(def: &Def) -> BTreeSet<String> {
    extents(&def.inputs).union(&extents(&def.outputs)).cloned().collect()
}

/// The names of the extents in the types of operands.
pub(super) fn extents(
    operands: &[(carbyne_ir::ast::Name, Option<ResultType>)],
) -> BTreeSet<String> {
    let modes = operands.iter().filter_map(|(_, ty)| ty.as_ref()).flat_map(|ty| &ty.levels);
    let named = modes.flat_map(|level| &level.modes).filter_map(|mode| match mode {
        TupleExpr::Leaf(Expr { kind: ExprKind::Name(name), .. }) => Some(name.clone()),
        _ => None,
    });
    named.collect()
}

/// Whether a strategy has several kernels, none of which has a body.
pub(super) fn is_apart(def: &Def) -> bool {
    let bodies = |s: &Stmt| matches!(&s.kind, StmtKind::Spec(spec) if spec.body.is_some());
    let several = def.strategy.as_ref().is_some_and(|s| s.exec.is_none());
    several && !def.body.stmts.iter().any(bodies)
}
