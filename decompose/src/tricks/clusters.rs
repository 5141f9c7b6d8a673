//! Divides the grid of a kernel with `cluster=` into clusters ([`apply`]): that many neighboring
//! blocks form a cluster, `#blocks.tile([2])`.
//!
//! Tiles that the blocks of a cluster copy alike are then copied once for all of them, in loops
//! with stages ([`super::bulk`]).

use crate::build::{both, define_threads};
use crate::names::Names;
use crate::numbers::{Numbers, eval};
use carbyne_ir::ast::visit;
use carbyne_ir::ast::*;
use carbyne_ir::diag::{Code, Diagnostic};

/// The module with the clusters that kernels ask for; none where none asks.
///
/// # Errors
/// A number that does not divide the grid, or a grid of which it is not known.
pub(crate) fn apply(module: &Module, names: &mut Names) -> Result<Option<Module>, Box<Diagnostic>> {
    let asks = |stmt: &Stmt| match &stmt.kind {
        StmtKind::Spec(spec) => spec.attr(Key::Cluster).is_some(),
        _ => false,
    };
    if !module.items.iter().any(asks) {
        return Ok(None);
    }
    let mut out = Module { items: vec![], ..module.clone() };
    for stmt in &module.items {
        let mut stmt = stmt.clone();
        if let StmtKind::Spec(spec) = &mut stmt.kind
            && let Some(at) = spec.attrs.iter().position(|a| a.key == Some(Key::Cluster))
        {
            let attr = spec.attrs.remove(at);
            let exec = spec.both().map(|(b, t)| (b.clone(), t.clone()));
            if let (Some(n @ 2..), Some((blocks, threads))) = (number(&attr), exec) {
                let all = grid(module, &blocks.base.text).filter(|_| blocks.ops.is_empty());
                if all.is_none_or(|all| all % n != 0) {
                    return Err(Box::new(undivided(&attr, n, all)));
                }
                let name = names.fresh("cluster");
                let all = blocks.base.text.clone();
                let tiles = Tiler::Sizes(vec![Some(Expr::int(n))]);
                let mut defined = define_threads(&name, blocks.then(ViewOp::Tile(tiles)));
                defined.leading = std::mem::take(&mut stmt.leading);
                defined.from = Some(stmt.id);
                defined.span = stmt.span;
                spec.exec = Some(both(&(View::of(&name), threads)));
                let body = spec.body.iter_mut().flat_map(|b| &mut b.stmts);
                body.for_each(|stmt| executed(stmt, &all, &name));
                out.items.push(defined);
            }
        }
        out.items.push(stmt);
    }
    Ok(Some(out))
}

fn undivided(attr: &Attr, n: i64, all: Option<i64>) -> Diagnostic {
    let (message, help) = match all {
        Some(all) => (
            format!("a grid of {all} blocks cannot be divided into clusters of {n}"),
            "choose a number that divides the blocks, or remove `cluster=`",
        ),
        None => (
            format!("it is not known whether clusters of {n} divide the grid"),
            "write a grid of one mode, `<<<#grid:[@b < 132], ..>>>`, or the clusters themselves, \
             `#grid.tile([2])`",
        ),
    };
    Diagnostic::new(Code::PinsConflict, attr.name.span, message).label("asked for here").help(help)
}

/// Specs that blocks of a grid execute are executed by those of clusters.
fn executed(stmt: &mut Stmt, grid: &str, cluster: &str) {
    visit::each_mut(std::slice::from_mut(stmt), &mut |stmt| {
        if let StmtKind::Spec(Spec { exec: Some(Exec::Both(blocks, _)), .. }) = &mut stmt.kind
            && blocks.base.text == grid
            && blocks.ops.is_empty()
        {
            blocks.base.text = cluster.to_owned();
        }
    });
}

/// The number that an attribute is, if it is one.
pub(crate) fn number(attr: &Attr) -> Option<i64> {
    match &attr.value {
        AttrValue::Tuple(TupleExpr::Leaf(Expr { kind: ExprKind::Int(n), .. })) => Some(*n),
        _ => None,
    }
}

/// How many blocks a tensor of one mode has.
fn grid(module: &Module, name: &str) -> Option<i64> {
    let ty = module.items.iter().find_map(|s| match &s.kind {
        StmtKind::ThreadDecl { name: own, ty } if own.text == name => Some(ty),
        _ => None,
    })?;
    let [Dims { modes, strides: None, .. }] = &ty.levels[..] else { return None };
    let [TupleExpr::Leaf(blocks)] = &modes[..] else { return None };
    let mut known = Numbers::new();
    for stmt in &module.items {
        let StmtKind::Let(all) = &stmt.kind else { continue };
        for (name, e) in all {
            known.extend(eval(e, &known).map(|n| (name.text.clone(), n)));
        }
    }
    eval(blocks, &known)
}
