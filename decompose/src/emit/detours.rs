//! Rewrites a module that cannot be solved as it stands: each [`Want`] of the solver becomes a body
//! or a copy that takes operands through registers or shared memory ([`apply`]). The added
//! statements are like those of a user, and are solved like them.

use crate::access::ops;
use crate::build::{self, layout_expr};
use crate::layouts::tv::mode;
use crate::layouts::views::is_part;
use crate::layouts::want::Want;
use crate::names::Names;
use crate::origins::inherit;
use carbyne_ir::ast::visit::{self, Rewriter};
use carbyne_ir::ast::*;
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{BufferId, Program, SpecId, TensorId};
use carbyne_ir::scalar::{Memory, Scalar};
use carbyne_ir::span::Span;
use std::collections::{BTreeMap, HashMap};

/// The module with every want fulfilled. `p` is what the module resolves to.
pub(crate) fn apply(mut module: Module, p: &Program, wants: &[Want], names: &mut Names) -> Module {
    let mut by_spec: BTreeMap<SpecId, Vec<&Want>> = BTreeMap::new();
    for want in wants {
        let (Want::ThroughRegisters(id)
        | Want::ThroughShared(id)
        | Want::FromZero(id)
        | Want::Converted(id)
        | Want::Broadcast(id)
        | Want::Own(id)
        | Want::Spread(id)
        | Want::OfShared { spec: id, .. }
        | Want::Single { spec: id, .. }
        | Want::Rearranged { spec: id, .. }) = want;
        by_spec.entry(*id).or_default().push(want);
    }
    let specs = p.specs_by_node();
    let mut by = Rewrite { p, wants: by_spec, names, specs, whole: vec![] };
    module.items = visit::rewrite(module.items, &mut by);
    module
}

struct Rewrite<'a> {
    p: &'a Program,
    wants: BTreeMap<SpecId, Vec<&'a Want>>,
    names: &'a mut Names,
    specs: HashMap<NodeKey, SpecId>,
    /// Tensors that are in shared memory as a whole for parts that the spec at hand reads, and
    /// their names there.
    whole: Vec<(BufferId, String)>,
}

impl Rewriter for Rewrite<'_> {
    fn leave(&mut self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        let node = stmt.id;
        if let StmtKind::Spec(spec) = &mut stmt.kind
            && let Some(id) = self.specs.get(&node.key()).copied()
        {
            let mut before = vec![];
            self.whole.clear();
            for want in self.wants.remove(&id).unwrap_or_default() {
                self.spec(id, spec, want, &mut before);
                if let Some(body) = &mut spec.body {
                    inherit(&mut body.stmts, node, spec.span);
                }
            }
            inherit(&mut before, node, spec.span);
            if let Some(first) = before.first_mut() {
                first.blank_above = std::mem::take(&mut stmt.blank_above);
            }
            out.append(&mut before);
        }
        out.push(stmt);
    }
}

impl Rewrite<'_> {
    fn spec(&mut self, id: SpecId, spec: &mut Spec, want: &Want, before: &mut Vec<Stmt>) {
        let body = match want {
            Want::ThroughRegisters(_) => self.through_registers(id, spec),
            Want::ThroughShared(_) => self.through_shared(id, spec),
            Want::Own(_) => self.own(id, spec),
            Want::Spread(_) => self.spread(id, spec),
            Want::OfShared { input, .. } => {
                self.of_shared(id, spec, *input, before);
                return;
            }
            Want::Broadcast(_) => self.broadcast(id, spec),
            Want::FromZero(_) => self.onto_zero(id, spec),
            Want::Converted(_) => self.converted(id, spec),
            Want::Single { input, .. } => {
                self.single(id, spec, *input, before);
                return;
            }
            Want::Rearranged { input, by_lanes, .. } => {
                let tensors: Vec<TensorId> = self.p.specs[id].input_tensors().collect();
                let Some(&t) = tensors.get(*input) else { return };
                let mut views = spec.inputs.iter_mut().filter_map(|o| match o {
                    Operand::View(v) => Some(v),
                    Operand::Number(_) | Operand::Value(_) => None,
                });
                let Some(view) = views.nth(*input) else { return };
                let base = view.base.text.clone();
                let scalar = self.p.scalar_of(t);
                if let Some(tv) = by_lanes {
                    let own = self.names.fresh(&format!("{base}_r"));
                    let Some(stated) = self.stated(id, t, &own, tv) else { return };
                    let from = std::mem::replace(view, View::of(&own));
                    before.push(stated);
                    before.push(moved(spec, from, View::of(&own)));
                    return;
                }
                let (shared, own) = (
                    self.names.fresh(&format!("{base}_s")),
                    self.names.fresh(&format!("{base}_r")),
                );
                let (Some(first), Some(second)) = (
                    allocate(self.p, t, &shared, scalar, Memory::Sh),
                    allocate(self.p, t, &own, scalar, Memory::Rf),
                ) else {
                    return;
                };
                // Through shared memory at once: a Move between registers would spread the layout
                // that does not fit.
                let from = std::mem::replace(view, View::of(&own));
                before.extend([first, second]);
                before.push(moved(spec, from, View::of(&shared)));
                before.push(moved(spec, View::of(&shared), View::of(&own)));
                return;
            }
        };
        if let Some(stmts) = body {
            // What is said to an instruction stands at the leaf that has it.
            let leaves = |key: Key| {
                stmts.iter().any(|stmt| match &stmt.kind {
                    StmtKind::Spec(leaf) => leaf.attr(key).is_some(),
                    _ => false,
                })
            };
            let of_leaf = |key: &Key| *key == Key::Warps || key.is(Role::OfLeaf);
            spec.attrs.retain(|a| !a.key.filter(of_leaf).is_some_and(leaves));
            spec.body = Some(Block { stmts, footer: vec![] });
        }
    }

    /// Operands that are parts of register tensors become tensors of their own.
    fn own(&mut self, id: SpecId, spec: &Spec) -> Option<Vec<Stmt>> {
        let s = &self.p.specs[id];
        let &out = s.outputs.first()?;
        let to = spec.outputs.first()?.clone();
        let mut body = vec![];
        let mut inner = inner(spec);
        let mut tensors = s.input_tensors();
        for operand in &mut inner.inputs {
            let Operand::View(view) = operand else { continue };
            let t = tensors.next()?;
            if !is_part(self.p, t) {
                continue;
            }
            let name = self.names.fresh(&format!("{}_r", view.base.text));
            body.push(allocate(self.p, t, &name, self.p.scalar_of(t), Memory::Rf)?);
            let from = std::mem::replace(view, View::of(&name));
            body.push(moved(spec, from, View::of(&name)));
        }
        if !is_part(self.p, out) {
            body.push(Stmt::new(StmtKind::Spec(inner)));
            return Some(body);
        }
        let name = self.names.fresh(&format!("{}_r", to.base.text));
        body.push(allocate(self.p, out, &name, self.p.scalar_of(out), Memory::Rf)?);
        if spec.kind.reads_output() {
            body.push(moved(spec, to.clone(), View::of(&name)));
        }
        inner.outputs = vec![View::of(&name)];
        body.push(Stmt::new(StmtKind::Spec(inner)));
        body.push(moved(spec, View::of(&name), to));
        Some(body)
    }

    /// A Reduction to registers of its own, and from there to the output through shared memory at
    /// once: a Move between registers would spread the layout that does not fit.
    fn spread(&mut self, id: SpecId, spec: &Spec) -> Option<Vec<Stmt>> {
        let &out = self.p.specs[id].outputs.first()?;
        let to = spec.outputs.first()?.clone();
        let scalar = self.p.scalar_of(out);
        let own = self.names.fresh(&format!("{}_r", to.base.text));
        let shared = self.names.fresh(&format!("{}_s", to.base.text));
        let mut inner = inner(spec);
        inner.outputs = vec![View::of(&own)];
        Some(vec![
            allocate(self.p, out, &own, scalar, Memory::Rf)?,
            Stmt::new(StmtKind::Spec(inner)),
            allocate(self.p, out, &shared, scalar, Memory::Sh)?,
            moved(spec, View::of(&own), View::of(&shared)),
            moved(spec, View::of(&shared), to),
        ])
    }

    /// A part of a tensor that its threads hold unevenly: all of it to shared memory, and the part
    /// from there.
    fn of_shared(&mut self, id: SpecId, spec: &mut Spec, input: usize, before: &mut Vec<Stmt>) {
        let Some(t) = self.p.specs[id].input_tensors().nth(input) else { return };
        let Some(dist) = &self.p.tensors[t].dist else { return };
        let (buffer, scalar) = (self.p.buffer_of(t), self.p.scalar_of(t));
        let id = self.p.tensors[t].buffer;
        let there = self.whole.iter().find(|(b, _)| *b == id).map(|(_, name)| name.clone());
        let is_there = there.is_some();
        let all = there.unwrap_or_else(|| self.names.fresh(&format!("{}_s", buffer.name)));
        let own = self.names.fresh(&format!("{}_r", buffer.name));
        let (Some(first), Some(second)) = (
            allocate(self.p, buffer.tensor, &all, scalar, Memory::Sh),
            allocate(self.p, t, &own, scalar, Memory::Rf),
        ) else {
            return;
        };
        let mut part = View::of(&all);
        part.ops.clone_from(&dist.ops);
        if !is_there {
            before.push(first);
            before.push(moved(spec, View::of(&buffer.name), View::of(&all)));
            self.whole.push((id, all));
        }
        before.push(second);
        before.push(moved(spec, part, View::of(&own)));
        let mut views = spec.inputs.iter_mut().filter_map(|o| match o {
            Operand::View(v) => Some(v),
            Operand::Number(_) | Operand::Value(_) => None,
        });
        if let Some(view) = views.nth(input) {
            *view = View::of(&own);
        }
    }

    /// A register of every thread for an element, and a Move to it before the spec.
    fn single(&mut self, id: SpecId, spec: &mut Spec, input: usize, before: &mut Vec<Stmt>) {
        let Some(t) = self.p.specs[id].input_tensors().nth(input) else { return };
        let Some(group) = self.group(id) else { return };
        let Ok(tv) = Layout::concat(&[mode(group.threads, 0), mode(1, 0)]) else { return };
        let exec = spec.both().map(|(b, t)| (b.clone(), t.clone().then(ViewOp::Scalar)));
        let Some(each) = exec else { return };
        let mut views = spec.inputs.iter_mut().filter_map(|o| match o {
            Operand::View(v) => Some(v),
            Operand::Number(_) | Operand::Value(_) => None,
        });
        let Some(view) = views.nth(input) else { return };
        let name = self.names.fresh(&format!("{}_r", view.base.text));
        let Some(stated) = self.stated(id, t, &name, &tv) else { return };
        let from = std::mem::replace(view, View::of(&name));
        let first = ViewOp::Index(vec![Some(Expr::int(0))]);
        let own = View::of(&name).then(ViewOp::Mine).then(first);
        let own = build::leaf(SpecKind::Move, &each, vec![from.clone()], own, vec![]);
        let mut all = moved(spec, from, View::of(&name));
        if let StmtKind::Spec(all) = &mut all.kind {
            all.body = Some(Block { stmts: vec![own], footer: vec![] });
        }
        before.extend([stated, all]);
    }

    /// Who executes a spec.
    fn group(&self, id: SpecId) -> Option<ops::Group> {
        let holds = |kernel: &&SpecId| self.p.walk_body(**kernel).specs().any(|s| s == id);
        let kernel = *self.p.kernels.iter().find(holds)?;
        ops::group_of(self.p, kernel, id)
    }

    /// Registers of the shape of `t` with a thread-value layout.
    fn stated(&self, id: SpecId, t: TensorId, name: &str, tv: &Layout) -> Option<Stmt> {
        let threads = self.group(id)?.name;
        let mut stmt = allocate(self.p, t, name, self.p.scalar_of(t), Memory::Rf)?;
        if let StmtKind::Allocate { ty, .. } = &mut stmt.kind {
            ty.attrs = vec![TypeAttr::Tv(layout_expr(tv), Name::new(threads))];
        }
        Some(stmt)
    }

    /// Operands in memory go through registers.
    fn through_registers(&mut self, id: SpecId, spec: &Spec) -> Option<Vec<Stmt>> {
        let s = &self.p.specs[id];
        let &out = s.outputs.first()?;
        let to = spec.outputs.first()?.clone();
        let mut body = vec![];
        if let SpecKind::Move | SpecKind::Accumulate(_) = spec.kind {
            let name = self.names.fresh("r");
            let Some(Operand::View(from)) = spec.inputs.first() else { return None };
            body.push(allocate(self.p, out, &name, self.p.scalar_of(out), Memory::Rf)?);
            body.push(moved(spec, from.clone(), View::of(&name)));
            let mut last = inner(spec);
            last.inputs = vec![Operand::View(View::of(&name))];
            last.outputs = vec![to];
            body.push(match spec.kind {
                SpecKind::Move => moved(spec, View::of(&name), last.outputs.remove(0)),
                _ => Stmt::new(StmtKind::Spec(last)),
            });
            return Some(body);
        }
        let memory = |t: TensorId| self.p.buffer_of(t).memory;
        let mut inner = inner(spec);
        let mut tensors = s.input_tensors();
        for operand in &mut inner.inputs {
            let Operand::View(view) = operand else { continue };
            let t = tensors.next()?;
            if memory(t).is_some_and(Memory::is_per_thread) {
                continue;
            }
            let name = self.names.fresh("r");
            body.push(allocate(self.p, t, &name, self.p.scalar_of(t), Memory::Rf)?);
            let from = std::mem::replace(view, View::of(&name));
            body.push(moved(spec, from, View::of(&name)));
        }
        if memory(out).is_some_and(Memory::is_per_thread) {
            body.push(Stmt::new(StmtKind::Spec(inner)));
            return Some(body);
        }
        let name = self.names.fresh("r");
        body.push(allocate(self.p, out, &name, self.p.scalar_of(out), Memory::Rf)?);
        if spec.kind == SpecKind::MatMul {
            body.push(moved(spec, to.clone(), View::of(&name)));
        }
        inner.outputs = vec![View::of(&name)];
        body.push(Stmt::new(StmtKind::Spec(inner)));
        body.push(moved(spec, View::of(&name), to));
        Some(body)
    }

    /// A Move between registers through a shared tensor; one that repeats its source repeats it
    /// afterwards.
    fn through_shared(&mut self, id: SpecId, spec: &Spec) -> Option<Vec<Stmt>> {
        let s = &self.p.specs[id];
        let (t, &out) = (s.input_tensors().next()?, s.outputs.first()?);
        let Some(Operand::View(from)) = spec.inputs.first() else { return None };
        let to = spec.outputs.first()?.clone();
        let scalar = self.p.scalar_of(t);
        let name = self.names.fresh("w");
        let size = |t| ops::whole(self.p, t).map(|l| l.size());
        let mut body = vec![
            allocate(self.p, t, &name, scalar, Memory::Sh)?,
            moved(spec, from.clone(), View::of(&name)),
        ];
        if size(t) == size(out) {
            body.push(moved(spec, View::of(&name), to));
        } else {
            let own = self.names.fresh("r");
            body.push(allocate(self.p, t, &own, scalar, Memory::Rf)?);
            body.push(moved(spec, View::of(&name), View::of(&own)));
            body.push(moved(spec, View::of(&own), to));
        }
        Some(body)
    }

    /// A Move that repeats its input: into registers, from there to registers of the output's
    /// shape, and on.
    fn broadcast(&mut self, id: SpecId, spec: &Spec) -> Option<Vec<Stmt>> {
        let s = &self.p.specs[id];
        let (t, &out) = (s.input_tensors().next()?, s.outputs.first()?);
        let Some(Operand::View(from)) = spec.inputs.first() else { return None };
        let to = spec.outputs.first()?.clone();
        let scalar = self.p.scalar_of(t);
        let in_registers = |t: TensorId| self.p.buffer_of(t).is_per_thread();
        let mut body = vec![];
        let mut last = from.clone();
        for (t, already) in [(t, in_registers(t)), (out, in_registers(out))] {
            if already {
                continue;
            }
            let own = self.names.fresh("r");
            body.push(allocate(self.p, t, &own, scalar, Memory::Rf)?);
            body.push(moved(spec, std::mem::replace(&mut last, View::of(&own)), View::of(&own)));
        }
        body.push(moved(spec, last, to));
        Some(body)
    }

    /// A MatMul whose output is converted to the accumulator's type and back.
    fn converted(&mut self, id: SpecId, spec: &Spec) -> Option<Vec<Stmt>> {
        let s = &self.p.specs[id];
        let (&out, acc) = (s.outputs.first()?, s.acc?);
        let to = spec.outputs.first()?.clone();
        let name = self.names.fresh("acc");
        let sum = View::of(&name);
        let leaf = |kind, inputs, output, attrs| {
            build::spec(kind, spec.exec.clone(), inputs, output, attrs)
        };
        let cast = SpecKind::Unary(UnaryOp::Cast);
        Some(vec![
            allocate(self.p, out, &name, acc, Memory::Rf)?,
            leaf(cast, vec![Operand::View(to.clone())], sum.clone(), vec![]),
            leaf(SpecKind::MatMul, spec.inputs.clone(), sum.clone(), attrs(spec)),
            leaf(cast, vec![Operand::View(sum)], to, vec![]),
        ])
    }

    /// `MatMul.set` as a MatMul onto zeros, converted at the end where the accumulator has another
    /// type.
    fn onto_zero(&mut self, id: SpecId, spec: &Spec) -> Option<Vec<Stmt>> {
        let s = &self.p.specs[id];
        let &out = s.outputs.first()?;
        let to = spec.outputs.first()?.clone();
        let scalar = self.p.scalar_of(out);
        let acc = s.acc.unwrap_or(scalar);
        let in_registers = self.p.buffer_of(out).is_per_thread();
        let mut body = vec![];
        let sum = if in_registers && acc == scalar {
            to.clone()
        } else {
            let name = self.names.fresh("acc");
            body.push(allocate(self.p, out, &name, acc, Memory::Rf)?);
            View::of(&name)
        };
        let leaf = |kind, inputs, output, attrs| {
            build::spec(kind, spec.exec.clone(), inputs, output, attrs)
        };
        body.push(leaf(SpecKind::Init, vec![build::zero()], sum.clone(), vec![]));
        body.push(leaf(SpecKind::MatMul, spec.inputs.clone(), sum.clone(), attrs(spec)));
        if in_registers && acc == scalar {
            return Some(body);
        }
        let done = if acc == scalar {
            sum
        } else if in_registers {
            let cast = SpecKind::Unary(UnaryOp::Cast);
            body.push(leaf(cast, vec![Operand::View(sum)], to, vec![]));
            return Some(body);
        } else {
            let name = self.names.fresh("r");
            body.push(allocate(self.p, out, &name, scalar, Memory::Rf)?);
            let cast = SpecKind::Unary(UnaryOp::Cast);
            body.push(leaf(cast, vec![Operand::View(sum)], View::of(&name), vec![]));
            View::of(&name)
        };
        body.push(moved(spec, done, to));
        Some(body)
    }
}

/// The attributes that a spec has for the one in its body that does the work.
fn attrs(spec: &Spec) -> Vec<Attr> {
    spec.attrs.iter().filter(|attr| attr.key != Some(Key::Loc)).cloned().collect()
}

/// The same leaf, to stand in the body of the spec.
fn inner(spec: &Spec) -> Spec {
    let (body, name, span) = (None, None, Span::default());
    Spec { body, name, span, attrs: attrs(spec), ..spec.clone() }
}

/// `Allocate %name:[..].scalar.memory{?}` of the shape of `t`.
fn allocate(p: &Program, t: TensorId, name: &str, scalar: Scalar, memory: Memory) -> Option<Stmt> {
    Some(build::allocate(name, &ops::extents(p, t)?, scalar, memory))
}

/// A Move by the threads of `spec`.
fn moved(spec: &Spec, from: View, to: View) -> Stmt {
    build::spec(SpecKind::Move, spec.exec.clone(), vec![Operand::View(from)], to, vec![])
}
