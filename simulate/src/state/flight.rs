//! Asynchronous MatMuls under way: what they use, and when they are complete.
//!
//! A MatMul of several warps is one flight for each of them. It is complete when its warp has committed its
//! group and waited for it; then its registers may be used again, and what it read of shared memory
//! overwritten by whoever comes after the wait.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// The extents of an accumulator and its type: MatMuls that agree in it may follow each other on the same
/// registers without a fence.
pub(crate) type Shape = (usize, usize, carbyne_ir::scalar::Scalar);

/// How an asynchronous MatMul of a warp accesses registers.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Issue {
    /// Its number, above 0.
    pub flight: u32,
    /// Of its accumulator.
    pub shape: Shape,
    /// The last execution before the warp's last fence.
    pub fence: u32,
}

/// One MatMul of one warp.
pub(crate) struct Flight {
    site: u32,
    shape: Shape,
    /// Register buffers and slots.
    registers: Vec<(u32, u32)>,
    /// Granules of shared memory that it reads.
    pub granules: Rc<[u32]>,
}

/// All that are under way in a block.
#[derive(Default)]
pub(crate) struct Flights {
    flights: BTreeMap<u32, Flight>,
    last: u32,
    /// By warp.
    pub warps: Vec<Warp>,
}

/// A warp's groups.
#[derive(Clone, Default)]
pub(crate) struct Warp {
    /// The last execution before its last fence; none without a fence.
    pub fence: Option<u32>,
    open: Vec<u32>,
    groups: VecDeque<Vec<u32>>,
}

impl Flights {
    /// None yet, of so many warps.
    pub(crate) fn new(n_warps: usize) -> Self {
        Flights { warps: vec![Warp::default(); n_warps], ..Flights::default() }
    }

    /// A new MatMul of a warp.
    pub(crate) fn begin(&mut self, warp: usize, site: u32, shape: Shape) -> u32 {
        self.last += 1;
        let flight = Flight { site, shape, registers: Vec::new(), granules: Rc::new([]) };
        self.flights.insert(self.last, flight);
        self.warps[warp].open.push(self.last);
        self.last
    }

    /// It reads these granules.
    pub(crate) fn reads(&mut self, flight: u32, granules: &Rc<[u32]>) {
        if let Some(flight) = self.flights.get_mut(&flight) {
            flight.granules = Rc::clone(granules);
        }
    }

    /// It uses a register.
    pub(crate) fn uses(&mut self, flight: u32, buffer: usize, slot: usize) {
        if let Some(flight) = self.flights.get_mut(&flight) {
            flight.registers.push((buffer as u32, slot as u32));
        }
    }

    /// Closes a warp's group.
    pub(crate) fn commit(&mut self, warp: usize) {
        let warp = &mut self.warps[warp];
        let group = std::mem::take(&mut warp.open);
        warp.groups.push_back(group);
    }

    /// Takes out what is complete when a warp waits until so many of its groups are left.
    pub(crate) fn wait(&mut self, warp: usize, left: usize) -> Vec<(u32, Flight)> {
        let groups = &mut self.warps[warp].groups;
        let n = groups.len().saturating_sub(left);
        let complete: Vec<u32> = groups.drain(..n).flatten().collect();
        complete.into_iter().filter_map(|f| Some((f, self.flights.remove(&f)?))).collect()
    }

    /// The statement that issued one.
    pub(crate) fn site(&self, flight: u32) -> u32 {
        self.flights.get(&flight).map_or(0, |f| f.site)
    }

    /// The shape of its accumulator.
    pub(crate) fn shape(&self, flight: u32) -> Option<Shape> {
        self.flights.get(&flight).map(|f| f.shape)
    }
}

impl Flight {
    /// The statement that issued it.
    pub(crate) fn site(&self) -> u32 {
        self.site
    }

    /// Register buffers and slots that it uses; some more than once.
    pub(crate) fn registers(&self) -> impl Iterator<Item = (usize, usize)> {
        self.registers.iter().map(|(b, s)| (*b as usize, *s as usize))
    }
}
