//! Defines [`Printer`], the state that all host functions share while they are printed (the names
//! of the caller's tensors, and of sizes), and small pieces of C++ that they have in common.

use crate::cpp::ast::{Expr, Function, Item, Piece, Stmt, StmtKind, Type, Word};
use crate::index::Indices;
use crate::namer::Namer;
use crate::scalars::storage;
use crate::{Fallible, errors};
use carbyne_ir::expr::VarId;
use carbyne_ir::program::{BufferId, Program};
use std::collections::HashMap;

/// A program, and the names of its sizes and of the caller's tensors.
pub(super) struct Printer<'a> {
    pub(super) p: &'a Program,
    pub(super) namer: Namer,
    pub(super) indices: Indices<'a>,
    /// The names of tensors and numbers.
    pub(super) passed: HashMap<BufferId, Word>,
}

impl Printer<'_> {
    /// Gives a buffer a name, and returns the element type and the name.
    pub(super) fn admit(&mut self, b: BufferId) -> (&'static str, Word) {
        let buffer = &self.p.buffers[b];
        let name = Word::from(self.namer.admit(&buffer.name, "t"));
        self.passed.insert(b, name.clone());
        (storage(buffer.scalar).cxx, name)
    }

    pub(super) fn symbol(&mut self, var: VarId) -> Fallible<Expr> {
        self.indices.variable(var).ok_or_else(|| errors::undeclared("a symbol"))
    }
}

/// A C++ string literal.
pub(super) fn quoted(text: &str) -> Expr {
    Expr::Literal(format!("\"{}\"", text.escape_default()))
}

pub(super) fn returned(value: Expr) -> Stmt {
    let pieces = vec![Piece::Text("return "), Piece::Operand(value), Piece::Text(";")];
    Stmt::new(StmtKind::Filled(pieces))
}

/// Returns a value under a condition.
pub(super) fn when(cond: Expr, value: Expr) -> Stmt {
    Stmt::new(StmtKind::If { cond, then: vec![returned(value)], otherwise: vec![] })
}

/// A function with comment lines above it; empty lines are left out.
pub(super) fn function(
    comment: &[&str],
    head: &'static str,
    name: Word,
    params: Vec<(Type, Word)>,
    body: Vec<Stmt>,
) -> Item {
    let comment = comment.iter().filter(|l| !l.is_empty()).map(|l| (*l).to_owned()).collect();
    Item::Function(Function { comment, head, name, params, body })
}
