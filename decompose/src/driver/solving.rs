//! Solves the layouts of all kernels of a module, with detours where a module cannot be solved as
//! it stands, and checks the certificates.

use super::generated::Generated;
use super::tiles::Tiles;
use crate::certify::certificate::{Certificate, Relation};
use crate::certify::checker;
use crate::emit::detours;
use crate::layouts::want::{Asked, Want};
use crate::layouts::work::grade;
use crate::layouts::{self, Detours, Looked, Outcome, Search};
use crate::names::Names;
use crate::order;
use crate::plan::solution::Solution;
use carbyne_atoms::AtomTable;
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::program::{Program, SpecId};
use std::collections::BTreeSet;

/// Rewrites are asked for until there is nothing left to take apart; a chain of detours is short.
pub(super) const MAX_ROUNDS: usize = 16;

/// Solves every kernel; the tiles are rewritten until nothing more is asked for. Where another
/// choice may be cheaper with more detours, both are written out, and the cheaper one is taken.
pub(super) fn solved(
    generated: &Generated<'_>,
    tiles: Tiles,
    table: &AtomTable,
    search: Search,
    ordered: bool,
    names: &mut Names,
) -> Result<(Tiles, Solution), Diagnostics> {
    let mut rewriting = Rewriting { generated, table, search, ordered, other: None };
    let fewest = rewriting.solved(tiles, names, Detours::Fewest);
    let Some((tiles, mut others)) = rewriting.other.take() else { return fewest };
    let other = rewriting.solved(tiles, &mut others, Detours::Cheapest);
    match (fewest, other) {
        (Ok(fewest), Ok(other)) if grade(other.1.cycles) >= grade(fewest.1.cycles) => Ok(fewest),
        (_, Ok(other)) => {
            *names = others;
            Ok(other)
        }
        (fewest, Err(_)) => fewest,
    }
}

/// Rewrites and solves kernels until nothing more is asked for.
pub(super) struct Rewriting<'a> {
    pub(super) generated: &'a Generated<'a>,
    pub(super) table: &'a AtomTable,
    pub(super) search: Search,
    /// Whether barriers and waits are found, too.
    pub(super) ordered: bool,
    /// Where a choice with more detours first was one.
    pub(super) other: Option<(Tiles, Names)>,
}

impl Rewriting<'_> {
    pub(super) fn solved(
        &mut self,
        mut tiles: Tiles,
        names: &mut Names,
        detours: Detours,
    ) -> Result<(Tiles, Solution), Diagnostics> {
        let mut last = None;
        for _ in 0..=MAX_ROUNDS {
            let (solution, wants, looked) = self.round(&tiles, detours)?;
            if looked.others && detours == Detours::Fewest && self.other.is_none() {
                let (_, other, rough) = self.round(&tiles, Detours::Cheapest)?;
                if other != wants && grade(rough.cycles) < grade(looked.cycles) {
                    self.other = Some((tiles.clone(), names.clone()));
                }
            }
            if wants.is_empty() {
                return Ok((tiles, solution));
            }
            last = wants.first().map(|want| endless(&tiles.program, want));
            tiles.tree = detours::apply(tiles.tree, &tiles.program, &wants, names);
            tiles.program = self.generated.checked(&tiles.tree)?;
        }
        Err(last.into_iter().collect())
    }

    /// Solves all kernels: returns their solution, the rewrites that they need, and the cycles of
    /// the best choices.
    pub(super) fn round(
        &self,
        tiles: &Tiles,
        detours: Detours,
    ) -> Result<(Solution, Vec<Want>, Looked), Diagnostics> {
        let mut errors = Diagnostics::default();
        let (mut solution, mut wants) = (Solution::default(), vec![]);
        let mut looked = Looked::default();
        for &kernel in &tiles.program.kernels {
            let by = (self.search, detours);
            let p = &tiles.program;
            let solved = layouts::solve(p, kernel, self.table, by).and_then(|(mut out, looked)| {
                if let Outcome::Solved(found) = &mut out
                    && self.ordered
                {
                    found.before = order::plan(p, kernel, found, self.table, &tiles.roles)?;
                }
                Ok((out, looked))
            });
            match solved {
                Ok((Outcome::Solved(found), own)) => {
                    solution.merge(*found);
                    looked.add(own);
                }
                Ok((Outcome::Wants(more), own)) => {
                    wants.extend(more);
                    looked.add(own);
                }
                Err(d) => errors.push(*d),
            }
        }
        if errors.is_empty() { Ok((solution, wants, looked)) } else { Err(errors) }
    }
}

/// The error for rewrites that do not end; `want` is one of the last.
pub(super) fn endless(p: &Program, want: &Want) -> Diagnostic {
    let (id, asked) = want.asks();
    let spec = &p.specs[id];
    let t = match asked {
        Asked::Input(i) => spec.inputs.get(i).and_then(|o| o.tensor()),
        Asked::Output => spec.outputs.first().copied(),
    };
    let name = t.map_or_else(|| "an operand".to_owned(), |t| format!("`%{}`", p.buffer_of(t).name));
    let scalar = t.map_or_else(String::new, |t| format!(" ({})", p.scalar_of(t)));
    let kind = spec.kind;
    let message = format!(
        "{name}{scalar} has no layout that this {kind} accepts, after {MAX_ROUNDS} copies in \
         between"
    );
    let label = format!(
        "no instruction of this {kind} accepts {name} in its layout, or in one that copies give it"
    );
    let help = format!(
        "state the thread-value layout, `RF{{tv=(..):(..) over #cta}}`, of the tensor that {name} \
         is moved to; or first convert {name} to a type of at least 8 bits, by a separate spec"
    );
    Diagnostic::new(Code::NotDecomposed, spec.span, message).label(label).help(help)
}

/// Refuses a solution with a relation that does not hold, or that nothing vouches for.
pub(super) fn certified(
    p: &Program,
    solution: &Solution,
    table: &AtomTable,
) -> Result<(), Box<Diagnostic>> {
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
pub(super) fn vouched(c: &Certificate, table: &AtomTable) -> Result<(), checker::Wrong> {
    let letters: Vec<_> = match &c.relation {
        Relation::Copy { p, q, .. } => vec![p, q],
        Relation::Gemm { row, .. } => row.iter().collect(),
        Relation::Pointwise { .. }
        | Relation::Reduction { .. }
        | Relation::Part { .. }
        | Relation::Exchange { .. } => vec![],
    };
    let operands = table.get(c.atom).map_or(&[][..], |a| &a.operands);
    if !letters.is_empty() && operands.len() < letters.len() {
        return Err(checker::Wrong::At("the row has fewer operands".to_owned()));
    }
    letters.into_iter().zip(operands).try_for_each(|(p, o)| checker::check_row(p, &o.tv))?;
    checker::check(&c.relation)
}
