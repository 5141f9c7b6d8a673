//! Defines the data of the walk over blocks. For each granule (unit of tracked memory) of global
//! memory, [`Touched`] holds the last block that accessed it, and the last accesses by threads of
//! the current block. A [`Meeting`] is two accesses that conflict.

use crate::memory::Does;
use crate::pages::Pages;
use std::collections::BTreeMap;

/// The granules of a buffer in global memory that blocks have accessed.
pub(super) struct Touched {
    /// For each granule, the block that accessed it last, plus one, and the effect (packed into one
    /// word).
    pub(super) cells: Vec<u32>,
    /// For each granule, the accesses of the current block.
    pub(super) mine: Vec<Mine>,
    /// The accesses of the current block outside of the buffer, and to buffers that are too large.
    pub(super) outside: Pages<Mine>,
    /// The number of granules that the current block has accessed.
    pub(super) n: usize,
    /// For each effect on the buffer, a statement that has it.
    pub(super) sites: BTreeMap<Does, u32>,
}

/// The accesses of a block to a granule.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Mine {
    /// The index of the block, plus one.
    pub(super) block: u32,
    /// The last thread, and the number of its effect in the low bits ([`Walker::acts`]).
    pub(super) what: u32,
    /// The last other thread since the last write, packed in the same way.
    pub(super) other: u32,
}

/// Two threads that access the same element.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Meeting {
    pub(crate) buffer: usize,
    pub(crate) blocks: (i64, i64),
    pub(crate) threads: (u32, u32),
    pub(crate) sites: (u32, u32),
    pub(crate) does: (Does, Does),
}
