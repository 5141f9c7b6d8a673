//! Computes addresses in global memory by pointers that are set before loops.
//!
//! An asynchronous copy in a loop over `k` has a source address that is often the sum of values
//! known before the loop, a multiple of `k`, and terms of unrolled loops inside. The first two
//! become a pointer that is set before the loop and advanced at its end. The rest are constants of
//! the unrolled loops. This takes at most one addition per address instead of several.
//!
//! Other accesses in unrolled loops get a pointer that is set before the loops, if a stride is
//! known only at run time. Otherwise the compiler would compute the address again at each access.

use super::access::Values;
use super::helper::Helper;
use super::state::Stored;
use super::state::{Advance, Bases, Lowering, Pointer};
use crate::Fallible;
use crate::cpp::ast::{Assign, Expr, Stmt, StmtKind, Type};
use crate::errors;
use carbyne_ir::expr::{Dim, ExprId, Node, VarId};
use carbyne_ir::program::{self, Operand};
use std::collections::HashSet;

impl Lowering<'_> {
    /// Begins a loop that is not unrolled, in the scope around it.
    pub(super) fn advance(&mut self, var: VarId, body: &[program::Stmt]) {
        let mut pointers: Vec<Pointer> = vec![];
        for id in self.p.walk(body).specs() {
            let spec = &self.p.specs[id];
            let atom = spec.atom.as_deref().and_then(|name| self.atoms.get(name));
            if !atom.is_some_and(|a| a.visibility.is_async_copy()) {
                continue;
            }
            for input in &spec.inputs {
                let Operand::Tensor(t) = input else { continue };
                let Some(array) = self.buffers.get(&self.p.tensors[*t].buffer) else { continue };
                let new = pointers.iter().all(|p| p.array != array.name);
                if array.memory.is_global() && array.gather.is_none() && new {
                    let array = array.name.clone();
                    let name = self.namer.admit(&format!("{array}_next"), "p");
                    pointers.push(Pointer { array, name, used: None });
                }
            }
        }
        let known = self.indices.bound();
        self.advances.push(Advance { var, known, unrolled: HashSet::new(), pointers });
    }

    /// Ends the loop. Returns the statements before the loop, and those at the end of its body.
    pub(super) fn advanced(&mut self, start: Dim, step: i64) -> Fallible<(Vec<Stmt>, Vec<Stmt>)> {
        let (mut before, mut after) = (vec![], vec![]);
        let Some(of) = self.advances.pop() else { return Ok((before, after)) };
        for pointer in of.pointers {
            let Some((ty, base, grows)) = pointer.used else { continue };
            let at = |v: VarId| (v == of.var).then_some(start);
            let first = self.p.arena.substitute(base, &at).map_err(errors::layout)?;
            let array = Expr::name(pointer.array);
            let init = match self.index(first)? {
                Expr::Int(0) => array,
                i => array.at(i).address(),
            };
            before.push(Stmt::variable(ty, pointer.name.clone(), init));
            let by = grows.checked_mul(step).ok_or_else(|| {
                errors::unprintable(
                    "a pointer advances by an amount beyond 64 bits".to_owned(),
                    "make the step of the loop smaller",
                )
            })?;
            let to = Expr::name(pointer.name);
            after.push(Stmt::new(StmtKind::Assign { to, op: Assign::Add, value: Expr::Int(by) }));
        }
        Ok((before, after))
    }

    /// Begins an unrolled loop, in the scope around it.
    pub(super) fn begin_bases(&mut self) {
        if self.bases.depth == 0 {
            self.bases = Bases { known: self.indices.bound(), ..Bases::default() };
        }
        self.bases.depth += 1;
    }

    /// Ends the unrolled loop. Returns the statements before it.
    pub(super) fn end_bases(&mut self) -> Fallible<Vec<Stmt>> {
        self.bases.depth = self.bases.depth.saturating_sub(1);
        if self.bases.depth > 0 {
            return Ok(vec![]);
        }
        let pointers = std::mem::take(&mut self.bases).pointers;
        let declared = pointers.into_iter().map(|(array, ty, base, name)| {
            self.helpers.insert(Helper::Computed);
            let init = Expr::name(array).at(self.index(base)?).address();
            Ok(Stmt::variable(ty, name, Expr::call("computed", [init])))
        });
        declared.collect()
    }

    /// An element of an array in global memory, relative to a pointer that is set before the
    /// unrolled loops. None if all strides are constant or if the loops add nothing to the index.
    pub(super) fn behind_base(&mut self, s: &Stored, index: Dim) -> Fallible<Option<Expr>> {
        let Dim::Expr(id) = index else { return Ok(None) };
        let Node::Linear { terms, .. } = self.p.arena.node(id) else { return Ok(None) };
        if self.bases.depth == 0 {
            return Ok(None);
        }
        let (mut base, mut strided) = (Dim::Const(0), false);
        for &(term, factor) in terms.iter() {
            if self.p.vars_in(Dim::Expr(term)).iter().all(|v| self.bases.known.contains(v)) {
                let own = self.p.arena.mul(Dim::Expr(term), Dim::Const(factor));
                let sum = own.and_then(|own| self.p.arena.add(base, own));
                base = sum.map_err(errors::layout)?;
                strided |= matches!(self.p.arena.node(term), Node::Mul(..));
            }
        }
        let rest = self.p.arena.sub(index, base).map_err(errors::layout)?;
        if !strided || rest.as_const().is_some() {
            return Ok(None);
        }
        let ty = Type::pointer(s.storage.cxx, s.is_const);
        let found =
            self.bases.pointers.iter().find(|(array, _, at, _)| *array == s.name && *at == base);
        let name = match found {
            Some((.., name)) => name.clone(),
            None => {
                let name = self.namer.admit(&format!("{}_at", s.name), "p");
                self.namer.lift(&name, 1);
                self.bases.pointers.push((s.name.clone(), ty, base, name.clone()));
                name
            }
        };
        Ok(Some(Expr::name(name).at(self.index(rest)?)))
    }

    /// Begins or ends an unrolled loop.
    pub(super) fn unrolls(&mut self, var: VarId, begins: bool) {
        if let Some(of) = self.advances.last_mut() {
            if begins {
                of.unrolled.insert(var);
            } else {
                of.unrolled.remove(&var);
            }
        }
    }

    /// Splits an index into the terms of unrolled loops and the rest; none if there are no such
    /// terms.
    pub(super) fn written_out(&self, index: Dim) -> Option<(Dim, Dim)> {
        let of = self.advances.last()?;
        let Dim::Expr(id) = index else { return None };
        let terms = match self.p.arena.node(id) {
            Node::Linear { terms, .. } => terms.to_vec(),
            _ => vec![(id, 1)],
        };
        let mut part = Dim::Const(0);
        for (term, factor) in terms {
            let vars = self.p.vars_in(Dim::Expr(term));
            if !vars.is_empty() && vars.iter().all(|v| of.unrolled.contains(v)) {
                let own = self.p.arena.mul(Dim::Expr(term), Dim::Const(factor)).ok()?;
                part = self.p.arena.add(part, own).ok()?;
            }
        }
        let rest = self.p.arena.sub(index, part).ok()?;
        (part != Dim::Const(0)).then_some((part, rest))
    }

    /// The address of values in global memory, relative to a pointer that the enclosing loop
    /// advances, if possible.
    pub(super) fn by_pointer(&mut self, v: &Values) -> Fallible<Option<Expr>> {
        let Some(&offset) = v.at.first() else { return Ok(None) };
        let s = &v.stored;
        if !s.memory.is_global() || s.gather.is_some() || !s.swizzle.is_none() {
            return Ok(None);
        }
        let packed = Dim::Const(s.storage.packed);
        let arena = &self.p.arena;
        if !arena.rem(offset, packed).is_ok_and(|r| r == Dim::Const(0)) {
            return Ok(None);
        }
        let index = arena.div(offset, packed).map_err(errors::layout)?;
        let ty = Type::pointer(s.storage.cxx, s.is_const);
        let Some(of) = self.advances.last() else { return Ok(None) };
        let Some((base, grows)) = of.moves(self.p, index) else { return Ok(None) };
        let Some(n) = of.pointers.iter().position(|p| p.array == s.name) else { return Ok(None) };
        let (name, first) = match &of.pointers[n].used {
            Some((_, first, _)) => {
                // The two indices may differ by a constant.
                let apart = arena.sub(base, *first).map_err(errors::layout)?;
                if apart.as_const().is_none() {
                    return Ok(None);
                }
                (of.pointers[n].name.clone(), *first)
            }
            None => (of.pointers[n].name.clone(), base),
        };
        let rest = arena.sub(index, first).map_err(errors::layout)?;
        if let Some(of) = self.advances.last_mut() {
            of.pointers[n].used.get_or_insert((ty, first, grows));
        }
        let pointer = Expr::name(name);
        Ok(Some(match self.index(rest)? {
            Expr::Int(0) => pointer,
            i => pointer.at(i).address(),
        }))
    }
}

impl Advance {
    /// The part of an index that is known before the loop or grows with its variable, and the
    /// growth. None if the index has any other terms than those of unrolled loops.
    fn moves(&self, p: &program::Program, index: Dim) -> Option<(Dim, i64)> {
        let Dim::Expr(id) = index else { return None };
        let Node::Linear { terms, constant } = p.arena.node(id) else { return None };
        let is_var = |t: ExprId| matches!(p.arena.node(t), Node::Var(v) if v == self.var);
        let (mut base, mut grows) = (Dim::Const(constant), None);
        for &(term, factor) in terms.iter() {
            let vars = p.vars_in(Dim::Expr(term));
            if is_var(term) {
                grows = Some(factor);
            } else if vars.contains(&self.var) {
                return None;
            } else if !vars.iter().all(|v| self.known.contains(v)) {
                let inner = |v: &VarId| self.known.contains(v) || self.unrolled.contains(v);
                if !vars.iter().all(inner) {
                    return None;
                }
                continue;
            }
            let own = p.arena.mul(Dim::Expr(term), Dim::Const(factor)).ok()?;
            base = p.arena.add(base, own).ok()?;
        }
        Some((base, grows?))
    }
}
