//! Writes a solution back into the module: layouts into allocations, bodies under tile operations,
//! barriers before them, atoms on leaves.
//!
//! Specs and buffers are found by counting, in the order in which resolving counts them.

use crate::names::Names;
use crate::solve::Solution;
use crate::solve::barriers::Sync;
use crate::solve::copy::Candidate;
use crate::solve::tv::Gemm;
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::*;
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{BufferId, SpecId};
use carbyne_ir::span::Span;
use std::collections::BTreeMap;

/// What is written into the module.
pub struct Emit<'a> {
    /// Solutions of all kernels, merged.
    pub solution: &'a Solution,
    /// Atoms of leaves that were matched as they stand.
    pub atoms: &'a BTreeMap<SpecId, String>,
    /// The rows.
    pub table: &'a AtomTable,
    /// Names for what bodies define; sibling bodies share them.
    local: Local,
    specs: usize,
    buffers: usize,
    depth: usize,
}

impl<'a> Emit<'a> {
    /// An emitter for a module with these names.
    pub fn new(
        solution: &'a Solution,
        atoms: &'a BTreeMap<SpecId, String>,
        table: &'a AtomTable,
        mut names: Names,
    ) -> Self {
        let mut fresh = |n: &str| names.fresh(n);
        let local = Local {
            threads: fresh("t"),
            part: fresh("part"),
            source: fresh("s"),
            target: fresh("d"),
            factors: [fresh("a"), fresh("b"), fresh("c")],
            loops: [fresh("i"), fresh("j"), fresh("kk")],
        };
        Emit { solution, atoms, table, specs: 0, buffers: 0, depth: 0, local }
    }

    /// The module with the solution written in.
    pub fn module(mut self, mut module: Module) -> Module {
        module.items = self.stmts(module.items);
        module
    }

    fn stmts(&mut self, stmts: Vec<Stmt>) -> Vec<Stmt> {
        let mut out = vec![];
        for mut stmt in stmts {
            // The place of a statement is its first spec, which is counted next.
            let place = (SpecId::from(self.specs), self.depth);
            let holds_specs =
                matches!(stmt.kind, StmtKind::Spec(_) | StmtKind::For { .. } | StmtKind::If { .. });
            if let Some(sync) = self.solution.before.get(&place).filter(|_| holds_specs) {
                self.sync(*sync, &mut stmt, &mut out);
            }
            self.depth += 1;
            self.stmt(&mut stmt);
            self.depth -= 1;
            out.push(stmt);
        }
        out
    }

    fn stmt(&mut self, stmt: &mut Stmt) {
        match &mut stmt.kind {
            StmtKind::DataDecl { .. } => self.buffers += 1,
            StmtKind::Allocate { ty, .. } => {
                let id = BufferId::from(self.buffers);
                self.buffers += 1;
                self.allocation(id, ty);
            }
            StmtKind::For { body, .. } => body.stmts = self.stmts(std::mem::take(&mut body.stmts)),
            StmtKind::If { then, otherwise, .. } => {
                then.stmts = self.stmts(std::mem::take(&mut then.stmts));
                if let Some(o) = otherwise {
                    o.stmts = self.stmts(std::mem::take(&mut o.stmts));
                }
            }
            StmtKind::Spec(spec) => {
                let id = SpecId::from(self.specs);
                self.specs += 1;
                if let Some(body) = &mut spec.body {
                    body.stmts = self.stmts(std::mem::take(&mut body.stmts));
                }
                self.leaf(id, spec);
            }
            _ => {}
        }
    }

    /// Comments and the blank line above stay above what is put before the statement.
    fn sync(&self, sync: Sync, stmt: &mut Stmt, out: &mut Vec<Stmt>) {
        let kinds = match sync {
            Sync::WaitAndBarrier => {
                vec![
                    StmtKind::Sync { op: SyncOp::AsyncCommit, args: vec![] },
                    StmtKind::Sync {
                        op: SyncOp::AsyncWait,
                        args: vec![SyncArg::Number(Expr::int(0))],
                    },
                    StmtKind::Barrier(None),
                ]
            }
            Sync::Barrier => vec![StmtKind::Barrier(None)],
        };
        for kind in kinds {
            let mut s = Stmt::new(kind);
            s.blank_above = std::mem::take(&mut stmt.blank_above);
            out.push(s);
        }
    }

    fn allocation(&self, id: BufferId, ty: &mut TensorType) {
        if let Some((layout, swizzle)) = self.solution.shared.get(&id) {
            ty.attrs.retain(|a| *a != TypeAttr::Open);
            if let Some(level) = ty.levels.first_mut() {
                level.modes = layout.shape().modes().iter().map(TupleExpr::constant).collect();
                level.strides =
                    Some(layout.stride().modes().iter().map(TupleExpr::constant).collect());
            }
            if let Some(s) = swizzle {
                ty.attrs.push(TypeAttr::Swizzle(s.bits(), s.base(), s.shift().unsigned_abs()));
            }
        }
        if let Some((tv, threads)) = self.solution.tv.get(&id) {
            ty.attrs.retain(|a| *a != TypeAttr::Open);
            ty.attrs.push(TypeAttr::Tv(layout_expr(tv), Name::new(threads.clone())));
        }
    }

    fn leaf(&mut self, id: SpecId, spec: &mut Spec) {
        if let Some(atom) = self.atoms.get(&id) {
            spec.attrs.push(word("atom", atom));
        }
        if let Some(c) = self.solution.copies.get(&id).cloned() {
            spec.body = Some(self.copy_body(spec, &c));
        } else if let Some((atom, gemm)) = self.solution.matmuls.get(&id).copied() {
            spec.body = Some(self.matmul_body(spec, atom, &gemm));
            spec.attrs.retain(|a| a.key.text != "warps" && a.key.text != "tile");
        } else if let Some(atom) = self.solution.inits.get(&id).copied() {
            spec.body = Some(self.init_body(spec, atom.0, atom.1));
        }
    }

    /// The thread tensor of the spec by name, defined in the body where it is a view.
    fn threads(&mut self, spec: &Spec, body: &mut Vec<Stmt>) -> (View, String) {
        let Some((blocks, threads)) = &spec.exec else { return (View::of("grid"), "cta".into()) };
        if threads.ops.is_empty() {
            return (blocks.clone(), threads.base.text.clone());
        }
        let name = self.local.threads.clone();
        body.push(thread_def(&name, threads.clone()));
        (blocks.clone(), name)
    }

    fn copy_body(&mut self, spec: &Spec, c: &Candidate) -> Block {
        let mut body = vec![];
        let (blocks, all) = self.threads(spec, &mut body);
        let mut name = all;
        if c.threads != c.block {
            let part = self.local.part.clone();
            let view = View::of(name)
                .then(ViewOp::Tile(Tiler::Sizes(vec![Some(Expr::int(c.threads))])))
                .then(ViewOp::Index(vec![Some(Expr::int(0))]));
            body.push(thread_def(&part, view));
            name = part;
        }
        let r = c.f.mode(1).and_then(|v| v.mode(1)).map_or(1, |r| r.size());
        let Some(Operand::View(src)) = spec.inputs.first() else { return Block::default() };
        let Some(dst) = spec.outputs.first() else { return Block::default() };
        let (in_s, in_d) = (self.local.source.clone(), self.local.target.clone());
        let s = self.side(src, &c.f, &name, c.src_rf, &[c.n, r]);
        let d = self.side(dst, &c.g, &name, c.dst_rf, &[c.n, r]);
        body.push(data_def(&in_s, s));
        body.push(data_def(&in_d, d));
        let exec = (blocks, self.group(&name, c.group));
        let mut nest = Nest::default();
        let i = nest.var(&self.local.loops[0], r);
        let kind = spec.kind;
        let at = |t: &str| View::of(t).then(ViewOp::Index(vec![None, Some(i.clone())]));
        let leaf = Spec {
            kind,
            name: None,
            exec: Some(exec),
            inputs: vec![Operand::View(at(&in_s))],
            outputs: vec![at(&in_d)],
            attrs: vec![word("atom", c.atom)],
            body: None,
            span: Span::default(),
        };
        body.extend(nest.around(leaf));
        Block { stmts: body, footer: vec![] }
    }

    /// One thread's values of an operand, as (values of an instruction, instructions).
    fn side(
        &self,
        view: &View,
        tv: &Layout,
        threads: &str,
        registers: bool,
        shape: &[i64],
    ) -> View {
        if registers {
            return view.clone().then(ViewOp::Mine).then(compact(shape));
        }
        view.clone().then(ViewOp::Tv(layout_expr(tv), Name::new(threads)))
    }

    /// `#t.scalar()`, or `#t` in groups of so many.
    fn group(&self, threads: &str, group: i64) -> View {
        let view = View::of(threads);
        if group == 1 {
            return view.then(ViewOp::Scalar);
        }
        view.then(ViewOp::Tile(Tiler::Sizes(vec![Some(Expr::int(group))])))
    }

    fn matmul_body(&mut self, spec: &Spec, atom: &str, gemm: &Gemm) -> Block {
        let mut body = vec![];
        let (blocks, all) = self.threads(spec, &mut body);
        let Some(row) = self.table.get(atom) else { return Block::default() };
        let (rm, rn, rk) = gemm.rest().unwrap_or((1, 1, 1));
        let n: Vec<i64> = row.operands.iter().map(|o| o.n_values()).collect();
        let [Operand::View(a), Operand::View(b)] = &spec.inputs[..] else {
            return Block::default();
        };
        let Some(c) = spec.outputs.first() else { return Block::default() };
        let names = self.local.factors.clone();
        let shapes = [[n[0], rm, rk], [n[1], rn, rk], [n[2], rm, rn]];
        for ((name, view), shape) in names.iter().zip([a, b, c]).zip(&shapes) {
            let real: Vec<i64> = shape
                .iter()
                .enumerate()
                .filter(|(i, n)| *i == 0 || **n > 1)
                .map(|(_, n)| *n)
                .collect();
            body.push(data_def(name, view.clone().then(ViewOp::Mine).then(compact(&real))));
        }
        let exec = (blocks, self.group(&all, row.group));
        let mut nest = Nest::default();
        let k = nest.var(&self.local.loops[2], rk);
        let i = nest.var(&self.local.loops[0], rm);
        let j = nest.var(&self.local.loops[1], rn);
        let at = |t: usize, x: &Expr, y: &Expr| {
            let mut index = vec![None];
            for (e, n) in [x, y].into_iter().zip(&shapes[t][1..]) {
                index.extend((*n > 1).then(|| Some(e.clone())));
            }
            View::of(&names[t]).then(ViewOp::Index(index))
        };
        let mut attrs: Vec<Attr> =
            spec.attrs.iter().filter(|a| a.key.text == "acc").cloned().collect();
        attrs.push(word("atom", atom));
        let leaf = Spec {
            kind: spec.kind,
            name: None,
            exec: Some(exec),
            inputs: vec![Operand::View(at(0, &i, &k)), Operand::View(at(1, &j, &k))],
            outputs: vec![at(2, &i, &j)],
            attrs,
            body: None,
            span: Span::default(),
        };
        body.extend(nest.around(leaf));
        Block { stmts: body, footer: vec![] }
    }

    fn init_body(&mut self, spec: &Spec, atom: &str, n: i64) -> Block {
        let mut body = vec![];
        let (blocks, all) = self.threads(spec, &mut body);
        let Some(dst) = spec.outputs.first() else { return Block::default() };
        let name = self.local.target.clone();
        body.push(data_def(&name, dst.clone().then(ViewOp::Mine).then(compact(&[n]))));
        let exec = (blocks, self.group(&all, 1));
        let mut nest = Nest::default();
        let i = nest.var(&self.local.loops[0], n);
        let leaf = Spec {
            kind: spec.kind,
            name: None,
            exec: Some(exec),
            inputs: spec.inputs.clone(),
            outputs: vec![View::of(name).then(ViewOp::Index(vec![Some(i)]))],
            attrs: vec![word("atom", atom)],
            body: None,
            span: Span::default(),
        };
        body.extend(nest.around(leaf));
        Block { stmts: body, footer: vec![] }
    }
}

/// Names that bodies define.
struct Local {
    threads: String,
    part: String,
    source: String,
    target: String,
    factors: [String; 3],
    loops: [String; 3],
}

/// Loops around a leaf; none for a count of 1.
#[derive(Default)]
struct Nest {
    loops: Vec<(String, i64)>,
}

impl Nest {
    /// A loop variable below `n`, or zero.
    fn var(&mut self, name: &str, n: i64) -> Expr {
        if n == 1 {
            return Expr::int(0);
        }
        self.loops.push((name.to_owned(), n));
        Expr::name(name)
    }

    fn around(self, leaf: Spec) -> Vec<Stmt> {
        let mut stmts = vec![Stmt::new(StmtKind::Spec(leaf))];
        for (var, n) in self.loops.into_iter().rev() {
            stmts = vec![Stmt::new(StmtKind::For {
                var: Name::new(var),
                start: Expr::int(0),
                end: Expr::int(n),
                step: Expr::int(1),
                unroll: Unroll::Full,
                body: Block { stmts, footer: vec![] },
            })];
        }
        stmts
    }
}

fn word(key: &str, value: &str) -> Attr {
    Attr { key: Name::new(key), value: AttrValue::Word(value.to_owned()) }
}

fn data_def(name: &str, view: View) -> Stmt {
    Stmt::new(StmtKind::DataDef { name: Name::new(name), ty: None, view })
}

fn thread_def(name: &str, view: View) -> Stmt {
    Stmt::new(StmtKind::ThreadDef { name: Name::new(name), ty: None, view })
}

/// `.reshape(shape : compact column-major strides)`
fn compact(shape: &[i64]) -> ViewOp {
    let mut next = 1;
    let leaf = |v: i64| TupleExpr::Leaf(Expr::int(v));
    let strides = shape
        .iter()
        .map(|n| {
            let s = next;
            next *= n;
            leaf(s)
        })
        .collect();
    ViewOp::Reshape(LayoutExpr {
        shape: TupleExpr::Tuple(shape.iter().map(|n| leaf(*n)).collect()),
        stride: TupleExpr::Tuple(strides),
        span: Span::default(),
    })
}

/// A layout as written.
pub fn layout_expr(l: &Layout) -> LayoutExpr {
    LayoutExpr {
        shape: TupleExpr::constant(&l.shape()),
        stride: TupleExpr::constant(&l.stride()),
        span: Span::default(),
    }
}
