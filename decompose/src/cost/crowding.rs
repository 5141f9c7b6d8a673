//! Computes a factor by which instances rank lower if their threads need more registers, or execute
//! more instructions, than others ([`crowding`]).

use super::constants::{BUSY, CROWDED, MOST_BUSY, MUCH};
use super::{Estimate, Resource};
use carbyne_atoms::AtomTable;

/// By what factor instances are put behind others whose threads hold fewer values at once than
/// these, which have no registers for all: the compiler may find an order in which it keeps fewer,
/// and may not. Behind those whose threads have less to do are put instances without products that
/// are alike but for it, as more threads hide more of each other's waiting.
pub(crate) fn crowding(e: &Estimate, table: &AtomTable) -> f64 {
    let room = carbyne_atoms::limits(table.arch).registers_for(e.threads);
    let over = (e.registers - room).clamp(0, 2 * room);
    let each = e.instructions / (e.threads.max(1) as f64 / 32.0).ceil();
    let multiplies = e[Resource::Matrix].amount > 0.0;
    let busy = if multiplies { 0.0 } else { (each / MUCH - 1.0).clamp(0.0, MOST_BUSY) };
    1.0 + CROWDED * over as f64 / room as f64 + BUSY * busy
}
