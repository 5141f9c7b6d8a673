//! Finds the memory that the checker must track. It gives buffers their places in shared memory and
//! finds those that overlap, finds the global memory that the kernel writes (without the buffers of
//! `owners`, in which no pair exists) and the registers that asynchronous MatMuls use, and converts
//! tensors to lists of offsets in their buffers. The places are those of [`carbyne_atoms::smem`].

use super::{
    Component, GlobalBuffer, MAX_GLOBAL_GRANULE, MAX_GRANULE, Obstacle, Plan, SharedBuffer, Space,
    View,
};
use crate::expr::Exprs;
use crate::view_bounds::Limit;
use carbyne_atoms::{AtomTable, smem};
use carbyne_ir::program::{BufferId, SpecId, TensorId};
use std::collections::BTreeSet;

/// The most elements of one view.
const MAX_ELEMENTS: i64 = 1 << 20;
/// The most elements of all views together.
const MAX_PLACES: i64 = 1 << 24;

impl Plan {
    /// Places buffers in shared memory, and finds those that overlap.
    pub(super) fn place_shared(
        &mut self,
        exprs: &Exprs<'_>,
        buffers: &[BufferId],
        atoms: &AtomTable,
    ) -> Result<(), Obstacle> {
        let p = exprs.program;
        let arena =
            smem::Arena::place(p, buffers, atoms).map_err(|d| Obstacle::Refused(d.message))?;
        let mut ranges = vec![];
        for id in buffers {
            let b = &p.buffers[*id];
            let cosize = exprs.constant(b.cosize).ok_or(Obstacle::Size)?;
            let bits = b.scalar.bits();
            let bytes = cosize.checked_mul(bits).ok_or(Obstacle::Size)?.div_euclid(8) + 1;
            let at = arena.offset(*id).ok_or(Obstacle::Offset)?;
            if b.open {
                return Err(Obstacle::OpenLayout { buffer: b.name.clone() });
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

    /// Finds the global memory that the kernel writes, and the registers that asynchronous MatMuls
    /// use.
    pub(super) fn find_written(
        &mut self,
        exprs: &Exprs<'_>,
        kernel: SpecId,
        atoms: &AtomTable,
        owned: &BTreeSet<BufferId>,
    ) {
        let p = exprs.program;
        let (mut written, mut shared_registers) = (BTreeSet::new(), BTreeSet::new());
        for id in p.walk_body(kernel).specs() {
            let spec = &p.specs[id];
            if spec.body.is_some() {
                continue;
            }
            let atom = spec.atom.as_deref().and_then(|name| atoms.get(name));
            if atom.is_some_and(|a| a.visibility.holds_registers()) {
                let all = spec.input_tensors().chain(spec.outputs.iter().copied());
                shared_registers.extend(
                    all.map(|t| p.tensors[t].buffer).filter(|b| p.buffers[*b].is_per_thread()),
                );
            }
            for t in &spec.outputs {
                let buffer = p.tensors[*t].buffer;
                let buffer = p.buffers[buffer].gather.map_or(buffer, |g| g.source);
                if p.buffers[buffer].is_global() && !owned.contains(&buffer) {
                    written.insert(buffer);
                }
            }
        }
        for buffer in &written {
            self.spaces.insert(*buffer, Space::Global(self.globals.len()));
            self.globals.push(GlobalBuffer { id: *buffer, granule: MAX_GLOBAL_GRANULE });
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

    /// The view of a tensor. Returns an existing one if possible.
    pub(super) fn add_view(&mut self, exprs: &Exprs<'_>, id: TensorId) -> Result<usize, Obstacle> {
        if let Some(found) = self.view_of.get(&id) {
            return found.clone();
        }
        let made = self.make_view(exprs, id).map(|view| {
            self.n_places += (view.places.len() * (1 + view.limits.len())) as i64;
            self.views.push(view);
            self.views.len() - 1
        });
        self.view_of.insert(id, made.clone());
        made
    }

    fn make_view(&self, exprs: &Exprs<'_>, id: TensorId) -> Result<View, Obstacle> {
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
            limits: vec![],
            is_open_ended: false,
        };
        if matches!(space, Space::Free | Space::Gathered) {
            return Ok(view);
        }
        let layout = exprs.layout(&tensor.concat()).ok_or(Obstacle::Layout)?;
        let size = layout.size();
        let of_all = size.saturating_mul(1 + tensor.bounds.len() as i64);
        if self.n_places.saturating_add(of_all) > MAX_PLACES {
            return Err(Obstacle::TooManyPlaces);
        }
        if !(0..=MAX_ELEMENTS).contains(&size) {
            return Err(Obstacle::TooManyElements { size });
        }
        view.modes = layout.modes().iter().map(|m| m.size()).collect();
        view.places = (0..size).map(|e| layout.at(e)).collect();
        for bound in &tensor.bounds {
            let along = exprs.layout(&bound.concat()).filter(|along| along.size() == size);
            match along {
                Some(along) => view.limits.push(Limit::new(&p.arena, bound, &along)),
                None => view.is_open_ended = true,
            }
        }
        Ok(view)
    }
}
