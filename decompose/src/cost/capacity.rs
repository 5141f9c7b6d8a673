//! Computes how many threads a block has whose consumers are served by a producer, and how many
//! registers each of these threads can have.

use crate::access::ops::WARP;
use carbyne_atoms::{AtomOp, AtomTable, limits};
use carbyne_ir::ast::SyncOp;

/// Threads that `registers.inc` and `registers.dec` concern together.
pub(crate) const GROUP: i64 = 4 * WARP;

/// The registers that a thread of a producer keeps.
const KEPT: i64 = 40;

/// The threads of a block in which so many groups of `threads` consume.
pub(crate) fn threads(consumers: i64, threads: i64, table: &AtomTable) -> i64 {
    match consumers.saturating_mul(threads) {
        0 => threads,
        all => all.saturating_add(copiers(registers(all, table))),
    }
}

/// The registers that a thread of such a block has at most, of those that consume.
pub(crate) fn room(consumers: i64, threads: i64, table: &AtomTable) -> i64 {
    let (limits, all) = (limits(table.arch), self::threads(consumers, threads, table));
    let each = limits.registers_for(all);
    registers(consumers.saturating_mul(threads), table).map_or(each, |(_, more)| more.max(each))
}

/// The threads of the producer.
pub(crate) fn copiers(registers: Option<(i64, i64)>) -> i64 {
    if registers.is_some() { GROUP } else { WARP }
}

/// The registers that a thread of the producer keeps, and those that one of so many consumers then
/// has; none where they have enough without.
pub(crate) fn registers(consumers: i64, table: &AtomTable) -> Option<(i64, i64)> {
    let has = |op: SyncOp| table.atoms().iter().any(|a| a.op == AtomOp::Sync(op));
    let limits = limits(table.arch);
    let all = consumers.saturating_add(GROUP);
    let each = limits.regs_per_sm / all / 8 * 8;
    let more = (each * all - KEPT * GROUP) / consumers.max(1) / 8 * 8;
    let fits = has(SyncOp::RegistersInc) && has(SyncOp::RegistersDec);
    let room = all <= limits.max_threads_per_block && more > each;
    let more = more.min(limits.regs_per_thread / 8 * 8);
    (fits && room && consumers > GROUP).then_some((KEPT, more))
}
