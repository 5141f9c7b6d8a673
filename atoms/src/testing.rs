//! Selects the architectures on which a test covers an atom: by default one of those that have the
//! atom, in a full run all of them. Tests of several crates use it.

use crate::arch::Arch;
use crate::table::AtomTable;
use carbyne_ir::testing;

/// Whether a test covers an atom on this architecture. By default each test covers one of the
/// architectures that have the atom; a full run covers all of them.
#[must_use]
pub fn drawn(atom: &str, arch: Arch) -> bool {
    let with: Vec<Arch> =
        Arch::ALL.iter().copied().filter(|a| AtomTable::new(*a).get(atom).is_some()).collect();
    testing::one_of(atom, &with).contains(&arch)
}
