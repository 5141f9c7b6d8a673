//! Stores the registers of a block ([`Registers`]): every thread has its own copy of a register
//! buffer.
//!
//! Asynchronous MatMuls (`wgmma`) read and write registers until a wait. `register_use` has the
//! rules for other accesses to these registers. In a kernel with such MatMuls, every register
//! therefore has a record of its last ordinary access and of the MatMuls that use it.
//! `accumulators` stores the accumulators of consecutive MatMuls as whole tiles.

use super::accumulators::{Accumulator, HeldAccumulator};
use super::async_matmul::Flights;
use super::clock::Who;
use super::register_use::{RegisterFault, RegisterUse};
use super::value::{Shadows, Tile, Value};
use crate::plan::Mask;

/// A register buffer of all threads.
pub(crate) struct Registers {
    len: usize,
    n_threads: usize,
    /// The values by register, then by thread: lanes are executed together.
    values: Vec<u64>,
    shadows: Shadows,
    /// One more than the statement of the last write; 0 if undefined.
    written: Vec<u32>,
    /// The state of each register; empty if no asynchronous MatMul uses the buffer.
    watched: Vec<RegisterUse>,
    /// The accumulators that are stored as tiles.
    held: Vec<HeldAccumulator>,
    /// The accumulators that were written last. If the next MatMul uses the same registers, they
    /// are stored as tiles.
    seen: Vec<Accumulator>,
}

impl Registers {
    /// Undefined registers, `len` scalars for each of `n_threads` threads; `watched`: asynchronous
    /// MatMuls may use them.
    pub(crate) fn new(len: usize, n_threads: usize, watched: bool, shadows: bool) -> Self {
        let n = len * n_threads;
        let watched = vec![RegisterUse::default(); if watched { n } else { 0 }];
        let shadows = Shadows::new(n, shadows);
        let (values, written) = (vec![0; n], vec![0; n]);
        let (held, seen) = (Vec::new(), Vec::new());
        Registers { len, n_threads, values, shadows, written, watched, held, seen }
    }

    /// The value of a slot; none if undefined.
    #[inline]
    fn value(&self, slot: usize) -> Option<Value> {
        let value = || Value { bits: self.values[slot], shadow: self.shadows.get(slot) };
        (self.written[slot] != 0).then(value)
    }

    #[inline]
    fn put(&mut self, slot: usize, value: Value, site: u32) {
        self.values[slot] = value.bits;
        self.shadows.set(slot, value.shadow);
        self.written[slot] = site + 1;
    }

    #[inline]
    fn slot(&self, thread: usize, at: i64) -> Option<usize> {
        let at = usize::try_from(at).ok().filter(|at| *at < self.len)?;
        (thread < self.n_threads).then(|| at * self.n_threads + thread)
    }

    /// The value of a register; `Ok(None)` if undefined.
    ///
    /// # Errors
    /// The register is outside of the buffer, or an asynchronous MatMul conflicts.
    #[inline]
    pub(crate) fn read(
        &mut self,
        thread: usize,
        at: i64,
        who: &Who,
        flights: &Flights,
    ) -> Result<Option<Value>, RegisterFault> {
        self.let_go(thread / 32, std::slice::from_ref(who));
        let slot = self.slot(thread, at).ok_or(RegisterFault::Outside)?;
        if let Some(watched) = self.watched.get_mut(slot) {
            watched.access(who, flights, false)?;
        }
        Ok(self.value(slot))
    }

    /// Writes a register.
    ///
    /// # Errors
    /// The errors of [`Registers::read`].
    #[inline]
    pub(crate) fn write(
        &mut self,
        thread: usize,
        at: i64,
        value: Value,
        who: &Who,
        flights: &Flights,
    ) -> Result<(), RegisterFault> {
        self.let_go(thread / 32, std::slice::from_ref(who));
        let slot = self.slot(thread, at).ok_or(RegisterFault::Outside)?;
        if let Some(watched) = self.watched.get_mut(slot) {
            watched.access(who, flights, true)?;
        }
        self.put(slot, value, who.site);
        Ok(())
    }

    /// Accesses registers of threads, one after the other, with the state of their warps, the first
    /// warp first. None if an access is not allowed; accessing the registers individually then
    /// reports the error.
    #[inline]
    fn access_tile(
        &mut self,
        places: impl Iterator<Item = (usize, i64)>,
        (first_warp, whos): (usize, &[Who]),
        flights: &Flights,
        write: bool,
        mut access: impl FnMut(&mut Self, usize) -> Option<()>,
    ) -> Option<()> {
        self.let_go(first_warp, whos);
        // The result of the last access for the state of a register, by warp.
        let mut known = None;
        for (thread, at) in places {
            let slot = self.slot(thread, at)?;
            if let Some(watched) = self.watched.get_mut(slot) {
                let warp = thread / 32 - first_warp;
                match known {
                    Some((w, before, after)) if w == warp && before == *watched => *watched = after,
                    _ => {
                        let before = *watched;
                        watched.access(&whos[warp], flights, write).ok()?;
                        known = Some((warp, before, *watched));
                    }
                }
            }
            access(self, slot)?;
        }
        Some(())
    }

    /// Reads registers, see [`Registers::access_tile`]; none also if one of them is undefined.
    pub(crate) fn read_tile(
        &mut self,
        places: impl Iterator<Item = (usize, i64)>,
        warps: (usize, &[Who]),
        flights: &Flights,
        tile: &mut Tile,
        shadows: bool,
    ) -> Option<()> {
        self.access_tile(places, warps, flights, false, |registers, slot| {
            tile.push(registers.value(slot)?, shadows);
            Some(())
        })
    }

    /// Writes one register for each value, see [`Registers::access_tile`].
    pub(crate) fn write_tile(
        &mut self,
        places: impl Iterator<Item = (usize, i64)>,
        warps: (usize, &[Who]),
        flights: &Flights,
        mut values: impl Iterator<Item = Value>,
        site: u32,
    ) -> Option<()> {
        self.access_tile(places, warps, flights, true, |registers, slot| {
            registers.put(slot, values.next()?, site);
            Some(())
        })
    }

    /// Makes the registers of warps accessible individually.
    #[inline]
    fn let_go(&mut self, first_warp: usize, whos: &[Who]) {
        if whos.iter().all(|who| who.issue.is_none()) {
            self.seen.clear();
        }
        if !self.held.is_empty() {
            self.scatter(first_warp, first_warp + whos.len());
        }
    }

    /// Writes the values of stored accumulators back to the registers of the warps from
    /// `first_warp` up to `end`.
    fn scatter(&mut self, first_warp: usize, end: usize) {
        if !self.held.iter().any(|held| held.has_any(first_warp, end)) {
            return;
        }
        self.store();
        for held in self.held.extract_if(.., |held| held.has_any(first_warp, end)) {
            for (slot, _) in &held.slots {
                let warp = *slot as usize % self.n_threads / 32;
                self.watched[*slot as usize] = held.state(warp);
            }
        }
    }

    /// Writes the values of all stored accumulators back to their registers, and keeps the tiles.
    pub(crate) fn store(&mut self) {
        let mut all = std::mem::take(&mut self.held);
        let is_there = |held: &&mut HeldAccumulator| !held.is_stored && !held.tile.bits.is_empty();
        for held in all.iter_mut().filter(is_there) {
            held.is_stored = true;
            for (slot, place) in &held.slots {
                self.put(*slot as usize, held.tile.get(*place as usize), held.site);
            }
        }
        self.held = all;
    }

    /// Takes the values of a stored accumulator, for warps that are about to write it; none if it
    /// is not stored, or if a MatMul conflicts.
    pub(crate) fn take(
        &mut self,
        of: &Accumulator,
        whos: &[Who],
        flights: &Flights,
    ) -> Option<Tile> {
        let held = self.held.iter_mut().find(|held| held.is(of))?;
        held.access(whos, flights, false)?;
        Some(std::mem::take(&mut held.tile))
    }

    /// Writes a stored accumulator; none if it is not stored, or if a MatMul conflicts. Exchanges
    /// the tile for another one.
    pub(crate) fn put_back(
        &mut self,
        of: &Accumulator,
        whos: &[Who],
        flights: &Flights,
        (tile, site): (&mut Tile, u32),
    ) -> Option<()> {
        let held = self.held.iter_mut().find(|held| held.is(of))?;
        held.access(whos, flights, true)?;
        std::mem::swap(&mut held.tile, tile);
        (held.site, held.is_stored) = (site, false);
        Some(())
    }

    /// Stores an accumulator as a tile after a statement has written it, if the previous statement
    /// also wrote it. `places` are those of its registers, each with its place in the tile.
    pub(crate) fn keep(
        &mut self,
        of: Accumulator,
        whos: &[Who],
        places: impl Iterator<Item = ((usize, i64), u32)>,
        (tile, site): (&Tile, u32),
    ) {
        if !self.seen.contains(&of) {
            self.seen.retain(|seen| seen.first_warp != of.first_warp);
            self.seen.push(of);
            return;
        }
        let slot = |((thread, at), place)| Some((self.slot(thread, at)? as u32, place));
        let Some(slots) = places.map(slot).collect::<Option<Vec<_>>>() else { return };
        let watched = |slot: u32| {
            let state = self.watched.get(slot as usize).copied().unwrap_or_default();
            (slot as usize % self.n_threads / 32, state)
        };
        self.held.extend(HeldAccumulator::new(&of, whos, slots, watched, (tile, site)));
    }

    /// The value of a plain register; none if undefined or outside of the buffer.
    #[inline]
    pub(crate) fn get(&self, thread: usize, at: i64) -> Option<Value> {
        self.slot(thread, at).and_then(|slot| self.value(slot))
    }

    /// Writes a plain register; none if outside of the buffer.
    #[inline]
    pub(crate) fn set(&mut self, thread: usize, at: i64, value: Value, site: u32) -> Option<()> {
        let slot = self.slot(thread, at)?;
        self.put(slot, value, site);
        Some(())
    }

    /// The value of a register, including pending writes; none if undefined or outside of the
    /// buffer.
    pub(crate) fn peek(&self, thread: usize, at: i64) -> Option<Value> {
        self.get(thread, at)
    }

    /// The statement of the last write.
    pub(crate) fn writer(&self, thread: usize, at: i64) -> Option<u32> {
        self.slot(thread, at).and_then(|s| self.written[s].checked_sub(1))
    }

    /// Makes the registers of some threads undefined again.
    pub(crate) fn clear(&mut self, threads: &Mask) {
        self.scatter(0, self.n_threads);
        for register in self.written.chunks_mut(self.n_threads.max(1)) {
            for (lanes, of_warp) in threads.0.iter().zip(register.chunks_mut(32)) {
                if *lanes == u32::MAX {
                    of_warp.fill(0);
                    continue;
                }
                let own = of_warp.iter_mut().enumerate().filter(|(l, _)| lanes >> l & 1 == 1);
                own.for_each(|(_, written)| *written = 0);
            }
        }
    }
}
