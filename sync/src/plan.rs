//! Prepares the memory accesses of a kernel in the form in which the machine needs them: the
//! checker's plan. It is computed once, before the kernel is followed. Buffers become granules
//! (units of tracked memory), tensors become lists of offsets, and leaves become operands with the
//! threads that access them.

mod granules;
mod leaf;
mod obstacle;
mod places;
mod registers;

use crate::expr::Exprs;
use crate::memory::Does;
use crate::report::{AccessKind, Place, Unfollowed};
use crate::view_bounds::Limit;
use carbyne_atoms::{AtomTable, Visibility, smem};
use carbyne_ir::ast::AccumulateOp;
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::Swizzle;
use carbyne_ir::program::{BufferId, Program, SpecId, Stmt, StmtId, StmtKind, TensorId};
use carbyne_ir::scalar::Scalar;
use obstacle::Obstacle;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The size of the largest granule of shared memory, in bytes.
const MAX_GRANULE: i64 = 16;

/// The size of the largest granule of global memory, in bytes. Boxes of TMA copies take whole rows.
const MAX_GLOBAL_GRANULE: i64 = 1 << 12;

/// The memory of a buffer, as the checker tracks it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// Shared memory: an index of [`Plan::shared`].
    Shared(usize),
    /// Global memory that the kernel writes: an index of [`Plan::globals`].
    Global(usize),
    /// Registers that asynchronous MatMuls use: an index of [`Plan::registers`].
    Registers(usize),
    /// Memory without conflicts: a thread's own registers, data that the kernel only reads,
    /// numbers.
    Free,
    /// Elements selected by a tensor of integers, in memory that the kernel writes.
    Gathered,
}

/// A buffer in shared memory.
#[derive(Clone, Debug)]
pub(crate) struct SharedBuffer {
    pub(crate) at: i64,
    pub(crate) bytes: i64,
    pub(crate) bits: i64,
    pub(crate) swizzle: Option<Swizzle>,
    pub(crate) component: usize,
}

/// Buffers in shared memory that overlap.
#[derive(Clone, Debug)]
pub(crate) struct Component {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) granule: i64,
    pub(crate) first_cell: usize,
}

/// A buffer in global memory.
#[derive(Clone, Debug)]
pub(crate) struct GlobalBuffer {
    pub(crate) id: BufferId,
    /// The number of scalars in a granule.
    pub(crate) granule: i64,
}

/// A tensor as a list of offsets in a buffer.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) buffer: BufferId,
    pub(crate) space: Space,
    pub(crate) offset: Dim,
    pub(crate) peer: Option<Dim>,
    /// For each element, its distance from the offset, in scalars.
    pub(crate) places: Vec<i64>,
    /// The extents of the modes.
    pub(crate) modes: Vec<i64>,
    /// Whether the tensor is distributed over threads.
    pub(crate) spread: bool,
    pub(crate) bits: i64,
    /// For each granule, the first element in it.
    pub(crate) first: Vec<u32>,
    /// The modes whose end the tile may exceed.
    pub(crate) limits: Vec<Limit>,
    /// Whether the view has further such modes, whose coordinates cannot be derived from the
    /// elements.
    pub(crate) is_open_ended: bool,
}

/// An operand of a leaf.
#[derive(Clone, Debug)]
pub(crate) struct OperandPlan {
    pub(crate) view: usize,
    /// For each thread of a group, the elements that it accesses, reduced to those that begin a
    /// granule. None means all elements.
    pub(crate) of_thread: Option<Vec<Vec<u32>>>,
    /// Whether every warp of the group accesses the whole operand, through a matrix descriptor.
    pub(crate) described: bool,
    /// The position of the operand in the tensor of its tensor map, if that matters.
    pub(crate) boxed: Option<BoxPlace>,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// The position of a box in the tensor of its tensor map, with the modes in the order of the view.
#[derive(Clone, Debug)]
pub(crate) struct BoxPlace {
    pub(crate) at: Vec<Dim>,
    pub(crate) extents: Vec<i64>,
}

impl BoxPlace {
    /// Whether an element of the box lies in the tensor, for a box that begins at `at`.
    pub(crate) fn has(&self, e: i64, modes: &[i64], at: &[i64]) -> bool {
        let mut rest = e;
        modes.iter().zip(at).zip(&self.extents).all(|((n, at), extent)| {
            let c = rest % (*n).max(1);
            rest /= (*n).max(1);
            (0..*extent).contains(&at.saturating_add(c))
        })
    }

    /// Whether the whole box lies in the tensor.
    pub(crate) fn has_all(&self, modes: &[i64], at: &[i64]) -> bool {
        modes.iter().zip(at).zip(&self.extents).all(|((n, at), extent)| {
            *at >= 0 && at.checked_add(*n).is_some_and(|end| end <= *extent)
        })
    }
}

/// A bulk copy from its first operand to its second one.
#[derive(Clone, Debug)]
pub(crate) struct Bulk {
    pub(crate) bar: Option<usize>,
    pub(crate) bytes: i64,
    pub(crate) mask: Option<Dim>,
}

/// The way in which threads execute a leaf.
#[derive(Clone, Debug)]
pub(crate) enum How {
    Bulk(Bulk),
    /// By groups of the size of the atom, which fill windows of whole warps. `places` holds for
    /// each thread of a window its index in its group.
    Atom {
        places: Vec<usize>,
        size: usize,
    },
    /// By its meaning, without an atom. The thread of a group that accesses an element is unknown.
    Meaning,
}

/// A leaf with its operands.
#[derive(Clone, Debug)]
pub(crate) struct LeafPlan {
    pub(crate) how: How,
    pub(crate) visibility: Visibility,
    pub(crate) operands: Vec<OperandPlan>,
    pub(crate) accumulates: Option<AccumulateOp>,
    pub(crate) valid: Option<Dim>,
    /// For a MatMul: the numbers of rows and columns of its accumulator.
    pub(crate) shape: (i64, i64),
    /// Whether any operand can be in a pair.
    pub(crate) matters: bool,
}

impl LeafPlan {
    /// The effect of the leaf on an operand. An operand that is written may be read, too.
    pub(crate) fn does(&self, o: &OperandPlan) -> Does {
        if o.writes { Does::writing(self.accumulates) } else { Does::Read }
    }
}

/// A statement, or the kernel itself.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) place: Place,
    /// Whether the statement synchronizes.
    synchronizes: bool,
}

/// The first statement of a list. It identifies the list, since no other list contains it.
pub(crate) fn first_of(stmts: &[Stmt]) -> Option<StmtId> {
    stmts.first().map(|s| s.id)
}

/// The accesses of a kernel.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) sites: Vec<Site>,
    site_of: FxHashMap<StmtId, u32>,
    pub(crate) shared: Vec<SharedBuffer>,
    pub(crate) components: Vec<Component>,
    pub(crate) n_cells: usize,
    pub(crate) globals: Vec<GlobalBuffer>,
    pub(crate) registers: Vec<(BufferId, i64)>,
    spaces: HashMap<BufferId, Space>,
    pub(crate) views: Vec<View>,
    view_of: HashMap<TensorId, Result<usize, Obstacle>>,
    pub(crate) leaves: BTreeMap<SpecId, LeafPlan>,
    /// For each arrival that names a register by `after=`, by its site: the read of the register.
    pub(crate) afters: BTreeMap<u32, LeafPlan>,
    /// Accesses that cannot be followed.
    pub(crate) lost: Vec<Unfollowed>,
    /// The first statements of the bodies of loops whose first iteration represents all iterations.
    once: FxHashSet<Option<StmtId>>,
    /// The number of elements of all views.
    n_places: i64,
}

/// The reason why a kernel cannot be followed at all.
pub(crate) struct Refusal {
    pub(crate) why: String,
}

impl Plan {
    pub(crate) fn site(&self, stmt: &Stmt) -> u32 {
        self.site_of.get(&stmt.id).copied().unwrap_or(0)
    }

    /// Whether the first iteration of a loop with this body represents all iterations.
    pub(crate) fn is_once(&self, body: &[Stmt]) -> bool {
        self.once.contains(&first_of(body))
    }

    /// Whether a site is a synchronization statement.
    pub(crate) fn synchronizes(&self, site: u32) -> bool {
        self.sites.get(site as usize).is_some_and(|s| s.synchronizes)
    }

    pub(crate) fn view(&self, tensor: TensorId) -> Result<usize, Obstacle> {
        match self.view_of.get(&tensor) {
            Some(found) => found.clone(),
            None => Err(Obstacle::Place),
        }
    }

    /// Plans the accesses of a kernel for these values of symbols. Buffers in `owned` are not
    /// tracked, since no two threads access the same element of them ([`owned`]).
    ///
    /// [`owned`]: crate::owners::owned
    ///
    /// # Errors
    /// The reason why the kernel cannot be followed.
    pub(crate) fn new(
        exprs: &Exprs<'_>,
        kernel: SpecId,
        atoms: &AtomTable,
        owned: &BTreeSet<BufferId>,
    ) -> Result<Plan, Refusal> {
        let p = exprs.program;
        let mut plan = Plan::default();
        let buffers = smem::buffers(p, kernel);
        plan.sites.push(Site { place: kernel_place(p, kernel), synchronizes: false });
        plan.place_shared(exprs, &buffers, atoms)
            .map_err(|why| Refusal { why: why.to_string() })?;
        plan.find_written(exprs, kernel, atoms, owned);
        for stmt in p.walk_body(kernel).stmts() {
            let site = plan.sites.len() as u32;
            plan.site_of.insert(stmt.id, site);
            let (spec, what) = match &stmt.kind {
                StmtKind::Spec(id) => (Some(*id), p.specs[*id].kind.to_string()),
                StmtKind::Barrier(None) => (None, "barrier".to_owned()),
                StmtKind::Barrier(Some(t)) => {
                    let name = p.threads[*t].name.as_deref();
                    (None, name.map_or("barrier".to_owned(), |n| format!("barrier(#{n})")))
                }
                StmtKind::Sync(sync) => (None, sync.op.to_string()),
                _ => (None, String::new()),
            };
            let synchronizes = matches!(stmt.kind, StmtKind::Barrier(_) | StmtKind::Sync(_));
            let (span, line, node) = (stmt.span, stmt.line, stmt.node);
            let place = Place { span, line, node, spec, what };
            plan.sites.push(Site { place, synchronizes });
            match &stmt.kind {
                StmtKind::Spec(id) if p.specs[*id].body.is_none() => {
                    match plan.leaf(exprs, *id, atoms) {
                        Ok(leaf) => drop(plan.leaves.insert(*id, leaf)),
                        Err(why) => {
                            let spec = &p.specs[*id];
                            let reads = spec.input_tensors().map(|t| (t, AccessKind::Read));
                            let writes = spec.outputs.iter().map(|t| (*t, AccessKind::Write));
                            plan.lose(p, reads.chain(writes), site, &why);
                        }
                    }
                }
                StmtKind::Sync(sync) => {
                    if let Some(t) = sync.tensor
                        && p.tensors[t].map.is_none()
                    {
                        let _ = plan.add_view(exprs, t);
                    }
                    if let Some(t) = sync.after {
                        match plan.after(exprs, t) {
                            Ok(read) => drop(plan.afters.insert(site, read)),
                            Err(why) => plan.lose(p, [(t, AccessKind::Read)], site, &why),
                        }
                    }
                }
                _ => {}
            }
        }
        plan.join_registers(exprs, kernel);
        plan.choose_granules(p);
        Ok(plan)
    }

    /// Stops tracking these buffers of global memory, in which no pair exists.
    pub(crate) fn forget(&mut self, which: &[bool]) {
        for view in &mut self.views {
            if matches!(view.space, Space::Global(g) if which.get(g) == Some(&true)) {
                view.space = Space::Free;
            }
        }
        for leaf in self.leaves.values_mut().filter(|l| !matches!(l.how, How::Bulk(_))) {
            let free = |o: &OperandPlan| matches!(self.views[o.view].space, Space::Free);
            leaf.matters &= !leaf.operands.iter().all(free);
        }
    }

    /// Records accesses of a statement that cannot be followed.
    fn lose(
        &mut self,
        p: &Program,
        accesses: impl IntoIterator<Item = (TensorId, AccessKind)>,
        site: u32,
        why: &Obstacle,
    ) {
        for (t, kind) in accesses {
            let buffer = p.tensors[t].buffer;
            let space = self.spaces.get(&buffer).copied().unwrap_or(Space::Free);
            if !matches!(space, Space::Free) {
                let (place, why) = (self.place(site), why.to_string());
                self.lost.push(Unfollowed { place, buffer: Some(buffer), kind, why });
            }
        }
    }

    /// A statement as a place in the text.
    pub(crate) fn place(&self, site: u32) -> Place {
        self.sites[site as usize].place.clone()
    }

    /// The elements of an operand that a thread accesses, reduced to those that begin a granule.
    pub(crate) fn elements<'l>(
        &'l self,
        leaf: &'l LeafPlan,
        o: &'l OperandPlan,
        thread: usize,
    ) -> &'l [u32] {
        match (&leaf.how, &o.of_thread) {
            (How::Atom { places, .. }, Some(all)) => {
                all.get(places[thread % places.len()]).map_or(&[], Vec::as_slice)
            }
            _ => &self.views[o.view].first,
        }
    }

    /// The granules of an element of a buffer in shared memory, as indices within one block.
    #[inline]
    pub(crate) fn shared_cells(
        &self,
        buffer: usize,
        at: i64,
    ) -> Option<std::ops::RangeInclusive<usize>> {
        let b = &self.shared[buffer];
        let bit = at.checked_mul(b.bits)?;
        let mut byte = bit.div_euclid(8);
        if let Some(s) = b.swizzle {
            byte = s.apply(byte);
        }
        if byte < 0 || byte >= b.bytes {
            return None;
        }
        let c = &self.components[b.component];
        let first = (b.at + byte - c.start) / c.granule;
        let last = (b.at + byte + (b.bits + 7) / 8 - 1 - c.start) / c.granule;
        Some(c.first_cell + first as usize..=c.first_cell + last as usize)
    }
}

/// The place of a kernel in the text.
pub(crate) fn kernel_place(p: &Program, kernel: SpecId) -> Place {
    let spec = &p.specs[kernel];
    let what = "the kernel".to_owned();
    Place { span: spec.span, line: spec.line, node: spec.node, spec: Some(kernel), what }
}

/// Whether a buffer holds mbarriers.
pub(crate) fn is_mbarrier(p: &Program, buffer: BufferId) -> bool {
    p.buffers[buffer].scalar == Scalar::Mbarrier
}
