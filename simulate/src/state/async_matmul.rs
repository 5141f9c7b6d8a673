//! Tracks asynchronous MatMuls (`wgmma`) from issue to completion. Until then, accesses to the
//! registers that they write, and writes to the registers and the shared memory that they read, are
//! errors. MatMuls with equal shapes may follow each other in one accumulator.
//!
//! A MatMul of several warps is one *flight* for each warp. A flight is complete when its warp has
//! committed its group and waited for the group. Then its registers may be used again, and the
//! shared memory that it read may be overwritten by threads that come after the wait.

use super::groups::Groups;
use std::collections::VecDeque;
use std::rc::Rc;

/// The extents and the type of an accumulator. MatMuls with equal shapes may use the same registers
/// in sequence without a fence.
pub(crate) type Shape = (usize, usize, carbyne_ir::scalar::Scalar);

/// The register accesses of an asynchronous MatMul of a warp.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Issue {
    /// The number of the flight, above 0.
    pub flight: u32,
    /// The shape of the accumulator.
    pub shape: Shape,
    /// The last execution before the warp's last fence.
    pub fence: u32,
}

/// The largest number of pending MatMuls of a block, counted for each warp.
const MAX_FLIGHTS: usize = 1 << 12;

/// One MatMul of one warp.
pub(crate) struct Flight {
    site: u32,
    shape: Shape,
    /// The granules of shared memory that the MatMul reads.
    pub granules: Rc<[u32]>,
}

/// The pending MatMuls of a block.
pub(crate) struct Flights {
    /// The flights in the order of their numbers. A complete flight leaves an empty entry; the
    /// first entry is never empty.
    flights: VecDeque<Option<Flight>>,
    /// The number of the first entry.
    first: u32,
    /// The state of each warp.
    pub warps: Vec<Warp>,
}

/// The groups of a warp.
#[derive(Default)]
pub(crate) struct Warp {
    /// The last execution before the last fence; none without a fence.
    pub fence: Option<u32>,
    groups: Groups<Vec<u32>>,
}

impl Flights {
    /// The initial state for `n_warps` warps.
    pub(crate) fn new(n_warps: usize) -> Self {
        let warps = (0..n_warps).map(|_| Warp::default()).collect();
        Flights { flights: VecDeque::new(), first: 1, warps }
    }

    /// Adds a MatMul of a warp.
    pub(crate) fn begin(&mut self, warp: usize, site: u32, shape: Shape) -> u32 {
        let number = self.first + self.flights.len() as u32;
        self.flights.push_back(Some(Flight { site, shape, granules: Rc::new([]) }));
        self.warps[warp].groups.open.push(number);
        number
    }

    /// Records the granules that a MatMul reads.
    pub(crate) fn reads(&mut self, flight: u32, granules: &Rc<[u32]>) {
        let index = self.index(flight);
        if let Some(flight) = index.and_then(|i| self.flights.get_mut(i)?.as_mut()) {
            flight.granules = Rc::clone(granules);
        }
    }

    /// Whether there are more flights than the limit.
    pub(crate) fn are_too_many(&self) -> bool {
        self.flights.len() > MAX_FLIGHTS && self.flights.iter().flatten().count() > MAX_FLIGHTS
    }

    /// Closes a warp's group.
    pub(crate) fn commit(&mut self, warp: usize) {
        self.warps[warp].groups.commit();
    }

    /// Removes the flights that are complete when a warp waits until `left` of its groups remain.
    pub(crate) fn wait(&mut self, warp: usize, left: usize) -> Vec<Flight> {
        let groups = &mut self.warps[warp].groups;
        let complete: Vec<u32> =
            std::iter::from_fn(|| groups.next_complete(left)).flatten().collect();
        let taken = |flight| {
            let index = self.index(flight)?;
            self.flights.get_mut(index)?.take()
        };
        let complete = complete.into_iter().filter_map(taken).collect();
        while let Some(None) = self.flights.front() {
            self.flights.pop_front();
            self.first += 1;
        }
        complete
    }

    /// The index of the entry for a number. The number 0 has no entry.
    #[inline]
    fn index(&self, flight: u32) -> Option<usize> {
        Some(flight.checked_sub(self.first)? as usize)
    }

    /// The flight with this number, if it is pending; the number 0 is none.
    #[inline]
    pub(crate) fn get(&self, flight: u32) -> Option<&Flight> {
        self.flights.get(self.index(flight)?)?.as_ref()
    }

    /// The statement of a flight of the warp that may still read shared memory.
    pub(crate) fn still_reads(&self, warp: usize) -> Option<u32> {
        let all = self.warps[warp].groups.iter().flatten().filter_map(|f| self.get(*f));
        all.filter(|f| !f.granules.is_empty()).map(|f| f.site).next()
    }
}

impl Flight {
    /// The statement that issued the MatMul.
    pub(crate) fn site(&self) -> u32 {
        self.site
    }

    /// The shape of the accumulator.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }
}
