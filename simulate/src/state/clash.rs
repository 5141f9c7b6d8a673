//! Defines [`Clash`], an earlier access of a granule that conflicts with a new one.

/// An earlier access that conflicts with a new one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clash {
    /// The warp of the cluster, or the number of a collective.
    pub agent: u16,
    /// The lane; [`MANY`](super::clock::MANY) for several lanes, or the collective.
    pub lane: u8,
    /// The statement.
    pub site: u32,
    /// The number of the statement's execution; 0 for a copy that arrived with an mbarrier.
    pub serial: u32,
    /// Whether the access was a write.
    pub wrote: bool,
    /// Whether the accesses are ordered, and only the fence between the proxies is missing.
    pub unfenced: bool,
}
