//! Defines the data of a decomposition: the choices that the search has made, and the
//! synchronization that follows from them. Nothing is chosen here; `layouts` and `order` fill the
//! data in.

pub(crate) mod copy;
pub(crate) mod exchange;
pub(crate) mod matmul;
pub(crate) mod part;
pub(crate) mod pointwise;
pub(crate) mod reduce;
pub(crate) mod roles;
pub(crate) mod solution;
pub(crate) mod sync;
