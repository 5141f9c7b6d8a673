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
pub mod matching;
pub mod mismatch;
pub mod named;
pub mod names;
pub mod pins;
pub mod relation;
pub mod rewrite;
pub mod solve;
pub mod strategy;

use carbyne_atoms::AtomTable;
use carbyne_ir::ast::{Module, SpecKind, StmtKind};
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::program::{Program, SpecId, Stmt, StmtKind as P, TensorId};
use carbyne_ir::span::Span;
use carbyne_ir::{resolve, text, verify};
use certificate::{Certificate, Relation};
use names::Names;
use solve::{Leaf, Outcome, Search, Searched, Solution};
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
    /// The best choices that were found, best first.
    pub leaves: Vec<Leaf>,
    /// How far the search went.
    pub searched: Searched,
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
    attempt(module, src, table, search)
        .map_err(|errors| pins::blame(module, src, table, search, errors))
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
    let mut names = Names::of(module);
    let mut planned = plan(module, &program, table, &mut names)?;
    let mut tile_level = src.to_owned();
    let mut generated = planned != *module;
    let mut solution = Solution::default();
    for round in 0.. {
        if generated {
            tile_level = text::print(&planned);
            (_, program) = reparse(&tile_level)?;
        }
        let relocate = |d: Diagnostic| {
            if generated { relocated(d, &program, &planned, module) } else { d }
        };
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
                    "one detour asks for the next, without end",
                )
                .help("pin a layout, or write the body of the copy"),
            ));
            return Err(errors);
        }
        planned = rewrite::apply(planned, &program, &wants, &mut names);
        generated = true;
    }
    let at = |d: Diagnostic| {
        if generated { relocated(d, &program, &planned, module) } else { d }
    };
    certified(&program, &solution, table).map_err(|d| one(at(*d)))?;
    let atoms = leaves(&program, table, &solution, &at)?;
    let sums = solution.matmuls.values().any(|m| m.gemm.groups.2 > 1);
    let late = |id: SpecId| !solution.implements(id) && is_late(&program, id, &solution);
    let open = program.specs.iter().any(|(id, _)| late(id));
    let again = sums || open || !solution.reductions.is_empty() || !solution.exchanges.is_empty();
    let emitted = emit::Emit::new(&solution, &atoms, table, names.clone()).module(planned.clone());
    let mut text = text::print(&emitted);
    let mut written = emitted.clone();
    let (mut module_out, mut atomic) = reparse(&text)?;
    if again {
        // Bodies of Reductions, of exchanges and of partial sums are written without atoms, and leaves of
        // threads on tensors that were open have none yet.
        let none = Solution::default();
        let ours = |d: Diagnostic| relocated(d, &atomic, &emitted, module);
        let atoms = leaves(&atomic, table, &none, &ours)?;
        let emitted = emit::Emit::new(&none, &atoms, table, names).module(emitted.clone());
        text = text::print(&emitted);
        (module_out, atomic) = reparse(&text)?;
        written = emitted;
    }
    let tile = rewrite::origins(&planned).0;
    let origins = Origins { tile, atomic: rewrite::origins(&written).0 };
    Ok(Decomposed {
        module: module_out,
        text,
        program: atomic,
        tile_level,
        certificates: std::mem::take(&mut solution.certificates),
        leaves: std::mem::take(&mut solution.leaves),
        searched: solution.searched,
        origins,
    })
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
    let all = p.specs.iter().map(|(id, _)| id).filter(|id| solution.implements(*id));
    for id in all {
        if solution.certificates.iter().all(|c| c.spec != id) {
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

/// Whether a leaf touches a shared tensor whose layout is being written: what lies together in it is known after.
fn is_late(p: &Program, id: SpecId, solution: &Solution) -> bool {
    let spec = &p.specs[id];
    let found = |t: TensorId| solution.shared.contains_key(&p.tensors[t].buffer);
    spec.body.is_none() && spec.input_tensors().chain(spec.outputs.iter().copied()).any(found)
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

/// Points an error in generated text at what the text was generated for: `program` is what it resolves to,
/// `planned` the module that it was printed from, whose spans are those of the user's text.
fn relocated(
    mut d: Diagnostic,
    program: &Program,
    planned: &Module,
    module: &Module,
) -> Diagnostic {
    let kernel = module.items.iter().find_map(|s| match &s.kind {
        StmtKind::Spec(spec) => Some(spec.span),
        _ => None,
    });
    let (specs, buffers) = rewrite::origins(planned);
    let origin = |span: Span| {
        let spec = program.specs.iter().find(|(_, s)| s.span.is_at(span)).map(|(id, _)| id);
        let buffer = program.buffers.iter().find(|(_, b)| b.span.is_at(span)).map(|(id, _)| id);
        spec.and_then(|id| specs.get(usize::from(id)))
            .or_else(|| buffer.and_then(|id| buffers.get(usize::from(id))))
            .copied()
            .filter(|s| !s.is_nowhere())
    };
    d.span = origin(d.span).or(kernel).unwrap_or_default();
    d.related =
        d.related.into_iter().filter_map(|(span, why)| Some((origin(span)?, why))).collect();
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
            SpecKind::Move => strategy::movement::apply(program, id, stmt, table, names),
            SpecKind::Reduction(_) => strategy::reduction::apply(program, id, stmt, table, names),
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
        if s.implements(id) {
            return;
        }
        if is_late(self.p, id, s) {
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
            let d = matching::not_by(self.p, id, pinned, &m);
            self.errors.push((self.at)(d));
        }
    }
}
