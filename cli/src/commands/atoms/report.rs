//! Writes the report of `carbyne atoms verify`, as text, JSON and Markdown: for which atoms the GPU
//! gave the results of the simulator, for which it did not, and which were only compiled or not
//! executed.

use carbyne_atoms::{Arch, AtomTable};
use carbyne_launch::DeviceInfo;
use carbyne_simulate::conformance::Compared;
use indexmap::IndexMap;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// The result of one execution of an atom for one architecture.
pub(super) enum Verdict {
    /// The atom was executed from this kind of binary, and its results were compared.
    Compared(&'static str, Box<Compared>),
    /// The GPU or the driver aborted the execution.
    Broken(String),
    /// The atom could not be executed.
    NotExecuted(String),
    /// The atom has no observable result. It compiles, and is part of the probes of other atoms.
    CompiledOnly(String),
}

/// The results of all executions of an atom for one architecture.
#[derive(Default)]
struct Result {
    compared: Compared,
    kind: Option<&'static str>,
    broken: Option<String>,
    absent: Option<String>,
    unobserved: Option<String>,
}

impl Result {
    fn has_failed(&self) -> bool {
        self.broken.is_some() || self.compared.n_wrong > 0
    }

    fn is_verified(&self) -> bool {
        !self.has_failed() && self.kind.is_some() && self.compared.elements > 0
    }

    /// Whether the atom ran but has no results to compare.
    fn is_unobserved(&self) -> bool {
        let empty = self.kind.is_some() && self.compared.elements == 0;
        !self.has_failed() && (empty || self.unobserved.is_some())
    }
}

/// The results of an atom.
struct AtomReport {
    name: String,
    op: String,
    family: String,
    /// Ordered as in [`Arch::ALL`].
    results: Vec<(Arch, Result)>,
}

impl AtomReport {
    fn status(&self) -> &'static str {
        let any = |of: fn(&Result) -> bool| self.results.iter().any(|(_, r)| of(r));
        match () {
            () if any(Result::has_failed) => "failed",
            () if any(Result::is_verified) => "verified",
            () if any(Result::is_unobserved) => "compiled only",
            () => "not executable here",
        }
    }

    fn archs(&self, of: fn(&Result) -> bool) -> Vec<&'static str> {
        self.results.iter().filter(|(_, r)| of(r)).map(|(a, _)| a.as_str()).collect()
    }

    /// The architectures, with neighbors in [`Arch::ALL`] as a range: `sm_70 to sm_90a`.
    fn range(&self, of: fn(&Result) -> bool) -> String {
        let archs = self.archs(of);
        let at = |name: &&str| Arch::ALL.iter().position(|a| a.as_str() == *name).unwrap_or(0);
        match archs.as_slice() {
            [first, .., last] if at(last) - at(first) + 1 == archs.len() && archs.len() > 2 => {
                format!("{first} to {last}")
            }
            _ => archs.join(" "),
        }
    }

    fn elements(&self) -> u64 {
        self.results.iter().map(|(_, r)| r.compared.elements).sum()
    }

    fn max_ratio(&self) -> f64 {
        self.results.iter().map(|(_, r)| r.compared.max_ratio).fold(0.0, f64::max)
    }

    /// The reasons why the atom was not verified, each with its architectures.
    fn reasons(&self) -> Vec<String> {
        let mut reasons: IndexMap<&str, Vec<&str>> = IndexMap::new();
        for (arch, r) in &self.results {
            let empty = r.is_unobserved().then_some("it ran, but has no results to compare");
            let unobserved = r.unobserved.as_deref().or(empty);
            let Some(why) = r.broken.as_deref().or(r.absent.as_deref()).or(unobserved) else {
                continue;
            };
            reasons.entry(why).or_default().push(arch.as_str());
        }
        reasons.into_iter().map(|(why, archs)| format!("{}: {why}", archs.join(" "))).collect()
    }

    /// The largest error of the results relative to the tolerance.
    fn of_allowed(&self) -> String {
        match self.max_ratio() {
            _ if self.elements() == 0 => "-".to_owned(),
            0.0 => "no difference".to_owned(),
            ratio => format!("{:.1} % of the allowed error", 100.0 * ratio),
        }
    }
}

/// The results of all atoms, in the order of the tables.
pub(super) struct Report {
    device: String,
    driver: (i32, i32),
    capability: (u32, u32),
    pub(super) compiler: Option<String>,
    atoms: Vec<AtomReport>,
    /// Architectures that the GPU does not run, with the reason.
    absent: Vec<(Arch, String)>,
    order: BTreeMap<String, usize>,
}

impl Report {
    pub(super) fn new(info: &DeviceInfo) -> Self {
        Report {
            device: info.name.clone(),
            driver: info.driver,
            capability: info.capability,
            compiler: None,
            atoms: vec![],
            absent: vec![],
            order: BTreeMap::new(),
        }
    }

    /// Adds the atoms of an architecture that the GPU does not run.
    pub(super) fn add_absent(&mut self, arch: Arch, only: &[String], why: &str) {
        for atom in AtomTable::new(arch).atoms() {
            if only.is_empty() || only.iter().any(|n| n == atom.name) {
                self.add(atom.name, arch, Verdict::NotExecuted(why.to_owned()));
            }
        }
        self.absent.push((arch, why.to_owned()));
    }

    pub(super) fn add(&mut self, name: &str, arch: Arch, verdict: Verdict) {
        let i = match self.order.get(name) {
            Some(i) => *i,
            None => {
                let table = AtomTable::new(arch);
                let op = table.get(name).map(|r| r.op);
                let of = |s: Option<String>| s.unwrap_or_default();
                let family =
                    op.map(|o| o.spec_kind().map_or("statements".to_owned(), |k| k.to_string()));
                let family = of(family);
                self.atoms.push(AtomReport {
                    name: name.to_owned(),
                    op: of(op.map(|o| o.to_string())),
                    family: family.split('.').next().unwrap_or_default().to_owned(),
                    results: vec![],
                });
                self.order.insert(name.to_owned(), self.atoms.len() - 1);
                self.atoms.len() - 1
            }
        };
        let results = &mut self.atoms[i].results;
        if !results.iter().any(|(a, _)| *a == arch) {
            results.push((arch, Result::default()));
        }
        let Some((_, result)) = results.iter_mut().find(|(a, _)| *a == arch) else { return };
        match verdict {
            Verdict::Compared(kind, compared) => {
                result.kind = Some(kind);
                result.compared.merge(*compared);
            }
            Verdict::Broken(why) => result.broken = Some(why),
            Verdict::NotExecuted(why) => result.absent = Some(why),
            Verdict::CompiledOnly(why) => result.unobserved = Some(why),
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.atoms.iter().any(|r| r.status() == "failed")
    }

    /// The number of atoms by family and status.
    fn counts(&self) -> Vec<(&str, [usize; 4])> {
        let mut counts: IndexMap<&str, [usize; 4]> = IndexMap::new();
        for atom in &self.atoms {
            let at = STATUS.iter().position(|s| *s == atom.status()).unwrap_or(0);
            counts.entry(&atom.family).or_default()[at] += 1;
        }
        let mut all = [0; 4];
        counts.values().for_each(|n| all.iter_mut().zip(n).for_each(|(a, n)| *a += n));
        counts.into_iter().chain([("all", all)]).collect()
    }

    fn on(&self) -> String {
        let (cc, driver) = (self.capability, self.driver);
        let compiler = self.compiler.as_deref().unwrap_or("precompiled files");
        format!(
            "{}, compute capability {}.{}, driver of CUDA {}.{}, {compiler}",
            self.device, cc.0, cc.1, driver.0, driver.1
        )
    }

    pub(super) fn text(&self) -> String {
        let width = self.atoms.iter().map(|r| r.name.len()).max().unwrap_or(0);
        let mut out = format!("{}\n", self.on());
        for atom in &self.atoms {
            let status = atom.status();
            // Writing to a string cannot fail.
            let _ = write!(out, "{:width$}  {status}", atom.name);
            let verified = atom.range(Result::is_verified);
            if !verified.is_empty() {
                let n = atom.elements();
                let _ = write!(out, "  {verified}: {n} elements, {}", atom.of_allowed());
            }
            out.push('\n');
            for reason in atom.reasons() {
                let _ = writeln!(out, "{:width$}  {reason}", "");
            }
            for (arch, r) in atom.results.iter().filter(|(_, r)| r.compared.n_wrong > 0) {
                let (wrong, n) = (r.compared.n_wrong, r.compared.elements);
                let _ = writeln!(out, "{:width$}  {arch}: {wrong} of {n} elements are wrong", "");
                for d in &r.compared.first {
                    let _ = writeln!(out, "{:width$}    {d}", "");
                }
            }
        }
        for (family, n) in self.counts() {
            let _ = writeln!(
                out,
                "{family}: {} verified, {} failed, {} compiled only, {} not executable here",
                n[0], n[1], n[2], n[3]
            );
        }
        out
    }

    pub(super) fn json(&self) -> String {
        let mut out = String::new();
        for atom in &self.atoms {
            let of_arch = |(arch, r): &(Arch, Result)| {
                let c = &r.compared;
                let differences: Vec<String> = c.first.iter().map(ToString::to_string).collect();
                let first = c.first.first().map(|d| {
                    json!({
                        "operand": d.operand,
                        "block": d.element.block,
                        "thread": d.element.held_by.map(|(t, _)| t),
                        "value": d.element.held_by.map(|(_, v)| v),
                        "coordinates": d.element.at,
                        "found": d.found,
                        "wanted": d.wanted,
                    })
                });
                json!({
                    "arch": arch.as_str(),
                    "verified": r.is_verified(),
                    "failed": r.has_failed(),
                    "loaded": r.kind,
                    "elements": c.elements,
                    "elements_skipped": c.skipped,
                    "elements_wrong": c.n_wrong,
                    "max_error_of_allowed": c.max_ratio,
                    "worst": c.worst.as_ref().map(ToString::to_string),
                    "first": first,
                    "differences": differences,
                    "broken": r.broken,
                    "not_executed": r.absent,
                    "compiled_only": r.is_unobserved(),
                })
            };
            let results: Vec<_> = atom.results.iter().map(of_arch).collect();
            let object = json!({
                "kind": "row",
                "row": atom.name,
                "computes": atom.op,
                "status": atom.status(),
                "architectures": results,
            });
            let _ = writeln!(out, "{object}");
        }
        out
    }

    pub(super) fn markdown(&self) -> String {
        let mut out = format!(
            "# Atoms on {}\n\nWritten by `carbyne atoms verify --device --markdown`; do not edit. \
             {}: {}.\n\n{INTRODUCTION}",
            self.device,
            today(),
            self.on()
        );
        for kind in ["cubin", "ptx"] {
            let ran = |a: &&Arch| {
                let of = |(b, r): &(Arch, Result)| b == *a && r.kind == Some(kind);
                self.atoms.iter().any(|atom| atom.results.iter().any(of))
            };
            let archs: Vec<&str> = Arch::ALL.iter().filter(ran).map(|a| a.as_str()).collect();
            let what = if kind == "ptx" { "PTX, compiled by the driver" } else { "machine code" };
            if !archs.is_empty() {
                let _ = writeln!(out, "As {what}: {}.", archs.join(", "));
            }
        }
        out.push_str("\n| spec | verified | failed | compiled only | not executable here |\n");
        out.push_str("| --- | --- | --- | --- | --- |\n");
        for (family, n) in self.counts() {
            let _ = writeln!(out, "| {family} | {} | {} | {} | {} |", n[0], n[1], n[2], n[3]);
        }
        out.push_str("\n| atom | | on | elements | error |\n| --- | --- | --- | --- | --- |\n");
        for atom in &self.atoms {
            let on = atom.range(Result::is_verified);
            let (error, elements) = (atom.of_allowed(), atom.elements());
            let _ = writeln!(
                out,
                "| `{}` | {} | {on} | {elements} | {error} |",
                atom.name,
                atom.status()
            );
        }
        let reasons: Vec<String> = self
            .atoms
            .iter()
            .flat_map(|r| r.reasons().into_iter().map(|why| format!("- `{}` on {why}\n", r.name)))
            .collect();
        if !reasons.is_empty() {
            out.push_str("\n## Not executed\n\n");
            out.extend(reasons);
        }
        out
    }
}

const STATUS: [&str; 4] = ["verified", "failed", "compiled only", "not executable here"];

const INTRODUCTION: &str = "\
An atom is verified if the results of the GPU equal those of the simulator, element by element. They
must be equal bit for bit if the atom states its rounding, and for sums of tensor cores on small
integers. For other numbers and for approximations, the distance from the exact result must not
exceed the error that the atom states. The atoms of each architecture ran with the code that is
printed for this architecture.
";

/// The current date in UTC: `2026-01-31`.
pub(in crate::commands) fn today() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (year, month, day) = civil((now / 86_400).cast_signed());
    format!("{year}-{month:02}-{day:02}")
}

/// Year, month and day of a number of days since 1970 (Hinnant, chrono-Compatible Low-Level Date
/// Algorithms).
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let (era, doe) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn dates() {
        for (days, date) in [(0, (1970, 1, 1)), (11_016, (2000, 2, 29)), (20_543, (2026, 3, 31))] {
            assert_eq!(civil(days), date);
        }
    }
}
