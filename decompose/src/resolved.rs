//! Resolves and verifies modules: those of a text ([`checked`]), and those that were made from an
//! elaborated one ([`elaborated`]).

use carbyne_ir::ast::Module;
use carbyne_ir::diag::Diagnostics;
use carbyne_ir::program::Program;
use carbyne_ir::{resolve, verify};
use std::borrow::Cow;

/// Resolves and verifies a module, like [`resolve::resolve_read`].
///
/// # Errors
/// The errors of both.
pub fn checked(module: &Module, src: &str) -> Result<Program, Diagnostics> {
    verified(module, resolve::resolve_read(module, src)?)
}

/// Resolves and verifies a module that was made from an elaborated one.
pub(crate) fn elaborated(module: &Module, src: &str) -> Result<Program, Diagnostics> {
    verified(module, resolve::resolve_elaborated(module, src)?)
}

fn verified(module: &Module, program: Program) -> Result<Program, Diagnostics> {
    let errors = verify::verify(&program);
    if errors.is_empty() { Ok(program) } else { Err(resolve::joined(module, errors)) }
}

/// Resolves and verifies an elaborated module, in which each statement then has an id of its own.
pub(crate) fn separated<'m>(
    module: &'m Module,
    src: &str,
) -> Result<(Cow<'m, Module>, Program), Diagnostics> {
    let program = elaborated(module, src)?;
    if module.is_separate() {
        return Ok((Cow::Borrowed(module), program));
    }
    let mut module = module.clone();
    module.separate();
    let program = elaborated(&module, src)?;
    Ok((Cow::Owned(module), program))
}
