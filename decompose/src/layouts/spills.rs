//! Warns about a kernel whose threads hold more values than they have registers. Compilers keep the
//! rest in memory, and read it again at each use.

use super::state::Finished;
use crate::cost::Estimate;
use carbyne_atoms::ArchLimits;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{Program, SpecId};

/// Warns about such a kernel, and names the tensor that takes the most registers.
pub(super) fn warning(
    p: &Program,
    kernel: SpecId,
    found: &Finished,
    own: &Estimate,
    limits: &ArchLimits,
) -> Option<Diagnostic> {
    if own.registers <= own.room {
        return None;
    }
    let of = |(id, tv): (&_, &carbyne_ir::layout::Layout)| {
        let buffer = &p.buffers[*id];
        let bits = tv.mode(1).map_or(0, |v| v.size()).saturating_mul(buffer.scalar.bits());
        (bits.saturating_add(31) / 32, buffer)
    };
    let largest =
        found.known.iter().map(of).max_by_key(|(registers, b)| (*registers, b.span.start));
    let message = format!(
        "a thread needs {} registers for values at once, but has {}",
        own.registers, own.room
    );
    // More threads hold fewer values each, and as many together.
    let fits = own.registers.saturating_mul(own.threads) <= limits.regs_per_sm;
    let d = Diagnostic::warning(Code::Spills, p.specs[kernel].span, message).help(
        match fits && own.threads < limits.max_threads_per_block {
            true => "give the block more threads, or halve an extent of its tiles",
            false => "halve an extent of the tiles of this spec",
        },
    );
    let d = d.label("the values that do not fit spill to local memory");
    Some(match largest {
        Some((registers, buffer)) => {
            let name = &buffer.name;
            d.related(buffer.span, format!("`%{name}` alone takes {registers} of a thread"))
        }
        None => d,
    })
}
