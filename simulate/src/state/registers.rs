//! Registers: every thread of a block has its own copy of a register buffer.
//!
//! Asynchronous MatMuls read and write registers until a wait; till then no other instruction may touch
//! them, and what other instructions touched they may take only behind a fence. Where a kernel has such
//! MatMuls, the last access of every register is kept, and who still reads or writes it.

use super::clock::Who;
use super::flight::Flights;
use super::value::{Shadows, Tile, Value};
use crate::plan::Mask;

/// A register buffer of all threads.
pub(crate) struct Registers {
    len: usize,
    n_threads: usize,
    /// Register by register, of each the threads' one after the other: lanes are executed together.
    values: Vec<u64>,
    shadows: Shadows,
    /// One more than the statement that wrote it last; 0 for undefined.
    written: Vec<u32>,
    /// Of each register; empty where no asynchronous MatMul uses them.
    watched: Vec<Watched>,
}

/// The asynchronous MatMuls that use a register.
#[derive(Copy, Clone, Default, PartialEq)]
struct Watched {
    /// The execution that accessed it last, asynchronous ones apart.
    last: u32,
    /// The MatMul that will write it, or has written it if that is no longer under way; 0 for none.
    writing: u32,
    /// As `writing`, that reads it.
    reading: u32,
}

/// Why a register cannot be accessed so.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum RegisterFault {
    /// It is none of the buffer.
    Outside,
    /// A MatMul, issued by the statement, writes it.
    Pending(u32),
    /// A MatMul, issued by the statement, reads it.
    Busy(u32),
    /// A fence is missing between its last access and the MatMul.
    Unfenced,
}

impl Registers {
    /// Undefined registers, `len` scalars for each of so many threads; `watched` where asynchronous
    /// MatMuls may use them.
    pub(crate) fn new(len: usize, n_threads: usize, watched: bool, shadows: bool) -> Self {
        let n = len * n_threads;
        let watched = vec![Watched::default(); if watched { n } else { 0 }];
        let shadows = Shadows::new(n, shadows);
        Registers { len, n_threads, values: vec![0; n], shadows, written: vec![0; n], watched }
    }

    /// What a slot holds; none while undefined.
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

    /// The value; `Ok(None)` where undefined.
    ///
    /// # Errors
    /// The register is none of the buffer, or an asynchronous MatMul stands against it.
    #[inline]
    pub(crate) fn read(
        &mut self,
        thread: usize,
        at: i64,
        who: &Who,
        flights: &Flights,
    ) -> Result<Option<Value>, RegisterFault> {
        let slot = self.slot(thread, at).ok_or(RegisterFault::Outside)?;
        if let Some(watched) = self.watched.get_mut(slot) {
            watched.access(who, flights, false)?;
        }
        Ok(self.value(slot))
    }

    /// Writes.
    ///
    /// # Errors
    /// As reading.
    #[inline]
    pub(crate) fn write(
        &mut self,
        thread: usize,
        at: i64,
        value: Value,
        who: &Who,
        flights: &Flights,
    ) -> Result<(), RegisterFault> {
        let slot = self.slot(thread, at).ok_or(RegisterFault::Outside)?;
        if let Some(watched) = self.watched.get_mut(slot) {
            watched.access(who, flights, true)?;
        }
        self.put(slot, value, who.site);
        Ok(())
    }

    /// Accesses registers of threads, one after the other, by what their warps know, the first warp first. None where one of
    /// them cannot be accessed: who accesses them again, each alone, is told why.
    #[inline]
    fn access_tile(
        &mut self,
        places: impl Iterator<Item = (usize, i64)>,
        (first_warp, whos): (usize, &[Who]),
        flights: &Flights,
        write: bool,
        mut access: impl FnMut(&mut Self, usize) -> Option<()>,
    ) -> Option<()> {
        // What the last access made of a register's state, by a warp.
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

    /// Reads registers as [`Registers::access_tile`] says; none where one is undefined, too.
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

    /// Writes as many registers as there are values, as [`Registers::access_tile`] says.
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

    /// The value of a plain register; none where undefined or outside.
    #[inline]
    pub(crate) fn get(&self, thread: usize, at: i64) -> Option<Value> {
        self.slot(thread, at).and_then(|slot| self.value(slot))
    }

    /// Writes a plain register; none outside.
    #[inline]
    pub(crate) fn set(&mut self, thread: usize, at: i64, value: Value, site: u32) -> Option<()> {
        let slot = self.slot(thread, at)?;
        self.put(slot, value, site);
        Some(())
    }

    /// The value as it is or will be; none where undefined or outside.
    pub(crate) fn peek(&self, thread: usize, at: i64) -> Option<Value> {
        self.get(thread, at)
    }

    /// The statement that wrote it last.
    pub(crate) fn writer(&self, thread: usize, at: i64) -> Option<u32> {
        self.slot(thread, at).and_then(|s| self.written[s].checked_sub(1))
    }

    /// Makes some threads' registers undefined again.
    pub(crate) fn clear(&mut self, threads: &Mask) {
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

impl Watched {
    /// Notes an access, or says what stands against it.
    #[inline]
    fn access(&mut self, who: &Who, flights: &Flights, write: bool) -> Result<(), RegisterFault> {
        let Some(issue) = who.issue else {
            if let Some(flight) = flights.get(self.writing) {
                return Err(RegisterFault::Pending(flight.site()));
            }
            if let Some(flight) = flights.get(self.reading).filter(|_| write) {
                return Err(RegisterFault::Busy(flight.site()));
            }
            (self.writing, self.last) = (0, who.serial);
            return Ok(());
        };
        // It has been asked before whether this MatMul may.
        let asked = [self.reading, self.writing].contains(&issue.flight);
        match flights.get(self.writing) {
            _ if asked => {}
            Some(flight) if flight.shape() == issue.shape => {}
            Some(flight) => return Err(RegisterFault::Pending(flight.site())),
            None if self.last > issue.fence => return Err(RegisterFault::Unfenced),
            None => {}
        }
        match write {
            true => self.writing = issue.flight,
            false => self.reading = issue.flight,
        }
        Ok(())
    }
}
