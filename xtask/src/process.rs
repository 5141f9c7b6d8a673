//! Runs other programs, such as Cargo, in the root of the workspace and returns how they ended.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

/// The result of a step: a closing line, or the error.
pub(crate) type Step = Result<String, String>;

/// Prints a line.
#[expect(clippy::print_stdout, reason = "a developer command prints")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// A program to run.
pub(crate) struct Run {
    command: Command,
    shown: String,
}

/// Cargo with these arguments.
pub(crate) fn cargo(arguments: &[&str]) -> Run {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    program_named(&program, "cargo", arguments)
}

/// Any program.
pub(crate) fn program(name: impl AsRef<OsStr>, arguments: &[&str]) -> Run {
    let shown = name.as_ref().to_string_lossy().into_owned();
    program_named(name.as_ref(), &shown, arguments)
}

fn program_named(name: &OsStr, shown: &str, arguments: &[&str]) -> Run {
    let mut command = Command::new(name);
    command.args(arguments).current_dir(root());
    // The Cargo that runs this program sets these variables; another Cargo must not inherit them.
    for variable in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "CARGO_PKG_VERSION"] {
        command.env_remove(variable);
    }
    Run { command, shown: format!("{shown} {}", arguments.join(" ")) }
}

impl Run {
    /// Adds arguments.
    pub(crate) fn args(mut self, arguments: &[&str]) -> Self {
        self.command.args(arguments);
        self.shown = format!("{} {}", self.shown, arguments.join(" "));
        self
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, key: &str, value: &str) -> Self {
        self.command.env(key, value);
        self
    }

    /// Runs to the end. Returns whether the program succeeded, and its standard error.
    pub(crate) fn errors(mut self) -> Result<(bool, String), String> {
        match self.command.output() {
            Ok(out) => {
                Ok((out.status.success(), String::from_utf8_lossy(&out.stderr).into_owned()))
            }
            Err(e) => Err(format!("`{}` cannot be run: {e}", self.shown)),
        }
    }

    /// Runs to the end. Returns standard output if the program succeeded.
    pub(crate) fn output(mut self) -> Result<String, String> {
        match self.command.output() {
            Ok(out) if out.status.success() => {
                Ok(String::from_utf8_lossy(&out.stdout).into_owned())
            }
            Ok(out) => Err(format!("`{}`: {}", self.shown, out.status)),
            Err(e) => Err(format!("`{}` cannot be run: {e}", self.shown)),
        }
    }

    /// Runs to the end. Returns `line` if the program succeeded.
    pub(crate) fn done(mut self, line: &str) -> Step {
        match self.command.status() {
            Ok(status) if status.success() => Ok(line.to_owned()),
            Ok(status) => Err(format!("`{}`: {status}", self.shown)),
            Err(e) => Err(format!("`{}` cannot be run: {e}", self.shown)),
        }
    }
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let xtask = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().map(PathBuf::from).unwrap_or(xtask)
}
