//! Converts the executor of a statement (a thread tensor) to the groups of threads of the block
//! that execute the statement together, as lists of thread indices. After `.scalar()` each thread
//! is a group; after `.elect()` a group is one thread of each innermost group.

use crate::expr::{Env, Exprs};
use crate::threads::Mask;
use carbyne_ir::program::ThreadsId;

/// The groups of a thread tensor. Each index of the outer levels selects a group; the innermost
/// level enumerates its threads.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(crate) groups: Vec<Vec<u16>>,
    pub(crate) mask: Mask,
}

impl Groups {
    /// The groups at a statement, if `elected` is the elected lane of every warp.
    ///
    /// # Errors
    /// The reason why the threads are unknown.
    pub(crate) fn of(
        exprs: &Exprs<'_>,
        id: ThreadsId,
        env: &Env,
        elected: usize,
    ) -> Result<Groups, &'static str> {
        const OUTSIDE: &str = "its threads are not in the block";
        let program = exprs.program;
        let threads = &program.threads[id];
        let single = threads.each.is_some();
        let unknown = "its threads are unknown";
        let first = match threads.elect.and_then(|of| program.threads[of].levels.last()) {
            Some(group) => {
                let group = exprs.layout(group).ok_or(unknown)?;
                let mut all: Vec<i64> = (0..group.size().min(1024)).map(|i| group.at(i)).collect();
                all.sort_unstable();
                all.get(elected.min(all.len().saturating_sub(1))).copied().unwrap_or(0)
            }
            None => 0,
        };
        let (mut outer, mut inner) = (vec![first], vec![0i64]);
        let last = threads.levels.len().checked_sub(1);
        for (depth, level) in threads.levels.iter().enumerate() {
            let layout = exprs.layout(level).ok_or(unknown)?;
            let list = if Some(depth) == last && !single { &mut inner } else { &mut outer };
            let size = layout.size();
            if !(1..=1024).contains(&size) || list.len() as i64 * size > 1024 {
                return Err(OUTSIDE);
            }
            *list = (0..size)
                .flat_map(|i| list.iter().map(move |o| (i, *o)))
                .map(|(i, o)| o.saturating_add(layout.at(i)))
                .collect();
        }
        let offset = exprs.value(threads.offset, env).same().ok_or(unknown)?;
        let (mut mask, mut groups) = (Mask::default(), Vec::with_capacity(outer.len()));
        for o in &outer {
            let mut group = Vec::with_capacity(inner.len());
            for i in &inner {
                let t = offset.saturating_add(*o).saturating_add(*i);
                let t = usize::try_from(t).ok().filter(|t| *t < exprs.n_threads);
                let t = t.filter(|t| !mask.has(*t)).ok_or(OUTSIDE)?;
                mask.insert(t);
                group.push(t as u16);
            }
            groups.push(group);
        }
        Ok(Groups { groups, mask })
    }
}
