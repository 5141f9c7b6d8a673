//! Computes from a thread tensor, the executor of a spec, which threads of a block execute the spec
//! and how they form groups.
//!
//! Each bracket of a thread tensor is a level. The innermost level is the group that executes a
//! spec together; the outer levels repeat it: `[4].[32].thread` is four groups of 32 threads. In a
//! thread tensor made by `.scalar()`, or without levels, every thread is a group of its own. The
//! groups are known except for an offset that is added to all of their thread indices; it may
//! depend on loop variables, and is then computed at each execution.

use super::mask::Mask;
use super::site::unknown;
use super::{Checked, Site};
use crate::index::{Index, Variables};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{Program, ThreadsId};
use std::sync::Arc;

/// A thread tensor of a kernel.
pub(crate) struct ThreadTensor {
    /// The linear index of coordinate zero, uniform for all threads.
    offset: Index,
    /// The indices of each group relative to the offset, in the group's order.
    groups: Vec<Vec<i64>>,
    /// The number of groups that the coordinates of the executing thread select; later groups
    /// repeat them.
    own: usize,
    /// The groups as threads of the block, if the offset is known.
    known: Option<Arc<Partition>>,
    /// The site of the thread tensor.
    site: Site,
    n_threads: usize,
}

/// The threads of one group, in the order of the thread tensor.
pub(crate) type Group = Vec<u16>;

/// The threads of a block, partitioned into the groups of a thread tensor.
pub(crate) struct Partition {
    /// The groups; each thread is in at most one.
    pub groups: Vec<Group>,
    /// All threads of the groups.
    pub mask: Mask,
    /// The sets of threads that an executing thread can select (`#w[@w]`), one for each group; a
    /// single set of all threads if its coordinates select nothing.
    pub own: Vec<Mask>,
}

impl ThreadTensor {
    /// Lowers a thread tensor of a kernel with `n_threads` threads, with this elected lane of every
    /// warp.
    ///
    /// # Errors
    /// `D0306` if its shape is unknown, `V0214` if it is not a set of distinct threads.
    pub(crate) fn new(
        program: &Program,
        vars: &Variables<'_>,
        id: ThreadsId,
        n_threads: usize,
        elected: usize,
    ) -> Checked<Self> {
        let threads = &program.threads[id];
        let site = Site { line: 0, span: threads.span };
        let single = threads.each.is_some();
        let layout = |level: &Layout<Dim>| {
            vars.layout(level).map_err(|e| unknown(site.span, "a thread tensor", e))
        };
        // The lowest thread of a group represents the elected one.
        let of = threads.elect.and_then(|of| program.threads[of].levels.last());
        let first = match of {
            Some(group) => nth_thread(&layout(group)?, elected),
            None => 0,
        };
        let mut outer = vec![first];
        let mut inner = vec![0i64];
        let mut own = 1usize;
        let last = threads.levels.len().checked_sub(1);
        for (depth, level) in threads.levels.iter().enumerate() {
            let layout = layout(level)?;
            let known = if Some(depth) == last && !single { &mut inner } else { &mut outer };
            let size = layout.size();
            if size > 1024 || known.len() as i64 * size > 1024 {
                return Err(not_a_set(site, "it has more than 1024 threads"));
            }
            if depth < threads.own {
                own *= size as usize;
            }
            // Within a level, earlier modes are faster; outer levels are faster than inner ones.
            *known = (0..size)
                .flat_map(|i| known.iter().map(move |o| (i, *o)))
                .map(|(i, o)| o.saturating_add(layout.at(i)))
                .collect();
        }
        if outer.len() * inner.len() > 1024 {
            return Err(not_a_set(site, "it has more than 1024 threads"));
        }
        let offset = vars.index(threads.offset);
        let offset = offset.map_err(|e| unknown(site.span, "a thread tensor", e))?;
        if !offset.is_uniform() {
            return Err(not_a_set(site, "its offset differs between threads"));
        }
        let groups =
            outer.iter().map(|o| inner.iter().map(|i| o.saturating_add(*i)).collect()).collect();
        let mut thread_tensor = ThreadTensor { offset, groups, own, known: None, site, n_threads };
        if let Some(offset) = thread_tensor.offset.known() {
            thread_tensor.known = Some(Arc::new(thread_tensor.place(offset)?));
        }
        Ok(thread_tensor)
    }

    /// The number of threads of one group.
    pub(crate) fn group_size(&self) -> usize {
        self.groups.first().map_or(0, Vec::len)
    }

    /// Whether a group may have threads of several warps.
    pub(crate) fn spans_warps(&self) -> bool {
        let spread = |g: &Group| g.iter().any(|t| t / 32 != g[0] / 32);
        match &self.known {
            Some(partition) => partition.groups.iter().any(spread),
            None => self.group_size() > 1,
        }
    }

    /// The number of groups.
    pub(crate) fn n_groups(&self) -> usize {
        self.groups.len()
    }

    /// The groups, given the values of the offset's variables.
    ///
    /// # Errors
    /// `V0214` if a thread is outside of the block.
    pub(crate) fn partition(&self, env: &crate::index::Env) -> Checked<Arc<Partition>> {
        if let Some(known) = &self.known {
            return Ok(Arc::clone(known));
        }
        let offset = self.offset.base(env).map_err(|e| not_a_set(self.site, &e.to_string()))?;
        self.place(offset).map(Arc::new)
    }

    /// The groups, if they do not depend on loop variables.
    pub(crate) fn known(&self) -> Option<&Partition> {
        self.known.as_deref()
    }

    fn place(&self, offset: i64) -> Checked<Partition> {
        let mut mask = Mask::NONE;
        let mut own = vec![Mask::NONE; self.own.max(1)];
        let n = own.len();
        let mut groups = Vec::with_capacity(self.groups.len());
        for (i, relative) in self.groups.iter().enumerate() {
            let mine = &mut own[i % n];
            let mut group = Vec::with_capacity(relative.len());
            for i in relative {
                let thread = offset
                    .checked_add(*i)
                    .and_then(|t| usize::try_from(t).ok())
                    .filter(|t| *t < self.n_threads);
                let Some(thread) = thread else {
                    let why = format!("it reaches outside the block's {} threads", self.n_threads);
                    return Err(not_a_set(self.site, &why));
                };
                if mask.has(thread) {
                    return Err(not_a_set(self.site, &format!("it holds thread {thread} twice")));
                }
                mask.insert(thread);
                mine.insert(thread);
                group.push(thread as u16);
            }
            groups.push(group);
        }
        Ok(Partition { groups, mask, own })
    }
}

/// The thread of a group at position `n`, in the order of the hardware, relative to the group's
/// offset.
fn nth_thread(group: &Layout<i64>, n: usize) -> i64 {
    let mut all: Vec<i64> = (0..group.size().min(1024)).map(|i| group.at(i)).collect();
    all.sort_unstable();
    all.get(n.min(all.len().saturating_sub(1))).copied().unwrap_or(0)
}

fn not_a_set(site: Site, why: &str) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::new(
            Code::ThreadLayout,
            site.span,
            "a thread tensor is not a set of threads of its block",
        )
        .label(why.to_owned())
        .help("use tiles of the kernel's thread tensor"),
    )
}
