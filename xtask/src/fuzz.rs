//! `cargo xtask fuzz TARGET SECONDS`: runs a libFuzzer target with the stable toolchain.
//!
//! `cargo fuzz` needs a nightly toolchain for the sanitizers. The targets need only the coverage
//! counters of libFuzzer, and stable rustc can pass the flags for them to LLVM. The flags apply
//! only to the target: with `--target`, Cargo does not pass them to build scripts and procedural
//! macros.
//!
//! The corpus is in `fuzz/TARGET` in the build folder and is kept between runs. Each run adds seeds
//! that fit the target: the examples, the layouts in tests, the programs of the simulator's tests,
//! or fixed bytes.

use crate::process::{Step, cargo, program, root, say};
use crate::setup::{shown, target};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Flags that make LLVM record the taken branches and the compared values of an input.
const FLAGS: [&str; 9] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
    "-Coverflow-checks",
];

pub(crate) fn fuzz(name: &str, seconds: u32) -> Step {
    let known = targets()?;
    if !known.contains(name) {
        let known = known.into_iter().collect::<Vec<_>>().join(", ");
        return Err(format!("there is no fuzz target `{name}`; there are {known}"));
    }
    let host = host()?;
    let build = target()?.join("fuzz").join("build");
    cargo(&["build", "--quiet", "--release", "--manifest-path", "fuzz/Cargo.toml"])
        .args(&["--bin", name, "--target", &host, "--target-dir", &build.to_string_lossy()])
        // Cargo splits this variable at unit separators.
        .env("CARGO_ENCODED_RUSTFLAGS", &FLAGS.join("\u{1f}"))
        .done("")?;

    let home = target()?.join("fuzz").join(name);
    let (corpus, crashes) = (home.join("corpus"), home.join("crashes"));
    for folder in [&corpus, &crashes] {
        fs::create_dir_all(folder).map_err(|e| format!("`{}`: {e}", shown(folder)))?;
    }
    let seeds = seed(name, &corpus)?;
    say(&format!("{name}: {seconds} s, {seeds} seeds, corpus in `{}`", shown(&corpus)));
    let (ok, log) = program(build.join(&host).join("release").join(name), &[])
        .args(&[&format!("-max_total_time={seconds}"), "-timeout=10", "-rss_limit_mb=2048"])
        .args(&["-print_final_stats=1", "-max_len=4096", "-verbosity=1"])
        .args(&[&format!("-artifact_prefix={}/", crashes.display()), &corpus.to_string_lossy()])
        .errors()?;

    let stat = |name: &str| {
        let line = log.lines().rev().find_map(|line| line.strip_prefix(&format!("stat::{name}:")));
        line.map_or("an unknown number of", str::trim)
    };
    let done = format!(
        "{name}: {} executions, {} a second, {}",
        stat("number_of_executed_units"),
        stat("average_exec_per_sec"),
        coverage(&log),
    );
    if ok {
        return Ok(done);
    }
    say(&done);
    let what = |line: &&str| line.contains("panicked at") || line.contains("ERROR: libFuzzer");
    let from = log.lines().position(|line| what(&line)).unwrap_or(0);
    log.lines().skip(from).take(20).for_each(say);
    let input = log.lines().rev().find_map(|line| line.split_once("Test unit written to "));
    Err(match input {
        Some((_, path)) => format!("the input is in `{}`", shown(Path::new(path.trim()))),
        None => "the target ended without writing an input".to_owned(),
    })
}

/// The names of the targets.
fn targets() -> Result<BTreeSet<String>, String> {
    let folder = root().join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder).map_err(|e| format!("`{}`: {e}", shown(&folder)))?;
    let name = |e: fs::DirEntry| Some(e.path().file_stem()?.to_string_lossy().into_owned());
    Ok(entries.filter_map(|e| name(e.ok()?)).collect())
}

/// The target triple of this machine.
fn host() -> Result<String, String> {
    let said = std::process::Command::new("rustc").arg("-vV").output();
    let said = said.map_err(|e| format!("`rustc` cannot be run: {e}"))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "`rustc -vV` prints no host".to_owned())
}

/// The coverage of the run, from the last line that reports it.
fn coverage(log: &str) -> String {
    let word = |key: &str| {
        let line = log.lines().rev().find(|line| line.contains(" cov: "))?;
        line.split_whitespace().skip_while(|w| *w != key).nth(1)
    };
    match (word("cov:"), word("corp:")) {
        (Some(edges), Some(inputs)) => format!("{edges} edges, corpus {inputs}"),
        _ => "no coverage".to_owned(),
    }
}

/// Writes the seeds. Returns their number.
fn seed(name: &str, corpus: &Path) -> Result<usize, String> {
    let root = root();
    let mut seeds: BTreeSet<Vec<u8>> = BTreeSet::new();
    let files = |folder: &str, ending: &str| {
        let entries = fs::read_dir(root.join(folder)).into_iter().flatten();
        let paths = entries.filter_map(|e| Some(e.ok()?.path()));
        let ours = paths.filter(|p| p.to_string_lossy().ends_with(ending));
        ours.filter_map(|p| fs::read_to_string(p).ok()).collect::<Vec<_>>()
    };
    match name {
        "algebra_against_brute_force" => {
            // An input for each operation, and inputs of arbitrary bytes.
            let bytes = |k: u8| (0..32).map(|i: u8| k.wrapping_add(i.wrapping_mul(37))).collect();
            seeds.extend((0..26).chain(200..216).map(|k: u8| [vec![k], bytes(k)].concat()));
        }
        "decompose_preserves_meaning" => {
            // Arbitrary bytes from which a program is generated.
            let mut state = 0x9e37_79b9_7f4a_7c15u64;
            let mut byte = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            };
            seeds.extend((0..64).map(|_| (0..1024).map(|_| byte()).collect::<Vec<u8>>()));
        }
        "layout_text_never_panics" => {
            for text in files("ir/tests/all", ".rs") {
                let quoted = text.split('"').skip(1).step_by(2);
                let layout = |t: &&str| {
                    t.contains(':') && t.bytes().all(|b| b"0123456789(),:- ".contains(&b))
                };
                seeds.extend(quoted.filter(layout).map(|t| t.as_bytes().to_vec()));
            }
        }
        "simulate_never_panics" => {
            // Programs that end within a small budget, and programs with every kind of error.
            let folders =
                ["simulate/tests/mutants", "simulate/tests", "cli/tests/filetests/simulate"];
            let all = folders.iter().flat_map(|f| files(f, ".cby"));
            seeds.extend(all.map(String::into_bytes));
        }
        _ => seeds.extend(files("examples", ".cby").into_iter().map(String::into_bytes)),
    }
    for (k, seed) in seeds.iter().enumerate() {
        let path = corpus.join(format!("seed{k:03}"));
        fs::write(&path, seed).map_err(|e| format!("`{}`: {e}", shown(&path)))?;
    }
    Ok(seeds.len())
}
