//! Statements: nested specs, loops, conditions, barriers, asynchronous groups.

use super::Lowering;
use super::who::Who;
use crate::cpp::ast::{Asm, Expr, For, Stmt, StmtKind, Type};
use crate::index::Indices;
use crate::{Fallible, errors};
use carbyne_ir::ast::Unroll;
use carbyne_ir::diag::Code;
use carbyne_ir::program::{self, Operand, SpecId, ThreadsId};

/// Threads of a warp.
const WARP: i64 = 32;
/// Before a loop that the compiler must not unroll.
pub(super) const NOT_UNROLLED: &str = "pragma unroll 1";
/// Named barriers of a block besides the one of `__syncthreads` (PTX ISA, bar).
const MAX_BARRIERS: usize = 15;

impl Lowering<'_> {
    /// A block's statements. Errors are collected; what cannot be printed is left out.
    pub(super) fn stmts(&mut self, stmts: &[program::Stmt], who: &Who) -> Vec<Stmt> {
        let mut out = vec![];
        for stmt in stmts {
            if self.errors.is_full() {
                break;
            }
            match self.stmt(stmt, who) {
                Ok(lines) => out.extend(lines),
                Err(d) => self.errors.push(*errors::at(stmt.span)(d)),
            }
        }
        out
    }

    fn stmt(&mut self, stmt: &program::Stmt, who: &Who) -> Fallible<Vec<Stmt>> {
        use program::StmtKind as K;
        let line = stmt.line;
        let one = |s: StmtKind| Ok(vec![Stmt { kind: s, comment: line_comment(line, "") }]);
        match &stmt.kind {
            K::Spec(id) => self.spec(*id, who),
            K::Allocate(t) => self.allocate(*t, line),
            K::Indices(vars) => self.coordinates(vars, line),
            K::For { var, start, end, step, unroll, body } => {
                let start = self.indices.print(*start)?;
                let bound = self.indices.print(*end)?;
                // The variable also takes the first value at or after its bound.
                let after = self.p.arena.add(*end, (*step - 1).into()).map_err(errors::layout)?;
                let wide = start.wide || bound.wide || !self.indices.is_narrow(after);
                self.namer.open();
                let name = self.namer.admit(&self.p.arena.var_info(*var).name, "k");
                self.bind(*var, &name, wide);
                let body = self.stmts(body, who);
                self.namer.close();
                one(StmtKind::For(For {
                    pragma: match unroll {
                        Unroll::Default => None,
                        Unroll::Full => Some("pragma unroll"),
                        Unroll::Never => Some(NOT_UNROLLED),
                    },
                    ty: Type::named(Indices::type_of(wide)),
                    var: name.into(),
                    start: start.expr,
                    end: bound.expr,
                    step: *step,
                    body,
                }))
            }
            K::If { cond, then, otherwise } => {
                let mut all: Option<Expr> = None;
                for &(a, op, b) in cond {
                    let one = self.compare(a, op, b)?;
                    all = Some(match all {
                        Some(all) => all.binary(crate::cpp::ast::Binary::And, one),
                        None => one,
                    });
                }
                let cond = all.unwrap_or(Expr::name("true"));
                let then = self.scope(then, who);
                let otherwise = self.scope(otherwise, who);
                one(StmtKind::If { cond, then, otherwise })
            }
            K::Barrier(threads) => one(self.barrier(*threads)?),
            K::AsyncCommit => one(instruction("cp.async.commit_group;".to_owned())),
            K::AsyncWait(n) => one(instruction(format!("cp.async.wait_group {};", (*n).max(0)))),
        }
    }

    /// Statements between braces.
    fn scope(&mut self, stmts: &[program::Stmt], who: &Who) -> Vec<Stmt> {
        self.namer.open();
        let out = self.stmts(stmts, who);
        self.namer.close();
        out
    }

    /// A nested spec: a leaf, or its body below a comment that says what it computes.
    fn spec(&mut self, id: SpecId, outer: &Who) -> Fallible<Vec<Stmt>> {
        let spec = &self.p.specs[id];
        let Some(exec) = spec.exec else {
            return Err(errors::new(
                Code::NotDecomposed,
                spec.span,
                format!("this {} does not say who executes it", spec.kind),
                "write `<<<#blocks, #threads>>>` after its name",
            ));
        };
        let guard = self.guard(outer, exec).map_err(errors::at(spec.span))?;
        let who = self.who(exec);
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
        let body = self.scope(body, &who);
        let declares = body.iter().any(|s| matches!(s.kind, StmtKind::Declare(_)));
        Ok(match guard {
            Some(cond) => {
                vec![Stmt { kind: StmtKind::If { cond, then: body, otherwise: vec![] }, comment }]
            }
            None if declares => vec![Stmt { kind: StmtKind::Block(body), comment }],
            None => {
                let head = comment.map(|c| Stmt::new(StmtKind::Comment(c)));
                head.into_iter().chain(body).collect()
            }
        })
    }

    /// `Move (%A) -> (%As)`
    pub(super) fn describe(&self, id: SpecId) -> String {
        let spec = &self.p.specs[id];
        let inputs: Vec<String> = spec
            .inputs
            .iter()
            .map(|o| match o {
                Operand::Tensor(t) => self.p.tensor_name(*t),
                Operand::Number(n) => n.to_string(),
            })
            .collect();
        let outputs: Vec<String> = spec.outputs.iter().map(|t| self.p.tensor_name(*t)).collect();
        format!("{} ({}) -> ({})", spec.kind, inputs.join(", "), outputs.join(", "))
    }

    fn barrier(&mut self, threads: Option<ThreadsId>) -> Fallible<StmtKind> {
        let all = StmtKind::Expr(Expr::call("__syncthreads", []));
        let Some(id) = threads else { return Ok(all) };
        let t = &self.p.threads[id];
        let Some(set) = self.members(id) else {
            return Err(errors::unprintable("a barrier's threads must be known"));
        };
        if self.members(t.root).as_ref() == Some(&set) {
            return Ok(all);
        }
        let (Some(first), Some(last)) = (set.first(), set.last()) else { return Ok(all) };
        if first / WARP == last / WARP {
            let mask = set.iter().fold(0u32, |m, t| m | 1 << (t % WARP));
            let args = match mask {
                u32::MAX => vec![],
                m => vec![Expr::Literal(format!("{m:#010x}u"))],
            };
            return Ok(StmtKind::Expr(Expr::call("__syncwarp", args)));
        }
        let warps = set.chunks(WARP as usize);
        let whole = |w: &[i64]| w.len() == WARP as usize && w[0] % WARP == 0 && w[31] - w[0] == 31;
        if !warps.into_iter().all(whole) {
            return Err(errors::unprintable("a barrier of several warps takes whole warps"));
        }
        let n = set.len();
        let id = match self.barriers.iter().position(|b| *b == set) {
            Some(i) => i + 1,
            None => {
                self.barriers.push(set);
                self.barriers.len()
            }
        };
        if id > MAX_BARRIERS {
            return Err(errors::unprintable(format!(
                "a block has {MAX_BARRIERS} named barriers; this kernel has more sets of threads that wait"
            )));
        }
        Ok(instruction(format!("bar.sync {id}, {n};")))
    }
}

/// PTX without operands that other memory accesses must not pass.
fn instruction(text: String) -> StmtKind {
    StmtKind::Asm(Asm { text, outputs: vec![], inputs: vec![], memory: true })
}

/// `line 42: what`; nothing where the program has no text.
pub(super) fn line_comment(line: u32, what: &str) -> Option<String> {
    match (line, what) {
        (0, "") => None,
        (0, what) => Some(what.to_owned()),
        (line, "") => Some(format!("line {line}")),
        (line, what) => Some(format!("line {line}: {what}")),
    }
}
