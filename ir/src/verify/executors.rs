//! Checks the threads that execute statements.
//!
//! - V0213: the executor of a kernel, the part in `<<< >>>`, is a whole tensor of blocks and one of
//!   threads, and the blocks of a cluster are neighbors. The executor of a nested spec consists of
//!   threads of the enclosing spec. If one elected thread executes a leaf, its addresses and
//!   numbers do not depend on which thread it is.
//! - V0214: a thread tensor contains distinct threads, and the index of a thread determines its
//!   coordinates.
//! - V0220: all threads of a barrier reach it, and all threads of a group from which one is elected
//!   arrive.

use super::state::{Around, Verifier};
use crate::ast::ThreadScalar;
use crate::diag::{Code, Diagnostic, count};
use crate::expr::Dim;
use crate::layout::Layout;
use crate::limits;
use crate::program::{SpecId, TensorId, Threads, ThreadsId};
use crate::span::Span;

/// The index of a thread does not determine its coordinates.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "{name} has a mode {}:{} whose stride is not a positive multiple of {others}, the number of \
     threads in its inner modes",
    digit.0,
    digit.1
)]
struct Mixed {
    name: String,
    /// The mode: extent and stride.
    digit: (i64, i64),
    others: i64,
}

impl Verifier<'_> {
    /// V0214: views of declared thread tensors contain distinct threads, with a mixed-radix
    /// numbering.
    pub(super) fn thread_tensors(&mut self) {
        for (id, t) in self.p.threads.iter() {
            if t.root == id || t.each.is_some() {
                continue; // Resolving has checked declarations.
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
                    "tile and reshape a compact thread tensor, without repeated or missing threads",
                ),
            }
        }
    }

    /// Checks that (index / stride) % extent computes each coordinate from the index of a thread.
    fn numbered(&self, t: &Threads, layout: &Layout<i64>) -> Result<(), Mixed> {
        let leaves = layout.leaves();
        // If each stride exceeds the reach of the smaller ones, digits do not overlap.
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

    /// V0213 for the executor of a kernel.
    pub(super) fn root_exec(&mut self, id: SpecId) {
        let spec = &self.p.specs[id];
        let Some(exec) = spec.exec else { return };
        let (blocks, threads) = (&self.p.threads[exec.blocks], &self.p.threads[exec.threads]);
        if blocks.scalar != ThreadScalar::Block || threads.scalar != ThreadScalar::Thread {
            self.error(
                Code::ExecConfig,
                spec.span,
                "the executor of a kernel is not `<<<blocks, threads>>>`",
                "write a tensor of blocks first, then one of threads",
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
                "the executor of a kernel is a part of a thread tensor",
                "name the declared tensors; take tiles of them in the body",
            );
        }
        // The hardware makes clusters of neighboring blocks.
        if let [_, .., cluster] = &blocks.levels[..]
            && let cluster = cluster.to_fixed()
            && !cluster.as_ref().is_some_and(|l| l.is_bijective_onto(l.size()))
        {
            let numbers = cluster.filter(|l| l.size() <= 8).map_or(String::new(), |l| {
                let all: Vec<String> = (0..l.size()).map(|i| l.at(i).to_string()).collect();
                format!(": the first one has blocks {}", all.join(", "))
            });
            self.error(
                Code::ExecConfig,
                spec.span,
                format!("the blocks of a cluster are not neighbors{numbers}"),
                "give the blocks of a cluster consecutive numbers: take the tile along the mode of \
                 stride 1, or declare the grid with stride 1 in the mode of the tile",
            );
        }
    }

    /// V0213 for the executor of a spec inside a body.
    pub(super) fn nested_exec(&mut self, id: SpecId, around: &Around) {
        let spec = &self.p.specs[id];
        let (Some(exec), Some(outer), Some(kernel)) =
            (spec.exec, self.p.specs[around.spec].exec, self.p.specs[around.kernel].exec)
        else {
            if spec.exec.is_none() {
                self.error(
                    Code::ExecConfig,
                    spec.span,
                    "the spec has no executor",
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
                "the spec runs on threads that do not belong to its kernel",
                "use views of the thread tensors in the kernel's `<<<...>>>`",
            );
            return;
        }
        if t(outer.threads).elect.is_some() && !self.same_elected(exec.threads, outer.threads) {
            let named = t(outer.threads).name.as_ref().map(|name| format!("`#{name}`"));
            let elected = named.unwrap_or("the tensor made by `.elect()`".to_owned());
            let help = &format!("run it on {elected}, as the spec around it");
            let message = "the body of an elected thread runs a spec on another thread";
            return self.error(Code::ExecConfig, spec.span, message, help);
        }
        let elects = self.elects_of(exec.threads);
        if let Some(at) = elects.as_ref().and_then(|g| self.parts(around, g.as_deref())) {
            self.errors.push(
                Diagnostic::new(
                    Code::Divergent,
                    spec.span,
                    "one thread of a group is elected where threads may have diverged",
                )
                .label("only threads that arrive can be elected")
                .related(at, "threads diverge here")
                .help("move the election out of the condition"),
            );
            return;
        }
        if let Some(groups) = elects.filter(|_| spec.body.is_none()) {
            let mut all = spec.input_tensors().chain(spec.outputs.iter().copied()).chain(spec.bar);
            if let Some(t) = all.find(|t| self.place_differs(*t, groups.as_deref())) {
                return self.error(Code::ExecConfig, spec.span, differs(self.p, t), SAME_FOR_ALL);
            }
            let mut numbers = spec.multicast.into_iter().chain(spec.valid);
            if numbers.any(|d| self.differs_in(d, groups.as_deref())) {
                let message =
                    "a number of the spec depends on the thread, but any thread may be elected";
                return self.error(Code::ExecConfig, spec.span, message, SAME_FOR_ALL);
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

    /// The groups in which a thread is elected: `None` without an election, `Some(None)` if the
    /// groups are unknown.
    pub(super) fn elects_of(&self, threads: ThreadsId) -> Option<Option<Vec<Vec<i64>>>> {
        let of = &self.p.threads[self.p.threads[threads].elect?];
        Some(of.groups_below(of.levels.len().saturating_sub(1)))
    }

    /// Whether a value may differ between threads of one of these groups.
    pub(super) fn differs_in(&self, d: Dim, groups: Option<&[Vec<i64>]>) -> bool {
        match groups {
            Some(groups) => !self.p.same_in_groups(d, groups),
            None => self.p.thread_dependent(d),
        }
    }

    /// Whether the address of a tensor may differ between threads of one of these groups.
    pub(super) fn place_differs(&self, t: TensorId, groups: Option<&[Vec<i64>]>) -> bool {
        let tensor = &self.p.tensors[t];
        let at = tensor.map.iter().flat_map(|m| m.at.iter().flatten()).copied();
        at.chain([tensor.offset]).chain(tensor.peer).any(|d| self.differs_in(d, groups))
    }

    /// Whether both tensors have elected threads of the same groups.
    fn same_elected(&self, a: ThreadsId, b: ThreadsId) -> bool {
        let groups = |t: ThreadsId| self.p.threads[t].elect.map(|g| &self.p.threads[g]);
        match (groups(a), groups(b)) {
            (Some(a), Some(b)) => (a.root, &a.levels, a.offset) == (b.root, &b.levels, b.offset),
            _ => false,
        }
    }

    /// The sorted indices of a thread tensor; `None` if they depend on a variable.
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

    /// V0220 for a barrier of all threads (`None`) or of the named ones.
    pub(super) fn barrier(&mut self, threads: Option<ThreadsId>, span: Span, around: &Around) {
        let (Some(exec), Some(kernel)) =
            (self.p.specs[around.spec].exec, self.p.specs[around.kernel].exec)
        else {
            return;
        };
        let named = threads.unwrap_or(kernel.threads);
        let here = self.thread_set(exec.threads).map(|mut all| {
            self.who_comes(around, &mut all);
            all
        });
        // Groups without a thread here do not wait.
        let comes = |group: &Vec<i64>| {
            here.as_ref().is_none_or(|here| group.iter().any(|t| here.binary_search(t).is_ok()))
        };
        let groups: Option<Vec<Vec<i64>>> = self.p.threads[named]
            .own_groups()
            .map(|groups| groups.into_iter().filter(comes).collect());
        if let Some(at) = self.parts(around, groups.as_deref()) {
            self.errors.push(
                Diagnostic::new(Code::Divergent, span, "threads may have diverged at a barrier")
                    .label("a barrier waits for all of its threads")
                    .related(at, "threads diverge here")
                    .help("move the barrier out of the condition"),
            );
            return;
        }
        if self.p.threads[exec.threads].elect.is_some() {
            let message = "one elected thread alone reaches the barrier";
            let help = "move it out of the body of the elected thread";
            return self.error(Code::Divergent, span, message, help);
        }
        let (Some(here), Some(groups)) = (here, groups) else {
            if threads.is_some() {
                let message = "the threads of a barrier are not known";
                let help = "name a constant set of threads, such as `barrier(#w[0])`";
                self.error(Code::Divergent, span, message, help);
            }
            return;
        };
        let waited: usize = groups.iter().map(Vec::len).sum();
        let all_come = groups.iter().flatten().all(|t| here.binary_search(t).is_ok());
        if all_come && waited == here.len() {
            return;
        }
        let message = match (self.p.threads[named].own, groups.first()) {
            (1.., Some(group)) => format!(
                "{} threads arrive at barriers of {} threads each, and some groups are incomplete",
                here.len(),
                group.len()
            ),
            _ if waited == 0 => {
                "the barrier names other threads than those that execute it".to_owned()
            }
            _ => format!(
                "{} threads execute the barrier, but it waits for {waited} threads",
                here.len()
            ),
        };
        let around = self.p.specs[around.spec].span;
        let run = format!("{} run this spec", count(here.len(), "thread"));
        self.errors.push(
            Diagnostic::new(Code::Divergent, span, message).related(around, run).help(
                "name the threads that run it, `barrier(#w)`, or each thread's own group, \
             `barrier(#w[@w])`, or move it to the body of the kernel",
            ),
        );
    }
}

pub(super) const SAME_FOR_ALL: &str =
    "name a thread, such as `#cta[0]`, or use an address or number that all threads share";

/// The message for a tensor whose address depends on the elected thread.
pub(super) fn differs(p: &crate::program::Program, t: TensorId) -> String {
    let name = p.tensor_name(t);
    format!("the address of {name} depends on the thread, but any thread may be elected")
}
