//! Defines [`ConvergedSet`]: threads of a block that execute a statement together under one active
//! mask. The simulator advances such sets instead of single threads; `schedule.rs` chooses the next
//! one.
//!
//! A block begins as one converged set. Where control flow diverges and a statement inside may
//! wait, complete warps separate. Two sets that reach one position of one iteration reconverge. The
//! position of a set is a path: the statement at each depth, and the branch or iteration that leads
//! to the next depth. Positions are ordered as a single set would execute them. A set never reaches
//! a position twice, because positions contain iterations.

use crate::index::LoopValue;
use crate::plan::{Mask, Node};
use std::cmp::Ordering;

/// Threads at one position, with the active mask of each enclosing statement list.
#[derive(Clone)]
pub(super) struct ConvergedSet<'k> {
    /// The rank of the block in the cluster.
    pub rank: usize,
    /// The enclosing statement lists, the innermost last.
    pub frames: Vec<Frame<'k>>,
    /// The values of the loop variables.
    pub loops: Vec<LoopValue>,
    /// Whether the set can continue.
    pub status: Status,
    /// Whether the set no longer waits for the rest of a group whose body is compared.
    pub alone: bool,
}

/// A statement list that a converged set executes.
#[derive(Clone)]
pub(super) struct Frame<'k> {
    /// The statements.
    pub nodes: &'k [Node],
    /// The index of the current statement.
    pub at: usize,
    /// The active mask: the threads that execute the list.
    pub mask: Mask,
    /// The kind of the list.
    pub kind: Kind<'k>,
}

/// The kinds of statement lists.
#[derive(Clone)]
pub(super) enum Kind<'k> {
    /// The body of the kernel.
    Root,
    /// A branch of a condition. The threads in `otherwise`, from the same warps, take the other
    /// branch next.
    Branch {
        /// Whether this is the second branch.
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
        /// One past the last value: uniform, or one value for each thread.
        end: LoopValue,
    },
}

/// The states of a converged set.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Status {
    /// The set can continue.
    Ready,
    /// The statement needs more threads, which may still arrive.
    Meeting,
    /// The set waits for the event of its synchronization statement.
    Waiting,
    /// The set waits at a barrier of these threads.
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

    /// The innermost list. None after the end of the set.
    pub(super) fn top(&mut self) -> Option<&mut Frame<'k>> {
        self.frames.last_mut()
    }

    /// The active mask of the innermost list.
    pub(super) fn mask(&self) -> Mask {
        self.frames.last().map_or(Mask::NONE, |f| f.mask)
    }

    /// All threads of the set, including inactive ones that wait for others of their warp.
    pub(super) fn all(&self) -> Mask {
        self.frames.first().map_or(Mask::NONE, |f| f.mask)
    }

    /// Advances to the next statement of the innermost list.
    pub(super) fn advance(&mut self) {
        (self.status, self.alone) = (Status::Ready, false);
        if let Some(frame) = self.frames.last_mut() {
            frame.at += 1;
        }
    }

    /// Moves warps into a converged set of their own. None if they have no active thread.
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

    /// Compares the position with that of another set of the same block.
    pub(super) fn compare(&self, other: &ConvergedSet<'_>) -> Ordering {
        for (a, b) in self.frames.iter().zip(&other.frames) {
            let inside = a.kind.step().cmp(&b.kind.step()).then(a.at.cmp(&b.at));
            if inside != Ordering::Equal {
                return inside;
            }
        }
        // A set inside a statement is ahead of a set at the start of the statement.
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
    /// The number of the entered branch or iteration, in the order of execution.
    fn step(&self) -> u64 {
        match self {
            Kind::Root | Kind::Body => 0,
            Kind::Branch { second, .. } => u64::from(*second),
            Kind::Loop { trip, .. } => *trip,
        }
    }
}
