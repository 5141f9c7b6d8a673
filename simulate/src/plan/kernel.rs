//! Defines [`Kernel`], a kernel that is ready to run: its statements, views and buffers, and how
//! each leaf is executed. `plan/lower.rs` creates it, and [`crate::exec`] runs it. It also names
//! the elements of buffers in errors: `%As[3,5]`.

use super::atom::{BoundAtom, BoundBulk};
use super::inverse::Inverse;
use super::site::{Site, Source};
use super::threads::ThreadTensor;
use super::view::{Dist, Space, View, coordinates, coordinates_text};
use crate::denote::{Chain, Meaning};
use crate::index::{Compare, Index, Sizes};
use crate::num::decode;
use crate::state::{RegisterPool, Value};
use carbyne_atoms::{AtomNumber, ErrorBound};
use carbyne_ir::ast::SyncOp;
use carbyne_ir::layout::Swizzle;
use carbyne_ir::program::{BufferId, CastRole, Program, SpecId};
use carbyne_ir::scalar::Scalar;
use std::collections::BTreeSet;

/// The largest number of mbarriers of a block whose copies are distinguished.
const MAX_MBARRIERS: usize = 1024;

/// A kernel ready to run.
pub(crate) struct Kernel<'p> {
    /// The program that contains the kernel.
    pub program: &'p Program,
    /// The kernel's spec.
    pub spec: SpecId,
    /// The number of threads of a block.
    pub n_threads: usize,
    /// The number of warps of a block; the last may be partial.
    pub n_warps: usize,
    /// The number of blocks of the grid.
    pub n_blocks: i64,
    /// The number of blocks of a cluster; 1 without clusters.
    pub cluster: usize,
    /// The statements of a block.
    pub body: Vec<Node>,
    /// The names of the loop variables, by slot.
    pub loops: Vec<String>,
    /// The specs without a body.
    pub leaves: Vec<LeafSpec>,
    /// The synchronization statements: site and text.
    pub syncs: Vec<(u32, String)>,
    /// The specs with a body and a meaning.
    pub checks: Vec<Check>,
    /// The thread tensors.
    pub thread_tensors: Vec<ThreadTensor>,
    /// The views of tensors.
    pub views: Vec<View>,
    /// The thread-value layouts of register tensors.
    pub dists: Vec<Dist>,
    /// The sites of statements, for errors about accesses.
    pub sites: Vec<Site>,
    /// The shared memory of a block.
    pub shared: SharedPlan,
    /// The register buffers.
    pub registers: Vec<RegisterBuffer>,
    /// The buffers of the caller.
    pub globals: Vec<GlobalBuffer>,
    /// The buffers that are accessed through tensors of coordinates.
    pub gathers: Vec<Gathered>,
    /// The meaning of the kernel's own spec, if it has one.
    pub root: Option<RootSpec>,
    /// The largest deviation of results from those without rounding, relative to their scale.
    pub roundings: f64,
    /// The outputs of the kernel's own spec, complete tensors in global memory, and whether it also
    /// reads them.
    pub outputs: Vec<(usize, bool)>,
    /// The registers of a block at its start.
    pub pool: RegisterPool,
    /// Whether the kernel has asynchronous MatMuls.
    pub has_flights: bool,
    /// The specs with a body that are not checked, each with the reason.
    pub unchecked: Vec<(u32, String)>,
}

/// The meaning of a complete kernel.
pub(crate) struct RootSpec {
    /// The site of the kernel's spec.
    pub site: u32,
    /// The meaning, with all operands in global memory.
    pub reference: Reference,
}

/// The meaning of a spec on its operands.
pub(crate) struct Reference {
    /// The meaning of a spec with a specific kind; none for a `means` block.
    pub meaning: Option<Meaning>,
    /// The meaning as a chain of steps.
    pub chain: Chain,
    /// The views of the chain's operands.
    pub operands: Vec<usize>,
    /// The read operands.
    pub inputs: Vec<Source>,
    /// The written operands, in the order of the chain's outputs.
    pub outputs: Vec<usize>,
    /// The error bounds of the atoms in the body that compute the same function.
    pub stated: Vec<ErrorBound>,
    /// The types to which casts of the body round as the meaning does. The shadow of an output of
    /// such a type may be rounded.
    pub rounded: BTreeSet<Scalar>,
}

impl Reference {
    /// Whether the meaning depends on the previous elements of a view.
    pub(crate) fn reads(&self, view: usize) -> bool {
        let operands = self.operands.iter().enumerate();
        operands.filter(|(_, v)| **v == view).any(|(i, _)| self.chain.reads(i))
    }
}

/// The arrangement of buffers in a block's shared memory.
#[derive(Default)]
pub(crate) struct SharedPlan {
    /// The size in bytes.
    pub size: usize,
    /// The number of bytes for one entry of the race detector: the narrowest scalar.
    pub granule: usize,
    /// The buffers, in order of allocation.
    pub buffers: Vec<SharedBuffer>,
}

impl SharedPlan {
    /// Whether some buffer is allocated again in each iteration of a loop.
    pub(crate) fn begins_again(&self) -> bool {
        self.buffers.iter().any(|b| b.loops > 0)
    }

    /// Whether a byte may be written and read as part of different tensors: of two buffers, or of
    /// one that is allocated again.
    pub(crate) fn has_owners(&self) -> bool {
        let mut ranges: Vec<(usize, usize)> =
            self.buffers.iter().map(SharedBuffer::range).collect();
        ranges.sort_unstable();
        self.begins_again() || ranges.windows(2).any(|two| two[1].0 < two[0].1)
    }
}

/// A buffer in shared memory.
pub(crate) struct SharedBuffer {
    /// The byte address.
    pub at: usize,
    /// The number of scalars.
    pub len: i64,
    /// The scalar type of its elements.
    pub scalar: Scalar,
    /// The number of bits of a scalar.
    pub bits: u32,
    /// Whether the elements are mbarriers.
    pub mbarriers: bool,
    /// The index in the order of allocation.
    pub number: usize,
    /// The number of loops around the allocation.
    pub loops: usize,
    /// The swizzle of byte addresses relative to the buffer.
    pub swizzle: Option<Swizzle>,
    /// The names of the elements.
    pub names: Names,
}

impl SharedBuffer {
    /// The first byte, and one past the last byte.
    fn range(&self) -> (usize, usize) {
        let bits = usize::try_from(self.len).unwrap_or(0).saturating_mul(self.bits as usize);
        (self.at, self.at.saturating_add(bits.div_ceil(8)))
    }
}

/// A buffer in registers.
pub(crate) struct RegisterBuffer {
    /// The number of scalars of one thread.
    pub len: usize,
    /// The number of bits of a scalar.
    pub bits: u32,
    /// The names of the elements.
    pub names: Names,
}

/// A buffer of the caller that is accessed through a tensor of coordinates.
pub(crate) struct Gathered {
    /// The buffer of the elements.
    pub source: usize,
    /// The buffer of the coordinates.
    pub index: usize,
    /// The scalar type of the coordinates.
    pub scalar: Scalar,
    /// The number of scalars of the source between consecutive coordinates.
    pub stride: i64,
    /// The unit of the offsets of views.
    pub unit: i64,
}

impl Gathered {
    /// The offset in the source for an offset of a view with the coordinate `value`.
    pub(crate) fn place(&self, at: i64, value: Value) -> i64 {
        let coordinate = decode(self.scalar, value.bits) as i64;
        coordinate.saturating_mul(self.stride).saturating_add(at.rem_euclid(self.unit))
    }
}

/// A buffer of the caller.
pub(crate) struct GlobalBuffer {
    /// The buffer of the program.
    pub buffer: BufferId,
    /// Whether the kernel writes the buffer.
    pub written: bool,
    /// The names of the elements.
    pub names: Names,
}

/// Names of elements: the map from offsets in a buffer to coordinates of its declared tensor.
pub(crate) struct Names {
    name: String,
    modes: Vec<i64>,
    inverse: Option<Inverse>,
}

impl Names {
    /// The names for a buffer, from the sizes of its declared tensor.
    pub(crate) fn new(name: &str, sizes: &Sizes) -> Self {
        let inverse = Inverse::new(&sizes.leaves());
        Names { name: name.to_owned(), modes: sizes.extents(), inverse }
    }

    /// The names for a distributed tensor, whose registers have only numbers.
    pub(crate) fn numbered(name: &str) -> Self {
        Names { name: name.to_owned(), modes: Vec::new(), inverse: None }
    }

    /// The name of an element, `%As[3,5]`.
    pub(crate) fn element(&self, at: i64) -> String {
        match self.inverse.as_ref().and_then(|i| i.element(at)) {
            Some(e) => format!("%{}{}", self.name, coordinates_text(&coordinates(&self.modes, e))),
            None => format!("scalar {at} of %{}", self.name),
        }
    }
}

/// A statement.
pub(crate) enum Node {
    /// A spec without a body.
    Leaf(usize),
    /// A spec with a body.
    Body {
        /// The threads that execute the spec.
        threads: usize,
        /// The site.
        site: u32,
        /// The check at its end.
        check: Option<usize>,
        /// Whether a statement inside may wait for other threads.
        blocking: bool,
        /// The statements of the body.
        body: Vec<Node>,
    },
    /// An allocation of registers; shared memory exists from the start.
    Allocate(Option<usize>),
    /// Reads an element of a tensor as an integer.
    Element {
        /// The slot of the integer, among those of loop variables.
        slot: usize,
        /// The view of the element.
        view: usize,
        /// The declared range of the tensor's integers: from, and below.
        within: Option<(i64, i64)>,
        /// For a tensor whose integers never decrease, the distance of consecutive elements.
        step: Option<i64>,
        /// The site.
        site: u32,
    },
    /// The declaration or a step of a counter.
    Step {
        /// The slot of the counter, among those of loop variables.
        slot: usize,
        /// The new value.
        value: Index,
        /// Whether the value may differ between threads.
        varying: bool,
        /// The site.
        site: u32,
    },
    /// A counted loop.
    For {
        /// The slot of the loop variable.
        slot: usize,
        /// The first value.
        start: Index,
        /// The exclusive bound.
        end: Index,
        /// Further conditions of an iteration.
        also: Vec<Compare>,
        /// The positive step.
        step: i64,
        /// An upper bound of the iterations.
        trips: u64,
        /// Whether it may have far fewer iterations: it has further conditions, or counters in its
        /// bounds.
        ends_early: bool,
        /// The site.
        site: u32,
        /// Whether a statement inside may wait for other threads.
        blocking: bool,
        /// The statements of the body.
        body: Vec<Node>,
    },
    /// A condition with both branches.
    If {
        /// The conditions, all of which must hold.
        cond: Vec<Compare>,
        /// The site.
        site: u32,
        /// Whether a statement inside may wait for other threads.
        blocking: bool,
        /// The statements for threads for which all conditions hold.
        then: Vec<Node>,
        /// The statements for the other threads.
        otherwise: Vec<Node>,
    },
    /// A barrier of the named threads (none: of the block).
    Barrier {
        /// The named threads.
        threads: Option<usize>,
        /// Whether each thread waits only for the group that contains it.
        own: bool,
        /// The site.
        site: u32,
    },
    /// Another synchronization statement.
    Sync(SyncNode),
}

/// A synchronization statement.
pub(crate) struct SyncNode {
    /// The operation.
    pub op: SyncOp,
    /// The mbarriers.
    pub view: Option<usize>,
    /// The number in the statement, if it has one.
    pub number: Option<Index>,
    /// The view of a register that must have its value first.
    pub after: Option<usize>,
    /// The numbers that the atom allows.
    pub takes: Option<AtomNumber>,
    /// The number of threads that execute the statement together.
    pub group: usize,
    /// The site.
    pub site: u32,
}

/// A spec without a body.
pub(crate) struct LeafSpec {
    /// The site.
    pub site: u32,
    /// The spec.
    pub spec: SpecId,
    /// The threads that execute the spec.
    pub threads: usize,
    /// The read operands.
    pub inputs: Vec<Source>,
    /// The written operands.
    pub outputs: Vec<usize>,
    /// Whether each thread executes the spec separately, and no operand is distributed over
    /// threads.
    pub alone: bool,
    /// Whether the complete block, or consecutive warps as one group, execute the spec by its
    /// meaning. Such specs are ordered as written: decomposition places the barriers.
    pub ordered: bool,
    /// The role of a cast that does not keep every value.
    pub cast: Option<CastRole>,
    /// Whether the spec writes memory that it may also read.
    pub updates: bool,
    /// The way of execution.
    pub how: How,
    /// The name of the atom.
    pub atom: Option<String>,
}

/// The ways to execute a leaf.
pub(crate) enum How {
    /// By its atom.
    Atom(BoundAtom),
    /// As a bulk copy by each thread.
    Bulk(BoundBulk),
    /// By the meaning of the spec, for each group of threads.
    Meaning(Meaning),
    /// As an exchange between the lanes of a group.
    Shuffle {
        /// The rule that selects the source lane.
        op: carbyne_ir::ast::ShflOp,
        /// The lane, distance or mask.
        lane: i64,
    },
}

/// The comparison at the end of a body.
pub(crate) struct Check {
    /// The site.
    pub site: u32,
    /// The spec.
    pub spec: SpecId,
    /// The threads that execute the spec.
    pub threads: usize,
    /// The meaning.
    pub reference: Reference,
}

impl Kernel<'_> {
    /// The number of mbarriers of a block that are distinguished.
    pub(crate) fn n_mbarriers(&self) -> usize {
        let all: usize =
            self.shared.buffers.iter().filter(|b| b.mbarriers).map(|b| b.len as usize).sum();
        all.min(MAX_MBARRIERS)
    }

    /// The number of the mbarrier at an offset of a view's buffer.
    pub(crate) fn mbarrier_number(&self, view: Option<usize>, at: i64) -> usize {
        let Some(Space::Shared(buffer)) = view.map(|v| self.views[v].space) else { return 0 };
        let before = self.shared.buffers[..buffer].iter().filter(|b| b.mbarriers);
        (before.map(|b| b.len as usize).sum::<usize>() + at as usize) % MAX_MBARRIERS
    }

    /// Whether threads wait for phases of mbarriers.
    pub(crate) fn waits_for_mbarriers(&self) -> bool {
        fn any(nodes: &[Node]) -> bool {
            nodes.iter().any(|node| match node {
                Node::Sync(sync) => sync.op == SyncOp::MbarrierWait,
                Node::Body { body, .. } | Node::For { body, .. } => any(body),
                Node::If { then, otherwise, .. } => any(then) || any(otherwise),
                Node::Leaf(_)
                | Node::Allocate(_)
                | Node::Element { .. }
                | Node::Step { .. }
                | Node::Barrier { .. } => false,
            })
        }
        any(&self.body)
    }

    /// Whether a statement may wait for threads of other warps.
    pub(crate) fn may_wait(&self, nodes: &[Node]) -> bool {
        nodes.iter().any(|node| match node {
            Node::Barrier { .. } => true,
            Node::Leaf(i) => {
                let leaf = &self.leaves[*i];
                match &leaf.how {
                    How::Atom(atom) => atom.group > 1 && atom.window > 32,
                    _ => self.thread_tensors[leaf.threads].spans_warps(),
                }
            }
            Node::Body { threads, check, blocking, .. } => {
                *blocking || check.is_some() && self.thread_tensors[*threads].spans_warps()
            }
            Node::For { blocking, .. } | Node::If { blocking, .. } => *blocking,
            Node::Sync(sync) => {
                sync.group > 32 || matches!(sync.op, SyncOp::MbarrierWait | SyncOp::ClusterWait)
            }
            Node::Allocate(_) | Node::Element { .. } | Node::Step { .. } => false,
        })
    }

    /// The name of a view: `%As`, or the text of a view written in place.
    pub(crate) fn view_name(&self, view: usize) -> String {
        self.program.tensor_name(self.views[view].tensor)
    }

    /// The name of the element at an offset of a view's buffer.
    pub(crate) fn element_name(&self, view: usize, at: i64) -> String {
        match self.views[view].space {
            Space::Global(i) | Space::Param(i) => self.globals[i].names.element(at),
            Space::Index => format!("coordinate {at}"),
            Space::Gathered(i) => {
                let g = &self.gathers[i];
                let (name, at) = (&self.globals[g.source].names, at.rem_euclid(g.unit));
                format!("{} of the rows at the coordinates", name.element(at))
            }
            Space::Shared(i) => self.shared.buffers[i].names.element(at),
            Space::Registers(i) => self.registers[i].names.element(at),
        }
    }

    /// The scalar type of a view.
    pub(crate) fn scalar(&self, view: usize) -> Scalar {
        self.views[view].scalar
    }
}
