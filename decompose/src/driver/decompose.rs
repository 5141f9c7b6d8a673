//! Provides the entry points that decompose a module: [`decompose`], [`decompose_with`] and
//! [`decompose_by`]. They add warnings about unstated facts to the result of an attempt, and name
//! the pins that are to blame for an error.

use super::attempt::{Attempt, attempt};
use super::decomposed::{Decomposed, Options};
use super::tiles::Staging;
use super::{pins, unstated};
use crate::layouts::Search;
use crate::resolved::checked;
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::Module;
use carbyne_ir::ast::visit::Walk;
use carbyne_ir::diag::Diagnostics;
use carbyne_ir::resolve;

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
