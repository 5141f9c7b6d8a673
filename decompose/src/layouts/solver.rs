//! [`Solver`] is the state that all parts of the search share: the kernel, remembered results, the
//! best choices so far, and the remaining budget. [`Search`] limits the search.

use super::canonical::Demand;
use super::copy::{self, Candidate, Side};
use super::held::Held;
use super::shared::{self, Budget};
use super::state::{Detours, Finished};
use super::unfit::Unfit;
use crate::access::matching;
use crate::access::matching::Mismatch;
use crate::access::ops::Known;
use crate::access::ops::Op;
use crate::access::precision;
use crate::access::precision::Precision;
use crate::cost::Costing;
use crate::plan::solution::{Assigned, Searched};
use carbyne_atoms::{Atom, AtomTable, missing_facts};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{BufferId, Program, SpecId, TensorId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// How long to search.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Choices to try; each takes a fraction of a millisecond.
    pub budget: u64,
    /// Leaves to keep, best first.
    pub top: usize,
    /// Whether to visit branches that cannot be cheaper as well.
    pub exhaustive: bool,
    /// Multiprocessors of the card for which costs are computed. `None` stands for the usual card
    /// of the architecture.
    pub sms: Option<u32>,
}

impl Default for Search {
    fn default() -> Self {
        Search { budget: 20_000, top: 1, exhaustive: false, sms: None }
    }
}

pub(super) struct Solver<'a> {
    pub(super) p: &'a Program,
    pub(super) table: &'a AtomTable,
    pub(super) ops: &'a [Op],
    /// Who holds each register tensor.
    pub(super) held: &'a Held,
    pub(super) kernel: SpecId,
    /// How exact each operation must be.
    pub(super) precision: Precision,
    /// Whether atoms may be taken of which ptxas makes a call.
    pub(super) calls: bool,
    pub(super) costing: &'a Costing<'a>,
    pub(super) search: Search,
    pub(super) detours: Detours,
    /// Whether a choice with more detours than the best may be cheaper.
    pub(super) others: bool,
    pub(super) budget: Budget,
    /// Best first.
    pub(super) best: Vec<Finished>,
    /// What was chosen for the parts before this one.
    pub(super) settled: Finished,
    /// Why the first dead branch was dead.
    pub(super) failure: Option<Box<Diagnostic>>,
    /// Whether all choices that cannot be implemented fail as that one does.
    pub(super) unanimous: bool,
    pub(super) searched: Searched,
    /// Candidates of copies, by what is known of their ends.
    pub(super) found: HashMap<Ends, Rc<Vec<Candidate>>>,
    /// Numbers of lists of candidates that are alike, by what these access, and by where a list
    /// lies.
    alike: (HashMap<Sides, usize>, HashMap<usize, usize>),
    /// How operations between registers are done whose operands lie where they are wanted, by the
    /// layouts of these.
    pub(super) between: HashMap<(SpecId, Vec<Option<Layout>>), Assigned>,
    /// Layouts of parts of register tensors, by those of the tensors.
    pub(super) of_parts: RefCell<HashMap<(TensorId, Layout), Option<Layout>>>,
    /// Layouts found for shared tensors, by what accesses them.
    pub(super) layouts: HashMap<Accesses, Result<Rc<shared::Found>, Unfit>>,
}

/// A copy, and what is known of its source and destination.
type Ends = (SpecId, (Side, Side));

/// f and g of each candidate.
type Sides = Vec<(Layout, Layout)>;

/// A shared tensor, what may access it by which candidates, and what descriptors name of it.
type Accesses = (BufferId, Vec<(SpecId, usize)>, Vec<Demand>);

fn sides(list: &[Candidate]) -> Sides {
    list.iter().map(|c| (c.f.clone(), c.g.clone())).collect()
}

pub(super) type Fallible<T> = Result<T, Box<Diagnostic>>;

impl<'a> Solver<'a> {
    pub(super) fn new(
        p: &'a Program,
        costing: &'a Costing<'a>,
        table: &'a AtomTable,
        (search, detours): (Search, Detours),
        ops: &'a [Op],
        held: &'a Held,
    ) -> Self {
        Solver {
            p,
            table,
            ops,
            held,
            kernel: costing.kernel,
            precision: precision::of(p, costing.kernel),
            calls: true,
            costing,
            search,
            detours,
            others: false,
            budget: Budget { left: 0, cut_off: false },
            best: vec![],
            settled: Finished::default(),
            failure: None,
            unanimous: true,
            searched: Searched::default(),
            found: HashMap::new(),
            alike: (HashMap::new(), HashMap::new()),
            between: HashMap::new(),
            layouts: HashMap::new(),
            of_parts: RefCell::default(),
        }
    }

    pub(super) fn error(
        &self,
        code: Code,
        spec: SpecId,
        message: String,
        help: &str,
    ) -> Box<Diagnostic> {
        Box::new(Diagnostic::new(code, self.p.specs[spec].span, message).help(help))
    }

    pub(super) fn buffer(&self, t: TensorId) -> BufferId {
        self.p.tensors[t].buffer
    }

    pub(super) fn rf(&self, t: TensorId) -> bool {
        self.p.buffer_of(t).is_per_thread()
    }

    pub(super) fn tensors(&self, id: SpecId) -> Vec<TensorId> {
        let spec = &self.p.specs[id];
        spec.input_tensors().chain(spec.outputs.iter().copied()).collect()
    }

    pub(super) fn side(&self, t: TensorId, known: &Known) -> Side {
        if !self.rf(t) {
            return Side::Memory;
        }
        known.get(&self.buffer(t)).map_or(Side::Open, |tv| Side::Registers(tv.clone()))
    }

    pub(super) fn unmatched(
        &self,
        id: SpecId,
        rejected: &[(&'static str, Mismatch)],
    ) -> Box<Diagnostic> {
        let spec = &self.p.specs[id];
        let Some(atom) = spec.atom.as_ref().and_then(|name| self.table.get(name)) else {
            return Box::new(matching::no_atom(self.p, id, self.table, rejected));
        };
        // Rows of other operations are not compared.
        let own = rejected.iter().find(|(name, _)| *name == atom.name).map(|(_, m)| m.clone());
        let m = own.unwrap_or_else(|| Mismatch::Op { want: atom.op.to_string() });
        let m = match self.tensors(id)[..] {
            [from, to] => lacking(self.p, (from, to), atom, m),
            _ => m,
        };
        Box::new(matching::not_by(self.p, id, atom.name, &m))
    }

    pub(super) fn candidates(
        &mut self,
        op: &Op,
        src: TensorId,
        dst: TensorId,
        known: &Known,
    ) -> Fallible<Rc<Vec<Candidate>>> {
        let ends = (self.side(src, known), self.side(dst, known));
        let key = (op.spec, ends);
        if let Some(list) = self.found.get(&key) {
            return Ok(Rc::clone(list));
        }
        let (src, dst) = key.1.clone();
        let list = copy::candidates(self.p, op.spec, src, dst, self.table, op.group.threads)
            .map_err(|r| self.unmatched(op.spec, &r))?;
        let next = self.alike.0.len();
        let number = *self.alike.0.entry(sides(&list)).or_insert(next);
        let list = Rc::new(list);
        self.alike.1.insert(list.as_ptr().addr(), number);
        self.found.insert(key, Rc::clone(&list));
        Ok(list)
    }

    /// The number of a list of candidates that [`Solver::candidates`] has given: lists that are
    /// alike have one.
    pub(super) fn number(&self, list: &[Candidate]) -> Option<usize> {
        self.alike.1.get(&list.as_ptr().addr()).copied()
    }
}

/// A mismatch of a copy, with the facts by which its operand would be aligned.
pub(crate) fn lacking(
    p: &Program,
    (from, to): (TensorId, TensorId),
    row: &Atom,
    mismatch: Mismatch,
) -> Mismatch {
    let of =
        |name: &str| if row.operands.first().is_some_and(|s| s.name == name) { from } else { to };
    let (operand, want) = match &mismatch {
        Mismatch::Align { operand, want, .. } => (*operand, *want),
        _ => return mismatch,
    };
    mismatch.lacking(|| missing_facts::aligned(p, of(operand), want))
}
