//! Prints offsets of accesses, coordinates (`@t = #cta.indices()`), counters, integers read from
//! tensors, and conditions as C++.
//!
//! `threadIdx.x` is unsigned in C++, so `threadIdx.x - 5` would wrap. Most expressions use a signed
//! copy, `tid`. Only definitions of coordinates and conditions use CUDA's variable, as people write
//! it, if no part of them can be negative.
//!
//! It also finds the coordinates that have one value in each warp, and prints them so that the
//! compiler knows it (`__shfl_sync`).

use super::guards::Executors;
use super::state::{Lowering, WARP};
use crate::Fallible;
use crate::cpp::ast::{self, Assign, Binary, Expr, Stmt, Type};
use crate::errors;
use crate::index::{Indices, Printed};
use carbyne_ir::ast::CmpOp;
use carbyne_ir::expr::{Dim, Node, VarId};
use carbyne_ir::program::{SpecId, StmtKind, TensorId, VarKind};
use std::collections::HashSet;

impl Lowering<'_> {
    /// The expression with signed variables only.
    pub(super) fn index(&mut self, dim: Dim) -> Fallible<Expr> {
        self.indices.print(dim).map(|p| p.expr)
    }

    /// The coordinates that select a factor of an asynchronous MatMul (`wgmma`) or an mbarrier
    /// beside it, and that have one value in each warp, as the number of a warp group has. A
    /// compiler keeps the descriptor and its offsets in uniform registers if it knows this, and
    /// otherwise moves them there before each instruction.
    pub(super) fn uniform_in_warps(&self, leaves: &[SpecId], kernel: SpecId) -> HashSet<VarId> {
        let p = self.p;
        if self.asynchronous.is_empty() {
            return HashSet::new();
        }
        let products = leaves.iter().filter(|leaf| !self.asynchronous_of(**leaf).is_empty());
        let factors = products.flat_map(|leaf| p.specs[*leaf].input_tensors());
        let barriers = p.walk_body(kernel).stmts().filter_map(|s| match &s.kind {
            StmtKind::Sync(sync) => sync.tensor,
            _ => None,
        });
        let offsets = factors.chain(barriers).map(|t| p.tensors[t].offset);
        let vars: HashSet<VarId> = offsets.flat_map(|dim| p.vars_in(dim)).collect();
        let threads = p.specs[kernel].exec.and_then(|exec| self.members(exec.threads));
        let n = threads.map_or(0, |all| all.len());
        let is_uniform = |var: &VarId| match p.vars.get(var) {
            Some(VarKind::Index(definition)) => {
                let values = p.by_threads(*definition, n as i64);
                values.is_some_and(|all| {
                    let mut warps = all.chunks(WARP as usize);
                    let is_whole = |warp: &[i64]| warp.len() as i64 == WARP;
                    warps.all(|warp| is_whole(warp) && warp.iter().all(|v| *v == warp[0]))
                })
            }
            _ => false,
        };
        vars.into_iter().filter(is_uniform).collect()
    }

    /// `const int tid_m = threadIdx.x % 16;` for each variable.
    pub(super) fn coordinates(
        &mut self,
        vars: &[VarId],
        executors: &Executors,
        line: u32,
    ) -> Fallible<Vec<Stmt>> {
        let mut stmts = vec![];
        for &var in vars {
            let Some(VarKind::Index(definition)) = self.p.vars.get(&var) else {
                return Err(errors::unprintable(
                    "a coordinate has no definition",
                    "bind the coordinate: `@i = #grid.indices()`",
                ));
            };
            let value = self.natural(*definition)?;
            let name = self.namer.admit(&self.p.arena.var_info(var).name, "i");
            self.bind(var, &name, value.wide);
            // All lanes of the warp must be there; in a loop, each iteration would exchange it.
            let is_once = self.outers.is_empty() && self.diverged == 0;
            let whole = is_once && executors.fills(WARP);
            let expr = match whole && !value.wide && self.uniform.contains(&var) {
                true => {
                    let all = Expr::Literal("0xffffffffu".to_owned());
                    Expr::call("__shfl_sync", [all, value.expr, Expr::Int(0)])
                }
                false => value.expr,
            };
            let mut stmt = Stmt::constant(Indices::type_of(value.wide), name, expr);
            stmt.comment = super::stmts::line_comment(line, "");
            stmts.push(stmt);
        }
        Ok(stmts)
    }

    /// `const int n = sizes[g];`
    pub(super) fn number(
        &mut self,
        var: VarId,
        tensor: TensorId,
        line: u32,
    ) -> Fallible<Vec<Stmt>> {
        let (stored, _) = self.storage_of(tensor)?;
        let value = self.element(&stored, self.p.tensors[tensor].offset)?;
        let number = self.p.arena.dim_of(var);
        let wide = number.is_none_or(|number| !self.indices.is_narrow(number));
        let name = self.namer.admit(&self.p.arena.var_info(var).name, "n");
        self.bind(var, &name, wide);
        let mut stmt = Stmt::constant(Indices::type_of(wide), name, value);
        stmt.comment = super::stmts::line_comment(line, "");
        Ok(vec![stmt])
    }

    /// Gives a variable of the program a name.
    pub(super) fn bind(&mut self, var: VarId, name: &str, wide: bool) {
        self.indices.bind(var, name.to_owned(), wide);
        self.definitions.bind(var, name.to_owned(), wide);
    }

    /// `int q = 0;` or `q = q + 1;`: the declaration or a step of a counter.
    pub(super) fn step(
        &mut self,
        (counter, var): (VarId, VarId),
        value: Dim,
        line: u32,
    ) -> Fallible<Vec<Stmt>> {
        let printed = self.indices.print(value)?;
        let mut value = printed.expr;
        if printed.wide {
            value = Expr::Cast(Type::named("int"), Box::new(value));
        }
        let comment = super::stmts::line_comment(line, "");
        if counter != var {
            let to = self.indices.counter(counter);
            let to = to.ok_or_else(|| errors::undeclared("a counter"))?;
            let kind = ast::StmtKind::Assign { to, op: Assign::Set, value };
            return Ok(vec![Stmt { comment, ..Stmt::new(kind) }]);
        }
        let name = self.namer.admit(&self.p.arena.var_info(var).name, "n");
        let is_own = |(_, kind): &(&VarId, &VarKind)| **kind == VarKind::Counter(counter);
        for (var, _) in self.p.vars.iter().filter(is_own) {
            self.indices.bind_counter(*var, name.clone());
            self.definitions.bind_counter(*var, name.clone());
        }
        let stmt = Stmt::variable(Type::named("int"), name, value);
        Ok(vec![Stmt { comment, ..stmt }])
    }

    /// `a < b`
    pub(super) fn compare(&mut self, a: Dim, op: CmpOp, b: Dim) -> Fallible<Expr> {
        let op = match op {
            CmpOp::Lt => Binary::Lt,
            CmpOp::Le => Binary::Le,
            CmpOp::Eq => Binary::Eq,
            CmpOp::Ne => Binary::Ne,
            CmpOp::Ge => Binary::Ge,
            CmpOp::Gt => Binary::Gt,
        };
        let (a, b) = if self.only_grows(a) && self.only_grows(b) {
            (self.definitions.print(a)?, self.definitions.print(b)?)
        } else {
            (self.indices.print(a)?, self.indices.print(b)?)
        };
        Ok(a.expr.binary(op, b.expr))
    }

    /// The expression with CUDA's own variables if they cannot wrap.
    fn natural(&mut self, dim: Dim) -> Fallible<Printed> {
        if self.only_grows(dim) { self.definitions.print(dim) } else { self.indices.print(dim) }
    }

    /// Whether no intermediate result can be negative.
    fn only_grows(&self, dim: Dim) -> bool {
        let id = match dim {
            Dim::Const(v) => return v >= 0,
            Dim::Expr(id) => id,
        };
        if self.p.arena.range(dim).0.is_none_or(|lo| lo < 0) {
            return false;
        }
        match self.p.arena.node(id) {
            Node::Var(_) => true,
            Node::Linear { terms, constant } => {
                constant >= 0 && terms.iter().all(|&(t, c)| c > 0 && self.only_grows(Dim::Expr(t)))
            }
            Node::Mul(a, b) | Node::Div(a, b) | Node::Mod(a, b) => {
                self.only_grows(a) && self.only_grows(b)
            }
            // `min` of an unsigned and a signed argument is ambiguous; `ceil_div` subtracts.
            Node::CeilDiv(..) | Node::Min(..) | Node::Max(..) => false,
        }
    }
}
