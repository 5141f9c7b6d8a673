//! Says why a copy to or from global memory does not use a row of the atom table that moves more
//! bytes at once. [`Width`] holds facts about symbols with which a wider row would match, or the
//! mismatch of the widest row if facts alone are not enough.
//!
//! The facts come from the mismatches of wider rows. They are reported only after they have been
//! stated in the program and the row has matched. A row that matches as the program stands was not
//! chosen because it costs more, and gets no answer.

use super::unstated_facts;
use crate::access::matching::Mismatch;
use crate::driver::decomposed::Decomposed;
use crate::layouts::copy;
use crate::layouts::solver::lacking;
use crate::resolved::{checked, elaborated};
use carbyne_atoms::{Atom, AtomTable, Extent, bind};
use carbyne_ir::ast::Module;
use carbyne_ir::leaf::{Fact, listed};
use carbyne_ir::program::{Program, SpecId, TensorId};
use std::collections::BTreeMap;

/// A row that would move more bytes at once if more facts about symbols were stated.
#[derive(Clone, Debug, PartialEq)]
pub struct Wider {
    /// The facts. They have been stated, and the row then matches.
    pub facts: Vec<Fact>,
    /// The facts in the words of the text: `where N % 8 == 0`.
    pub said: String,
    /// The row.
    pub atom: String,
    /// Bytes that a thread moves with this row.
    pub bytes: i64,
    /// Bytes that a thread moves with the chosen row.
    pub instead_of: i64,
}

/// Whether a copy could be wider.
#[derive(Clone, Debug, PartialEq)]
pub enum Width {
    /// It could, with more facts about symbols.
    With(Wider),
    /// It could not: the widest row has another mismatch.
    Not {
        /// The row.
        atom: String,
        /// Why it does not match.
        why: Mismatch,
    },
}

/// Facts that are stated one after the other, of one operation.
const MOST_FACTS: usize = 4;
/// Programs that are resolved with more facts, for one explanation.
const MOST_PROGRAMS: usize = 16;

/// Asks for operations of a decomposed program.
pub(crate) struct Widening<'a> {
    module: &'a Module,
    src: &'a str,
    d: &'a Decomposed,
    table: &'a AtomTable,
    /// The program with facts, by what they say; none where that is refused.
    with: BTreeMap<String, Option<Program>>,
}

impl<'a> Widening<'a> {
    pub(crate) fn new(
        module: &'a Module,
        src: &'a str,
        d: &'a Decomposed,
        table: &'a AtomTable,
    ) -> Self {
        Widening { module, src, d, table, with: BTreeMap::new() }
    }

    /// Why an operation is not implemented by a row of more bytes: the facts with which it would
    /// be, by the widest row that there is then, or why the widest row does not match. No answer
    /// where it is the widest, or a wider one costs more.
    pub(crate) fn of(&mut self, id: SpecId) -> Option<Width> {
        let p = &self.d.tile;
        let own = self.d.certificates.iter().find(|c| c.spec == id)?.atom;
        let own = self.table.get(own)?;
        let instead_of = bytes(p, id, own)?;
        // What begins anywhere takes two accesses.
        let least = if own.begins_anywhere() { instead_of } else { instead_of + 1 };
        let mut rows: Vec<(i64, &Atom)> = self
            .table
            .implementing(p.specs[id].kind)
            .filter_map(|row| Some((bytes(p, id, row)?, row)))
            .filter(|(bytes, row)| *bytes >= least && !row.begins_anywhere())
            .collect();
        rows.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        let mut widest = None;
        for (bytes, row) in rows {
            let atom = row.name.to_owned();
            match self.facts(id, row)? {
                // What matches as it is was not taken since it costs more.
                Ok(facts) if facts.is_empty() => return None,
                Ok(facts) => {
                    let said = unstated_facts::said(self.module, &facts);
                    return Some(Width::With(Wider { facts, said, atom, bytes, instead_of }));
                }
                Err(why) => drop(widest.get_or_insert(Width::Not { atom, why })),
            }
        }
        widest
    }

    /// Facts with which a row implements an operation, none where it does already; or why facts
    /// alone do not do.
    fn facts(&mut self, id: SpecId, row: &Atom) -> Option<Result<Vec<Fact>, Mismatch>> {
        let table = self.table;
        let mut facts: Vec<Fact> = vec![];
        for _ in 0..=MOST_FACTS {
            let Err(mismatch) = implements(self.program(&facts)?, id, row, table)? else {
                return Some(Ok(facts));
            };
            let more = mismatch.facts().iter().filter(|fact| !facts.contains(fact));
            let more: Vec<Fact> = more.cloned().collect();
            let may_do = !more.is_empty() && facts.len() + more.len() <= MOST_FACTS;
            facts.extend(more);
            if !may_do || self.program(&facts).is_none() {
                return Some(Err(mismatch));
            }
        }
        None
    }

    /// The operations on tiles, with more facts.
    fn program(&mut self, facts: &[Fact]) -> Option<&Program> {
        if facts.is_empty() {
            return Some(&self.d.tile);
        }
        let key = listed(facts);
        if !self.with.contains_key(&key) {
            if self.with.len() == MOST_PROGRAMS {
                return None;
            }
            let program = match &self.d.printed {
                Some(tree) => {
                    unstated_facts::with(tree, facts).and_then(|m| elaborated(&m, self.src).ok())
                }
                None => unstated_facts::with(self.module, facts)
                    .and_then(|m| checked(&m, self.src).ok()),
            };
            let same = |p: &Program| p.specs.len() == self.d.tile.specs.len();
            self.with.insert(key.clone(), program.filter(same));
        }
        self.with.get(&key)?.as_ref()
    }
}

/// The sides of a copy to or from global memory: what it reads and what it writes.
fn sides(p: &Program, id: SpecId) -> Option<(TensorId, TensorId)> {
    let spec = &p.specs[id];
    let (from, to) = (spec.input_tensors().next()?, *spec.outputs.first()?);
    let global = |t: &TensorId| p.buffer_of(*t).is_global();
    [from, to].iter().any(global).then_some((from, to))
}

/// Bytes that a thread moves by a row between the memories of an operation.
fn bytes(p: &Program, id: SpecId, row: &Atom) -> Option<i64> {
    let (from, to) = sides(p, id)?;
    let [s, d] = &row.operands[..] else { return None };
    let fits = |operand, t| {
        bind::memory(p.buffer_of(t).memory, operand).is_ok()
            && bind::unit(p.scalar_of(t), operand).is_ok()
    };
    if row.group != 1 || row.extent != Extent::Tile || !fits(s, from) || !fits(d, to) {
        return None;
    }
    s.n_values().checked_mul(s.elem.bits()).map(|bits| bits / 8)
}

/// Whether a row implements an operation on tiles, by some layout of what is open.
fn implements(
    p: &Program,
    id: SpecId,
    row: &Atom,
    table: &AtomTable,
) -> Option<Result<(), Mismatch>> {
    let (from, to) = sides(p, id)?;
    let exec = p.specs[id].exec?;
    let threads = p.threads[exec.threads].concat().to_fixed()?.size();
    let only = table.filtered(|r| r.name == row.name);
    let found = copy::candidates(p, id, side(p, from), side(p, to), &only, threads);
    Some(match found {
        Ok(_) => Ok(()),
        Err(rejected) => Err(lacking(p, (from, to), row, rejected.into_iter().next()?.1)),
    })
}

/// What is known of a side of an operation on tiles.
pub(crate) fn side(p: &Program, t: TensorId) -> copy::Side {
    let tensor = &p.tensors[t];
    let pinned = tensor.dist.as_ref().and_then(|d| d.tv.as_ref()?.to_fixed());
    match (p.buffer_of(t).is_per_thread(), pinned) {
        (true, Some(tv)) => copy::Side::Registers(tv),
        (true, None) => copy::Side::Open,
        (false, _) => copy::Side::Memory,
    }
}
