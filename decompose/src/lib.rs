//! Decomposes specs into atoms: strategies give kernel-level specs a dataflow, the solver finds layouts
//! and instructions, matching names the atom of every leaf.
//!
//! Every stage works on text: a strategy or a solution is written into the module, printed, parsed,
//! resolved and verified again, like anything a person wrote.
//!
//! Invariant: what a person wrote is kept. Invariant: no decision depends on an atom's name or on an
//! architecture; the table's rows decide.

mod build;
pub mod certificate;
pub mod checker;
pub mod emit;
pub mod explain;
#[cfg(feature = "proptest")]
pub mod gate;
mod leaves;
pub mod matching;
pub mod mismatch;
pub mod named;
pub mod names;
pub mod pins;
mod places;
pub mod relation;
mod rest;
pub mod rewrite;
pub mod solve;
pub mod strategy;

use carbyne_atoms::{AtomTable, smem};
use carbyne_ir::ast::{Module, StmtKind};
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::program::{Program, SpecId, Stmt, StmtKind as P};
use carbyne_ir::span::Span;
use carbyne_ir::{resolve, text, verify};
use certificate::{Certificate, Relation};
use names::Names;
use places::Places;
use solve::{Leaf, Outcome, Search, Searched, Solution};
use std::collections::{BTreeMap, BTreeSet};

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
    /// The best choices that were found, best first.
    pub leaves: Vec<Leaf>,
    /// How far the search went.
    pub searched: Searched,
    /// What may not be as wanted: work that threads repeat, tensors that nobody uses, a search that ended at its
    /// budget. Spans are into the text that was decomposed.
    pub warnings: Vec<Diagnostic>,
    /// What each spec was written or generated for.
    pub origins: Origins,
}

/// Places in the text that was decomposed, one for each spec in the order of its id.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// Specs of the tile-level text.
    pub tile: Vec<Span>,
    /// Specs of the atomic text.
    pub atomic: Vec<Span>,
}

/// Decomposes every kernel of a module for the table's architecture.
///
/// `src` is the text that the module was parsed from; spans of errors are into it, or, where a
/// generated part is refused, at what it was generated for.
///
/// # Errors
/// Errors of resolving and verifying, a spec that no strategy or atom implements, pins that conflict.
pub fn decompose(module: &Module, src: &str, table: &AtomTable) -> Result<Decomposed, Diagnostics> {
    decompose_with(module, src, table, Search::default())
}

/// The same, searching as long as is said.
///
/// # Errors
/// As [`decompose`]; a budget that was too small.
pub fn decompose_with(
    module: &Module,
    src: &str,
    table: &AtomTable,
    search: Search,
) -> Result<Decomposed, Diagnostics> {
    let elaborated = resolve::elaborate(module, src)?;
    let module = &elaborated.module;
    attempt(module, src, table, search)
        .map_err(|errors| pins::blame_each(module, src, table, search, errors))
}

/// The same, without asking which pins are to blame.
fn attempt(
    module: &Module,
    src: &str,
    table: &AtomTable,
    search: Search,
) -> Result<Decomposed, Diagnostics> {
    /// Rewrites are asked for until there is nothing left to take apart; a chain of detours is short.
    const MAX_ROUNDS: usize = 16;
    let mut program = checked(module, src)?;
    known_atoms(&program, table)?;
    let mut names = Names::of(module);
    let (mut planned, mut warnings) = plan(module, &program, table, &mut names)?;
    let mut tile_level = src.to_owned();
    let mut generated = planned != *module;
    // What the solver is given is the person's text, or one that was generated from it.
    let mut places = None;
    let mut solution = Solution::default();
    for round in 0.. {
        if generated {
            tile_level = text::print(&planned);
            let again = reparse(&tile_level, &planned, module)?;
            (program, places) = (again.program, Some(again.places));
        }
        let relocate = |d: Diagnostic| places.as_ref().map_or(d.clone(), |p| p.relocate(d));
        let mut errors = Diagnostics::default();
        let mut wants = vec![];
        solution = Solution::default();
        for &kernel in &program.kernels {
            match solve::solve(&program, kernel, table, search) {
                Ok(Outcome::Solved(found)) => solution.merge(*found),
                Ok(Outcome::Wants(more)) => wants.extend(more),
                Err(d) => errors.push(relocate(*d)),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        if wants.is_empty() {
            break;
        }
        if round == MAX_ROUNDS {
            errors.push(relocate(
                Diagnostic::new(
                    Code::NotDecomposed,
                    program.kernels.first().map(|k| program.specs[*k].span).unwrap_or_default(),
                    format!(
                        "after {MAX_ROUNDS} detours some operand is still not where it is wanted"
                    ),
                )
                .help(
                    "write `tv=` of the register tensors, or the bodies of the Moves between them",
                ),
            ));
            return Err(errors);
        }
        planned = rewrite::apply(planned, &program, &wants, &mut names);
        generated = true;
    }
    let relocate = |d: Diagnostic| places.as_ref().map_or(d.clone(), |p| p.relocate(d));
    rest::lay_out(&program, &mut solution).map_err(|d| one(relocate(*d)))?;
    certified(&program, &solution, table).map_err(|d| one(relocate(*d)))?;
    let atoms = leaves(&program, table, &solution, &relocate)?;
    let mut written =
        emit::Emit::new(&solution, &atoms, table, names.clone()).module(planned.clone());
    let mut text = text::print(&written);
    let mut out = reparse(&text, &written, module)?;
    // Leaves that touch tensors whose layouts were found, bodies of Reductions, of exchanges and of partial
    // sums stand there without atoms.
    let unnamed = |p: &Program| {
        let leaf = |s: &carbyne_ir::program::Spec| s.body.is_none() && s.atom.is_none();
        p.specs.iter().any(|(_, s)| leaf(s))
    };
    if unnamed(&out.program) {
        let none = Solution::default();
        let atoms = leaves(&out.program, table, &none, &|d| out.places.relocate(d))?;
        written = emit::Emit::new(&none, &atoms, table, names).module(written);
        text = text::print(&written);
        out = reparse(&text, &written, module)?;
    }
    fits(&out, table)?;
    warnings.extend(solution.warnings.drain(..).map(relocate));
    let tile = rewrite::origins(&planned).0;
    let origins = Origins { tile, atomic: rewrite::origins(&written).0 };
    Ok(Decomposed {
        module: out.module,
        text,
        program: out.program,
        tile_level,
        certificates: std::mem::take(&mut solution.certificates),
        leaves: std::mem::take(&mut solution.leaves),
        searched: solution.searched,
        warnings,
        origins,
    })
}

/// Refuses pins of atoms that the architecture does not have.
fn known_atoms(p: &Program, table: &AtomTable) -> Result<(), Diagnostics> {
    let mut errors = Diagnostics::default();
    for (_, spec) in p.specs.iter().filter(|(_, s)| s.body.is_none()) {
        let Some(pinned) = spec.atom.as_deref().filter(|name| table.get(name).is_none()) else {
            continue;
        };
        let message = format!("{} has no atom `{pinned}`", table.arch);
        let d = Diagnostic::new(Code::UnknownAtom, spec.span, message);
        errors.push(d.help(table.instead_of(pinned)));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Refuses kernels that need more shared memory than a block can have.
fn fits(out: &Reparsed, table: &AtomTable) -> Result<(), Diagnostics> {
    let mut errors = Diagnostics::default();
    for kernel in &out.program.kernels {
        let buffers = smem::buffers(&out.program, *kernel);
        if let Err(d) = smem::Arena::place(&out.program, &buffers, table) {
            errors.push(out.places.relocate(*d));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
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
        Relation::Pointwise { .. } | Relation::Reduction { .. } | Relation::Exchange { .. } => {
            vec![]
        }
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
    at: &dyn Fn(Diagnostic) -> Diagnostic,
) -> Result<BTreeMap<SpecId, String>, Diagnostics> {
    let mut atoms = BTreeMap::new();
    let mut errors = Diagnostics::default();
    for &kernel in &p.kernels {
        let mut leaves = Leaves { p, table, solution, atoms: &mut atoms, errors: &mut errors, at };
        leaves.spec(kernel, &mut vec![]);
    }
    if errors.is_empty() { Ok(atoms) } else { Err(errors) }
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

/// Text that was generated, read again.
struct Reparsed {
    module: Module,
    program: Program,
    places: Places,
}

/// Parses and checks text that was printed from `written`; what is wrong with it is our defect, but for limits.
fn reparse(text: &str, written: &Module, module: &Module) -> Result<Reparsed, Diagnostics> {
    let ours = |errors: Diagnostics, places: &Places| {
        let mut out = Diagnostics::default();
        for d in errors.into_vec() {
            let (line, _) = d.span.line_col(text);
            let at = text.lines().nth(line.saturating_sub(1)).unwrap_or("").trim().to_owned();
            let d = match d.code {
                // Limits of the hardware and of the input are the program's own.
                c if c.as_str().starts_with('X') => d,
                _ => Diagnostic::new(
                    Code::Internal,
                    d.span,
                    format!("the generated text is refused: {d}"),
                )
                .help("please report this with the file"),
            };
            out.push(places.relocate(d).note(format!("generated line {line}: {at}")));
        }
        out
    };
    let parsed = text::parse(text).map_err(|e| ours(e, &Places::default()))?;
    let places = Places::new(&parsed, written, module);
    let program = checked(&parsed, text).map_err(|e| ours(e, &places))?;
    Ok(Reparsed { module: parsed, program, places })
}

/// Gives kernel-level specs their dataflow.
fn plan(
    module: &Module,
    program: &Program,
    table: &AtomTable,
    names: &mut Names,
) -> Result<(Module, Vec<Diagnostic>), Diagnostics> {
    let mut out = module.clone();
    out.items.clear();
    let mut errors = Diagnostics::default();
    let mut warnings = vec![];
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
        match strategy::apply(program, id, stmt, table, names) {
            Ok(planned) => {
                out.items.extend(planned.stmts);
                warnings.extend(planned.warnings);
            }
            Err(d) => errors.push(*d),
        }
    }
    if errors.is_empty() { Ok((out, warnings)) } else { Err(errors) }
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
            match matching::match_any(self.p, id, around, self.table) {
                Ok(m) => drop(self.atoms.insert(id, m.atom.to_owned())),
                Err(r) => {
                    let d = matching::no_atom(self.p, id, self.table, &r);
                    self.errors.push((self.at)(d));
                }
            }
            return;
        };
        // A name that the table does not have was refused before.
        let Some(atom) = self.table.get(pinned) else { return };
        if let Err(m) = matching::match_atom(self.p, id, around, atom) {
            let d = matching::not_by(self.p, id, pinned, &m);
            self.errors.push((self.at)(d));
        }
    }
}
