//! Verifies that a program is well formed, so that later stages need not check these rules. It
//! collects all errors, up to [`crate::limits::MAX_ERRORS`], and never panics on a resolved
//! program. A rule about extents over symbols refuses a program only if values of the symbols break
//! it; a case that cannot be decided passes. (A matrix product is the exception: it is also refused
//! if two of its extents are symbols that are not known to be equal.)
//!
//! Operands of one spec (`operands.rs`, `attributes.rs`, `exchange.rs`; `extents.rs` for symbols):
//!
//! - V0206 the spec can use operands in their memories, and writes none that is read-only.
//! - V0207 the spec can use operands of their scalar types.
//! - V0208 the shapes fit the spec. A MatMul has A\[m,k\], B\[k,n\], C\[m,n\], optionally with
//!   leading batches. Other specs compare mode by mode; an input of a Move, a BinaryPointwise or a
//!   Select that has the same rank may have extent 1 in any mode.
//! - V0217 the number of operands fits the spec.
//! - V0218 the spec can use the values of its attributes, and its body does not contradict them.
//! - V0221 an Iota is in a `means` block.
//!
//! Layouts of buffers and threads (`storage.rs`, `injective.rs`, `executors.rs`):
//!
//! - V0209 a written tensor in GL or SH maps no two coordinates to one element.
//! - V0210 registers are compact: every register of a buffer is used once.
//! - V0214 thread tensors contain distinct threads, and the index of a thread determines its
//!   coordinates.
//! - V0215 a thread-value layout covers its tensor exactly; replicated values have stride 0.
//! - V0222 pinned allocations do not overlap, unless one reuses the other.
//! - V0224 an alignment covers the period of its swizzle.
//! - V0242 a swizzle moves whole elements, and moves no element out of its buffer.
//!
//! Statements in their context (`places.rs`, `executors.rs`, `diverged.rs`, `sync.rs`,
//! `cluster.rs`):
//!
//! - V0213 a kernel runs on a whole tensor of blocks and a whole tensor of threads; a nested spec
//!   runs on its kernel's blocks, and on threads of the enclosing spec. An elected thread uses no
//!   address that depends on the thread.
//! - V0220 all threads of a barrier reach it: the whole block, all named threads, or all threads of
//!   each thread's own group. A thread is elected only where all threads of its group arrive.
//! - V0227 a body writes only outputs of its spec and its own allocations. It reads only operands
//!   of its spec and its own allocations.
//! - V0228 a synchronization statement has the operands that its operation takes: one mbarrier,
//!   several, or a tensor map.
//! - V0229 mbarriers are in SH, and only synchronization statements and the `bar=` of a copy use
//!   them.
//! - V0230 only leaves that copy have boxes of a tensor map as operands.
//! - V0231 views of other blocks' shared memory name a block of the cluster, and are no operands of
//!   a spec with a body.
//! - V0239 a gather (elements that a tensor of coordinates selects) is not written, and the kernel
//!   does not write a tensor from which it reads indices.
//!
//! [`crate::resolve`] has checked names, ranks, tiles, index ranges, stated types and `means`
//! blocks before (V0201 to V0208, V0212 to V0219, V0221, V0223, V0224, V0228, V0230, V0232 to
//! V0241, V0243). `decompose` checks that atoms exist. The simulator and `carbyne-sync` check the
//! order of accesses by different threads. The simulator also checks that a body computes the
//! meaning of its spec.

mod attributes;
mod cluster;
mod diverged;
mod exchange;
mod executors;
mod extents;
mod injective;
mod operands;
mod places;
mod state;
mod storage;
mod sync;

pub(crate) use operands::{no_literal, no_nan, view_that_fits};

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::expr::Dim;
use crate::program::{BufferId, Program, SpecId, Stmt, StmtKind, sides};
use crate::span::Span;
use state::{Around, Asked, Parting, Questions, Verifier};
use std::collections::HashSet;

/// All violations of the invariants above, in text order; empty for a well-formed program.
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

    /// Verifies the statements of a spec's body.
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
                StmtKind::For { start, end, also, body, .. } => {
                    let mut inner = around.clone();
                    let bounds = [*start, *end].into_iter().chain(sides(also));
                    let bounds: Vec<Dim> = bounds.collect();
                    if bounds.iter().any(|dim| self.p.thread_dependent(*dim)) {
                        inner.part(stmt.span, Parting::Bounds(bounds));
                    }
                    self.stmts(body, &mut inner);
                }
                StmtKind::If { cond, then, otherwise } => {
                    let varies = sides(cond).any(|dim| self.p.thread_dependent(dim));
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
                StmtKind::Indices(_) | StmtKind::Step { .. } => {}
                StmtKind::Element { tensor, .. } => self.element(*tensor, stmt.span, around),
            }
        }
    }
}
