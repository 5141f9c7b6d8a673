//! Takes offsets apart into sums of terms ([`Sum`]), and finds the variables on which a term
//! depends ([`Depends`]).

use carbyne_ir::expr::{Dim, Node, VarId};
use carbyne_ir::program::{Program, VarKind};

/// A constant and terms with their factors.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sum {
    pub(crate) constant: i64,
    pub(crate) terms: Vec<(Dim, i64)>,
}

impl Sum {
    pub(crate) fn of(p: &Program, d: Dim) -> Sum {
        let id = match d {
            Dim::Const(constant) => return Sum { constant, terms: vec![] },
            Dim::Expr(id) => id,
        };
        match p.arena.node(id) {
            Node::Linear { terms, constant } => {
                let terms = terms.iter().map(|(term, factor)| (Dim::Expr(*term), *factor));
                Sum { constant, terms: terms.collect() }
            }
            _ => Sum { constant: 0, terms: vec![(d, 1)] },
        }
    }

    /// The terms for which a condition holds, and the others with the constant.
    pub(crate) fn split(self, holds: impl Fn(Dim) -> bool) -> (Vec<(Dim, i64)>, Sum) {
        let (own, terms) = self.terms.into_iter().partition(|(d, _)| holds(*d));
        (own, Sum { constant: self.constant, terms })
    }

    /// The sum for these values of terms; `None` if a term has none, or on overflow.
    pub(crate) fn value(&self, of: impl Fn(Dim) -> Option<i64>) -> Option<i64> {
        self.terms.iter().try_fold(self.constant, |sum, (d, factor)| {
            sum.checked_add(of(*d)?.checked_mul(*factor)?)
        })
    }

    /// The variables of all terms, each once.
    pub(crate) fn variables(&self, p: &Program) -> Vec<VarId> {
        let mut out = vec![];
        for v in self.terms.iter().flat_map(|(d, _)| variables(p, *d)) {
            if !out.contains(&v) {
                out.push(v);
            }
        }
        out
    }
}

/// The variables of an expression, and those by which the coordinates that it names are defined.
pub(crate) fn variables(p: &Program, d: Dim) -> Vec<VarId> {
    let (mut out, mut todo) = (vec![], vec![d]);
    while let Some(d) = todo.pop() {
        for v in p.vars_in(d) {
            match p.vars.get(&v) {
                Some(VarKind::Index(def)) => todo.push(*def),
                _ => out.push(v),
            }
        }
    }
    out
}

/// The kinds of variables on which an expression depends.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(crate) struct Depends {
    pub(crate) thread: bool,
    pub(crate) block: bool,
    pub(crate) symbol: bool,
    /// Loops, counters, and integers that are read from memory.
    pub(crate) loops: bool,
}

/// The kinds of variables on which an expression depends.
pub(crate) fn depends(p: &Program, d: Dim) -> Depends {
    let mut out = Depends::default();
    for v in variables(p, d) {
        match p.vars.get(&v) {
            Some(VarKind::Thread(_)) => out.thread = true,
            Some(VarKind::Block(_)) => out.block = true,
            Some(VarKind::Loop | VarKind::Element(_) | VarKind::Counter(_)) => out.loops = true,
            Some(VarKind::Symbol | VarKind::Index(_)) | None => out.symbol = true,
        }
    }
    out
}
