//! Executes a leaf with an atom: gathers the atom's tiles from the views of the lanes, computes the
//! bits and the shadows of the results, and scatters them. It also checks the alignment of
//! addresses, counts the accesses to shared and global memory (bank conflicts and sectors), and
//! issues asynchronous MatMuls (`wgmma`).

use super::deviation::Rounds;
use super::errors::{self, ElementAccess};
use super::{Runner, arith, shadow};
use crate::num::{decode, ulp};
use crate::plan::{
    Base, BoundAtom, BoundOp, BoundOperand, Checked, LeafSpec, Mask, OUTSIDE, Slot, Source, Space,
    View,
};
use crate::state::clock::Proxy;
use crate::state::{Accumulator, Block, Failure, Issue, Tile, Value, Who};
use carbyne_atoms::ErrorBound;
use carbyne_ir::scalar::Scalar;
use std::rc::Rc;

/// Buffers that are reused between executions.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) tiles: Vec<Tile>,
    pub(super) output: Tile,
    bases: Bases,
    addresses: Vec<i64>,
    granules: Vec<u32>,
    /// The largest error that the atom states for its results so far, in units in the last place.
    stated: f64,
    /// A number beyond the range of the type that the atom casts to, and its result.
    beyond: Option<(f64, f64)>,
}

/// The start of the view of each lane.
#[derive(Default)]
struct Bases {
    /// For a view without bounds.
    offsets: Vec<i64>,
    /// For a view with bounds, which may lack elements.
    bounded: Vec<Base>,
}

impl Bases {
    /// The position of a slot in its buffer.
    #[inline]
    fn place(&self, view: &View, slot: Slot) -> i64 {
        match self.offsets.get(usize::from(slot.lane)) {
            Some(at) => at.saturating_add(view.element(usize::from(slot.element))),
            None => self.place_within(view, slot),
        }
    }

    #[cold]
    fn place_within(&self, view: &View, slot: Slot) -> i64 {
        view.place(&self.bounded[usize::from(slot.lane)], usize::from(slot.element))
    }
}

/// The threads of a group and the state of their warps, the first warp first.
struct Lanes<'a> {
    threads: &'a [u16],
    first_warp: usize,
    whos: &'a mut [Who],
}

impl Lanes<'_> {
    /// The thread of a slot, and the position of the slot in its buffer.
    #[inline]
    fn place(&self, bases: &Bases, view: &View, slot: Slot) -> (usize, i64) {
        (usize::from(self.threads[usize::from(slot.lane)]), bases.place(view, slot))
    }

    /// The registers of an operand that is the accumulator of an asynchronous MatMul.
    fn accumulator(&self, operand: &BoundOperand, bases: &Bases) -> Option<Accumulator> {
        let is_accumulator = !operand.writes.is_empty()
            && bases.bounded.is_empty()
            && self.whos.iter().all(|who| who.issue.is_some());
        is_accumulator.then(|| Accumulator {
            operand: std::ptr::from_ref(operand).addr(),
            threads: self.threads.to_vec(),
            offsets: bases.offsets.clone(),
            first_warp: self.first_warp,
        })
    }

    /// The thread of a lane, with its identity for accesses.
    #[inline]
    fn who(&mut self, lane: u16) -> (usize, &Who) {
        let thread = self.threads[usize::from(lane)];
        let who = &mut self.whos[usize::from(thread) / 32 - self.first_warp];
        who.thread = thread;
        (usize::from(thread), who)
    }
}

impl Runner<'_> {
    /// Executes an atom for the active threads, warp by warp.
    pub(super) fn atom(
        &mut self,
        i: usize,
        leaf: &LeafSpec,
        atom: &BoundAtom,
        active: &Mask,
    ) -> Checked<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        // The deviation of results from their shadows is measured where results are computed.
        let measured = self.mode.statements || rounds(atom).0 == Rounds::Decides;
        let plain = atom.private && !self.kernel.has_flights && !(measured && self.mode.shadows);
        let done =
            match plain && self.register_atom(atom, leaf.site, active, &mut scratch).is_some() {
                true => {
                    self.counts.leaves[i].executions += u64::from(active.warps().count_ones());
                    let threads = active.threads().count() as u64;
                    self.counts.multiply_adds += threads * atom.multiply_adds();
                    Ok(())
                }
                false => self.atom_with(i, leaf, atom, active, &mut scratch),
            };
        self.counts.ends(leaf.site, scratch.beyond.take());
        let stated = std::mem::take(&mut scratch.stated);
        if stated > 0.0 {
            let most = self.counts.stated.entry(i).or_default();
            *most = most.max(stated);
        }
        self.scratch = scratch;
        done
    }

    fn atom_with(
        &mut self,
        i: usize,
        leaf: &LeafSpec,
        atom: &BoundAtom,
        active: &Mask,
        scratch: &mut Scratch,
    ) -> Checked<()> {
        let warps = atom.window / 32;
        for first_warp in (0..self.kernel.n_warps).step_by(warps) {
            let lanes = &active.0[first_warp..(first_warp + warps).min(32)];
            if lanes.iter().all(|l| *l == 0) {
                continue;
            }
            let mut whos: Vec<Who> = (first_warp..(first_warp + warps).min(self.kernel.n_warps))
                .map(|w| self.who(w, leaf.site))
                .collect();
            let base = (first_warp * 32) as u16;
            self.counts.leaves[i].executions += 1;
            if atom.group == 1 {
                // Each lane executes separately; all lanes read before any of them writes.
                let lanes = match atom.writes.first().map(|w| w.source) {
                    Some(Source::View(v)) => {
                        self.writing(&self.kernel.views[v], first_warp, lanes[0], leaf.site)?
                    }
                    _ => lanes[0],
                };
                let threads: Vec<u16> =
                    (0..32).filter(|l| lanes >> l & 1 == 1).map(|l| base + l).collect();
                if threads.is_empty() {
                    continue;
                }
                self.each_alone(i, atom, &threads, first_warp, &mut whos, scratch)?;
                continue;
            }
            let absent: u32 = lanes.iter().map(|l| l.count_zeros()).sum();
            if absent > 0 || lanes.len() < warps {
                let why = match atom.window {
                    32 => format!("{absent} lanes of the instruction's membermask are not active"),
                    _ => format!("{absent} threads of the atom's group are not active"),
                };
                let mut error = super::diverged(self.kernel, leaf.site, absent as usize);
                error.label = why;
                return Err(error);
            }
            if atom.in_flight {
                self.begin_flight(leaf, atom, first_warp, &mut whos)?;
            }
            for instance in &atom.instances {
                let threads: Vec<u16> = instance.iter().map(|t| base + t).collect();
                let mut lanes = Lanes { threads: &threads, first_warp, whos: &mut whos };
                self.gather(i, atom, &mut lanes, scratch, true)?;
                compute(atom, scratch, self.mode.shadows);
                self.measure_atom(i, atom, &scratch.output);
                self.scatter(i, atom, &mut lanes, scratch, true)?;
                self.read_on(leaf, &whos, scratch);
                self.counts.multiply_adds += atom.multiply_adds();
            }
        }
        Ok(())
    }

    /// Issues an asynchronous MatMul of each of these warps.
    fn begin_flight(
        &mut self,
        leaf: &LeafSpec,
        atom: &BoundAtom,
        first_warp: usize,
        whos: &mut [Who],
    ) -> Checked<()> {
        let BoundOp::MatMul { extents: [_, m, n, _], to, .. } = atom.op else { return Ok(()) };
        for (warp, who) in (first_warp..).zip(whos) {
            let Some(fence) = self.blocks[self.rank].flights.warps[warp].fence else {
                return Err(errors::never_fenced(self.kernel, leaf.site));
            };
            let flights = &mut self.blocks[self.rank].flights;
            let flight = flights.begin(warp, leaf.site, (m, n, to));
            if flights.are_too_many() {
                return Err(errors::too_many_pending(self.kernel, leaf.site));
            }
            who.proxy = Proxy::Async;
            who.issue = Some(Issue { flight, shape: (m, n, to), fence });
        }
        Ok(())
    }

    /// Records that an asynchronous MatMul reads its granules of shared memory until it is
    /// complete.
    fn read_on(&mut self, leaf: &LeafSpec, whos: &[Who], scratch: &mut Scratch) {
        if scratch.granules.is_empty() {
            return;
        }
        // The granules of each operand are in order.
        scratch.granules.sort();
        scratch.granules.dedup();
        let granules: Rc<[u32]> = scratch.granules.drain(..).collect();
        let block = &mut self.blocks[self.rank];
        let flights = whos.iter().filter_map(|w| w.issue).map(|issue| issue.flight);
        let n = flights.map(|flight| block.flights.reads(flight, &granules)).count();
        if n > 0 {
            block.shared.begin_reads(n as u32, &granules, leaf.site);
        }
    }

    fn measure_atom(&mut self, i: usize, atom: &BoundAtom, results: &Tile) {
        let (rounds, scalar) = rounds(atom);
        self.measure(i, rounds, scalar, results);
    }

    fn each_alone(
        &mut self,
        i: usize,
        atom: &BoundAtom,
        threads: &[u16],
        first_warp: usize,
        whos: &mut [Who],
        scratch: &mut Scratch,
    ) -> Checked<()> {
        self.count(i, atom, threads, scratch)?;
        let mut results = Tile::default();
        for thread in threads {
            let alone = [*thread];
            let mut lanes = Lanes { threads: &alone, first_warp, whos: &mut *whos };
            self.gather(i, atom, &mut lanes, scratch, false)?;
            compute(atom, scratch, self.mode.shadows);
            results.extend(&scratch.output);
        }
        self.measure_atom(i, atom, &results);
        let n = results.bits.len() / threads.len().max(1);
        for (j, thread) in threads.iter().enumerate() {
            let alone = [*thread];
            let mut lanes = Lanes { threads: &alone, first_warp, whos: &mut *whos };
            scratch.output.clear();
            for k in j * n..(j + 1) * n {
                scratch.output.push(results.get(k), self.mode.shadows);
            }
            self.scatter(i, atom, &mut lanes, scratch, false)?;
            if atom.asynchronous {
                self.keep_sources(atom, usize::from(*thread), self.kernel.leaves[i].site)?;
            }
            self.counts.multiply_adds += atom.multiply_adds();
        }
        Ok(())
    }

    /// Reads the tiles of the read operands; for accumulators, the tile of the output.
    fn gather(
        &mut self,
        i: usize,
        atom: &BoundAtom,
        lanes: &mut Lanes<'_>,
        scratch: &mut Scratch,
        banks: bool,
    ) -> Checked<()> {
        // Only atoms of one thread have `valid`.
        let thread = lanes.threads.first().map_or(0, |t| usize::from(*t));
        let site = lanes.whos[0].site;
        let valid = atom.valid.as_ref().map(|v| self.index(v, thread, site)).transpose()?;
        scratch.tiles.resize_with(atom.reads.len(), Tile::default);
        for (n, operand) in atom.reads.iter().enumerate() {
            let mut tile = std::mem::take(&mut scratch.tiles[n]);
            tile.clear();
            self.gather_operand(i, operand, lanes, scratch, &mut tile, (banks, valid))?;
            scratch.tiles[n] = tile;
        }
        scratch.output.clear();
        let adds = matches!(atom.op, BoundOp::Accumulate(_));
        if let Some(operand) = atom.writes.first().filter(|w| !adds && !w.reads.is_empty()) {
            let mut tile = std::mem::take(&mut scratch.output);
            self.gather_operand(i, operand, lanes, scratch, &mut tile, (banks, None))?;
            scratch.output = tile;
        }
        Ok(())
    }

    fn gather_operand(
        &mut self,
        i: usize,
        operand: &BoundOperand,
        lanes: &mut Lanes<'_>,
        scratch: &mut Scratch,
        tile: &mut Tile,
        (banks, valid): (bool, Option<i64>),
    ) -> Checked<()> {
        let index = match operand.source {
            Source::View(v) => v,
            Source::Number(literal) => {
                for _ in &operand.reads {
                    tile.push(Value::literal(&literal), self.mode.shadows);
                }
                return Ok(());
            }
        };
        self.bases(index, lanes, scratch)?;
        if operand.described {
            return self.gather_described(operand, index, lanes, scratch, tile);
        }
        let kernel = self.kernel;
        let view = &kernel.views[index];
        if let (Space::Registers(r), None) = (view.space, valid) {
            let Block { registers, flights, .. } = &mut self.blocks[self.rank];
            let bases = &scratch.bases;
            let places = operand.reads.iter().map(|slot| lanes.place(bases, view, *slot));
            let (warps, on) = ((lanes.first_warp, &*lanes.whos), self.mode.shadows);
            let of = lanes.accumulator(operand, bases);
            if let Some(held) = of.and_then(|of| registers[r].take(&of, lanes.whos, flights)) {
                *tile = held;
                return Ok(());
            }
            if registers[r].read_tile(places, warps, flights, tile, on).is_some() {
                return Ok(());
            }
            tile.clear();
            for slot in &operand.reads {
                let at = scratch.bases.place(view, *slot);
                let (thread, who) = lanes.who(slot.lane);
                let failure = match registers[r].read(thread, at, who, flights) {
                    Ok(Some(value)) => {
                        tile.push(value, self.mode.shadows);
                        continue;
                    }
                    Ok(None) => Failure::Undefined,
                    Err(fault) => fault.into(),
                };
                let access = ElementAccess { view: index, at, write: false, thread };
                return errors::failed(kernel, self.env.block, who, &access, &failure);
            }
            return Ok(());
        }
        self.addresses(i, operand, index, lanes, scratch, banks, operand.reads.iter().copied())?;
        for slot in &operand.reads {
            if valid.is_some_and(|n| i64::from(slot.element) >= n) {
                tile.push(Value::ZERO, self.mode.shadows);
                continue;
            }
            let at = scratch.bases.place(view, *slot);
            let (thread, who) = lanes.who(slot.lane);
            match self.blocks[self.rank].read(view, at, thread, who) {
                Ok(value) => tile.push(value, self.mode.shadows),
                Err(e) => {
                    let access = ElementAccess { view: index, at, write: false, thread };
                    return errors::failed(kernel, self.env.block, who, &access, &e);
                }
            }
        }
        Ok(())
    }

    /// Reads a tile that a descriptor names. Every warp reads it, and all threads must agree on its
    /// start.
    fn gather_described(
        &mut self,
        operand: &BoundOperand,
        index: usize,
        lanes: &mut Lanes<'_>,
        scratch: &mut Scratch,
        tile: &mut Tile,
    ) -> Checked<()> {
        let kernel = self.kernel;
        let view = &kernel.views[index];
        let offsets = &scratch.bases.offsets;
        if let Some(lane) = offsets.iter().position(|at| *at != offsets[0]) {
            let (thread, who) = lanes.who(lane as u16);
            return errors::several_tiles(kernel, who, index, thread);
        }
        let warps = lanes.threads.len().div_ceil(32) as u16;
        let whos: Vec<Who> = (0..warps).map(|warp| lanes.who(32 * warp).1.clone()).collect();
        let Scratch { bases, granules, .. } = &mut *scratch;
        let place =
            |place: &u32| (*place as usize, bases.place(view, operand.reads[*place as usize]));
        let places = operand.order.iter().map(place);
        tile.resize(operand.reads.len(), self.mode.shadows);
        if self.blocks[self.rank].read_tile(view, places, &whos, tile, granules).is_some() {
            return Ok(());
        }
        for slot in &operand.reads {
            let at = scratch.bases.place(view, *slot);
            let block = &mut self.blocks[self.rank];
            match block.read_by_all(view, at, &whos, &mut scratch.granules) {
                Ok(value) => tile.push(value, self.mode.shadows),
                Err((who, e)) => {
                    let thread = usize::from(who.thread);
                    let access = ElementAccess { view: index, at, write: false, thread };
                    return errors::failed(kernel, self.env.block, who, &access, &e);
                }
            }
        }
        Ok(())
    }

    fn scatter(
        &mut self,
        i: usize,
        atom: &BoundAtom,
        lanes: &mut Lanes<'_>,
        scratch: &mut Scratch,
        banks: bool,
    ) -> Checked<()> {
        let Some(operand) = atom.writes.first() else { return Ok(()) };
        let Source::View(index) = operand.source else { return Ok(()) };
        self.bases(index, lanes, scratch)?;
        let kernel = self.kernel;
        let view = &kernel.views[index];
        if let Space::Registers(r) = view.space
            && !matches!(atom.op, BoundOp::Accumulate(_))
        {
            let Block { registers, flights, .. } = &mut self.blocks[self.rank];
            let Scratch { bases, output, .. } = &mut *scratch;
            let site = lanes.whos[0].site;
            let of = lanes.accumulator(operand, bases);
            if let Some(of) = &of
                && registers[r].put_back(of, lanes.whos, flights, (output, site)).is_some()
            {
                return Ok(());
            }
            let places = operand.writes.iter().map(|(slot, _)| lanes.place(bases, view, *slot));
            let values = operand.writes.iter().map(|(_, from)| output.get(*from as usize));
            let warps = (lanes.first_warp, &*lanes.whos);
            if registers[r].write_tile(places.clone(), warps, flights, values, site).is_some() {
                // Each register has one place in the tile, and is read at that place, too.
                let reads = &operand.reads;
                let is_read =
                    |(slot, place): &(Slot, u32)| reads.get(*place as usize) == Some(slot);
                let alike =
                    reads.len() == operand.writes.len() && operand.writes.iter().all(is_read);
                if let Some(of) = of.filter(|_| reads.is_empty() || alike) {
                    let places = places.zip(operand.writes.iter().map(|(_, place)| *place));
                    registers[r].keep(of, lanes.whos, places, (output, site));
                }
                return Ok(());
            }
            for (slot, from) in &operand.writes {
                let at = scratch.bases.place(view, *slot);
                let (thread, who) = lanes.who(slot.lane);
                let value = scratch.output.get(*from as usize);
                if let Err(fault) = registers[r].write(thread, at, value, who, flights) {
                    let access = ElementAccess { view: index, at, write: true, thread };
                    return errors::failed(kernel, self.env.block, who, &access, &fault.into());
                }
            }
            return Ok(());
        }
        let slots = operand.writes.iter().map(|(slot, _)| *slot);
        self.addresses(i, operand, index, lanes, scratch, banks, slots)?;
        for (slot, from) in &operand.writes {
            let at = scratch.bases.place(view, *slot);
            let (thread, who) = lanes.who(slot.lane);
            let value = scratch.output.get(*from as usize);
            let block = &mut self.blocks[self.rank];
            let done = match atom.op {
                BoundOp::Accumulate(op) => {
                    block.accumulate(view, at, value, thread, who, op).map(|()| None)
                }
                _ => block.write(view, at, value, thread, who, atom.asynchronous),
            };
            match done {
                Ok(None) => {}
                Ok(Some(pending)) => {
                    self.blocks[self.rank].copies[thread].open.elements.push(pending)
                }
                Err(e) => {
                    let access = ElementAccess { view: index, at, write: true, thread };
                    return errors::failed(kernel, self.env.block, who, &access, &e);
                }
            }
        }
        Ok(())
    }

    /// The start of each lane's view.
    fn bases(&self, view: usize, lanes: &Lanes<'_>, scratch: &mut Scratch) -> Checked<()> {
        let view = &self.kernel.views[view];
        let env = &self.env;
        let site = lanes.whos[0].site;
        let bad = |e| errors::bad_index(self.kernel, site, e);
        let start = view.offset.base(env).map_err(bad)?;
        let Bases { offsets, bounded } = &mut scratch.bases;
        offsets.clear();
        bounded.clear();
        for t in lanes.threads {
            let thread = usize::from(*t);
            if view.is_bounded() {
                bounded.push(view.base(start, env, thread).map_err(bad)?);
            } else {
                offsets.push(view.offset.at(start, env, thread).map_err(bad)?);
            }
        }
        Ok(())
    }

    /// Checks the alignment of the used addresses, and counts bank conflicts. If an atom's first
    /// element does not exist, the other elements are accessed separately.
    #[expect(clippy::too_many_arguments, reason = "one place, two callers")]
    fn addresses(
        &mut self,
        i: usize,
        operand: &BoundOperand,
        index: usize,
        lanes: &mut Lanes<'_>,
        scratch: &mut Scratch,
        banks: bool,
        slots: impl Iterator<Item = Slot>,
    ) -> Checked<()> {
        let kernel = self.kernel;
        let view = &kernel.views[index];
        if matches!(view.space, Space::Registers(_)) {
            return Ok(());
        }
        scratch.addresses.clear();
        // For lanes that may lack elements: the first byte and the number of bytes of each lane.
        let mut spans: Vec<(i64, i64)> = Vec::new();
        let mut seen = 0u128;
        for slot in slots {
            if seen >> slot.lane & 1 == 1 {
                continue;
            }
            seen |= 1 << slot.lane;
            let place = |element| scratch.bases.place(view, Slot { lane: slot.lane, element });
            let (mut at, mut is_first) = (place(0), true);
            if view.is_outside(at) {
                let inside = |at: &i64| !view.is_outside(*at);
                let n = operand.bytes * 8 / view.scalar.bits().max(1);
                let n = u16::try_from(n).unwrap_or(u16::MAX);
                (at, is_first) = ((1..n).map(place).find(inside).unwrap_or(at), false);
            }
            let (thread, who) = lanes.who(slot.lane);
            // The access itself reports an address outside of the buffer.
            let Some(byte) = self.blocks[self.rank].byte_offset(view, at) else { continue };
            if is_first && byte % operand.align != 0 {
                let access = ElementAccess { view: index, at, write: false, thread };
                return errors::misaligned(kernel, who, &access, operand.align, byte);
            }
            scratch.addresses.push(byte);
            if view.is_bounded() {
                let base = &scratch.bases.bounded[usize::from(slot.lane)];
                spans.push((byte, there(view, base, operand.bytes)));
            }
        }
        if banks && view.is_bounded() {
            self.count_spans(i, view.space, spans);
        } else if banks && !scratch.addresses.is_empty() {
            self.count_access(i, view.space, &scratch.addresses, operand.bytes);
        }
        Ok(())
    }

    /// Counts the accesses of lanes, each with its first byte and number of bytes.
    fn count_spans(&mut self, i: usize, space: Space, spans: Vec<(i64, i64)>) {
        if matches!(space, Space::Global(_) | Space::Gathered(_)) {
            self.counts.leaves[i].global.add_spans(spans);
        }
    }

    fn count_access(&mut self, i: usize, space: Space, addresses: &[i64], bytes: i64) {
        let count = &mut self.counts.leaves[i];
        match space {
            Space::Shared(_) => count.shared.add(addresses, bytes),
            Space::Global(_) | Space::Gathered(_) => count.global.add(addresses, bytes),
            Space::Registers(_) | Space::Index | Space::Param(_) => {}
        }
    }

    /// Counts the accesses of an atom of one thread, which a warp executes at once.
    fn count(
        &mut self,
        i: usize,
        atom: &BoundAtom,
        threads: &[u16],
        scratch: &mut Scratch,
    ) -> Checked<()> {
        for operand in atom.reads.iter().chain(&atom.writes) {
            let Source::View(index) = operand.source else { continue };
            let kernel = self.kernel;
            let view = &kernel.views[index];
            if matches!(view.space, Space::Registers(_)) {
                continue;
            }
            let site = kernel.leaves[i].site;
            let valid = atom.valid.as_ref().filter(|_| !operand.reads.is_empty());
            let (mut few, n) = (Vec::new(), operand.reads.len().max(1) as i64);
            scratch.addresses.clear();
            let in_part = valid.is_some() || view.is_bounded();
            for t in threads {
                let thread = usize::from(*t);
                let base = self.base(view, thread, site)?;
                let at = if base.is_partial() { view.place(&base, 0) } else { base.at };
                let Some(byte) = self.blocks[self.rank].byte_offset(view, at) else { continue };
                scratch.addresses.push(byte);
                if !in_part {
                    continue;
                }
                let mut bytes = there(view, &base, operand.bytes);
                if let Some(valid) = valid {
                    let valid = self.index(valid, thread, site)?.clamp(0, n);
                    bytes = bytes.min((operand.bytes * valid + n - 1) / n);
                }
                few.push((byte, bytes));
            }
            match in_part && !matches!(view.space, Space::Shared(_)) {
                true => self.count_spans(i, view.space, few),
                false => self.count_access(i, view.space, &scratch.addresses, operand.bytes),
            }
        }
        Ok(())
    }
}

/// The number of the first `bytes` bytes of a view that exist.
fn there(view: &View, base: &Base, bytes: i64) -> i64 {
    if !base.is_partial() {
        return bytes;
    }
    let bits = view.scalar.bits();
    let elements = usize::try_from(bytes * 8 / bits).unwrap_or(0);
    let n = (0..elements).filter(|e| view.place(base, *e) != OUTSIDE).count();
    (n as i64 * bits + 7) / 8
}

/// Computes the output's tile from the input tiles.
pub(super) fn compute(atom: &BoundAtom, scratch: &mut Scratch, shadows: bool) {
    let Scratch { tiles, output, .. } = scratch;
    if let BoundOp::Binary(_, from, _) = atom.op {
        for (tile, read) in tiles.iter_mut().zip(&atom.reads) {
            if let Source::Number(literal) = read.source {
                tile.bits.fill(crate::num::encode(from, literal.rounded));
            }
        }
    }
    compute_bits(atom, tiles, &mut output.bits);
    if shadows {
        let beyond = compute_shadows(atom, tiles, &mut output.shadows);
        if let BoundOp::Binary(_, from, to) = atom.op
            && !from.is_float()
            && from.bits() > 53
        {
            keep_integers(from, to, tiles, output);
        }
        scratch.beyond = scratch.beyond.or(beyond);
    }
    if let (Some(bound), (Rounds::Floats, scalar)) = (&atom.bound, rounds(atom)) {
        scratch.stated = scratch.stated.max(stated(bound, scalar, &tiles[0], output));
    }
}

/// Sets the shadows of 64-bit integers to the results if the operands equal their shadows: binary64
/// rounds such integers, the device does not.
fn keep_integers(from: Scalar, to: Scalar, tiles: &[Tile], output: &mut Tile) {
    let is_same = |tile: &Tile, i: usize| {
        let bits = tile.bits.get(i).or(tile.bits.first());
        let shadow = tile.shadows.get(i).or(tile.shadows.first());
        bits.zip(shadow).is_none_or(|(bits, shadow)| decode(from, *bits) == *shadow)
    };
    for (i, (bits, shadow)) in output.bits.iter().zip(&mut output.shadows).enumerate() {
        if tiles.iter().all(|tile| is_same(tile, i)) {
            *shadow = decode(to, *bits);
        }
    }
}

/// The largest error that a bound allows for these results, in units in the last place. Operands
/// and results have one type.
fn stated(bound: &ErrorBound, scalar: Scalar, operands: &Tile, results: &Tile) -> f64 {
    let of = |(i, y): (usize, &u64)| {
        let x = operands.bits.get(i).or(operands.bits.first()).copied().unwrap_or(0);
        let y = decode(scalar, *y);
        let error = bound.of_normal(decode(scalar, x), y) / ulp(scalar, y);
        if error.is_finite() { error } else { 0.0 }
    };
    results.bits.iter().enumerate().map(of).fold(0.0, f64::max)
}

/// The output of an atom that only moves elements, as bits or as shadows; false for any other atom.
fn moved<'t, T: Copy + Default + PartialEq + 't>(
    op: &BoundOp,
    tile: impl Fn(usize) -> &'t [T],
    output: &mut Vec<T>,
) -> bool {
    match op {
        BoundOp::Move | BoundOp::Accumulate(_) => output.extend(tile(0)),
        BoundOp::Select => {
            let both = tile(1).iter().zip(tile(2));
            let chosen = |(p, (x, y)): (&T, (&T, &T))| if *p == T::default() { *y } else { *x };
            output.extend(tile(0).iter().zip(both).map(chosen));
        }
        BoundOp::Shuffle { .. } => {
            output.extend((0..tile(0).len()).map(|place| tile(0)[shuffled(op, place)]));
        }
        _ => return false,
    }
    true
}

fn compute_bits(atom: &BoundAtom, tiles: &[Tile], output: &mut Vec<u64>) {
    let tile = |i: usize| &tiles[i].bits[..];
    // A MatMul adds to the gathered accumulator, a `MatMul.set` to zero.
    if !matches!(atom.op, BoundOp::MatMul { .. }) {
        output.clear();
    }
    if moved(&atom.op, tile, output) {
        return;
    }
    match atom.op {
        BoundOp::Tf32Away => output.extend(tile(0).iter().map(|x| arith::tf32_away(*x))),
        BoundOp::Unary(op, from, to) => {
            output.extend(tile(0).iter().map(|x| arith::unary(op, from, to, *x)));
        }
        BoundOp::Binary(op, from, to) => {
            let both = tile(0).iter().zip(tile(1));
            output.extend(both.map(|(x, y)| arith::binary(op, from, to, *x, *y)));
        }
        BoundOp::Init(to) => {
            let first = tiles.first().and_then(|t| t.bits.first());
            let value = first.map_or(0.0, |v| f64::from_bits(*v));
            output.resize(n_written(atom), crate::num::encode(to, value));
        }
        BoundOp::Reduction(op, scalar) => output.push(arith::reduce(op, scalar, tile(0))),
        BoundOp::Move | BoundOp::Accumulate(_) | BoundOp::Select | BoundOp::Shuffle { .. } => {}
        BoundOp::MatMul { extents, from, to } => {
            let [l, m, n, _] = extents;
            output.resize(l * m * n, crate::num::encode(to, 0.0));
            arith::matmul(extents, from, to, tile(0), tile(1), output);
        }
    }
}

/// Returns a number beyond the range of the type that the atom casts to, and its result.
fn compute_shadows(atom: &BoundAtom, tiles: &[Tile], output: &mut Vec<f64>) -> Option<(f64, f64)> {
    let tile = |i: usize| &tiles[i].shadows[..];
    if !matches!(atom.op, BoundOp::MatMul { .. }) {
        output.clear();
    }
    if !moved(&atom.op, tile, output) {
        shadow::compute(&atom.op, &tile, tiles.len(), n_written(atom), output);
    }
    match atom.op {
        BoundOp::Unary(_, _, to) => shadow::narrow(atom.cast?, to, output),
        BoundOp::Tf32Away => shadow::narrow(atom.cast?, Scalar::Tf32, output),
        _ => None,
    }
}

/// The rounding that an atom applies to values but not to shadows, and the type of its results.
fn rounds(atom: &BoundAtom) -> (Rounds, Scalar) {
    match atom.op {
        BoundOp::Unary(op, from, to) => (Rounds::unary(op, from, to), to),
        BoundOp::Binary(op, from, to) => (Rounds::binary(op, from), to),
        BoundOp::MatMul { to, .. } | BoundOp::Reduction(_, to) => (Rounds::sum(to), to),
        BoundOp::Tf32Away => (Rounds::Floats, Scalar::Tf32),
        BoundOp::Move
        | BoundOp::Accumulate(_)
        | BoundOp::Select
        | BoundOp::Init(_)
        | BoundOp::Shuffle { .. } => (Rounds::Not, Scalar::F32),
    }
}

/// The number of written scalars of the tile.
fn n_written(atom: &BoundAtom) -> usize {
    atom.writes.first().map_or(0, |w| w.writes.len())
}

/// The source of a place in a shuffle's tile.
fn shuffled(op: &BoundOp, place: usize) -> usize {
    let BoundOp::Shuffle { op, lane, n_lanes, per_unit } = *op else { return place };
    let (unit, part) = (place / per_unit, place % per_unit);
    let from = arith::source_lane(op, unit % n_lanes, lane, n_lanes);
    (unit - unit % n_lanes + from) * per_unit + part
}
