//! Runs the text of a program in the simulator, for these tests.

use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::Program;
use carbyne_simulate::{Options, Report, simulate};

/// The program of a correct text.
pub(crate) fn program(text: &str) -> Program {
    let module =
        carbyne_ir::text::parse(text).unwrap_or_else(|e| panic!("{}", list(&e.into_vec())));
    let program = carbyne_ir::resolve::resolve(&module, text);
    let program = program.unwrap_or_else(|e| panic!("{}", list(&e.into_vec())));
    let errors = carbyne_ir::verify::verify(&program);
    assert!(errors.is_empty(), "{}", list(&errors.into_vec()));
    program
}

fn list(errors: &[Diagnostic]) -> String {
    errors.iter().map(|e| format!("{e}: {}\n", e.label)).collect()
}

/// Runs a text on sm_80.
pub(crate) fn run(text: &str, options: &Options) -> Result<Report, Box<Diagnostic>> {
    simulate(&program(text), &AtomTable::new(Arch::Sm80), options)
}

/// Runs a text that the verifier may refuse: the simulator does not depend on it.
pub(crate) fn unverified(text: &str) -> Result<Report, Box<Diagnostic>> {
    let module =
        carbyne_ir::text::parse(text).unwrap_or_else(|e| panic!("{}", list(&e.into_vec())));
    let program = carbyne_ir::resolve::resolve(&module, text);
    let program = program.unwrap_or_else(|e| panic!("{}", list(&e.into_vec())));
    simulate(&program, &AtomTable::new(Arch::Sm80), &Options::default())
}

/// Runs a text that must be correct.
pub(crate) fn good(text: &str, options: &Options) -> Report {
    run(text, options).unwrap_or_else(|e| panic!("{e}: {} {:?} {:?}", e.label, e.related, e.notes))
}

/// Runs a text that must fail with a code, on the line marked `// HERE`.
pub(crate) fn bad(text: &str, code: Code) -> Box<Diagnostic> {
    bad_with(text, code, &Options::default())
}

/// Runs a text with options that must fail with a code; see [`bad`].
pub(crate) fn bad_with(text: &str, code: Code, options: &Options) -> Box<Diagnostic> {
    let Err(e) = run(text, options) else { panic!("nothing was found") };
    assert_eq!(e.code, code, "{e}: {}", e.label);
    if let Some(at) = text.find("// HERE") {
        let wanted = text[..at].lines().count();
        assert_eq!(e.span.line_col(text).0, wanted, "{e}: {}", e.label);
    }
    e
}
