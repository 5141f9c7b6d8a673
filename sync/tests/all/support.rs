//! Resolves and checks the texts of these tests, and lists what is not proved.

use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::ast::Module;
use carbyne_ir::program::Program;
use carbyne_ir::{resolve, text, verify};
use carbyne_sync::{Limits, Report, Verdict, check};
use std::path::{Path, PathBuf};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// The program of a module, if it is well formed.
pub(crate) fn program(module: &Module, src: &str) -> Option<Program> {
    let program = resolve::resolve(module, src).ok()?;
    verify::verify(&program).is_empty().then_some(program)
}

/// The program of a text that has no errors.
pub(crate) fn right(src: &str) -> Program {
    let module = text::parse(src).unwrap_or_else(|e| panic!("{e}\n{src}"));
    let program = resolve::resolve(&module, src).unwrap_or_else(|e| panic!("{e}\n{src}"));
    let errors = verify::verify(&program);
    assert!(errors.is_empty(), "{errors}\n{src}");
    program
}

/// The reports of all kernels.
pub(crate) fn reports(program: &Program, arch: Arch) -> Vec<Report> {
    let table = AtomTable::new(arch);
    let one = |kernel: &_| check(program, *kernel, &table, &Limits::default());
    program.kernels.iter().map(one).collect()
}

/// Everything that is not proved, one line each.
pub(crate) fn complaints(program: &Program, report: &Report) -> Vec<String> {
    let mut out = vec![];
    for pair in &report.pairs {
        let (a, b) = (&pair.first, &pair.second);
        let name = |b| &program.buffers[b].name;
        let both = format!(
            "line {} {} {:?} {:?} of %{} by {}, line {} {} {:?} {:?} of %{} by {} ({})",
            a.place.line,
            a.place.what,
            a.agent,
            a.kind,
            name(a.buffer),
            a.thread,
            b.place.line,
            b.place.what,
            b.agent,
            b.kind,
            name(b.buffer),
            b.thread,
            pair.at.text(program),
        );
        match &pair.verdict {
            Verdict::Ordered(_) => {}
            Verdict::Unordered(missing) => out.push(format!("UNORDERED {missing:?}: {both}")),
            Verdict::Undecided(why) => out.push(format!("undecided {why}: {both}")),
        }
    }
    for f in &report.faults {
        let certain = if f.is_certain { "FAULT" } else { "fault?" };
        let other = f.other.as_ref().map_or(0, |(at, _)| at.line);
        out.push(format!("{certain} line {} ({other}): {}", f.place.line, f.what));
    }
    for u in &report.unfollowed {
        out.push(format!("unfollowed line {} {}: {}", u.place.line, u.place.what, u.why));
    }
    out
}
