//! Asynchronous MatMuls under way: what they use, and when they are complete.
//!
//! A MatMul of several warps is one flight for each of them. It is complete when its warp has
//! committed its group and waited for it; then its registers may be used again, and what it read of
//! shared memory overwritten by whoever comes after the wait.

use super::groups::Groups;
use std::collections::VecDeque;
use std::rc::Rc;

/// The extents of an accumulator and its type: MatMuls that agree in it may follow each other on
/// the same registers without a fence.
pub(crate) type Shape = (usize, usize, carbyne_ir::scalar::Scalar);

/// How an asynchronous MatMul of a warp accesses registers.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Issue {
    /// Its number, above 0.
    pub flight: u32,
    /// The shape of its accumulator.
    pub shape: Shape,
    /// The last execution before the warp's last fence.
    pub fence: u32,
}

/// Most MatMuls of a block that are under way at once, each of one warp.
const MAX_FLIGHTS: usize = 1 << 12;

/// One MatMul of one warp.
pub(crate) struct Flight {
    site: u32,
    shape: Shape,
    /// Granules of shared memory that it reads.
    pub granules: Rc<[u32]>,
}

/// All that are under way in a block.
pub(crate) struct Flights {
    /// In the order of their numbers. A complete one leaves an empty place; the first place is
    /// never empty.
    flights: VecDeque<Option<Flight>>,
    /// The number of the first.
    first: u32,
    /// The state of each warp.
    pub warps: Vec<Warp>,
}

/// A warp's groups.
#[derive(Default)]
pub(crate) struct Warp {
    /// The last execution before its last fence; none without a fence.
    pub fence: Option<u32>,
    groups: Groups<Vec<u32>>,
}

impl Flights {
    /// None yet, of so many warps.
    pub(crate) fn new(n_warps: usize) -> Self {
        let warps = (0..n_warps).map(|_| Warp::default()).collect();
        Flights { flights: VecDeque::new(), first: 1, warps }
    }

    /// A new MatMul of a warp.
    pub(crate) fn begin(&mut self, warp: usize, site: u32, shape: Shape) -> u32 {
        let number = self.first + self.flights.len() as u32;
        self.flights.push_back(Some(Flight { site, shape, granules: Rc::new([]) }));
        self.warps[warp].groups.open.push(number);
        number
    }

    /// It reads these granules.
    pub(crate) fn reads(&mut self, flight: u32, granules: &Rc<[u32]>) {
        let index = self.index(flight);
        if let Some(flight) = index.and_then(|i| self.flights.get_mut(i)?.as_mut()) {
            flight.granules = Rc::clone(granules);
        }
    }

    /// Whether there are more than can be kept track of.
    pub(crate) fn are_too_many(&self) -> bool {
        self.flights.len() > MAX_FLIGHTS && self.flights.iter().flatten().count() > MAX_FLIGHTS
    }

    /// Closes a warp's group.
    pub(crate) fn commit(&mut self, warp: usize) {
        self.warps[warp].groups.commit();
    }

    /// Takes out what is complete when a warp waits until so many of its groups are left.
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

    /// The place of a number among those that are kept. The number 0 has none.
    #[inline]
    fn index(&self, flight: u32) -> Option<usize> {
        Some(flight.checked_sub(self.first)? as usize)
    }

    /// The one of this number, if it is under way; none is 0.
    #[inline]
    pub(crate) fn get(&self, flight: u32) -> Option<&Flight> {
        self.flights.get(self.index(flight)?)?.as_ref()
    }

    /// One of a warp's that may still read shared memory: its statement.
    pub(crate) fn still_reads(&self, warp: usize) -> Option<u32> {
        let all = self.warps[warp].groups.iter().flatten().filter_map(|f| self.get(*f));
        all.filter(|f| !f.granules.is_empty()).map(|f| f.site).next()
    }
}

impl Flight {
    /// The statement that issued it.
    pub(crate) fn site(&self) -> u32 {
        self.site
    }

    /// The shape of its accumulator.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }
}
