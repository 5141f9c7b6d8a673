//! Defines [`Lockstep`]: the execution state of a set of threads that execute the same statement
//! together, so that the machine executes it once for all of them.
//!
//! The state is a stack of statement lists, each with a mask of active threads (like the
//! reconvergence stack of a SIMT processor), the values of loop variables, and a status: the
//! threads can continue, or wait for an event. Warps split off where their control flow differs,
//! and join again at a common statement.

use crate::expr::Env;
use crate::steps::Steps;
use crate::threads::Mask;
use crate::value::Value;
use carbyne_ir::expr::VarId;
use carbyne_ir::program::Stmt;
use std::cmp::Ordering;

/// A list of statements that threads are executing.
#[derive(Clone, Debug)]
pub(crate) struct Frame<'p> {
    pub(crate) stmts: &'p [Stmt],
    pub(crate) at: usize,
    pub(crate) mask: Mask,
    pub(crate) kind: Kind<'p>,
}

/// The statement to which a list belongs.
#[derive(Clone, Debug)]
pub(crate) enum Kind<'p> {
    Root,
    Body,
    /// One side of a condition. `otherwise` is the other side, with the lanes that execute it next.
    Branch {
        second: bool,
        otherwise: Option<(&'p [Stmt], Mask)>,
    },
    Loop {
        trip: u64,
        var: VarId,
        end: Value,
        end_by: Steps,
        step: i64,
    },
}

/// Whether threads can continue, or the reason why they wait.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Status {
    Ready,
    /// The threads wait for a phase of an mbarrier, for the cluster barrier or for registers.
    Waits,
    /// The threads wait until all threads of this mask arrive at the barrier.
    Barrier(Mask),
    /// The threads wait until others reach the same statement.
    Meets,
}

/// Threads of one block that are at the same statement.
#[derive(Clone, Debug)]
pub(crate) struct Lockstep<'p> {
    pub(crate) rank: usize,
    pub(crate) frames: Vec<Frame<'p>>,
    pub(crate) env: Env,
    pub(crate) status: Status,
}

impl<'p> Lockstep<'p> {
    pub(crate) fn mask(&self) -> Mask {
        self.frames.last().map_or(Mask::default(), |f| f.mask)
    }

    /// All threads of the set, including those that are inactive for now.
    pub(crate) fn all(&self) -> Mask {
        self.frames.first().map_or(Mask::default(), |f| f.mask)
    }

    /// The threads that execute the innermost body of a spec, by whose threads a counter is held.
    pub(crate) fn holders(&self) -> Mask {
        let mut frames = self.frames.iter().rev();
        let body = frames.find(|f| matches!(f.kind, Kind::Root | Kind::Body));
        body.map_or(Mask::default(), |f| f.mask)
    }

    pub(crate) fn stmt(&self) -> Option<&'p Stmt> {
        self.frames.last().and_then(|f| f.stmts.get(f.at))
    }

    pub(crate) fn advance(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.at += 1;
        }
    }

    /// Leaves the innermost body and continues after its statement.
    pub(crate) fn leave(&mut self) {
        self.frames.pop();
        self.advance();
    }

    /// Splits off the threads of some warps. Returns none if all or no threads are in these warps.
    pub(crate) fn part(&mut self, warps: u32) -> Option<Lockstep<'p>> {
        let mine = self.all().warps();
        if mine & warps == 0 || mine & !warps == 0 {
            return None;
        }
        let mut other = self.clone();
        other.restrict(warps);
        self.restrict(!warps);
        Some(other)
    }

    fn restrict(&mut self, warps: u32) {
        for frame in &mut self.frames {
            frame.mask = frame.mask.of_warps(warps);
            if let Kind::Branch { otherwise, .. } = &mut frame.kind {
                *otherwise = otherwise
                    .map(|(stmts, mask)| (stmts, mask.of_warps(warps)))
                    .filter(|(_, mask)| !mask.is_empty());
            }
        }
    }

    /// The variables of the loops that contain the current statement.
    pub(crate) fn loops(&self) -> impl Iterator<Item = VarId> {
        self.frames.iter().filter_map(|f| match f.kind {
            Kind::Loop { var, .. } => Some(var),
            _ => None,
        })
    }

    /// Compares the progress of two sets: the smaller one is behind.
    pub(crate) fn compare(&self, other: &Lockstep<'_>) -> Ordering {
        for (a, b) in self.frames.iter().zip(&other.frames) {
            let order = match (&a.kind, &b.kind) {
                (Kind::Loop { trip: a, .. }, Kind::Loop { trip: b, .. }) => a.cmp(b),
                (Kind::Branch { second: a, .. }, Kind::Branch { second: b, .. }) => a.cmp(b),
                _ => Ordering::Equal,
            };
            let order = order.then(a.at.cmp(&b.at));
            if order != Ordering::Equal {
                return order;
            }
        }
        self.frames.len().cmp(&other.frames.len())
    }

    /// Merges another set that is at the same statement.
    pub(crate) fn join(&mut self, other: &Lockstep<'p>) {
        let theirs = other.all();
        for (mine, frame) in self.frames.iter_mut().zip(&other.frames) {
            mine.mask = mine.mask.or(&frame.mask);
            if let (Kind::Branch { otherwise: a, .. }, Kind::Branch { otherwise: b, .. }) =
                (&mut mine.kind, &frame.kind)
            {
                *a = match (*a, *b) {
                    (Some((stmts, x)), Some((_, y))) => Some((stmts, x.or(&y))),
                    (x, y) => x.or(y),
                };
            }
            if let (
                Kind::Loop { end: a, end_by: by, .. },
                Kind::Loop { end: b, end_by: other, .. },
            ) = (&mut mine.kind, &frame.kind)
            {
                *a = a.with(b, &theirs);
                *by = by.common(*other);
            }
        }
        let all = self.all();
        for held in &other.env.loops {
            self.env.set_of(&theirs, &all, held.var, &held.value, held.by);
        }
    }
}
