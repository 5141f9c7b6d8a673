//! Checks that a program is well formed. Collects all errors, up to [`crate::limits::MAX_ERRORS`];
//! never panics on a resolved program.
//!
//! - V0206 operands lie in memories that their spec can use.
//! - V0207 scalar types fit the spec.
//! - V0208 shapes fit the spec: MatMul A\[m,k\], B\[k,n\], C\[m,n\], optional batch first; the
//!   others mode by mode, where an input of a Move or a BinaryPointwise of the same rank may have
//!   extent 1 for all. Extents over symbols fit whatever values the symbols have.
//! - V0209 a written tensor in GL or SH maps no two coordinates to one element, whatever values the
//!   symbols have.
//! - V0210 registers are compact: every register of a buffer is used once.
//! - V0213 a nested spec runs on its kernel's blocks, and on threads of the enclosing spec.
//! - V0214 thread tensors hold distinct threads, and coordinates can be computed from the index.
//! - V0215 a thread-value layout covers its tensor exactly; replicated values have stride 0.
//! - V0217 the number of operands fits the spec.
//! - V0218 attributes have values that the spec can use, and that its body does not contradict.
//! - V0220 barriers stand where the whole block, all named threads, or all of each thread's own
//!   group pass.
//! - V0222 pinned allocations do not overlap unless one reuses the other.
//! - V0224 an alignment covers the period of its swizzle.
//! - V0227 a body writes only the outputs of its spec and what it allocates, and reads only its
//!   operands and what it allocates.
//! - V0228 a synchronization statement names as many mbarriers as it takes.
//! - V0229 mbarriers lie in SH and are touched by synchronization statements alone.
//! - V0230 boxes of a tensor map are operands of leaves that copy.
//! - V0231 views of other blocks' shared memory name a block of the cluster, and are used by
//!   leaves.
//! - V0242 a swizzle moves whole elements, and none out of its buffer.
//!
//! Names, ranks, tiles, index ranges and written types (V0201 to V0205, V0211, V0212, V0216, V0219,
//! V0221, V0223) are checked where views are inferred, and `means` blocks (V0232) where they are
//! resolved, in [`crate::resolve`].
//! Not checked here: whether an atom exists (`decompose`), races between threads and whether a body
//! computes what its spec means (`simulate`).

mod attributes;
mod cluster;
mod diverged;
mod exchange;
mod extents;
mod injective;
mod operands;
mod places;
mod state;
mod storage;
mod sync;
mod who;

pub(crate) use operands::{NAN_OF_FLOATS, no_literal};

use crate::ast::CmpOp;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::expr::Dim;
use crate::program::{BufferId, Program, SpecId, Stmt, StmtKind};
use crate::span::Span;
use state::{Around, Asked, Parting, Questions, Verifier};
use std::collections::HashSet;

/// Every violation of the invariants above, in text order; empty for a well-formed program.
#[must_use]
pub fn verify(program: &Program) -> Diagnostics {
    let (errors, questions) = (Diagnostics::default(), Questions::default());
    let mut v = Verifier { p: program, errors, tiles: None, questions };
    v.thread_tensors();
    v.storage();
    for &kernel in &program.kernels {
        v.kernel(kernel);
    }
    v.errors
}

impl Verifier<'_> {
    fn error(&mut self, code: Code, span: Span, message: impl Into<String>, help: &str) {
        self.errors.push(Diagnostic::new(code, span, message).help(help));
    }

    fn kernel(&mut self, id: SpecId) {
        let before = self.errors.len();
        self.kernel_itself(id);
        self.errors.come_from(before, self.p.specs[id].loc());
    }

    fn kernel_itself(&mut self, id: SpecId) {
        self.root_exec(id);
        self.found_through(id);
        let spec = &self.p.specs[id];
        let params: HashSet<BufferId> = self.p.params.iter().copied().collect();
        let around = Around {
            kernel: id,
            spec: id,
            readable: params.clone(),
            writable: params,
            diverged: None,
            asked: vec![],
        };
        self.operands(id, &[]);
        self.attributes(id);
        self.peers(id);
        if spec.body.is_some() {
            self.body(id, &around);
        }
    }

    /// The statements of a spec's body.
    fn body(&mut self, id: SpecId, around: &Around) {
        let spec = &self.p.specs[id];
        let buffer = |t| self.p.tensors[t].buffer;
        let writable: HashSet<BufferId> = spec.outputs.iter().map(|t| buffer(*t)).collect();
        let mut readable: HashSet<BufferId> = spec.input_tensors().map(buffer).collect();
        readable.extend(&writable);
        let mut inner = Around { spec: id, readable, writable, ..around.clone() };
        let Some(body) = &spec.body else { return };
        self.stmts(body, &mut inner);
    }

    fn stmts(&mut self, stmts: &[Stmt], around: &mut Around) {
        for stmt in stmts {
            if self.errors.is_full() {
                return;
            }
            match &stmt.kind {
                StmtKind::Spec(id) => {
                    let before = self.errors.len();
                    self.nested_exec(*id, around);
                    self.operands(*id, &around.asked);
                    self.attributes(*id);
                    self.access(*id, around);
                    self.completes_on(*id, around);
                    self.peers(*id);
                    self.in_cluster(*id, around);
                    self.body(*id, around);
                    self.errors.come_from(before, self.p.specs[*id].loc());
                }
                StmtKind::Allocate(t) => {
                    let buffer = self.p.tensors[*t].buffer;
                    around.readable.insert(buffer);
                    around.writable.insert(buffer);
                }
                StmtKind::For { start, end, body, .. } => {
                    let mut inner = around.clone();
                    if self.p.thread_dependent(*start) || self.p.thread_dependent(*end) {
                        inner.part(stmt.span, Parting::Bounds([*start, *end]));
                    }
                    self.stmts(body, &mut inner);
                }
                StmtKind::If { cond, then, otherwise } => {
                    let varies = |(a, _, b): &(Dim, CmpOp, Dim)| {
                        self.p.thread_dependent(*a) || self.p.thread_dependent(*b)
                    };
                    let varies = cond.iter().any(varies);
                    for (side, holds) in [(then, true), (otherwise, false)] {
                        let mut inner = around.clone();
                        inner.asked.extend(Asked::of(self.p, cond, holds));
                        if varies {
                            inner.part(stmt.span, Parting::Answers(cond.clone(), holds));
                        }
                        self.stmts(side, &mut inner);
                    }
                }
                StmtKind::Barrier(threads) => self.barrier(*threads, stmt.span, around),
                StmtKind::Sync(sync) => self.sync(sync, stmt.span, around),
                StmtKind::Indices(_) => {}
                StmtKind::Element { tensor, .. } => self.element(*tensor, stmt.span, around),
            }
        }
    }
}
