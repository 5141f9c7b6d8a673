//! How much of a long corpus a test runs: a part that a fixed seed draws, or all of it.
//!
//! `cargo test` and `cargo xtask ci` run every kind of check, over a part of what would take minutes: rows of the atom
//! table with their architectures, examples with their inputs, generated programs. `CARBYNE_ALL=1` runs the whole, and
//! so does `cargo xtask ci --all`; `CARBYNE_SEED=1` draws another part. What is drawn for one name does not depend on
//! what else there is.
//!
//! Invariant: tests read these two variables here only.

/// The environment variable with which tests run all of their corpora.
pub const ALL: &str = "CARBYNE_ALL";

/// The environment variable with another seed than 0 to draw by.
pub const SEED: &str = "CARBYNE_SEED";

/// Whether everything is run.
#[must_use]
pub fn all() -> bool {
    std::env::var_os(ALL).is_some_and(|v| v == "1")
}

/// The seed to draw by: 0 where the environment has no other.
#[must_use]
pub fn seed() -> u64 {
    std::env::var(SEED).ok().and_then(|v| v.trim().parse().ok()).unwrap_or(0)
}

/// How many cases to generate: `part`, or `whole` where everything is run.
#[must_use]
pub fn count<N>(part: N, whole: N) -> N {
    if all() { whole } else { part }
}

/// One of the choices, drawn by the seed and by what `name` says they are for; all of them where everything is run.
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
