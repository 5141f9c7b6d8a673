//! Who executes: thread tensors, execution configurations, barriers.

use super::{Around, Verifier};
use crate::ast::ThreadScalar;
use crate::diag::{Code, Diagnostic};
use crate::expr::Dim;
use crate::layout::Layout;
use crate::limits;
use crate::program::{SpecId, TensorId, Threads, ThreadsId, VarKind};
use crate::span::Span;

/// Coordinates of threads do not follow from their index.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "{name} counts threads {}:{} across {others} others; coordinates do not follow from the index",
    digit.0,
    digit.1
)]
struct Mixed {
    name: String,
    /// Extent and stride.
    digit: (i64, i64),
    others: i64,
}

impl Verifier<'_> {
    /// V0214: views of declared thread tensors hold distinct threads, numbered by a mixed radix.
    pub(super) fn thread_tensors(&mut self) {
        for (id, t) in self.p.threads.iter() {
            if t.root == id || t.each.is_some() {
                continue; // Declarations were checked when they were resolved.
            }
            let Some(layout) = t.concat().to_fixed() else { continue };
            if layout.size() > limits::MAX_BLOCK_THREADS && t.scalar == ThreadScalar::Thread {
                continue;
            }
            match self.numbered(t, &layout) {
                Ok(()) => {}
                Err(why) => self.error(
                    Code::ThreadLayout,
                    t.span,
                    why.to_string(),
                    "tile and reshape a compact thread tensor without repeating or skipping threads",
                ),
            }
        }
    }

    /// The index of every thread gives back its coordinates by (index / stride) % extent.
    fn numbered(&self, t: &Threads, layout: &Layout<i64>) -> Result<(), Mixed> {
        let leaves = layout.leaves();
        // Where each stride is beyond all that the smaller ones reach, the digits cannot mix.
        let mut sorted: Vec<(i64, i64)> = leaves.iter().copied().filter(|(n, _)| *n > 1).collect();
        sorted.sort_by_key(|(_, s)| *s);
        let mut radix = 1;
        for &(n, s) in &sorted {
            if s % radix != 0 || s < radix {
                let name =
                    t.name.as_ref().map_or("a thread tensor".to_owned(), |n| format!("`#{n}`"));
                return Err(Mixed { name, digit: (n, s), others: radix });
            }
            radix = s.saturating_mul(n);
        }
        Ok(())
    }

    /// V0213 for a kernel.
    pub(super) fn root_exec(&mut self, id: SpecId) {
        let spec = &self.p.specs[id];
        let Some(exec) = spec.exec else { return };
        let (blocks, threads) = (&self.p.threads[exec.blocks], &self.p.threads[exec.threads]);
        if blocks.scalar != ThreadScalar::Block || threads.scalar != ThreadScalar::Thread {
            self.error(
                Code::ExecConfig,
                spec.span,
                "a kernel runs on `<<<blocks, threads>>>`",
                "name a tensor of blocks first, then one of threads",
            );
            return;
        }
        let whole = |p: &crate::program::Program, v: &Threads| {
            v.each.is_none()
                && match (v.concat().to_fixed(), p.threads[v.root].concat().to_fixed()) {
                    (Some(a), Some(b)) => a.size() == b.size(),
                    _ => v.levels == p.threads[v.root].levels,
                }
        };
        if !whole(self.p, blocks) || !whole(self.p, threads) {
            self.error(
                Code::ExecConfig,
                spec.span,
                "a kernel runs on whole thread tensors",
                "name the declared tensors; take tiles of them in the body",
            );
        }
        // Hardware forms clusters of neighbors.
        if let [_, .., cluster] = &blocks.levels[..]
            && !cluster.to_fixed().is_some_and(|l| l.is_bijective_onto(l.size()))
        {
            self.error(
                Code::ExecConfig,
                spec.span,
                "the blocks of a cluster are not neighbors",
                "number them consecutively: `[(m,n):(2,2*m)].[(2,1):(1,2)].block`, or a tile of 2:1",
            );
        }
    }

    /// V0213 for a spec inside a body.
    pub(super) fn nested_exec(&mut self, id: SpecId, around: &Around) {
        let spec = &self.p.specs[id];
        let (Some(exec), Some(outer), Some(kernel)) =
            (spec.exec, self.p.specs[around.spec].exec, self.p.specs[around.kernel].exec)
        else {
            if spec.exec.is_none() {
                self.error(
                    Code::ExecConfig,
                    spec.span,
                    "the spec does not say who executes it",
                    "write `<<<#blocks, #threads>>>` after its name",
                );
            }
            return;
        };
        let t = |id: ThreadsId| &self.p.threads[id];
        if t(exec.blocks).root != t(kernel.blocks).root
            || t(exec.threads).root != t(kernel.threads).root
        {
            self.error(
                Code::ExecConfig,
                spec.span,
                "the spec runs on other threads than its kernel",
                "use views of the thread tensors in the kernel's `<<<...>>>`",
            );
            return;
        }
        if t(outer.threads).elect.is_some() && !self.same_elected(exec.threads, outer.threads) {
            let help = "run it on the tensor made by `.elect()`";
            let message = "within an elected thread's body another thread is named";
            return self.error(Code::ExecConfig, spec.span, message, help);
        }
        if let Some(at) = around.diverged.filter(|_| t(exec.threads).elect.is_some()) {
            self.errors.push(
                Diagnostic::new(
                    Code::Divergent,
                    spec.span,
                    "one of a group is elected where threads have diverged",
                )
                .label("who is elected here depends on who comes")
                .related(at, "not all threads pass here")
                .help("move it out of the condition"),
            );
            return;
        }
        if t(exec.threads).elect.is_some() && spec.body.is_none() {
            let all = spec.input_tensors().chain(spec.outputs.iter().copied()).chain(spec.bar);
            let place = |t: TensorId| {
                let tensor = &self.p.tensors[t];
                let at = tensor.map.iter().flat_map(|m| m.at.iter().flatten());
                at.copied().chain([tensor.offset]).any(|d| self.thread_dependent(d))
            };
            if let Some(t) = all.into_iter().find(|t| place(*t)) {
                let message = format!(
                    "the place of a {} depends on the thread, and which one is elected is not said",
                    self.p.tensor_name(t)
                );
                let help = "name a thread, `#cta[0]`, or a place that is the same for all";
                return self.error(Code::ExecConfig, spec.span, message, help);
            }
        }
        let (Some(inner), Some(outer)) =
            (self.thread_set(exec.threads), self.thread_set(outer.threads))
        else {
            return;
        };
        if let Some(stray) = inner.iter().find(|i| !outer.contains(i)) {
            self.errors.push(
                Diagnostic::new(
                    Code::ExecConfig,
                    spec.span,
                    "the spec runs on threads that the enclosing spec does not have",
                )
                .label(format!("thread {stray} is not among them"))
                .related(self.p.specs[around.spec].span, "the enclosing spec")
                .help("use the enclosing spec's thread tensor or a tile of it"),
            );
        }
    }

    /// Whether both are elected of the same groups.
    fn same_elected(&self, a: ThreadsId, b: ThreadsId) -> bool {
        let groups = |t: ThreadsId| self.p.threads[t].elect.map(|g| &self.p.threads[g]);
        match (groups(a), groups(b)) {
            (Some(a), Some(b)) => (a.root, &a.levels, a.offset) == (b.root, &b.levels, b.offset),
            _ => false,
        }
    }

    /// The sorted indices of a thread tensor; none where they depend on a variable.
    pub(super) fn thread_set(&self, id: ThreadsId) -> Option<Vec<i64>> {
        let t = &self.p.threads[id];
        let Dim::Const(offset) = t.offset else { return None };
        let layout = t.concat().to_fixed()?;
        if layout.size() > limits::MAX_BLOCK_THREADS {
            return None;
        }
        let mut set: Vec<i64> = (0..layout.size()).map(|i| offset + layout.at(i)).collect();
        set.sort_unstable();
        Some(set)
    }

    /// V0220.
    pub(super) fn barrier(&mut self, threads: Option<ThreadsId>, span: Span, around: &Around) {
        if let Some(at) = around.diverged {
            self.errors.push(
                Diagnostic::new(
                    Code::Divergent,
                    span,
                    "a barrier stands where threads have diverged",
                )
                .label("a barrier waits for all of them")
                .related(at, "not all threads pass here")
                .help("move the barrier out of the condition"),
            );
            return;
        }
        let (Some(exec), Some(kernel)) =
            (self.p.specs[around.spec].exec, self.p.specs[around.kernel].exec)
        else {
            return;
        };
        let (Some(here), Some(all)) =
            (self.thread_set(exec.threads), self.thread_set(kernel.threads))
        else {
            return;
        };
        let wanted = match threads {
            Some(t) => self.thread_set(t).unwrap_or_default(),
            None => all,
        };
        if here != wanted {
            self.errors.push(
                Diagnostic::new(
                    Code::Divergent,
                    span,
                    format!("{} threads come to a barrier of {}", here.len(), wanted.len()),
                )
                .help(
                    "name the threads, `barrier(#t)`, or move it to the body of the block's spec",
                ),
            );
        }
    }

    /// Whether a value differs between threads of one block.
    pub(super) fn thread_dependent(&self, d: Dim) -> bool {
        self.p.vars_in(d).into_iter().any(|v| match self.p.vars.get(&v) {
            Some(VarKind::Thread(_)) => true,
            Some(VarKind::Index(def)) => self.thread_dependent(*def),
            _ => false,
        })
    }
}
