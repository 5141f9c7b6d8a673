//! Decides how much of long tests runs: the part of a corpus (a list of inputs, such as all rows of
//! the atom table), the number of cases of a property, and the random seed.
//!
//! Some corpora would take minutes: all rows of the atom table for all architectures, all examples
//! with all inputs, many generated programs. `cargo test` and `cargo xtask ci` run every kind of
//! check on a part of them. `CARBYNE_ALL=1` and `cargo xtask ci --all` run everything.
//! `CARBYNE_CASES=10000` runs up to this number of cases of each property, never fewer than usual.
//! Whether an entry of a corpus is drawn depends on its name and the seed, not on other entries.
//!
//! The seed is 0 by default, so that a passing test passes again. With `CARBYNE_ALL` or
//! `CARBYNE_CASES` the seed is fresh, and a failing test prints it. `CARBYNE_SEED=1` sets the seed,
//! to repeat a failure.
//!
//! Tests draw parts of corpora and seeds only through this module, and run properties with
//! `config`.

#[cfg(feature = "proptest")]
use proptest::test_runner::{Config, RngAlgorithm, RngSeed, TestRng, TestRunner};
use std::sync::OnceLock;
use std::time::Duration;

/// The environment variable that makes tests run all of their corpora.
pub const ALL: &str = "CARBYNE_ALL";

/// The environment variable that sets the random seed (default 0).
pub const SEED: &str = "CARBYNE_SEED";

/// The environment variable that sets the number of cases of a property.
pub const CASES: &str = "CARBYNE_CASES";

/// Within this time all work that has a bound ends, also on a slow machine under load. Tests that
/// exceed it have found work without a bound.
pub const SOON: Duration = Duration::from_secs(60);

/// Whether tests run their whole corpora.
#[must_use]
pub fn all() -> bool {
    std::env::var_os(ALL).is_some_and(|v| v == "1")
}

/// The random seed: that of the environment, or a fresh one, printed to the test log, if the run is
/// longer than usual, or else 0.
#[must_use]
#[expect(clippy::print_stderr, reason = "a test that fails must say how to repeat it")]
pub fn seed() -> u64 {
    static FRESH: OnceLock<u64> = OnceLock::new();
    if let Some(seed) = number(SEED) {
        return seed;
    }
    if !all() && number(CASES).is_none() {
        return 0;
    }
    let seed = *FRESH.get_or_init(fresh);
    eprintln!("drawn by {SEED}={seed}");
    seed
}

/// A seed that differs from run to run.
fn fresh() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanoseconds = now.map_or(0, |t| t.as_nanos() as u64);
    // Short enough to type.
    hash(nanoseconds, "seed") % 1_000_000_000
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.trim().parse().ok()
}

/// The number of cases of a property: that of the environment, or `usual`.
#[must_use]
pub fn cases(usual: u32) -> u32 {
    number(CASES).map_or(usual, |n| u32::try_from(n).unwrap_or(u32::MAX))
}

/// The configuration of a property with cheap cases. It runs `usual` cases, or the number in the
/// environment if that is larger: some properties count their cases and would fail with fewer.
/// proptest stores failures under `proptest-regressions` and tries them first in later runs.
#[cfg(feature = "proptest")]
#[must_use]
pub fn config(usual: u32) -> Config {
    Config { cases: cases(usual).max(usual), rng_seed: RngSeed::Fixed(seed()), ..Config::default() }
}

/// As [`config`], for a property whose cases take long: never more than `most` cases.
#[cfg(feature = "proptest")]
#[must_use]
pub fn config_up_to(usual: u32, most: u32) -> Config {
    let config = config(usual);
    Config { cases: config.cases.min(most), ..config }
}

/// A runner for a property that does not use proptest's macro. The runner does not know the source
/// file, so it stores no failures.
#[cfg(feature = "proptest")]
#[must_use]
pub fn runner(config: Config) -> TestRunner {
    TestRunner::new(Config { failure_persistence: None, ..config })
}

/// A runner that draws case `i` of a seed, independent of other cases.
#[cfg(feature = "proptest")]
#[must_use]
pub fn runner_of_case(seed: u64, i: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&i.to_le_bytes());
    let config = Config { failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// The number of cases to generate: `part`, or `whole` if tests run everything.
#[must_use]
pub fn count<N>(part: N, whole: N) -> N {
    if all() { whole } else { part }
}

/// One of the choices, drawn by the seed and by `name`; all choices if tests run everything. An
/// empty list gives an empty list.
#[must_use]
pub fn one_of<'a, T>(name: &str, choices: &'a [T]) -> &'a [T] {
    if all() { choices } else { drawn(seed(), name, choices) }
}

/// Whether `name` is drawn, with a chance of one in `n`; always true if tests run everything.
#[must_use]
pub fn one_in(n: u64, name: &str) -> bool {
    all() || hash(seed(), name).is_multiple_of(n.max(1))
}

fn drawn<'a, T>(seed: u64, name: &str, choices: &'a [T]) -> &'a [T] {
    let n = choices.len().max(1) as u64;
    let at = (hash(seed, name) % n) as usize;
    choices.get(at..=at).unwrap_or_default()
}

/// FNV-1a with the finalizer of splitmix64: the result is the same on every machine and compiler.
fn hash(seed: u64, name: &str) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(name.bytes());
    let x = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |x, byte| {
        (x ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_drawn_about_as_often_and_the_same_again() {
        let choices = [0, 1, 2, 3];
        let mut n = [0; 4];
        for k in 0..4000 {
            let name = format!("row{k}");
            let one = drawn(0, &name, &choices);
            assert_eq!(one, drawn(0, &name, &choices));
            n[one[0]] += 1;
        }
        assert!(n.iter().all(|n| (900..1100).contains(n)), "{n:?}");
        let differs =
            |k: &u32| drawn(0, &k.to_string(), &choices) != drawn(1, &k.to_string(), &choices);
        assert!((600..900).contains(&(0..1000).filter(differs).count()));
        assert_eq!(drawn::<u8>(0, "nothing", &[]), [0_u8; 0]);
    }
}
