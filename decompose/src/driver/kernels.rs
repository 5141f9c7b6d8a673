//! Gives kernel-level specs their bodies: `strategies` matches and ranks instances, and [`plan`]
//! solves the layouts of those that are to be compared.

use super::decomposed::Options;
use super::generated::{Generated, one};
use super::refusals::known_atoms;
use super::solving::solved;
use super::tiles::{Staging, tiles};
use crate::cost;
use crate::cost::Estimate;
use crate::cost::crowding::crowding;
use crate::layouts::Search;
use crate::names::Names;
use crate::resolved::{elaborated, separated};
use crate::strategies;
use crate::strategies::candidates::{Ranking, WithBodies};
use crate::strategies::library::Theirs;
use crate::strategies::needed::Needed;
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::{Module, Stmt, StmtKind};
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::program::Program;
use carbyne_ir::progress::Stage;
use carbyne_ir::resolve;
use carbyne_ir::span::Span;
use std::borrow::Cow;

/// Kernels that strategies give may be kernel-level specs again; so often.
pub(super) const MOST_PLANS: usize = 8;

/// Gives kernel-level specs their dataflow.
pub(super) fn plan(
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
pub(super) fn planned_once(
    generated: &Generated<'_>,
    module: &Module,
    program: &Program,
    table: &AtomTable,
    options: &Options,
    names: &mut Names,
    depth: usize,
) -> Result<WithBodies, Diagnostics> {
    let machine = options.machine(table);
    let model = cost::Model::new(table, &machine);
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
    let found = strategies::symbols::Symbols::find(program, |symbols| {
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
    let choosing = strategies::candidates::Choosing {
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
        let choosing = strategies::candidates::Choosing { module: &own_sized, symbols, ..choosing };
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
pub(super) const TRIAL_BUDGET: u64 = 8000;

/// Cycles of a module whose layouts are solved, all kernels with bodies together. Unless it is to
/// be `ordered`, nothing is known of whether its accesses can be.
pub(super) fn trial(
    module: &Module,
    src: &str,
    table: &AtomTable,
    (options, search): (&Options, Search),
    ordered: bool,
) -> Result<strategies::candidates::Trial, Diagnostics> {
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
    Ok(strategies::candidates::Trial {
        cycles: all().map(|e| e.cycles * crowding(e, table)).sum(),
        spills: all().any(Estimate::spills),
        shared: all().map(|e| e.shared_bytes).max().unwrap_or(0),
    })
}

/// The specs for which strategies of users have written something.
pub(super) fn theirs(rankings: &[Ranking]) -> Vec<(Span, Theirs)> {
    rankings.iter().filter_map(|r| Some((r.span, r.theirs.clone()?))).collect()
}

/// Errors about what strategies of users have written, with where these stand: no defects of ours.
pub(super) fn blamed(errors: Diagnostics, all: &[(Span, Theirs)]) -> Diagnostics {
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

/// Lists the strategies and parameters that could decompose the kernel-level specs of a module, in
/// the order of the text. For each spec the best come first, as far as is known.
/// [`crate::decompose_by`] chooses among them; each can be pinned by its `by`.
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
