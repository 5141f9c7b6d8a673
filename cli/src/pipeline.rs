//! From a text to what a command needs of it.

use crate::failure::{Failure, Given, Source};
use crate::tuned::{self, Notes, Tuning};
use crate::{input, ordinary};
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

/// The atoms of the architecture of that name.
pub(crate) fn table(name: &str) -> Result<AtomTable, Failure> {
    name.parse::<Arch>().map(AtomTable::new).map_err(|e: carbyne_atoms::UnknownArch| {
        Failure::usage_help(format!("{}: {e}", e.code()), e.help())
    })
}

/// The same, with the costs of a file that `carbyne atoms calibrate` wrote.
pub(crate) fn costed(name: &str, costs: Option<&Path>) -> Result<AtomTable, Failure> {
    let table = table(name)?;
    let Some(path) = costs else { return Ok(table) };
    let shown = path.display();
    let refused = |what: String| {
        Failure::usage_help(
            format!("`{shown}`: {what}"),
            "`carbyne atoms calibrate --device -o FILE` writes such a file",
        )
    };
    let text = ordinary::open(path).and_then(|f| {
        let mut text = String::new();
        f.take(MAX_TEXT_BYTES as u64).read_to_string(&mut text).map(|_| text)
    });
    let text = text.map_err(|e| refused(crate::input::reason(&e)))?;
    let costs = Costs::read(&text).map_err(|e| refused(e.to_string()))?;
    table.with_costs(&costs).map_err(|e| refused(e.to_string()))
}

/// The module as it is written in the text.
pub(crate) fn written(source: &Source) -> Result<Module, Failure> {
    text::parse(&source.text).map_err(|e| Failure::program(source, e))
}

/// The module in the text, with the sub-specs of the files that it imports.
pub(crate) fn parsed(source: &Source) -> Result<Module, Failure> {
    let module = written(source)?;
    input::linked(source, &module).map_err(|e| Failure::program(source, e))
}

/// The module and the program that it means, well formed. Changes of a wrong text are tried.
pub(crate) fn verified(source: &Source) -> Result<(Module, Program), Failure> {
    let module = parsed(source)?;
    let program = carbyne_decompose::checked(&module, &source.text)
        .map_err(|e| repaired(source, e, &|_| 0))?;
    Ok((module, program))
}

/// The program that a text means, if it is well formed.
pub(crate) fn meant(source: &Source) -> Result<Program, Diagnostics> {
    text::parse(&source.text).and_then(|module| meaning(source, &module))
}

/// The program that the module in a text means.
fn meaning(source: &Source, module: &Module) -> Result<Program, Diagnostics> {
    let module = input::linked(source, module)?;
    carbyne_decompose::checked(&module, &source.text)
}

/// Errors of a text, with changes of it that leave fewer, in well-formed programs as `later`
/// counts.
pub(crate) fn repaired(
    source: &Source,
    errors: Diagnostics,
    later: &dyn Fn(&Program) -> usize,
) -> Failure {
    /// Errors that keep a text from being looked at any further.
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

/// The module without short forms, and the program that it means, well formed.
pub(crate) fn written_out(source: &Source) -> Result<(Module, Program), Failure> {
    let module = resolve::elaborate_read(&parsed(source)?, &source.text)
        .map_err(|e| Failure::program(source, e))?;
    let program = carbyne_decompose::checked(&module, &source.text)
        .map_err(|e| Failure::program(source, e))?;
    Ok((module, program))
}

/// A program with everything filled in for an architecture.
pub(crate) struct Decomposed {
    /// Its text, into which spans of later errors point.
    pub(crate) source: Source,
    /// What the text means.
    pub(crate) program: Program,
    /// What the decomposition warns of, in the text that was decomposed.
    pub(crate) warnings: Vec<Diagnostic>,
    /// Of tuned pins.
    pub(crate) notes: Notes,
}

/// How a program is decomposed.
#[derive(Copy, Clone, Default)]
pub(crate) struct How<'a> {
    /// Multiprocessors; those of the architecture's usual card without.
    pub(crate) sms: Option<u32>,
    /// Pins of specs that have none.
    pub(crate) tuning: Option<&'a Tuning>,
}

/// The table without the atoms of these names; `*` stands for anything.
///
/// # Errors
/// A name that no atom has.
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

/// The same, by pins that were tuned, too.
pub(crate) fn tuned(
    source: &Source,
    table: &AtomTable,
    how: How<'_>,
) -> Result<Decomposed, Failure> {
    let found = found(source, table, how)?;
    Ok(Decomposed::of(source, table, found))
}

/// The same, and proves that the accesses of the result are ordered.
pub(crate) fn ordered(
    source: &Source,
    table: &AtomTable,
    how: How<'_>,
) -> Result<Decomposed, Failure> {
    let mut found = found(source, table, how)?;
    let (_, unknown) = crate::order::checked(&source.text, &found.0, table)
        .map_err(|e| Failure::program(source, e))?;
    found.0.warnings.extend(unknown);
    Ok(Decomposed::of(source, table, found))
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

/// Errors of a text that is to be decomposed; of one that is not well formed, with changes.
pub(crate) fn refused(source: &Source, errors: Diagnostics) -> Failure {
    match meant(source) {
        Ok(_) => Failure::program(source, errors),
        Err(errors) => repaired(source, errors, &|_| 0),
    }
}

/// How a text is decomposed, searching so long.
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
        Decomposed { source: decomposed, program, warnings, notes }
    }
}

/// The tensors and numbers that a text declares; strategies may add others.
pub fn declared(module: &Module) -> BTreeSet<String> {
    let name = |stmt: &Stmt| match &stmt.kind {
        StmtKind::DataDecl { name, .. } => Some(name.text.clone()),
        _ => None,
    };
    module.items.iter().filter_map(name).collect()
}

/// That there is a kernel.
pub(crate) fn has_kernel(source: &Source, program: &Program) -> Result<(), Failure> {
    match program.kernels.is_empty() {
        false => Ok(()),
        true => Err(Failure::usage_help(format!("`{}` holds no kernel", source.name), NO_KERNEL)),
    }
}

/// The help of a file without one.
const NO_KERNEL: &str =
    "write a spec at the top of the file; a `def` takes part in one that uses it";

/// The kernel of that name.
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
            format!("`{}` holds the kernels {}", source.name, names.join(", ")),
        )
    })
}
