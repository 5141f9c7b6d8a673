//! The whole suite: every law with the operands it is asked about, and the macro that makes tests of
//! them.
//!
//! Invariant: runs are deterministic. The seed is that of the law's name, changed by the environment
//! variable `CARBYNE_SEED` only.
//! Invariant: the list of laws in [`layout_laws!`](crate::layout_laws) is that of [`laws`]; each
//! expansion has a test for it.

use super::error::{Demand, LawError, LawResult, Outcome};
use super::laws as l;
use super::like::LayoutLike;
use super::strategies as s;
use super::tiling::Tiling;
use proptest::strategy::{BoxedStrategy, Strategy};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Cases of each law where nothing else is said.
pub const CASES: u32 = 2048;

/// How a law fared over generated operands.
#[derive(Clone, Debug)]
pub struct Report {
    /// The law.
    pub law: &'static str,
    /// How many operands it held for.
    pub held: u32,
    /// How often the library refused where it may.
    pub refused: u32,
    /// The operations that the library does not have, and for how many operands that mattered.
    pub unsupported: BTreeMap<&'static str, u32>,
    /// What breaks it, if anything does.
    pub failure: Option<Failure>,
}

/// The smallest operands found that break a law.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The operands.
    pub operands: String,
    /// What is wrong; `None` where the library panicked.
    pub error: Option<LawError>,
    /// The panic's text, or the error's.
    pub text: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "law {}: ", self.law)?;
        if let Some(failure) = &self.failure {
            return write!(f, "BROKEN\n{}", failure.text);
        }
        if self.held == 0 && !self.unsupported.is_empty() {
            write!(f, "skipped")?;
        } else {
            write!(f, "held for {}", self.held)?;
        }
        if self.refused > 0 {
            write!(f, ", refused {}", self.refused)?;
        }
        for (operation, times) in &self.unsupported {
            write!(f, ", `{operation}` unsupported for {times}")?;
        }
        Ok(())
    }
}

/// A law of the suite.
#[derive(Copy, Clone, Debug)]
pub struct Law {
    /// Its name; several may be about one operation.
    pub name: &'static str,
    run: fn(&'static str, u32) -> Report,
}

impl Law {
    /// Judges the law for so many generated operands.
    #[must_use]
    pub fn run(&self, cases: u32) -> Report {
        (self.run)(self.name, cases)
    }
}

/// How many cases to run: `CARBYNE_CASES` if set, else `default`.
#[must_use]
pub fn cases(default: u32) -> u32 {
    number("CARBYNE_CASES").and_then(|n| u32::try_from(n).ok()).unwrap_or(default)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.trim().parse().ok()
}

/// Judges a law over what a strategy makes, shrinking what breaks it.
pub fn judge<V: fmt::Debug + 'static>(
    name: &'static str,
    cases: u32,
    strategy: impl Strategy<Value = V> + 'static,
    law: impl Fn(&V) -> LawResult,
) -> Report {
    judge_boxed(name, cases, &strategy.boxed(), &law)
}

/// As [`judge`]; compiled once for operands of a type, not for every law of every library.
fn judge_boxed<V: fmt::Debug>(
    name: &'static str,
    cases: u32,
    strategy: &BoxedStrategy<V>,
    law: &dyn Fn(&V) -> LawResult,
) -> Report {
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 4096,
        // Proptest must not answer for what this kit says itself.
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

/// Runs one law by name as a test: prints how it fared.
///
/// # Panics
/// Where the law is broken, with the smallest operands found; where there is no such law.
#[expect(clippy::print_stdout, reason = "a test says what it skipped")]
pub fn check<T: LayoutLike>(name: &str, default_cases: u32) {
    let all = laws::<T>();
    let Some(law) = all.iter().find(|law| law.name == name) else {
        panic!("there is no law `{name}`");
    };
    let report = law.run(cases(default_cases));
    println!("{report}");
    assert!(report.failure.is_none(), "{report}");
}

/// Lists the laws once for the table and for the macro.
macro_rules! suite {
    ($($name:ident: $strategy:expr => |$case:pat_param| $law:expr;)*) => {
        /// Every law, in the order of the documentation.
        #[must_use]
        pub fn laws<T: LayoutLike>() -> Vec<Law> {
            vec![$(Law {
                name: stringify!($name),
                run: |name, cases| judge(name, cases, $strategy, |$case| $law),
            }),*]
        }
    };
}

/// The largest layouts that laws are asked about.
const B: i64 = 192;
/// The largest operands of laws whose results are as large as both together.
const SMALL: i64 = 24;

suite! {
    build: s::layout(B) => |a| l::law_build::<T>(a);
    eval: s::layout(B) => |a| l::law_eval::<T>(a);
    eval_at: s::layout(SMALL) => |a| l::law_eval_at::<T>(a);
    coalesce: s::layout(B) => |a| l::law_coalesce::<T>(a);
    coalesce_by: s::profile(B) => |(a, profile)| l::law_coalesce_by::<T>(a, profile);
    filter: s::layout(B) => |a| l::law_filter::<T>(a);
    flatten: s::layout(B) => |a| l::law_flatten::<T>(a);
    composition: s::composition(B) => |(a, b)| l::law_composition::<T>(a, b, Demand::Answer);
    composition_any: s::any_pair(B) => |(a, b)| l::law_composition::<T>(a, b, Demand::ExactOrRefuse);
    composition_by_mode: s::composition_by_mode(B) => |(a, t)| l::law_composition_by_mode::<T>(a, t);
    with_shape: s::with_shape(B) => |(a, shape)| l::law_with_shape::<T>(a, shape);
    thread_value: s::thread_value(B) => |tv| l::law_thread_value::<T>(tv);
    thread_value_replicated: s::replicated_thread_value(B) => |tv| l::law_thread_value::<T>(tv);
    complement: s::complement(B) => |(a, n)| l::law_complement::<T>(a, *n, Demand::Answer);
    complement_any: (s::layout(B), 1i64..400) => |(a, n)| l::law_complement::<T>(a, *n, Demand::ExactOrRefuse);
    right_inverse: s::layout(B) => |a| l::law_right_inverse::<T>(a);
    right_inverse_bijection: s::permuted(B) => |a| l::law_right_inverse::<T>(a);
    left_inverse: s::padded(B) => |a| l::law_left_inverse::<T>(a, Demand::Answer);
    left_inverse_any: s::layout(B) => |a| l::law_left_inverse::<T>(a, Demand::ExactOrRefuse);
    nullspace: s::broadcast(B) => |a| l::law_nullspace::<T>(a);
    logical_divide: s::division(B) => |(a, t)| l::law_logical_divide::<T>(a, t);
    logical_divide_by_mode: s::division_by_mode(B) => |(a, t)| l::law_logical_divide::<T>(a, t);
    zipped_divide: s::division(B) => |(a, t)| l::law_zipped_divide::<T>(a, t);
    zipped_divide_by_mode: s::division_by_mode(B) => |(a, t)| l::law_zipped_divide::<T>(a, t);
    tiled_divide: s::division(B) => |(a, t)| l::law_tiled_divide::<T>(a, t);
    tiled_divide_by_mode: s::division_by_mode(B) => |(a, t)| l::law_tiled_divide::<T>(a, t);
    flat_divide: s::division(B) => |(a, t)| l::law_flat_divide::<T>(a, t);
    flat_divide_by_mode: s::division_by_mode(B) => |(a, t)| l::law_flat_divide::<T>(a, t);
    logical_product: s::product(SMALL) => |(a, b)| l::law_logical_product::<T>(a, &Tiling::Layout(b.clone()));
    logical_product_by_mode: s::product_by_mode(SMALL) => |(a, t)| l::law_logical_product::<T>(a, t);
    zipped_product: s::product(SMALL) => |(a, b)| l::law_zipped_product::<T>(a, &Tiling::Layout(b.clone()));
    zipped_product_by_mode: s::product_by_mode(SMALL) => |(a, t)| l::law_zipped_product::<T>(a, t);
    tiled_product: s::product(SMALL) => |(a, b)| l::law_tiled_product::<T>(a, &Tiling::Layout(b.clone()));
    tiled_product_by_mode: s::product_by_mode(SMALL) => |(a, t)| l::law_tiled_product::<T>(a, t);
    flat_product: s::product(SMALL) => |(a, b)| l::law_flat_product::<T>(a, &Tiling::Layout(b.clone()));
    flat_product_by_mode: s::product_by_mode(SMALL) => |(a, t)| l::law_flat_product::<T>(a, t);
    blocked_product: s::product(SMALL) => |(a, b)| l::law_blocked_product::<T>(a, b);
    raked_product: s::product(SMALL) => |(a, b)| l::law_raked_product::<T>(a, b);
    tile_to_shape: s::tile_to_shape(SMALL) => |(a, shape)| l::law_tile_to_shape::<T>(a, shape);
    max_common_vector: s::same_shape(B) => |(a, b)| l::law_max_common_vector::<T>(a, b);
    max_common_layout: s::same_shape(B) => |(a, b)| l::law_max_common_layout::<T>(a, b);
    upcast: s::upcast(SMALL) => |(a, n)| l::law_upcast::<T>(a, *n);
    downcast: s::downcast(SMALL) => |(a, n)| l::law_downcast::<T>(a, *n);
    recast: s::recast(SMALL) => |(a, old, new)| l::law_recast::<T>(a, *old, *new);
    group: s::mode_range(B) => |(a, begin, end)| l::law_group::<T>(a, *begin, *end);
    concat: s::any_pair(SMALL) => |(a, b)| l::law_concat::<T>(a, b);
    slice: s::slice(B) => |(a, coord)| l::law_slice::<T>(a, coord);
    dice: s::slice(B) => |(a, coord)| l::law_dice::<T>(a, coord);
    swizzle: s::swizzle() => |(swizzle, index)| l::law_swizzle::<T>(*swizzle, *index);
    swizzled_eval: s::swizzled(B) => |(swizzle, offset, a)| l::law_swizzled_eval::<T>(*swizzle, *offset, a);
    congruent: s::refinements(B) => |shapes| l::law_congruent::<T>(shapes);
    weakly_congruent: s::refinements(B) => |shapes| l::law_weakly_congruent::<T>(shapes);
    compatible: s::refinements(B) => |shapes| l::law_compatible::<T>(shapes);
}

/// Tests of every law for a type that implements [`LayoutLike`]: one `#[test]` a law. Laws about
/// operations that the type does not have are skipped and say so (`cargo test -- --nocapture`).
///
/// The environment variable `CARBYNE_CASES` overrides the number of cases.
///
/// ```
/// use carbyne_ir::kit::layout_laws;
/// use carbyne_ir::layout::Layout;
///
/// layout_laws!(Layout, cases = 64);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! layout_laws {
    ($type:ty) => {
        $crate::layout_laws!($type, cases = $crate::kit::suite::CASES);
    };
    ($type:ty, cases = $cases:expr) => {
        $crate::layout_laws!(@tests $type, $cases;
            build eval eval_at coalesce coalesce_by filter flatten
            composition composition_any composition_by_mode with_shape
            thread_value thread_value_replicated
            complement complement_any right_inverse right_inverse_bijection
            left_inverse left_inverse_any nullspace
            logical_divide logical_divide_by_mode zipped_divide zipped_divide_by_mode
            tiled_divide tiled_divide_by_mode flat_divide flat_divide_by_mode
            logical_product logical_product_by_mode zipped_product zipped_product_by_mode
            tiled_product tiled_product_by_mode flat_product flat_product_by_mode
            blocked_product raked_product tile_to_shape
            max_common_vector max_common_layout upcast downcast recast
            group concat slice dice swizzle swizzled_eval
            congruent weakly_congruent compatible
        );
    };
    (@tests $type:ty, $cases:expr; $($law:ident)*) => {
        $(#[test]
        fn $law() {
            $crate::kit::suite::check::<$type>(stringify!($law), $cases);
        })*

        #[test]
        fn every_law_has_a_test() {
            let laws = $crate::kit::suite::laws::<$type>();
            let names: Vec<_> = laws.iter().map(|law| law.name).collect();
            assert_eq!(names, [$(stringify!($law)),*]);
        }
    };
}
