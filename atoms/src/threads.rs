//! Compares the threads that execute a spec with the thread group of an atom, for example
//! `[8].thread` with the 32 lanes of a warp. Matcher, printer and simulator use this comparison
//! through [`crate::bind`].
//!
//! A thread tensor has levels, one per pair of brackets. Its innermost level is the group that
//! executes a spec together. Several innermost levels form the group if they state its arrangement:
//! `[2,2].[8].thread` for the four matrices of `ldmatrix.x4`, as in Graphene, Fig. 1. Outer levels
//! repeat the group.
//!
//! An atom of one thread takes `.scalar()`, or groups of one thread. Any other atom takes groups of
//! exactly its size, each of which begins at a thread at which the hardware allows such a group.

use crate::atom::Atom;
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::Layout;
use carbyne_ir::limits::MAX_BLOCK_THREADS;
use carbyne_ir::program::{Program, Spec, Threads, ThreadsId, show_levels};
use std::fmt;

/// The error that the threads of a spec are not groups of an atom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadsMismatch {
    /// The threads that the atom needs, and how the text names them.
    pub want: String,
    /// The threads that execute the spec.
    pub found: String,
}

impl fmt::Display for ThreadsMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "needs {}, found {}", self.want, self.found)
    }
}

/// Compares the threads of a spec with those of an atom.
///
/// # Errors
/// The groups have another size, or they begin at a thread at which no group of the atom can begin.
pub fn executed_by(p: &Program, spec: &Spec, atom: &Atom) -> Result<(), ThreadsMismatch> {
    let root = spec.exec.map(|e| &p.threads[p.threads[e.threads].root]);
    let root = root.and_then(|r| r.name.as_deref()).unwrap_or("cta");
    let wrong = |found: String| ThreadsMismatch { want: wanted(atom, root), found };
    let Some(exec) = spec.exec else { return Err(wrong("no threads".to_owned())) };
    let threads = &p.threads[exec.threads];
    if threads.each.is_some() || threads.inner().is_empty() {
        if atom.group == 1 {
            return Ok(());
        }
        return Err(wrong(executors(p, exec.threads)));
    }
    // The innermost levels that together form one group.
    let (mut size, mut levels) = (1i64, 0);
    for level in threads.inner().iter().rev() {
        // A size that depends on symbols is unknown.
        let Some(level) = level.to_fixed() else { break };
        if levels > 0 && size >= atom.group {
            break;
        }
        size = size.saturating_mul(level.size());
        levels += 1;
    }
    let mut found = executors(p, exec.threads);
    match size == atom.group {
        true if atom.group == 1 || placed(p, threads, levels, atom) => return Ok(()),
        true => {
            let inner = threads.inner().last().and_then(Layout::to_fixed);
            let consecutive = inner.is_some_and(|l| l.cosize() <= l.size());
            found += &match (neighbors(atom), consecutive, threads.offset) {
                (false, ..) => {
                    ", which are in another order or do not cover their warps".to_owned()
                }
                (true, false, _) => ", which are not consecutive".to_owned(),
                (true, true, Dim::Const(first)) => format!(", from thread {first} on"),
                (true, true, Dim::Expr(_)) => ", whose first thread is not known".to_owned(),
            }
        }
        false => {}
    }
    Err(wrong(found))
}

/// The threads as messages name them: `groups of 8 threads, [8].thread`, or "each thread for
/// itself".
pub fn executors(p: &Program, id: ThreadsId) -> String {
    let threads = &p.threads[id];
    let group = threads.levels.last().and_then(Layout::to_fixed).map(|l| l.size());
    let shown = || show_levels(&p.arena, &threads.levels) + ".thread";
    match (threads.each, group) {
        (Some(_), _) => "each thread for itself".to_owned(),
        (None, Some(1)) | (None, None) => shown(),
        (None, Some(n)) => format!("groups of {n} threads, {}", shown()),
    }
}

fn wanted(atom: &Atom, threads: &str) -> String {
    match atom.group {
        1 => format!("each thread for itself, `#{threads}.scalar()`"),
        n if neighbors(atom) => format!(
            "groups of {n} consecutive threads that begin at a multiple of {n}, \
             `#{threads}.tile([{n}])`"
        ),
        n => format!("groups of {n} threads, `#{threads}.tile([{}])`", atom.thread_layout),
    }
}

/// Whether the threads of a group are consecutive.
fn neighbors(atom: &Atom) -> bool {
    atom.thread_layout.cosize() <= atom.group
}

/// Whether the innermost `levels` levels are groups of the atom. Consecutive threads must begin at
/// a multiple of the group's size. Other groups must list the threads in the atom's order, and all
/// threads of a warp must be in groups.
pub(crate) fn placed(p: &Program, threads: &Threads, levels: usize, atom: &Atom) -> bool {
    let (outer, inner) = threads.levels.split_at(threads.levels.len().saturating_sub(levels));
    let Some(inner) = Layout::concat(inner).ok().and_then(|l| l.to_fixed()) else { return false };
    let mut group: Vec<i64> = (0..atom.group).map(|i| inner.at(i)).collect();
    if neighbors(atom) {
        group.sort_unstable();
    }
    if (0..).zip(&group).any(|(i, at)| *at != atom.thread_layout.at(i)) {
        return false;
    }
    if neighbors(atom) {
        let steps = outer.iter().flat_map(|level| level.leaves());
        let steps = steps.filter(|(extent, _)| *extent != Dim::Const(1)).map(|(_, stride)| *stride);
        return steps.chain([threads.offset]).all(|d| p.arena.divisor(d) % atom.group == 0);
    }
    let warps = (atom.thread_layout.cosize() + 31) / 32 * 32;
    let first = match threads.offset {
        Dim::Const(offset) => offset,
        offset if p.arena.divisor(offset) % warps == 0 => 0,
        Dim::Expr(_) => return false,
    };
    let Some(all) = threads.concat().to_fixed().filter(|l| l.size() <= MAX_BLOCK_THREADS) else {
        return false;
    };
    let mut set: Vec<i64> = (0..all.size()).map(|i| first.saturating_add(all.at(i))).collect();
    set.sort_unstable();
    // The verifier has checked that the threads are distinct.
    set.len() as i64 % warps == 0
        && set
            .chunks(warps as usize)
            .all(|c| c[0] % warps == 0 && c.last().is_some_and(|last| *last == c[0] + warps - 1))
}
