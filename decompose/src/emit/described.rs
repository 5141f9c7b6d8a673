//! Writes the body of a MatMul whose instructions read factors from shared memory by descriptors.

use super::{Emit, Nest, Unwritten};
use crate::build::{define, define_threads, indices, leaf, reshape, word};
use crate::layouts::matmul;
use carbyne_ir::ast::*;
use carbyne_ir::layout::Layout;

impl Emit<'_> {
    /// All instructions are one group, which is waited for at the end, unless the text does that.
    pub(super) fn described_body(
        &self,
        spec: &Spec,
        c: &matmul::Choice,
    ) -> Result<Block, Unwritten> {
        let mut body = vec![];
        let (blocks, all) = self.threads(spec, &mut body);
        let row = self.table.get(c.atom).ok_or(Unwritten::NoRow(c.atom))?;
        let (rm, rn, rk) = c.gemm.rest().unwrap_or((1, 1, 1));
        let (im, inn, ik) = c.gemm.inst;
        let (gm, gn, _) = c.gemm.groups;
        let [Operand::View(a), Operand::View(b)] = &spec.inputs[..] else {
            return Err(Unwritten::Operands);
        };
        let to = spec.outputs.first().ok_or(Unwritten::NoOutput)?;
        let [groups, group] = &self.local.groups;
        body.push(define_threads(groups, self.groups_of(&all, row)));
        let own = format!("@{group}");
        if gm * gn > 1 {
            body.push(indices(&[own.as_str()], View::of(groups)));
        }
        let place = |n: i64, of: Expr| if n > 1 { of } else { Expr::int(0) };
        let own = Expr::name(&own);
        let along_m =
            if gn > 1 { Expr::bin(BinOp::Mod, own.clone(), Expr::int(gm)) } else { own.clone() };
        let along_n = if gm > 1 { Expr::bin(BinOp::Div, own, Expr::int(gm)) } else { own };
        let (along_m, along_n) = (place(gm, along_m), place(gn, along_n));

        let names = &self.local.factors;
        let counts = [[rm, rk], [rn, rk], [rm, rn]];
        let tiles = [[im, ik], [ik, inn], [im, inn]];
        for (i, (view, map)) in [a, b, to].into_iter().zip(&c.maps).enumerate() {
            let own = match map {
                Some(map) => view.clone().then(ViewOp::Mine).then(registers(map, counts[i])),
                None => {
                    let sizes = tiles[i].iter().map(|n| Some(Expr::int(*n))).collect();
                    view.clone().then(ViewOp::Tile(Tiler::Sizes(sizes)))
                }
            };
            body.push(define(&names[i], own));
        }

        let mut nest = Nest::default();
        let k = nest.var(&self.local.loops[2], rk);
        let i = nest.var(&self.local.loops[0], rm);
        let j = nest.var(&self.local.loops[1], rn);
        let at = |t: usize, x: &Expr, y: &Expr| {
            let mut index = vec![None];
            for (e, n) in [x, y].into_iter().zip(counts[t]) {
                index.extend((n > 1).then(|| Some(e.clone())));
            }
            View::of(&names[t]).then(ViewOp::Index(index))
        };
        let tile = |t: usize, x: Expr, y: Expr| {
            View::of(&names[t]).then(ViewOp::Index(vec![Some(x), Some(y)]))
        };
        let row_of = |n: i64, group: &Expr, turn: &Expr| match (group, n) {
            (group, 1) => group.clone(),
            (group, _) if *group == Expr::int(0) => turn.clone(),
            (group, n) => Expr::bin(
                BinOp::Add,
                Expr::bin(BinOp::Mul, group.clone(), Expr::int(n)),
                turn.clone(),
            ),
        };
        let factors = vec![
            match &c.maps[0] {
                Some(_) => at(0, &i, &k),
                None => tile(0, row_of(rm, &along_m, &i), k.clone()),
            },
            tile(1, k, row_of(rn, &along_n, &j)),
        ];
        let atom = word(Key::Atom, c.atom);
        let attrs = spec.attr(Key::Acc).cloned().into_iter().chain([atom]).collect();
        let exec = (blocks, View::of(groups));
        let sync = |op: SyncOp, args: Vec<SyncArg>| Stmt::new(StmtKind::Sync { op, args });
        if c.fenced {
            body.push(sync(SyncOp::FenceAsync, vec![]));
        }
        body.push(sync(SyncOp::WgmmaFence, vec![]));
        body.extend(nest.around(vec![leaf(spec.kind, &exec, factors, at(2, &i, &j), attrs)]));
        body.push(sync(SyncOp::WgmmaCommit, vec![]));
        if c.waits {
            body.push(sync(SyncOp::WgmmaWait, vec![SyncArg::Number(Expr::int(0))]));
        }
        Ok(Block { stmts: body, footer: vec![] })
    }
}

/// A thread's values as (values of an instruction, instructions along modes that have several).
fn registers(map: &Layout, counts: [i64; 2]) -> ViewOp {
    let modes = map.modes();
    let real = modes.iter().enumerate().filter(|(i, _)| *i == 0 || counts[i - 1] > 1);
    let parts: Vec<Layout> = real.map(|(_, m)| m.coalesce()).collect();
    reshape(&parts)
}
