//! Prints the estimated cycles of a kernel by resource (such as tensor cores or memory), as a table
//! and as JSON, for `decompose --estimate`.

use carbyne_atoms::Machine;
use carbyne_decompose::{Estimate, Resource};
use serde_json::{Value, json};
use std::fmt::Write;

/// A table: resource, amount, cycles, share of the kernel's time.
pub(super) fn table(name: &str, e: &Estimate, machine: &Machine) -> String {
    let mut out = String::new();
    let blocks =
        e.blocks.map_or_else(|| "as many blocks as fit".to_owned(), |n| format!("{n} blocks"));
    let _ = writeln!(
        out,
        "{name}: {:.1} us on {} with {} multiprocessors at {:.0} MHz",
        e.microseconds, machine.name, machine.sms, machine.clock_mhz
    );
    let _ = writeln!(
        out,
        "  {blocks} of {} threads, {} per multiprocessor at once, {:.2} waves; {} registers in \
         tensors, {} bytes shared",
        e.threads, e.blocks_per_sm, e.waves, e.registers, e.shared_bytes
    );
    let _ = writeln!(
        out,
        "  {:<20} {:>16} {:<22} {:>12} {:>6}",
        "resource", "amount", "", "cycles", "share"
    );
    for resource in Resource::ALL {
        let used = e[resource];
        let share = 100.0 * used.cycles / e.cycles.max(1.0);
        let _ = writeln!(
            out,
            "  {:<20} {:>16.0} {:<22} {:>12.0} {:>5.0}%",
            resource.as_str(),
            used.amount,
            resource.unit(),
            used.cycles,
            share
        );
    }
    let _ = writeln!(out, "  {:<20} {:>16} {:<22} {:>12.0}", "all", "", "", e.cycles);
    out
}

/// The estimate as a JSON object.
pub(super) fn json(name: &str, e: &Estimate) -> Value {
    let resource = |r: Resource| {
        let used = e[r];
        json!({
            "resource": r.as_str(),
            "amount": used.amount,
            "unit": r.unit(),
            "cycles": used.cycles,
        })
    };
    json!({
        "kernel": name,
        "microseconds": e.microseconds,
        "cycles": e.cycles,
        "threads": e.threads,
        "blocks": e.blocks,
        "blocks_per_multiprocessor": e.blocks_per_sm,
        "waves": e.waves,
        "registers": e.registers,
        "shared_bytes": e.shared_bytes,
        "resources": Resource::ALL.map(resource),
    })
}
