//! Writes the errors for accesses that cannot be ordered.

use super::dependences::Dependence;
use super::facts::Facts;
use super::planner::Planner;
use super::tree::{At, Tree};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::span::Span;

/// The error for a dependence that nothing can order.
pub(crate) fn unordered(planner: &Planner<'_, '_>, d: &Dependence) -> Box<Diagnostic> {
    let (facts, tree) = (planner.facts, planner.tree);
    if planner.who(d.from) == planner.who(d.to) {
        return diverged(facts, tree, d.to);
    }
    let (first, _) = place(facts, tree, d.from);
    let (span, kind) = place(facts, tree, d.to);
    let message = format!("nothing orders this {kind} with operations of other threads");
    let parted = [d.from, d.to]
        .iter()
        .all(|at| tree.chain(*at).any(|a| facts.roles.loops.contains(&tree.key(a))));
    let code = if parted { Code::Role } else { Code::NotDecomposed };
    Box::new(
        Diagnostic::new(code, span, message)
            .label("they access the same elements")
            .related(first, "this one accesses them, too")
            .help("put a statement that all threads of the block execute between the two"),
    )
}

/// What a statement is for errors: where it stands, and its kind.
fn place(facts: &Facts<'_>, tree: &Tree<'_>, at: At) -> (Span, String) {
    let stmt = tree.node(at).stmt;
    match tree.spec(at).or_else(|| facts.first(stmt)) {
        Some(id) => (facts.p.specs[id].span, facts.p.specs[id].kind.to_string()),
        None => (stmt.span, "statement".to_owned()),
    }
}

/// The error for a copy into a stage that the same threads touch again before they hand it over.
pub(crate) fn overtaken(facts: &Facts<'_>, tree: &Tree<'_>, from: At, to: At) -> Box<Diagnostic> {
    let (copy, _) = place(facts, tree, from);
    let (span, kind) = place(facts, tree, to);
    let message =
        format!("this {kind} accesses elements that a copy to the same stage may still write");
    Box::new(
        Diagnostic::new(Code::NotDecomposed, span, message)
            .label("only readers of a stage wait for its asynchronous copies")
            .related(copy, "the copy")
            .help("copy to other elements, or remove `stages=`"),
    )
}

/// The error for a barrier where not all of its threads come.
pub(crate) fn diverged(facts: &Facts<'_>, tree: &Tree<'_>, at: At) -> Box<Diagnostic> {
    let (span, kind) = place(facts, tree, at);
    let message =
        format!("this {kind} needs a barrier, which must not be inside a condition on threads");
    Box::new(
        Diagnostic::new(Code::NotDecomposed, span, message)
            .label("the whole block executes it")
            .help("move it out of the condition, or let the condition be the same for all threads"),
    )
}
