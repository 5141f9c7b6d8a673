//! Lists the atoms of synchronization statements: barriers of blocks, warps and clusters,
//! mbarriers, fences, groups of asynchronous work, and hints.
//!
//! If several atoms implement one statement, the better one comes first. Costs do not include
//! waiting.

mod barrier;
mod groups;
mod hints;
mod mbarrier;

use crate::arch::Arch;
use crate::atom::Atom;

pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let families =
        [barrier::list(arch), mbarrier::list(arch), groups::list(arch), hints::list(arch)];
    families.into_iter().flatten().collect()
}
