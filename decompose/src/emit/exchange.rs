//! Writes the bodies of Moves between registers as exchanges between lanes.
//! [`crate::layouts::exchange`] plans the exchanges.

use crate::build::{block, compact, define, indices, leaf, number, plain, when};
use crate::emit::*;
use crate::layouts::exchange::{Choice, Step};

impl Emit<'_> {
    /// The values in the order of the output, pairs of registers exchanged, and the values to the
    /// output.
    pub(super) fn exchange_body(&self, spec: &Spec, c: &Choice) -> Result<Block, Unwritten> {
        let mut body = vec![];
        let (blocks, all) = self.threads(spec, &mut body);
        let (Some(Operand::View(src)), Some(dst)) = (spec.inputs.first(), spec.outputs.first())
        else {
            return Err(Unwritten::Operands);
        };
        let each = (blocks.clone(), self.group(&all, 1));
        let [work, send, receive] = self.local.exchange.clone();
        let (s, d) = (self.local.source.clone(), self.local.target.clone());
        let thread = format!("@{}", self.local.lane);
        let units = c.values / c.unit;
        if !c.steps.is_empty() {
            body.push(indices(&[&thread], View::of(&all)));
        }
        body.push(define(&s, src.clone().then(ViewOp::Mine).then(reshape(&c.map.modes()))));
        body.push(define(&d, dst.clone().then(ViewOp::Mine).then(compact(&[c.unit, units]))));
        body.push(plain(&work, &[c.unit, units], c.scalar, Memory::Rf));
        if !c.steps.is_empty() {
            body.push(plain(&send, &[c.unit], c.scalar, Memory::Rf));
            body.push(plain(&receive, &[c.unit], c.scalar, Memory::Rf));
        }
        let copy = |from: View, to: View| leaf(SpecKind::Move, &each, vec![from], to, vec![]);
        let of = |t: &str, i: Expr| View::of(t).then(ViewOp::Index(vec![None, Some(i)]));
        let mut nest = Nest::default();
        let i = nest.var(&self.local.loops[0], units);
        body.extend(nest.clone().around(vec![copy(of(&s, i.clone()), of(&work, i.clone()))]));
        let warp = (blocks, self.group(&all, 32));
        for Step { mask, register } in &c.steps {
            let step = register / c.unit;
            let mut nest = Nest::default();
            let outer = nest.var(&self.local.loops[0], units / step / 2);
            let inner = nest.var(&self.local.loops[1], step);
            let low = sum(product(outer, step * 2), inner);
            let (low, high) = (of(&work, low.clone()), of(&work, sum(low, Expr::int(step))));
            // Branches that would both write, or both read, one of two registers are left apart:
            // compilers make one access of them, to an address that depends on the lane, and so to
            // memory.
            let where_bit = |is: i64, stmt: Stmt| {
                let bit = match *mask {
                    1 => Expr::name(&thread),
                    mask => Expr::bin(BinOp::Div, Expr::name(&thread), Expr::int(mask)),
                };
                let lhs = Expr::bin(BinOp::Mod, bit, Expr::int(2));
                when(lhs, CmpOp::Eq, Expr::int(is), vec![stmt])
            };
            let (x, y) = (View::of(&send), View::of(&receive));
            let bfly = SpecKind::Shfl(ShflOp::Bfly);
            body.extend(nest.around(vec![
                // The lanes below keep the lower registers.
                copy(low.clone(), x.clone()),
                where_bit(0, copy(high.clone(), x.clone())),
                leaf(bfly, &warp, vec![x], y.clone(), vec![number(Key::Lane, *mask)]),
                where_bit(0, copy(y.clone(), high)),
                where_bit(1, copy(y, low)),
            ]));
        }
        body.extend(nest.around(vec![copy(of(&work, i.clone()), of(&d, i))]));
        Ok(block(body))
    }
}

fn product(a: Expr, n: i64) -> Expr {
    match a.kind {
        ExprKind::Int(v) => Expr::int(v * n),
        _ if n == 1 => a,
        _ => Expr::bin(BinOp::Mul, a, Expr::int(n)),
    }
}

fn sum(a: Expr, b: Expr) -> Expr {
    match (&a.kind, &b.kind) {
        (ExprKind::Int(0), _) => b,
        (_, ExprKind::Int(0)) => a,
        (ExprKind::Int(x), ExprKind::Int(y)) => Expr::int(x + y),
        _ => Expr::bin(BinOp::Add, a, b),
    }
}
