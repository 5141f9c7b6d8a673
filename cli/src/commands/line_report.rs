//! Prints a simulated program with counts beside each line, for `simulate --report`: executions,
//! registers, bytes, sectors of global memory, wavefronts of shared memory, rounding. Below the
//! program are the executions of each atom and the distance of each spec from its meaning. A second
//! form is JSON.

use carbyne_simulate::{KernelReport, LeafCount, LeafReport, SectorCount, SpecReport};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The program with columns on its left, followed by the number of executions of each atom.
///
/// - `runs`: executions by a warp.
/// - `regs`: 32-bit registers per thread that contain values which are still needed.
/// - `bytes`: bytes read or written in global and shared memory.
/// - `sectors`: accessed 32-byte sectors of global memory; `each`: sectors per request of a warp.
/// - `waves`: wavefronts of shared memory. If the bytes fit in fewer, `/` and that number follow.
/// - `ulp`: the largest distance of results from the results without rounding.
///
/// At the end come the executions of each atom, and the distance of each spec with a body from its
/// meaning.
pub(super) fn text(source: &str, kernels: &[KernelReport]) -> String {
    let mut lines: BTreeMap<usize, (LeafCount, u64, Option<f64>)> = BTreeMap::new();
    for leaf in kernels.iter().flat_map(|k| &k.leaves) {
        let (count, registers, ulp) = lines.entry(leaf.line as usize).or_default();
        count.merge(&leaf.count);
        *registers = leaf.registers.unwrap_or(0).max(*registers);
        let rounded = leaf.rounding.map(|r| r.max_ulp);
        *ulp = rounded.into_iter().chain(*ulp).reduce(f64::max);
    }
    let of = |n: u64, ideal: u64| match n {
        0 => String::new(),
        n if n > ideal => format!("{n} / {ideal}"),
        n => n.to_string(),
    };
    let cells: BTreeMap<usize, [String; 7]> = lines
        .iter()
        .map(|(line, (c, registers, ulp))| {
            let cells = [
                of(c.executions, u64::MAX),
                of(*registers, u64::MAX),
                of(c.global.bytes + c.shared.bytes, u64::MAX),
                of(c.global.sectors, c.global.ideal),
                sectors_per_request(&c.global).map_or(String::new(), |n| format!("{n:.1}")),
                of(c.shared.wavefronts, c.shared.ideal),
                ulp.map_or(String::new(), |u| format!("{u:.2}")),
            ];
            (*line, cells)
        })
        .collect();
    let heads = ["runs", "regs", "bytes", "sectors", "each", "waves", "ulp"].map(str::to_owned);
    let width = |i: usize| {
        let all = cells.values().map(|row| row[i].len()).chain([heads[i].len()]);
        all.max().unwrap_or(0)
    };
    let widths: [usize; 7] = std::array::from_fn(width);
    let mut out = String::new();
    let mut row = |cells: &[String; 7], text: &str| {
        for (cell, width) in cells.iter().zip(widths) {
            let _ = write!(out, "{cell:>width$}  ");
        }
        out.push_str(format!("| {text}").trim_end());
        out.push('\n');
    };
    row(&heads, "");
    let none = [const { String::new() }; 7];
    for (i, line) in source.lines().enumerate() {
        row(cells.get(&(i + 1)).unwrap_or(&none), line);
    }
    out.push('\n');
    for (atom, n) in mix(kernels.iter().flat_map(|k| &k.leaves)) {
        let _ = writeln!(out, "{n:>12}  {atom}");
    }
    let numerics: Vec<&SpecReport> = kernels.iter().flat_map(|k| &k.numerics).collect();
    if !numerics.is_empty() {
        out.push_str("\ndistance from the results without rounding\n");
    }
    let width = numerics.iter().map(|n| n.kind.len()).max().unwrap_or(0);
    for n in numerics {
        let _ = writeln!(
            out,
            "  line {:<4}  {:width$}  {:>10} elements  {}",
            n.line,
            n.kind,
            n.elements,
            nearness(n)
        );
    }
    out
}

/// Formats a distance: `up to 0.5 ulp, relative norm 1.7e-4: passes, 32 % of the tolerance`.
pub(super) fn nearness(n: &SpecReport) -> String {
    if n.max_error == 0.0 {
        return "exact".to_owned();
    }
    let allowed = match n.max_ratio {
        0.0 => String::new(),
        ratio => format!(": {}", judged(ratio)),
    };
    format!("{}{allowed}", distance(n.max_ulp, n.relative_norm))
}

/// Formats the largest difference as a part of the tolerance: `passes, 32 % of the tolerance`.
pub(super) fn judged(ratio: f64) -> String {
    let judgment = if ratio <= 1.0 { "passes" } else { "fails" };
    format!("{judgment}, {:.1} % of the tolerance", 100.0 * ratio)
}

/// Formats a distance: `up to 0.5 ulp, relative norm 1.7e-4`.
pub(super) fn distance(max_ulp: f64, relative_norm: Option<f64>) -> String {
    let norm = relative_norm.map_or("none".to_owned(), |r| format!("{r:.1e}"));
    format!("up to {max_ulp:.3} ulp, relative norm {norm}")
}

/// Sectors of global memory per access of a warp.
fn sectors_per_request(count: &SectorCount) -> Option<f64> {
    (count.sectors > 0).then(|| count.sectors as f64 / count.accesses as f64)
}

/// The number of executions by atom, or by kind for leaves without an atom; the largest first.
fn mix<'a>(leaves: impl Iterator<Item = &'a LeafReport>) -> Vec<(&'a str, u64)> {
    let mut mix: BTreeMap<&str, u64> = BTreeMap::new();
    for leaf in leaves.filter(|l| l.count.executions > 0) {
        *mix.entry(leaf.atom.as_deref().unwrap_or(&leaf.kind)).or_default() +=
            leaf.count.executions;
    }
    let mut mix: Vec<_> = mix.into_iter().collect();
    mix.sort_by_key(|(atom, n)| (std::cmp::Reverse(*n), *atom));
    mix
}

/// The report as a JSON object: a list of kernels with their leaves.
pub(super) fn json(kernels: &[KernelReport]) -> String {
    let leaf = |l: &LeafReport| {
        let (global, shared) = (l.count.global, l.count.shared);
        json!({
            "line": l.line,
            "kind": l.kind,
            "atom": l.atom,
            "registers": l.registers,
            "executions": l.count.executions,
            "global": {
                "accesses": global.accesses,
                "bytes": global.bytes,
                "sectors": global.sectors,
                "ideal_sectors": global.ideal,
                "sectors_per_request": sectors_per_request(&global),
            },
            "shared": {
                "accesses": shared.accesses,
                "bytes": shared.bytes,
                "wavefronts": shared.wavefronts,
                "ideal_wavefronts": shared.ideal,
            },
            "max_ulp": l.rounding.map(|r| r.max_ulp),
            "relative_norm": l.rounding.and_then(|r| r.relative_norm),
            "stated_ulp": l.stated_ulp,
        })
    };
    let spec = |n: &SpecReport| {
        json!({
            "line": n.line,
            "kind": n.kind,
            "executions": n.executions,
            "elements": n.elements,
            "max_error": n.max_error,
            "max_error_of_allowed": n.max_ratio,
            "max_ulp": n.max_ulp,
            "relative_norm": n.relative_norm,
        })
    };
    let kernels: Vec<_> = kernels
        .iter()
        .map(|k| {
            let mix: serde_json::Map<String, serde_json::Value> =
                mix(k.leaves.iter()).into_iter().map(|(a, n)| (a.to_owned(), n.into())).collect();
            json!({
                "kernel": k.name,
                "blocks": k.n_blocks,
                "blocks_run": k.blocks_run.len(),
                "max_error": k.max_error,
                "max_error_of_allowed": k.max_ratio,
                "multiply_adds": k.multiply_adds,
                "sampled": k.sampled,
                "specs": k.numerics.iter().map(spec).collect::<Vec<_>>(),
                "atoms": mix,
                "leaves": k.leaves.iter().map(leaf).collect::<Vec<_>>(),
                "repeated_writes": k.repeated,
            })
        })
        .collect();
    format!("{}\n", json!({ "kernels": kernels }))
}
