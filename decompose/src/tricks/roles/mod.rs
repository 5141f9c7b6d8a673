//! Divides loops with `stages=` among roles, if other threads fill stages than use them
//! ([`apply`]).
//!
//! Such a loop becomes a loop for each role, in its order of the statements. A tensor that some
//! roles write and others read is a ring of stages, which stands before the loops with two
//! mbarriers a stage. A stage is full when the threads that fill it have arrived, by themselves or,
//! if they copy asynchronously, by their copies. It is empty when one thread of each warp that
//! reads it has arrived, behind a barrier of the warp. The threads that fill wait for it to be
//! empty, those that read wait for it to be full, so that each role is ahead of the others as far
//! as the ring goes, and no barrier of the block stands in a loop.
//!
//! No wait is without end: the event that a statement waits for happens before it where the loop is
//! executed in its order, in the same iteration or as many earlier as the ring has stages.
//!
//! Whether copies are asynchronous is known when instructions are chosen: the planner of
//! synchronization then states the kind and the number of arrivals ([`crate::plan::sync::Sync`]).
//! Until then the text is that of asynchronous copies.
//!
//! If the architecture has no mbarriers, or something is in the way, the loop stays one: the roles
//! advance together, by barriers of the block, and a warning says why.

pub(crate) mod parted;
mod uses;

use crate::access::kernel_level::Said;
use crate::names::Names;
use crate::origins::inherit;
use crate::plan::roles::Roles;
use carbyne_atoms::{AtomOp, AtomTable};
use carbyne_ir::ast::visit::{self, Rewriter, Step, Walk};
use carbyne_ir::ast::*;
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::program::{self, Program};
use carbyne_ir::span::Span;
use std::collections::{BTreeSet, HashMap};
use uses::{Kept, Split};

/// A module whose staged loops are parted by roles.
pub(crate) struct Parted {
    pub(crate) module: Module,
    pub(crate) roles: Roles,
    /// Loops that stay one.
    pub(crate) warnings: Vec<Diagnostic>,
}

/// The module with its staged loops parted by roles; none where none has several. `p` is what the
/// module resolves to, `unordered` what could not be ordered when they were parted before.
///
/// # Errors
/// A stage that nobody fills, or that nobody reads; threads of a role that part.
pub(crate) fn apply(
    module: &Module,
    p: &Program,
    table: &AtomTable,
    names: &mut Names,
    (unordered, said): (&[Diagnostic], &Said),
) -> Result<Option<Parted>, Diagnostics> {
    let mut errors = Diagnostics::default();
    let mut warnings = vec![];
    let mut splits: HashMap<NodeKey, Split> = HashMap::new();
    for (chain, stmt) in staged(module, p) {
        match uses::split(p, &chain, stmt) {
            Ok(None) => {}
            Ok(Some(_)) if !hands_over(table) => {
                let why = "the architecture has no mbarriers";
                let action = "decompose for an architecture that has them";
                warnings.extend(together(stmt, &Kept::because(why).unless(action), said));
            }
            Ok(Some(_)) if unordered.iter().any(|d| is_in(d.span, stmt.span)) => {
                let own = unordered.iter().filter(|d| is_in(d.span, stmt.span));
                warnings.extend(together(stmt, &Kept::of(own), said));
            }
            Ok(Some(split)) => {
                let trips = Some(split.depth);
                warnings.extend(said.too_many(stmt.span, split.stages, trips));
                drop(splits.insert(stmt.id.key(), split));
            }
            Err(uses::Refused::Kept(kept)) => warnings.extend(together(stmt, &kept, said)),
            Err(uses::Refused::Wrong(d)) => errors.push(*d),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    if splits.is_empty() && warnings.is_empty() {
        return Ok(None);
    }
    let defined = super::turns::count(&module.items);
    let (before, roles) = (HashMap::new(), Roles::default());
    let mut by = Part { splits, before, defined, names, roles, said, warnings };
    let mut module = module.clone();
    module.items = visit::rewrite(module.items, &mut by);
    Ok(Some(Parted { module, roles: by.roles, warnings: by.warnings }))
}

/// Whether a place is inside of another.
fn is_in(inner: Span, outer: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Whether threads can hand stages over by mbarriers.
fn hands_over(table: &AtomTable) -> bool {
    let has = |op: SyncOp| table.atoms().iter().any(|a| a.op == AtomOp::Sync(op));
    use SyncOp as S;
    [S::MbarrierInit, S::MbarrierArrive, S::MbarrierAsyncArrive, S::MbarrierWait]
        .into_iter()
        .all(has)
}

/// Loops with several stages, each with the statements around it, the kernel first.
fn staged<'a>(module: &'a Module, p: &Program) -> Vec<(Vec<&'a Stmt>, &'a Stmt)> {
    let mut of = BTreeSet::new();
    for kernel in &p.kernels {
        for stmt in p.walk_body(*kernel).stmts() {
            if let program::StmtKind::For { stages: 2.., .. } = stmt.kind {
                of.insert(stmt.node.key());
            }
        }
    }
    let mut around: Vec<&Stmt> = vec![];
    let mut out = vec![];
    for step in Walk::new(&module.items) {
        match step {
            Step::Enter(stmt) => {
                if of.contains(&stmt.id.key()) {
                    out.push((around.clone(), stmt));
                }
                around.push(stmt);
            }
            Step::Leave(_) => drop(around.pop()),
            Step::Open(_) | Step::Close(_) => {}
        }
    }
    out
}

/// The warning for a loop that stays one; none where a strategy has written it.
fn together(stmt: &Stmt, kept: &Kept, said: &Said) -> Option<Diagnostic> {
    if said.is_made(stmt.span) {
        return None;
    }
    let message = "the roles of this loop advance together";
    let mut d = Diagnostic::warning(Code::Stages, stmt.span, message).label(kept.why.clone());
    for (span, what) in &kept.places {
        d = d.related(*span, what.clone());
    }
    Some(d.help(format!("{}, or remove `stages=`", kept.action)))
}

/// Puts loops of roles in the places of loops.
struct Part<'a> {
    splits: HashMap<NodeKey, Split>,
    /// What stands before statements of a kernel's body.
    before: HashMap<NodeKey, Vec<Stmt>>,
    /// How often each name is defined in the module.
    defined: HashMap<&'a str, usize>,
    names: &'a mut Names,
    roles: Roles,
    said: &'a Said,
    warnings: Vec<Diagnostic>,
}

impl Rewriter for Part<'_> {
    fn leave(&mut self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        let key = stmt.id.key();
        let mut stmts = match self.splits.remove(&key) {
            None => vec![],
            Some(split) => match parted::written(&split, &stmt, &self.defined, self.names) {
                Ok(mut new) => {
                    inherit(&mut new.before, stmt.id, stmt.span);
                    inherit(&mut new.stmts, stmt.id, stmt.span);
                    self.roles.handed.append(&mut new.roles.handed);
                    self.roles.loops.append(&mut new.roles.loops);
                    self.roles.beside.append(&mut new.roles.beside);
                    self.before.entry(split.outermost).or_default().append(&mut new.before);
                    new.stmts
                }
                Err(kept) => {
                    self.warnings.extend(together(&stmt, &kept, self.said));
                    vec![]
                }
            },
        };
        let mut all = self.before.remove(&key).unwrap_or_default();
        if stmts.is_empty() {
            if let Some(first) = all.first_mut() {
                first.blank_above = std::mem::take(&mut stmt.blank_above);
            }
            all.push(stmt);
        } else {
            all.append(&mut stmts);
            if let Some(first) = all.first_mut() {
                first.blank_above = stmt.blank_above;
                first.leading = std::mem::take(&mut stmt.leading);
            }
        }
        out.append(&mut all);
    }
}
