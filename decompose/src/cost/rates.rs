//! Looks up the best rates of the atom table: for each kind of operation the cheapest row, whatever
//! its layout ([`Rates`]).

use crate::access::matmul_atoms::matmul_rows;
use crate::access::{matmul_atoms, staged_loops};
use carbyne_atoms::descriptor::Major;
use carbyne_atoms::{Atom, AtomOp, AtomOperand, AtomTable, Unit};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::scalar::{Memory, Scalar};
use std::cell::RefCell;
use std::collections::HashMap;

/// Of a row of an operation between registers.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Pointwise {
    /// Issue cycles of one warp for one element of each thread.
    pub issue: f64,
    /// What they keep busy.
    pub unit: Unit,
    /// Elements of each thread that one instruction takes.
    pub values: f64,
    /// Cycles until the result is there.
    pub completion: f64,
}

/// Of a row that multiplies.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Product {
    /// Its extents m, n, k, times its batches.
    pub tile: (i64, i64, i64),
    /// Threads that execute it together.
    pub group: i64,
    /// Cycles of one scheduler, of each of its warps.
    pub issue: f64,
    /// What they keep busy.
    pub unit: Unit,
    /// Cycles until the result is there.
    pub completion: f64,
    /// Whether it goes on while others are issued.
    pub asynchronous: bool,
    /// Of each factor that is named by a descriptor, the mode along which its tile must lie, if
    /// that is one alone.
    pub along: [Option<usize>; 2],
}

/// The cheapest row of an operation on these types, inputs first.
type Rows = HashMap<(SpecKind, Vec<Scalar>), Option<Pointwise>>;

/// Rows by the types of both factors and of sums, and by whether the first factor lies in shared
/// memory.
type Described = HashMap<([Scalar; 3], bool), Vec<Product>>;

/// Looks up rows, each once.
#[derive(Debug)]
pub(super) struct Rates<'t> {
    pub(super) table: &'t AtomTable,
    /// Whether threads copy to shared memory without waiting.
    pub(super) asynchronous: bool,
    /// Bits that a thread copies so, at least.
    pub(super) narrowest: i64,
    pointwise: RefCell<Rows>,
    products: RefCell<HashMap<[Scalar; 3], Vec<Product>>>,
    described: RefCell<Described>,
}

impl<'t> Rates<'t> {
    pub(super) fn new(table: &'t AtomTable) -> Self {
        let asynchronous = staged_loops::is_asynchronous(table);
        let copies = |a: &&Atom| a.op == AtomOp::Move && a.visibility.is_async_copy();
        let written = |a: &Atom| a.writes().map(|o| o.bits_per_thread()).min();
        let narrowest = table.atoms().iter().filter(copies).filter_map(written).min();
        Rates {
            table,
            asynchronous,
            narrowest: narrowest.unwrap_or(i64::MAX),
            pointwise: RefCell::default(),
            products: RefCell::default(),
            described: RefCell::default(),
        }
    }

    /// The cheapest row of an operation between registers, inputs first; none where no row takes
    /// these types.
    pub(super) fn pointwise(&self, kind: SpecKind, scalars: &[Scalar]) -> Option<Pointwise> {
        let key = (kind, scalars.to_vec());
        if let Some(known) = self.pointwise.borrow().get(&key) {
            return *known;
        }
        let rows = self.table.implementing(kind).filter_map(|a| pointwise(a, scalars));
        let found = rows.min_by(|a, b| a.issue.total_cmp(&b.issue));
        self.pointwise.borrow_mut().insert(key, found);
        found
    }

    /// The rows that multiply these types in registers, the fastest first.
    pub(super) fn products(&self, scalars: [Scalar; 3]) -> Vec<Product> {
        if let Some(known) = self.products.borrow().get(&scalars) {
            return known.clone();
        }
        let [a, b, c] = scalars;
        let rows = matmul_rows(self.table, a, b, c);
        let found: Vec<Product> = rows.into_iter().filter_map(product).collect();
        self.products.borrow_mut().insert(scalars, found.clone());
        found
    }

    /// The rows that multiply these types and read the second factor, or both, from shared memory
    /// by descriptors, the widest first.
    pub(super) fn described(&self, scalars: [Scalar; 3], both: bool) -> Vec<Product> {
        if let Some(known) = self.described.borrow().get(&(scalars, both)) {
            return known.clone();
        }
        let fits = |a: &&Atom| matmul_atoms::is_described(a, scalars, both);
        let rows = self.table.implementing(SpecKind::MatMul).filter(fits);
        let mut found: Vec<Product> = rows.filter_map(product).collect();
        found.sort_by_key(|row| std::cmp::Reverse(row.tile.1));
        // Which row is taken is not known yet.
        if found.windows(2).any(|two| two[0].along != two[1].along) {
            found.iter_mut().for_each(|row| row.along = [None; 2]);
        }
        self.described.borrow_mut().insert((scalars, both), found.clone());
        found
    }

    /// The fastest row that multiplies these types and extents by one instruction of a group,
    /// wherever factors lie.
    pub(super) fn whole(&self, scalars: [Scalar; 3], tile: (i64, i64, i64)) -> Option<Product> {
        let fits = |a: &&Atom| {
            a.operands.len() == 3 && a.operands.iter().zip(scalars).all(|(o, s)| o.is_of(s))
        };
        let rows = self.table.implementing(SpecKind::MatMul).filter(fits).filter_map(product);
        rows.filter(|row| row.tile == tile).min_by(|a, b| a.issue.total_cmp(&b.issue))
    }

    /// The row of that name, if it multiplies.
    pub(super) fn product(&self, name: &str) -> Option<Product> {
        product(self.table.get(name)?)
    }

    /// Whether the row of that name goes on while others are issued.
    pub(super) fn is_asynchronous(&self, name: &str) -> bool {
        self.table.get(name).is_some_and(|a| !a.visibility.is_immediate())
    }
}

fn pointwise(atom: &Atom, scalars: &[Scalar]) -> Option<Pointwise> {
    let operands: Vec<_> = atom.reads().chain(atom.writes()).collect();
    if atom.group != 1 || operands.len() != scalars.len() {
        return None;
    }
    let mut values = None;
    for (operand, scalar) in operands.into_iter().zip(scalars) {
        let n = operand.elem.scalars_per_unit(*scalar)? * operand.n_values();
        if !operand.allows(Memory::Rf) || *values.get_or_insert(n) != n {
            return None;
        }
    }
    let values = values.unwrap_or(1).max(1) as f64;
    let cost = &atom.cost;
    Some(Pointwise {
        issue: cost.issue_cycles / values,
        unit: atom.unit(),
        values,
        completion: cost.completion_cycles,
    })
}

fn product(atom: &Atom) -> Option<Product> {
    let AtomOp::MatMul { l, m, n, k } = atom.op else { return None };
    Some(Product {
        tile: (m, n, k.saturating_mul(l)),
        group: atom.group,
        issue: atom.cost.issue_cycles,
        unit: atom.unit(),
        completion: atom.cost.completion_cycles,
        asynchronous: !atom.visibility.is_immediate(),
        along: [0, 1].map(|i| along(atom.operands.get(i)?)),
    })
}

/// The mode along which a tile must lie that a descriptor names, if that is one alone.
fn along(operand: &AtomOperand) -> Option<usize> {
    let rule = operand.matrix_rule()?;
    match rule.majors {
        [Major::K] => Some(rule.k_mode),
        [Major::Mn] => Some(1 - rule.k_mode.min(1)),
        _ => None,
    }
}
