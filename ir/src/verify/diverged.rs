//! Analyzes divergence: finds the threads that may take different branches of conditions, or leave
//! loops at different iterations. Where threads of one group may diverge, the verifier refuses a
//! barrier of this group, the election of one of its threads, and synchronization statements of an
//! elected thread (V0220).
//!
//! Each condition or loop divides the threads of a block into *classes*; threads of one class
//! provably take the same path. A group may execute a statement together if one class contains all
//! of its threads. Unknown values count as different.

use super::state::{Around, Diverged, Parting, Verifier, Ways};
use crate::expr::Dim;
use crate::limits::MAX_BLOCK_THREADS;
use crate::program::{Program, ThreadsId};
use crate::span::Span;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;

impl Ways {
    /// Divides the classes further, by a value of each thread.
    fn divide(&mut self, values: &[i64]) {
        let mut classes: HashMap<(u32, i64), u32> = HashMap::new();
        for (class, value) in self.class.iter_mut().zip(values) {
            let next = classes.len() as u32;
            *class = *classes.entry((*class, *value)).or_insert(next);
        }
    }
}

impl Diverged {
    /// The classes of the threads of a block of `n`, with respect to this condition or loop and all
    /// enclosing ones.
    fn ways(&self, p: &Program, n: i64) -> Option<&Ways> {
        // Outermost first: each result depends on the enclosing one.
        let mut chain = vec![self];
        while let Some(outer) = chain.last().and_then(|d| d.outer.as_deref()) {
            if outer.ways.get().is_some() {
                break;
            }
            chain.push(outer);
        }
        for d in chain.into_iter().rev() {
            d.ways.get_or_init(|| d.divided(p, n));
        }
        self.ways.get().and_then(Option::as_ref)
    }

    fn divided(&self, p: &Program, n: i64) -> Option<Ways> {
        let size = usize::try_from(n).ok()?;
        let mut ways = match &self.outer {
            None => Ways { class: vec![0; size], comes: vec![true; size] },
            Some(outer) => {
                let Ways { class, comes } = outer.ways.get()?.as_ref()?;
                Ways { class: class.clone(), comes: comes.clone() }
            }
        };
        // A value that also depends on other variables agrees if all parts that depend on the
        // thread agree.
        let by_parts = |ways: &mut Ways, dim: Dim| -> Option<()> {
            for part in p.thread_parts(dim)? {
                ways.divide(&p.by_threads(part, n)?);
            }
            Some(())
        };
        match &self.on {
            Parting::Bounds(bounds) => bounds.iter().try_for_each(|d| by_parts(&mut ways, *d))?,
            Parting::Answers(all, holds) => {
                // Whether a comparison with an unknown result may fail.
                let mut unknown = false;
                let mut fails = vec![false; size];
                let mut known: Vec<Vec<i64>> = vec![];
                for (a, op, b) in all {
                    let Some((a, b)) = p.by_threads(*a, n).zip(p.by_threads(*b, n)) else {
                        unknown = true;
                        by_parts(&mut ways, *a)?;
                        by_parts(&mut ways, *b)?;
                        continue;
                    };
                    let answers: Vec<bool> =
                        a.iter().zip(&b).map(|(a, b)| op.holds(*a, *b)).collect();
                    known.push(answers.iter().map(|a| i64::from(*a)).collect());
                    fails.iter_mut().zip(answers).for_each(|(f, answer)| *f |= !answer);
                }
                if unknown {
                    known.iter().for_each(|answers| ways.divide(answers));
                } else {
                    ways.divide(&fails.iter().map(|f| i64::from(*f)).collect::<Vec<_>>());
                }
                for (comes, fails) in ways.comes.iter_mut().zip(fails) {
                    *comes &= if *holds { !fails } else { fails || unknown };
                }
            }
        }
        Some(ways)
    }
}

impl Around {
    /// Enters a condition or loop where threads may diverge.
    pub(super) fn part(&mut self, at: Span, on: Parting) {
        let outer = self.diverged.take();
        self.diverged = Some(Rc::new(Diverged { at, on, outer, ways: OnceCell::new() }));
    }
}

impl Verifier<'_> {
    /// The outermost condition or loop around a statement where threads of one of these groups may
    /// diverge. If `groups` is `None`, any threads of the block.
    pub(super) fn parts(&self, around: &Around, groups: Option<&[Vec<i64>]>) -> Option<Span> {
        let n = self.block(around)?;
        let mut places: Vec<&Diverged> = vec![];
        let mut next = around.diverged.as_deref();
        while let Some(d) = next {
            places.push(d);
            next = d.outer.as_deref();
        }
        let together = |d: &Diverged| {
            let (Some(ways), Some(groups)) = (d.ways(self.p, n), groups) else { return false };
            groups.iter().all(|group| {
                let class = |t: &i64| usize::try_from(*t).ok().and_then(|t| ways.class.get(t));
                let Some((first, rest)) = group.split_first() else { return true };
                rest.iter().all(|t| class(t) == class(first))
            })
        };
        // Classes only get smaller inward: if each group is in one class in the innermost place, it
        // is in all.
        if places.first().is_none_or(|d| together(d)) {
            return None;
        }
        places.iter().rev().find(|d| !together(d)).map(|d| d.at)
    }

    /// Retains the threads that may reach a statement.
    pub(super) fn who_comes(&self, around: &Around, threads: &mut Vec<i64>) {
        let Some((d, n)) = around.diverged.as_deref().zip(self.block(around)) else { return };
        let Some(ways) = d.ways(self.p, n) else { return };
        let comes = |t: &i64| {
            usize::try_from(*t).ok().and_then(|t| ways.comes.get(t)).copied().unwrap_or(true)
        };
        threads.retain(comes);
    }

    /// The number of threads of the block; -1 if it depends on symbols, so that no thread is known.
    /// `None` outside of all conditions and loops.
    fn block(&self, around: &Around) -> Option<i64> {
        around.diverged.as_ref()?;
        let size = |t: ThreadsId| self.p.threads[t].concat().to_fixed().map(|l| l.size());
        let n = self.p.specs[around.kernel].exec.and_then(|e| size(e.threads));
        Some(n.filter(|n| *n <= MAX_BLOCK_THREADS).unwrap_or(-1))
    }
}
