//! Decomposes specs into atoms, the hardware instructions of the atom table. Strategies give specs
//! of the kernel level a body of tiles and loops, the solver chooses layouts and instructions, and
//! matching names the atom of each leaf.
//!
//! Every stage works on the module as a syntax tree. The result of a strategy or of the solver is
//! written into the module, which is then resolved and verified again, like the text of a user. A
//! generated statement refers to the statement from which it was made, so that errors are reported
//! there. At the end the tree is printed, and its text is read again.
//!
//! Invariant: everything that a user wrote is kept. Invariant: no decision depends on the name of
//! an atom or on an architecture; the rows of the atom table decide.

mod approximate;
mod build;
mod calls;
pub mod certificate;
pub mod checker;
mod emit;
pub mod explain;
mod instance;
mod leaves;
mod matching;
mod model;
mod named;
mod names;
mod pins;
mod places;
mod relation;
mod rest;
mod rewrite;
mod schedule;
mod solve;
mod stated;
mod unstated;

pub use carbyne_atoms::bind::Mismatch;
pub use instance::choose::{GivenUp, Ranked, Ranking};
pub use instance::{Sample, Strategies, Theirs, own_texts};
pub use model::{Estimate, Resource, Use};
pub use named::check as check_named;
pub use schedule::modulo::graph::Unscheduled;
pub use schedule::modulo::problem::Unsolvable;
pub use schedule::modulo::report::{InFlight, LoopSchedule, RingDepth, Steady, Timed};
pub use schedule::modulo::schedule::Proof;
pub use solve::{Leaf, Search, Searched, Wavefronts};
pub use unstated::Unstated;

/// Internals for the tests of this package. Not a part of the interface: they change without
/// notice.
#[doc(hidden)]
pub mod internals {
    pub use crate::model::fitted::{FITTED, Fitted};
    pub use crate::model::{Model, Refusal, bound};
    pub use crate::pins::{list as pins, without as without_pins};
    pub use crate::schedule::modulo::report::schedules;
    pub use crate::solve::{copy, smem, tv};
}

use carbyne_atoms::{Atom, AtomTable, Machine, smem};
use carbyne_ir::ast::visit::Walk;
use carbyne_ir::ast::{Key, Module, NodeId, NodeKey, Stmt, StmtKind};
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::program::{self, Program, SpecId};
use carbyne_ir::progress::Stage;
use carbyne_ir::span::Span;
use carbyne_ir::{resolve, text, verify};
use certificate::{Certificate, Relation};
use instance::needed::Needed;
use instance::said::Said;
use names::Names;
pub use places::{Origin, Origins};
use schedule::roles::Roles;
use schedule::rotate::Prologues;
use solve::work::grade;
use solve::{Asked, Detours, Looked, Outcome, Solution, Want};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

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
    printed: Option<Module>,
    /// The tree before loops got their stages. `None` if no loop has stages.
    staged: Option<Module>,
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
        let of = |kernel: &SpecId| {
            schedule::modulo::report::schedules(&program, *kernel, table, &machine)
        };
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
fn is_staged(module: &Module) -> bool {
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
    fn find(&self) -> schedule::modulo::Find {
        match self.as_written {
            true => |problem, _| schedule::modulo::solve::identity(problem),
            false => schedule::modulo::solve::solve,
        }
    }

    /// The card for which to decompose.
    fn machine(&self, table: &AtomTable) -> Machine {
        let usual = carbyne_atoms::machine(table.arch);
        Machine { sms: self.search.sms.map_or(usual.sms, i64::from).max(1), ..usual }
    }
}

impl From<Search> for Options {
    fn from(search: Search) -> Self {
        Options { search, ..Options::default() }
    }
}

/// Decomposes every kernel of a module for the architecture of the table.
///
/// `src` is the text from which the module was parsed. Spans of errors refer to it; an error in a
/// generated part has the span of the statement for which it was generated.
///
/// # Errors
/// Errors of resolving and verifying, a spec that no strategy or atom implements, and pins that
/// conflict.
pub fn decompose(module: &Module, src: &str, table: &AtomTable) -> Result<Decomposed, Diagnostics> {
    decompose_with(module, src, table, Search::default())
}

/// Decomposes every kernel of a module with a given limit of the search.
///
/// # Errors
/// Those of [`decompose`], and a budget that is too small.
pub fn decompose_with(
    module: &Module,
    src: &str,
    table: &AtomTable,
    search: Search,
) -> Result<Decomposed, Diagnostics> {
    decompose_by(module, src, table, &search.into())
}

/// Decomposes every kernel of a module with other strategies or for another card.
///
/// # Errors
/// Those of [`decompose_with`].
pub fn decompose_by(
    module: &Module,
    src: &str,
    table: &AtomTable,
    options: &Options,
) -> Result<Decomposed, Diagnostics> {
    let options =
        &Options { strategies: options.strategies.with_those_of(module, src), ..options.clone() };
    let elaborated = resolve::elaborate(module, src)?;
    let (given, module) = (module, &elaborated);
    let unordered = &[];
    let found =
        attempt(Attempt { given, module, src, table, options, unordered, staging: Staging::ALL });
    let found = found.map(|d| {
        let d = unstated::with_given_up(module, src, d, (table, options));
        let mut d = unstated::with_narrow(module, src, d, table);
        d.warnings = resolve::joined(module, d.warnings);
        d
    });
    found.map_err(|errors| {
        let errors = pins::blame_each(module, src, table, options, errors);
        let errors: Diagnostics = resolve::joined(module, errors);
        if Walk::new(&module.items).stmts().all(|stmt| stmt.loc().is_none()) {
            return errors;
        }
        match checked(module, src) {
            Ok(program) => errors.into_iter().map(|d| program.noted(d)).collect(),
            Err(_) => errors,
        }
    })
}

/// Lists the strategies and parameters that could decompose the kernel-level specs of a module, in
/// the order of the text. For each spec the best come first, as far as is known. [`decompose_by`]
/// chooses among them; each can be pinned by its `by`.
///
/// # Errors
/// Errors of resolving and verifying, and a spec that no strategy implements.
pub fn ranked(
    module: &Module,
    src: &str,
    table: &AtomTable,
    options: &Options,
) -> Result<Vec<Ranking>, Diagnostics> {
    let options =
        &Options { strategies: options.strategies.with_those_of(module, src), ..options.clone() };
    let elaborated = resolve::elaborate(module, src)?;
    let (module, program) = separated(&elaborated, src)?;
    known_atoms(&program, table)?;
    let generated = Generated { module: &module, src };
    let mut names = Names::of(&module);
    planned_once(&generated, &module, &program, table, options, &mut names, 0).map(|p| p.1)
}

/// Rewrites are asked for until there is nothing left to take apart; a chain of detours is short.
const MAX_ROUNDS: usize = 16;

/// How loops with stages may be written out.
#[derive(Copy, Clone, Debug)]
struct Staging {
    /// With copies by the copy engine.
    bulk: bool,
    /// With products of the next iteration, where that engine copies.
    rotated: bool,
}

impl Staging {
    const ALL: Staging = Staging { bulk: true, rotated: true };
}

/// A module to decompose, and the means. An attempt does not ask which pins are to blame.
#[derive(Copy, Clone)]
struct Attempt<'a> {
    given: &'a Module,
    module: &'a Module,
    src: &'a str,
    table: &'a AtomTable,
    options: &'a Options,
    /// Errors of earlier attempts: nothing orders these accesses if roles have own loops.
    unordered: &'a [Diagnostic],
    staging: Staging,
}

fn attempt(a: Attempt<'_>) -> Result<Decomposed, Diagnostics> {
    let (module, program) = separated(a.module, a.src)?;
    known_atoms(&program, a.table)?;
    no_idle_pins(&program)?;
    no_counters(&program)?;
    let mut names = Names::of(&module);
    let generated = Generated { module: &module, src: a.src };
    let planned = plan(&generated, &program, a.table, a.options, &mut names, 0)?;
    let theirs = theirs(&planned.1);
    completed(a, &generated, program, planned, names).map_err(|errors| blamed(errors, &theirs))
}

/// The specs for which strategies of users have written something.
fn theirs(rankings: &[Ranking]) -> Vec<(Span, Theirs)> {
    rankings.iter().filter_map(|r| Some((r.span, r.theirs.clone()?))).collect()
}

/// Errors about what strategies of users have written, with where these stand: no defects of ours.
fn blamed(errors: Diagnostics, all: &[(Span, Theirs)]) -> Diagnostics {
    let blame = |d: Diagnostic| {
        let of = |(at, _): &&(Span, Theirs)| at.start <= d.span.start && d.span.start < at.end;
        match all.iter().find(of).map(|(_, theirs)| theirs) {
            Some(theirs) if d.code == Code::Internal => {
                let message = format!("{theirs} writes an invalid body: {}", d.message);
                let help = "correct the body of the strategy";
                let own = Diagnostic { code: Code::NoStrategy, message, ..d };
                own.help(help)
            }
            Some(theirs) => d.note(format!("written by {theirs}")),
            None => d,
        }
    };
    errors.into_iter().map(blame).collect()
}

/// Finds the layouts of a module whose kernels have bodies, and writes it with all of them.
fn completed(
    a: Attempt<'_>,
    generated: &Generated<'_>,
    program: Program,
    (planned, rankings): WithBodies,
    mut names: Names,
) -> Result<Decomposed, Diagnostics> {
    let a = Attempt { module: generated.module, ..a };
    let Attempt { given, module, src, table, options, unordered, staging } = a;
    let search = options.search;
    let made = parents(&planned);
    let (unstated, lacking) = unstated::of_copied(generated, &program, &planned);
    let staged = is_staged(&planned).then(|| planned.clone());
    let state = (planned, vec![]);
    let by = (options, unordered, staging);
    let tiles = tiles(generated, state, program, table, &mut names, by)?;
    let (by_boxes, rotated) = (tiles.bulk, tiles.rotated);
    let other = |staging| attempt(Attempt { staging, ..a });
    let (tiles, mut solution) = match solved(generated, tiles, table, search, true, &mut names) {
        // Of values that have no registers nothing is gained.
        Ok((_, found)) if rotated && found.estimates.iter().any(|(_, e)| e.spills()) => {
            return other(Staging { rotated: false, ..staging });
        }
        Ok(solved) => solved,
        Err(_) if rotated => return other(Staging { rotated: false, ..staging }),
        // Other copies may succeed where boxes do not.
        Err(_) if by_boxes => return other(Staging { bulk: false, ..staging }),
        Err(errors) => {
            let more: Vec<Diagnostic> =
                errors.iter().filter(|d| d.code == Code::Role).cloned().collect();
            if more.is_empty() || unordered.len() >= MAX_ROUNDS {
                return Err(errors);
            }
            let all = [unordered, &more].concat();
            return attempt(Attempt { unordered: &all, ..a });
        }
    };
    let Tiles { tree, program, mut warnings, roles, .. } = tiles;
    rest::lay_out(&program, &mut solution).map_err(|d| one(*d))?;
    certified(&program, &solution, table).map_err(|d| one(*d))?;
    let (mut written, _) = written(generated, &tree, &program, &solution, table, names)?;
    emit::aliases::apply(&mut written, module, table);
    if by_boxes {
        let atomic = generated.checked(&written)?;
        let mut names = Names::of(&written);
        if let Some(apart) = schedule::apart::apply(&written, &atomic, &mut names) {
            written = apart;
        }
    }
    let (mut written, alone) = schedule::consumers::apply(&written, &roles.producers, table);
    // Who has not asked for consumers is told nothing of what an instance asks for.
    if asks_for_consumers(given) {
        warnings.extend(alone);
    }
    let atomic = generated.checked(&written)?;
    match fits(&atomic, table) {
        // A prologue has a tile of its own.
        Err(_) if rotated => return other(Staging { rotated: false, ..staging }),
        Err(errors) => {
            let Some(left_out) = too_large(&atomic, table, &rankings, &options.left_out) else {
                return Err(errors);
            };
            let options = &Options { left_out, ..options.clone() };
            let next = attempt(Attempt { options, staging: Staging::ALL, ..a });
            return next.map_err(|_| errors);
        }
        Ok(()) => {}
    }
    let calling = calls::check(&atomic, Some(table));
    if !calling.is_empty() {
        return Err(calling);
    }
    adopt(&mut written, module, &made);
    let origins = Origins::new(given, module, &written);
    let printed = (tree != *module).then_some(tree);
    let tile_level = printed.as_ref().map_or_else(|| src.to_owned(), text::print);
    let said = Said::of(module);
    warnings.extend(solution.warnings.drain(..).filter(|d| said.concerns(d)));
    let warnings = lacking.into_iter().chain(warnings).map(|d| program.noted(d)).collect();
    written.inherit_executors();
    let (module, text, atomic) = generated.read_again(&written)?;
    Ok(Decomposed {
        module,
        text,
        program: atomic,
        tile_level,
        tile: program,
        certificates: solution.certificates,
        leaves: solution.leaves,
        chosen: solution.chosen,
        estimates: solution.estimates,
        searched: solution.searched,
        warnings,
        origins,
        rankings,
        unstated,
        printed,
        staged,
    })
}

/// The statement that each statement of a module was made from.
fn parents(module: &Module) -> BTreeMap<NodeKey, NodeId> {
    let stmts = Walk::new(&module.items).with_means().stmts();
    stmts.filter_map(|s| Some((s.id.key(), s.from?))).collect()
}

/// Whether a spec of a text says `consumers=`.
fn asks_for_consumers(module: &Module) -> bool {
    Walk::new(&module.items).stmts().any(|stmt| match &stmt.kind {
        StmtKind::Spec(spec) => spec.attr(Key::Consumers).is_some(),
        _ => false,
    })
}

/// Statements whose parents are gone, as those of stages that replaced others, name what these were
/// made from.
fn adopt(written: &mut Module, given: &Module, made: &BTreeMap<NodeKey, NodeId>) {
    let ids = |m: &Module| -> Vec<NodeKey> {
        Walk::new(&m.items).with_means().stmts().map(|s| s.id.key()).collect()
    };
    let known: BTreeSet<NodeKey> = ids(written).into_iter().chain(ids(given)).collect();
    let mut todo: Vec<&mut Stmt> = written.items.iter_mut().collect();
    while let Some(stmt) = todo.pop() {
        while let Some(from) = stmt.from.filter(|from| !known.contains(&from.key())) {
            let Some(next) = made.get(&from.key()) else { break };
            stmt.from = Some(*next);
        }
        todo.extend(stmt.kind.blocks_mut().flat_map(|b| &mut b.stmts));
    }
}

/// A module of operations on tiles, and what it resolves to.
#[derive(Clone)]
struct Tiles {
    tree: Module,
    program: Program,
    roles: Roles,
    /// Whether the copy engine fills stages.
    bulk: bool,
    /// Whether bodies of loops begin with products of the next iteration.
    rotated: bool,
    warnings: Vec<Diagnostic>,
}

/// Gives kernel-level specs their dataflow, loops their stages, roles their loops, and buffers
/// their places.
fn tiles(
    generated: &Generated<'_>,
    (mut tree, mut warnings): (Module, Vec<Diagnostic>),
    mut program: Program,
    table: &AtomTable,
    names: &mut Names,
    (options, unordered, staging): (&Options, &[Diagnostic], Staging),
) -> Result<Tiles, Diagnostics> {
    let module = generated.module;
    let said = Said::of(module);
    if let Some(clustered) = schedule::clusters::apply(&tree, names).map_err(|d| one(*d))? {
        tree = clustered;
    }
    if tree != *module {
        program = generated.checked(&tree)?;
    }
    if let Some(approximated) = approximate::apply(&tree, &program, names) {
        tree = approximated;
        program = generated.checked(&tree)?;
    }
    let mut roles = Roles::default();
    if let Some(parted) = schedule::roles::apply(&tree, &program, table, names, (unordered, &said))?
    {
        tree = parted.module;
        program = generated.checked(&tree)?;
        roles = parted.roles;
        warnings.extend(parted.warnings);
    }
    // A view that no tensor map is made of, and what can be out of bounds, is found here.
    let machine = &options.machine(table);
    let scheduler = schedule::modulo::Scheduler { table, machine, find: options.find() };
    let by_boxes = |tree: &Module, program: &Program, prologues: &Prologues, names: &mut Names| {
        [false, true].into_iter().find_map(|clamped| {
            let mut own = names.clone();
            let by = (&mut own, clamped);
            let (tree, handed, producers) =
                schedule::bulk::apply(tree, program, scheduler, prologues, by)?;
            let rings = |s: &Stmt| {
                let of = matches!(s.kind, StmtKind::For { stages: Some(_), .. });
                of && prologues.contains_key(&s.id.key())
            };
            if Walk::new(&tree.items).stmts().any(rings) {
                return None;
            }
            let checked = generated.checked(&tree).ok()?;
            *names = own;
            Some((tree, checked, (handed, producers)))
        })
    };
    let mut boxes = None;
    let mut rotated = false;
    if staging.bulk && staging.rotated {
        let rotate = |loops: &[(NodeKey, schedule::rotate::Rotation)]| {
            let mut own = names.clone();
            let (tree, prologues) = schedule::rotate::apply(&tree, loops, &mut own)?;
            let program = generated.checked(&tree).ok()?;
            let found = by_boxes(&tree, &program, &prologues, &mut own)?;
            Some((found, own))
        };
        let mut loops = schedule::rotate::find(&program, scheduler);
        let mut found = rotate(&loops);
        if found.is_none() && loops.len() > 1 {
            // One that does not do leaves the others theirs.
            loops.retain(|of| rotate(std::slice::from_ref(of)).is_some());
            found = rotate(&loops);
        }
        rotated = found.is_some();
        if let Some((found, own)) = found {
            boxes = Some(found);
            *names = own;
        }
    }
    if staging.bulk && !rotated {
        boxes = by_boxes(&tree, &program, &Prologues::new(), names);
    }
    let bulk = boxes.is_some();
    if let Some((by_boxes, checked, (handed, producers))) = boxes {
        (tree, program) = (by_boxes, checked);
        let stored = schedule::stores::apply(&tree, &program, table, names, &handed);
        if let Some(stored) = stored
            && let Ok(checked) = generated.checked(&stored)
        {
            (tree, program) = (stored, checked);
        }
        roles.handed.extend(handed);
        roles.producers.extend(producers);
    }
    if let Some((staged, more)) = schedule::pipeline::apply(&tree, &program, table, names, &said) {
        tree = staged;
        program = generated.checked(&tree)?;
        warnings.extend(more);
    }
    if let Some(placed) = schedule::lifetime::apply(&tree, &program, table) {
        tree = placed;
        program = generated.checked(&tree)?;
    }
    Ok(Tiles { tree, program, roles, bulk, rotated, warnings })
}

/// Solves every kernel; the tiles are rewritten until nothing more is asked for. Where another
/// choice may be cheaper with more detours, both are written out, and the cheaper one is taken.
fn solved(
    generated: &Generated<'_>,
    tiles: Tiles,
    table: &AtomTable,
    search: Search,
    ordered: bool,
    names: &mut Names,
) -> Result<(Tiles, Solution), Diagnostics> {
    let mut rewriting = Rewriting { generated, table, search, ordered, other: None };
    let fewest = rewriting.solved(tiles, names, Detours::Fewest);
    let Some((tiles, mut others)) = rewriting.other.take() else { return fewest };
    let other = rewriting.solved(tiles, &mut others, Detours::Cheapest);
    match (fewest, other) {
        (Ok(fewest), Ok(other)) if grade(other.1.cycles) >= grade(fewest.1.cycles) => Ok(fewest),
        (_, Ok(other)) => {
            *names = others;
            Ok(other)
        }
        (fewest, Err(_)) => fewest,
    }
}

/// Rewrites and solves kernels until nothing more is asked for.
struct Rewriting<'a> {
    generated: &'a Generated<'a>,
    table: &'a AtomTable,
    search: Search,
    /// Whether barriers and waits are found, too.
    ordered: bool,
    /// Where a choice with more detours first was one.
    other: Option<(Tiles, Names)>,
}

impl Rewriting<'_> {
    fn solved(
        &mut self,
        mut tiles: Tiles,
        names: &mut Names,
        detours: Detours,
    ) -> Result<(Tiles, Solution), Diagnostics> {
        let mut last = None;
        for _ in 0..=MAX_ROUNDS {
            let (solution, wants, looked) = self.round(&tiles, detours)?;
            if looked.others && detours == Detours::Fewest && self.other.is_none() {
                let (_, other, rough) = self.round(&tiles, Detours::Cheapest)?;
                if other != wants && grade(rough.cycles) < grade(looked.cycles) {
                    self.other = Some((tiles.clone(), names.clone()));
                }
            }
            if wants.is_empty() {
                return Ok((tiles, solution));
            }
            last = wants.first().map(|want| endless(&tiles.program, want));
            tiles.tree = rewrite::apply(tiles.tree, &tiles.program, &wants, names);
            tiles.program = self.generated.checked(&tiles.tree)?;
        }
        Err(last.into_iter().collect())
    }

    /// Solves all kernels: returns their solution, the rewrites that they need, and the cycles of
    /// the best choices.
    fn round(
        &self,
        tiles: &Tiles,
        detours: Detours,
    ) -> Result<(Solution, Vec<Want>, Looked), Diagnostics> {
        let mut errors = Diagnostics::default();
        let (mut solution, mut wants) = (Solution::default(), vec![]);
        let mut looked = Looked::default();
        let roles = self.ordered.then_some(&tiles.roles);
        for &kernel in &tiles.program.kernels {
            let by = (self.search, detours);
            match solve::solve(&tiles.program, kernel, self.table, by, roles) {
                Ok((Outcome::Solved(found), own)) => {
                    solution.merge(*found);
                    looked.add(own);
                }
                Ok((Outcome::Wants(more), own)) => {
                    wants.extend(more);
                    looked.add(own);
                }
                Err(d) => errors.push(*d),
            }
        }
        if errors.is_empty() { Ok((solution, wants, looked)) } else { Err(errors) }
    }
}

/// The error for rewrites that do not end; `want` is one of the last.
fn endless(p: &Program, want: &Want) -> Diagnostic {
    let (id, asked) = want.asks();
    let spec = &p.specs[id];
    let t = match asked {
        Asked::Input(i) => spec.inputs.get(i).and_then(|o| o.tensor()),
        Asked::Output => spec.outputs.first().copied(),
    };
    let name = t.map_or_else(|| "an operand".to_owned(), |t| format!("`%{}`", p.buffer_of(t).name));
    let scalar = t.map_or_else(String::new, |t| format!(" ({})", p.scalar_of(t)));
    let kind = spec.kind;
    let message = format!(
        "{name}{scalar} has no layout that this {kind} accepts, after {MAX_ROUNDS} copies in \
         between"
    );
    let label = format!(
        "no instruction of this {kind} accepts {name} in its layout, or in one that copies give it"
    );
    let help = format!(
        "state the thread-value layout, `RF{{tv=(..):(..) over #cta}}`, of the tensor that {name} \
         is moved to; or first convert {name} to a type of at least 8 bits, by a separate spec"
    );
    Diagnostic::new(Code::NotDecomposed, spec.span, message).label(label).help(help)
}

/// Writes a solution into the tree that it is of.
fn written(
    generated: &Generated<'_>,
    tree: &Module,
    program: &Program,
    solution: &Solution,
    table: &AtomTable,
    names: Names,
) -> Result<(Module, Program), Diagnostics> {
    let atoms = leaves(program, table, solution)?;
    let emit = emit::Emit::new(program, solution, &atoms, table, names.clone());
    let written = emit.module(tree.clone())?;
    let atomic = generated.checked(&written)?;
    // Leaves that touch tensors whose layouts were found, bodies of Reductions, of exchanges and of
    // partial sums stand there without atoms.
    if atomic.specs.iter().all(|(_, s)| s.body.is_some() || s.atom.is_some()) {
        return Ok((written, atomic));
    }
    let none = Solution::default();
    let atoms = leaves(&atomic, table, &none)?;
    let written = emit::Emit::new(&atomic, &none, &atoms, table, names).module(written)?;
    let atomic = generated.checked(&written)?;
    Ok((written, atomic))
}

/// Refuses pins that would say nothing: `tile=` where the operands are one tile already, and `by=`
/// beside a body without atoms. Beside atoms, `by=` records the strategy that made the body.
fn no_idle_pins(p: &Program) -> Result<(), Diagnostics> {
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
fn no_counters(p: &Program) -> Result<(), Diagnostics> {
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
fn known_atoms(p: &Program, table: &AtomTable) -> Result<(), Diagnostics> {
    let mut errors = Diagnostics::default();
    for (_, spec) in p.specs.iter().filter(|(_, s)| s.body.is_none()) {
        let unknown = spec.atom.as_deref().and_then(|name| table.find(name).err());
        unknown.into_iter().for_each(|e| errors.push(e.diagnostic(spec)));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Refuses kernels that need more shared memory than a block can have.
fn fits(p: &Program, table: &AtomTable) -> Result<(), Diagnostics> {
    let mut errors = Diagnostics::default();
    for kernel in &p.kernels {
        let buffers = smem::buffers(p, *kernel);
        if let Err(d) = smem::Arena::place(p, &buffers, table) {
            errors.push(*d);
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// How many instances are left out, one after the other.
const MOST_LEFT_OUT: usize = 16;

/// The instances that are left out, and those that were chosen for kernels that need too much
/// shared memory; none where there are none of these.
fn too_large(
    p: &Program,
    table: &AtomTable,
    rankings: &[Ranking],
    left_out: &[String],
) -> Option<Vec<String>> {
    let large =
        |kernel: &&SpecId| smem::Arena::place(p, &smem::buffers(p, **kernel), table).is_err();
    let names: Vec<&str> =
        p.kernels.iter().filter(large).filter_map(|k| p.specs[*k].name.as_deref()).collect();
    let of = |r: &&Ranking| names.contains(&r.kernel.trim_start_matches('@'));
    let chosen = rankings.iter().filter(of).filter_map(|r| r.instances.first());
    let more: Vec<String> =
        chosen.map(|c| c.by.clone()).filter(|by| !left_out.contains(by)).collect();
    let few = left_out.len() < MOST_LEFT_OUT;
    (few && !more.is_empty()).then(|| [left_out, &more].concat())
}

/// Refuses a solution with a relation that does not hold, or that nothing vouches for.
fn certified(p: &Program, solution: &Solution, table: &AtomTable) -> Result<(), Box<Diagnostic>> {
    let refuse = |code: Code, spec: SpecId, what: String, help: &str| {
        Err(Box::new(Diagnostic::new(code, p.specs[spec].span, what).help(help)))
    };
    let report = "please report this with the file";
    for c in &solution.certificates {
        match vouched(c, table) {
            Ok(()) => {}
            Err(checker::Wrong::TooLarge) => {
                let what = "the tile has too many elements to check its layouts".to_owned();
                return refuse(Code::TooLarge, c.spec, what, "give a block smaller tiles");
            }
            Err(wrong) => {
                let what = format!("the relation for `{}` does not hold: {wrong}", c.atom);
                return refuse(Code::Internal, c.spec, what, report);
            }
        }
    }
    let vouched: BTreeSet<SpecId> = solution.certificates.iter().map(|c| c.spec).collect();
    let all = p.specs.iter().map(|(id, _)| id).filter(|id| solution.implements(*id));
    for id in all {
        if !vouched.contains(&id) {
            let what = format!("nothing vouches for this {}", p.specs[id].kind);
            return refuse(Code::Internal, id, what, report);
        }
    }
    Ok(())
}

/// Checks that the letters of rows are those of the table, then the relation.
fn vouched(c: &Certificate, table: &AtomTable) -> Result<(), checker::Wrong> {
    let letters: Vec<_> = match &c.relation {
        Relation::Copy { p, q, .. } => vec![p, q],
        Relation::Gemm { row, .. } => row.iter().collect(),
        Relation::Pointwise { .. }
        | Relation::Reduction { .. }
        | Relation::Part { .. }
        | Relation::Exchange { .. } => vec![],
    };
    let operands = table.get(c.atom).map_or(&[][..], |a| &a.operands);
    if !letters.is_empty() && operands.len() < letters.len() {
        return Err(checker::Wrong::At("the row has fewer operands".to_owned()));
    }
    letters.into_iter().zip(operands).try_for_each(|(p, o)| checker::check_row(p, &o.tv))?;
    checker::check(&c.relation)
}

fn one(d: Diagnostic) -> Diagnostics {
    let mut out = Diagnostics::default();
    out.push(d);
    out
}

/// The atom of every leaf that is not the solver's.
fn leaves(
    p: &Program,
    table: &AtomTable,
    solution: &Solution,
) -> Result<BTreeMap<SpecId, String>, Diagnostics> {
    let mut atoms = BTreeMap::new();
    let mut errors = Diagnostics::default();
    for &kernel in &p.kernels {
        let mut calls = !calls::keeps_factor(p, kernel, table, Some(solution));
        loop {
            let (mut own, mut wrong) = (BTreeMap::new(), Diagnostics::default());
            let by = (&mut own, &mut wrong);
            let mut leaves = Leaves { p, table, solution, calls, atoms: by.0, errors: by.1 };
            for (id, around) in p.leaves(kernel) {
                leaves.leaf(id, &around);
            }
            let keeps = |name: &String| table.get(name).is_some_and(Atom::keeps_factor);
            if calls && own.values().any(keeps) {
                calls = false;
                continue;
            }
            atoms.extend(own);
            wrong.into_iter().for_each(|d| errors.push(d));
            break;
        }
    }
    if errors.is_empty() { Ok(atoms) } else { Err(errors) }
}

/// Resolves and verifies a module, like [`resolve::resolve_read`].
///
/// # Errors
/// The errors of both.
pub fn checked(module: &Module, src: &str) -> Result<Program, Diagnostics> {
    verified(module, resolve::resolve_read(module, src)?)
}

/// Resolves and verifies a module that was made from an elaborated one.
fn elaborated(module: &Module, src: &str) -> Result<Program, Diagnostics> {
    verified(module, resolve::resolve_elaborated(module, src)?)
}

fn verified(module: &Module, program: Program) -> Result<Program, Diagnostics> {
    let errors = verify::verify(&program);
    if errors.is_empty() { Ok(program) } else { Err(resolve::joined(module, errors)) }
}

/// Resolves and verifies an elaborated module, in which each statement then has an id of its own.
fn separated<'m>(module: &'m Module, src: &str) -> Result<(Cow<'m, Module>, Program), Diagnostics> {
    let program = elaborated(module, src)?;
    if module.is_separate() {
        return Ok((Cow::Borrowed(module), program));
    }
    let mut module = module.clone();
    module.separate();
    let program = elaborated(&module, src)?;
    Ok((Cow::Owned(module), program))
}

/// A module from which programs are generated. Errors of a generated program, except those of
/// limits, are our defects.
struct Generated<'a> {
    module: &'a Module,
    /// Its text.
    src: &'a str,
}

impl Generated<'_> {
    /// Resolves and verifies a tree that was made from the module.
    fn checked(&self, tree: &Module) -> Result<Program, Diagnostics> {
        elaborated(tree, self.src).map_err(|errors| {
            // The printed text has lines, so that its errors name lines.
            let text = text::print(tree);
            let again = text::parse(&text).and_then(|parsed| elaborated(&parsed, &text));
            let lines = again.err().into_iter().flatten().map(|d| line_of(&text, d.span));
            let lines = lines.map(Some).chain(std::iter::repeat(None));
            errors.into_iter().zip(lines).map(|(d, line)| self.refused(d, line)).collect()
        })
    }

    /// Prints a tree and reads its text again: the same tree, with its ids, whose spans are into
    /// the text.
    fn read_again(&self, tree: &Module) -> Result<(Module, String, Program), Diagnostics> {
        let text = text::print(tree);
        let ours = |errors: Diagnostics| -> Diagnostics {
            let refused = |d: Diagnostic| {
                let line = line_of(&text, d.span);
                self.refused(Diagnostic { span: Span::default(), related: vec![], ..d }, Some(line))
            };
            errors.into_iter().map(refused).collect()
        };
        let mut module = text::parse(&text).map_err(ours)?;
        // A text does not tell all comments and empty lines of a tree that was built in memory.
        if module != *tree && bare(&module) != bare(tree) {
            let message = "the generated text reads back as another tree";
            let d = Diagnostic::new(Code::Internal, self.kernel(), message);
            return Err(one(d.help("please report this with the file")));
        }
        module.take_ids(tree);
        let program = resolve::resolve_elaborated(&module, &text).map_err(ours)?;
        Ok((module, text, program))
    }

    fn refused(&self, d: Diagnostic, line: Option<(usize, String)>) -> Diagnostic {
        let mut d = match d.code {
            // Limits of the hardware and of the input are the program's own.
            c if c.as_str().starts_with('X') => d,
            _ => {
                let message = format!("the generated text is refused: {d}");
                Diagnostic::new(Code::Internal, d.span, message)
                    .help("please report this with the file")
            }
        };
        if d.span.is_nowhere() {
            d.span = self.kernel();
        }
        match line {
            Some((line, text)) => d.note(format!("generated line {line}: {text}")),
            None => d,
        }
    }

    /// Where the first kernel stands.
    fn kernel(&self) -> Span {
        let kernel = self.module.items.iter().find_map(|s| match &s.kind {
            StmtKind::Spec(spec) => Some(spec.span),
            _ => None,
        });
        kernel.unwrap_or_default()
    }
}

/// A module without its comments and empty lines.
fn bare(module: &Module) -> Module {
    let (header, footer) = (vec![], vec![]);
    let mut out = Module { header, footer, ..module.clone() };
    let mut lists = vec![&mut out.items];
    while let Some(list) = lists.pop() {
        for stmt in list {
            (stmt.blank_above, stmt.trailing) = (false, None);
            stmt.leading.clear();
            for block in stmt.kind.blocks_mut() {
                block.footer.clear();
                lists.push(&mut block.stmts);
            }
        }
    }
    out
}

/// The line of a text where a span begins: its number and what stands there.
fn line_of(text: &str, span: Span) -> (usize, String) {
    let (line, _) = span.line_col(text);
    (line, text.lines().nth(line.saturating_sub(1)).unwrap_or("").trim().to_owned())
}

/// A module whose kernels have bodies, and what was looked at for each that had none.
type WithBodies = (Module, Vec<Ranking>);

/// Kernels that strategies give may be kernel-level specs again; so often.
const MOST_PLANS: usize = 8;

/// Gives kernel-level specs their dataflow.
fn plan(
    generated: &Generated<'_>,
    program: &Program,
    table: &AtomTable,
    options: &Options,
    names: &mut Names,
    depth: usize,
) -> Result<WithBodies, Diagnostics> {
    let mut rankings = vec![];
    let mut module = generated.module.clone();
    let mut program = Cow::Borrowed(program);
    for depth in depth..MOST_PLANS {
        let kernels = &program.kernels;
        if kernels.iter().all(|k| program.specs[*k].body.is_some()) {
            break;
        }
        let planned = planned_once(generated, &module, &program, table, options, names, depth)?;
        module = planned.0;
        rankings.extend(planned.1);
        let checked = generated.checked(&module).map_err(|e| blamed(e, &theirs(&rankings)))?;
        program = Cow::Owned(checked);
    }
    match program.kernels.iter().find(|k| program.specs[**k].body.is_none()) {
        Some(open) => {
            let message =
                format!("it is still not decomposed after {MOST_PLANS} divisions into kernels");
            let help = "write several specs, with tensors in GL between them";
            let span = program.specs[*open].span;
            Err(one(Diagnostic::new(Code::NoStrategy, span, message).help(help)))
        }
        None => Ok((module, rankings)),
    }
}

/// Divides the kernels of the module, and leaves those that strategies give.
fn planned_once(
    generated: &Generated<'_>,
    module: &Module,
    program: &Program,
    table: &AtomTable,
    options: &Options,
    names: &mut Names,
    depth: usize,
) -> Result<WithBodies, Diagnostics> {
    let machine = options.machine(table);
    let model = model::Model::new(table, &machine);
    let search = options.choosing.unwrap_or(options.search);
    let stage = Stage::new("choosing", None);
    let solve = |module: &Module, ordered: bool| {
        stage.step();
        let tried = |budget| {
            let search = Search { budget, ..search };
            trial(module, generated.src, table, (options, search), ordered)
        };
        let all = search.budget;
        let few = tried(all.min(TRIAL_BUDGET));
        // Where there is nothing yet to compare it with, it is worth the whole search.
        let ended = |e: &Diagnostics| e.iter().any(|d| d.code == Code::Budget);
        match &few {
            Err(e) if ordered && all > TRIAL_BUDGET && ended(e) => tried(all),
            _ => few,
        }
    };
    let plan_of = |module: &Module, names: &Names| {
        let generated = Generated { module, src: generated.src };
        let program = generated.checked(module)?;
        let mut names = names.clone().and(module);
        plan(&generated, &program, table, options, &mut names, depth + 1)
    };
    // Strategies are matched and ranked with numbers in the places of symbols.
    let found = instance::symbols::Symbols::find(program, |symbols| {
        let module = symbols.put(program, module);
        elaborated(&module, generated.src).map(|program| (module, program))
    });
    let (found, unsized_for) = match found {
        Ok(found) => (found, None),
        Err(why) => (None, Some(why)),
    };
    let (symbols, numbers) = found.unzip();
    let (sized, sized_program) =
        numbers.as_ref().map_or((module, program), |(module, program)| (module, program));
    let (needed, needed_sized) = (Needed::new(module), Needed::new(sized));
    let choosing = instance::choose::Choosing {
        module: sized,
        symbols: None,
        unsized_for: unsized_for.as_ref(),
        src: generated.src,
        program: sized_program,
        table,
        machine: &machine,
        model: &model,
        strategies: &options.strategies,
        left_out: &options.left_out,
        solve: &solve,
        plan: &plan_of,
    };
    let mut out = module.clone();
    out.items.clear();
    let mut errors = Diagnostics::default();
    let mut rankings = vec![];
    let specs = program.specs_by_node();
    for stmt in &module.items {
        let kernel = specs.get(&stmt.id.key()).filter(|id| program.specs[**id].body.is_none());
        let (StmtKind::Spec(_), Some(&id)) = (&stmt.kind, kernel) else {
            out.items.push(stmt.clone());
            continue;
        };
        stage.kernel(program.specs[id].name.as_deref());
        let (own, own_sized) = (needed.of(stmt), needed_sized.of(stmt));
        let symbols = symbols.as_ref().map(|symbols| (&own, symbols));
        let choosing = instance::choose::Choosing { module: &own_sized, symbols, ..choosing };
        match choosing.choose(id, stmt, names) {
            Ok(planned) => {
                out.items.extend(planned.stmts);
                rankings.extend(planned.rankings);
            }
            Err(d) => errors.push(*d),
        }
    }
    if errors.is_empty() { Ok((out, rankings)) } else { Err(errors) }
}

/// Choices of the search for the layouts of one instance among others: enough to compare instances
/// by, as that which is taken is solved again.
const TRIAL_BUDGET: u64 = 8000;

/// Cycles of a module whose layouts are solved, all kernels with bodies together. Unless it is to
/// be `ordered`, nothing is known of whether its accesses can be.
fn trial(
    module: &Module,
    src: &str,
    table: &AtomTable,
    (options, search): (&Options, Search),
    ordered: bool,
) -> Result<instance::choose::Trial, Diagnostics> {
    let bodies = |s: &Stmt| !matches!(&s.kind, StmtKind::Spec(spec) if spec.body.is_none());
    let items = module.items.iter().filter(|s| bodies(s)).cloned().collect();
    let module = Module { items, ..module.clone() };
    let (module, program) = separated(&module, src)?;
    let generated = Generated { module: &module, src };
    let mut names = Names::of(&module);
    let planned = (module.clone().into_owned(), vec![]);
    let by = (options, &[][..], Staging::ALL);
    let tiles = tiles(&generated, planned, program, table, &mut names, by)?;
    let (_, solution) = solved(&generated, tiles, table, search, ordered, &mut names)?;
    // Of each kernel's own grid; what is written by hand is in it.
    let all = || solution.estimates.iter().map(|(_, estimate)| estimate);
    Ok(instance::choose::Trial {
        cycles: all().map(|e| e.cycles * crowding(e, table)).sum(),
        spills: all().any(Estimate::spills),
        shared: all().map(|e| e.shared_bytes).max().unwrap_or(0),
    })
}

/// By what factor instances are put behind others whose threads hold fewer values at once than
/// these, which have no registers for all: the compiler may find an order in which it keeps fewer,
/// and may not. Behind those whose threads have less to do are put instances without products that
/// are alike but for it, as more threads hide more of each other's waiting.
fn crowding(e: &Estimate, table: &AtomTable) -> f64 {
    /// The smallest difference of instances of which one takes twice the registers that there are.
    const CROWDED: f64 = 0.02;
    /// The smallest difference of instances of which one has threads of twice `MUCH` instructions.
    /// Instructions count up to a fourth beyond that number: layernorm of 4095 elements takes
    /// 220 us with 128 threads, which have 550 instructions each, and 201 us with 256.
    const BUSY: f64 = 0.25;
    /// Instructions of a thread that are much.
    const MUCH: f64 = 450.0;
    let limits = carbyne_atoms::limits(table.arch);
    let room = (limits.regs_per_sm / e.threads.max(1)).clamp(1, limits.regs_per_thread);
    let over = (e.registers - room).clamp(0, 2 * room);
    let each = e.instructions / (e.threads.max(1) as f64 / 32.0).ceil();
    let multiplies = e[Resource::Matrix].amount > 0.0;
    let busy = if multiplies { 0.0 } else { (each / MUCH - 1.0).clamp(0.0, 0.25) };
    1.0 + CROWDED * over as f64 / room as f64 + BUSY * busy
}

/// Names the atom of every leaf that the solver has not decomposed.
struct Leaves<'a> {
    p: &'a Program,
    table: &'a AtomTable,
    solution: &'a Solution,
    /// Whether atoms may be taken of which ptxas makes a call.
    calls: bool,
    atoms: &'a mut BTreeMap<SpecId, String>,
    errors: &'a mut Diagnostics,
}

impl Leaves<'_> {
    fn leaf(&mut self, id: SpecId, around: &[SpecId]) {
        let s = self.solution;
        if s.implements(id) {
            return;
        }
        let spec = &self.p.specs[id];
        let mut tensors = spec.input_tensors().chain(spec.outputs.iter().copied());
        if tensors.any(|t| self.p.buffer_of(t).open) {
            // Compared again when the layout stands in the text.
            return;
        }
        let Some(pinned) = &spec.atom else {
            match matching::match_any(self.p, id, around, self.table, self.calls) {
                Ok(m) => drop(self.atoms.insert(id, m.atom.to_owned())),
                Err(r) => {
                    self.errors.push(matching::no_atom(self.p, id, self.table, &r));
                }
            }
            return;
        };
        // A name that the table does not have was refused before.
        let Some(atom) = self.table.get(pinned) else { return };
        if let Err(m) = matching::match_atom(self.p, id, around, atom) {
            let table = std::iter::once(self.table);
            self.errors.push(named::not_by(self.p, (id, around), pinned, &m, table));
        }
    }
}
