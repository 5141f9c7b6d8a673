//! Runs the developer commands of this repository. `cargo xtask ci` runs all checks. Two of its
//! steps are also commands: `tidy` (rules that no other tool checks) and `setup` (installs NVRTC
//! and other tools for the tests). `bless` and `docs` rewrite expected outputs and generated pages,
//! `fuzz` runs a fuzz target, and `demo` shows carbyne on an example.

mod ci;
mod fuzz;
mod process;
mod prose;
mod setup;
mod tidy;

use lexopt::prelude::*;
use process::{Step, cargo};
use std::process::ExitCode;

const HELP: &str = "Developer commands of the carbyne workspace.

Usage: cargo xtask COMMAND

  demo                    Decompose a GEMM, print its CUDA C++, simulate one block
  ci [--all] [STEP ...]   Run all checks, or these: format, tidy, setup, clippy, features, test,
                          gpu, python, outside, doc, publish. By default, long tests run a part of
                          their corpus that a fixed seed selects. --all runs complete corpora, and
                          random tests with more cases and a new seed, which it prints
  setup                   Install NVRTC, nvdisasm and NumPy for the tests, in a Python environment
                          under the build folder
  tidy                    Check headers, line lengths, spelling and stray paths, which neither
                          rustc nor clippy checks
  bless [PATH]            Rewrite the expected outputs of all tests, or those whose path contains
                          PATH
  docs                    Regenerate the pages under docs/
  fuzz TARGET [SECONDS]   Run a target of fuzz/fuzz_targets for 60 or SECONDS seconds; needs a C++
                          compiler, but no nightly toolchain
";

enum Command {
    Help,
    Demo,
    Ci { all: bool, only: Vec<String> },
    Setup,
    Tidy,
    Bless { path: Option<String> },
    Docs,
    Fuzz { target: String, seconds: u32 },
}

/// Parses the command line.
fn asked(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let Some(first) = parser.next()? else { return Ok(Command::Help) };
    let name = match first {
        Short('h') | Long("help") => return Ok(Command::Help),
        Value(name) => name.string()?,
        other => return Err(other.unexpected()),
    };
    let (mut all, mut values) = (false, vec![]);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Long("all") if name == "ci" => all = true,
            Value(value) => values.push(value.string()?),
            other => return Err(other.unexpected()),
        }
    }
    let mut values = values.into_iter();
    let command = match name.as_str() {
        "demo" => Command::Demo,
        "ci" => Command::Ci { all, only: values.by_ref().collect() },
        "setup" => Command::Setup,
        "tidy" => Command::Tidy,
        "bless" => Command::Bless { path: values.next() },
        "docs" => Command::Docs,
        "fuzz" => {
            let target = values.next().ok_or("`fuzz` needs a target")?;
            let seconds = values
                .next()
                .map(|s| s.parse().map_err(|_| format!("`{s}` is not a number of seconds")));
            Command::Fuzz { target, seconds: seconds.transpose()?.unwrap_or(60) }
        }
        _ => return Err(format!("there is no command `{name}`").into()),
    };
    match values.next() {
        Some(more) => Err(Value(more.into()).unexpected()),
        None => Ok(command),
    }
}

fn main() -> ExitCode {
    let done = match asked(lexopt::Parser::from_env()) {
        Ok(Command::Help) => Ok(HELP.trim_end().to_owned()),
        Ok(Command::Demo) => demo(),
        Ok(Command::Ci { all, only }) => ci::ci(all, &only),
        Ok(Command::Setup) => setup::setup(),
        Ok(Command::Tidy) => tidy::tidy(),
        Ok(Command::Bless { path }) => bless(path.as_deref()),
        Ok(Command::Docs) => docs(),
        Ok(Command::Fuzz { target, seconds }) => fuzz::fuzz(&target, seconds),
        Err(e) => {
            process::say(&format!("{e}\n\n{}", HELP.trim_end()));
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(line) => {
            process::say(&line);
            ExitCode::SUCCESS
        }
        Err(line) => {
            process::say(&format!("failed: {line}"));
            ExitCode::FAILURE
        }
    }
}

/// Shows carbyne in three commands that need no GPU. Afterwards, `cargo run --release` has nothing
/// to build.
fn demo() -> Step {
    let example = "examples/gemm.cby";
    let commands: [&[&str]; 3] = [
        &["decompose", example, "--arch", "sm_80"],
        &["compile", example, "--arch", "sm_80", "--emit", "cuda"],
        &["simulate", example, "--arch", "sm_80", "--blocks", "1"],
    ];
    process::say("building carbyne; the first time takes some minutes");
    cargo(&["build", "--release", "--package", "carbyne"]).done("")?;
    for command in commands {
        process::say(&format!("\n$ carbyne {}\n", command.join(" ")));
        let mut all = vec!["run", "--quiet", "--release", "--package", "carbyne", "--"];
        all.extend(command);
        cargo(&all).done("")?;
    }
    Ok("\nabove are the kernel as IR and as CUDA C++; the simulation of one block is correct"
        .to_owned())
}

/// Regenerates pages and tables with the tests that check them.
fn docs() -> Step {
    cargo(&["test", "--package", "carbyne-sync", "--test", "all", "corpus::"])
        .env("BLESS", "1")
        .done("")?;
    cargo(&["test", "--package", "carbyne", "--test", "all", "docs::"])
        .env("BLESS", "1")
        .done("the pages are up to date")
}

/// Makes golden tests write their expected outputs.
fn bless(path: Option<&str>) -> Step {
    let line = "expected outputs are written; check `git diff` before you commit";
    let Some(path) = path else {
        return cargo(&["test", "--workspace", "--no-fail-fast"])
            .env("BLESS", "1")
            .env("UPDATE_EXPECT", "1")
            .done(line);
    };
    // Only files of the command line's tests can be selected by path.
    let folder = path.split('/').next().unwrap_or_default();
    let package = format!("carbyne-{folder}");
    let (tests, only): (&[&str], _) = match folder {
        "decompose" | "ir" | "simulate" | "sync" => {
            (&["--package", "carbyne-tests", "--test", folder], ("UPDATE_EXPECT", "1"))
        }
        "atoms" | "codegen" | "remedy" => (&["--package", &package], ("UPDATE_EXPECT", "1")),
        _ => (&["--package", "carbyne", "--test", "all"], ("BLESS_ONLY", path)),
    };
    cargo(&["test"]).args(tests).env("BLESS", "1").env(only.0, only.1).done(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arguments: &[&str]) -> Result<Command, String> {
        asked(lexopt::Parser::from_args(arguments)).map_err(|e| e.to_string())
    }

    #[test]
    fn command_lines() {
        assert!(matches!(of(&[]), Ok(Command::Help)));
        assert!(matches!(of(&["ci", "--help"]), Ok(Command::Help)));
        assert!(matches!(of(&["ci"]), Ok(Command::Ci { all: false, .. })));
        assert!(matches!(of(&["ci", "--all"]), Ok(Command::Ci { all: true, .. })));
        assert!(matches!(of(&["bless", "examples/gemm"]), Ok(Command::Bless { path: Some(_) })));
        assert!(matches!(of(&["fuzz", "x", "5"]), Ok(Command::Fuzz { seconds: 5, .. })));
        for wrong in
            [&["no"][..], &["demo", "--all"], &["tidy", "x"], &["fuzz"], &["fuzz", "x", "y"]]
        {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
    }
}
