//! Removes copies between registers of the same thread from a written module ([`apply`]).
//!
//! If an operand of a copy is a part of a register tensor, the part is moved to a tensor of its own
//! before its layout is found. If each thread then has the part in its registers already, in the
//! same order, the move costs no instruction, but a reader has more statements to read. So the
//! readers of the copy read the part instead.

use carbyne_atoms::{AtomOp, AtomOperand, AtomTable};
use carbyne_ir::ast::visit::{self, Part, PartMut, Walk, parts, parts_mut};
use carbyne_ir::ast::*;
use carbyne_ir::scalar::{Memory, Scalar};
use std::collections::HashSet;

/// The module with such parts in the places of their copies. What stands in `given` stays as it is.
pub(crate) fn apply(module: &mut Module, given: &Module, table: &AtomTable) {
    let kept: HashSet<NodeKey> = Walk::new(&given.items).stmts().map(|s| s.id.key()).collect();
    visit::each_mut(&mut module.items, &mut |stmt| {
        for block in stmt.kind.blocks_mut() {
            of_block(&mut block.stmts, &kept, table);
        }
        unwrap(stmt, &kept);
    });
}

/// A copy, as what it is a copy of: as an operand, and as what each thread has.
struct Alias {
    whole: View,
    mine: View,
}

fn of_block(stmts: &mut Vec<Stmt>, kept: &HashSet<NodeKey>, table: &AtomTable) {
    let mut at = 0;
    while at + 1 < stmts.len() {
        let (name, scalar) = match &stmts[at].kind {
            StmtKind::Allocate { name, ty } if ty.memory.is_some_and(Memory::is_per_thread) => {
                (name.text.clone(), ty.scalar)
            }
            _ => {
                at += 1;
                continue;
            }
        };
        let own = !kept.contains(&stmts[at].id.key()) && !kept.contains(&stmts[at + 1].id.key());
        let found = alias(&stmts[at + 1], &name, table).filter(|_| own);
        match found.filter(|a| replaceable(&stmts[at + 2..], (&name, scalar), a, table)) {
            Some(alias) => {
                stmts.drain(at..at + 2);
                replace(&mut stmts[at..], &name, &alias);
            }
            None => at += 1,
        }
    }
}

/// What a tensor is a copy of, if a statement copies all of it, register by register.
fn alias(stmt: &Stmt, name: &str, table: &AtomTable) -> Option<Alias> {
    let (from, to, body) = moved(stmt)?;
    if to.base.text != name || !to.ops.is_empty() || from.base.text == name {
        return None;
    }
    let [source, target, each] = &body?.stmts[..] else { return None };
    let defined = |stmt: &Stmt| match &stmt.kind {
        StmtKind::DataDef { name, view, .. } => Some((name.text.clone(), split(view)?)),
        _ => None,
    };
    let ((s, source), (d, target)) = (defined(source)?, defined(target)?);
    let StmtKind::For { unroll: Unroll::Full, body, .. } = &each.kind else { return None };
    let [one] = &body.stmts[..] else { return None };
    let (read, written, None) = moved(one)? else { return None };
    let StmtKind::Spec(Spec { attrs, .. }) = &one.kind else { return None };
    let atom = Attr::among(attrs, Key::Atom).and_then(Attr::as_word);
    let copies = atom.and_then(|a| table.get(a)).is_some_and(|a| {
        a.op == AtomOp::Move
            && a.operands.iter().all(|o| o.memory.iter().all(|m| m.is_per_thread()))
    });
    let same = read.base.text == s && written.base.text == d && read.ops == written.ops;
    let fits = target.1 == source.1 && target.0.base.text == name && target.0.ops == [ViewOp::Mine];
    let mine = source.0;
    let threads = mine.ops.first() == Some(&ViewOp::Mine) && mine.base.text == from.base.text;
    (copies && same && fits && threads).then(|| Alias { whole: from.clone(), mine })
}

/// A view and the reshape that it ends with.
fn split(view: &View) -> Option<(View, LayoutExpr)> {
    let mut out = view.clone();
    match out.ops.pop() {
        Some(ViewOp::Reshape(layout)) => Some((out, layout)),
        _ => None,
    }
}

/// The operands of a Move without other attributes than its atom, and its body.
fn moved(stmt: &Stmt) -> Option<(&View, &View, Option<&Block>)> {
    let StmtKind::Spec(spec) = &stmt.kind else { return None };
    let plain = spec.kind == SpecKind::Move && spec.attrs.iter().all(|a| a.key == Some(Key::Atom));
    match (&spec.inputs[..], &spec.outputs[..]) {
        ([Operand::View(from)], [to]) if plain => Some((from, to, spec.body.as_ref())),
        _ => None,
    }
}

/// Whether a thread's values of the part are some of its registers that are not side by side.
fn strided(alias: &Alias) -> bool {
    alias.mine.ops.iter().any(|op| matches!(op, ViewOp::Tile(Tiler::Modes(_))))
}

/// Whether an instruction of a statement that reads the tensor takes several of its values, which
/// are to be side by side.
fn in_vectors(stmt: &Stmt, (name, scalar): (&str, Scalar), table: &AtomTable) -> bool {
    let mut reads = false;
    let mut vectors = false;
    for stmt in Walk::new(std::slice::from_ref(stmt)).stmts() {
        parts(stmt, &mut |part| {
            reads |= matches!(part, Part::View(view, _) if view.base.text == name);
        });
        let StmtKind::Spec(Spec { attrs, .. }) = &stmt.kind else { continue };
        let several = |o: &AtomOperand| {
            let bits = o.tv.mode(1).map_or(1, |v| v.size()).saturating_mul(o.elem.bits());
            bits > scalar.bits()
        };
        let atom = Attr::among(attrs, Key::Atom).and_then(Attr::as_word);
        vectors |= atom.and_then(|a| table.get(a)).is_some_and(|a| a.operands.iter().any(several));
    }
    reads && vectors
}

/// Whether statements read a copy as a whole, or what each thread has of it, and write neither it
/// nor what it is a copy of.
fn replaceable(stmts: &[Stmt], tensor: (&str, Scalar), alias: &Alias, table: &AtomTable) -> bool {
    let name = tensor.0;
    let mut fits = !strided(alias) || !stmts.iter().any(|s| in_vectors(s, tensor, table));
    for stmt in Walk::new(stmts).stmts() {
        if let StmtKind::Spec(spec) = &stmt.kind {
            let written = |v: &View| v.base.text == name || v.base.text == alias.whole.base.text;
            fits &= !spec.outputs.iter().any(written);
        }
        fits &= !matches!(&stmt.kind, StmtKind::Assign { .. } | StmtKind::Call(_));
        parts(stmt, &mut |part| match part {
            Part::View(view, _) if view.base.text == name => {
                fits &= view.ops.first().is_none_or(|op| *op == ViewOp::Mine);
            }
            _ => {}
        });
    }
    fits
}

fn replace(stmts: &mut [Stmt], name: &str, alias: &Alias) {
    visit::each_mut(stmts, &mut |stmt| {
        parts_mut(stmt, &mut |part| {
            if let PartMut::View(view, _) = part
                && view.base.text == name
            {
                let of = if view.ops.is_empty() { &alias.whole } else { &alias.mine };
                let more = view.ops.iter().skip(1).cloned();
                view.base = of.base.clone();
                view.ops = of.ops.iter().cloned().chain(more).collect();
            }
        });
    });
}

/// A Move whose body is the same Move has that one's body.
fn unwrap(stmt: &mut Stmt, kept: &HashSet<NodeKey>) {
    let Some((from, to, Some(body))) = moved(stmt) else { return };
    let [inner] = &body.stmts[..] else { return };
    let same = moved(inner).is_some_and(|(f, t, body)| f == from && t == to && body.is_some());
    if !same || kept.contains(&inner.id.key()) {
        return;
    }
    if let StmtKind::Spec(Spec { body: Some(body), .. }) = &mut stmt.kind
        && let Some(Stmt { kind: StmtKind::Spec(inner), .. }) = body.stmts.pop()
        && let Some(own) = inner.body
    {
        *body = own;
    }
}
