//! What tests of atoms share.

use crate::arch::Arch;
use crate::table::AtomTable;
use carbyne_ir::testing;

/// Whether an atom is tested for this architecture: of those that have it one is drawn, or all are
/// where everything is run.
#[must_use]
pub fn drawn(atom: &str, arch: Arch) -> bool {
    let with: Vec<Arch> =
        Arch::ALL.iter().copied().filter(|a| AtomTable::new(*a).get(atom).is_some()).collect();
    testing::one_of(atom, &with).contains(&arch)
}
