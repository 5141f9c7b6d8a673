//! Lowers the statements of a body: nested specs with their guards, loops, and conditions. `leaf`
//! lowers specs without a body, and `sync` synchronization statements. A statement that cannot be
//! printed is an error, and the next ones are still lowered.

use super::carried::Carried;
use super::guards::Executors;
use super::state::{Lowering, WARP};
use crate::cpp::ast::{Binary, Comment, Declare, Expr, For, Stmt, StmtKind, Type};
use crate::index::Indices;
use crate::{Fallible, errors};
use carbyne_ir::ast::Unroll;
use carbyne_ir::diag::Code;
use carbyne_ir::expr::Dim;
use carbyne_ir::limits::MAX_BLOCK_THREADS;
use carbyne_ir::program::{self, Condition, Exec, Operand, SpecId, ThreadsId, sides};

/// The pragma of a loop that the compiler must not unroll.
pub(super) const NOT_UNROLLED: &str = "pragma unroll 1";

impl Lowering<'_> {
    /// Lowers a list of statements. Collects errors, and leaves out statements that cannot be
    /// printed.
    pub(super) fn stmts(&mut self, stmts: &[program::Stmt], executors: &Executors) -> Vec<Stmt> {
        let mut out = vec![];
        let declared = self.in_flight.len();
        // For each statement that binds variables: the position after it, and the quotients found
        // there.
        let mut places = vec![];
        for (n, stmt) in stmts.iter().enumerate() {
            if self.errors.is_full() {
                break;
            }
            match self.stmt(stmt, executors) {
                Ok(lines) => out.extend(lines),
                Err(d) => self.errors.push(*errors::with_span(stmt.span)(d)),
            }
            if let program::StmtKind::Indices(vars) = &stmt.kind {
                places.push((out.len(), self.fix(vars, &stmts[n + 1..])));
            }
        }
        for (at, found) in places.into_iter().rev() {
            match self.fixed(found) {
                Ok(lines) => drop(out.splice(at..at, lines)),
                Err(d) => self.errors.push(*d),
            }
        }
        self.in_flight.truncate(declared);
        out
    }

    fn stmt(&mut self, stmt: &program::Stmt, executors: &Executors) -> Fallible<Vec<Stmt>> {
        use program::StmtKind as K;
        let line = stmt.line;
        let one = |s: StmtKind| Ok(vec![commented(s, line_comment(line, ""))]);
        match &stmt.kind {
            K::Spec(id) => self.spec(*id, executors),
            K::Allocate(t) => self.allocate(*t, line),
            K::Indices(vars) => self.coordinates(vars, executors, line),
            K::Element { var, tensor } => self.number(*var, *tensor, line),
            K::Step { counter, var, value } => self.step((*counter, *var), *value, line),
            K::For { var, start, end, also, step, unroll, body, .. } => {
                let first = *start;
                let start = self.indices.print(first)?;
                let bound = self.indices.print(*end)?;
                // At the end of the loop, the variable is at or beyond its bound.
                let after = self.p.arena.add(*end, (*step - 1).into()).map_err(errors::layout)?;
                let wide = start.wide || bound.wide || !self.indices.is_narrow(after);
                let carries = *step == 1 && *unroll != Unroll::Full;
                let carried = if carries { self.carry(*var, body) } else { Carried::default() };
                let written_out = *unroll == Unroll::Full;
                if written_out {
                    self.unrolls(*var, true);
                    self.begin_bases();
                } else {
                    self.advance(*var, body);
                }
                let iterations = match (first, *end, usize::try_from(*step)) {
                    (Dim::Const(start), Dim::Const(end), Ok(step)) if written_out && step > 0 => {
                        Some((start..end).step_by(step))
                    }
                    _ => None,
                };
                self.enter(*var, (first, *step), iterations, body);
                self.namer.open();
                let name = self.namer.admit(&self.p.arena.var_info(*var).name, "k");
                self.bind(*var, &name, wide);
                let further = self.conditions(also)?;
                let stmts = body;
                let places = if written_out { vec![] } else { self.fix(&[*var], body) };
                let mut lines = self.stmts(body, executors);
                let mut body = self.fixed(places)?;
                body.append(&mut lines);
                self.namer.close();
                let mut out = self.leave();
                if !written_out && self.may_pass_by(first, *end, also, stmts) {
                    out.extend(self.fence_registers());
                }
                let (before, last) = self.carried(carried, *var, (first, *end))?;
                out.extend(before);
                body.extend(last);
                if written_out {
                    self.unrolls(*var, false);
                    out.extend(self.end_bases()?);
                } else {
                    let (before, last) = self.advanced(first, *step)?;
                    out.extend(before);
                    body.extend(last);
                }
                let kind = StmtKind::For(For {
                    pragma: match unroll {
                        Unroll::Default => None,
                        Unroll::Full => Some("pragma unroll"),
                        Unroll::Never => Some(NOT_UNROLLED),
                    },
                    ty: Type::named(Indices::type_of(wide)),
                    var: name.into(),
                    start: start.expr,
                    end: bound.expr,
                    also: further,
                    step: *step,
                    body,
                });
                out.push(commented(kind, line_comment(line, "")));
                Ok(out)
            }
            K::If { cond, then, otherwise } => {
                let parts = self.parts_warps(cond);
                let cond = self.conditions(cond)?.unwrap_or(Expr::name("true"));
                self.diverged += usize::from(parts);
                let then = self.scope(then, executors);
                let otherwise = self.scope(otherwise, executors);
                self.diverged -= usize::from(parts);
                one(StmtKind::If { cond, then, otherwise })
            }
            K::Barrier(threads) => one(self.barrier(*threads)?),
            K::Sync(sync) => self.sync(sync, executors, line),
        }
    }

    /// Whether lanes of a warp may have different sides of these comparisons.
    fn parts_warps(&self, cond: &[Condition]) -> bool {
        let warps = (0..MAX_BLOCK_THREADS).step_by(WARP as usize);
        let warps: Vec<Vec<i64>> = warps.map(|w| (w..w + WARP).collect()).collect();
        let mut dims = sides(cond).filter(|dim| self.p.thread_dependent(*dim));
        dims.any(|dim| !self.p.same_in_groups(dim, &warps))
    }

    /// `a < b && c < d`; none without conditions.
    fn conditions(&mut self, all: &[Condition]) -> Fallible<Option<Expr>> {
        let mut joined: Option<Expr> = None;
        for &(a, op, b) in all {
            let one = self.compare(a, op, b)?;
            joined = Some(match joined {
                Some(joined) => joined.binary(Binary::And, one),
                None => one,
            });
        }
        Ok(joined)
    }

    /// Whether a loop in which asynchronous atoms use registers may have no iterations. If so, the
    /// compiler would keep other values in these registers on the path around the loop, and
    /// serialize the atoms.
    fn may_pass_by(
        &self,
        start: Dim,
        end: Dim,
        also: &[Condition],
        body: &[program::Stmt],
    ) -> bool {
        let length = self.p.arena.sub(end, start);
        let is_positive = |n| self.p.arena.range(n).0.is_some_and(|least| least > 0);
        let runs = also.is_empty() && length.is_ok_and(is_positive);
        !runs && self.p.walk(body).specs().any(|id| !self.asynchronous_of(id).is_empty())
    }

    /// Statements in braces.
    fn scope(&mut self, stmts: &[program::Stmt], executors: &Executors) -> Vec<Stmt> {
        self.namer.open();
        let out = self.stmts(stmts, executors);
        self.namer.close();
        out
    }

    /// A nested spec: a leaf, or its body with a comment that describes the spec.
    fn spec(&mut self, id: SpecId, outer: &Executors) -> Fallible<Vec<Stmt>> {
        let spec = &self.p.specs[id];
        let Some(exec) = spec.exec else {
            return Err(errors::new(
                Code::NotDecomposed,
                spec.span,
                format!("this {} has no executor", spec.kind),
                "write `<<<#blocks, #threads>>>` after its name",
            ));
        };
        if let Some(groups) = self.p.threads[exec.threads].elect.filter(|_| !outer.elected()) {
            return self.elected(id, groups, outer).map_err(errors::with_span(spec.span));
        }
        let guard = match outer.elected() {
            // The enclosing spec has elected these threads already.
            true => None,
            false => self.guard(outer, exec).map_err(errors::with_span(spec.span))?,
        };
        let executors = self.executors(exec);
        let Some(body) = &spec.body else {
            let leaf = self.leaf(id)?;
            return Ok(match guard {
                Some(cond) => {
                    vec![Stmt::new(StmtKind::If { cond, then: vec![leaf], otherwise: vec![] })]
                }
                None => vec![leaf],
            });
        };
        let comment = line_comment(spec.line, &self.describe(id));
        let body = self.scope(body, &executors);
        let declares = body.iter().any(|s| matches!(s.kind, StmtKind::Declare(_)));
        Ok(match guard {
            Some(cond) => {
                vec![commented(StmtKind::If { cond, then: body, otherwise: vec![] }, comment)]
            }
            None if declares => vec![commented(StmtKind::Block(body), comment)],
            None => {
                let head = comment.map(|c| Stmt::new(StmtKind::Comment(c)));
                head.into_iter().chain(body).collect()
            }
        })
    }

    /// A spec of one elected thread of each group: the groups elect the thread, which then executes
    /// the spec alone.
    fn elected(&mut self, id: SpecId, groups: ThreadsId, outer: &Executors) -> Fallible<Vec<Stmt>> {
        let spec = &self.p.specs[id];
        let Some(exec) = spec.exec else { return Ok(vec![]) };
        let atom = self.atoms.elect(self.p, groups, spec.span)?;
        let all = Exec { threads: groups, ..exec };
        let guard = self.guard(outer, all)?;
        if !self.executors(all).fills(atom.group) {
            return Err(errors::unprintable(
                "`.elect()` needs whole warps",
                "elect a lane of a warp: `#cta.tile([32])[0].elect()`",
            ));
        }
        self.namer.open();
        let name = self.namer.admit("elected", "e");
        let lane = Expr::name(name.clone());
        let declare = StmtKind::Declare(Declare {
            align: None,
            ty: Type::named("int"),
            name: name.into(),
            array: None,
            init: None,
            droppable: false,
        });
        let given = atom.operands.iter().map(|o| (o.name, ("=r".to_owned(), lane.clone())));
        let elect = self.ptx(atom, &[], &[], given.collect(), false)?;
        let executors = self.executors(exec);
        let inside = self.spec(id, &executors);
        self.namer.close();
        let then = StmtKind::If { cond: lane, then: inside?, otherwise: vec![] };
        let body = vec![Stmt::new(declare), elect, Stmt::new(then)];
        Ok(vec![Stmt::new(match guard {
            Some(cond) => StmtKind::If { cond, then: body, otherwise: vec![] },
            None => StmtKind::Block(body),
        })])
    }

    /// `Move (%A) -> (%As)`
    pub(super) fn describe(&self, id: SpecId) -> String {
        let spec = &self.p.specs[id];
        let inputs: Vec<String> = spec
            .inputs
            .iter()
            .map(|o| match o {
                Operand::Tensor(t) => self.p.tensor_title(*t),
                Operand::Number(n) => n.to_string(),
            })
            .collect();
        let outputs: Vec<String> = spec.outputs.iter().map(|t| self.p.tensor_title(*t)).collect();
        format!("{} ({}) -> ({})", spec.kind, inputs.join(", "), outputs.join(", "))
    }
}

/// A statement with an optional comment.
fn commented(kind: StmtKind, comment: Option<Comment>) -> Stmt {
    Stmt { comment, ..Stmt::new(kind) }
}

/// A comment that names a line of the program; none if it would be empty.
pub(super) fn line_comment(line: u32, text: &str) -> Option<Comment> {
    let comment = Comment { line, text: text.to_owned() };
    (comment.line > 0 || !comment.text.is_empty()).then_some(comment)
}
