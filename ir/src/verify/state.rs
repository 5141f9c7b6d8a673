//! The state of the verifier: of the program, and of all that surrounds a statement.

use crate::ast::CmpOp;
use crate::diag::Diagnostics;
use crate::expr::Dim;
use crate::expr::prove::Assumptions;
use crate::program::{BufferId, Program, SpecId};
use crate::span::Span;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

pub(super) struct Verifier<'p> {
    pub(super) p: &'p Program,
    pub(super) errors: Diagnostics,
    /// Made when it is asked for.
    pub(super) tiles: Option<Tiles>,
    /// Questions about extents over symbols.
    pub(super) questions: Questions,
}

/// The surroundings of a statement.
#[derive(Clone)]
pub(super) struct Around {
    pub(super) kernel: SpecId,
    /// The innermost spec with a body.
    pub(super) spec: SpecId,
    /// Buffers that statements may read or write here.
    pub(super) readable: HashSet<BufferId>,
    pub(super) writable: HashSet<BufferId>,
    /// The innermost condition or loop around the statement that differs from thread to thread.
    pub(super) diverged: Option<Rc<Diverged>>,
    /// Conditions around the statement that compare symbols.
    pub(super) asked: Vec<Asked>,
}

/// Extents of the innermost level of every tensor, by the buffer.
pub(super) type Tiles = HashSet<(BufferId, Vec<i64>)>;

/// A place where threads go separate ways.
pub(super) struct Diverged {
    pub(super) at: Span,
    pub(super) on: Parting,
    pub(super) outer: Option<Rc<Diverged>>,
    /// Found when it is asked for; none where the block's threads are not known.
    pub(super) ways: OnceCell<Option<Ways>>,
}

/// On what it depends which way a thread goes.
pub(super) enum Parting {
    /// Bounds of a loop.
    Bounds([Dim; 2]),
    /// Comparisons, all of which hold (`true`), or do not all hold.
    Answers(Vec<(Dim, CmpOp, Dim)>, bool),
}

/// The threads of a block, here and in all that is around.
pub(super) struct Ways {
    /// Those with one number go the same way.
    pub(super) class: Vec<u32>,
    /// Which threads may come.
    pub(super) comes: Vec<bool>,
}

/// Most proofs of one program that two extents are equal.
const MAX_PROOFS: usize = 1 << 10;

/// Most values that are tried for symbols, of all specs of one program.
const MAX_LOOKS: usize = 1 << 16;

/// A condition over symbols alone, around a statement.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) all: Vec<(Dim, CmpOp, Dim)>,
    /// Whether all of these hold, or not all of them.
    pub(super) hold: bool,
}

/// Decided questions of one program, and the work that is left for others.
pub(super) struct Questions {
    pub(super) proofs: usize,
    pub(super) looks: usize,
    /// Whether two extents are equal wherever they stand.
    pub(super) equal: HashMap<(Dim, Dim), bool>,
    pub(super) facts: Option<Assumptions>,
    /// Tensors of the caller over symbols of which it is decided whether two coordinates share an
    /// element.
    pub(super) written: HashSet<BufferId>,
}

impl Default for Questions {
    fn default() -> Self {
        let (equal, written) = (HashMap::new(), HashSet::new());
        Questions { proofs: MAX_PROOFS, looks: MAX_LOOKS, equal, facts: None, written }
    }
}
