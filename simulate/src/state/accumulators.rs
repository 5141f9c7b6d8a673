//! Keeps the accumulators of consecutive asynchronous MatMuls (`wgmma`) as tiles, which is faster
//! than single registers. The registers of such an accumulator are not accessed individually until
//! another instruction uses them.

use super::async_matmul::Flights;
use super::clock::Who;
use super::register_use::RegisterUse;
use super::value::Tile;

/// The registers of an accumulator.
#[derive(Clone, PartialEq)]
pub(crate) struct Accumulator {
    /// The number of the operand.
    pub operand: usize,
    /// The threads, in the operand's order.
    pub threads: Vec<u16>,
    /// The offset of each thread's registers.
    pub offsets: Vec<i64>,
    /// The first warp.
    pub first_warp: usize,
}

/// An accumulator that is stored as a tile instead of in its registers.
pub(super) struct HeldAccumulator {
    of: Accumulator,
    /// The register slots, each with its place in the tile.
    pub slots: Vec<(u32, u32)>,
    /// The values; empty while a MatMul has taken them.
    pub tile: Tile,
    /// For each warp, the state of all its registers.
    pub watched: Vec<RegisterUse>,
    /// The statement of the last write.
    pub site: u32,
    /// Whether the registers contain the current values, too.
    pub is_stored: bool,
}

impl HeldAccumulator {
    /// Creates the accumulator that warps have just written, if its registers differ only in their
    /// values. `slots` are registers with their places in the tile, and `watched` returns the warp
    /// and the state of a register.
    pub(super) fn new(
        of: &Accumulator,
        whos: &[Who],
        slots: Vec<(u32, u32)>,
        watched: impl Fn(u32) -> (usize, RegisterUse),
        (tile, site): (&Tile, u32),
    ) -> Option<Self> {
        let mut states: Vec<Option<RegisterUse>> = vec![None; whos.len()];
        for (slot, _) in &slots {
            let (warp, state) = watched(*slot);
            let warp = warp.checked_sub(of.first_warp)?;
            let fence = whos.get(warp)?.issue?.fence;
            let all = states.get_mut(warp)?.get_or_insert(state);
            // Accesses before the last fence need not be distinguished.
            all.last = all.last.max(state.last);
            if all.last > fence || *all != (RegisterUse { last: all.last, ..state }) {
                return None;
            }
        }
        let watched = states.into_iter().collect::<Option<_>>()?;
        let mut all: Vec<u32> = slots.iter().map(|(slot, _)| *slot).collect();
        all.sort_unstable();
        let differ = all.is_sorted_by(|a, b| a < b);
        let (of, tile) = (of.clone(), tile.clone());
        differ.then_some(HeldAccumulator { of, slots, tile, watched, site, is_stored: true })
    }

    /// Whether this is the accumulator `of`.
    pub(super) fn is(&self, of: &Accumulator) -> bool {
        self.of == *of
    }

    /// Whether the accumulator has registers of the warps from `first_warp` up to `end`.
    pub(super) fn has_any(&self, first_warp: usize, end: usize) -> bool {
        self.of.first_warp < end && first_warp < self.of.first_warp + self.watched.len()
    }

    /// The state of a register of a warp.
    pub(super) fn state(&self, warp: usize) -> RegisterUse {
        self.watched.get(warp - self.of.first_warp).copied().unwrap_or_default()
    }

    /// Records an access of its warps to all registers; none if a MatMul conflicts.
    pub(super) fn access(&mut self, whos: &[Who], flights: &Flights, write: bool) -> Option<()> {
        let both = self.watched.iter_mut().zip(whos);
        both.map(|(watched, who)| watched.access(who, flights, write).ok()).collect()
    }
}
