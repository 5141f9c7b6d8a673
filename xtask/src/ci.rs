//! `cargo xtask ci`: every check, each with a closing line; all run, whatever the others found.

use crate::process::{Step, cargo, say};
use crate::{setup, tidy};
use std::time::Instant;

/// A step and its name.
type Named = (&'static str, fn() -> Step);

/// What only the feature `gpu` has; neither CUDA nor a GPU is needed.
fn gpu() -> Step {
    if !cfg!(target_os = "linux") {
        return Ok("the feature `gpu` is for Linux: skipped".to_owned());
    }
    let packages = ["--package", "carbyne", "--package", "carbyne-launch"];
    let features = ["--features", "carbyne/gpu"];
    let mut lint = vec!["clippy", "--quiet", "--all-targets"];
    lint.extend(packages.iter().chain(&features));
    lint.extend(["--", "-D", "warnings"]);
    cargo(&lint).done("")?;
    let mut test = vec!["test", "--package", "carbyne", "--test", "gpu"];
    test.extend(features);
    cargo(&test).done("it links without CUDA, and runs kernels on a pretended GPU")
}

pub(crate) fn ci() -> Step {
    let steps: [Named; 7] = [
        ("format", || cargo(&["fmt", "--all", "--check"]).done("formatted as rustfmt formats")),
        ("tidy", tidy::tidy),
        ("setup", setup::setup),
        ("clippy", || {
            let lint =
                ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
            cargo(&lint).done("no warnings")
        }),
        ("test", || {
            cargo(&["test", "--workspace", "--no-fail-fast"])
                .done("all tests passed, generated pages are fresh")
        }),
        ("gpu", gpu),
        ("doc", || {
            cargo(&["doc", "--workspace", "--no-deps", "--quiet"])
                .env("RUSTDOCFLAGS", "-D warnings")
                .done("the documentation has no warnings")
        }),
    ];
    let start = Instant::now();
    let mut closing = vec![];
    let mut n_failed = 0;
    for (name, step) in steps {
        say(&format!("== {name}"));
        let began = Instant::now();
        let ended = step();
        let seconds = began.elapsed().as_secs_f64();
        n_failed += usize::from(ended.is_err());
        let (mark, line) = match ended {
            Ok(line) => ("ok", line),
            Err(line) => ("FAILED", line),
        };
        let line = format!("{mark:6} {name:6} {seconds:6.1} s  {line}");
        say(&line);
        closing.push(line);
    }
    say("");
    closing.iter().for_each(|line| say(line));
    let seconds = start.elapsed().as_secs_f64();
    match n_failed {
        0 => Ok(format!("ci passed in {seconds:.0} s")),
        n => Err(format!("{n} of {} steps, after {seconds:.0} s", steps.len())),
    }
}
