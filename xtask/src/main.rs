//! Developer commands: `cargo xtask ci` is what must pass, the others are parts of it or mend what it
//! found.

mod ci;
mod fuzz;
mod process;
mod setup;
mod tidy;

use clap::{Parser, Subcommand};
use process::{Step, cargo};
use std::path::PathBuf;
use std::process::ExitCode;

/// Developer commands of the carbyne workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", color = clap::ColorChoice::Never)]
enum Args {
    #[command(flatten)]
    Command(Command),
}

#[derive(Subcommand)]
enum Command {
    /// Decompose a GEMM, print its CUDA C++, simulate a block of it.
    Demo,
    /// Run every check: format, tidy, clippy, tests, documentation.
    Ci,
    /// Install NVRTC and NumPy for the tests, in a Python environment under the build folder.
    Setup,
    /// Check what neither rustc nor clippy does: headers, lengths, spelling, stray paths.
    Tidy,
    /// Rewrite the expected outputs of tests to what carbyne gives now.
    Bless {
        /// Only expected outputs whose path holds this text.
        path: Option<String>,
    },
    /// Regenerate the pages under docs/.
    Docs,
    /// Run a fuzz target for some seconds; needs a C++ compiler, and no nightly toolchain.
    Fuzz {
        /// A file of fuzz/fuzz_targets without its ending.
        target: String,
        /// For how long.
        #[arg(default_value_t = 60)]
        seconds: u32,
    },
}

fn main() -> ExitCode {
    let Args::Command(command) = Args::parse();
    let done = match command {
        Command::Demo => demo(),
        Command::Ci => ci::ci(),
        Command::Setup => setup::setup(),
        Command::Tidy => tidy::tidy(),
        Command::Bless { path } => bless(path.as_deref()),
        Command::Docs => cargo(&["test", "--package", "carbyne", "--test", "all", "docs::"])
            .env("BLESS", "1")
            .done("the pages are fresh"),
        Command::Fuzz { target, seconds } => fuzz::fuzz(&target, seconds),
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

/// What carbyne is for, in three commands that need no GPU.
fn demo() -> Step {
    let example = "examples/gemm.cby";
    let commands: [&[&str]; 3] = [
        &["decompose", example, "--arch", "sm_80"],
        &["compile", example, "--arch", "sm_80", "--emit", "cuda"],
        &["simulate", example, "--arch", "sm_80", "--blocks", "1"],
    ];
    for command in commands {
        process::say(&format!("\n$ carbyne {}\n", command.join(" ")));
        let mut all = vec!["run", "--quiet", "--release", "--package", "carbyne", "--"];
        all.extend(command);
        cargo(&all).done("")?;
    }
    Ok("\nthe kernel is above as IR and as CUDA C++, and one block of it computes what it should"
        .to_owned())
}

/// Lets the golden tests write what they compare with otherwise.
fn bless(path: Option<&str>) -> Step {
    let line = "expected outputs are written; look at `git diff` before you commit";
    // Only the files that the command line's tests compare with can be told apart by path.
    let Some(path) = path else {
        return cargo(&["test", "--workspace", "--no-fail-fast"])
            .env("BLESS", "1")
            .env("UPDATE_EXPECT", "1")
            .done(line);
    };
    match path.split('/').next() {
        Some(folder @ ("atoms" | "codegen" | "decompose" | "ir" | "simulate")) => {
            let package = format!("carbyne-{folder}");
            cargo(&["test", "--package", &package])
                .env("BLESS", "1")
                .env("UPDATE_EXPECT", "1")
                .done(line)
        }
        _ => cargo(&["test", "--package", "carbyne", "--test", "all"])
            .env("BLESS", "1")
            .env("BLESS_ONLY", path)
            .done(line),
    }
}

/// The workspace's root.
fn root() -> PathBuf {
    let xtask = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().map(PathBuf::from).unwrap_or(xtask)
}
