//! A walk through the statements of a program.
//!
//! Invariant: it does not recurse.

use super::{BufferId, Program, SpecId, Stmt, StmtKind};
use crate::ast::NodeKey;
use crate::diag::Diagnostic;
use crate::span::Span;
use std::collections::HashMap;

/// What a [`Walk`] comes to, in text order.
#[derive(Copy, Clone, Debug)]
pub enum Step<'p> {
    /// A statement, before those inside of it.
    Enter(&'p Stmt),
    /// The same, after those inside of it.
    Leave(&'p Stmt),
}

/// A walk through statements and those inside of them: of bodies of specs and loops, and of both
/// sides of conditions.
#[derive(Clone, Debug)]
pub struct Walk<'p> {
    program: &'p Program,
    todo: Vec<Step<'p>>,
    /// How much of it stays where what is inside of the last statement is left out.
    kept: usize,
    around: Vec<&'p Stmt>,
}

impl<'p> Walk<'p> {
    /// Leaves out what is inside of the statement that was entered last.
    pub fn skip_inside(&mut self) {
        self.todo.truncate(self.kept);
    }

    /// The statements around the one that was entered last, outermost first, and itself.
    pub fn around(&self) -> &[&'p Stmt] {
        &self.around
    }

    /// The statements alone, each before those inside of it.
    pub fn stmts(self) -> impl Iterator<Item = &'p Stmt> {
        self.filter_map(|step| match step {
            Step::Enter(stmt) => Some(stmt),
            Step::Leave(_) => None,
        })
    }

    /// The specs alone, each before those inside of it.
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
    /// A walk through statements of this program.
    pub fn walk<'p>(&'p self, stmts: &'p [Stmt]) -> Walk<'p> {
        let todo: Vec<Step<'p>> = stmts.iter().rev().map(Step::Enter).collect();
        Walk { program: self, kept: todo.len(), todo, around: vec![] }
    }

    /// A walk through the body of a spec; through nothing where it has none.
    pub fn walk_body(&self, spec: SpecId) -> Walk<'_> {
        self.walk(self.specs[spec].body.as_deref().unwrap_or(&[]))
    }

    /// The specs by the statements of the tree.
    pub fn specs_by_node(&self) -> HashMap<NodeKey, SpecId> {
        self.specs.iter().map(|(id, spec)| (spec.node.key(), id)).collect()
    }

    /// The buffers by the statements of the tree that declare them.
    pub fn buffers_by_node(&self) -> HashMap<NodeKey, BufferId> {
        self.buffers.iter().map(|(id, buffer)| (buffer.node.key(), id)).collect()
    }

    /// The diagnostic with a note where its place comes from, or else the first of its other places
    /// that says so: an error about a kernel may tell which statement of the body was last.
    #[must_use]
    pub fn noted(&self, mut d: Diagnostic) -> Diagnostic {
        let mut places = std::iter::once(d.span).chain(d.related.iter().map(|(at, _)| *at));
        if let Some(loc) = places.find_map(|at| self.origin(at)) {
            d.comes_from(loc);
        }
        d
    }

    /// Where the spec that a place is in comes from (`loc=`): the innermost that says so. None
    /// where statements stand that come from different places, as those of an imported file do.
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

    /// The statements right inside of one: the body of a spec or of a loop, or both sides of a
    /// condition.
    pub fn inside<'p>(&'p self, stmt: &'p Stmt) -> (&'p [Stmt], &'p [Stmt]) {
        match &stmt.kind {
            StmtKind::Spec(id) => (self.specs[*id].body.as_deref().unwrap_or(&[]), &[]),
            StmtKind::For { body, .. } => (body, &[]),
            StmtKind::If { then, otherwise, .. } => (then, otherwise),
            StmtKind::Allocate(_)
            | StmtKind::Indices(_)
            | StmtKind::Element { .. }
            | StmtKind::Barrier(_)
            | StmtKind::Sync(_) => (&[], &[]),
        }
    }

    /// The specs without a body in a spec, in text order, each with the specs around it, outermost
    /// first; the spec itself where it has none.
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
