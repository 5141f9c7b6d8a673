//! What a kernel accesses: its buffers as granules of memory, its tensors as places in them, its leaves as operands.

use crate::expr::Exprs;
use carbyne_atoms::bulk::bulk_copy;
use carbyne_atoms::{Atom, AtomOp, AtomTable, OperandAccess, Visibility, smem};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::Swizzle;
use carbyne_ir::program::{BufferId, Program, SpecId, Stmt, StmtKind, TensorId};
use carbyne_ir::scalar::{Memory, Scalar};
use carbyne_ir::span::Span;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Elements of one view that are followed.
const MAX_ELEMENTS: i64 = 1 << 20;
/// Elements of all views together.
const MAX_PLACES: i64 = 1 << 24;
/// Bytes of the largest granule.
const MAX_GRANULE: i64 = 16;

/// Where a buffer is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// Shared memory: an index of [`Plan::shared`].
    Shared(usize),
    /// Global memory that the kernel writes: an index of [`Plan::globals`].
    Global(usize),
    /// Registers that asynchronous MatMuls use: an index of [`Plan::registers`].
    Registers(usize),
    /// Nobody can conflict: a thread's own registers, what the kernel only reads, numbers.
    Free,
    /// Found through a tensor of integers, of memory that the kernel writes.
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
    /// Scalars of a granule.
    pub(crate) granule: i64,
}

/// A tensor as places in a buffer.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) buffer: BufferId,
    pub(crate) space: Space,
    pub(crate) offset: Dim,
    pub(crate) peer: Option<Dim>,
    /// Of each element, from the offset, in scalars.
    pub(crate) places: Vec<i64>,
    /// Extents of its modes.
    pub(crate) modes: Vec<i64>,
    /// Whether it is spread over threads.
    pub(crate) spread: bool,
    pub(crate) bits: i64,
    /// Of each granule, an element that begins it.
    pub(crate) first: Vec<u32>,
}

/// An operand of a leaf.
#[derive(Clone, Debug)]
pub(crate) struct OperandPlan {
    pub(crate) view: usize,
    /// Which elements of its view each thread of a group accesses, those that begin a granule; all where not stated.
    pub(crate) of_thread: Option<Vec<Vec<u32>>>,
    /// Every warp of the group accesses all of it.
    pub(crate) described: bool,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// Where a box is in the tensor of its map, its modes as those of the view.
#[derive(Clone, Debug)]
pub(crate) struct BoxPlace {
    pub(crate) of_source: bool,
    pub(crate) at: Vec<Dim>,
    pub(crate) extents: Vec<i64>,
}

/// A bulk copy.
#[derive(Clone, Debug)]
pub(crate) struct Bulk {
    pub(crate) source: usize,
    pub(crate) target: usize,
    pub(crate) boxed: Option<BoxPlace>,
    pub(crate) bar: Option<usize>,
    pub(crate) bytes: i64,
    pub(crate) mask: Option<Dim>,
}

/// How a leaf is executed.
#[derive(Clone, Debug)]
pub(crate) enum How {
    Bulk(Bulk),
    /// By groups of an atom's size, which fill windows of whole warps.
    Atom {
        window: usize,
        groups: Vec<Vec<u16>>,
        size: usize,
        visibility: Visibility,
    },
    /// As it means: of a group of several threads it is not said who accesses what.
    Meaning,
}

/// A leaf.
#[derive(Clone, Debug)]
pub(crate) struct LeafPlan {
    pub(crate) how: How,
    pub(crate) operands: Vec<OperandPlan>,
    pub(crate) accumulates: Option<carbyne_ir::ast::AccumulateOp>,
    pub(crate) valid: Option<Dim>,
    /// Of a MatMul: rows and columns of its accumulator.
    pub(crate) shape: (i64, i64),
    /// Whether any operand can conflict.
    pub(crate) matters: bool,
}

/// A place in the text.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) span: Span,
    pub(crate) line: u32,
    pub(crate) node: carbyne_ir::ast::NodeId,
    pub(crate) spec: Option<SpecId>,
    pub(crate) what: String,
}

/// An access that is not followed.
#[derive(Clone, Debug)]
pub(crate) struct Lost {
    pub(crate) site: u32,
    pub(crate) buffer: Option<BufferId>,
    pub(crate) does_write: bool,
    pub(crate) why: String,
}

/// What a kernel accesses.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) sites: Vec<Site>,
    site_of: HashMap<usize, u32>,
    pub(crate) shared: Vec<SharedBuffer>,
    pub(crate) components: Vec<Component>,
    pub(crate) n_cells: usize,
    pub(crate) globals: Vec<GlobalBuffer>,
    pub(crate) registers: Vec<(BufferId, i64)>,
    spaces: HashMap<BufferId, Space>,
    pub(crate) views: Vec<View>,
    view_of: HashMap<TensorId, Result<usize, String>>,
    pub(crate) leaves: BTreeMap<SpecId, LeafPlan>,
    pub(crate) lost: Vec<Lost>,
    /// Elements of all views.
    n_places: i64,
}

/// A kernel that cannot be followed at all.
pub(crate) struct Refusal {
    pub(crate) why: String,
}

impl Plan {
    pub(crate) fn site(&self, stmt: &Stmt) -> u32 {
        self.site_of.get(&std::ptr::from_ref(stmt).addr()).copied().unwrap_or(0)
    }

    pub(crate) fn view(&self, tensor: TensorId) -> Result<usize, String> {
        match self.view_of.get(&tensor) {
            Some(found) => found.clone(),
            None => Err("its place is not known".to_owned()),
        }
    }

    /// What a kernel accesses, where its symbols have these values.
    ///
    /// # Errors
    /// Why it cannot be followed.
    pub(crate) fn new(
        exprs: &Exprs<'_>,
        kernel: SpecId,
        atoms: &AtomTable,
    ) -> Result<Plan, Refusal> {
        let p = exprs.program;
        let mut plan = Plan::default();
        let buffers = smem::buffers(p, kernel);
        let spec = &p.specs[kernel];
        plan.sites.push(Site {
            span: spec.span,
            line: spec.line,
            node: spec.node,
            spec: Some(kernel),
            what: "the kernel".to_owned(),
        });
        plan.place_shared(exprs, &buffers, atoms).map_err(|why| Refusal { why })?;
        plan.find_written(exprs, kernel, atoms);
        for stmt in p.walk_body(kernel).stmts() {
            let site = plan.sites.len() as u32;
            plan.site_of.insert(std::ptr::from_ref(stmt).addr(), site);
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
            plan.sites.push(Site { span: stmt.span, line: stmt.line, node: stmt.node, spec, what });
            match &stmt.kind {
                StmtKind::Spec(id) if p.specs[*id].body.is_none() => {
                    match plan.leaf(exprs, *id, atoms) {
                        Ok(leaf) => drop(plan.leaves.insert(*id, leaf)),
                        Err(why) => plan.lose_leaf(p, *id, site, &why),
                    }
                }
                StmtKind::Sync(sync) => {
                    if let Some(t) = sync.tensor
                        && p.tensors[t].map.is_none()
                    {
                        let _ = plan.add_view(exprs, t);
                    }
                }
                _ => {}
            }
        }
        plan.choose_granules(exprs);
        Ok(plan)
    }

    /// A leaf whose operands cannot be followed: what it accesses of memory that may conflict is lost.
    fn lose_leaf(&mut self, p: &Program, id: SpecId, site: u32, why: &str) {
        let spec = &p.specs[id];
        let reads = spec.input_tensors().map(|t| (t, false));
        let writes = spec.outputs.iter().map(|t| (*t, true));
        for (t, does_write) in reads.chain(writes) {
            let buffer = p.tensors[t].buffer;
            let space = self.spaces.get(&buffer).copied().unwrap_or(Space::Free);
            if !matches!(space, Space::Free) {
                self.lost.push(Lost {
                    site,
                    buffer: Some(buffer),
                    does_write,
                    why: why.to_owned(),
                });
            }
        }
    }

    fn place_shared(
        &mut self,
        exprs: &Exprs<'_>,
        buffers: &[BufferId],
        atoms: &AtomTable,
    ) -> Result<(), String> {
        let p = exprs.program;
        let arena = smem::Arena::place(p, buffers, atoms).map_err(|d| d.message)?;
        let mut ranges = vec![];
        for id in buffers {
            let b = &p.buffers[*id];
            let cosize = exprs.constant(b.cosize).ok_or("a size is not known")?;
            let bits = b.scalar.bits();
            let bytes = cosize.checked_mul(bits).ok_or("a size is not known")?.div_euclid(8) + 1;
            let at = arena.offset(*id).ok_or("a place is not known")?;
            if b.open {
                return Err(format!("the layout of `%{}` is open", b.name));
            }
            self.spaces.insert(*id, Space::Shared(self.shared.len()));
            ranges.push((at, at + bytes, self.shared.len()));
            let swizzle = b.swizzle;
            self.shared.push(SharedBuffer { at, bytes, bits, swizzle, component: 0 });
        }
        ranges.sort_unstable();
        for (start, end, i) in ranges {
            let start = start / MAX_GRANULE * MAX_GRANULE;
            let end = (end + MAX_GRANULE - 1) / MAX_GRANULE * MAX_GRANULE;
            match self.components.last_mut() {
                Some(last) if start < last.end => last.end = last.end.max(end),
                _ => self.components.push(Component {
                    start,
                    end,
                    granule: MAX_GRANULE,
                    first_cell: 0,
                }),
            }
            self.shared[i].component = self.components.len() - 1;
        }
        Ok(())
    }

    /// Which global memory the kernel writes, and which registers asynchronous MatMuls use.
    fn find_written(&mut self, exprs: &Exprs<'_>, kernel: SpecId, atoms: &AtomTable) {
        let p = exprs.program;
        let (mut written, mut shared_registers) = (BTreeSet::new(), BTreeSet::new());
        for id in p.walk_body(kernel).specs() {
            let spec = &p.specs[id];
            if spec.body.is_some() {
                continue;
            }
            let atom = spec.atom.as_deref().and_then(|name| atoms.get(name));
            if atom.is_some_and(|a| a.visibility == Visibility::WgmmaGroup) {
                let all = spec.input_tensors().chain(spec.outputs.iter().copied());
                shared_registers.extend(
                    all.map(|t| p.tensors[t].buffer)
                        .filter(|b| p.buffers[*b].memory == Some(Memory::Rf)),
                );
            }
            for t in &spec.outputs {
                let buffer = p.tensors[*t].buffer;
                let buffer = p.buffers[buffer].gather.map_or(buffer, |g| g.source);
                if p.buffers[buffer].memory == Some(Memory::Gl) {
                    written.insert(buffer);
                }
            }
        }
        for buffer in &written {
            self.spaces.insert(*buffer, Space::Global(self.globals.len()));
            self.globals.push(GlobalBuffer { id: *buffer, granule: 16 });
        }
        for (id, b) in p.buffers.iter() {
            if b.gather.is_some_and(|g| written.contains(&g.source)) {
                self.spaces.insert(id, Space::Gathered);
            }
        }
        for buffer in shared_registers {
            let size = exprs.constant(p.buffers[buffer].cosize).unwrap_or(0);
            if (1..=1 << 14).contains(&size) {
                self.spaces.insert(buffer, Space::Registers(self.registers.len()));
                self.registers.push((buffer, size));
            }
        }
    }

    fn add_view(&mut self, exprs: &Exprs<'_>, id: TensorId) -> Result<usize, String> {
        if let Some(found) = self.view_of.get(&id) {
            return found.clone();
        }
        let made = self.make_view(exprs, id).map(|view| {
            self.n_places += view.places.len() as i64;
            self.views.push(view);
            self.views.len() - 1
        });
        self.view_of.insert(id, made.clone());
        made
    }

    fn make_view(&self, exprs: &Exprs<'_>, id: TensorId) -> Result<View, String> {
        let p = exprs.program;
        let tensor = &p.tensors[id];
        let space = self.spaces.get(&tensor.buffer).copied().unwrap_or(Space::Free);
        let mut view = View {
            buffer: tensor.buffer,
            space,
            offset: tensor.offset,
            peer: tensor.peer,
            places: vec![],
            modes: vec![],
            spread: tensor.dist.is_some(),
            bits: p.scalar_of(id).bits(),
            first: vec![],
        };
        if matches!(space, Space::Free | Space::Gathered) {
            return Ok(view);
        }
        let layout = exprs.layout(&tensor.concat()).ok_or("its layout is not known")?;
        let size = layout.size();
        if self.n_places + size > MAX_PLACES {
            return Err("the kernel's tensors have more elements than are followed".to_owned());
        }
        if !(0..=MAX_ELEMENTS).contains(&size) {
            return Err(format!("it has {size} elements, more than are followed"));
        }
        view.modes = layout.modes().iter().map(|m| m.size()).collect();
        view.places = (0..size).map(|e| layout.at(e)).collect();
        Ok(view)
    }

    fn leaf(
        &mut self,
        exprs: &Exprs<'_>,
        id: SpecId,
        atoms: &AtomTable,
    ) -> Result<LeafPlan, String> {
        let p = exprs.program;
        let spec = &p.specs[id];
        let inputs: Vec<Option<TensorId>> = spec
            .inputs
            .iter()
            .map(|o| match o {
                carbyne_ir::program::Operand::Tensor(t) => Some(*t),
                carbyne_ir::program::Operand::Number(_) => None,
            })
            .collect();
        let accumulates = match spec.kind {
            SpecKind::Accumulate(op) => Some(op),
            _ => None,
        };
        let Some(name) = spec.atom.as_deref() else {
            let mut operands = vec![];
            for t in inputs.iter().flatten() {
                operands.push(self.whole(exprs, *t, true, false)?);
            }
            for t in &spec.outputs {
                let reads = matches!(spec.kind, SpecKind::MatMul);
                operands.push(self.whole(exprs, *t, reads, true)?);
            }
            let tied = p.specs[id].bar.is_some();
            let has_map =
                inputs.iter().flatten().chain(&spec.outputs).any(|t| p.tensors[*t].map.is_some());
            if tied || has_map {
                return Err("it names no atom".to_owned());
            }
            let matters = self.matters(&operands);
            return Ok(LeafPlan {
                how: How::Meaning,
                operands,
                accumulates,
                valid: spec.valid,
                shape: (0, 0),
                matters,
            });
        };
        let atom = atoms.get(name).ok_or_else(|| format!("{} has no atom `{name}`", atoms.arch))?;
        if matches!(atom.visibility, Visibility::Mbarrier | Visibility::BulkGroup) {
            return self.bulk(exprs, id, atom, accumulates);
        }
        let read: Vec<_> =
            atom.operands.iter().filter(|o| o.access == OperandAccess::Read).collect();
        let written: Vec<_> = atom.writes().collect();
        if read.len() != inputs.len() || written.len() != spec.outputs.len() {
            return Err(format!("`{name}` has other operands"));
        }
        let lanes: Vec<u16> = (0..atom.thread_layout.size().min(1024))
            .map(|t| u16::try_from(atom.thread_layout.at(t)).unwrap_or(u16::MAX))
            .collect();
        let (window, groups) = windows(&lanes).ok_or("its threads cannot be placed")?;
        let mut operands = vec![];
        for (operand, t) in read.iter().zip(&inputs) {
            let Some(t) = t else { continue };
            operands.push(self.bind(exprs, operand, *t, lanes.len(), (true, false))?);
        }
        for (operand, t) in written.iter().zip(&spec.outputs) {
            let reads =
                operand.access == OperandAccess::ReadWrite && spec.kind != SpecKind::MatMulSet;
            operands.push(self.bind(exprs, operand, *t, lanes.len(), (reads, true))?);
        }
        let shape = match atom.op {
            AtomOp::MatMul { m, n, .. } => (m, n),
            _ => (0, 0),
        };
        let matters = self.matters(&operands);
        Ok(LeafPlan {
            how: How::Atom { window, groups, size: lanes.len(), visibility: atom.visibility },
            operands,
            accumulates,
            valid: spec.valid,
            shape,
            matters,
        })
    }

    fn matters(&self, operands: &[OperandPlan]) -> bool {
        operands.iter().any(|o| !matches!(self.views[o.view].space, Space::Free))
    }

    fn whole(
        &mut self,
        exprs: &Exprs<'_>,
        t: TensorId,
        reads: bool,
        writes: bool,
    ) -> Result<OperandPlan, String> {
        let view = self.add_view(exprs, t)?;
        if self.views[view].space == Space::Gathered {
            return Err("its elements are found through data".to_owned());
        }
        Ok(OperandPlan { view, of_thread: None, described: false, reads, writes })
    }

    fn bind(
        &mut self,
        exprs: &Exprs<'_>,
        operand: &carbyne_atoms::AtomOperand,
        t: TensorId,
        group: usize,
        (reads, writes): (bool, bool),
    ) -> Result<OperandPlan, String> {
        let mut plan = self.whole(exprs, t, reads, writes)?;
        let view = &self.views[plan.view];
        plan.described = operand.matrix_rule().is_some();
        let in_memory = matches!(view.space, Space::Shared(_) | Space::Global(_));
        if group == 1 || plan.described || !in_memory {
            return Ok(plan);
        }
        const ODD: &str = "the atom takes another number of elements";
        let per_unit = operand.elem.scalars_per_unit(exprs.program.scalar_of(t)).ok_or(ODD)?;
        let (tm, vm) = (operand.tv.mode(0), operand.tv.mode(1));
        let (Ok(tm), Ok(vm)) = (tm, vm) else { return Err(ODD.to_owned()) };
        let n_units = operand.tile_size();
        if vm.size() * per_unit != view.places.len() as i64 || tm.size() != group as i64 {
            return Err(ODD.to_owned());
        }
        let mut taken = BTreeSet::new();
        let mut of_thread = vec![vec![]; group];
        for (t, list) in of_thread.iter_mut().enumerate() {
            for v in 0..vm.size() {
                let unit = tm.at(t as i64).saturating_add(vm.at(v));
                if !(0..n_units).contains(&unit) {
                    return Err(ODD.to_owned());
                }
                // What several threads name the first of them accesses.
                if taken.insert(unit) {
                    list.extend((0..per_unit).map(|j| (v * per_unit + j) as u32));
                }
            }
        }
        plan.of_thread = Some(of_thread);
        Ok(plan)
    }

    fn bulk(
        &mut self,
        exprs: &Exprs<'_>,
        id: SpecId,
        atom: &Atom,
        accumulates: Option<carbyne_ir::ast::AccumulateOp>,
    ) -> Result<LeafPlan, String> {
        let p = exprs.program;
        let copy = bulk_copy(p, &p.specs[id], atom).map_err(|m| m.to_string())?;
        let (source, target) =
            (self.add_view(exprs, copy.source)?, self.add_view(exprs, copy.target)?);
        if [source, target].iter().any(|v| self.views[*v].space == Space::Gathered) {
            return Err("its elements are found through data".to_owned());
        }
        let boxed = match copy.boxed {
            None => None,
            // Which part of a box is written or may conflict; of what is only read it does not matter.
            Some(_) if self.is_free(p, &copy) => None,
            Some((map, mut at)) => {
                let map = &p.maps[map];
                let mut extents = map.extents.clone();
                if !map.first_fastest {
                    at.reverse();
                    extents.reverse();
                }
                let extents: Option<Vec<i64>> =
                    extents.iter().map(|d| exprs.constant(*d)).collect();
                let extents = extents.ok_or("the extents of its map are not known")?;
                let of_source = p.tensors[copy.source].map.is_some();
                Some(BoxPlace { of_source, at, extents })
            }
        };
        let bar = copy.bar.map(|t| self.add_view(exprs, t)).transpose()?;
        Ok(LeafPlan {
            how: How::Bulk(Bulk { source, target, boxed, bar, bytes: copy.bytes, mask: copy.mask }),
            operands: vec![],
            accumulates,
            valid: None,
            shape: (0, 0),
            matters: true,
        })
    }

    /// Whether the tensor that is read or written through a map cannot conflict.
    fn is_free(&self, p: &Program, copy: &carbyne_atoms::bulk::BulkCopy) -> bool {
        let mapped = [copy.source, copy.target].into_iter().find(|t| p.tensors[*t].map.is_some());
        mapped
            .is_some_and(|t| self.view(t).is_ok_and(|v| matches!(self.views[v].space, Space::Free)))
    }

    /// The largest granules of which every access takes whole ones.
    fn choose_granules(&mut self, exprs: &Exprs<'_>) {
        let arena = &exprs.program.arena;
        let mut uses: BTreeMap<usize, Vec<Option<&[u32]>>> = BTreeMap::new();
        let mut exact = BTreeSet::new();
        for leaf in self.leaves.values() {
            for o in &leaf.operands {
                let list = uses.entry(o.view).or_default();
                match &o.of_thread {
                    None => list.push(None),
                    Some(all) => list.extend(all.iter().map(|l| Some(l.as_slice()))),
                }
                if leaf.valid.is_some() {
                    exact.insert(o.view);
                }
            }
            if let How::Bulk(bulk) = &leaf.how {
                uses.entry(bulk.source).or_default().push(None);
                uses.entry(bulk.target).or_default().push(None);
                // Boxes that may lie in the tensor in part.
                let cut = bulk.boxed.as_ref().is_some_and(|b| {
                    let view = &self.views[if b.of_source { bulk.source } else { bulk.target }];
                    let whole = |((n, extent), at): ((&i64, &i64), &Dim)| {
                        let n = (*n).max(1);
                        extent % n == 0 && arena.divisor(*at) % n == 0
                    };
                    !view.modes.iter().zip(&b.extents).zip(&b.at).all(whole)
                });
                if cut {
                    exact.extend([bulk.source, bulk.target]);
                }
            }
        }
        for (i, view) in self.views.iter().enumerate() {
            let divisor = arena.divisor(view.offset);
            let (granule, swizzle) = match view.space {
                Space::Shared(b) => {
                    let b = &self.shared[b];
                    (self.components[b.component].granule, b.swizzle)
                }
                Space::Global(g) => (self.globals[g].granule, None),
                _ => continue,
            };
            let fits = |g: i64| {
                let units = (g * 8 / view.bits).max(1);
                let aligned = divisor % units == 0 || view.offset == Dim::Const(0);
                let kept = swizzle.is_none_or(|s| s.is_none() || 1i64 << s.base() >= g);
                let lists = uses.get(&i).map_or(&[][..], |l| l.as_slice());
                aligned && kept && lists.iter().all(|l| covers(&view.places, *l, units))
            };
            let mut g = granule;
            let least = (view.bits / 8).clamp(1, MAX_GRANULE);
            if is_mbarrier(exprs.program, view.buffer) {
                g = g.min(8);
            }
            let is_global = matches!(view.space, Space::Global(_));
            if is_global && exact.contains(&i) {
                g = g.min(least);
            }
            while g > 1 && g > least.min(granule) && !fits(g) {
                g /= 2;
            }
            match view.space {
                Space::Shared(b) => self.components[self.shared[b].component].granule = g,
                Space::Global(b) => self.globals[b].granule = g,
                _ => {}
            }
        }
        for c in &mut self.components {
            c.first_cell = self.n_cells;
            self.n_cells += ((c.end - c.start) / c.granule.max(1)) as usize + 1;
        }
        // From bytes to scalars.
        for g in &mut self.globals {
            let bits = exprs.program.buffers[g.id].scalar.bits();
            g.granule = (g.granule * 8 / bits).max(1);
        }
        for view in &mut self.views {
            let units = match view.space {
                Space::Shared(b) => {
                    (self.components[self.shared[b].component].granule * 8 / view.bits).max(1)
                }
                Space::Global(g) => self.globals[g].granule,
                _ => 1,
            };
            let mut seen = BTreeSet::new();
            view.first = (0..view.places.len() as u32)
                .filter(|e| seen.insert(view.places[*e as usize].div_euclid(units)))
                .collect();
        }
        let views = &self.views;
        for leaf in self.leaves.values_mut() {
            for o in &mut leaf.operands {
                let Some(all) = &mut o.of_thread else { continue };
                let view = &views[o.view];
                let units = match view.space {
                    Space::Shared(b) => {
                        (self.components[self.shared[b].component].granule * 8 / view.bits).max(1)
                    }
                    Space::Global(g) => self.globals[g].granule,
                    _ => 1,
                };
                for list in all {
                    let mut seen = BTreeSet::new();
                    list.retain(|e| {
                        seen.insert(view.places.get(*e as usize).map_or(0, |p| p.div_euclid(units)))
                    });
                }
            }
        }
    }

    /// The granules of an element of a buffer in shared memory, those of one block.
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

/// Whether these elements, or all, are whole granules of so many scalars.
fn covers(places: &[i64], elements: Option<&[u32]>, units: i64) -> bool {
    if units <= 1 {
        return true;
    }
    let mut count: HashMap<i64, BTreeSet<i64>> = HashMap::new();
    let mut add = |place: i64| {
        count.entry(place.div_euclid(units)).or_default().insert(place.rem_euclid(units));
    };
    match elements {
        None => places.iter().for_each(|p| add(*p)),
        Some(list) => list.iter().filter_map(|e| places.get(*e as usize)).for_each(|p| add(*p)),
    }
    count.values().all(|chunk| chunk.len() as i64 == units)
}

/// Fills a window of whole warps with groups, each from the first free thread on.
fn windows(lanes: &[u16]) -> Option<(usize, Vec<Vec<u16>>)> {
    let reach = lanes.iter().max().map_or(1, |l| usize::from(*l) + 1);
    if reach > 1024 {
        return None;
    }
    let window = reach.next_multiple_of(32);
    let mut taken = vec![false; window];
    let mut groups = vec![];
    while let Some(first) = taken.iter().position(|t| !t) {
        let group: Vec<u16> = lanes.iter().map(|l| first as u16 + l).collect();
        for t in &group {
            match taken.get_mut(usize::from(*t)) {
                Some(free) if !*free => *free = true,
                _ => return None,
            }
        }
        groups.push(group);
    }
    Some((window, groups))
}

/// Whether a scalar is a barrier object.
pub(crate) fn is_mbarrier(p: &Program, buffer: BufferId) -> bool {
    p.buffers[buffer].scalar == Scalar::Mbarrier
}
