//! Tracks what the writer of random programs knows at a statement of a kernel: tensors, written
//! elements, and accesses since the threads last synchronized. With this knowledge it reads only
//! written elements, and inserts a barrier where two accesses need one.

use super::{LOCAL, Writer};
use crate::gate::exact::{Flow, Function, Source};
use carbyne_ir::scalar::Scalar;
use std::collections::BTreeSet;

/// The features of a program.
pub(in crate::gate) type Features = BTreeSet<&'static str>;

/// All four quarters of a tile: top left, top right, bottom left, bottom right.
pub(super) const ALL: u8 = 0b1111;

/// Lines of text and their data flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Code {
    pub(super) lines: Vec<String>,
    pub(super) flow: Vec<Flow>,
}

impl Code {
    pub(super) fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    pub(super) fn append(&mut self, other: Code) {
        self.lines.extend(other.lines);
        self.flow.extend(other.flow);
    }

    /// Appends lines in braces.
    pub(super) fn within(&mut self, head: String, body: Vec<String>) {
        self.line(format!("{head} {{"));
        self.lines.extend(body.into_iter().map(|l| format!("  {l}")));
        self.line("}");
    }

    pub(super) fn op(&mut self, op: Function, inputs: Vec<Source>, to: (usize, Scalar), all: bool) {
        self.flow.push(Flow::Op { op, inputs, output: to, all });
    }
}

/// A tensor that a kernel allocates, in registers of the block or in shared memory.
#[derive(Clone, Debug)]
pub(super) struct Local {
    pub(super) name: String,
    pub(super) shared: bool,
    pub(super) scalar: Scalar,
    pub(super) shape: (i64, i64),
    /// The number of stages; 1 without stages.
    pub(super) stages: usize,
    /// Whether the layout is row-major, so that threads can access parts.
    pub(super) fixed: bool,
    /// The quarters of each stage that are written on every path to this statement.
    pub(super) written: Vec<u8>,
    /// The first of the tensors that share its memory.
    pub(super) root: usize,
    /// The number of copies from global memory so far.
    pub(super) fills: u32,
    /// Whether the name is in scope.
    pub(super) visible: bool,
    /// Whether the allocation is inside of a loop or a condition.
    pub(super) inner: bool,
    /// Whether no other tensor may share its memory.
    pub(super) locked: bool,
    pub(super) slot: usize,
}

impl Local {
    pub(super) fn bytes(&self) -> i64 {
        self.shape.0 * self.shape.1 * self.stages as i64 * self.scalar.bits() / 8
    }

    pub(super) fn is_written(&self) -> bool {
        self.written.iter().all(|w| *w == ALL)
    }
}

/// Registers of single threads.
#[derive(Clone, Debug)]
pub(super) struct Private {
    pub(super) name: String,
    pub(super) scalar: Scalar,
    pub(super) width: i64,
    pub(super) slot: usize,
}

/// The tensor that owns memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    Global(usize),
    Local(usize),
    Private(usize),
}

/// A part of a tensor.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) text: String,
    pub(super) owner: Owner,
    pub(super) scalar: Scalar,
    pub(super) shape: (i64, i64),
    pub(super) quarters: u8,
    /// The stage, if it is constant.
    pub(super) stage: Option<usize>,
    pub(super) slot: usize,
}

/// An access to memory since the last synchronization of the threads.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Access {
    pub(super) owner: Owner,
    pub(super) write: bool,
    /// For single threads: the part of each thread, as text.
    pub(super) part: Option<String>,
}

/// A kernel with a body, under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct Body {
    pub(super) index: usize,
    /// A bit for each of the caller's tensors that may be written.
    pub(super) writes: u8,
    /// The allocations at the start.
    pub(super) head: Code,
    pub(super) locals: Vec<Local>,
    pub(super) privates: Vec<Private>,
    pub(super) since: Vec<Access>,
    /// The variables of the enclosing loops, and their trip counts.
    pub(super) loops: Vec<(String, i64)>,
    /// The numbers of enclosing conditions on loop variables and on blocks.
    pub(super) ifs: (usize, usize),
    pub(super) depth: usize,
    /// Whether an enclosing condition depends on threads.
    pub(super) diverged: bool,
    /// Whether the kernel uses thread indices.
    pub(super) numbered: bool,
    pub(super) variables: usize,
    pub(super) names: usize,
    pub(super) inputs: BTreeSet<usize>,
    pub(super) outputs: BTreeSet<usize>,
    /// For each enclosing spec: the tensors that are read and written in it.
    pub(super) groups: Vec<(BTreeSet<Owner>, BTreeSet<Owner>)>,
    pub(super) features: Features,
    pub(super) slots: usize,
}

impl Body {
    pub(super) fn has(&mut self, feature: &'static str) {
        self.features.insert(feature);
    }

    pub(super) fn slot(&mut self) -> usize {
        self.slots += 1;
        self.slots
    }

    pub(super) fn fresh(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// The first of the tensors that share the owner's memory.
    pub(super) fn root(&self, owner: Owner) -> Owner {
        match owner {
            Owner::Local(l) => Owner::Local(self.locals[l].root),
            Owner::Global(_) | Owner::Private(_) => owner,
        }
    }

    fn note(&mut self, owner: Owner, write: bool, part: Option<&str>) {
        if let Owner::Local(l) = owner
            && !self.locals[l].shared
        {
            return;
        }
        let access = Access { owner: self.root(owner), write, part: part.map(str::to_owned) };
        if !self.since.contains(&access) {
            self.since.push(access);
        }
    }

    pub(super) fn mention(&mut self, owner: Owner, write: bool) {
        for (inputs, outputs) in &mut self.groups {
            if write { outputs } else { inputs }.insert(owner);
        }
        if let Owner::Global(g) = owner {
            if write { &mut self.outputs } else { &mut self.inputs }.insert(g);
        }
    }

    /// Records the accesses of a statement of the block, which is ordered after all statements
    /// before.
    pub(super) fn block_touches(&mut self, reads: &[View], write: &View) {
        self.since.clear();
        self.touches(reads, Some(write), None);
    }

    /// Records the access of a leaf of single threads. Returns whether it needs a barrier before
    /// it.
    pub(super) fn threads_touch(&mut self, view: &View, write: bool) -> bool {
        let root = self.root(view.owner);
        let part = Some(view.text.as_str());
        let clash = self
            .since
            .iter()
            .any(|a| a.owner == root && (a.write || write) && a.part.as_deref() != part);
        if clash {
            self.since.clear();
        }
        if write {
            self.touches(&[], Some(view), part);
        } else {
            self.touches(std::slice::from_ref(view), None, part);
        }
        clash
    }

    fn touches(&mut self, reads: &[View], write: Option<&View>, part: Option<&str>) {
        for v in reads {
            self.note(v.owner, false, part);
            self.mention(v.owner, false);
        }
        let Some(v) = write else { return };
        self.note(v.owner, true, part);
        self.mention(v.owner, true);
        let Owner::Local(l) = v.owner else { return };
        // Tensors that share the memory lose their contents.
        let root = self.locals[l].root;
        for (i, other) in self.locals.iter_mut().enumerate() {
            if i != l && other.shared && other.root == root {
                other.written.fill(0);
            }
        }
        if let (Some(stage), None) = (v.stage, part) {
            self.locals[l].written[stage] |= v.quarters;
        }
    }

    /// Adds the slots and the features of this kernel to the writer, also if the kernel is
    /// discarded.
    pub(super) fn close(&mut self, w: &mut Writer) {
        w.slots = w.slots.max(self.slots).max(LOCAL);
        w.features.append(&mut self.features);
    }
}
