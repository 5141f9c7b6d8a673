//! Assigns memory to buffers (in shared memory, byte addresses), and creates the views of tensors
//! in them. It also chooses which threads hold a register tensor whose layout is still open.

use super::lower::{Lowering, open};
use super::site::unknown;
use super::threads::Group;
use super::{
    Bound, Checked, Dist, Gathered, GlobalBuffer, Names, RegisterBuffer, SharedBuffer, Site, Space,
    ThreadTensor, View,
};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::layout::{Layout, LayoutError};
use carbyne_ir::program::{BufferId, TensorId, ThreadsId};
use carbyne_ir::scalar::Memory;
use carbyne_ir::span::Span;

/// The largest shared memory of a block, in bytes; above the limit of any hardware.
const MAX_SHARED: usize = 1 << 18;
/// The largest number of register elements of a block.
const MAX_REGISTERS: usize = 1 << 23;
/// The largest number of elements of a broadcast register tensor.
const MAX_SPREAD: i64 = 1 << 22;
/// The alignment of buffers in shared memory.
const SHARED_ALIGN: usize = 16;

impl Lowering<'_, '_> {
    pub(super) fn view(&mut self, id: TensorId, span: Span) -> Checked<usize> {
        if let Some(view) = self.views.get(&id) {
            return Ok(*view);
        }
        let program = self.kernel.program;
        let tensor = &program.tensors[id];
        let space = self.space(tensor.buffer, span)?;
        let sizes = self.vars.sizes(&tensor.concat());
        let sizes = sizes.map_err(|e| unknown(span, &program.tensor_name(id), &e))?;
        let offset = self.index(tensor.offset, span)?;
        let dist = match &tensor.dist {
            None => None,
            Some(dist) => {
                // The threads hold the declared tensor, and the view names positions in it.
                let declared = &program.tensors[program.buffers[tensor.buffer].tensor];
                let size = self.vars.layout(&declared.concat());
                let size = size.map_err(|e| unknown(span, &program.tensor_name(id), &e))?.size();
                let layout = self.vars.layout(&tensor.concat());
                let layout = layout.map_err(|e| unknown(span, &program.tensor_name(id), &e))?;
                let part = match dist.ops.is_empty() {
                    true => None,
                    false => Some((offset.known().unwrap_or(0), &layout)),
                };
                let (Some(tv), Some(threads)) = (&dist.tv, dist.threads) else {
                    let dist = self.any_owners(size, dist.threads, tensor.span)?;
                    self.kernel.dists.push(dist.part(part));
                    let dist = Some(self.kernel.dists.len() - 1);
                    let scalar = program.scalar_of(id);
                    let view = View::new(id, space, scalar, offset, &sizes, dist);
                    self.kernel.views.push(view);
                    self.views.insert(id, self.kernel.views.len() - 1);
                    return Ok(self.kernel.views.len() - 1);
                };
                let tv = self.vars.layout(tv).map_err(|e| unknown(span, "a layout", &e))?;
                let groups = self.groups(threads, span)?;
                let site = Site { line: 0, span: tensor.span };
                let dist = match program.threads[threads].own {
                    // Column-major over all levels, outermost first: groups vary fastest.
                    0 => {
                        let size_of_group = groups.first().map_or(0, Vec::len);
                        let order: Vec<u16> = (0..size_of_group)
                            .flat_map(|i| groups.iter().filter_map(move |g| g.get(i).copied()))
                            .collect();
                        Dist::new(&tv, &order, size, site)?
                    }
                    _ => {
                        let own = program.threads[threads].own_groups();
                        let own = own.ok_or_else(|| held_by_loops(span))?;
                        let threads = |g: Vec<i64>| g.into_iter().map(|t| t as u16).collect();
                        let own: Vec<Group> = own.into_iter().map(threads).collect();
                        Dist::of_groups(&tv, &own, size, site)?
                    }
                };
                self.kernel.dists.push(dist.part(part));
                Some(self.kernel.dists.len() - 1)
            }
        };
        let scalar = program.scalar_of(id);
        let mut view = View::new(id, space, scalar, offset, &sizes, dist);
        if !tensor.bounds.is_empty() {
            view = view.bounded(self.bounds(id, None, span)?);
        }
        view.peer = tensor.peer.map(|rank| self.index(rank, span)).transpose()?;
        self.kernel.views.push(view);
        self.views.insert(id, self.kernel.views.len() - 1);
        Ok(self.kernel.views.len() - 1)
    }

    /// A view of a tensor whose modes of extent 1 are broadcast over the modes `modes`; the plain
    /// view without such modes.
    pub(super) fn spread_view(
        &mut self,
        id: TensorId,
        modes: &[i64],
        span: Span,
    ) -> Checked<usize> {
        let plain = self.view(id, span)?;
        let own = &self.kernel.views[plain].modes;
        let fits = own.is_empty()
            || own.len() == modes.len()
                && own.iter().zip(modes).all(|(own, n)| own == n || *own == 1);
        if !fits || own == modes {
            return Ok(plain);
        }
        let key = (id, modes.to_vec());
        if let Some(view) = self.spread.get(&key) {
            return Ok(*view);
        }
        let sizes = self.vars.sizes(&self.kernel.program.tensors[id].concat());
        let sizes = sizes.map_err(|e| unknown(span, "a tensor", &e))?;
        let wide = sizes.spread(modes);
        let wide = wide.map_err(|e| unknown(span, "a broadcast tensor", e))?;
        let View { space, scalar, dist, .. } = self.kernel.views[plain];
        let dist = match dist {
            None => None,
            Some(_) if wide.size > MAX_SPREAD => {
                let name = self.kernel.view_name(plain);
                let text = format!("{name} is broadcast over too many elements");
                return Err(Box::new(
                    Diagnostic::new(Code::TooLarge, span, text)
                        .label(format!("more than {MAX_SPREAD} elements"))
                        .help("write a loop over parts of the output"),
                ));
            }
            Some(d) => {
                let own = &self.kernel.views[plain].modes;
                let spread = self.kernel.dists[d].spread(own, modes);
                self.kernel.dists.push(spread);
                Some(self.kernel.dists.len() - 1)
            }
        };
        let offset = self.index(self.kernel.program.tensors[id].offset, span)?;
        let mut view = View::new(id, space, scalar, offset, &wide, dist);
        if !self.kernel.program.tensors[id].bounds.is_empty() {
            view = view.bounded(self.bounds(id, Some(modes), span)?);
        }
        view.peer.clone_from(&self.kernel.views[plain].peer);
        self.kernel.views.push(view);
        self.spread.insert(key, self.kernel.views.len() - 1);
        Ok(self.kernel.views.len() - 1)
    }

    /// The bounds of the existing elements of a tensor; `over`: the modes over which its modes of
    /// extent 1 are broadcast.
    fn bounds(&self, id: TensorId, over: Option<&[i64]>, span: Span) -> Checked<Vec<Bound>> {
        let of = |bound: &carbyne_ir::program::Bound| {
            let name = || format!("a bound of {}", self.kernel.program.tensor_name(id));
            let sizes = self.vars.sizes(&bound.concat());
            let mut sizes = sizes.map_err(|e| unknown(span, &name(), e))?;
            if let Some(modes) = over {
                sizes = sizes.spread(modes).map_err(|e| unknown(span, &name(), e))?;
            }
            let (offset, extent) =
                (self.index(bound.offset, span)?, self.index(bound.extent, span)?);
            Ok(Bound::new(offset, extent, &sizes))
        };
        self.kernel.program.tensors[id].bounds.iter().map(of).collect()
    }

    /// The place of a buffer; a new buffer is placed first.
    pub(super) fn space(&mut self, id: BufferId, span: Span) -> Checked<Space> {
        if let Some(space) = self.spaces.get(&id) {
            return Ok(*space);
        }
        let buffer = &self.kernel.program.buffers[id];
        let space = match buffer.memory {
            _ if buffer.gather.is_some() => self.gathered(id, span)?,
            None => return Err(open(span, &format!("%{}", buffer.name))),
            // Coordinates need no memory, for any number of elements.
            Some(Memory::Ix) => Space::Index,
            Some(memory @ (Memory::Gl | Memory::Pm)) => {
                let (_, names) = self.measured(id, span)?;
                self.kernel.globals.push(GlobalBuffer { buffer: id, written: false, names });
                let i = self.kernel.globals.len() - 1;
                if memory.is_number() { Space::Param(i) } else { Space::Global(i) }
            }
            Some(Memory::Rf) => {
                let (len, names) = self.measured(id, span)?;
                let all = self.kernel.registers.iter().fold(0, |n, r| n + r.len);
                let len = usize::try_from(len).unwrap_or(0);
                let bits = buffer.scalar.bits() as u32;
                if all.saturating_add(len).saturating_mul(self.kernel.n_threads) > MAX_REGISTERS {
                    let text =
                        format!("%{} needs more registers than can be simulated", buffer.name);
                    return Err(Box::new(
                        Diagnostic::new(Code::TooLarge, span, text)
                            .label(format!("the limit of a block is {MAX_REGISTERS} elements"))
                            .help("distribute the tensor over the threads, or make it smaller"),
                    ));
                }
                self.kernel.registers.push(RegisterBuffer { len, bits, names });
                Space::Registers(self.kernel.registers.len() - 1)
            }
            Some(Memory::Sh) => {
                let (len, names) = self.measured(id, span)?;
                self.place_shared(id, len, names, span)?
            }
        };
        self.spaces.insert(id, space);
        Ok(space)
    }

    /// The capacity of a buffer in elements (for a distributed tensor, of each thread), and the
    /// names of its elements.
    fn measured(&self, id: BufferId, span: Span) -> Checked<(i64, Names)> {
        let buffer = &self.kernel.program.buffers[id];
        let declared = &self.kernel.program.tensors[buffer.tensor];
        let sizes = self.vars.sizes(&declared.concat());
        let sizes = sizes.map_err(|e| unknown(span, &format!("%{}", buffer.name), &e))?;
        let len = match sizes.size {
            0 => Ok(0),
            _ => self.vars.constant(buffer.cosize),
        };
        let len = len.map_err(|e| unknown(span, &format!("the size of %{}", buffer.name), &e))?;
        let holders = declared.dist.as_ref().and_then(|d| d.threads);
        let spread = buffer.open && buffer.is_per_thread();
        let len = match spread {
            true => shares(sizes.size, self.holders(holders, span)?.len()).1,
            false => len,
        };
        let names = match declared.dist {
            None => Names::new(&buffer.name, &sizes),
            Some(_) => Names::numbered(&buffer.name),
        };
        Ok((len, names))
    }

    /// The place of a buffer that another buffer indexes.
    fn gathered(&mut self, id: BufferId, span: Span) -> Checked<Space> {
        let buffer = &self.kernel.program.buffers[id];
        let Some(gather) = buffer.gather else {
            return Err(open(span, &format!("%{}", buffer.name)));
        };
        self.measured(id, span)?;
        let place = |space| match space {
            Space::Global(i) => Ok(i),
            _ => Err(open(span, &format!("%{}", buffer.name))),
        };
        let source = place(self.space(gather.source, span)?)?;
        let index = place(self.space(gather.index, span)?)?;
        let scalar = self.kernel.program.buffers[gather.index].scalar;
        let (stride, unit) = (gather.stride, gather.unit.max(1));
        self.kernel.gathers.push(Gathered { source, index, scalar, stride, unit });
        Ok(Space::Gathered(self.kernel.gathers.len() - 1))
    }

    /// The threads that hold a tensor with an open layout: a group of threads, or the complete
    /// block.
    fn holders(&self, threads: Option<ThreadsId>, span: Span) -> Checked<Vec<u16>> {
        let n = self.kernel.n_threads;
        let Some(threads) = threads else { return Ok((0..n as u16).collect()) };
        match self.groups(threads, span)?.as_slice() {
            [group] => Ok(group.clone()),
            _ => Err(held_by_loops(span)),
        }
    }

    /// The groups of threads that hold a tensor.
    fn groups(&self, threads: ThreadsId, span: Span) -> Checked<Vec<Group>> {
        let (program, n) = (self.kernel.program, self.kernel.n_threads);
        let tensor = ThreadTensor::new(program, &self.vars, threads, n, self.elected)?;
        let known = tensor.known().map(|partition| partition.groups.clone());
        known.ok_or_else(|| held_by_loops(span))
    }

    /// Owners of a register tensor with an open thread-value layout. Any owners are valid, because
    /// only meanings of specs access the tensor. The elements are divided evenly over as many
    /// threads as possible, and the other threads hold copies.
    fn any_owners(&self, size: i64, threads: Option<ThreadsId>, span: Span) -> Checked<Dist> {
        let order = self.holders(threads, span)?;
        let (holders, each) = shares(size, order.len());
        let n = order.len() as i64;
        let text = format!("(({holders},{}),{each}):((1,0),{holders})", n / holders);
        let tv: Layout = text.parse().map_err(|e: LayoutError| unknown(span, "a layout", e))?;
        Dist::new(&tv, &order, size, Site { line: 0, span })
    }

    fn place_shared(&mut self, id: BufferId, len: i64, names: Names, span: Span) -> Checked<Space> {
        let buffer = &self.kernel.program.buffers[id];
        let bits = buffer.scalar.bits();
        let bytes = len.checked_mul(bits).map_or(i64::MAX, |b| b.saturating_add(7) / 8);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let reused = match buffer.reuses {
            None => None,
            Some(other) if self.spaces.contains_key(&other) => match self.spaces[&other] {
                Space::Shared(i) => Some(self.kernel.shared.buffers[i].at),
                _ => None,
            },
            Some(_) => None,
        };
        let align = usize::try_from(buffer.align).unwrap_or(1).max(SHARED_ALIGN);
        let next = self.kernel.shared.size.next_multiple_of(align);
        let pinned = buffer.at.or(self.arena.offset(id)).and_then(|at| usize::try_from(at).ok());
        let at = pinned.or(reused).unwrap_or(next);
        let end = at.saturating_add(bytes);
        let most = carbyne_atoms::limits(self.atoms.arch).max_smem_per_block;
        let most = usize::try_from(most).unwrap_or(0).min(MAX_SHARED);
        if end > most {
            let text = format!("shared memory of more than {most} bytes for {}", self.atoms.arch);
            return Err(Box::new(
                Diagnostic::new(Code::SharedTooLarge, span, text)
                    .label(format!("%{} ends at byte {end}", buffer.name))
                    .help("use smaller tiles or fewer stages, or share memory with `reuses=`"),
            ));
        }
        let shared = &mut self.kernel.shared;
        shared.size = shared.size.max(end);
        shared.granule = shared.granule.min((bits as usize / 8).max(1));
        let (bits, swizzle) = (bits as u32, buffer.swizzle);
        let scalar = buffer.scalar;
        let mbarriers = scalar == carbyne_ir::scalar::Scalar::Mbarrier;
        let (number, loops) = (shared.buffers.len(), self.loops);
        let buffer =
            SharedBuffer { at, len, scalar, bits, mbarriers, number, loops, swizzle, names };
        shared.buffers.push(buffer);
        Ok(Space::Shared(shared.buffers.len() - 1))
    }
}

fn held_by_loops(span: Span) -> Box<Diagnostic> {
    unknown(span, "the owner of a tensor", "its threads depend on a loop")
}

/// The number of threads over which the elements are divided evenly, and the number of elements of
/// each.
fn shares(size: i64, threads: usize) -> (i64, i64) {
    let holders = num_integer::gcd(size.max(1), threads.max(1) as i64);
    (holders, size.max(1) / holders)
}
