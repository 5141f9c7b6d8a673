//! Writes the atom to which a kernel-level spec is pinned at the leaves of its body that the atom
//! can implement ([`pin`]).

use crate::build::word;
use carbyne_atoms::bind;
use carbyne_atoms::{Atom, AtomTable, Extent};
use carbyne_ir::ast::visit::{Walk, each_mut};
use carbyne_ir::ast::{Def, Key, Operand, Spec, SpecKind, Stmt, StmtKind, TensorExpr, View};
use carbyne_ir::scalar::Memory;
use std::collections::HashMap;

/// Why an atom implements no leaf of a body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoLeaf {
    #[error("it has no {kind} that `{atom}` could implement")]
    Kind { kind: SpecKind, atom: String },
    #[error("`{atom}` moves nothing that way: elements go {}", ways.join(", "))]
    Ways { atom: String, ways: Vec<String> },
}

/// Writes `atom=` at the leaves that the atom may implement.
///
/// # Errors
/// That there is none, and which ways elements go.
pub(crate) fn pin(
    stmts: &mut [Stmt],
    of: &Stmt,
    name: &str,
    table: &AtomTable,
) -> Result<(), NoLeaf> {
    let StmtKind::Spec(spec) = &of.kind else { return Ok(()) };
    let Some(atom) = table.get(name) else { return Ok(()) };
    let kind = spec.kind;
    let memories = memories(stmts);
    let mut any = false;
    let mut ways = vec![];
    each_mut(stmts, &mut |stmt| {
        let attrs = match &mut stmt.kind {
            StmtKind::Spec(leaf) if leaf.body.is_none() => {
                if !same(leaf.kind, kind) || !moves(atom, leaf, &memories, &mut ways) {
                    return;
                }
                &mut leaf.attrs
            }
            StmtKind::Assign { target, value: TensorExpr::Apply(apply), .. } => {
                let from = apply.args.iter().find_map(|a| match a {
                    TensorExpr::View(view) => Some(view),
                    TensorExpr::Apply(_) | TensorExpr::Number(_) => None,
                });
                if !same(apply.kind, kind)
                    || !fits(atom, kind, (from, target), &memories, &mut ways)
                {
                    return;
                }
                &mut apply.attrs
            }
            _ => return,
        };
        any = true;
        attrs.retain(|a| a.key != Some(Key::Atom));
        attrs.push(word(Key::Atom, name));
    });
    match any {
        true => Ok(()),
        false if ways.is_empty() => Err(NoLeaf::Kind { kind, atom: name.to_owned() }),
        false => Err(NoLeaf::Ways { atom: name.to_owned(), ways }),
    }
}

/// Whether the body of a strategy has an operation of the atom's kind, with operands where the atom
/// has them.
pub(crate) fn could_be(def: &Def, atom: &Atom) -> bool {
    let memories = memories(&def.body.stmts);
    let Some(kind) = atom.op.spec_kind() else { return false };
    let lies = |view: &View, at: usize| {
        let memory = memories.get(&view.base.text).copied().unwrap_or(Memory::Rf);
        atom.operands.get(at).is_some_and(|o| o.allows(memory))
    };
    Walk::new(&def.body.stmts).stmts().any(|stmt| {
        let StmtKind::Spec(leaf) = &stmt.kind else { return false };
        let inputs = leaf.inputs.iter().enumerate();
        leaf.body.is_none()
            && same(leaf.kind, kind)
            && inputs.clone().all(|(i, o)| match o {
                Operand::View(view) => lies(view, i),
                Operand::Number(_) | Operand::Value(_) => true,
            })
            && leaf.outputs.iter().enumerate().all(|(i, v)| lies(v, leaf.inputs.len() + i))
    })
}

fn same(a: SpecKind, b: SpecKind) -> bool {
    let plain = |k: SpecKind| if k == SpecKind::MatMulSet { SpecKind::MatMul } else { k };
    plain(a) == plain(b)
}

fn moves(atom: &Atom, leaf: &Spec, of: &HashMap<String, Memory>, ways: &mut Vec<String>) -> bool {
    let from = leaf.inputs.iter().find_map(|o| match o {
        Operand::View(view) => Some(view),
        Operand::Number(_) | Operand::Value(_) => None,
    });
    let Some(to) = leaf.outputs.first() else { return false };
    fits(atom, leaf.kind, (from, to), of, ways)
}

/// Whether the atom moves elements from there to there; of other kinds always.
fn fits(
    atom: &Atom,
    kind: SpecKind,
    (from, to): (Option<&View>, &View),
    of: &HashMap<String, Memory>,
    ways: &mut Vec<String>,
) -> bool {
    if kind != SpecKind::Move {
        return true;
    }
    let memory = |view: &View| of.get(&view.base.text).copied().unwrap_or(Memory::Rf);
    let (Some(from), to) = (from.map(memory), memory(to)) else { return false };
    ways.push(format!("{} -> {}", from.as_str(), to.as_str()));
    let plain = atom.extent == Extent::Tile && bind::moves_whole_tile(atom).is_ok();
    let by = bind::operation(SpecKind::Move, atom).is_ok();
    by && plain && matches!(&atom.operands[..], [s, d] if s.allows(from) && d.allows(to))
}

/// Where tensors lie: what no statement declares is the caller's.
fn memories(stmts: &[Stmt]) -> HashMap<String, Memory> {
    let mut declared: HashMap<String, Memory> = HashMap::new();
    let mut named = vec![];
    for stmt in Walk::new(stmts).stmts() {
        match &stmt.kind {
            StmtKind::Allocate { name, ty } | StmtKind::DataDecl { name, ty, .. } => {
                declared.insert(name.text.clone(), ty.memory.unwrap_or(Memory::Rf));
            }
            StmtKind::DataDef { name, view, .. } => {
                if let Some(memory) = declared.get(&view.base.text).copied() {
                    declared.insert(name.text.clone(), memory);
                }
            }
            StmtKind::Assign { target, ty, value } => {
                if target.ops.is_empty() {
                    let memory = ty.as_ref().and_then(|ty| ty.memory).unwrap_or(Memory::Rf);
                    declared.entry(target.base.text.clone()).or_insert(memory);
                }
                let mut todo = vec![value];
                while let Some(value) = todo.pop() {
                    match value {
                        TensorExpr::View(view) => named.push(view.base.text.clone()),
                        TensorExpr::Apply(apply) => todo.extend(&apply.args),
                        TensorExpr::Number(_) => {}
                    }
                }
                named.push(target.base.text.clone());
            }
            StmtKind::Spec(spec) => {
                for (i, view) in spec.outputs.iter().enumerate() {
                    if let Some(Some(ty)) = spec.declared.get(i) {
                        declared.insert(view.base.text.clone(), ty.memory.unwrap_or(Memory::Rf));
                    }
                    named.push(view.base.text.clone());
                }
                for operand in &spec.inputs {
                    if let Operand::View(view) = operand {
                        named.push(view.base.text.clone());
                    }
                }
            }
            _ => {}
        }
    }
    for name in named {
        declared.entry(name).or_insert(Memory::Gl);
    }
    declared
}
