//! Converged sets: threads of a block that execute the same statement under one active mask.
//!
//! A block begins as one converged set. Where control flow diverges and a statement inside may
//! wait, whole warps go separate ways. Two sets that reach the same position of the same iteration
//! reconverge. The position of a set is a path: the statement at each depth, and the branch or
//! iteration that leads to the next. Positions are ordered as a single set would execute them. A
//! position once passed is never reached again, since iterations are part of it.

use crate::index::LoopValue;
use crate::plan::{Mask, Node};
use std::cmp::Ordering;

/// Threads that are at one position, with the active mask of each statement list around them.
#[derive(Clone)]
pub(super) struct ConvergedSet<'k> {
    /// Block of the cluster.
    pub rank: usize,
    /// The statement lists that it is in, the innermost last.
    pub frames: Vec<Frame<'k>>,
    /// Values of the loop variables.
    pub loops: Vec<LoopValue>,
    /// Whether it can go on.
    pub status: Status,
    /// Whether it no longer waits for the rest of a group that a body is compared for.
    pub alone: bool,
}

/// A list of statements that a converged set is in.
#[derive(Clone)]
pub(super) struct Frame<'k> {
    /// The list.
    pub nodes: &'k [Node],
    /// The statement it is at or in.
    pub at: usize,
    /// The active mask: the threads that execute the list.
    pub mask: Mask,
    /// What the list is.
    pub kind: Kind<'k>,
}

/// What a list of statements is.
#[derive(Clone)]
pub(super) enum Kind<'k> {
    /// The kernel's body.
    Root,
    /// A branch of a condition. The threads in `otherwise`, of the same warps, take the other
    /// branch next.
    Branch {
        /// Whether it is the second branch.
        second: bool,
        /// The other branch and its threads.
        otherwise: Option<(&'k [Node], Mask)>,
    },
    /// The body of a spec.
    Body,
    /// One iteration of a loop.
    Loop {
        /// The number of the iteration, from 0.
        trip: u64,
        /// One past the last value, the same for all threads or one for each.
        end: LoopValue,
    },
}

/// Whether a converged set can go on.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Status {
    /// It can go on.
    Ready,
    /// Its statement needs more threads, which may still arrive.
    Meeting,
    /// It waits for what its synchronization statement names.
    Waiting,
    /// It waits at a barrier of these threads.
    Barrier(Mask),
}

impl<'k> ConvergedSet<'k> {
    /// The set of all threads of a block, before the first statement.
    pub(super) fn new(rank: usize, nodes: &'k [Node], mask: Mask, n_loops: usize) -> Self {
        ConvergedSet {
            rank,
            frames: vec![Frame { nodes, at: 0, mask, kind: Kind::Root }],
            loops: vec![LoopValue::Uniform(0); n_loops],
            status: Status::Ready,
            alone: false,
        }
    }

    /// The innermost list. None when the set has ended.
    pub(super) fn top(&mut self) -> Option<&mut Frame<'k>> {
        self.frames.last_mut()
    }

    /// The active mask of the innermost list.
    pub(super) fn mask(&self) -> Mask {
        self.frames.last().map_or(Mask::NONE, |f| f.mask)
    }

    /// All threads that it holds, those that wait for others of their warp included.
    pub(super) fn all(&self) -> Mask {
        self.frames.first().map_or(Mask::NONE, |f| f.mask)
    }

    /// Advances to the next statement of its list.
    pub(super) fn advance(&mut self) {
        (self.status, self.alone) = (Status::Ready, false);
        if let Some(frame) = self.frames.last_mut() {
            frame.at += 1;
        }
    }

    /// Moves the warps into a converged set of their own. None if they have no active thread.
    pub(super) fn part(&mut self, warps: u32) -> Option<ConvergedSet<'k>> {
        let mut other = self.clone();
        for (mine, theirs) in self.frames.iter_mut().zip(&mut other.frames) {
            theirs.mask = mine.mask.of_warps(warps);
            mine.mask = mine.mask.of_warps(!warps);
            let both = (&mut mine.kind, &mut theirs.kind);
            if let (
                Kind::Branch { otherwise: Some((_, m)), .. },
                Kind::Branch { otherwise: Some((_, t)), .. },
            ) = both
            {
                (*m, *t) = (m.of_warps(!warps), m.of_warps(warps));
            }
        }
        (!other.mask().is_empty()).then_some(other)
    }

    /// Compares its position with that of another set of the same block.
    pub(super) fn compare(&self, other: &ConvergedSet<'_>) -> Ordering {
        for (a, b) in self.frames.iter().zip(&other.frames) {
            let inside = a.kind.step().cmp(&b.kind.step()).then(a.at.cmp(&b.at));
            if inside != Ordering::Equal {
                return inside;
            }
        }
        // A set inside a statement is ahead of one that is about to begin it.
        self.frames.len().cmp(&other.frames.len())
    }

    /// Reconverges with another set at the same position.
    pub(super) fn join(&mut self, other: &ConvergedSet<'k>) {
        for (mine, theirs) in self.frames.iter_mut().zip(&other.frames) {
            match (&mut mine.kind, &theirs.kind) {
                (Kind::Loop { end, .. }, Kind::Loop { end: other, .. }) => {
                    end.take(other, &theirs.mask);
                }
                (
                    Kind::Branch { otherwise, .. },
                    Kind::Branch { otherwise: Some((nodes, mask)), .. },
                ) => {
                    let before = otherwise.as_ref().map_or(Mask::NONE, |(_, m)| *m);
                    *otherwise = Some((nodes, before.or(mask)));
                }
                _ => {}
            }
            mine.mask = mine.mask.or(&theirs.mask);
        }
        let theirs = other.all();
        for (mine, value) in self.loops.iter_mut().zip(&other.loops) {
            mine.take(value, &theirs);
        }
    }
}

impl Kind<'_> {
    /// The number of the branch or iteration that was entered, in the order of execution.
    fn step(&self) -> u64 {
        match self {
            Kind::Root | Kind::Body => 0,
            Kind::Branch { second, .. } => u64::from(*second),
            Kind::Loop { trip, .. } => *trip,
        }
    }
}
