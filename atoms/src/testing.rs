//! What tests of rows share.

use crate::arch::Arch;
use crate::table::AtomTable;
use carbyne_ir::testing;

/// Whether a row is tested for this architecture: of those that have it one is drawn, or all are where everything is run.
#[must_use]
pub fn drawn(row: &str, arch: Arch) -> bool {
    let with: Vec<Arch> =
        Arch::ALL.iter().copied().filter(|a| AtomTable::new(*a).get(row).is_some()).collect();
    testing::one_of(row, &with).contains(&arch)
}
