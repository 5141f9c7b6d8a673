//! Defines the types that the checks of the verifier share. [`Verifier`] is the program with the
//! errors found so far.
//!
//! [`Around`] is the context of a statement: the kernel, the innermost spec with a body, the
//! buffers that the statement may read, those that it may write, the enclosing conditions and loops
//! at which threads of the block may part ([`Diverged`]), and the enclosing conditions over symbols
//! ([`Asked`]). Loops that all threads execute alike are not in it. [`Questions`] holds the known
//! answers about extents over symbols, and two budgets: how many proofs and how many values of
//! symbols may still be tried.

use crate::diag::Diagnostics;
use crate::expr::Dim;
use crate::expr::prove::Assumptions;
use crate::program::{BufferId, Condition, Program, SpecId};
use crate::span::Span;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

pub(super) struct Verifier<'p> {
    pub(super) p: &'p Program,
    pub(super) errors: Diagnostics,
    /// Computed on first use.
    pub(super) tiles: Option<Tiles>,
    /// Results and budgets for extents over symbols.
    pub(super) questions: Questions,
}

/// The context of a statement.
#[derive(Clone)]
pub(super) struct Around {
    pub(super) kernel: SpecId,
    /// The innermost spec with a body.
    pub(super) spec: SpecId,
    /// Buffers that statements may read here; `writable` are those they may write.
    pub(super) readable: HashSet<BufferId>,
    pub(super) writable: HashSet<BufferId>,
    /// The innermost enclosing condition or loop where threads diverge.
    pub(super) diverged: Option<Rc<Diverged>>,
    /// The enclosing conditions over symbols.
    pub(super) asked: Vec<Asked>,
}

/// The extents of the innermost level of every tensor, with its buffer.
pub(super) type Tiles = HashSet<(BufferId, Vec<i64>)>;

/// A condition or loop where threads may diverge.
pub(super) struct Diverged {
    pub(super) at: Span,
    pub(super) on: Parting,
    pub(super) outer: Option<Rc<Diverged>>,
    /// Computed on first use; `None` if the threads of the block are unknown.
    pub(super) ways: OnceCell<Option<Ways>>,
}

/// The expressions that decide the path of a thread.
pub(super) enum Parting {
    /// The bounds of a loop, and the sides of its further conditions.
    Bounds(Vec<Dim>),
    /// Comparisons that all hold (`true`), or do not all hold (`false`).
    Answers(Vec<Condition>, bool),
}

/// The classes of a block's threads with respect to all enclosing conditions and loops.
pub(super) struct Ways {
    /// Threads with equal numbers provably take the same path.
    pub(super) class: Vec<u32>,
    /// Whether a thread may reach the statement.
    pub(super) comes: Vec<bool>,
}

/// The maximal number of equality proofs for one program.
const MAX_PROOFS: usize = 1 << 10;

/// The maximal number of values that are tried for symbols of one program.
const MAX_LOOKS: usize = 1 << 16;

/// An enclosing condition over symbols.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) all: Vec<Condition>,
    /// Whether all comparisons hold, or not all of them.
    pub(super) hold: bool,
}

/// Known results for one program, and remaining budgets.
pub(super) struct Questions {
    pub(super) proofs: usize,
    pub(super) looks: usize,
    /// Whether two extents are equal, independent of enclosing conditions.
    pub(super) equal: HashMap<(Dim, Dim), bool>,
    pub(super) facts: Option<Assumptions>,
    /// Tensors of the caller over symbols that are already checked for shared elements.
    pub(super) written: HashSet<BufferId>,
}

impl Default for Questions {
    fn default() -> Self {
        let (equal, written) = (HashMap::new(), HashSet::new());
        Questions { proofs: MAX_PROOFS, looks: MAX_LOOKS, equal, facts: None, written }
    }
}
