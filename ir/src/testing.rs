//! How much of a long corpus a test runs, how many cases of a property, and the seed that draws
//! them.
//!
//! `cargo test` and `cargo xtask ci` run every kind of check, over a part of what would take
//! minutes: rows of the atom table with their architectures, examples with their inputs, generated
//! programs. `CARBYNE_ALL=1` runs the whole, and so does `cargo xtask ci --all`;
//! `CARBYNE_CASES=10000` runs so many cases of each property. What is drawn for one name does not
//! depend on what else there is.
//!
//! The seed is 0, so that a test that passes passes again. Where everything is run or a number of
//! cases is asked for, it is a fresh one, which a test that fails shows; `CARBYNE_SEED=1` names the
//! seed, to repeat such a failure.
//!
//! Invariant: tests read these variables here only, and properties are run as `config` says.

#[cfg(feature = "proptest")]
use proptest::test_runner::{Config, RngAlgorithm, RngSeed, TestRng, TestRunner};
use std::sync::OnceLock;

/// The environment variable with which tests run all of their corpora.
pub const ALL: &str = "CARBYNE_ALL";

/// The environment variable with another seed than 0 to draw by.
pub const SEED: &str = "CARBYNE_SEED";

/// The environment variable with the number of cases of a property.
pub const CASES: &str = "CARBYNE_CASES";

/// Whether everything is run.
#[must_use]
pub fn all() -> bool {
    std::env::var_os(ALL).is_some_and(|v| v == "1")
}

/// The seed to draw by: that of the environment; else 0, and where more than the usual is run a
/// fresh one, which is said in the log of the test.
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

/// A seed that is another one each time.
fn fresh() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanoseconds = now.map_or(0, |t| t.as_nanos() as u64);
    // Short, to be typed.
    hash(nanoseconds, "seed") % 1_000_000_000
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.trim().parse().ok()
}

/// How many cases of a property to run: so many as the environment says, else `usual`.
#[must_use]
pub fn cases(usual: u32) -> u32 {
    number(CASES).map_or(usual, |n| u32::try_from(n).unwrap_or(u32::MAX))
}

/// How a property is run whose cases are cheap: `usual` of them, or as many as the environment says
/// if that is more; with fewer, properties that count what they draw would fail. Failures are kept
/// as proptest keeps them, under `proptest-regressions`, and tried first from then on.
#[cfg(feature = "proptest")]
#[must_use]
pub fn config(usual: u32) -> Config {
    Config { cases: cases(usual).max(usual), rng_seed: RngSeed::Fixed(seed()), ..Config::default() }
}

/// As [`config`], of a property whose cases take long: never more than `most`.
#[cfg(feature = "proptest")]
#[must_use]
pub fn config_up_to(usual: u32, most: u32) -> Config {
    let config = config(usual);
    Config { cases: config.cases.min(most), ..config }
}

/// Runs a property that is written without proptest's macro. Its file is not known, so that no
/// failure is kept.
#[cfg(feature = "proptest")]
#[must_use]
pub fn runner(config: Config) -> TestRunner {
    TestRunner::new(Config { failure_persistence: None, ..config })
}

/// Draws case number `i` of a seed, whatever was drawn before it.
#[cfg(feature = "proptest")]
#[must_use]
pub fn runner_of_case(seed: u64, i: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&i.to_le_bytes());
    let config = Config { failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// How many cases to generate: `part`, or `whole` where everything is run.
#[must_use]
pub fn count<N>(part: N, whole: N) -> N {
    if all() { whole } else { part }
}

/// One of the choices, drawn by the seed and by what `name` says they are for; all of them where
/// everything is run.
///
/// Of no choices there are none.
#[must_use]
pub fn one_of<'a, T>(name: &str, choices: &'a [T]) -> &'a [T] {
    if all() { choices } else { drawn(seed(), name, choices) }
}

/// Whether `name` is among those drawn, one in `n`; always where everything is run.
#[must_use]
pub fn one_in(n: u64, name: &str) -> bool {
    all() || hash(seed(), name).is_multiple_of(n.max(1))
}

fn drawn<'a, T>(seed: u64, name: &str, choices: &'a [T]) -> &'a [T] {
    let n = choices.len().max(1) as u64;
    let at = (hash(seed, name) % n) as usize;
    choices.get(at..=at).unwrap_or_default()
}

/// FNV-1a, finished as splitmix64 does: the same on every machine and with every compiler.
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
