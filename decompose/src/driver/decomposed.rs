//! Defines the result of decomposing a module ([`Decomposed`]) and the options ([`Options`]).

use crate::certify::certificate::Certificate;
use crate::cost::Estimate;
use crate::layouts::Search;
use crate::origins::Origins;
use crate::plan::solution::{Leaf, Searched};
use crate::resolved::checked;
use crate::schedule;
use crate::schedule::report::LoopSchedule;
use crate::strategies::candidates::Ranking;
use crate::strategies::library::{Strategies, Theirs};
use crate::tricks;
use carbyne_atoms::{AtomTable, Machine};
use carbyne_ir::ast::visit::Walk;
use carbyne_ir::ast::{Module, NodeId, NodeKey, Stmt, StmtKind};
use carbyne_ir::diag::Diagnostic;
use carbyne_ir::leaf::Fact;
use carbyne_ir::program::{Program, SpecId};
use carbyne_ir::span::Span;
use carbyne_ir::text;
use std::collections::BTreeMap;

/// A module in which every leaf names its atom.
#[derive(Clone, Debug)]
pub struct Decomposed {
    /// The atomic module. `origins` tells from which statements of the decomposed module its
    /// statements were made.
    pub module: Module,
    /// The text of `module`.
    pub text: String,
    /// The program, resolved from `text`.
    pub program: Program,
    /// The module after strategies and before layouts, as text.
    pub tile_level: String,
    /// The program of `tile_level`, as the solver was given it. Spans refer to the text that was
    /// decomposed.
    pub tile: Program,
    /// Proofs that the layouts are right. Spec ids are those of `tile`.
    pub certificates: Vec<Certificate>,
    /// The best choices that were found, best first. Spec ids are those of `tile`.
    pub leaves: Vec<Leaf>,
    /// The best choices for each kernel that has operations on tiles. Spec ids are those of `tile`.
    pub chosen: Vec<Leaf>,
    /// The estimated cost of each kernel, in text order. Spec ids are those of `tile`.
    pub estimates: Vec<(SpecId, Estimate)>,
    /// How far the search went.
    pub searched: Searched,
    /// Warnings: work that threads repeat, tensors that are not used, a search that ended at its
    /// budget. Spans refer to the text that was decomposed.
    pub warnings: Vec<Diagnostic>,
    /// The statement for which each statement of `module` and of `tile` was written or generated.
    pub origins: Origins,
    /// The instances that were compared for each kernel that a strategy has decomposed.
    pub rankings: Vec<Ranking>,
    /// Facts about symbols that would make the kernels of strategies faster.
    pub unstated: Vec<Unstated>,
    /// The tree from which `tile_level` was printed. `None` if that is the text that was
    /// decomposed.
    pub(super) printed: Option<Module>,
    /// The tree before loops got their stages. `None` if no loop has stages.
    pub(super) staged: Option<Module>,
}

impl Decomposed {
    /// The places of the specs of `tile` in the text `tile_level`.
    #[must_use]
    pub fn tile_level_spans(&self) -> BTreeMap<SpecId, Span> {
        let Some(tree) = &self.printed else {
            return self.tile.specs.iter().map(|(id, spec)| (id, spec.span)).collect();
        };
        let Ok(mut read) = text::parse(&self.tile_level) else { return BTreeMap::new() };
        read.take_ids(tree);
        let specs = self.tile.specs_by_node();
        let stmts = Walk::new(&read.items).stmts();
        let spans = stmts.filter_map(|stmt| match &stmt.kind {
            StmtKind::Spec(spec) => Some((*specs.get(&stmt.id.key())?, spec.span)),
            _ => None,
        });
        spans.collect()
    }

    /// The user's strategy that has written a kernel of `program`, if any.
    #[must_use]
    pub fn theirs(&self, kernel: SpecId) -> Option<&Theirs> {
        let at = self.origins.span(self.program.specs[kernel].node);
        let of = |r: &&Ranking| r.span.start <= at.start && at.start < r.span.end;
        self.rankings.iter().filter(of).find_map(|r| r.theirs.as_ref())
    }

    /// How the iterations of each innermost loop with `stages=` can overlap on the card for which
    /// the module was decomposed. Ids are ids that `origins` knows.
    #[must_use]
    pub fn schedules(&self, src: &str, table: &AtomTable, options: &Options) -> Vec<LoopSchedule> {
        let Some(tree) = &self.staged else { return vec![] };
        let Ok(program) = checked(tree, src) else { return vec![] };
        let machine = options.machine(table);
        let target = tricks::target(table, &machine);
        let of = |kernel: &SpecId| schedule::report::schedules(&program, *kernel, &target);
        let mut all: Vec<LoopSchedule> = program.kernels.iter().flat_map(of).collect();
        let parents = parents(tree);
        for one in &mut all {
            // Ids are given in the order of making, so that this ends.
            while self.origins.of(one.node).is_none()
                && let Some(parent) = parents.get(&one.node.key())
                && parent.key() < one.node.key()
            {
                one.node = *parent;
            }
        }
        all
    }
}

/// Whether loops of a module have stages.
pub(super) fn is_staged(module: &Module) -> bool {
    let staged = |s: &Stmt| matches!(s.kind, StmtKind::For { stages: Some(_), .. });
    Walk::new(&module.items).stmts().any(staged)
}

/// How a module is decomposed.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How long to search for layouts.
    pub search: Search,
    /// How long to search while instances of strategies are compared. `None` stands for the same as
    /// `search`.
    pub choosing: Option<Search>,
    /// The strategies that give kernel-level specs their dataflow.
    pub strategies: Strategies,
    /// Whether operations of loops stay in the order of the text, as if no modulo schedule were
    /// found. For tests.
    #[doc(hidden)]
    pub as_written: bool,
    /// Instances that must not be chosen, as `by=` names them. Their blocks need more shared memory
    /// than there is, which is only known after tensors share their places.
    #[doc(hidden)]
    pub left_out: Vec<String>,
}

impl Options {
    /// The function that finds modulo schedules of loops.
    pub(super) fn find(&self) -> schedule::Find {
        match self.as_written {
            true => |problem, _| schedule::solve::identity(problem),
            false => schedule::solve::solve,
        }
    }

    /// The card for which to decompose.
    pub(super) fn machine(&self, table: &AtomTable) -> Machine {
        let usual = carbyne_atoms::machine(table.arch);
        Machine { sms: self.search.sms.map_or(usual.sms, i64::from).max(1), ..usual }
    }
}

impl From<Search> for Options {
    fn from(search: Search) -> Self {
        Options { search, ..Options::default() }
    }
}

/// The statement that each statement of a module was made from.
pub(super) fn parents(module: &Module) -> BTreeMap<NodeKey, NodeId> {
    let stmts = Walk::new(&module.items).with_means().stmts();
    stmts.filter_map(|s| Some((s.id.key(), s.from?))).collect()
}

/// Facts about symbols that are not stated and would make the kernels of a spec faster.
#[derive(Clone, Debug, PartialEq)]
pub struct Unstated {
    /// The place of the spec.
    pub span: Span,
    /// The facts.
    pub facts: Vec<Fact>,
}
