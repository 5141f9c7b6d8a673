//! Writes statements that combine values of several threads through shared memory: the rest of a
//! Reduction after its lanes have exchanged, and partial sums of a MatMul whose K is spread over
//! warps.

use super::Values;
use super::{Emit, Nest, at, unrolled};
use crate::build::{barrier, define, layout_expr, leaf, number, plain, reshape, spec, zero};
use crate::layouts::matmul;
use crate::layouts::reduce::Through;
use crate::layouts::tv::mode;
use carbyne_ir::ast::*;
use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::{Memory, Scalar};

/// Partial sums of a MatMul.
pub(super) struct Partial {
    /// The register tensor.
    pub(super) name: String,
    each: (View, View),
    all: String,
    /// Values of one thread.
    n: i64,
    scalar: Scalar,
    through: Through,
}

impl Emit<'_> {
    /// A slot in shared memory for each thread and value: after `first`, every thread puts its
    /// value there, and combines those of all threads that hold parts of it, in the same order.
    pub(super) fn through(
        &self,
        v: &Values<'_>,
        through: &Through,
        first: Vec<Stmt>,
        all: &str,
        body: &mut Vec<Stmt>,
    ) {
        let mut steps = first;
        for (i, step) in through.steps().enumerate() {
            let names = if i == 0 { &self.local.exchange } else { &self.local.second };
            self.once(v, step, (names.clone(), all), steps, body);
            steps = vec![];
        }
    }

    /// One exchange, after `first`.
    fn once(
        &self,
        v: &Values<'_>,
        through: &Through,
        ([x, put, get], all): ([String; 3], &str),
        first: Vec<Stmt>,
        body: &mut Vec<Stmt>,
    ) {
        body.push(plain(&x, &[through.threads * v.n], v.scalar, Memory::Sh));
        let mut nest = Nest::default();
        let i = nest.var(&self.local.loops[0], v.n);
        let j = &self.local.loops[1];
        let values = mode(v.n, through.threads);
        let all_own = mode(through.threads, 1);
        let view = |t: &Layout, v: &[Layout]| -> ViewOp {
            let v = Layout::concat(v).unwrap_or_else(|_| mode(1, 0));
            let tv = Layout::concat(&[t.clone(), v]).unwrap_or_else(|_| mode(1, 0));
            ViewOp::Tv(layout_expr(&tv), Name::new(all))
        };
        body.push(define(&put, View::of(&x).then(view(&all_own, std::slice::from_ref(&values)))));
        let others = through.others.coalesce();
        body.push(define(&get, View::of(&x).then(view(&through.first, &[values, others]))));
        let mut steps = first;
        let to = at(&put, vec![i.clone()]);
        steps.push(leaf(SpecKind::Move, &v.each, vec![(v.own)()], to, vec![]));
        body.extend(nest.clone().around(steps));
        body.push(barrier(v.part.then(|| View::of(all))));
        let from = at(&get, vec![i.clone(), Expr::int(0)]);
        let mut steps = vec![leaf(SpecKind::Move, &v.each, vec![from], (v.own)(), vec![])];
        let from = at(&get, vec![i.clone(), Expr::name(j)]);
        let other = || at(v.other, vec![Expr::int(0)]);
        let mut next = vec![leaf(SpecKind::Move, &v.each, vec![from], other(), vec![])];
        next.extend(self.combined(v.op, &v.each, (v.own)(), other()));
        if through.others.size() > 1 {
            steps.push(unrolled(j, (1, through.others.size()), next));
        }
        steps.extend(self.by_lanes(v, &through.masks, all));
        body.extend(nest.around(steps));
    }

    /// Lanes of a warp combine their values, one exchange for each mask.
    pub(super) fn by_lanes(&self, v: &Values<'_>, masks: &[i64], all: &str) -> Vec<Stmt> {
        let warp = (v.each.0.clone(), self.group(all, 32));
        let other = || at(v.other, vec![Expr::int(0)]);
        let one = |mask: &i64| {
            let (exchange, lane) = (SpecKind::Shfl(ShflOp::Bfly), vec![number(Key::Lane, *mask)]);
            let mut steps = vec![leaf(exchange, &warp, vec![(v.own)()], other(), lane)];
            steps.extend(self.combined(v.op, &v.each, (v.own)(), other()));
            steps
        };
        masks.iter().flat_map(one).collect()
    }

    /// Registers for the partial sums of a MatMul, where groups of threads share K.
    pub(super) fn partial(
        &self,
        c: &matmul::Choice,
        to: &View,
        (blocks, all): (&View, &str),
        body: &mut Vec<Stmt>,
    ) -> Option<Partial> {
        let (gm, gn, gk) = c.gemm.groups;
        if gk == 1 {
            return None;
        }
        let group = self.table.get(c.atom)?.group;
        let held = group.checked_mul(gm * gn)?;
        let n = c.maps[2].as_ref().map_or(0, Layout::size);
        let name = self.local.partial.clone();
        let scalar = c.sum;
        body.push(plain(&name, &[n], scalar, Memory::Rf));
        body.push(plain(&self.local.other, &[1], scalar, Memory::Rf));
        body.push(define(
            &self.local.target,
            to.clone().then(ViewOp::Mine).then(reshape(&[mode(n, 1)])),
        ));
        let first = Layout::concat(&[mode(held, 1), mode(gk, 0)]).ok()?;
        let (threads, others) = (held * gk, mode(gk, held));
        let through = Through { threads, first, others, masks: vec![], then: None };
        let each = (blocks.clone(), self.group(all, 1));
        Some(Partial { name, each, all: all.to_owned(), n, scalar, through })
    }

    /// Partial sums begin with zero.
    pub(super) fn zero(&self, p: &Partial, body: &mut Vec<Stmt>) {
        let mut nest = Nest::default();
        let i = nest.var(&self.local.loops[0], p.n);
        let to = at(&p.name, vec![i]);
        let init =
            spec(SpecKind::Init, Some(crate::build::both(&p.each)), vec![zero()], to, vec![]);
        body.extend(nest.around(vec![init]));
    }

    /// All partial sums, added to the accumulator.
    pub(super) fn sum(&self, p: &Partial, part: bool, body: &mut Vec<Stmt>) {
        let mut nest = Nest::default();
        let i = nest.var(&self.local.loops[0], p.n);
        let add = SpecKind::Binary(BinaryOp::Add);
        let own = || at(&p.name, vec![i.clone()]);
        let values = Values {
            each: p.each.clone(),
            part,
            own: &own,
            other: &self.local.other,
            n: p.n,
            op: add,
            scalar: p.scalar,
        };
        self.through(&values, &p.through, vec![], &p.all, body);
        let to = || at(&self.local.target, vec![i.clone()]);
        body.extend(nest.around(vec![leaf(add, &p.each, vec![to(), own()], to(), vec![])]));
    }
}
