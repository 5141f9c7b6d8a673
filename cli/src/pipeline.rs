//! From a text to what a command needs of it.

use crate::failure::{Failure, Source};
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::ast::Module;
use carbyne_ir::program::Program;
use carbyne_ir::{resolve, text, verify};

/// The architecture of that name.
pub(crate) fn arch(name: &str) -> Result<Arch, Failure> {
    name.parse().map_err(|e: carbyne_atoms::UnknownArch| {
        Failure::usage_help(format!("{}: {e}", e.code()), e.help())
    })
}

/// The module in the text.
pub(crate) fn parsed(source: &Source) -> Result<Module, Failure> {
    text::parse(&source.text).map_err(|e| Failure::program(source, e))
}

/// The module and the program that it means, well formed.
pub(crate) fn verified(source: &Source) -> Result<(Module, Program), Failure> {
    let module = parsed(source)?;
    let program =
        resolve::resolve(&module, &source.text).map_err(|e| Failure::program(source, e))?;
    let errors = verify::verify(&program);
    if errors.is_empty() { Ok((module, program)) } else { Err(Failure::program(source, errors)) }
}

/// The program with everything filled in for an architecture.
pub(crate) struct Decomposed {
    /// Its text.
    pub(crate) text: String,
    /// What the text means.
    pub(crate) program: Program,
}

/// Decomposes a well-formed program.
pub(crate) fn decomposed(source: &Source, arch: Arch) -> Result<Decomposed, Failure> {
    let (_module, _) = verified(source)?;
    let _table = AtomTable::new(arch);
    // FIXME: `carbyne_decompose::decompose` is not there yet.
    let span = carbyne_ir::span::Span::default();
    Err(Failure::one(
        source,
        carbyne_ir::diag::Diagnostic::new(
            carbyne_ir::diag::Code::Internal,
            span,
            "programs are not decomposed yet",
        ),
    ))
}
