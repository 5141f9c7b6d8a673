//! Provides the steps that several commands share, from a text to a decomposed program: parse,
//! import, check, decompose, prove the order of accesses. It also tries changes of the text that
//! correct its errors.

use crate::failure::{Failure, Given, Source};
use crate::tuned::{self, Notes, Tuning};
use crate::{input, regular_file};
use carbyne_atoms::{Arch, AtomTable, Costs, NoAtom};
use carbyne_decompose::{Options, Search};
use carbyne_ir::ast::{Module, Stmt, StmtKind};
use carbyne_ir::diag::{Diagnostic, Diagnostics};
use carbyne_ir::limits::MAX_TEXT_BYTES;
use carbyne_ir::program::{Program, SpecId};
use carbyne_ir::resolve;
use carbyne_ir::span::LineIndex;
use carbyne_ir::text;
use carbyne_remedy::Wrong;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

/// The atom table of the architecture with this name.
pub(crate) fn table(name: &str) -> Result<AtomTable, Failure> {
    name.parse::<Arch>().map(AtomTable::new).map_err(|e: carbyne_atoms::UnknownArch| {
        Failure::usage_help(format!("{}: {e}", e.code()), e.help())
    })
}

/// The atom table with the costs of a file that `carbyne atoms calibrate` wrote.
pub(crate) fn costed(name: &str, costs: Option<&Path>) -> Result<AtomTable, Failure> {
    let table = table(name)?;
    let Some(path) = costs else { return Ok(table) };
    let shown = path.display();
    let refused = |what: String| {
        Failure::usage_help(
            format!("`{shown}`: {what}"),
            "create the file with `carbyne atoms calibrate --device -o FILE`",
        )
    };
    let text = regular_file::open(path).and_then(|f| {
        let mut text = String::new();
        f.take(MAX_TEXT_BYTES as u64).read_to_string(&mut text).map(|_| text)
    });
    let text = text.map_err(|e| refused(crate::input::reason(&e)))?;
    let costs = Costs::read(&text).map_err(|e| refused(e.to_string()))?;
    table.with_costs(&costs).map_err(|e| refused(e.to_string()))
}

/// Parses the text, without imports.
pub(crate) fn parsed_without_imports(source: &Source) -> Result<Module, Failure> {
    text::parse(&source.text).map_err(|e| Failure::program(source, e))
}

/// Parses the text and adds the sub-specs of imported files.
pub(crate) fn parsed(source: &Source) -> Result<Module, Failure> {
    let module = parsed_without_imports(source)?;
    input::linked(source, &module).map_err(|e| Failure::program(source, e))
}

/// Parses and checks the text. Errors come with changes of the text that correct them.
pub(crate) fn verified(source: &Source) -> Result<(Module, Program), Failure> {
    let module = parsed(source)?;
    let program = carbyne_decompose::checked(&module, &source.text)
        .map_err(|e| repaired(source, e, &|_| 0))?;
    Ok((module, program))
}

/// Parses and checks the text, without searching for changes.
pub(crate) fn meant(source: &Source) -> Result<Program, Diagnostics> {
    text::parse(&source.text).and_then(|module| meaning(source, &module))
}

/// Checks a module of the text.
fn meaning(source: &Source, module: &Module) -> Result<Program, Diagnostics> {
    let module = input::linked(source, module)?;
    carbyne_decompose::checked(&module, &source.text)
}

/// Adds changes of the text to errors, if the changed text has fewer errors. For well-formed
/// changed texts, `later` counts the remaining errors.
pub(crate) fn repaired(
    source: &Source,
    errors: Diagnostics,
    later: &dyn Fn(&Program) -> usize,
) -> Failure {
    /// The weight of an error that prevents further checks.
    const FIRST: usize = 1 << 32;
    let wrong = |text: &str| {
        let Ok(module) = text::parse(text) else { return Wrong::MOST };
        let changed = Source { text: text.to_owned(), ..source.clone() };
        let errors = match meaning(&changed, &module) {
            Ok(program) => later(&program),
            Err(errors) => errors.len().saturating_mul(FIRST),
        };
        Wrong { errors, warnings: 0 }
    };
    let before = wrong(&source.text);
    let errors = errors.into_iter().collect();
    let errors = carbyne_remedy::repaired(errors, &source.text, before, &wrong);
    Failure::program(source, errors.into_iter().collect())
}

/// The module with all short forms expanded, and its checked program.
pub(crate) fn written_out(source: &Source) -> Result<(Module, Program), Failure> {
    let module = resolve::elaborate_read(&parsed(source)?, &source.text)
        .map_err(|e| Failure::program(source, e))?;
    let program = carbyne_decompose::checked(&module, &source.text)
        .map_err(|e| Failure::program(source, e))?;
    Ok((module, program))
}

/// A program that is complete for an architecture.
pub(crate) struct Decomposed {
    /// The decomposed text. Spans of later errors point into it.
    pub(crate) source: Source,
    /// The program of the decomposed text.
    pub(crate) program: Program,
    /// Warnings of the decomposition, with places in the source text.
    pub(crate) warnings: Vec<Diagnostic>,
    /// Errors and warnings about the order of accesses in kernels that name all atoms, with places
    /// in the decomposed text.
    pub(crate) given: Vec<Diagnostic>,
    /// Notes about tuned pins.
    pub(crate) notes: Notes,
}

/// Options of a decomposition.
#[derive(Copy, Clone, Default)]
pub(crate) struct How<'a> {
    /// Multiprocessors; default: those of the architecture's usual GPU.
    pub(crate) sms: Option<u32>,
    /// Pins for specs without a pin.
    pub(crate) tuning: Option<&'a Tuning>,
    /// Whether to prove the order of accesses in kernels that name all atoms, too.
    pub(crate) given: bool,
}

/// The atom table without atoms whose names match a pattern; `*` matches any text.
///
/// # Errors
/// A pattern matches no atom.
pub fn without(table: AtomTable, forbidden: &[String]) -> Result<AtomTable, NoAtom> {
    let is = |name: &str, pattern: &str| match pattern.contains('*') {
        true => carbyne_decompose::explain::matches(pattern, name),
        false => name == pattern,
    };
    for pattern in forbidden {
        if table.atoms().iter().any(|r| is(r.name, pattern)) {
            continue;
        }
        table.find(pattern)?;
    }
    match forbidden {
        [] => Ok(table),
        all => Ok(table.filtered(|r| !all.iter().any(|f| is(r.name, f)))),
    }
}

/// Decomposes a program.
pub(crate) fn decomposed(source: &Source, table: &AtomTable) -> Result<Decomposed, Failure> {
    tuned(source, table, How::default())
}

/// Decomposes a program and uses tuned pins.
pub(crate) fn tuned(
    source: &Source,
    table: &AtomTable,
    how: How<'_>,
) -> Result<Decomposed, Failure> {
    let found = found(source, table, how)?;
    Ok(Decomposed::of(source, table, found))
}

/// Decomposes a program, uses tuned pins, and proves that the accesses of the result are ordered.
pub(crate) fn ordered(
    source: &Source,
    table: &AtomTable,
    how: How<'_>,
) -> Result<Decomposed, Failure> {
    let mut found = found(source, table, how)?;
    let (_, unknown) = crate::access_order::checked(&source.text, &found.0, table)
        .map_err(|e| Failure::program(source, e))?;
    found.0.warnings.extend(unknown);
    let given = if how.given { crate::access_order::given(&found.0, table) } else { vec![] };
    Ok(Decomposed { given, ..Decomposed::of(source, table, found) })
}

fn found(
    source: &Source,
    table: &AtomTable,
    how: How<'_>,
) -> Result<(carbyne_decompose::Decomposed, Notes), Failure> {
    let module = parsed(source)?;
    let options = options(source, Search { sms: how.sms, ..Search::default() })?;
    tuned::decomposed(source, &module, table, &options, how.tuning).map_err(|e| refused(source, e))
}

/// The failure for errors of a decomposition. If the text is not well formed, adds changes of it.
pub(crate) fn refused(source: &Source, errors: Diagnostics) -> Failure {
    match meant(source) {
        Ok(_) => Failure::program(source, errors),
        Err(errors) => repaired(source, errors, &|_| 0),
    }
}

/// The options of a decomposition with this search.
pub(crate) fn options(source: &Source, search: Search) -> Result<Options, Failure> {
    let strategies = input::strategies(source)?;
    Ok(Options { search, strategies, ..Options::default() })
}

impl Decomposed {
    fn of(
        source: &Source,
        table: &AtomTable,
        (found, notes): (carbyne_decompose::Decomposed, Notes),
    ) -> Self {
        let name = format!("{} for {}", source.name, table.arch);
        let starts = found.program.kernels.iter().map(|k| found.program.specs[*k].span.start);
        let theirs = found.program.kernels.iter().map(|k| found.theirs(*k).cloned());
        let theirs = starts.zip(theirs).collect();
        let lines = LineIndex::new(&source.text);
        let mut given =
            Given { name: source.name.clone(), text: source.text.clone(), lines: BTreeMap::new() };
        let all = if found.text == source.text { &[][..] } else { &found.program.kernels };
        for kernel in all {
            let spec = &found.program.specs[*kernel];
            let head = std::iter::once((spec.line, spec.node));
            let inside = found.program.walk_body(*kernel).stmts().map(|s| (s.line, s.node));
            for (line, node) in head.chain(inside) {
                let span = found.origins.span(node);
                if !span.is_nowhere() {
                    given.lines.entry(line as usize).or_insert(lines.line(span.start));
                }
            }
        }
        let decomposed = Source { name, text: found.text, theirs, given, ..Source::default() };
        let (program, warnings) = (found.program, found.warnings);
        Decomposed { source: decomposed, program, warnings, given: vec![], notes }
    }
}

/// The tensors and numbers that a text declares. Strategies may add others.
pub fn declared(module: &Module) -> BTreeSet<String> {
    let name = |stmt: &Stmt| match &stmt.kind {
        StmtKind::DataDecl { name, .. } => Some(name.text.clone()),
        _ => None,
    };
    module.items.iter().filter_map(name).collect()
}

/// Checks that the program has a kernel.
pub(crate) fn has_kernel(source: &Source, program: &Program) -> Result<(), Failure> {
    match program.kernels.is_empty() {
        false => Ok(()),
        true => Err(Failure::usage_help(format!("`{}` has no kernel", source.name), NO_KERNEL)),
    }
}

/// The help for a file without a kernel.
const NO_KERNEL: &str =
    "add a spec at the top level of the file; a `def` is used only by specs that call it";

/// The kernel with this name.
pub(crate) fn kernel(source: &Source, program: &Program, name: &str) -> Result<SpecId, Failure> {
    let kernels = &program.kernels;
    let of = |id: &SpecId| program.specs[*id].name.as_deref();
    kernels.iter().find(|id| of(id) == Some(name)).copied().ok_or_else(|| {
        let names: Vec<String> = kernels
            .iter()
            .map(|id| of(id).map_or("(unnamed)".to_owned(), |n| format!("`{n}`")))
            .collect();
        let shown: String = name.chars().take(64).collect();
        Failure::usage_help(
            format!("there is no kernel `{shown}`"),
            format!("use one of the kernels of `{}`: {}", source.name, names.join(", ")),
        )
    })
}
