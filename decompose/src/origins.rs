//! [`Origins`] tells from which statement of the user's text each generated statement was made, and
//! where that stands.

use carbyne_ir::ast::visit::{Step, Walk, each_mut, parts_mut};
use carbyne_ir::ast::{Module, NodeId, NodeKey, Stmt, StmtKind};
use carbyne_ir::span::Span;
use std::collections::{HashMap, HashSet};

/// Makes statements, and those inside of them, ones that were made from `from`. What has no place
/// of its own stands where that does, so that errors point there.
pub(crate) fn inherit(stmts: &mut [Stmt], from: NodeId, at: Span) {
    each_mut(stmts, &mut |stmt| {
        if !stmt.id.same(from) {
            stmt.from.get_or_insert(from);
        }
        let set = |span: &mut Span| {
            if span.is_nowhere() {
                *span = at;
            }
        };
        set(&mut stmt.span);
        if let StmtKind::Spec(spec) = &mut stmt.kind {
            set(&mut spec.span);
        }
        parts_mut(stmt, &mut |part| part.span_mut().into_iter().for_each(set));
    });
}

/// The statement of the decomposed text which a statement is or was made from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The id of the statement.
    pub node: NodeId,
    /// Its place: of a spec the head, of an allocation the type.
    pub span: Span,
    /// Its place in the program from which the text was generated: `loc=` of the spec, or of the
    /// nearest spec around it that has one.
    pub loc: Option<String>,
}

/// The origins of statements, by their ids.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    of: HashMap<NodeKey, Origin>,
}

impl Origins {
    /// Of statements of a module, and of those that were made from them in `made`.
    /// `given` is the module with its short forms.
    pub(crate) fn new(given: &Module, module: &Module, made: &Module) -> Self {
        let own: HashSet<NodeKey> =
            Walk::new(&given.items).stmts().map(|stmt| stmt.id.key()).collect();
        let mut of = HashMap::new();
        // Of the specs around that say so.
        let mut locs: Vec<&str> = vec![];
        for step in Walk::new(&module.items) {
            let stmt = match step {
                Step::Enter(stmt) => stmt,
                Step::Leave(stmt) => {
                    if stmt.loc().is_some() {
                        locs.pop();
                    }
                    continue;
                }
                Step::Open(_) | Step::Close(_) => continue,
            };
            locs.extend(stmt.loc());
            let span = match &stmt.kind {
                StmtKind::Spec(spec) => spec.span,
                StmtKind::Allocate { ty, .. } | StmtKind::DataDecl { ty, .. } => ty.span,
                _ => stmt.span,
            };
            let loc = locs.last().map(|loc| (*loc).to_owned());
            // A statement that was written out is that of the short form.
            let node = match own.contains(&stmt.id.key()) {
                true => stmt.id,
                false => stmt.from.unwrap_or(stmt.id),
            };
            of.insert(stmt.id.key(), Origin { node, span, loc });
        }
        let from = |stmt: &Stmt| Some((stmt.id.key(), stmt.from?.key()));
        let from: HashMap<NodeKey, NodeKey> =
            Walk::new(&made.items).stmts().filter_map(from).collect();
        for stmt in Walk::new(&made.items).stmts() {
            // Ids are given in the order of making, so that a chain of statements is no cycle.
            let mut at = stmt.id.key();
            while !of.contains_key(&at)
                && let Some(parent) = from.get(&at).filter(|parent| **parent < at)
            {
                at = *parent;
            }
            if at != stmt.id.key()
                && let Some(origin) = of.get(&at).cloned()
            {
                of.insert(stmt.id.key(), origin);
            }
        }
        Origins { of }
    }

    /// The origin of a statement; `None` if it has nothing to do with the text.
    pub fn of(&self, node: NodeId) -> Option<&Origin> {
        self.of.get(&node.key())
    }

    /// The place of the origin of a statement.
    pub fn span(&self, node: NodeId) -> Span {
        self.of(node).map_or(Span::default(), |origin| origin.span)
    }
}
