//! Records of global memory while blocks are walked.

use crate::memory::Does;
use crate::pages::Pages;
use std::collections::BTreeMap;

/// Granules of a buffer in global memory that blocks touch.
pub(super) struct Touched {
    /// The block that touched each granule last, plus one, and its access ([`packed`]).
    pub(super) cells: Vec<u32>,
    /// Accesses of the block that is walked, by granule.
    pub(super) mine: Vec<Mine>,
    /// Its accesses outside of the buffer, and to buffers that are too large.
    pub(super) outside: Pages<Mine>,
    /// How many granules the block that is walked has touched.
    pub(super) n: usize,
    /// A statement for each kind of access to the buffer.
    pub(super) sites: BTreeMap<Does, u32>,
}

/// Accesses of a block to a granule.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Mine {
    /// One more than the block.
    pub(super) block: u32,
    /// The thread that did so last, and behind it the number of what it does ([`Walker::acts`]).
    pub(super) what: u32,
    /// The last other thread that did so since the last write, packed alike.
    pub(super) other: u32,
}

/// Two threads that touch one element.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Meeting {
    pub(crate) buffer: usize,
    pub(crate) blocks: (i64, i64),
    pub(crate) threads: (u32, u32),
    pub(crate) sites: (u32, u32),
    pub(crate) does: (Does, Does),
}
