//! Tests that random programs compute equal results before and after decomposition: bodies at the
//! tile level, kernels without bodies, and programs whose tiles do not divide the extents
//! (`partial`).
//!
//! `CARBYNE_CASES=30000` sets the number of programs; their random seed is then a new one, which is
//! printed, as with `CARBYNE_ALL`. `CARBYNE_SEED=1` sets the seed. Without these variables the seed
//! is fixed. A program that fails is simplified as far as possible and written to `gate` in the
//! build folder. After the correction it is added to `decompose/tests/gate`; every run tests all
//! files of that folder.

mod partial;

use carbyne_atoms::{Arch, AtomTable};
use carbyne_codegen::nvrtc::{Emit, Options};
use carbyne_codegen::testing::require_nvrtc;
use carbyne_decompose::Decomposed;
use carbyne_ir::diag::Code;
use carbyne_ir::testing;
use carbyne_testkit::gate::{Case, Failure, Graph, Subject, UNEVEN, Verdict, case, graph, judge};
use partial::Partial;
use proptest::strategy::{Strategy, ValueTree};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant};

/// Cases of the plain run.
const CASES: u32 = 100;
/// Cases of the plain run whose tiles need not divide.
const PARTIAL: u32 = 40;
/// Cases at kernel level of the plain run.
const GRAPHS: u32 = 30;
/// Of so many that decompose, one is compiled.
const COMPILED: u64 = 40;
/// Simpler cases that are tried for one that failed.
const SIMPLER: usize = 150;
/// Programs kept for each reason to refuse one.
const EXAMPLES: u64 = 3;
/// Failures that are made small.
const SMALL: usize = 24;

thread_local! {
    /// Whether panics of the thread are kept, and not printed.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Has panics of threads that are quiet not printed.
fn keep_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                hook(info);
            }
        }));
    });
}

/// The rows of each architecture, made once.
#[derive(Default)]
struct Tables(HashMap<&'static str, AtomTable>);

impl Tables {
    fn of(&mut self, arch: Arch) -> &AtomTable {
        self.0.entry(arch.as_str()).or_insert_with(|| AtomTable::new(arch))
    }
}

/// How often each thing occurs.
#[derive(Default)]
pub(crate) struct Counts {
    cases: u64,
    preserved: u64,
    compiled: u64,
    discarded: BTreeMap<&'static str, u64>,
    refused: BTreeMap<&'static str, u64>,
    failed: BTreeMap<String, u64>,
    /// Of cases in which something occurs: all, those that decompose, those that are refused.
    features: BTreeMap<&'static str, [u64; 3]>,
    archs: BTreeMap<&'static str, [u64; 3]>,
    /// How long the slowest took, and which it is.
    slowest: (Duration, u64),
}

impl Counts {
    fn note(&mut self, arch: Arch, features: &[&'static str], verdict: &Verdict) {
        self.cases += 1;
        let column = match verdict {
            Verdict::Preserved(_) => 1,
            Verdict::Refused(_) => 2,
            _ => 0,
        };
        let count = |counts: &mut [u64; 3]| {
            counts[0] += 1;
            if column > 0 {
                counts[column] += 1;
            }
        };
        features.iter().for_each(|f| count(self.features.entry(f).or_default()));
        count(self.archs.entry(arch.as_str()).or_default());
        match verdict {
            Verdict::Preserved(_) => self.preserved += 1,
            Verdict::Refused(errors) => {
                if let Some(d) = errors.first() {
                    *self.refused.entry(d.code.as_str()).or_default() += 1;
                }
            }
            Verdict::Discarded(d) => {
                *self.discarded.entry(d.code.as_str()).or_default() += 1;
            }
            Verdict::Failed(f) => *self.failed.entry(f.kind.clone()).or_default() += 1,
        }
    }

    pub(crate) fn n_refused(&self) -> u64 {
        self.refused.values().sum()
    }

    fn n_discarded(&self) -> u64 {
        self.discarded.values().sum()
    }

    pub(crate) fn table(&self, seed: u64) -> String {
        let mut out = format!(
            "seed {seed}: {} cases, {} mean the same, {} refused, {} failed, {} discarded; \
             {} compiled\n",
            self.cases,
            self.preserved,
            self.n_refused(),
            self.failed.values().sum::<u64>(),
            self.n_discarded(),
            self.compiled,
        );
        let (took, i) = self.slowest;
        let _ = writeln!(out, "the slowest, {i}, took {took:.1?}");
        let list = |name: &str, of: Vec<(String, u64)>, out: &mut String| {
            let all: Vec<String> = of.into_iter().map(|(k, n)| format!("{k} {n}")).collect();
            if !all.is_empty() {
                let _ = writeln!(out, "{name}: {}", all.join(", "));
            }
        };
        let all = |of: &BTreeMap<&'static str, u64>| {
            of.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect()
        };
        list("refused", all(&self.refused), &mut out);
        list("failed", self.failed.iter().map(|(k, n)| (k.clone(), *n)).collect(), &mut out);
        list("discarded", all(&self.discarded), &mut out);
        let _ = writeln!(out, "{:>7} {:>7} {:>7}  with", "cases", "same", "refused");
        for (name, [n, same, refused]) in self.archs.iter().chain(&self.features) {
            let _ = writeln!(out, "{n:>7} {same:>7} {refused:>7}  {name}");
        }
        out
    }
}

/// The simplest case that fails in the same way.
fn simplest<T>(
    mut tree: impl ValueTree<Value = T>,
    render: &Render<T>,
    failure: Failure,
    tables: &mut Tables,
) -> (Subject, Failure) {
    let (mut best, mut why) = (render(&tree.current()).0, failure);
    let mut more = tree.simplify();
    for _ in 0..SIMPLER {
        if !more {
            break;
        }
        let (subject, _) = render(&tree.current());
        match judge(&subject, tables.of(subject.arch)) {
            Verdict::Failed(f) if f.kind == why.kind => {
                (best, why) = (subject, f);
                more = tree.simplify();
            }
            _ => more = tree.complicate(),
        }
    }
    (best, why)
}

fn folder() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a build folder");
    let folder = target.join("gate");
    std::fs::create_dir_all(&folder).expect("a folder for failures");
    folder
}

/// Keeps a failure; where.
fn keep(name: &str, subject: &Subject, failure: &Failure) -> String {
    let file = folder().join(format!("{name}.cby"));
    let title = format!("{}: {}", failure.kind, failure.what);
    std::fs::write(&file, subject.write(&title)).expect("a file for a failure");
    if let Some(text) = &failure.decomposed {
        let file = folder().join(format!("{name}.decomposed.cby"));
        std::fs::write(file, text).expect("a file for a decomposed program");
    }
    file.display().to_string()
}

/// Compiles each kernel; what is wrong, if anything is.
fn compile(d: &Decomposed, arch: Arch, table: &AtomTable) -> Result<bool, String> {
    let Some(nvrtc) = require_nvrtc() else { return Ok(false) };
    for &kernel in &d.program.kernels {
        let printed = carbyne_codegen::print_kernel(&d.program, kernel, table, None)
            .map_err(|errors| format!("{errors:?}"))?;
        nvrtc
            .compile(&printed.source, arch.nvrtc_name(), Emit::Ptx, &Options::default())
            .map_err(|e| format!("{e}\n{}", e.notes.join("\n")))?;
    }
    Ok(true)
}

/// Draws programs and judges them.
pub(crate) struct Campaign<'a, S, T> {
    /// A prefix of the names of files.
    pub(crate) name: &'a str,
    /// Cases of the plain run.
    pub(crate) cases: u32,
    /// Of so many that decompose, one is compiled.
    pub(crate) compiled: u64,
    /// Draws descriptions.
    pub(crate) drawn: S,
    /// Writes them.
    pub(crate) render: &'a Render<T>,
    /// How long a case may take.
    pub(crate) limit: Duration,
}

/// A program of a description, and what occurs in it.
pub(crate) type Render<T> = dyn Fn(&T) -> (Subject, Vec<&'static str>);

impl<T, S: Strategy<Value = T>> Campaign<'_, S, T> {
    /// Judges all cases; returns the counts of verdicts and a table of them, and panics if a case
    /// failed.
    #[expect(clippy::print_stdout, reason = "counts are for people who run it by hand")]
    pub(crate) fn run(&self) -> (Counts, String) {
        let seed = testing::seed();
        let mut tables = Tables::default();
        let mut counts = Counts::default();
        let mut failures = vec![];
        // Panics are failures like others, and many simpler cases are tried for one.
        keep_panics();
        QUIET.set(true);
        for i in 0..u64::from(testing::cases(self.cases)) {
            failures.extend(self.case(seed, i, &mut tables, &mut counts, failures.len()));
        }
        QUIET.set(false);
        let table = counts.table(seed);
        println!("{table}");
        let file = folder().join(format!("{}counts.txt", self.name));
        std::fs::write(file, &table).expect("a file for the counts");
        assert!(failures.is_empty(), "{}\n{table}", failures.join("\n"));
        (counts, table)
    }

    /// Judges a case; what is wrong with it, if anything is.
    fn case(
        &self,
        seed: u64,
        i: u64,
        tables: &mut Tables,
        counts: &mut Counts,
        failed: usize,
    ) -> Option<String> {
        let tree = self.drawn.new_tree(&mut testing::runner_of_case(seed, i)).expect("a case");
        let (subject, mut features) = (self.render)(&tree.current());
        if subject.text.is_empty() {
            *counts.discarded.entry("nothing").or_default() += 1;
            counts.cases += 1;
            return None;
        }
        let table = tables.of(subject.arch);
        let begun = Instant::now();
        let mut verdict = judge(&subject, table);
        let took = begun.elapsed();
        counts.slowest = counts.slowest.max((took, i));
        if took > self.limit {
            let what = format!("it took {took:?}");
            verdict = Verdict::Failed(Failure { kind: "slow".to_owned(), what, decomposed: None });
        }
        if let Verdict::Preserved(d) = &verdict
            && counts.preserved.is_multiple_of(self.compiled)
        {
            match compile(d, subject.arch, table) {
                Ok(done) => counts.compiled += u64::from(done),
                Err(what) => {
                    let (kind, decomposed) = ("compile".to_owned(), Some(d.text.clone()));
                    verdict = Verdict::Failed(Failure { kind, what, decomposed });
                }
            }
        }
        if let Verdict::Preserved(d) = &verdict
            && d.warnings.iter().any(|d| d.code == Code::Stages && d.message.contains("ahead"))
        {
            features.push("`stages=` with a copy that waits");
        }
        if let Verdict::Preserved(d) = &verdict {
            let of = [
                ("atom=wgmma", "wgmma"),
                ("atom=mma", "mma"),
                ("atom=cp.async.bulk", "TMA"),
                ("zfill", "copies that fill with zeros"),
            ];
            features.extend(of.iter().filter(|f| d.text.contains(f.0)).map(|f| f.1));
        }
        counts.note(subject.arch, &features, &verdict);
        self.example(&subject, &verdict, counts);
        let Verdict::Failed(mut failure) = verdict else { return None };
        let mut small = subject;
        if failed < SMALL && failure.kind != "compile" && failure.kind != "slow" {
            (small, failure) = simplest(tree, self.render, failure, tables);
        }
        let name = format!("{}{}_{seed}_{i}", self.name, failure.kind.replace(' ', "_"));
        let file = keep(&name, &small, &failure);
        Some(format!("{file}: {}\n{}", failure.what, small.text))
    }

    /// Keeps some of each reason, for who wants to know what does not decompose.
    fn example(&self, subject: &Subject, verdict: &Verdict, counts: &Counts) {
        let (what, d) = match verdict {
            Verdict::Refused(errors) => match errors.first() {
                Some(d) => ("refused", d),
                None => return,
            },
            Verdict::Discarded(d) => ("discarded", &**d),
            Verdict::Preserved(_) | Verdict::Failed(_) => return,
        };
        let code = d.code.as_str();
        let all = if what == "refused" { &counts.refused } else { &counts.discarded };
        let n = all.get(code).copied().unwrap_or_default();
        if n <= EXAMPLES {
            let text = format!("{} {} {}", d.message, d.label, d.notes.join(" "));
            let why = Failure { kind: code.to_owned(), what: text, decomposed: None };
            keep(&format!("{}{what}_{code}_{n}", self.name), subject, &why);
        }
    }
}

#[test]
fn decomposition_preserves_meaning() {
    let (counts, table) = Campaign {
        name: "",
        cases: CASES,
        compiled: COMPILED,
        drawn: case(),
        render: &Case::render,
        limit: Duration::MAX,
    }
    .run();
    let judged = counts.preserved + counts.n_refused();
    assert!(counts.preserved * 10 >= judged * 7, "too many are refused\n{table}");
    assert!(counts.n_discarded() * 20 <= counts.cases, "too many do not run\n{table}");
}

/// Specs without bodies: strategies choose. Few are refused, since what is drawn is what the guide
/// says of kernel level.
#[test]
fn decomposition_of_graphs_preserves_meaning() {
    let (counts, table) = Campaign {
        name: "graph_",
        cases: GRAPHS,
        compiled: COMPILED,
        drawn: graph(),
        render: &Graph::render,
        limit: testing::SOON,
    }
    .run();
    let uneven = counts.features.get(UNEVEN).copied().unwrap_or_default();
    let refused = counts.n_refused() - uneven[2];
    let judged = counts.preserved + counts.n_refused() - uneven[1] - uneven[2];
    assert!(refused * 20 <= judged, "too many are refused\n{table}");
    assert!(counts.n_discarded() * 20 <= counts.cases, "too many do not run\n{table}");
}

/// Tiles that do not divide the sizes, which are constants or symbols. What is drawn is what the
/// guide says of tiles, so that few are refused; a body that computes something else than it means
/// is wrong already before.
#[test]
fn decomposition_of_partial_tiles_preserves_meaning() {
    let (counts, table) = Campaign {
        name: "partial_",
        cases: PARTIAL,
        compiled: COMPILED,
        drawn: partial::partial(),
        render: &Partial::render,
        limit: testing::SOON,
    }
    .run();
    let judged = counts.preserved + counts.n_refused();
    assert!(counts.n_refused() * 20 <= judged, "too many are refused\n{table}");
    // A few want more shared memory than their architecture has.
    let large = counts.discarded.get(Code::SharedTooLarge.as_str()).copied().unwrap_or_default();
    assert!(large * 50 <= counts.cases, "too many are too large\n{table}");
    assert_eq!(counts.n_discarded(), large, "some do not run\n{table}");
}

/// Drawn programs depend on their partial tiles: without the last one hardly a program computes
/// its meaning. The largest element of a row may stand in another tile.
#[test]
fn partial_tiles_that_are_left_out_are_missed() {
    let mut tables = Tables::default();
    let (mut n, mut missed) = (0, 0);
    for i in 0..2 * PARTIAL {
        let drawn = partial::partial()
            .new_tree(&mut testing::runner_of_case(0, i.into()))
            .expect("a case")
            .current();
        let (subject, _) = drawn.render();
        let Some(less) = partial::without(&subject.text) else { continue };
        let subject = Subject { text: less, ..subject };
        let verdict = judge(&subject, tables.of(subject.arch));
        missed += u32::from(matches!(verdict, Verdict::Discarded(_)));
        n += 1;
    }
    assert!(n >= PARTIAL / 4 && missed * 10 >= n * 9, "{missed} of {n}");
}

#[test]
fn what_was_mended_stays_so() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../decompose/tests/gate");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("the folder").map(|f| f.expect("a file").path()).collect();
    files.sort();
    let mut tables = Tables::default();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("readable");
        let subject = Subject::read(&text).unwrap_or_else(|| panic!("{}: no head", file.display()));
        let verdict = judge(&subject, tables.of(subject.arch));
        let refused = text.contains("// refused:");
        match verdict {
            Verdict::Preserved(_) if !refused => {}
            Verdict::Refused(d) if text.contains(&format!("// refused: {}", d[0].code)) => {}
            other => panic!("{}: {other:#?}", file.display()),
        }
    }
}
