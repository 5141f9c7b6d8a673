//! A kernel as it is planned: its statements, views and buffers, and what each leaf does.

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

/// Most mbarriers of a block whose copies are told apart.
const MAX_MBARRIERS: usize = 1024;

/// A kernel ready to run.
pub(crate) struct Kernel<'p> {
    /// The program that it is a part of.
    pub program: &'p Program,
    /// Its spec.
    pub spec: SpecId,
    /// Threads of a block.
    pub n_threads: usize,
    /// Warps of a block, the last one possibly partial.
    pub n_warps: usize,
    /// Blocks of the grid.
    pub n_blocks: i64,
    /// Blocks of a cluster; 1 where there are none.
    pub cluster: usize,
    /// The statements of a block.
    pub body: Vec<Node>,
    /// Names of the loop variables, by slot.
    pub loops: Vec<String>,
    /// Specs without a body.
    pub leaves: Vec<LeafSpec>,
    /// Statements that synchronize: place and how they are written.
    pub syncs: Vec<(u32, String)>,
    /// Specs with a body and a meaning.
    pub checks: Vec<Check>,
    /// Thread tensors.
    pub thread_tensors: Vec<ThreadTensor>,
    /// Tensors.
    pub views: Vec<View>,
    /// Thread-value layouts of register tensors.
    pub dists: Vec<Dist>,
    /// Places that an access can be blamed on.
    pub sites: Vec<Site>,
    /// Shared memory of a block.
    pub shared: SharedPlan,
    /// Register buffers.
    pub registers: Vec<RegisterBuffer>,
    /// Buffers of the caller.
    pub globals: Vec<GlobalBuffer>,
    /// Those that are found through tensors of coordinates.
    pub gathers: Vec<Gathered>,
    /// The meaning of the kernel's own spec, where it has one.
    pub root: Option<RootSpec>,
    /// How far results may be from those without rounding, as a part of their scale.
    pub roundings: f64,
    /// Outputs of the kernel's own spec, whole tensors in global memory, and whether it reads them
    /// too.
    pub outputs: Vec<(usize, bool)>,
    /// Registers of a block at its start.
    pub pool: RegisterPool,
    /// Whether it has asynchronous MatMuls.
    pub has_flights: bool,
    /// Specs with a body that are not checked, each with the reason.
    pub unchecked: Vec<(u32, String)>,
}

/// The meaning of a kernel as a whole.
pub(crate) struct RootSpec {
    /// Its place.
    pub site: u32,
    /// Its meaning, all operands in global memory.
    pub reference: Reference,
}

/// The meaning of a spec on its operands.
pub(crate) struct Reference {
    /// The meaning of a named spec; none for a `means` block.
    pub meaning: Option<Meaning>,
    /// The meaning as steps.
    pub chain: Chain,
    /// The views that the chain's operands are.
    pub operands: Vec<usize>,
    /// Read operands.
    pub inputs: Vec<Source>,
    /// Written operands, in the order of the chain's outputs.
    pub outputs: Vec<usize>,
    /// Error bounds of the atoms in the body that compute the same function.
    pub stated: Vec<ErrorBound>,
    /// Types that casts of the body round to as the meaning does: an output of one may be rounded
    /// before any rounding.
    pub rounded: BTreeSet<Scalar>,
}

impl Reference {
    /// Whether the value before of a view matters.
    pub(crate) fn reads(&self, view: usize) -> bool {
        let operands = self.operands.iter().enumerate();
        operands.filter(|(_, v)| **v == view).any(|(i, _)| self.chain.reads(i))
    }
}

/// Where buffers lie in a block's shared memory.
#[derive(Default)]
pub(crate) struct SharedPlan {
    /// Size in bytes.
    pub size: usize,
    /// Bytes that one entry of the race detector stands for: the narrowest scalar.
    pub granule: usize,
    /// In order of allocation.
    pub buffers: Vec<SharedBuffer>,
}

impl SharedPlan {
    /// Whether some buffer is allocated again in each turn of a loop.
    pub(crate) fn begins_again(&self) -> bool {
        self.buffers.iter().any(|b| b.loops > 0)
    }

    /// Whether a byte may be written as one thing and read as another: of two buffers, or of one
    /// that begins again.
    pub(crate) fn has_owners(&self) -> bool {
        let mut ranges: Vec<(usize, usize)> =
            self.buffers.iter().map(SharedBuffer::range).collect();
        ranges.sort_unstable();
        self.begins_again() || ranges.windows(2).any(|two| two[1].0 < two[0].1)
    }
}

/// A buffer in shared memory.
pub(crate) struct SharedBuffer {
    /// Byte address.
    pub at: usize,
    /// Scalars.
    pub len: i64,
    /// The scalar type of its elements.
    pub scalar: Scalar,
    /// Bits of a scalar.
    pub bits: u32,
    /// Whether they are mbarriers.
    pub mbarriers: bool,
    /// Its place in the order of allocation.
    pub number: usize,
    /// How many loops its allocation stands in.
    pub loops: usize,
    /// On byte addresses relative to the buffer.
    pub swizzle: Option<Swizzle>,
    /// Its elements' names.
    pub names: Names,
}

impl SharedBuffer {
    /// Its first byte, and one past its last.
    fn range(&self) -> (usize, usize) {
        let bits = usize::try_from(self.len).unwrap_or(0).saturating_mul(self.bits as usize);
        (self.at, self.at.saturating_add(bits.div_ceil(8)))
    }
}

/// A buffer in registers.
pub(crate) struct RegisterBuffer {
    /// Scalars of one thread.
    pub len: usize,
    /// Bits of a scalar.
    pub bits: u32,
    /// Its elements' names.
    pub names: Names,
}

/// A buffer of the caller that is found through a tensor of coordinates.
pub(crate) struct Gathered {
    /// The buffer of the elements.
    pub source: usize,
    /// The buffer of the coordinates.
    pub index: usize,
    /// The scalar type of the coordinates.
    pub scalar: Scalar,
    /// Scalars of the source from one coordinate to the next.
    pub stride: i64,
    /// The unit of the offsets of views.
    pub unit: i64,
}

impl Gathered {
    /// The offset in the source of an offset of a view, for which `value` is the coordinate.
    pub(crate) fn place(&self, at: i64, value: Value) -> i64 {
        let coordinate = decode(self.scalar, value.bits) as i64;
        coordinate.saturating_mul(self.stride).saturating_add(at.rem_euclid(self.unit))
    }
}

/// A buffer of the caller.
pub(crate) struct GlobalBuffer {
    /// The buffer of the program.
    pub buffer: BufferId,
    /// Whether the kernel writes it.
    pub written: bool,
    /// Its elements' names.
    pub names: Names,
}

/// From offsets in a buffer to coordinates of the tensor that declares it.
pub(crate) struct Names {
    name: String,
    modes: Vec<i64>,
    inverse: Option<Inverse>,
}

impl Names {
    /// Names for the buffer of that name, from the sizes of its declared tensor.
    pub(crate) fn new(name: &str, sizes: &Sizes) -> Self {
        let inverse = Inverse::new(&sizes.leaves());
        Names { name: name.to_owned(), modes: sizes.extents(), inverse }
    }

    /// Names for a distributed tensor, whose registers have only numbers.
    pub(crate) fn numbered(name: &str) -> Self {
        Names { name: name.to_owned(), modes: Vec::new(), inverse: None }
    }

    /// `%As[3,5]`
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
        /// Threads that execute it.
        threads: usize,
        /// Its place.
        site: u32,
        /// The check at its end.
        check: Option<usize>,
        /// Whether a statement inside may wait for other threads.
        blocking: bool,
        /// Its statements.
        body: Vec<Node>,
    },
    /// New registers; shared memory is there from the start.
    Allocate(Option<usize>),
    /// An element becomes a number.
    Element {
        /// Slot of the number, beside those of loops.
        slot: usize,
        /// The view of the element.
        view: usize,
        /// The range of its tensor's integers: from, and below.
        within: Option<(i64, i64)>,
        /// Where they never fall, how far they lie apart.
        step: Option<i64>,
        /// Its place.
        site: u32,
    },
    /// A counted loop.
    For {
        /// Slot of its variable.
        slot: usize,
        /// First value.
        start: Index,
        /// Exclusive bound.
        end: Index,
        /// Positive step.
        step: i64,
        /// Upper bound of iterations.
        trips: u64,
        /// Its place.
        site: u32,
        /// Whether a statement inside may wait for other threads.
        blocking: bool,
        /// The statements that are repeated.
        body: Vec<Node>,
    },
    /// Both sides of a condition.
    If {
        /// All must hold.
        cond: Vec<Compare>,
        /// Its place.
        site: u32,
        /// Whether a statement inside may wait for other threads.
        blocking: bool,
        /// The statements for threads for which all conditions hold.
        then: Vec<Node>,
        /// The statements for the other threads.
        otherwise: Vec<Node>,
    },
    /// All threads named (none: of the block) arrive.
    Barrier {
        /// Named threads.
        threads: Option<usize>,
        /// Whether each thread names the group that it is in.
        own: bool,
        /// Its place.
        site: u32,
    },
    /// Another synchronization.
    Sync(SyncNode),
}

/// A synchronization statement.
pub(crate) struct SyncNode {
    /// The operation.
    pub op: SyncOp,
    /// The mbarriers.
    pub view: Option<usize>,
    /// The number of the statement, where it has one.
    pub number: Option<Index>,
    /// Numbers that the atom allows.
    pub takes: Option<AtomNumber>,
    /// Threads that execute it together.
    pub group: usize,
    /// Its place.
    pub site: u32,
}

/// A spec without a body.
pub(crate) struct LeafSpec {
    /// Its place.
    pub site: u32,
    /// The spec.
    pub spec: SpecId,
    /// Threads that execute it.
    pub threads: usize,
    /// Read operands.
    pub inputs: Vec<Source>,
    /// Written operands.
    pub outputs: Vec<usize>,
    /// Whether each thread executes it for itself, and no operand is spread over threads.
    pub alone: bool,
    /// Whether the whole block, or consecutive warps of it as one group, execute it by its meaning.
    /// Such specs are ordered as written: barriers are placed when they are decomposed.
    pub ordered: bool,
    /// The role of a cast that does not keep every value.
    pub cast: Option<CastRole>,
    /// Whether it writes memory that it may read, too.
    pub updates: bool,
    /// How it is executed.
    pub how: How,
    /// The atom that it names.
    pub atom: Option<String>,
}

/// How a leaf is executed.
pub(crate) enum How {
    /// By its atom.
    Atom(BoundAtom),
    /// A bulk copy by each thread.
    Bulk(BoundBulk),
    /// By the meaning of the spec, for each group of threads.
    Meaning(Meaning),
    /// Exchange between the lanes of a group.
    Shuffle {
        /// Which lane is read.
        op: carbyne_ir::ast::ShflOp,
        /// Lane, distance or mask.
        lane: i64,
    },
}

/// A comparison at the end of a body.
pub(crate) struct Check {
    /// Its place.
    pub site: u32,
    /// The spec.
    pub spec: SpecId,
    /// Threads that execute it.
    pub threads: usize,
    /// Its meaning.
    pub reference: Reference,
}

impl Kernel<'_> {
    /// Mbarriers of a block that are told apart.
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
                Node::Leaf(_) | Node::Allocate(_) | Node::Element { .. } | Node::Barrier { .. } => {
                    false
                }
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
            Node::Allocate(_) | Node::Element { .. } => false,
        })
    }

    /// `%As`, or what an operand written in place is called.
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
                format!("{} from a coordinate on", name.element(at))
            }
            Space::Shared(i) => self.shared.buffers[i].names.element(at),
            Space::Registers(i) => self.registers[i].names.element(at),
        }
    }

    /// Scalar type of a view.
    pub(crate) fn scalar(&self, view: usize) -> Scalar {
        self.views[view].scalar
    }
}
