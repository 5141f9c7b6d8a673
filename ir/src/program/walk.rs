//! Iterates over the statements of a program and the statements inside them, in text order. Finds
//! the leaves of a spec, the spec or buffer that a statement of the syntax tree became, and the
//! place in the source program (`loc=`) that a diagnostic is about.
//!
//! Invariant: the iteration does not recurse, so that programs of any depth are safe.

use super::{BufferId, Program, SpecId, Stmt, StmtKind};
use crate::ast::NodeKey;
use crate::diag::Diagnostic;
use crate::span::Span;
use std::collections::HashMap;

/// A step of a [`Walk`].
#[derive(Copy, Clone, Debug)]
pub enum Step<'p> {
    /// A statement, before the statements inside it.
    Enter(&'p Stmt),
    /// The statement again, after the statements inside it.
    Leave(&'p Stmt),
}

/// An iterator over statements and the statements inside them: bodies of specs and loops, and both
/// branches of conditions. It follows the text order.
#[derive(Clone, Debug)]
pub struct Walk<'p> {
    program: &'p Program,
    todo: Vec<Step<'p>>,
    /// The length of `todo` without the statements inside the last one.
    kept: usize,
    around: Vec<&'p Stmt>,
}

impl<'p> Walk<'p> {
    /// Skips the statements inside the one that was entered last.
    pub fn skip_inside(&mut self) {
        self.todo.truncate(self.kept);
    }

    /// The statements around the one that was entered last, outermost first, followed by itself.
    pub fn around(&self) -> &[&'p Stmt] {
        &self.around
    }

    /// Only the statements, each before those inside it.
    pub fn stmts(self) -> impl Iterator<Item = &'p Stmt> {
        self.filter_map(|step| match step {
            Step::Enter(stmt) => Some(stmt),
            Step::Leave(_) => None,
        })
    }

    /// Only the specs, each before those inside it.
    pub fn specs(self) -> impl Iterator<Item = SpecId> {
        self.stmts().filter_map(|stmt| match stmt.kind {
            StmtKind::Spec(id) => Some(id),
            _ => None,
        })
    }
}

impl<'p> Iterator for Walk<'p> {
    type Item = Step<'p>;

    fn next(&mut self) -> Option<Step<'p>> {
        let step = self.todo.pop()?;
        self.kept = self.todo.len();
        match step {
            Step::Enter(stmt) => {
                self.around.push(stmt);
                self.todo.push(Step::Leave(stmt));
                self.kept = self.todo.len();
                let (first, second) = self.program.inside(stmt);
                self.todo.extend(first.iter().chain(second).rev().map(Step::Enter));
            }
            Step::Leave(_) => drop(self.around.pop()),
        }
        Some(step)
    }
}

impl Program {
    /// A traversal of these statements of the program.
    pub fn walk<'p>(&'p self, stmts: &'p [Stmt]) -> Walk<'p> {
        let todo: Vec<Step<'p>> = stmts.iter().rev().map(Step::Enter).collect();
        Walk { program: self, kept: todo.len(), todo, around: vec![] }
    }

    /// A traversal of the body of a spec; empty without a body.
    pub fn walk_body(&self, spec: SpecId) -> Walk<'_> {
        self.walk(self.specs[spec].body.as_deref().unwrap_or(&[]))
    }

    /// The spec of each statement of the syntax tree.
    pub fn specs_by_node(&self) -> HashMap<NodeKey, SpecId> {
        self.specs.iter().map(|(id, spec)| (spec.node.key(), id)).collect()
    }

    /// The buffer that each statement of the syntax tree declares.
    pub fn buffers_by_node(&self) -> HashMap<NodeKey, BufferId> {
        self.buffers.iter().map(|(id, buffer)| (buffer.node.key(), id)).collect()
    }

    /// Adds a note with the place in the source program to a diagnostic. If the main place has
    /// none, the first related place with one is used: an error about a kernel may point at a
    /// statement of its body.
    #[must_use]
    pub fn noted(&self, mut d: Diagnostic) -> Diagnostic {
        let mut places = std::iter::once(d.span).chain(d.related.iter().map(|(at, _)| *at));
        if let Some(loc) = places.find_map(|at| self.origin(at)) {
            d.comes_from(loc);
        }
        d
    }

    /// The `loc=` of the innermost spec around a place that has one. `None` if statements from
    /// different places share this span, as those of an imported file do.
    fn origin(&self, of: Span) -> Option<&str> {
        let holds = |at: Span| !of.is_nowhere() && at.start <= of.start && of.end <= at.end;
        let mut found = None;
        let mut at: Option<Span> = None;
        let mut is_one = true;
        for &kernel in &self.kernels {
            if holds(self.specs[kernel].span) {
                found = self.specs[kernel].loc();
            }
            let mut walk = self.walk_body(kernel);
            while let Some(step) = walk.next() {
                let Step::Enter(stmt) = step else { continue };
                if !holds(stmt.span) {
                    continue;
                }
                let own = walk.around().iter().rev().find_map(|s| match s.kind {
                    StmtKind::Spec(id) => self.specs[id].loc(),
                    _ => None,
                });
                let own = own.or(self.specs[kernel].loc());
                let is_here = at.is_some_and(|at| at.is_at(stmt.span));
                is_one = !is_here || is_one && (own.is_none() || found.is_none() || own == found);
                at = Some(stmt.span);
                found = own.or(found);
            }
        }
        found.filter(|_| is_one)
    }

    /// The statements directly inside a statement: the body of a spec or loop, or both branches of
    /// a condition.
    pub fn inside<'p>(&'p self, stmt: &'p Stmt) -> (&'p [Stmt], &'p [Stmt]) {
        match &stmt.kind {
            StmtKind::Spec(id) => (self.specs[*id].body.as_deref().unwrap_or(&[]), &[]),
            StmtKind::For { body, .. } => (body, &[]),
            StmtKind::If { then, otherwise, .. } => (then, otherwise),
            StmtKind::Allocate(_)
            | StmtKind::Indices(_)
            | StmtKind::Element { .. }
            | StmtKind::Step { .. }
            | StmtKind::Barrier(_)
            | StmtKind::Sync(_) => (&[], &[]),
        }
    }

    /// The specs without a body inside a spec, in text order, each with its enclosing specs,
    /// outermost first. If the spec has no body, only the spec itself.
    pub fn leaves(&self, spec: SpecId) -> Vec<(SpecId, Vec<SpecId>)> {
        if self.specs[spec].body.is_none() {
            return vec![(spec, vec![])];
        }
        let (mut out, mut around) = (vec![], vec![spec]);
        for step in self.walk_body(spec) {
            match step {
                Step::Enter(Stmt { kind: StmtKind::Spec(id), .. }) => {
                    if self.specs[*id].body.is_none() {
                        out.push((*id, around.clone()));
                    }
                    around.push(*id);
                }
                Step::Leave(Stmt { kind: StmtKind::Spec(_), .. }) => drop(around.pop()),
                _ => {}
            }
        }
        out
    }
}
