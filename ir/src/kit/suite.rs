//! Runs the suite: evaluates every law, or the selected ones, on generated operands, in parallel,
//! and reports what holds. Here is also the macro that makes a test of each law.
//!
//! Invariant: equal seeds give equal runs. The seed follows from the name of the law and that of
//! [`crate::testing`], which is 0 unless the environment changes it. Invariant: if a library does
//! not have an operation, laws about this operation are reported as not implemented, and every
//! summary names them.

use super::bounds::Bounds;
use super::error::{Demand, LawError, LawResult, Outcome};
use super::laws as l;
use super::like::LayoutLike;
use super::strategies as s;
use super::tiling::Tiling;
use crate::parallel;
use proptest::prelude::*;
use proptest::strategy::BoxedStrategy;
use proptest::test_runner::{
    Config, FailurePersistence, FileFailurePersistence, RngAlgorithm, TestError, TestRng,
    TestRunner,
};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

/// The default number of cases of each law.
pub const CASES: u32 = 2048;

/// The laws to run, the number of their cases and the size of their operands.
///
/// A number stands for this number of cases with defaults for everything else.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The number of operands for each law.
    pub cases: u32,
    /// The bounds of operands.
    pub bounds: Bounds,
    /// The names of the laws to run; `None` for all laws.
    pub only: Option<Vec<String>>,
    /// The names of the laws to skip.
    pub except: Vec<String>,
    /// The folder for proptest's seeds of operands that broke a law, one file `LAW.txt` for each
    /// law. Later runs start with these seeds. `None` stores no seeds.
    pub regressions: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            cases: CASES,
            bounds: Bounds::default(),
            only: None,
            except: vec![],
            regressions: None,
        }
    }
}

impl From<u32> for Settings {
    fn from(cases: u32) -> Self {
        Settings { cases, ..Settings::default() }
    }
}

impl From<&Settings> for Settings {
    fn from(settings: &Settings) -> Self {
        settings.clone()
    }
}

impl Settings {
    /// The settings as changed by the environment: `CARBYNE_CASES=10000` sets the number of cases,
    /// `CARBYNE_LAWS=eval,slice` selects from the laws of the settings.
    #[must_use]
    pub fn from_environment(mut self) -> Self {
        self.cases = crate::testing::cases(self.cases);
        if let Ok(laws) = std::env::var("CARBYNE_LAWS") {
            let named: Vec<String> = laws.split(',').map(|law| law.trim().to_owned()).collect();
            self.only = Some(match self.only {
                None => named,
                Some(only) => only.into_iter().filter(|law| named.contains(law)).collect(),
            });
        }
        self
    }

    fn asks(&self, law: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|name| name == law);
        self.only.as_ref().is_none_or(|only| named(only)) && !named(&self.except)
    }
}

/// The result of a law on generated operands.
#[derive(Clone, Debug)]
pub struct Report {
    /// The law.
    pub law: &'static str,
    /// The number of operands for which it held.
    pub held: u32,
    /// The number of permitted refusals.
    pub refused: u32,
    /// The operations that the library does not have, each with the number of affected operands.
    pub unsupported: BTreeMap<&'static str, u32>,
    /// The failure, if the law is broken.
    pub failure: Option<Failure>,
}

/// The smallest operands found that break a law.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The operands.
    pub operands: String,
    /// The error. `None` if the library panicked.
    pub error: Option<LawError>,
    /// The text of the panic or of the error.
    pub text: String,
}

/// The verdict of a report.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No operands broke the law.
    Holds,
    /// The library does not have the operation for any of the drawn operands.
    NotImplemented,
    /// Some operands break the law.
    Broken,
}

impl Report {
    /// The verdict of the report.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self.failure {
            Some(_) => Verdict::Broken,
            None if self.held == 0 && self.refused == 0 => Verdict::NotImplemented,
            None => Verdict::Holds,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "law {}: ", self.law)?;
        match self.verdict() {
            Verdict::Broken => {
                let text = self.failure.as_ref().map_or("", |failure| &failure.text);
                return write!(f, "BROKEN\n{text}");
            }
            Verdict::NotImplemented => write!(f, "not implemented")?,
            Verdict::Holds => write!(f, "held for {}", self.held)?,
        }
        if self.refused > 0 {
            write!(f, ", refused {}", self.refused)?;
        }
        for (operation, times) in &self.unsupported {
            write!(f, ", `{operation}` is not implemented for {times}")?;
        }
        Ok(())
    }
}

/// A law of the suite.
#[derive(Copy, Clone, Debug)]
pub struct Law {
    /// The name. Several laws may be about one operation.
    pub name: &'static str,
    run: fn(&'static str, &Settings) -> Report,
}

impl Law {
    /// Evaluates the law on generated operands. A number gives the number of cases.
    #[must_use]
    pub fn run(&self, settings: impl Into<Settings>) -> Report {
        (self.run)(self.name, &settings.into())
    }
}

/// Evaluates a law on the values of a strategy, and shrinks a failure.
pub fn judge<V: fmt::Debug + 'static>(
    name: &'static str,
    settings: &Settings,
    strategy: impl Strategy<Value = V> + 'static,
    law: impl Fn(&V) -> LawResult,
) -> Report {
    judge_boxed(name, settings, &strategy.boxed(), &law)
}

/// The persistence of a law's seeds.
fn kept(path: PathBuf) -> Box<dyn FailurePersistence> {
    // Proptest needs a path that lives as long as the program: one for each run of a law.
    let path = path.with_extension("txt").to_string_lossy().into_owned().leak();
    Box::new(FileFailurePersistence::Direct(path))
}

/// As [`judge`]. It is compiled once for each type of operands, not for every law of every library.
fn judge_boxed<V: fmt::Debug>(
    name: &'static str,
    settings: &Settings,
    strategy: &BoxedStrategy<V>,
    law: &dyn Fn(&V) -> LawResult,
) -> Report {
    let config = Config {
        cases: settings.cases,
        failure_persistence: settings.regressions.as_ref().map(|folder| kept(folder.join(name))),
        max_shrink_iters: 4096,
        // The kit prints the failure itself.
        verbose: 0,
        ..Config::default()
    };
    let mut seed = [0u8; 32];
    for (k, byte) in name.bytes().enumerate() {
        seed[k % 24] ^= byte.rotate_left((k / 24) as u32);
    }
    seed[24..].copy_from_slice(&crate::testing::seed().to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut report =
        Report { law: name, held: 0, refused: 0, unsupported: BTreeMap::new(), failure: None };
    let tally = std::cell::RefCell::new(&mut report);
    let ended = TestRunner::new_with_rng(config, rng).run(strategy, |operands| {
        let outcome = law(&operands).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let mut tally = tally.borrow_mut();
        match outcome {
            Outcome::Holds => tally.held += 1,
            Outcome::Refused => tally.refused += 1,
            Outcome::Unsupported(operation) => {
                *tally.unsupported.entry(operation).or_default() += 1;
            }
        }
        Ok(())
    });
    match ended {
        Ok(()) => {}
        Err(TestError::Abort(why)) => {
            let text = format!("the run was aborted: {why}");
            report.failure = Some(Failure { operands: String::new(), error: None, text });
        }
        Err(TestError::Fail(why, operands)) => {
            let again = catch_unwind(AssertUnwindSafe(|| law(&operands)));
            let error = again.ok().and_then(Result::err).map(|error| *error);
            let shown = format!("{operands:?}");
            let text = match &error {
                Some(error) => error.to_string(),
                None => format!("panicked or is not deterministic: {why}\n  operands = {shown}"),
            };
            report.failure = Some(Failure { operands: shown, error, text });
        }
    }
    report
}

/// The reports of all laws that were run.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The type under test.
    pub of: &'static str,
    /// The reports in the order of the documentation.
    pub reports: Vec<Report>,
}

impl Summary {
    /// The reports with this verdict.
    pub fn with(&self, verdict: Verdict) -> impl Iterator<Item = &Report> {
        self.reports.iter().filter(move |report| report.verdict() == verdict)
    }
}

/// One line for laws that hold, one for laws about missing operations, and the full report of
/// broken laws.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |verdict| self.with(verdict).map(|report| report.law).collect::<Vec<_>>();
        let (broken, none) = (names(Verdict::Broken), names(Verdict::NotImplemented));
        match names(Verdict::Holds).len() {
            1 => write!(f, "{}: 1 law holds", self.of)?,
            n => write!(f, "{}: {n} laws hold", self.of)?,
        }
        if !broken.is_empty() {
            let are = if broken.len() == 1 { "is" } else { "are" };
            write!(f, ", {} {are} broken: {}", broken.len(), broken.join(", "))?;
        }
        if !none.is_empty() {
            write!(f, "\n  not implemented, so not asked: {}", none.join(", "))?;
        }
        self.with(Verdict::Broken).try_for_each(|report| write!(f, "\n\n{report}"))
    }
}

/// An unknown name of a law in the settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no law `{name}`; the laws are {}", known.join(", "))]
pub struct UnknownLaw {
    /// The name.
    pub name: String,
    /// The names of all laws.
    pub known: Vec<&'static str>,
}

/// Runs the laws that the settings select, on all processors.
///
/// # Errors
/// A name in `only` or `except` is not a law.
pub fn run<T: LayoutLike>(settings: &Settings) -> Result<Summary, UnknownLaw> {
    let mut laws = laws::<T>();
    let known = |name: &&String| !laws.iter().any(|law| law.name == **name);
    if let Some(unknown) = settings.only.iter().flatten().chain(&settings.except).find(known) {
        let known = laws.iter().map(|law| law.name).collect();
        return Err(UnknownLaw { name: unknown.clone(), known });
    }
    laws.retain(|law| settings.asks(law.name));
    let reports = parallel::map(&laws, parallel::cores(), |law| law.run(settings));
    Ok(Summary { of: std::any::type_name::<T>(), reports })
}

/// Runs the laws as a test, with the settings and the environment. It writes the first lines of the
/// summary to standard error, also if the test passes, and the reports to standard output.
///
/// # Panics
/// If a law is broken, with the smallest operands found, and if a name is not a law.
#[expect(clippy::print_stdout, reason = "a test says what it skipped")]
pub fn check<T: LayoutLike>(settings: Settings) {
    let summary = match run::<T>(&settings.from_environment()) {
        Ok(summary) => summary,
        Err(why) => panic!("{why}"),
    };
    summary.reports.iter().for_each(|report| println!("{report}"));
    assert!(summary.with(Verdict::Broken).next().is_none(), "{summary}");
    // Standard error is not captured with the test's output, so skipped laws stay visible. If the
    // write fails, there is no reader.
    let _ = writeln!(std::io::stderr().lock(), "{summary}");
}

/// Lists the laws.
macro_rules! suite {
    (
        |$full:ident, $small:ident|
        $($name:ident: $strategy:expr => |$case:pat_param| $law:expr;)*
    ) => {
        /// Every law, in the order of the documentation.
        #[must_use]
        pub fn laws<T: LayoutLike>() -> Vec<Law> {
            vec![$(Law {
                name: stringify!($name),
                run: |name, settings| {
                    let ($full, $small) = (&settings.bounds, &settings.bounds.at_most(SMALL));
                    let _ = ($full, $small); // A law uses one of them or neither.
                    judge(name, settings, $strategy, |$case| $law)
                },
            }),*]
        }
    };
}

/// The maximum size of operands whose result has the product of their sizes.
const SMALL: i64 = 24;

suite! {
    |full, small|
    build: s::layout(full) => |a| l::law_build::<T>(a);
    eval: s::layout(full) => |a| l::law_eval::<T>(a);
    eval_at: s::layout(small) => |a| l::law_eval_at::<T>(a);
    coalesce: s::layout(full) => |a| l::law_coalesce::<T>(a);
    coalesce_by: s::profile(full) => |(a, profile)| l::law_coalesce_by::<T>(a, profile);
    filter: s::layout(full) => |a| l::law_filter::<T>(a);
    flatten: s::layout(full) => |a| l::law_flatten::<T>(a);
    composition: s::composition(full) => |(a, b)| l::law_composition::<T>(a, b, Demand::Answer);
    composition_any: s::any_pair(full)
        => |(a, b)| l::law_composition::<T>(a, b, Demand::ExactOrRefuse);
    composition_by_mode: s::composition_by_mode(full)
        => |(a, t)| l::law_composition_by_mode::<T>(a, t);
    with_shape: s::with_shape(full) => |(a, shape)| l::law_with_shape::<T>(a, shape);
    thread_value: s::thread_value(full) => |tv| l::law_thread_value::<T>(tv);
    thread_value_replicated: s::replicated_thread_value(full) => |tv| l::law_thread_value::<T>(tv);
    complement: s::complement(full) => |(a, n)| l::law_complement::<T>(a, *n, Demand::Answer);
    complement_any: (s::layout(full), 1i64..400)
        => |(a, n)| l::law_complement::<T>(a, *n, Demand::ExactOrRefuse);
    right_inverse: s::layout(full) => |a| l::law_right_inverse::<T>(a);
    right_inverse_bijection: s::permuted(full) => |a| l::law_right_inverse::<T>(a);
    left_inverse: s::padded(full) => |a| l::law_left_inverse::<T>(a, Demand::Answer);
    left_inverse_any: s::layout(full) => |a| l::law_left_inverse::<T>(a, Demand::ExactOrRefuse);
    nullspace: s::broadcast(full) => |a| l::law_nullspace::<T>(a);
    logical_divide: s::division(full) => |(a, t)| l::law_logical_divide::<T>(a, t);
    logical_divide_by_mode: s::division_by_mode(full) => |(a, t)| l::law_logical_divide::<T>(a, t);
    zipped_divide: s::division(full) => |(a, t)| l::law_zipped_divide::<T>(a, t);
    zipped_divide_by_mode: s::division_by_mode(full) => |(a, t)| l::law_zipped_divide::<T>(a, t);
    tiled_divide: s::division(full) => |(a, t)| l::law_tiled_divide::<T>(a, t);
    tiled_divide_by_mode: s::division_by_mode(full) => |(a, t)| l::law_tiled_divide::<T>(a, t);
    flat_divide: s::division(full) => |(a, t)| l::law_flat_divide::<T>(a, t);
    flat_divide_by_mode: s::division_by_mode(full) => |(a, t)| l::law_flat_divide::<T>(a, t);
    logical_product: s::product(small)
        => |(a, b)| l::law_logical_product::<T>(a, &Tiling::Layout(b.clone()));
    logical_product_by_mode: s::product_by_mode(small)
        => |(a, t)| l::law_logical_product::<T>(a, t);
    zipped_product: s::product(small)
        => |(a, b)| l::law_zipped_product::<T>(a, &Tiling::Layout(b.clone()));
    zipped_product_by_mode: s::product_by_mode(small) => |(a, t)| l::law_zipped_product::<T>(a, t);
    tiled_product: s::product(small)
        => |(a, b)| l::law_tiled_product::<T>(a, &Tiling::Layout(b.clone()));
    tiled_product_by_mode: s::product_by_mode(small) => |(a, t)| l::law_tiled_product::<T>(a, t);
    flat_product: s::product(small)
        => |(a, b)| l::law_flat_product::<T>(a, &Tiling::Layout(b.clone()));
    flat_product_by_mode: s::product_by_mode(small) => |(a, t)| l::law_flat_product::<T>(a, t);
    blocked_product: s::product(small) => |(a, b)| l::law_blocked_product::<T>(a, b);
    raked_product: s::product(small) => |(a, b)| l::law_raked_product::<T>(a, b);
    tile_to_shape: s::tile_to_shape(small) => |(a, shape)| l::law_tile_to_shape::<T>(a, shape);
    max_common_vector: s::same_shape(full) => |(a, b)| l::law_max_common_vector::<T>(a, b);
    max_common_layout: s::same_shape(full) => |(a, b)| l::law_max_common_layout::<T>(a, b);
    upcast: s::upcast(small) => |(a, n)| l::law_upcast::<T>(a, *n);
    downcast: s::downcast(small) => |(a, n)| l::law_downcast::<T>(a, *n);
    recast: s::recast(small) => |(a, old, new)| l::law_recast::<T>(a, *old, *new);
    group: s::mode_range(full) => |(a, begin, end)| l::law_group::<T>(a, *begin, *end);
    concat: s::any_pair(small) => |(a, b)| l::law_concat::<T>(a, b);
    slice: s::slice(full) => |(a, coord)| l::law_slice::<T>(a, coord);
    dice: s::slice(full) => |(a, coord)| l::law_dice::<T>(a, coord);
    swizzle: s::swizzle() => |(swizzle, index)| l::law_swizzle::<T>(*swizzle, *index);
    swizzled_eval: s::swizzled(full)
        => |(swizzle, offset, a)| l::law_swizzled_eval::<T>(*swizzle, *offset, a);
    congruent: s::refinements(full) => |shapes| l::law_congruent::<T>(shapes);
    weakly_congruent: s::refinements(full) => |shapes| l::law_weakly_congruent::<T>(shapes);
    compatible: s::refinements(full) => |shapes| l::law_compatible::<T>(shapes);
    swizzle_involution: s::large_swizzle()
        => |(swizzle, index)| l::law_swizzle_involution::<T>(*swizzle, *index);
    swizzle_bijection: s::swizzle()
        => |(swizzle, index)| l::law_swizzle_bijection::<T>(*swizzle, *index);
    swizzle_recast: s::swizzle_recast()
        => |(swizzle, old, new)| l::law_swizzle_recast::<T>(*swizzle, *old, *new);
    swizzled_composition: s::swizzled_composition(full)
        => |(swizzle, offset, a, b)| l::law_swizzled_composition::<T>(*swizzle, *offset, a, b);
    build_large: s::large(full) => |a| l::law_build_large::<T>(a);
    eval_large: s::large(full) => |a| l::law_eval_large::<T>(a);
    eval_at_large: s::large(full) => |a| l::law_eval_at_large::<T>(a);
    coalesce_large: s::large(full) => |a| l::law_coalesce_large::<T>(a);
    filter_large: s::large(full) => |a| l::law_filter_large::<T>(a);
    flatten_large: s::large(full) => |a| l::law_flatten_large::<T>(a);
    composition_large: s::large_composition(full) => |(a, b)| l::law_composition_large::<T>(a, b);
    complement_large: s::large_complement(full) => |(a, n)| l::law_complement_large::<T>(a, *n);
    right_inverse_large: s::large_permuted(full) => |a| l::law_right_inverse_large::<T>(a);
    left_inverse_large: s::large_padded(full) => |a| l::law_left_inverse_large::<T>(a);
    logical_divide_large: s::large_division(full)
        => |(a, t)| l::law_logical_divide_large::<T>(a, t);
    logical_product_large: s::large_product(full)
        => |(a, b)| l::law_logical_product_large::<T>(a, b);
    cast_large: s::large_cast(full) => |(a, n)| l::law_cast_large::<T>(a, *n);
    build_negative: s::negative(full) => |a| negative::<T>(|| l::law_build::<T>(a));
    eval_negative: s::negative(full) => |a| negative::<T>(|| l::law_eval::<T>(a));
    eval_at_negative: s::negative(small) => |a| negative::<T>(|| l::law_eval_at::<T>(a));
    coalesce_negative: s::negative(full) => |a| negative::<T>(|| l::law_coalesce::<T>(a));
    flatten_negative: s::negative(full) => |a| negative::<T>(|| l::law_flatten::<T>(a));
    composition_negative: s::negative_composition(full)
        => |(a, b)| negative::<T>(|| l::law_composition::<T>(a, b, Demand::Answer));
    logical_divide_negative: s::negative_division(full)
        => |(a, t)| negative::<T>(|| l::law_logical_divide::<T>(a, t));
    build_symbolic: s::symbolic(full) => |a| l::law_build_symbolic::<T>(a);
    coalesce_symbolic: s::symbolic(full) => |a| l::law_coalesce_symbolic::<T>(a);
    flatten_symbolic: s::symbolic(full) => |a| l::law_flatten_symbolic::<T>(a);
    composition_symbolic: s::symbolic_composition(full)
        => |(a, b)| l::law_composition_symbolic::<T>(a, b);
}

/// Evaluates a law about negative strides, if the library has them.
fn negative<T: LayoutLike>(law: impl FnOnce() -> LawResult) -> LawResult {
    if T::has_negative_strides() { law() } else { Ok(Outcome::Unsupported("negative strides")) }
}

/// Defines a test of the laws for a type that implements [`LayoutLike`]. The test fails if a law is
/// broken, with the smallest operands found. It reports the laws that it skipped because the type
/// does not have the operation.
///
/// Options follow the type in any order:
///
/// - `cases = 1000`: the number of operands for each law, by default 2048;
/// - `bounds = Bounds { rank: 2, depth: 1, ..Bounds::default() }`: the size of operands
///   ([`Bounds`]);
/// - `only = [eval, composition]`: the laws to run; `except = [slice]`: the laws to skip;
/// - `regressions = "tests/regressions"`: a folder of the package for proptest's seeds of operands
///   that broke a law. Later runs start with these seeds.
///
/// The test is named `laws`: use the macro in a separate module for each type. The environment
/// variable `CARBYNE_CASES` overrides the number of cases, `CARBYNE_LAWS=eval,slice` selects laws,
/// and `CARBYNE_SEED=1` draws other operands.
///
/// ```
/// use carbyne_ir::kit::layout_laws;
/// use carbyne_ir::layout::Layout;
///
/// layout_laws!(Layout, cases = 64, except = [swizzle, swizzled_eval]);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! layout_laws {
    ($type:ty $(, $($option:tt)*)?) => {
        #[test]
        fn laws() {
            let settings = $crate::kit::suite::Settings::default();
            $crate::kit::suite::check::<$type>(
                $crate::layout_laws!(@set settings, $($($option)*)?),
            );
        }
    };
    (@set $settings:ident,) => { $settings };
    (@set $settings:ident, only = [$($law:ident),* $(,)?] $(, $($rest:tt)*)?) => {{
        let only = Some(vec![$(stringify!($law).to_owned()),*]);
        let settings = $crate::kit::suite::Settings { only, ..$settings };
        $crate::layout_laws!(@set settings, $($($rest)*)?)
    }};
    (@set $settings:ident, except = [$($law:ident),* $(,)?] $(, $($rest:tt)*)?) => {{
        let except = vec![$(stringify!($law).to_owned()),*];
        let settings = $crate::kit::suite::Settings { except, ..$settings };
        $crate::layout_laws!(@set settings, $($($rest)*)?)
    }};
    (@set $settings:ident, cases = $value:expr $(, $($rest:tt)*)?) => {{
        let settings = $crate::kit::suite::Settings { cases: $value, ..$settings };
        $crate::layout_laws!(@set settings, $($($rest)*)?)
    }};
    (@set $settings:ident, bounds = $value:expr $(, $($rest:tt)*)?) => {{
        let settings = $crate::kit::suite::Settings { bounds: $value, ..$settings };
        $crate::layout_laws!(@set settings, $($($rest)*)?)
    }};
    (@set $settings:ident, regressions = $value:expr $(, $($rest:tt)*)?) => {{
        let folder = ::std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join($value);
        let settings = $crate::kit::suite::Settings { regressions: Some(folder), ..$settings };
        $crate::layout_laws!(@set settings, $($($rest)*)?)
    }};
}
