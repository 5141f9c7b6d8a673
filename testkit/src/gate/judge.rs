//! Decomposes a program of the gate (the test of decomposition on random programs), runs it before
//! and after decomposition in the simulator, and compares the outputs. It also runs the
//! synchronization checker on the decomposed kernels.
//!
//! Decomposition may refuse a program with a code of [`REFUSALS`]; any other error is a failure. A
//! program is discarded if its source has an error or does not run cleanly, or if its decomposed
//! form takes too many steps. The file also writes and reads a program with its parameters as one
//! text ([`Subject`]).

use super::description::Case;
use super::render::{Rendered, render};
use carbyne_atoms::{Arch, AtomTable};
use carbyne_decompose::{Decomposed, Search, checked, decompose_with};
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics, Severity};
use carbyne_ir::expr::VarId;
use carbyne_ir::program::{CastRole, Program};
use carbyne_ir::text;
use carbyne_simulate::denote::narrowed;
use carbyne_simulate::{Between, Decisions, Inputs, Options, Outputs, Report, simulate};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The codes with which decomposition may refuse a program of the gate.
pub const REFUSALS: [Code; 9] = [
    Code::NoAtom,
    Code::NoStrategy,
    Code::PinsConflict,
    Code::NotDecomposed,
    Code::NoSync,
    Code::Budget,
    Code::SharedTooLarge,
    Code::TooLarge,
    // A role writes a tensor that no other role reads.
    Code::Role,
];

/// The maximum number of choices of the search.
const BUDGET: u64 = 1000;
/// The maximum number of steps of a simulated kernel.
const STEPS: u64 = 1 << 29;

/// The maximum difference of inexact elements computed without rounding, relative to the largest
/// element of the tensor.
const SLACK: f64 = 1.0 / 16_777_216.0;

/// A program and the parameters of the check.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// The program.
    pub text: String,
    /// The target of decomposition.
    pub arch: Arch,
    /// The inputs of the simulation.
    pub inputs: Inputs,
    /// The schedule of the decomposed program.
    pub schedule: Option<u64>,
    /// The tensors to compare bit by bit. Others are compared by their values without rounding.
    pub exact: Vec<String>,
    /// Whether intermediate numbers may exceed the range of their types, depending on the order of
    /// sums.
    pub overflows: bool,
    /// The values of the symbols. The program is decomposed once, and also runs at smaller sizes.
    pub symbols: BTreeMap<String, i64>,
}

/// The result of a check.
#[derive(Debug)]
pub enum Verdict {
    /// The program is not valid, or its source does not run cleanly.
    Discarded(Box<Diagnostic>),
    /// Decomposition refused the program with permitted codes.
    Refused(Vec<Diagnostic>),
    /// The decomposed program has the same meaning.
    Preserved(Box<Decomposed>),
    /// The decomposed program has another meaning, or decomposition failed.
    Failed(Failure),
}

/// A defect of a decomposition.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// A short text that failures of one kind share.
    pub kind: String,
    /// The description of the defect.
    pub what: String,
    /// The decomposed text, if there is one.
    pub decomposed: Option<String>,
}

impl Case {
    /// The architecture.
    #[must_use]
    pub fn architecture(&self) -> Arch {
        const ARCHS: [Arch; 6] =
            [Arch::Sm80, Arch::Sm75, Arch::Sm86, Arch::Sm89, Arch::Sm90, Arch::Sm90a];
        ARCHS[usize::from(self.arch) % ARCHS.len()]
    }

    /// The program as a subject of the gate, and the features of the program.
    #[must_use]
    pub fn render(&self) -> (Subject, Vec<&'static str>) {
        let Rendered { text, exact, overflows, features } = render(self);
        let seed = u64::from(self.seed);
        let inputs = if self.has_numbers() { Inputs::Seed(seed) } else { Inputs::Ints(seed) };
        let schedule = (self.schedule > 0).then(|| u64::from(self.schedule));
        let arch = self.architecture();
        let symbols = BTreeMap::new();
        let subject = Subject { text, arch, inputs, schedule, exact, overflows, symbols };
        (subject, features.into_iter().collect())
    }
}

impl Subject {
    /// The text with the parameters of the check as comments on top. [`Subject::read`] reads it.
    #[must_use]
    pub fn write(&self, title: &str) -> String {
        let mut out = String::new();
        for line in title.lines() {
            let _ = writeln!(out, "// {line}");
        }
        let (kind, seed) = match self.inputs {
            Inputs::Seed(n) => ("seed", n),
            Inputs::Ints(n) => ("ints", n),
        };
        let _ = writeln!(out, "// arch: {}", self.arch.as_str());
        let _ = writeln!(out, "// inputs: {kind} {seed}");
        if let Some(n) = self.schedule {
            let _ = writeln!(out, "// schedule: {n}");
        }
        let _ = writeln!(out, "// exact: {}", self.exact.join(" "));
        if self.overflows {
            let _ = writeln!(out, "// overflows: yes");
        }
        if !self.symbols.is_empty() {
            let all: Vec<String> = self.symbols.iter().map(|(s, n)| format!("{s}={n}")).collect();
            let _ = writeln!(out, "// symbols: {}", all.join(" "));
        }
        out.push_str(&self.text);
        out
    }

    /// Reads the output of [`Subject::write`]. `None` if a line is missing at the top.
    #[must_use]
    pub fn read(file: &str) -> Option<Subject> {
        let word = |key: &str| {
            let head = file.lines().take_while(|l| l.starts_with("//"));
            head.into_iter().find_map(|l| l.strip_prefix("// ")?.strip_prefix(key)).map(str::trim)
        };
        let (kind, seed) = word("inputs:")?.split_once(' ')?;
        let seed = seed.parse().ok()?;
        let inputs = if kind == "seed" { Inputs::Seed(seed) } else { Inputs::Ints(seed) };
        let symbols = word("symbols:").unwrap_or("").split_whitespace().map(|s| {
            let (name, n) = s.split_once('=')?;
            Some((name.to_owned(), n.parse().ok()?))
        });
        Some(Subject {
            text: file.to_owned(),
            arch: word("arch:")?.parse().ok()?,
            inputs,
            schedule: word("schedule:").and_then(|n| n.parse().ok()),
            overflows: word("overflows:").is_some(),
            exact: word("exact:")?.split_whitespace().map(str::to_owned).collect(),
            symbols: symbols.collect::<Option<_>>()?,
        })
    }
}

impl Subject {
    /// The symbol values to run with: the given ones, the smallest ones that satisfy the facts, and
    /// some between. Multiples of 8 stay multiples of 8.
    fn sizes(&self) -> Vec<BTreeMap<String, i64>> {
        let parts: &[i64] = if self.symbols.is_empty() { &[1] } else { &[1, 2, i64::MAX] };
        let smaller = |n: i64, part: i64| match n % 8 {
            0 => (n / 8 / part).max(1) * 8,
            _ => (n / part).max(1),
        };
        let of = |part: &i64| {
            let each = self.symbols.iter().map(|(name, n)| (name.clone(), smaller(*n, *part)));
            each.collect()
        };
        parts.iter().map(of).collect()
    }
}

/// Decomposes a program and runs both versions.
#[must_use]
pub fn judge(subject: &Subject, table: &AtomTable) -> Verdict {
    match catch_unwind(AssertUnwindSafe(|| attempt(subject, table))) {
        Ok(verdict) => verdict,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            failed("panic", text.unwrap_or("a panic").to_owned(), None)
        }
    }
}

fn failed(kind: &str, what: String, decomposed: Option<String>) -> Verdict {
    Verdict::Failed(Failure { kind: kind.to_owned(), what, decomposed })
}

fn attempt(subject: &Subject, table: &AtomTable) -> Verdict {
    let src = subject.text.as_str();
    let first = |errors: Diagnostics| match errors.into_vec().into_iter().next() {
        Some(d) => Verdict::Discarded(Box::new(d)),
        None => failed("no reason", "an error without a diagnostic".to_owned(), None),
    };
    let module = match text::parse(src) {
        Ok(module) => module,
        Err(errors) => return first(errors),
    };
    let program = match checked(&module, src) {
        Ok(program) => program,
        Err(errors) => return first(errors),
    };
    let run = |p: &Program, symbols: &BTreeMap<String, i64>, schedule: Option<u64>| {
        let (inputs, symbols) = (subject.inputs, symbols.clone());
        let blocks = Some(u64::MAX);
        // The combined result of several kernels is compared with that of the spec that they were
        // made from.
        let between = Between::for_parent(&program);
        let decisions = Some(Decisions::of(&program));
        let rest = Options { budget: STEPS, between, decisions, ..Options::default() };
        simulate(p, table, &Options { inputs, schedule, blocks, symbols, ..rest })
    };
    let sizes = subject.sizes();
    let before: Result<Vec<Report>, _> = sizes.iter().map(|at| run(&program, at, None)).collect();
    let before = match before {
        Ok(reports) => reports,
        Err(d) => return Verdict::Discarded(d),
    };
    let search = Search { budget: BUDGET, ..Search::default() };
    let decomposed = match decompose_with(&module, src, table, search) {
        Ok(d) => d,
        Err(errors) => return refused(errors.into_vec()),
    };
    if let Some(what) = unordered(&decomposed.program, table) {
        return failed("order", what, Some(decomposed.text));
    }
    for (at, before) in sizes.iter().zip(&before) {
        let after = match run(&decomposed.program, at, subject.schedule) {
            Ok(report) => report,
            // The source may run by its meaning, while the decomposed program runs every
            // instruction and may need too many steps.
            Err(d) if d.code == Code::StepBudget => return Verdict::Discarded(d),
            Err(d) if d.code == Code::WrongElement && subject.overflows => {
                return Verdict::Discarded(d);
            }
            Err(d) if d.code == Code::SharedTooLarge && at.is_empty() => {
                return Verdict::Refused(vec![*d]);
            }
            Err(d) => {
                let (line, _) = d.span.line_col(&decomposed.text);
                let what = format!("{at:?}: {d}\nline {line}: {}\n{:?}", d.label, d.related);
                return failed(d.code.as_str(), what, Some(decomposed.text));
            }
        };
        if let Some(what) = differ(&program, subject, at, (before, &after)) {
            return failed("outputs", format!("{at:?}: {what}"), Some(decomposed.text));
        }
    }
    Verdict::Preserved(Box::new(decomposed))
}

/// An error of the synchronization checker.
fn unordered(p: &Program, table: &AtomTable) -> Option<String> {
    let limits = carbyne_sync::Limits { accesses: 1 << 24, ..Default::default() };
    let atomic = p.kernels.iter().filter(|k| carbyne_sync::is_atomic(p, **k));
    atomic.into_iter().find_map(|kernel| {
        let said = carbyne_sync::check(p, *kernel, table, &limits);
        let said = carbyne_remedy::diagnostics(&said, p, *kernel);
        let d = said.into_iter().find(|d| d.severity == Severity::Error)?;
        Some(format!("{d}\n{}\n{:?}", d.label, d.related))
    })
}

fn refused(errors: Vec<Diagnostic>) -> Verdict {
    match errors.iter().find(|d| !REFUSALS.contains(&d.code)).cloned() {
        None => Verdict::Refused(errors),
        Some(d) => {
            let what = format!("{d}\n{}\n{}", d.label, d.notes.join("\n"));
            failed(d.code.as_str(), what, None)
        }
    }
}

/// The largest magnitude of a tensor without rounding. `None` if an element is not a finite number.
fn largest(of: &Outputs, name: &str, extents: &[i64]) -> Option<f64> {
    let (mut at, mut all) = (vec![0; extents.len()], 0f64);
    loop {
        let v = of.exact(name, &at).unwrap_or(0.0);
        if !v.is_finite() {
            return None;
        }
        all = all.max(v.abs());
        if !next(&mut at, extents) {
            return Some(all);
        }
    }
}

/// Advances to the coordinates of the next element. `false` after the last one.
fn next(at: &mut [i64], extents: &[i64]) -> bool {
    let Some(mode) = (0..at.len()).find(|m| at[*m] + 1 < extents[*m]) else { return false };
    at[mode] += 1;
    at[..mode].fill(0);
    true
}

/// Describes the first different element of the caller's tensors.
fn differ(
    p: &Program,
    subject: &Subject,
    at: &BTreeMap<String, i64>,
    (before, after): (&Report, &Report),
) -> Option<String> {
    let value = |v: VarId| at.get(&p.arena.var_info(v).name).copied();
    // If rounding decided a comparison, numbers may differ.
    let turned = [before, after].iter().any(|r| r.kernels.iter().any(|k| !k.turned.is_empty()));
    let (before, after) = (&before.outputs, &after.outputs);
    for b in &p.params {
        let buffer = &p.buffers[*b];
        let name = buffer.name.as_str();
        let extents: Vec<i64> = p.tensors[buffer.tensor]
            .concat()
            .eval(&p.arena, &value)
            .ok()?
            .modes()
            .iter()
            .map(carbyne_ir::layout::Layout::size)
            .collect();
        let exact = subject.exact.iter().any(|e| e == name);
        // Another order of summation changes a sum in binary64, too, but by much less than this.
        let slack = match exact || turned || subject.overflows || !buffer.scalar.is_float() {
            true => None,
            // A sum of numbers near one that should be zero is noise.
            false => largest(before, name, &extents).map(|most| most.max(1e-3) * SLACK),
        };
        let mut at = vec![0; extents.len()];
        loop {
            let (x, y) = (before.element(name, &at), after.element(name, &at));
            let same = match (x, y) {
                (Some(x), Some(y)) if exact => {
                    let value = |raw| carbyne_simulate::num::decode(buffer.scalar, raw);
                    // Zeros have a sign, and NaNs have no value: compare the decoded numbers.
                    x == y || value(x) == value(y) || value(x).is_nan() && value(y).is_nan()
                }
                (x, y) => x.is_some() == y.is_some(),
            };
            if !same {
                let show = |v: Option<u64>| match v {
                    Some(raw) => format!("{}", carbyne_simulate::num::decode(buffer.scalar, raw)),
                    None => "undefined".to_owned(),
                };
                let (x, y) = (show(x), show(y));
                return Some(format!("%{name}{at:?} is {x} before and {y} after"));
            }
            // Both are limited to the range of the tensor's type, wherever the cast happens.
            let end = |x: f64| narrowed(CastRole::Staged, buffer.scalar, x);
            let unrounded = (before.exact(name, &at).map(end), after.exact(name, &at).map(end));
            if let (Some(slack), (Some(x), Some(y))) = (slack, unrounded)
                && (x - y).abs() > slack
            {
                return Some(format!(
                    "%{name}{at:?} is {x} before and {y} after, without rounding"
                ));
            }
            if !next(&mut at, &extents) {
                break;
            }
        }
    }
    None
}
