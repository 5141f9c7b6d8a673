//! Developer commands: `cargo xtask ci` is what must pass, the others are parts of it or mend what it
//! found.

mod ci;
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
}

fn main() -> ExitCode {
    let Args::Command(command) = Args::parse();
    let done = match command {
        Command::Ci => ci::ci(),
        Command::Setup => setup::setup(),
        Command::Tidy => tidy::tidy(),
        Command::Bless { path } => bless(path.as_deref()),
        Command::Docs => cargo(&["test", "--package", "carbyne", "--test", "docs"])
            .env("BLESS", "1")
            .done("the pages are fresh"),
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

/// Lets the golden tests write what they compare with otherwise.
fn bless(path: Option<&str>) -> Step {
    let mut command = cargo(&["test", "--package", "carbyne", "--no-fail-fast"]);
    command = command.env("BLESS", "1").env("UPDATE_EXPECT", "1");
    if let Some(path) = path {
        command = command.env("BLESS_ONLY", path);
    }
    command.done("expected outputs are written; look at `git diff` before you commit")
}

/// The workspace's root.
fn root() -> PathBuf {
    let xtask = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().map(PathBuf::from).unwrap_or(xtask)
}
