//! Decomposes specs into atoms: strategies give kernel-level specs a dataflow, the solver finds layouts
//! and instructions, matching names the atom of every leaf.
//!
//! Every stage works on text: a strategy or a solution is written into the module, printed, parsed,
//! resolved and verified again, like anything a person wrote.
//!
//! Invariant: what a person wrote is kept. Invariant: no decision depends on an atom's name or on an
//! architecture; the table's rows decide.

pub mod emit;
pub mod matching;
pub mod mismatch;
pub mod names;
pub mod relation;
pub mod solve;
pub mod strategy;

use carbyne_atoms::AtomTable;
use carbyne_ir::ast::{Module, SpecKind, StmtKind};
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::program::{Program, SpecId, Stmt, StmtKind as P};
use carbyne_ir::span::Span;
use carbyne_ir::{resolve, text, verify};
use names::Names;
use solve::Solution;
use solve::certificate::Certificate;
use std::collections::BTreeMap;

/// A module in which every leaf names its atom.
#[derive(Clone, Debug)]
pub struct Decomposed {
    /// The atomic module.
    pub module: Module,
    /// Its text.
    pub text: String,
    /// Resolved from the text.
    pub program: Program,
    /// The module after strategies, before layouts: what the solver was given.
    pub tile_level: String,
    /// Why the layouts are right. Spec ids are those of the tile-level text.
    pub certificates: Vec<Certificate>,
}

/// Decomposes every kernel of a module for the table's architecture.
///
/// `src` is the text that the module was parsed from; spans of errors are into it, or, where a
/// generated part is refused, at the kernel's head.
///
/// # Errors
/// Errors of resolving and verifying, a spec that no strategy or atom implements, pins that conflict.
pub fn decompose(module: &Module, src: &str, table: &AtomTable) -> Result<Decomposed, Diagnostics> {
    let program = checked(module, src)?;
    let mut names = Names::of(module);
    let planned = plan(module, &program, table, &mut names)?;
    let generated = planned != *module;
    let tile_level = if generated { text::print(&planned) } else { src.to_owned() };
    let (planned, program) = if generated { reparse(&tile_level)? } else { (planned, program) };
    let relocate = |d: Diagnostic| if generated { relocated(d, module) } else { d };
    let mut errors = Diagnostics::default();

    let mut solution = Solution::default();
    for &kernel in &program.kernels {
        match solve::solve(&program, kernel, table) {
            Ok(found) => solution.merge(found),
            Err(d) => errors.push(relocate(*d)),
        }
    }
    let mut atoms = BTreeMap::new();
    for &kernel in &program.kernels {
        let mut leaves = Leaves {
            p: &program,
            table,
            solution: &solution,
            atoms: &mut atoms,
            errors: &mut errors,
            at: &relocate,
        };
        leaves.spec(kernel, &mut vec![]);
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let emitted = emit::Emit::new(&solution, &atoms, table, Names::of(&planned)).module(planned);
    let text = text::print(&emitted);
    let (module, program) = reparse(&text)?;
    Ok(Decomposed { module, text, program, tile_level, certificates: solution.certificates })
}

/// Resolves and verifies.
///
/// # Errors
/// What either found.
pub fn checked(module: &Module, src: &str) -> Result<Program, Diagnostics> {
    let program = resolve::resolve(module, src)?;
    let errors = verify::verify(&program);
    if errors.is_empty() { Ok(program) } else { Err(errors) }
}

/// Parses and checks text that we generated; what is wrong with it is our defect.
fn reparse(text: &str) -> Result<(Module, Program), Diagnostics> {
    let ours = |errors: Diagnostics| {
        let mut out = Diagnostics::default();
        for d in errors.into_vec() {
            let (line, _) = d.span.line_col(text);
            let at = text.lines().nth(line.saturating_sub(1)).unwrap_or("").trim().to_owned();
            let mut d = match d.code {
                // Limits of the hardware and of the input are the program's own.
                c if c.as_str().starts_with('X') => d,
                _ => Diagnostic::new(
                    Code::Internal,
                    d.span,
                    format!("the generated text is refused: {d}"),
                )
                .help("please report this with the file"),
            };
            d.span = Span::default();
            out.push(d.note(format!("generated line {line}: {at}")));
        }
        out
    };
    let module = text::parse(text).map_err(ours)?;
    let program = checked(&module, text).map_err(ours)?;
    Ok((module, program))
}

/// Points an error in generated text at the first kernel of the module.
fn relocated(mut d: Diagnostic, module: &Module) -> Diagnostic {
    let kernel = module.items.iter().find_map(|s| match &s.kind {
        StmtKind::Spec(spec) => Some(spec.span),
        _ => None,
    });
    d.span = kernel.unwrap_or_default();
    d.related.clear();
    d
}

/// Gives kernel-level specs their dataflow.
fn plan(
    module: &Module,
    program: &Program,
    table: &AtomTable,
    names: &mut Names,
) -> Result<Module, Diagnostics> {
    let mut out = module.clone();
    out.items.clear();
    let mut errors = Diagnostics::default();
    let mut kernels = program.kernels.iter();
    for stmt in &module.items {
        let StmtKind::Spec(spec) = &stmt.kind else {
            out.items.push(stmt.clone());
            continue;
        };
        let Some(&id) = kernels.next() else { continue };
        if spec.body.is_some() {
            out.items.push(stmt.clone());
            continue;
        }
        let planned = match spec.kind {
            SpecKind::MatMul | SpecKind::MatMulSet => {
                strategy::matmul::apply(program, id, stmt, table, names)
            }
            kind => Err(Box::new(
                Diagnostic::new(
                    Code::NoStrategy,
                    spec.span,
                    format!("no strategy decomposes a kernel-level {kind} yet"),
                )
                .help("write its body: tiles, moves and leaves; the solver fills in layouts and atoms"),
            )),
        };
        match planned {
            Ok(stmts) => out.items.extend(stmts),
            Err(d) => errors.push(*d),
        }
    }
    if errors.is_empty() { Ok(out) } else { Err(errors) }
}

/// Names the atom of every leaf that the solver has not decomposed.
struct Leaves<'a> {
    p: &'a Program,
    table: &'a AtomTable,
    solution: &'a Solution,
    atoms: &'a mut BTreeMap<SpecId, String>,
    errors: &'a mut Diagnostics,
    at: &'a dyn Fn(Diagnostic) -> Diagnostic,
}

impl Leaves<'_> {
    fn spec(&mut self, id: SpecId, around: &mut Vec<SpecId>) {
        let spec = &self.p.specs[id];
        match &spec.body {
            Some(body) => {
                around.push(id);
                self.stmts(body, around);
                around.pop();
            }
            None => self.leaf(id, around),
        }
    }

    fn stmts(&mut self, stmts: &[Stmt], around: &mut Vec<SpecId>) {
        for stmt in stmts {
            match &stmt.kind {
                P::Spec(id) => self.spec(*id, around),
                P::For { body, .. } => self.stmts(body, around),
                P::If { then, otherwise, .. } => {
                    self.stmts(then, around);
                    self.stmts(otherwise, around);
                }
                _ => {}
            }
        }
    }

    fn leaf(&mut self, id: SpecId, around: &[SpecId]) {
        let s = self.solution;
        if s.copies.contains_key(&id) || s.matmuls.contains_key(&id) || s.inits.contains_key(&id) {
            return;
        }
        let spec = &self.p.specs[id];
        let Some(pinned) = &spec.atom else {
            match matching::match_any(self.p, id, around, self.table) {
                Ok(m) => drop(self.atoms.insert(id, m.atom.to_owned())),
                Err(r) => {
                    let d = matching::no_atom(self.p, id, self.table, &r);
                    self.errors.push((self.at)(d));
                }
            }
            return;
        };
        let Some(atom) = self.table.get(pinned) else {
            let near: Vec<String> =
                self.table.nearest_names(pinned).iter().map(|n| format!("`{n}`")).collect();
            let d = Diagnostic::new(
                Code::UnknownAtom,
                spec.span,
                format!("{} has no atom `{pinned}`", self.table.arch),
            )
            .help(format!("did you mean {}?", near.join(" or ")));
            self.errors.push((self.at)(d));
            return;
        };
        if let Err(m) = matching::match_atom(self.p, id, around, atom) {
            let d = Diagnostic::new(
                Code::AtomMismatch,
                spec.span,
                format!("`{pinned}` does not implement this {}", spec.kind),
            )
            .label(m.to_string())
            .help(m.help());
            self.errors.push((self.at)(d));
        }
    }
}
