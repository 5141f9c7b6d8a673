//! Describes how an offset changes with a loop variable: after a period, it is larger by a constant
//! ([`Drift`]).

use carbyne_ir::expr::{Dim, Node, VarId};
use carbyne_ir::program::{Program, VarKind};

/// How an expression follows from a variable.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Drift {
    /// f(v + period) = f(v) + by, for all v. What does not depend on the variable has the period 1
    /// and moves by 0.
    Regular { period: i64, by: i64 },
    /// Nothing is known.
    Unknown,
}

/// Longer periods are not looked at.
const LONGEST: i64 = 64;

impl Drift {
    pub(crate) const NONE: Drift = Drift::Regular { period: 1, by: 0 };

    fn regular(period: Option<i64>, by: Option<i64>) -> Drift {
        match (period, by) {
            (Some(period @ 1..=LONGEST), Some(by)) => Drift::Regular { period, by },
            _ => Drift::Unknown,
        }
    }

    /// Of a sum, this one taken `times`.
    fn plus(self, other: Drift, times: i64) -> Drift {
        let (Drift::Regular { period: p, by: a }, Drift::Regular { period: q, by: b }) =
            (self, other)
        else {
            return Drift::Unknown;
        };
        let all = p / gcd(p, q) * q;
        let a = a.checked_mul(all / p);
        let b = b.checked_mul(all / q).and_then(|b| b.checked_mul(times));
        Drift::regular(Some(all), a.zip(b).and_then(|(a, b)| a.checked_add(b)))
    }

    /// The common period of two, and by how much each moves in it.
    pub(crate) fn common(self, other: Drift) -> Option<(i64, i64, i64)> {
        let (Drift::Regular { period: p, by: a }, Drift::Regular { period: q, by: b }) =
            (self, other)
        else {
            return None;
        };
        let all = p / gcd(p, q) * q;
        let (a, b) = (a.checked_mul(all / p)?, b.checked_mul(all / q)?);
        (all <= LONGEST).then_some((all, a, b))
    }
}

/// How an expression moves with a variable; threads, blocks and other loops stay what they are.
pub(crate) fn drift(p: &Program, d: Dim, var: VarId) -> Drift {
    let Dim::Expr(id) = d else { return Drift::NONE };
    if !mentions(p, d, var) {
        return Drift::NONE;
    }
    let of = |d: Dim| drift(p, d, var);
    match p.arena.node(id) {
        Node::Var(v) if v == var => Drift::Regular { period: 1, by: 1 },
        Node::Var(v) => match p.vars.get(&v) {
            Some(VarKind::Index(def)) => of(*def),
            Some(VarKind::Element(_)) => Drift::Unknown,
            _ => Drift::NONE,
        },
        Node::Linear { terms, .. } => {
            terms.iter().fold(Drift::NONE, |sum, (e, factor)| sum.plus(of(Dim::Expr(*e)), *factor))
        }
        // After as many periods as make what is divided move by a multiple of the divisor.
        Node::Div(a, Dim::Const(n)) if n > 0 => match of(a) {
            Drift::Regular { period, by } => {
                let times = n / gcd(by, n);
                let moved = by.checked_mul(times).map(|m| m / n);
                Drift::regular(period.checked_mul(times), moved)
            }
            Drift::Unknown => Drift::Unknown,
        },
        Node::Mod(a, Dim::Const(n)) if n > 0 => match of(a) {
            Drift::Regular { period, by } => {
                Drift::regular(period.checked_mul(n / gcd(by, n)), Some(0))
            }
            Drift::Unknown => Drift::Unknown,
        },
        Node::Mul(..)
        | Node::Div(..)
        | Node::Mod(..)
        | Node::CeilDiv(..)
        | Node::Min(..)
        | Node::Max(..) => Drift::Unknown,
    }
}

/// Whether an expression follows from a variable, through names of indices, too.
pub(crate) fn mentions(p: &Program, d: Dim, var: VarId) -> bool {
    let mut todo = p.vars_in(d);
    let mut seen = 0;
    while let Some(v) = todo.pop() {
        seen += 1;
        if v == var || seen > 1 << 12 {
            return true;
        }
        match p.vars.get(&v) {
            Some(VarKind::Index(def)) => todo.extend(p.vars_in(*def)),
            // Another turn reads another element.
            Some(VarKind::Element(t)) => todo.extend(p.vars_in(p.tensors[*t].offset)),
            _ => {}
        }
    }
    false
}

/// The greatest common divisor; of 0 and n it is n.
fn gcd(a: i64, b: i64) -> i64 {
    num_integer::gcd(a, b).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use carbyne_ir::expr::VarInfo;

    #[test]
    fn offsets_of_rings_repeat() {
        let src = "carbyne 2\n";
        let module = carbyne_ir::text::parse(src).expect("parses");
        let p = crate::checked(&module, src).expect("is well-formed");
        let k = p.arena.var(VarInfo::size("k")).expect("a variable");
        let v = p.vars_in(k)[0];
        let at = |c: i64, s: i64| {
            let sum = p.arena.add(k, Dim::Const(c)).expect("a sum");
            p.arena.rem(sum, Dim::Const(s)).expect("a remainder")
        };
        let ring = p.arena.mul(at(2, 3), Dim::Const(4096)).expect("a product");
        assert_eq!(drift(&p, ring, v), Drift::Regular { period: 3, by: 0 });
        let turn = p.arena.div(k, Dim::Const(3)).expect("a quotient");
        assert_eq!(drift(&p, turn, v), Drift::Regular { period: 3, by: 1 });
        let parity = p.arena.rem(turn, Dim::Const(2)).expect("a remainder");
        assert_eq!(drift(&p, parity, v), Drift::Regular { period: 6, by: 0 });
        let row = p.arena.mul(k, Dim::Const(32)).expect("a product");
        let both = p.arena.add(row, ring).expect("a sum");
        assert_eq!(drift(&p, both, v), Drift::Regular { period: 3, by: 96 });
        let square = p.arena.mul(k, k).expect("a product");
        assert_eq!(drift(&p, square, v), Drift::Unknown);
    }
}
